//! `functions.txt` names the test that sees what each function does. This checks that it has every
//! function that libjack exports, and that the tests exist and their programs call the function.
//!
//! A line has a symbol, what is seen, the file and the name of the test, and the program that calls
//! it: its source, or the file itself of one of Debian's. What is seen is its `effect`, from
//! another process; or what it does in its `own` process, where it concerns no other.

use std::collections::BTreeSet;
use std::path::Path;

struct Line {
    symbol: &'static str,
    kind: &'static str,
    file: &'static str,
    test: &'static str,
    program: &'static str,
}

fn lines() -> Vec<Line> {
    let split = |line: &'static str| {
        let words: Vec<&str> = line.split(' ').collect();
        let [symbol, kind, file, test, program] = words[..] else {
            panic!("not five words: {line}")
        };
        Line { symbol, kind, file, test, program }
    };
    include_str!("functions.txt").lines().map(split).collect()
}

/// A file of the repository.
fn read(path: &str) -> String {
    let root =
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a directory of the repository");
    std::fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The source of a program, or the names that an installed one takes from its libraries.
fn calls_of(program: &str) -> String {
    if !program.starts_with('/') {
        return read(program);
    }
    let output =
        std::process::Command::new("nm").args(["-D", "--undefined-only", program]).output();
    let output = output.expect("nm runs; 'cargo xtask setup' installs it");
    assert!(output.status.success(), "{program}: 'cargo xtask setup' installs it");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Whether `text` has `word` as a whole name.
fn has_word(text: &str, word: &str) -> bool {
    let is_name = |character: char| character.is_ascii_alphanumeric() || character == '_';
    text.match_indices(word).any(|(at, _)| {
        !text[..at].ends_with(is_name) && !text[at + word.len()..].starts_with(is_name)
    })
}

#[test]
fn every_function_of_libjack_has_a_test_whose_program_calls_it() {
    let lines = lines();
    let listed: Vec<&str> = lines.iter().map(|line| line.symbol).collect();
    let symbols = include_str!("../../crates/jack/abi/symbols.txt").lines();
    let exported: Vec<&str> = symbols.map(|line| line.trim_end_matches(" DATA")).collect();
    assert_eq!(listed, exported);
    for Line { symbol, kind, file, test, program } in lines {
        assert!(["effect", "own"].contains(&kind), "{symbol}: {kind}");
        assert!(
            read(file).contains(&format!("#[test]\nfn {test}() {{")),
            "{symbol}: no test {test} in {file}"
        );
        assert!(has_word(&calls_of(program), symbol), "{symbol}: {program} does not call it");
        let name = Path::new(program).file_stem().and_then(|name| name.to_str()).expect("a name");
        // The actor and its parts are run by all of these tests; other programs by the test that
        // names them.
        let is_actor = name == "actor" || name.ends_with("_commands");
        assert!(is_actor || read(file).contains(name), "{symbol}: {file} does not run {program}");
    }
}

#[test]
fn effects_on_other_processes_have_process_level_tests() {
    let elsewhere: BTreeSet<_> = lines()
        .iter()
        .filter(|line| line.kind != "own" && !line.file.starts_with("tests/"))
        .map(|line| line.symbol)
        .collect();
    assert!(elsewhere.is_empty(), "{elsewhere:?}");
}
