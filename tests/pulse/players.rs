//! Further programs that play: what they play is what leaves the device.

use std::process::Command;

use harness::{Program, Sound, c_program_with, eventually, in_three_attempts, tone};
use rustix::process::Signal;

use crate::conformance::PulseAudio;
use crate::playing::compare_beginning;
use crate::{RATE_HZ, Scene, compare, is_installed, path, ramps};

/// What a command plays to its end. It is made from the scene and a file with the sound.
fn heard(sound: &Sound, command: impl Fn(&Scene, &str) -> Command) -> Sound {
    let scene = Scene::new();
    let file = scene.file("played.wav", sound);
    Program::start(command(&scene, path(&file))).finish().expect_success();
    scene.recorded()
}

/// A copy of a file in 16 bits, in which a ramp is exact.
fn in_16_bits(scene: &Scene, file: &str) -> String {
    let copy = scene.server.directory().join("played-16.wav");
    scene.run("sox", &["-D", file, "-b", "16", path(&copy)]).expect_success();
    path(&copy).to_owned()
}

/// A program that refuses to run as root, for the files of the test's user.
fn not_as_root(scene: &Scene, program: &str, arguments: &[&str]) -> Command {
    if !rustix::process::geteuid().is_root() {
        return scene.command(program, arguments);
    }
    let before = ["--user", "--map-user=1000", "--map-group=1000", program];
    scene.command("unshare", &[&before, arguments].concat())
}

#[test]
fn mplayer_plays_a_file_sample_for_sample() {
    if !is_installed("mplayer") {
        return;
    }
    let sound = ramps(3 * RATE_HZ as usize);
    in_three_attempts(|| {
        let heard = heard(&sound, |scene, file| {
            let quiet = ["-really-quiet", "-noconsolecontrols", "-nolirc"];
            scene.command("mplayer", &[&["-ao", "pulse"], &quiet[..], &[file]].concat())
        });
        compare_beginning(&heard, &sound.channels)
    });
}

#[test]
fn vlc_plays_a_file_sample_for_sample() {
    if !is_installed("cvlc") {
        return;
    }
    let sound = ramps(3 * RATE_HZ as usize);
    in_three_attempts(|| {
        let heard = heard(&sound, |scene, file| {
            let file = in_16_bits(scene, file);
            let arguments = ["--no-dbus", "-A", "pulse", "-I", "dummy", "--play-and-exit", &file];
            not_as_root(scene, "cvlc", &arguments)
        });
        compare_beginning(&heard, &sound.channels)
    });
}

#[test]
fn aplay_plays_through_alsas_plug_in_sample_for_sample() {
    let sound = ramps(3 * RATE_HZ as usize);
    for device in ["pulse", "default"] {
        in_three_attempts(|| {
            let heard = heard(&sound, |scene, file| {
                scene.command("aplay", &["-q", "-D", device, &in_16_bits(scene, file)])
            });
            compare(&heard, &sound.channels)
        });
    }
}

/// Compares what a program of `tests/pulse/clients` plays: the frames that it was asked for.
fn played_by(source: &str, library: &str, environment: &[(&str, &str)], prints: &str) {
    const FRAMES: usize = 3 * RATE_HZ as usize;
    let program = c_program_with(library, &format!("pulse/clients/{source}"));
    let sound = ramps(FRAMES);
    in_three_attempts(|| {
        let scene = Scene::new();
        // OpenAL's buffers: long enough for a busy machine.
        let alsoft = "[general]\nperiod_size = 8192\nperiods = 3\n";
        std::fs::write(scene.server.directory().join(".alsoftrc"), alsoft).expect("written");
        let mut command = scene.command(&program, &[&FRAMES.to_string()]);
        command.envs(environment.iter().copied());
        let finished = Program::start(command).finish();
        if finished.code != Some(0) {
            return Err(format!("{finished:?}"));
        }
        assert_eq!(finished.stdout.trim_end(), prints);
        compare(&scene.recorded(), &sound.channels)
    });
}

#[test]
fn sdl_2_plays_sample_for_sample() {
    let environment = [("SDL_AUDIODRIVER", "pulseaudio")];
    played_by("sdl2.c", ":libSDL2-2.0.so.0", &environment, "pulseaudio");
}

#[test]
fn sdl_1_plays_sample_for_sample() {
    played_by("sdl1.c", ":libSDL-1.2.so.0", &[("SDL_AUDIODRIVER", "pulse")], "pulse");
}

#[test]
fn openal_plays_sample_for_sample() {
    played_by("openal.c", ":libopenal.so.1", &[("ALSOFT_DRIVERS", "pulse")], "consort");
}

#[test]
fn portaudio_plays_through_alsas_plug_in_sample_for_sample() {
    played_by("portaudio.c", ":libportaudio.so.2", &[], "");
}

#[test]
fn mpv_plays_from_where_it_seeks() {
    let sound = ramps(3 * RATE_HZ as usize);
    let rest = sound.channels.iter().map(|channel| channel[RATE_HZ as usize..].to_vec());
    let rest: Vec<Vec<f32>> = rest.collect();
    in_three_attempts(|| {
        let heard = heard(&sound, |scene, file| {
            let quiet = ["--no-config", "--no-video", "--no-terminal"];
            scene.command("mpv", &[&quiet[..], &["--ao=pulse", "--start=1", file]].concat())
        });
        compare_beginning(&heard, &rest)
    });
}

#[test]
fn mpv_plays_faster_and_higher() {
    let channel = tone(1000.0, RATE_HZ, 3 * RATE_HZ as usize);
    let sound = Sound::of(RATE_HZ, &[channel.clone(), channel]);
    in_three_attempts(|| {
        let heard = heard(&sound, |scene, file| {
            let quiet = ["--no-config", "--no-video", "--no-terminal", "--ao=pulse"];
            let speed = ["--speed=1.5", "--audio-pitch-correction=no", file];
            scene.command("mpv", &[&quiet[..], &speed].concat())
        });
        let sounding = heard.sounding(0);
        let (frequency, frames) = (sounding.frequency_hz(0), sounding.channels[0].len());
        let is_right = (frequency - 1500.0).abs() < 1.0 && (90_000..97_000).contains(&frames);
        if is_right { Ok(()) } else { Err(format!("{frequency} Hz, {frames} frames")) }
    });
}

#[test]
fn a_tunnel_of_pulseaudio_ends_here_sample_for_sample() {
    if !is_installed("pulseaudio") {
        return;
    }
    let frames = 2 * RATE_HZ as usize;
    let mut sound = ramps(frames);
    let expected = sound.channels.clone();
    // What is on its way through a tunnel when it is closed is lost.
    sound.channels.iter_mut().for_each(|channel| channel.resize(2 * frames, 0.0));
    in_three_attempts(|| {
        let scene = Scene::new();
        let file = scene.file("played.wav", &sound);
        let pulseaudio = tunneled(&scene, &["module-tunnel-sink", "sink_name=tunnel"]);
        eventually("the tunnel is connected", || {
            scene.pactl(&["list", "short", "sink-inputs"]).contains("protocol-native").then_some(())
        });
        let player = pulseaudio.command("paplay", &["-d", "tunnel", path(&file)]);
        Program::start(player).finish().expect_success();
        pulseaudio.stop();
        compare(&scene.recorded(), &expected)
    });
}

/// PulseAudio with a module that is connected here.
fn tunneled(scene: &Scene, module: &[&str]) -> PulseAudio {
    let pulseaudio = PulseAudio::start();
    let server = format!("server=unix:{}", path(&scene.socket()));
    let format = ["format=float32le", "rate=48000", "channels=2", &server];
    let load = pulseaudio.command("pactl", &[&["load-module"], module, &format].concat());
    Program::start(load).finish().expect_success();
    pulseaudio
}

#[test]
fn a_tunnel_of_pulseaudio_begins_here_sample_for_sample() {
    if !is_installed("pulseaudio") {
        return;
    }
    let sound = ramps(2 * RATE_HZ as usize);
    in_three_attempts(|| {
        let scene = Scene::new();
        let file = scene.file("played.wav", &sound);
        let module = ["module-tunnel-source", "source_name=tunnel", "source=consort.monitor"];
        let pulseaudio = tunneled(&scene, &module);
        let taken = scene.server.directory().join("taken.wav");
        let format = ["--format=float32le", "--rate=48000", "--channels=2", "--file-format=wav"];
        let arguments = [&["-d", "tunnel"], &format[..], &[path(&taken)]].concat();
        let recorder = Program::start(pulseaudio.command("parec", &arguments));
        eventually("the tunnel records", || {
            scene.pactl(&["list", "short", "sources"]).contains("RUNNING").then_some(())
        });
        scene.run("paplay", &[path(&file)]).expect_success();
        // What is recorded waits for up to two seconds on its way.
        std::thread::sleep(std::time::Duration::from_secs(3));
        recorder.signal(Signal::INT);
        recorder.finish();
        pulseaudio.stop();
        compare(&Sound::read(&taken), &sound.channels)
    });
}
