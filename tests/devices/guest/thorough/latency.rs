//! `consort latency` on real kernel drivers.

use harness::{Finished, Program, Sound, binary, command_in};
use serde_json::Value;
use tempfile::TempDir;

use super::duplex::{latency, readings_of_iodelay};
use crate::guest::streams::{await_device, play};
use crate::guest::{awaited, pull, server_on};

fn consort(arguments: &[&str]) -> Program {
    let directory = TempDir::with_prefix("consort-test-").expect("a temporary directory");
    let mut command = command_in(directory.path(), &binary("consort"));
    command.arg("latency").args(arguments);
    Program::start(command)
}

fn json(finished: Finished) -> Value {
    serde_json::from_str(&finished.expect_success().stdout).expect("JSON")
}

/// Demands that every sample came back this many frames later.
fn demand(found: &Value, frames: u32) {
    let figures = &found["found"]["latency"];
    for figure in ["minimum_frames", "median_frames", "maximum_frames"] {
        assert_eq!(figures[figure], f64::from(frames), "{figure}: {found}");
    }
    assert_eq!(found["found"]["dropouts"].as_array().map(Vec::len), Some(0), "{found}");
}

#[test]
#[ignore = "in the virtual machine"]
fn the_loopback_card_is_as_long_as_its_waiting_periods() {
    for access in ["rw", "mmap"] {
        for (period, periods) in [(256, 3), (480, 3), (1024, 2), (1024, 4)] {
            let words = [period.to_string(), periods.to_string()];
            let devices =
                ["alsa", "--playback", "hw:1,0", "--capture", "hw:1,1", "--access", access];
            let lengths =
                ["--period", &words[0], "--periods", &words[1], "--seconds", "1", "--json"];
            let found = json(consort(&[&devices[..], &lengths].concat()).finish());
            demand(&found, period * periods);
        }
    }
}

#[test]
#[ignore = "in the virtual machine"]
fn the_loopback_is_as_long_as_its_ports_report() {
    for options in [
        &["--quantum", "256", "--periods", "3"][..],
        &["--quantum", "512", "--periods", "3", "--sync"],
    ] {
        let both = ["--capture-device", "hw:1,1", "--capture", "2", "--playback", "2"];
        let server = server_on("hw:1,0", &[&both[..], options].concat());
        let found = json(server.consort(&["latency", "run", "--seconds", "1", "--json"]));
        let stated = latency(&server, "system:capture_1", "capture")
            + latency(&server, "system:playback_1", "playback");
        demand(&found, stated);
        let expected = format!("{stated}.000");
        let readings = readings_of_iodelay(&server, 20);
        assert!(readings.iter().all(|frames| *frames == expected), "{expected}: {readings:?}");
    }
}

/// Each time that cycles begin beside it.
#[test]
#[ignore = "in the virtual machine"]
fn the_loopback_is_as_long_as_its_ports_report_beside_a_player() {
    for options in [
        &["--quantum", "256", "--periods", "3"][..],
        &["--quantum", "512", "--periods", "3", "--sync"],
    ] {
        let both = ["--capture-device", "hw:1,1", "--capture", "2", "--playback", "2"];
        let server = server_on("hw:1,0", &[&both[..], options].concat());
        let silence = Sound::of(48_000, &vec![vec![0.0; 120 * 48_000]; 2]);
        let _player = play(&server, &silence);
        for time in 1..=3 {
            await_device(&server, "deep");
            let readings = readings_of_iodelay(&server, 3);
            let stated = latency(&server, "system:capture_1", "capture")
                + latency(&server, "system:playback_1", "playback");
            let expected = format!("{stated}.000");
            assert!(
                readings.iter().all(|frames| *frames == expected),
                "{options:?}, time {time}: {expected}: {readings:?}"
            );
        }
    }
}

#[test]
#[ignore = "in the virtual machine"]
fn a_card_pulled_out_during_a_measurement_is_an_error() {
    for access in ["rw", "mmap"] {
        let devices = ["alsa", "--playback", "hw:9", "--capture", "hw:1,1", "--access", access];
        let mut measuring =
            consort(&[&devices[..], &["--period", "1024", "--seconds", "60"]].concat());
        let playing = || {
            let status =
                std::fs::read_to_string("/proc/asound/card9/pcm0p/sub0/status").unwrap_or_default();
            assert!(measuring.is_running(), "{}", measuring.stderr());
            status.contains("RUNNING").then_some(())
        };
        awaited("the card plays", playing);
        pull("usbsnd", 9);
        let finished = measuring.finish();
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(1), ""));
        assert!(finished.stderr.contains("consort: the sound card stopped"), "{}", finished.stderr);
        super::super::monitor(&["device_add", "usb-audio,id=usbsnd,bus=xhci.0,audiodev=usb"]);
        awaited("the card is back", || super::super::has_card(9).then_some(()));
    }
}
