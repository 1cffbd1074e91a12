//! `cargo xtask targets`: the libraries compile for the other processors that they are for.

use anyhow::Result;

use crate::bill::LIBRARIES;
use crate::command::{cargo_with, root};
use crate::narrow;

/// i386 and aarch64. For the first, tests also run what is built.
const TARGETS: [&str; 2] = [narrow::TARGET, "aarch64-unknown-linux-gnu"];

/// Compiles the libraries for each target that the compiler has, and says which it has not. Nothing
/// is linked, so no other compiler is needed.
///
/// # Errors
/// If they do not compile.
pub fn run() -> Result<()> {
    let directory = root().join("target/targets");
    for target in TARGETS {
        if !narrow::has_target(target) {
            println!("not run: the libraries for {target}; rustup target add {target}");
            continue;
        }
        let check = ["check", "--locked", "--quiet", "--target", target];
        let packages = LIBRARIES.map(|package| ["--package", package]).concat();
        let environment = [("CARGO_TARGET_DIR", &*directory.to_string_lossy())];
        cargo_with(&[&check[..], &packages].concat(), &environment)?;
        println!("the libraries compile for {target}");
    }
    Ok(())
}
