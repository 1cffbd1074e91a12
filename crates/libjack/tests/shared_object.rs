//! The shared object that C programs see: its name, its symbols, and programs that use it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The shared object that cargo built with this test.
fn libjack() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its own file");
    test.with_file_name("libjack.so")
}

fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| {
        panic!("{command:?} cannot be started ({error}): xtask/setup/debian.sh installs it")
    });
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{out}{err}", output.status);
    output
}

/// The symbols that the shared object exports: name, and whether it is data.
fn exported() -> BTreeMap<String, bool> {
    let output = run(Command::new("nm")
        .args(["--dynamic", "--defined-only", "--format=posix"])
        .arg(libjack()));
    let text = String::from_utf8(output.stdout).expect("symbols are ASCII");
    text.lines()
        .map(|line| {
            let mut words = line.split(' ');
            let (name, kind) = (words.next().expect("a name"), words.next().expect("a kind"));
            assert!(["T", "D", "B", "R"].contains(&kind), "{line}: neither code nor data");
            (name.to_owned(), kind != "T")
        })
        .collect()
}

/// Compiles `tests/c/NAME.c` with our headers, links it with our library under its SONAME, and runs
/// it.
fn run_c_program(name: &str, arguments: &[&str]) {
    let directory =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}{}", arguments.concat()));
    std::fs::create_dir_all(&directory).expect("a directory for the program");
    let soname = directory.join("libjack.so.0");
    // Left over from an earlier run, or absent.
    let _ = std::fs::remove_file(&soname);
    std::os::unix::fs::symlink(libjack(), &soname).expect("a link to the library");
    let program = directory.join(name);
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    run(Command::new("gcc")
        .args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O2", "-g", "-pthread"])
        .args(arguments)
        .arg(format!("-I{}", root.join("../jack/include").display()))
        .arg(root.join(format!("tests/c/{name}.c")))
        .arg(&soname)
        .arg("-o")
        .arg(&program));
    run(Command::new(program).env("LD_LIBRARY_PATH", directory));
}

#[test]
fn the_library_has_the_name_that_programs_ask_for() {
    let output = run(Command::new("readelf").args(["--dynamic", "--wide"]).arg(libjack()));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("Library soname: [libjack.so.0]"), "{text}");
}

/// The symbols of libjack: name, and whether it is data.
fn expected() -> BTreeMap<String, bool> {
    include_str!("../../jack/abi/symbols.txt")
        .lines()
        .map(|line| line.strip_suffix(" DATA").map_or((line, false), |name| (name, true)))
        .map(|(name, data)| (name.to_owned(), data))
        .collect()
}

#[test]
fn exactly_libjacks_symbols_are_exported() {
    let (exported, expected) = (exported(), expected());
    let missing: Vec<_> =
        expected.iter().filter(|(name, _)| !exported.contains_key(*name)).collect();
    assert!(missing.is_empty(), "not exported: {missing:?}");
    assert_eq!(exported, expected);
}

#[test]
fn every_function_answers_its_documented_error_to_handles_that_are_none() {
    run_c_program("handles", &["-Wno-deprecated-declarations"]);
}

#[test]
fn every_symbol_is_used_by_a_c_program() {
    let programs = [
        include_str!("c/handles.c"),
        include_str!("c/ringbuffer.c"),
        include_str!("c/without_server.c"),
    ]
    .concat();
    let unused: Vec<_> =
        expected().into_keys().filter(|name| !programs.contains(name.as_str())).collect();
    assert!(unused.is_empty(), "{unused:?}");
}

#[test]
fn two_threads_of_a_c_program_share_a_ring_buffer() {
    run_c_program("ringbuffer", &[]);
}

#[test]
fn a_c_program_uses_what_needs_no_server() {
    // In a program at a fixed address, the linker copies the library's variables into the program.
    for arguments in [&["-fPIE", "-pie"][..], &["-fno-pie", "-no-pie"]] {
        run_c_program("without_server", arguments);
    }
}
