//! A test: each promise of `docs/threat-model.md` names a test that notices when a defence is taken
//! away, or says why none can be.

use std::fs;

use super::{Test, table};
use crate::command::root;

/// How a row says why no defence of it is taken away.
const NOT_MUTATED: &str = "not mutated: ";

/// Tests that a row names: by where they are, and a part of their names.
#[derive(Debug, PartialEq, Eq)]
struct Named<'a> {
    place: Place<'a>,
    part: &'a str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place<'a> {
    /// A suite of process-level tests.
    Suite(&'a str),
    /// A package, with or without `consort-`.
    Package(&'a str),
}

impl Named<'_> {
    fn has(&self, test: Test) -> bool {
        let is_there = match (self.place, test) {
            (Place::Suite(named), Test::Process { suite, .. }) => named == suite,
            (Place::Package(named), Test::Unit { package, .. }) => {
                package.strip_prefix("consort-") == Some(named.trim_start_matches("consort-"))
            }
            _ => false,
        };
        is_there && test.name().contains(self.part)
    }
}

/// Reads the code spans of a row's last cell: `SUITE NAME`, `SUITE`, `crates/PACKAGE`, then names
/// in the same place; `…NAME` is one whose module was named before.
fn named(cell: &str) -> Vec<Named<'_>> {
    let mut all = Vec::new();
    let mut place = None;
    for span in cell.split('`').skip(1).step_by(2) {
        let words: Vec<&str> = span.split(' ').collect();
        let (there, part) = match (&words[..], place) {
            (["cargo", "test", "-p", package, .., name], _) => {
                (Some(Place::Package(package)), *name)
            }
            ([suite, name], _) => (Some(Place::Suite(suite)), *name),
            ([word], _) if word.starts_with("crates/") => {
                (Some(Place::Package(&word["crates/".len()..])), "")
            }
            ([word], None) => (Some(Place::Suite(word)), ""),
            ([word], known) => (known, word.trim_start_matches('…')),
            _ => (None, ""),
        };
        place = there;
        all.extend(there.map(|place| Named { place, part }));
    }
    // A package whose modules are named is not meant as a whole.
    let is_narrowed = |index: usize| {
        let next: Option<&Named<'_>> = all.get(index + 1);
        all[index].part.is_empty() && next.is_some_and(|next| next.place == all[index].place)
    };
    let kept: Vec<bool> = (0..all.len()).map(|index| !is_narrowed(index)).collect();
    all.into_iter().zip(kept).filter_map(|(named, is_kept)| is_kept.then_some(named)).collect()
}

/// The cells of each row of the table under a heading.
fn rows<'a>(document: &'a str, heading: &str) -> Vec<Vec<&'a str>> {
    let section = document.split(heading).nth(1).unwrap_or_default();
    let section = section.split("\n## ").next().unwrap_or_default();
    let rows = section.lines().filter(|line| line.starts_with("| "));
    rows.skip(1).map(|row| row.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

#[test]
fn each_promise_names_a_test_that_misses_a_defence_or_says_why_not() {
    let text = fs::read_to_string(root().join("docs/threat-model.md")).expect("the threat model");
    let rows = rows(&text, "## What is promised");
    assert!(rows.len() > 50, "{} rows", rows.len());
    let complaints: Vec<String> = rows.iter().filter_map(|row| complaint(row)).collect();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// Returns what a row lacks.
fn complaint(row: &[&str]) -> Option<String> {
    let [threat, _promise, tests] = row else { return Some(format!("not three cells: {row:?}")) };
    let (tests, reason) = match tests.split_once(NOT_MUTATED) {
        Some((tests, reason)) => (tests, Some(reason)),
        None => (*tests, None),
    };
    let named = named(tests);
    let misses = |test: Test| named.iter().any(|named| named.has(test));
    let defence = table::all().find(|defence| misses(defence.test));
    let lacks = match (defence, reason) {
        _ if named.is_empty() => "it names no test".into(),
        (None, None) => "its tests miss no defence, and it does not say why".into(),
        (None, Some("")) => "it gives no reason".into(),
        (Some(defence), Some(_)) => format!("'{}' is mutated", defence.name),
        (Some(_), None) | (None, Some(_)) => return None,
    };
    Some(format!("{threat}: {lacks}"))
}

#[test]
fn tests_are_found_as_a_row_names_them() {
    let process = |suite, name| Test::Process { suite, name };
    let unit = |package, name| Test::Unit { package, name };
    let cell = "`restart`; `faults hangs::`, `…a_call`; `crates/sys` `log`; `crates/alsa`, \
                `cargo test -p consort-web deep`";
    let named = named(cell);
    for (test, expected) in [
        (process("restart", "any::test"), true),
        (process("faults", "hangs::tests"), true),
        (process("faults", "other::a_call"), true),
        (process("faults", "other::tests"), false),
        (process("web", "hangs::tests"), false),
        (unit("consort-sys", "log::tests"), true),
        (unit("consort-sys", "memory::tests"), false),
        (unit("consort-alsa", "any::test"), true),
        (unit("consort-web", "deep::tests"), true),
    ] {
        assert_eq!(named.iter().any(|named| named.has(test)), expected, "{test:?}");
    }
}
