//! `cargo xtask sanitize`: the lock-free parts under ThreadSanitizer.

use anyhow::Result;

use crate::command::{cargo_with, host, root};

/// The option is unstable, so the stable compiler is unlocked for it. The standard library is the
/// ordinary one, without instrumentation: hence the second option, and the suppressions.
const RUSTFLAGS: &str = "-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer";

/// Reports that are about the standard library: it frees what its threads shared, in an order that
/// ThreadSanitizer cannot see.
const SUPPRESSIONS: &str = "race:alloc::alloc::dealloc\nrace:drop_slow\n";

/// Runs `crates/rt/tests/threads.rs`.
///
/// # Errors
/// If ThreadSanitizer reports a data race, or the test does not build or fails.
pub fn run() -> Result<()> {
    let directory = root().join("target/sanitize");
    std::fs::create_dir_all(&directory)?;
    let suppressions = directory.join("suppressions");
    std::fs::write(&suppressions, SUPPRESSIONS)?;
    cargo_with(
        // Naming the target keeps build scripts and macros free of the option.
        &["test", "--quiet", "--package", "consort-rt", "--test", "threads", "--target", &host()?],
        &[
            ("RUSTC_BOOTSTRAP", "1"),
            ("RUSTFLAGS", RUSTFLAGS),
            ("CARGO_TARGET_DIR", &directory.to_string_lossy()),
            ("TSAN_OPTIONS", &format!("suppressions={}", suppressions.display())),
        ],
    )
}
