//! What is played on a sink of consort is heard at a sink of PipeWire: the way to a headset, for
//! which one stands that has no hardware.

use std::path::PathBuf;

use harness::{Program, Sound, eventually, tone};

use crate::{RATE_HZ, Scene, listens_at, path};

const HEADSET: &str = "bluez_output.headset.1";
const NODE: &str = "{ factory.name=support.null-audio-sink node.name=bluez_output.headset.1 \
                    media.class=Audio/Sink object.linger=true audio.position=[FL FR] }";

/// What a user writes, so that PipeWire is a server for the module.
const SETTINGS: &str = "context.modules = [ { name = libpipewire-module-protocol-pulse \
                        args = { server.address = [ \"unix:pipewire\" ] } } ]\n";
const TONE_HZ: f64 = 440.0;

/// PipeWire as the packages have it, with the settings of the user, in the scene's directory.
fn start_pipewire(scene: &Scene) -> ([Program; 3], PathBuf) {
    let directory = scene.server.directory();
    let write = |place: &str, file: &str, text: &str| {
        let place = directory.join(".config").join(place);
        std::fs::create_dir_all(&place).expect("a directory");
        std::fs::write(place.join(file), text).expect("written");
    };
    let packaged = include_str!("../../debian/wireplumber/main.lua.d/51-consort.lua");
    write("wireplumber/main.lua.d", "51-consort.lua", packaged);
    write("pipewire/pipewire.conf.d", "headsets.conf", SETTINGS);
    // Without a bus, its session manager ends.
    let mut bus = scene.spawn("dbus-daemon", &["--session", "--nofork", "--print-address"]);
    let address = eventually("there is a bus", || {
        let printed = bus.stdout();
        printed.ends_with('\n').then(|| printed.trim().to_owned())
    });
    let start = |program| {
        let mut command = scene.command(program, &[]);
        command.env("DBUS_SESSION_BUS_ADDRESS", &address);
        Program::start(command)
    };
    let pipewire = start("pipewire");
    let socket = directory.join("pulse/pipewire");
    eventually("it listens for the module", || listens_at(&socket).then_some(()));
    ([pipewire, start("wireplumber"), bus], socket)
}

#[test]
fn a_sink_of_pipewire_is_a_sink_of_consort_through_a_module() {
    let scene = Scene::new();
    let (_programs, socket) = start_pipewire(&scene);
    scene.run("pw-cli", &["create-node", "adapter", NODE]).expect_success();
    let server = format!("--server=unix:{}", path(&socket));
    eventually("PipeWire shows the headset to programs of PulseAudio", || {
        let listed = scene.run("pactl", &[&server, "list", "short", "sinks"]).stdout;
        listed.contains(HEADSET).then_some(())
    });
    let server = format!("server=unix:{}", path(&socket));
    let sink = format!("sink={HEADSET}");
    let load = ["load-module", "module-tunnel-sink", &server, &sink, "sink_name=headset"];
    scene.pactl(&load);
    let file = scene.server.directory().join("heard.wav");
    let monitored = "{ stream.capture.sink=true }";
    let record = ["--target", HEADSET, "-P", monitored, path(&file)];
    let recorder = scene.spawn("pw-record", &record);
    let sound = Sound::of(RATE_HZ, &[0, 1].map(|_| tone(TONE_HZ, RATE_HZ, 5 * RATE_HZ as usize)));
    let played = scene.file("tone.wav", &sound);
    scene.run("paplay", &["--device=headset", path(&played)]).expect_success();
    recorder.terminate();
    let heard = Sound::read(&file).sounding(0);
    // Of most parts: on a busy machine there are gaps.
    let parts = heard.channels[0].chunks(2400).map(|part| Sound::of(RATE_HZ, &[part.to_vec()]));
    let mut parts_hz: Vec<f64> = parts.map(|part| part.frequency_hz(0)).collect();
    parts_hz.sort_by(f64::total_cmp);
    let middle_hz = parts_hz.get(parts_hz.len() / 2).copied().unwrap_or(0.0);
    assert!((middle_hz - TONE_HZ).abs() < 5.0, "{middle_hz} Hz");
}
