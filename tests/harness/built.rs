//! The programs under test, built once for all tests of a run.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// `target/debug`, or whatever profile the tests themselves were built with.
fn profile_directory() -> PathBuf {
    let test = std::env::current_exe().expect("the test's own path");
    test.ancestors().nth(2).expect("target/<profile>/deps/<test>").to_owned()
}

/// Set where there is no compiler of ours, in a virtual machine: whoever started it has built everything.
const ARE_BUILT: &str = "CONSORT_TESTS_ARE_BUILT";

/// Builds what `what` names in the profile that this test was built with, so that it is not older than the tree.
fn build(what: &[&str]) -> bool {
    if std::env::var_os(ARE_BUILT).is_some() {
        return true;
    }
    let directory = profile_directory();
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--quiet"]).args(what);
    if directory.ends_with("release") {
        cargo.arg("--release");
    }
    cargo.arg("--target-dir").arg(directory.parent().expect("target"));
    cargo.current_dir(env!("CARGO_MANIFEST_DIR")).status().expect("cargo runs").success()
}

/// The directory of the server and the library, built once.
fn built() -> &'static Path {
    static BUILT: OnceLock<Option<PathBuf>> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        let packages = ["consort", "consort-libjack", "consort-jackserver", "consort-jacknet"];
        build(&packages.map(|package| ["--package", package]).concat()).then(profile_directory)
    });
    // Outside: what does not build is tried once, not by each test again.
    built.as_deref().expect("consort and consort-libjack build")
}

/// A program of the project.
pub fn binary(name: &str) -> PathBuf {
    built().join(name)
}

/// A directory that holds `libjack.so.0`, `libjackserver.so.0`, `libjacknet.so.0` and nothing else.
pub fn library_directory() -> &'static Path {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    DIRECTORY.get_or_init(|| {
        let directory = built().join("jack-for-tests");
        std::fs::create_dir_all(&directory).expect("a directory in target");
        let libraries = ["libjack", "libjackserver", "libjacknet"].map(|library| format!("{library}.so"));
        for (built_name, name) in libraries
            .iter()
            .flat_map(|library| [(library, library.clone()), (library, format!("{library}.0"))])
        {
            // Another test process may be doing the same: a link is made beside and moved into its place.
            let beside = directory.join(format!("{name}.{}", std::process::id()));
            let _ = std::fs::remove_file(&beside);
            std::os::unix::fs::symlink(built().join(built_name), &beside).expect("a link");
            std::fs::rename(&beside, directory.join(&name)).expect("a link in its place");
        }
        directory
    })
}

/// An example program of the client library.
pub fn example(name: &str) -> PathBuf {
    static EXAMPLES: OnceLock<Option<PathBuf>> = OnceLock::new();
    let examples = EXAMPLES.get_or_init(|| {
        build(&["--package", "consort-client", "--examples"]).then(|| profile_directory().join("examples"))
    });
    examples.as_ref().expect("the examples build").join(name)
}

/// Compiles a C program with the project's headers and library, and nothing else of JACK.
pub fn c_program(source: &Path, program: &Path) {
    c_program_with("jack", source, program);
}

/// As [`c_program`], with another one of the project's libraries.
pub fn c_program_with(library: &str, source: &Path, program: &Path) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let status = Command::new("gcc")
        .args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-o"])
        .arg(program)
        .arg(root.join(source))
        .arg("-I")
        .arg(root.join("../crates/jack/include"))
        .arg("-L")
        .arg(library_directory())
        .arg(format!("-l{library}"))
        .status()
        .expect("gcc runs; 'cargo xtask setup' installs it");
    assert!(status.success(), "{} does not compile", source.display());
}
