//! The code of real-time threads lies together in the program (`realtime.ld`).

use std::collections::BTreeSet;
use std::process::Command;

/// Crates that the server is made of and none of whose code a real-time thread runs: messages and
/// files are for other threads.
const LEFT_OUT: [&str; 21] = [
    "alsa_sys",
    "cfg_if",
    "cobs",
    "confinement",
    "consort_soundfile",
    "consort_state",
    "fastrand",
    "getrandom",
    "itoa",
    "libloading",
    "memchr",
    "once_cell",
    "postcard",
    "round_robin",
    "sd_notify",
    "serde",
    "serde_core",
    "serde_json",
    "tempfile",
    "thiserror",
    "zmij",
];
/// The parts of the standard library.
const STANDARD: [&str; 4] = ["alloc", "compiler_builtins", "core", "std"];

/// The crates whose objects `realtime.ld` puts into a section of this kind.
fn laid_together(kind: &str) -> BTreeSet<String> {
    let end = format!("-*({kind} {kind}.*)");
    let named =
        |line: &str| Some(line.trim().strip_prefix("*[b.]")?.strip_suffix(&end)?.to_owned());
    include_str!("../realtime.ld").lines().filter_map(named).collect()
}

#[test]
fn every_crate_that_the_server_is_made_of_is_laid_together_or_left_out() {
    let mut tree = Command::new(env!("CARGO"));
    tree.args(["tree", "--package", "consort-engine", "--edges", "normal,no-proc-macro"]);
    tree.args(["--prefix", "none", "--format", "{lib}", "--offline"]);
    let output = tree.current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("cargo");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let listed = String::from_utf8(output.stdout).expect("text");
    let library = |line: &str| line.split_ascii_whitespace().next().map(str::to_owned);
    let linked: BTreeSet<String> = listed.lines().filter_map(library).collect();
    let known = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let left_out: BTreeSet<String> = known(&LEFT_OUT);
    let standard: BTreeSet<String> = known(&STANDARD);
    assert!(linked.contains("consort_engine"), "{listed}");
    for kind in [".text", ".rodata"] {
        let together = laid_together(kind);
        let wanted: BTreeSet<String> =
            linked.difference(&left_out).chain(&standard).cloned().collect();
        assert_eq!(together, wanted, "{kind}");
    }
    assert!(left_out.is_subset(&linked), "{left_out:?} of {linked:?}");
}
