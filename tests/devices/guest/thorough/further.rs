//! Cards in addition to the server's own.

use std::path::Path;

use harness::{Program, Server, binary, c_program_with, command_in, eventually};
use tempfile::TempDir;

use super::bus::start_bus;
use crate::guest::{awaited, count, device_state, far};

#[test]
#[ignore = "in the virtual machine"]
fn a_further_card_plays_until_it_is_removed() {
    // The previous user may still be closing it; then the second substream would be opened, where
    // no program listens.
    awaited("no program has the card", || {
        let status = std::fs::read_to_string("/proc/asound/card1/pcm0p/sub0/status").ok()?;
        (status.trim() == "closed").then_some(())
    });
    let server = Server::timer(512);
    let added = server.consort(&["device", "add", "hw:1,0", "--capture", "2", "--playback", "2"]);
    assert!(
        added
            .expect_success()
            .stdout
            .starts_with("Loopback: alsa hw:CARD=Loopback,DEV=0 (capture 2")
    );
    let _source = server.probe(&["source", "numbers"]);
    server.run("jack_connect", &["numbers:out", "Loopback:playback_1"]).expect_success();
    awaited("the card is at its place", || {
        device_state(&server, "Loopback")
            .filter(|state| state.contains("runs, ") && count(state, "starts") > 0)
    });
    // A ramp stays a ramp, at whatever position of the card's frames it is read.
    let heard = far::recorded_of(&server, 2, "FLOAT_LE", "48000", 2);
    let is_one = |pair: &&[f64]| {
        let step = (pair[1] - pair[0]) * 2_097_152.0;
        // Two samples of a float's precision, whose last digit is an eighth of the step where the
        // ramp ends.
        (step - 1.0).abs() < 0.01 + 0.5 * pair[1].abs()
    };
    let steady = heard.windows(2).filter(is_one).count();
    let silent = heard.iter().filter(|sample| **sample == 0.0).count();
    let state = device_state(&server, "Loopback");
    let status = server.consort(&["status"]).stdout;
    let all = heard.len() - 1;
    assert!(
        steady > 80_000,
        "{steady} of {all} steps are one, {silent} silent: {state:?}\n{status}"
    );
    server.consort(&["device", "remove", "Loopback"]).expect_success();
    assert_eq!(device_state(&server, "Loopback"), None);
    let again = server.consort(&["device", "remove", "Loopback"]);
    assert!(again.stderr.contains("there is no device 'Loopback'"), "{}", again.stderr);
}

#[test]
#[ignore = "in the virtual machine"]
fn a_c_program_manages_slave_drivers_through_control_h() {
    let place = TempDir::with_prefix("consort-test-").expect("a temporary directory");
    let program = c_program_with("jackserver", "control/slaves.c");
    let mut command = command_in(place.path(), Path::new(&program));
    command.args(["hw:1,0", "^Loopback:playback_1$"]);
    let ended = Program::start(command).finish();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}

#[test]
#[ignore = "in the virtual machine"]
fn jack_control_adds_slave_drivers_and_removes_them() {
    let place = TempDir::with_prefix("consort-test-").expect("a temporary directory");
    let (_daemon, address) = start_bus(&place);
    let run = |program: &str, words: &str| {
        let mut command = command_in(place.path(), Path::new(program));
        command.env("DBUS_SESSION_BUS_ADDRESS", &address);
        command.args(words.split(' ').filter(|word| !word.is_empty()));
        Program::start(command)
    };
    let consort = binary("consort").to_string_lossy().into_owned();
    let service = run(&consort, "dbus");
    // It prints why a call was refused, and ends with 0 all the same.
    let control = |words: &str| {
        let said = run("jack_control", words).finish().stdout;
        assert!(!said.contains("Error"), "{words}: {said}");
        said
    };
    eventually("the service is on the bus", || {
        (!run("jack_control", "status").finish().stderr.contains("ServiceUnknown")).then_some(())
    });
    let has = |begin: &str| {
        let listed = run("jack_lsp", "").finish().stdout;
        listed.lines().any(|line| line.starts_with(begin))
    };
    control("ds alsa dps device hw:1,0 dps period 256 ds dummy asd alsa start");
    assert!(has("Loopback:playback_1"), "it was remembered");
    control("asd alsarawmidi");
    eventually("MIDI is there", || has("midi:").then_some(()));
    control("rsd alsa");
    assert!(!has("Loopback:") && has("midi:"));
    control("stop start");
    eventually("what was not removed is there again", || has("midi:").then_some(()));
    assert!(!has("Loopback:"));
    control("rsd alsarawmidi stop start");
    assert!(!has("midi:") && has("system:"));
    control("stop exit");
    service.finish().expect_success();
}
