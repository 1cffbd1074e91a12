//! Systems other than a running server of ours, and the errors for those that are missing.

use std::process::Command;

use harness::{Finished, Program, Server, binary, command_in, in_three_attempts};
use serde_json::Value;
use tempfile::TempDir;

use crate::loops::is_unbroken;

fn consort(arguments: &[&str]) -> Finished {
    consort_with(arguments, |_| {})
}

fn consort_with(arguments: &[&str], prepare: impl FnOnce(&mut Command)) -> Finished {
    let directory = TempDir::with_prefix("consort-test-").expect("a temporary directory");
    let mut command = command_in(directory.path(), &binary("consort"));
    command.arg("latency").args(arguments);
    prepare(&mut command);
    Program::start(command).finish()
}

/// Asserts that `frames` are counted, for every impulse unless the machine lost some.
fn demand(frames: f64, measure: impl Fn() -> Finished) -> Value {
    in_three_attempts(|| {
        let finished = measure();
        if finished.code != Some(0) {
            return Err(finished.stderr);
        }
        let found: Value =
            serde_json::from_str(&finished.stdout).map_err(|error| error.to_string())?;
        let latency = &found["found"]["latency"];
        if is_unbroken(&found) {
            assert_eq!(
                (&latency["minimum_frames"], &latency["maximum_frames"]),
                (&frames.into(), &frames.into())
            );
        } else if latency["median_frames"] != frames {
            return Err(found.to_string());
        }
        Ok(found)
    })
}

#[test]
fn the_baseline_is_as_long_as_its_buffer() {
    for buffer in [512_u32, 2048] {
        let buffer_text = buffer.to_string();
        let found = demand(f64::from(buffer), || {
            consort(&["memory", "--buffer", &buffer_text, "--seconds", "1", "--json"])
        });
        assert_eq!(found["system"]["interface"], "none: loop in memory");
    }
}

#[test]
fn a_server_started_for_a_measurement_ends_with_it() {
    for (options, quanta, mode) in [("--loop", 3.0, "async"), ("--loop --sync", 2.0, "sync")] {
        let arguments =
            ["run", "--start", options, "--quantum", "1024", "--seconds", "1", "--json"];
        let found = demand(quanta * 1024.0, || {
            let finished = consort(&arguments);
            assert!(finished.stderr.contains("stopped"), "{}", finished.stderr);
            finished
        });
        assert_eq!(found["system"]["buffer"], format!("1024 frames, {mode}"));
    }
}

#[test]
fn a_measurement_restores_the_quantum_of_a_running_server() {
    let server = Server::start(&["--loop", "--quantum", "512"]);
    let library = harness::library_directory().join("libjack.so.0");
    let library = library.to_string_lossy();
    for options in [&["--quantum", "2048"][..], &["--quantum", "2048", "--libjack", &library]] {
        demand(3.0 * 2048.0, || {
            server.consort(&[&["latency", "run", "--seconds", "1", "--json"], options].concat())
        });
        assert_eq!(server.status().quantum, 512);
    }
}

#[test]
fn portaudio_is_measured_through_the_server_that_it_uses() {
    let server = Server::start(&["--loop", "--quantum", "1024"]);
    let found = in_three_attempts(|| {
        let finished = server.consort(&[
            "latency",
            "portaudio",
            "--host",
            "JACK",
            "--buffer",
            "1024",
            "--seconds",
            "1",
            "--json",
        ]);
        if finished.code != Some(0) {
            return Err(finished.stderr);
        }
        serde_json::from_str::<Value>(&finished.stdout).map_err(|error| error.to_string())
    });
    let interface = found["system"]["interface"].as_str().expect("a name");
    assert!(interface.contains("PortAudio") && interface.contains("JACK"), "{interface}");
    let frames = found["found"]["latency"]["median_frames"].as_f64().expect("a number");
    assert!(frames >= 3.0 * 1024.0, "PortAudio cannot be faster than the loop: {found}");
}

#[test]
fn measuring_a_system_that_does_not_run_is_an_error() {
    for (arguments, part) in [
        (&["pulse"][..], "pa_simple_new failed: Connection refused"),
        (&["sdl"], "SDL_InitSubSystem failed"),
        (&["portaudio", "--host", "Nonsense"], "no host API 'Nonsense'"),
        (&["alsa", "--playback", "hw:77", "--capture", "hw:77"], "cannot open ALSA device hw:77"),
        (&["run", "--libjack", "/nowhere/libjack.so.0"], "cannot load /nowhere/libjack.so.0"),
    ] {
        let finished = consort_with(arguments, |command| {
            command.env("SDL_AUDIODRIVER", "nonsense").env_remove("PULSE_SERVER");
        });
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(1), ""), "{arguments:?}");
        // Other projects' libraries may have printed something before.
        let line = finished.stderr.lines().last().unwrap_or_default();
        assert!(line.starts_with("consort: ") && line.contains(part), "{}", finished.stderr);
    }
}

#[test]
fn a_server_that_ends_during_a_measurement_is_an_error() {
    let mut server = Server::start(&["--loop", "--quantum", "1024", "--grace", "100"]);
    let mut command = server.command(&binary("consort").to_string_lossy());
    command.args(["latency", "run", "--seconds", "60"]);
    let measuring = Program::start(command);
    // The last one that it makes: after that, it only measures.
    server.await_connection("system:capture_1", "latency:in");
    // The answer to that request is on its way before this one's.
    server.status();
    server.kill();
    let finished = measuring.finish();
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(1), ""));
    assert!(finished.stderr.contains("disappeared after"), "{}", finished.stderr);
}
