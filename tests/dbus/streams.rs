//! Programs with streams, as patchbays on the bus see them.

use std::path::Path;

use harness::{Program, Sound, binary, eventually};

use crate::bus::Bus;

const PLAYER: [&str; 2] = ["consort play:output_FL", "consort play:output_FR"];
const RECORDER: [&str; 2] = ["consort record:input_FL", "consort record:input_FR"];

fn consort(bus: &Bus, words: &[&str], file: &Path) -> Program {
    let mut command = bus.command(&binary("consort").to_string_lossy());
    command.args(words).arg(file);
    Program::start(command)
}

#[test]
fn players_and_recorders_are_clients_with_ports_that_are_connected_over_the_bus() {
    let bus = Bus::start();
    bus.answer("org.jackaudio.JackControl.StartServer", &[]);
    let mut monitor = bus.monitor();
    let song = bus.directory().join("song.wav");
    let second = 48_000;
    Sound::of(48_000, &[vec![0.25; 60 * second], vec![0.25; 60 * second]]).write(&song);
    let player = consort(&bus, &["play"], &song);
    let recorder = consort(&bus, &["record"], &bus.directory().join("take.wav"));
    let ports = || bus.answer("org.jackaudio.JackPatchbay.GetAllPorts", &[]);
    eventually("both have ports", || {
        let there = ports();
        PLAYER.iter().chain(&RECORDER).all(|port| there.contains(port)).then_some(())
    });
    let graph = || bus.answer("org.jackaudio.JackPatchbay.GetGraph", &["0"]);
    let shown = graph();
    for client in ["'consort play', [(", "'consort record', [("] {
        assert!(shown.contains(client), "{shown}");
    }
    let is_connected = |output: &str, input: &str| {
        let (source, destination) = (output.split_once(':'), input.split_once(':'));
        let (Some((client, port)), Some((other, into))) = (source, destination) else { panic!() };
        graph().rsplit("[(").next().is_some_and(|connections| {
            connections.split("), (").any(|connection| {
                let is_there = |name: &str| connection.contains(&format!("'{name}'"));
                [client, port, other, into].into_iter().all(is_there)
            })
        })
    };
    assert!(is_connected(PLAYER[0], "system:playback_1"), "{}", graph());
    assert!(is_connected("system:capture_2", RECORDER[1]), "{}", graph());
    assert!(!is_connected(PLAYER[0], RECORDER[0]), "{}", graph());
    for (method, expected) in [("ConnectPortsByName", true), ("DisconnectPortsByName", false)] {
        let names = ["consort play", "output_FL", "consort record", "input_FL"];
        bus.answer(&format!("org.jackaudio.JackPatchbay.{method}"), &names);
        assert_eq!(is_connected(PLAYER[0], RECORDER[0]), expected, "{}", graph());
    }
    let mut await_signal = |signal: &str, about: &str| {
        eventually(&format!("{signal} of {about}"), || {
            let lines = monitor.stdout().lines();
            let mut found = lines.filter(|line| line.contains(&format!("JackPatchbay.{signal} (")));
            found.any(|line| line.contains(about)).then_some(())
        });
    };
    for (program, name) in [(player, "'consort play'"), (recorder, "'consort record'")] {
        await_signal("ClientAppeared", name);
        program.terminate();
        await_signal("ClientDisappeared", name);
    }
    assert!(!ports().contains("consort"), "{}", ports());
}
