//! Starts virtual machines with sound cards, and runs the tests of `guest` in them.

use std::path::{Path, PathBuf};
use std::process::Command;

use harness::{binary, c_program, library_directory};
use tempfile::TempDir;

/// The tool that boots the machine, relative to the project's root.
const TOOL: &str = "tools/vm-run";

/// Attempts to boot a machine that does not reach its tests: a busy host delays its devices.
const STARTS: usize = 3;

/// Says that nothing is to be built there, or nothing but programs in C.
const ALL_IS_BUILT: &str = "CONSORT_TESTS_ARE_BUILT=all";
const IS_BUILT: &str = "CONSORT_TESTS_ARE_BUILT=1";

/// The machine's command. Its clock runs on while it waits for this computer's disk, so large files
/// are read before the tests begin.
const START: &str = r#"filter=$0; cat "$@" > /dev/null; exec "$1" --ignored --test-threads=1 --nocapture "$filter""#;

fn tool() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(TOOL)
}

/// What a machine needs of this computer that shares nothing with it, besides what is built here.
const IN_MEMORY: [&str; 11] = [
    "/bin/sh",
    "/bin/cat",
    "/usr/bin/env",
    "/usr/bin/timeout",
    "/usr/bin/arecord",
    "/usr/bin/aplay",
    "/usr/bin/paplay",
    "/usr/lib/x86_64-linux-gnu/libsndfile.so.1",
    "/usr/share/alsa",
    "/etc/passwd",
    "/etc/group",
];

/// Runs the guest's tests that `filter` names on a machine that can sleep, with these options.
fn run_asleep(filter: &str, options: &[&str], seconds: u32) {
    let libraries = ["libjack.so", "libjackserver.so", "libjacknet.so"].map(binary);
    let test = std::env::current_exe().expect("the test's own path");
    let built = [test, binary("consort"), c_program("victims/probe.c").into()];
    let built = built.iter().chain(&libraries).map(|path| path.to_string_lossy());
    let files: Vec<_> = built.chain(IN_MEMORY.map(Into::into)).collect();
    let list = tempfile::NamedTempFile::with_prefix("consort-files-").expect("a temporary file");
    std::fs::write(list.path(), files.join("\n") + "\n").expect("a list");
    // What is asked how long it slept keeps the machine's own time.
    let clock = ["--qemu", "-rtc", "--qemu", "clock=vm", "--in-memory"];
    let list = list.path().to_string_lossy();
    run(filter, &[options, &clock, &[&list]].concat(), seconds);
}

/// Runs the guest's tests that `filter` names on a machine with these options.
fn run(filter: &str, options: &[&str], seconds: u32) {
    library_directory();
    let tool = tool();
    let program = std::env::current_exe().expect("the test's own path");
    for start in 1..=STARTS {
        let directory = TempDir::with_prefix("consort-machine-").expect("a temporary directory");
        let mut command = Command::new(&tool);
        command
            .args(["--virtual-time", "--timeout", &seconds.to_string(), "--out"])
            .arg(directory.path());
        command.args(options).args([
            "env",
            if options.contains(&"--in-memory") { ALL_IS_BUILT } else { IS_BUILT },
            "RUST_BACKTRACE=0",
            "sh",
            "-c",
            START,
        ]);
        command.arg(filter).args([
            &program,
            &binary("consort"),
            &library_directory().join("libjack.so.0"),
        ]);
        let output = command.output().unwrap_or_else(|error| panic!("{}: {error}", tool.display()));
        let output_text = [output.stdout, output.stderr]
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let output_text = output_text.join("\n");
        if output_text.contains("\ntest result: ") {
            assert!(
                output_text.contains("\ntest result: ok. ") && !output_text.contains(" 0 passed"),
                "{output_text}"
            );
            println!("{output_text}");
            return;
        }
        eprintln!(
            "machine {start} of {STARTS} did not get to its tests ({}): {output_text}",
            output.status
        );
    }
    panic!("no machine got to its tests");
}

#[test]
fn cards_play_record_and_come_back_in_a_virtual_machine() {
    run("guest::quick::", &["--usb"], 240);
}

#[test]
#[ignore = "minutes: cargo xtask test-devices"]
fn thoroughly_on_midi_hardware() {
    run("guest::midi::", &["--hda", "off"], 1_200);
}

#[test]
#[ignore = "minutes: cargo xtask test-devices"]
fn thoroughly_on_further_cards() {
    run("guest::thorough::further::", &["--hda", "off"], 1_200);
}

#[test]
#[ignore = "minutes: cargo xtask test-devices"]
fn thoroughly_on_cards_that_play_streams() {
    run("guest::streams::", &["--hda", "none"], 600);
}

#[test]
#[ignore = "minutes: cargo xtask test-devices"]
fn thoroughly_on_a_second_card_for_streams() {
    run("guest::second_card::", &["--usb", "--hda", "none"], 1_200);
}

#[test]
#[ignore = "minutes: cargo xtask test-devices"]
fn thoroughly_on_cards_that_play() {
    run("guest::thorough::plays::", &["--usb"], 1_200);
}

#[test]
#[ignore = "minutes: cargo xtask test-devices"]
fn thoroughly_on_cards_that_play_and_record() {
    run("guest::thorough::duplex::", &["--hda", "none"], 1_200);
}

#[test]
#[ignore = "minutes: cargo xtask test-devices"]
fn thoroughly_monitoring_in_the_card() {
    run("guest::thorough::monitoring::", &["--hda", "off"], 600);
}

#[test]
#[ignore = "minutes: cargo xtask test-devices"]
fn thoroughly_measuring_latency() {
    run("guest::thorough::latency::", &["--usb"], 1_200);
}

#[test]
#[ignore = "minutes: cargo xtask test-devices"]
fn thoroughly_with_other_sound_servers() {
    run("guest::thorough::bus::", &["--hda", "off"], 600);
}

#[test]
#[ignore = "minutes: cargo xtask test-devices"]
fn thoroughly_on_a_machine_that_sleeps() {
    run_asleep("guest::asleep::", &["--usb", "--hda", "none"], 600);
}

#[test]
#[ignore = "minutes: cargo xtask test-devices"]
fn thoroughly_on_a_closed_card() {
    run("guest::cold_start::", &["--hda", "none"], 600);
}

/// With udev, through which PipeWire finds cards.
#[test]
#[ignore = "minutes: cargo xtask test-devices"]
fn thoroughly_beside_pipewire() {
    run("guest::beside_pipewire::", &["--udev", "--hda", "none"], 600);
}

/// With udev, whose rule the package `consort` has.
#[test]
#[ignore = "minutes: cargo xtask test-devices"]
fn thoroughly_with_the_group_of_the_packages() {
    run("guest::realtime_group::", &["--udev", "--hda", "off"], 600);
}

/// The release build, on a kernel that preempts everything for a real-time thread, as in a studio:
/// an unoptimised build takes as long as a small quantum.
#[test]
#[ignore = "a quarter of an hour, as released: cargo xtask test-devices"]
fn released_at_small_quanta() {
    run("guest::thorough::small::", &["--hda", "off", "--append", "preempt=full"], 2_400);
}

/// On a kernel where interrupts are threads, and everything can be preempted.
#[test]
#[ignore = "minutes: cargo xtask test-devices"]
fn thoroughly_on_a_realtime_kernel() {
    run("guest::quick::", &["--usb", "--rt"], 600);
}
