//! `consort latency run` on the timer's own loop, where the true latency is known to the frame.

use std::path::Path;

use harness::{Finished, Server, in_three_attempts};
use serde_json::Value;

fn measure(server: &Server, options: &[&str]) -> Finished {
    server.consort(&[&["latency", "run", "--seconds", "1", "--longest", "1000"], options].concat())
}

fn json(finished: Finished) -> Result<Value, String> {
    if finished.code != Some(0) {
        return Err(finished.stderr);
    }
    serde_json::from_str(&finished.stdout).map_err(|error| error.to_string())
}

/// Asserts that `run` counts `frames` for every impulse; or for the middle one, if the recording
/// shows that the machine lost cycles meanwhile.
fn demand(server: &Server, options: &[&str], frames: u32) -> Value {
    let frames = f64::from(frames);
    in_three_attempts(|| {
        let found = json(measure(server, &[&["--json"], options].concat()))?;
        let latency = &found["found"]["latency"];
        if is_unbroken(&found) {
            for figure in ["frames", "minimum_frames", "median_frames", "maximum_frames"] {
                assert_eq!(latency[figure], frames, "{figure} {options:?}: {found}");
            }
            assert_eq!(found["found"]["copied"], true, "{found}");
        } else if latency["median_frames"]
            .as_f64()
            .is_none_or(|median| (median - frames).abs() > 0.01)
        {
            return Err(found.to_string());
        }
        Ok(found)
    })
}

/// Whether neither the server nor the recording reports a loss.
pub fn is_unbroken(found: &Value) -> bool {
    let none = |list: &Value| list.as_array().is_none_or(Vec::is_empty);
    let breaks = &found["found"];
    found["system"]["xruns"] == 0 && none(&breaks["dropouts"]) && none(&breaks["lost_at_frames"])
}

/// A loop takes the device's two quanta; async mode adds the quantum by which the output waits.
fn demand_loop(quantum: u32, rate_hz: u32, mode: &[&str], quanta: u32) {
    let (quantum_text, rate) = (quantum.to_string(), rate_hz.to_string());
    let server =
        Server::start(&[&["--loop", "--quantum", &quantum_text, "--rate", &rate], mode].concat());
    let found = demand(&server, &[], quanta * quantum);
    assert_eq!(found["system"]["stated_frames"], quanta * quantum, "{found}");
}

#[test]
fn a_loop_is_exactly_as_long_as_its_ports_state_at_every_quantum() {
    for quantum in [32, 64, 100, 128, 256, 480, 512, 1024, 2048, 4096] {
        demand_loop(quantum, 48_000, &[], 3);
        demand_loop(quantum, 48_000, &["--sync"], 2);
    }
}

#[test]
fn a_loop_is_exactly_as_long_at_every_rate() {
    for rate_hz in [44_100, 96_000, 192_000] {
        demand_loop(512, rate_hz, &[], 3);
        demand_loop(512, rate_hz, &["--sync"], 2);
    }
}

#[test]
fn every_signal_measures_the_same_latency() {
    let server = Server::start(&["--loop", "--quantum", "256"]);
    for signal in ["marked", "impulses", "sequence", "sweeps"] {
        demand(&server, &["--signal", signal], 3 * 256);
    }
    demand(&server, &["--graph"], 256);
}

#[test]
fn a_quantum_that_changes_leaves_a_loop_of_the_new_length() {
    let server = Server::start(&["--loop", "--quantum", "256"]);
    for quantum in [1024, 64, 333] {
        server.run("jack_bufsize", &[&quantum.to_string()]).expect_success();
        demand(&server, &[], 3 * quantum);
    }
}

#[test]
fn a_kept_recording_gives_the_same_latency_as_its_run() {
    let server = Server::start(&["--loop", "--quantum", "128"]);
    let path = server.directory().join("kept.wav");
    let path = path.to_string_lossy();
    let ran = demand(&server, &["--save", &path], 3 * 128);
    let analysed = server.consort(&["latency", "analyse", "--json", &path]).expect_success().stdout;
    let analysed: Value = serde_json::from_str(&analysed).expect("JSON");
    assert_eq!(analysed, ran["found"]);
}

#[test]
fn the_table_names_interface_device_buffer_format_kernel_and_scheduling() {
    let server = Server::start(&["--loop", "--quantum", "512", "--sync"]);
    let text = in_three_attempts(|| {
        let finished = measure(&server, &[]);
        if finished.code == Some(0) { Ok(finished.stdout) } else { Err(finished.stderr) }
    });
    let row = text.lines().nth(1).expect("a row");
    for part in [
        "consort ",
        "timer, looped",
        "512 frames, sync",
        "32-bit float, 48000 Hz",
        "Linux ",
        "1024",
        "21.33",
    ] {
        assert!(row.contains(part), "{part}: {text}");
    }
}

#[test]
fn an_open_path_is_reported_without_a_figure() {
    let server = Server::start(&["--driver", "timer", "--quantum", "512"]);
    let finished = measure(&server, &[]);
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(1), ""));
    assert!(finished.stderr.contains("the right channel is silent"), "{}", finished.stderr);
    let finished = measure(&server, &["--playback", "nobody:in"]);
    assert!(
        finished.code == Some(1) && finished.stderr.contains("nobody:in"),
        "{}",
        finished.stderr
    );
    let finished = measure(&server, &["-n", "absent"]);
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(3), ""));
}

#[test]
fn a_foreign_libjack_measures_as_our_own_client_does() {
    let server = Server::start(&["--loop", "--quantum", "256"]);
    let library = harness::library_directory().join("libjack.so.0");
    let library = library.to_string_lossy();
    demand(&server, &["--libjack", &library], 3 * 256);
    demand(&server, &["--libjack", &library, "--graph"], 256);
    let text = measure(&server, &["--libjack", "/nowhere/libjack.so.0"]);
    assert!(
        text.code == Some(1) && text.stderr.contains("cannot load /nowhere/libjack.so.0"),
        "{}",
        text.stderr
    );
    assert!(!Path::new("/nowhere").exists());
}
