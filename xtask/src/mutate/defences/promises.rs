//! A test: each promise of `docs/threat-model.md` names a test that notices when a defence is taken
//! away, and not only its module, or says why none can be.

use std::fs;

use super::{Test, table};
use crate::command::root;

/// How a row says why no defence of it is taken away.
const NOT_MUTATED: &str = "not mutated: ";

/// Tests that a row names: by where they are, and by modules and the beginning of a name, or by `…`
/// and a part of it. A module alone has no such beginning, and means no test of its own.
#[derive(Debug, PartialEq, Eq)]
struct Named<'a> {
    place: Place<'a>,
    name: &'a str,
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
        let parts = |name: &'static str| name.rsplit_once("::").unwrap_or(("", name));
        let (modules, named) = self.name.rsplit_once("::").unwrap_or(("", self.name));
        let (all_modules, name) = parts(test.name());
        let is_meant = match named.strip_prefix('…') {
            Some(part) => name.contains(part),
            None => !named.is_empty() && name.starts_with(named),
        };
        is_there && is_meant && all_modules.contains(modules)
    }
}

/// Reads the code spans of a row's last cell: `SUITE NAME`, `SUITE`, `crates/PACKAGE`, then names
/// in the same place.
fn named(cell: &str) -> Vec<Named<'_>> {
    let mut all = Vec::new();
    let mut place = None;
    for span in cell.split('`').skip(1).step_by(2) {
        let words: Vec<&str> = span.split(' ').collect();
        let (there, name) = match (&words[..], place) {
            (["cargo", "test", "-p", package, .., name], _) => {
                (Some(Place::Package(package)), *name)
            }
            ([suite, name], _) => (Some(Place::Suite(suite)), *name),
            ([word], _) if word.starts_with("crates/") => {
                (Some(Place::Package(&word["crates/".len()..])), "")
            }
            ([word], None) => (Some(Place::Suite(word)), ""),
            ([word], known) => (known, *word),
            _ => (None, ""),
        };
        place = there;
        all.extend(there.map(|place| Named { place, name }));
    }
    all
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
    let cell = "`restart`, `…first`; `faults hangs::`, `hangs::a_wait`, `…a_call`; `crates/sys` \
                `log`, `log::tests::a_line`; `cargo test -p consort-web deep`";
    let named = named(cell);
    for (test, expected) in [
        (process("restart", "any::the_first"), true),
        (process("restart", "any::the_second"), false),
        (process("faults", "hangs::a_wait_ends"), true),
        (process("faults", "other::a_wait_ends"), false),
        (process("faults", "hangs::not_a_wait"), false),
        (process("faults", "other::it_is_a_call"), true),
        (process("faults", "other::the_first"), false),
        (process("web", "hangs::a_wait_ends"), false),
        (unit("consort-sys", "log::tests::a_line_is_lost"), true),
        (unit("consort-sys", "log::tests::the_line"), false),
        (unit("consort-web", "deep_down"), true),
        (unit("consort-web", "deep::tests::a_name"), false),
    ] {
        assert_eq!(named.iter().any(|named| named.has(test)), expected, "{test:?}");
    }
}
