//! Building for i686: the libraries, for programs of 32 bits.

use std::path::Path;
use std::process::Command;

/// What the compiler calls it.
pub(crate) const TARGET: &str = "i686-unknown-linux-gnu";

/// What Debian calls it.
pub(crate) const ARCHITECTURE: &str = "i386";

/// The package of Debian that is built for it as well: `debian/rules` makes that one alone.
pub(crate) const PACKAGE: &str = "libjack-consort0";

/// Cargo's variable for the linker, and that of Debian's cross compiler.
pub(crate) const LINKER: (&str, &str) =
    ("CARGO_TARGET_I686_UNKNOWN_LINUX_GNU_LINKER", "i686-linux-gnu-gcc");

/// Whether this machine can build for it: it needs the target's standard library, and the linker.
pub(crate) fn is_available() -> bool {
    has_target(TARGET) && Command::new(LINKER.1).arg("--version").output().is_ok()
}

/// Whether the compiler has the standard library of a target.
pub(crate) fn has_target(target: &str) -> bool {
    let output =
        Command::new("rustc").args(["--print", "target-libdir", "--target", target]).output();
    let libraries = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    libraries.is_ok_and(|directory| Path::new(&directory).is_dir())
}
