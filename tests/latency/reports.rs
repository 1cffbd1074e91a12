//! `consort latency report`: tables of several systems, loads that end, and the search for the
//! smallest buffer.

use std::path::Path;
use std::time::Duration;

use harness::{
    Finished, Program, binary, command_in, eventually, eventually_within, in_three_attempts,
};
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use crate::processes::{descendants, is_alive};

fn directory() -> TempDir {
    TempDir::with_prefix("consort-test-").expect("a temporary directory")
}

fn report(directory: &Path, options: &[&str]) -> Program {
    // A job in the background, as of a script, ignores SIGINT, and so would what it starts.
    let mut command = command_in(directory, Path::new("env"));
    command.arg("--default-signal=INT").arg(binary("consort"));
    command.args(["latency", "report", "--out", "report"]).args(options).env_remove("PULSE_SERVER");
    Program::start(command)
}

fn json(directory: &Path) -> Value {
    let text = std::fs::read_to_string(directory.join("report/report.json")).expect("a report");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn a_report_has_every_system_idle_and_loaded_in_every_format() {
    let directory = directory();
    let options = [
        "--system",
        "run --start '--loop --sync'",
        "--system",
        "pulse",
        "--load",
        "idle,cpu,interrupt",
        "--buffers",
        "2048",
        "--seconds",
        "1",
    ];
    let text = in_three_attempts(|| {
        let text = report(directory.path(), &options).finish().expect_success().stdout;
        let row = json(directory.path())["without_load"][1].clone();
        if row["not_measured"].is_null() { Ok(text) } else { Err(row.to_string()) }
    });
    for part in [
        "Table 4",
        "Table 5",
        "loop in memory",
        "2048 frames, sync",
        "stress-ng --cpu 0, SCHED_OTHER",
        "pulse  not measured: libpulse-simple.so.0",
        "processor",
        "memory",
        "kernel",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let json = json(directory.path());
    let (idle, loaded) = (&json["without_load"], &json["with_load"]);
    assert_eq!(idle.as_array().map(Vec::len), Some(3), "{idle}");
    assert_eq!(loaded.as_array().map(Vec::len), Some(6), "{loaded}");
    assert_eq!((&idle[0]["baseline"], &idle[2]["words"]), (&true.into(), &"pulse".into()));
    for name in [
        "report.txt",
        "report.csv",
        "report.md",
        "latency.svg",
        "latency.png",
        "time.svg",
        "time.png",
    ] {
        let length = std::fs::metadata(directory.path().join("report").join(name))
            .map_or(0, |file| file.len());
        assert!(length > 100, "{name}: {length} bytes");
    }
}

/// Starts a report under load, and waits until the load has its workers.
fn under_load(directory: &Path, load: &str) -> (Program, Vec<(u32, String)>) {
    let program = report(directory, &["--system", "memory", "--load", load, "--seconds", "60"]);
    let workers = eventually("the load works", || {
        let all = descendants(program.id());
        let generators: Vec<_> =
            all.into_iter().filter(|(_, name)| name.starts_with("stress-ng")).collect();
        (generators.len() > 2).then_some(generators)
    });
    (program, workers)
}

/// How long a load may take to end: one that writes first waits for the disk.
const END_PATIENCE: Duration = Duration::from_secs(300);

fn await_end(workers: &[(u32, String)]) {
    eventually_within(END_PATIENCE, "every process of the load has ended", || {
        (!workers.iter().any(is_alive)).then_some(())
    });
}

#[test]
fn a_load_ends_when_the_measurement_is_interrupted_terminated_or_killed() {
    for (load, signal) in
        [("cpu", Signal::INT), ("disk", Signal::TERM), ("interrupt", Signal::KILL)]
    {
        let directory = directory();
        let (program, workers) = under_load(directory.path(), load);
        program.signal(signal);
        let finished = program.finish();
        assert_eq!((finished.signal, finished.stdout.as_str()), (Some(signal.as_raw()), ""));
        await_end(&workers);
    }
}

#[test]
fn a_load_that_ends_by_itself_is_no_load() {
    let directory = directory();
    let mut command = command_in(directory.path(), &binary("consort"));
    command.args([
        "latency",
        "report",
        "--system",
        "memory",
        "--load",
        "network",
        "--seconds",
        "5",
    ]);
    let program = Program::start(command);
    let workers = eventually("the load works", || {
        let all = descendants(program.id());
        let generators: Vec<_> = all.into_iter().filter(|(_, name)| name == "stress-ng").collect();
        (!generators.is_empty()).then_some(generators)
    });
    for (id, _) in &workers {
        let pid =
            i32::try_from(*id).ok().and_then(rustix::process::Pid::from_raw).expect("a process");
        let _ = rustix::process::kill_process(pid, Signal::KILL);
    }
    let finished = program.finish().expect_success();
    assert!(finished.stdout.contains("stress-ng"), "{}", finished.stdout);
    assert!(!finished.stdout.contains("loop in memory  clock"), "{}", finished.stdout);
}

#[test]
fn the_smallest_buffer_that_is_found_ran_without_a_dropout() {
    let directory = directory();
    let found = in_three_attempts(|| {
        let options =
            ["--system", "memory", "--load", "idle", "--search", "--from", "512", "--seconds", "1"];
        let finished: Finished = report(directory.path(), &options).finish();
        if finished.code != Some(0) {
            return Err(finished.stderr);
        }
        let row = json(directory.path())["without_load"][1].clone();
        if row["not_measured"].is_null() { Ok(row) } else { Err(row.to_string()) }
    });
    assert_eq!(found["found"]["dropouts"].as_array().map(Vec::len), Some(0), "{found}");
    let frames = found["found"]["latency"]["frames"].as_f64().expect("a number");
    assert!((512.0..=8192.0).contains(&frames), "{found}");
}

#[test]
fn a_report_that_makes_no_sense_is_a_usage_error() {
    let directory = directory();
    for options in [
        &["--system", "oss"][..],
        &["--system", "pulse --nonsense"],
        &["--load", "nonsense"],
        &["--buffers", "15"],
        &["--from", "64"],
        &["--search", "--from", "4096", "--to", "64"],
    ] {
        let finished = report(directory.path(), options).finish();
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(2), ""), "{options:?}");
        assert_eq!(finished.stderr.trim_end().lines().count(), 1, "{}", finished.stderr);
    }
}
