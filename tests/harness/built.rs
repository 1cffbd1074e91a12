//! The programs under test, built once for all tests of a run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock, PoisonError};

/// `target/debug`, or whatever profile the tests themselves were built with.
fn profile_directory() -> PathBuf {
    let test = std::env::current_exe().expect("the test's own path");
    test.ancestors().nth(2).expect("target/<profile>/deps/<test>").to_owned()
}

/// Set in a virtual machine, which has no compiler for Rust: everything is built before it starts.
/// [`ALL`]: it has none for C either.
const ARE_BUILT: &str = "CONSORT_TESTS_ARE_BUILT";
const ALL: &str = "all";

/// Builds the targets that `what` names, in this test's profile, so that they are not older than
/// the tree.
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
    // Built outside of the lock: a failing build is tried once, not again by each test.
    built.as_deref().expect("consort and consort-libjack build")
}

/// Copies a program, by another process: while this one has the copy open for writing, a thread of
/// another test may fork, and its child keeps the copy from being started (`ETXTBSY`).
pub fn copy_program(from: impl AsRef<Path>, to: impl AsRef<Path>) {
    let copied = Command::new("cp").args([from.as_ref(), to.as_ref()]).status().expect("cp runs");
    assert!(copied.success(), "{} is not copied", from.as_ref().display());
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
        let libraries =
            ["libjack", "libjackserver", "libjacknet"].map(|library| format!("{library}.so"));
        for (built_name, name) in libraries
            .iter()
            .flat_map(|library| [(library, library.clone()), (library, format!("{library}.0"))])
        {
            // Another test process may be doing the same: the link is made under another name and
            // renamed.
            let staged = directory.join(format!("{name}.{}", std::process::id()));
            let _ = std::fs::remove_file(&staged);
            std::os::unix::fs::symlink(built().join(built_name), &staged).expect("a link");
            std::fs::rename(&staged, directory.join(&name)).expect("a link in its place");
        }
        directory
    })
}

/// An example program of the client library.
pub fn example(name: &str) -> PathBuf {
    static EXAMPLES: OnceLock<Option<PathBuf>> = OnceLock::new();
    let examples = EXAMPLES.get_or_init(|| {
        build(&["--package", "consort-client", "--examples"])
            .then(|| profile_directory().join("examples"))
    });
    examples.as_ref().expect("the examples build").join(name)
}

/// The program of a C source below `tests/`, linked with `libjack`: see [`c_program_with`].
pub fn c_program(source: &str) -> String {
    c_program_with("jack", source)
}

/// The program of a C source below `tests/`, linked with one of the project's libraries; compiled
/// once in each test process.
///
/// # Panics
/// If it does not compile.
pub fn c_program_with(library: &str, source: &str) -> String {
    static PROGRAMS: Mutex<BTreeMap<String, String>> = Mutex::new(BTreeMap::new());
    let mut programs = PROGRAMS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(program) = programs.get(source) {
        return program.clone();
    }
    let directory = built().join("c-programs");
    std::fs::create_dir_all(&directory).expect("a directory in target");
    let name = Path::new(source).file_stem().expect("a file").to_string_lossy();
    let program = directory.join(&*name);
    if std::env::var_os(ARE_BUILT).is_some_and(|built| built == ALL) {
        return program.to_string_lossy().into_owned();
    }
    // Another test process may be doing the same, or running the program.
    let staged = directory.join(format!("{name}.{}", std::process::id()));
    compile_c(library, Path::new(source), &staged);
    std::fs::rename(&staged, &program).expect("a program in its place");
    let program = program.to_string_lossy().into_owned();
    programs.insert(source.to_owned(), program.clone());
    program
}

/// Compiles a C source with the project's headers and one of its libraries, and nothing else of
/// JACK.
///
/// # Panics
/// If it does not compile.
pub fn compile_c(library: &str, source: &Path, program: &Path) {
    let mut compiler = c_compiler();
    compiler.arg(root().join(source)).arg("-o").arg(program);
    compiler.arg("-L").arg(library_directory()).arg(format!("-l{library}"));
    let status = compiler.status().expect("gcc runs; 'cargo xtask setup' installs it");
    assert!(status.success(), "{} does not compile", source.display());
}

/// The C compiler with the project's headers, for which each warning is an error.
pub fn c_compiler() -> Command {
    let mut compiler = Command::new("gcc");
    compiler.args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-I"]);
    compiler.arg(root().join("../crates/jack/include"));
    compiler
}

/// The directory `tests/`.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
