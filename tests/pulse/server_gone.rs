//! The server goes away, and comes back: programs stay connected, and their streams go on.

use std::path::PathBuf;
use std::time::Duration;

use harness::{Program, Server, Sound, Stretch, eventually, in_three_attempts, noise};
use rustix::process::Signal;

use crate::{RATE_HZ, Scene, path, ramps};

const SECOND: usize = RATE_HZ as usize;
const TIMER: [&str; 4] = ["--driver", "timer", "--quantum", "256"];
/// A stream that goes on is this long in a fade, frames.
pub const FADE: usize = SECOND / 200;
/// What [`recorder`] runs `parec` with.
pub const TAKE: [&str; 6] = [
    "--device=consort.monitor",
    "--raw",
    "--format=float32le",
    "--rate=48000",
    "--channels=2",
    "--latency-msec=20",
];

/// Two channels that never repeat.
pub fn noises(frames: usize) -> Sound {
    Sound::of(RATE_HZ, &[noise(1, frames), noise(2, frames)])
}

pub fn await_state(scene: &Scene, state: &str) {
    eventually("the sink is in that state", || {
        scene.pactl(&["list", "short", "sinks"]).contains(state).then_some(())
    });
}

/// A recorder of what leaves the device, and its file.
pub fn recorder(scene: &Scene) -> (Program, PathBuf) {
    let file = scene.server.directory().join("taken.raw");
    let recorder = scene.spawn("parec", &[&TAKE[..], &[path(&file)]].concat());
    eventually("it records", || {
        let sources = scene.pactl(&["list", "short", "sources"]);
        sources.contains("RUNNING").then_some(())
    });
    (recorder, file)
}

/// The left channel of what is in the file so far.
pub fn taken(file: &PathBuf) -> Vec<f32> {
    let bytes = std::fs::read(file).unwrap_or_default();
    let samples = bytes.chunks_exact(8).map(|frame| [frame[0], frame[1], frame[2], frame[3]]);
    samples.map(f32::from_le_bytes).collect()
}

/// Waits until as many frames sound in a recording.
pub fn await_taken(file: &PathBuf, frames: usize) {
    eventually("it is heard", || {
        let taken = taken(file);
        let begin = taken.iter().position(|sample| *sample != 0.0)?;
        (taken.len() > begin + frames).then_some(())
    });
}

pub fn stop(recorder: Program) {
    recorder.signal(Signal::INT);
    recorder.finish();
}

/// Checks that a recording has all of a sound, but for at most `most_lost` frames in its middle and
/// `most_left` at its end, and that nothing is heard twice.
pub fn compare_halves(
    taken: &[f32],
    sound: &Sound,
    (most_lost, most_left): (usize, usize),
) -> Result<(), String> {
    let played = &sound.channels[0];
    let one = Stretch::longest(played, taken);
    let (first, second) = match one.sent_at {
        0 => {
            let rest = one.recorded_at + one.frames;
            let mut second = Stretch::longest(played, &taken[rest..]);
            second.recorded_at += rest;
            (one, second)
        }
        _ => (Stretch::longest(played, &taken[..one.recorded_at]), one),
    };
    let said = format!("{first:?}, {second:?} of {}", played.len());
    let last = first.sent_at + first.frames;
    assert!(second.sent_at >= last, "frames are heard twice: {said}");
    let left = played.len() - second.sent_at - second.frames;
    if first.sent_at > 0 || left > most_left {
        return Err(format!("the machine kept it from playing: {said}"));
    }
    let between = &taken[first.recorded_at + first.frames..second.recorded_at];
    let softer = between.iter().filter(|sample| **sample != 0.0).count();
    assert!(softer <= 2 * FADE, "{softer} other frames are heard: {said}");
    let lost = second.sent_at - last;
    if lost > most_lost { Err(format!("{lost} frames are not heard: {said}")) } else { Ok(()) }
}

/// Plays a sound of `seconds` with a program, and records it, while the server is ended and
/// followed by another one once `heard` frames are heard. `FILE` among the arguments stands for the
/// sound's file; the program may leave `left` frames before the end is heard.
fn hear_through(
    (program, arguments, left): (&str, &[&str], usize),
    (seconds, heard): (usize, usize),
    end: impl Fn(&mut Server),
) {
    let sound = noises(seconds * SECOND);
    in_three_attempts(|| {
        let mut scene = Scene::with(&TIMER);
        let (recorder, file) = recorder(&scene);
        let song = scene.file("song.wav", &sound);
        let arguments: Vec<&str> = arguments
            .iter()
            .map(|argument| if *argument == "FILE" { path(&song) } else { argument })
            .collect();
        let player = scene.spawn(program, &arguments);
        await_taken(&file, heard);
        end(&mut scene.server);
        scene.server.start_again();
        let finished = player.finish().expect_success();
        assert_eq!(finished.stderr, "");
        std::thread::sleep(Duration::from_millis(500));
        stop(recorder);
        compare_halves(&taken(&file), &sound, (SECOND / 10, left))
    });
}

const PAPLAY: (&str, &[&str], usize) = ("paplay", &["FILE"], 0);

#[test]
fn a_player_and_a_recorder_go_on_after_the_server_was_killed() {
    hear_through(PAPLAY, (8, 2 * SECOND), Server::kill);
}

#[test]
fn a_player_that_has_written_everything_drains_on_the_next_server() {
    hear_through(PAPLAY, (3, 2 * SECOND), Server::kill);
}

#[test]
fn a_player_whose_first_frames_are_heard_goes_on() {
    hear_through(PAPLAY, (4, SECOND / 4), Server::kill);
}

#[test]
fn a_player_and_a_recorder_go_on_after_the_server_was_stopped_and_started() {
    hear_through(PAPLAY, (8, 2 * SECOND), |server| {
        server.program().signal(Signal::TERM);
        eventually("it has ended", || (!server.program().is_running()).then_some(()));
    });
}

#[test]
fn mpv_goes_on_after_the_server_was_killed() {
    let arguments = ["--no-config", "--ao=pulse", "--no-video", "--no-terminal", "--volume=100"];
    let arguments = [&arguments[..], &["FILE"]].concat();
    // It leaves by its own clock, shortly before the end is heard.
    hear_through(("mpv", &arguments, SECOND / 20), (8, 2 * SECOND), Server::kill);
}

#[test]
fn programs_see_a_sink_that_sleeps_until_the_next_server_or_the_end_of_the_grace_period() {
    let playing = |options: &[&str]| {
        let scene = Scene::with(&[&TIMER[..], options].concat());
        let long = scene.file("long.wav", &ramps(60 * SECOND));
        let player = scene.spawn("paplay", &[path(&long)]);
        await_state(&scene, "RUNNING");
        let events = scene.subscribed();
        (scene, player, events)
    };
    let (mut scene, player, mut events) = playing(&[]);
    scene.server.kill();
    await_state(&scene, "SUSPENDED");
    assert!(scene.pactl(&["info"]).contains("Default Sink: consort\n"));
    scene.server.start_again();
    await_state(&scene, "RUNNING");
    assert!(!events.stdout().contains("'remove' on sink "), "{}", events.stdout());
    drop((player, events, scene));

    let (mut scene, player, mut events) = playing(&["--grace", "1500"]);
    scene.server.kill();
    // No server follows.
    let finished = player.finish();
    assert!(finished.stderr.contains("Entity killed"), "{}", finished.stderr);
    assert_eq!(scene.pactl(&["list", "short", "sinks"]), "");
    let short = scene.file("short.wav", &ramps(4800));
    let refused = scene.run("paplay", &[path(&short)]);
    assert!(refused.stderr.contains("No such entity"), "{}", refused.stderr);
    scene.server.start_again();
    eventually("the sink is back", || {
        scene.pactl(&["list", "short", "sinks"]).contains("consort").then_some(())
    });
    scene.run("paplay", &[path(&short)]).expect_success();
    assert!(events.is_running());
    for event in ["'remove' on sink #0", "'new' on sink #0"] {
        eventually(event, || events.stdout().contains(event).then_some(()));
    }
}

#[test]
fn what_programs_ask_for_without_a_server_is_done_by_the_next_one() {
    let mut scene = Scene::with(&TIMER);
    // So that there are programs, for which the next server is looked for.
    let _events = scene.spawn("pactl", &["subscribe"]);
    await_state(&scene, "SUSPENDED");
    scene.server.kill();
    await_state(&scene, "SUSPENDED");
    let short = scene.file("short.wav", &ramps(4800));
    let player = scene.spawn("paplay", &[path(&short)]);
    let volume = scene.spawn("pactl", &["set-sink-volume", "consort", "50%"]);
    let module = scene.spawn("pactl", &["load-module", "module-null-sink", "sink_name=other"]);
    std::thread::sleep(Duration::from_millis(300));
    scene.server.start_again();
    for program in [player, volume, module] {
        program.finish().expect_success();
    }
    let sinks = scene.pactl(&["list", "sinks"]);
    assert!(sinks.contains("Name: other\n") && sinks.contains("/  50% /"), "{sinks}");
}

#[test]
fn sinks_of_modules_and_volumes_are_there_on_the_next_server() {
    let mut scene = Scene::with(&TIMER);
    scene.pactl(&["load-module", "module-null-sink", "sink_name=other", "rate=44100"]);
    scene.pactl(&["set-sink-volume", "other", "50%"]);
    scene.pactl(&["set-sink-mute", "consort", "1"]);
    scene.pactl(&["set-default-sink", "other"]);
    let long = scene.file("long.wav", &ramps(60 * SECOND));
    let _player = scene.spawn("paplay", &[path(&long)]);
    await_state(&scene, "RUNNING");
    let before = sinks(&scene);
    scene.server.kill();
    scene.server.start_again();
    eventually("the sinks are what they were", || (sinks(&scene) == before).then_some(()));
    let plays_on = scene.pactl(&["list", "short", "sink-inputs"]);
    assert_eq!(plays_on.split('\t').nth(1), before.split('\t').next(), "{plays_on}");
}

/// Index, name, format, state, volume and mute of the sink `other`, and of `consort`.
fn sinks(scene: &Scene) -> String {
    let short = scene.pactl(&["list", "short", "sinks"]);
    let mut all: Vec<&str> = short.lines().collect();
    all.sort_by_key(|line| !line.contains("other"));
    let mut all = all.join("\n");
    for sink in ["other", "consort"] {
        all += &scene.pactl(&["get-sink-volume", sink]);
        all += &scene.pactl(&["get-sink-mute", sink]);
    }
    all
}

#[test]
fn streams_go_on_at_another_rate_and_with_another_driver() {
    let mut scene = Scene::with(&TIMER);
    let long = scene.file("song.wav", &ramps(20 * SECOND));
    let player = scene.spawn("paplay", &[path(&long)]);
    await_state(&scene, "RUNNING");
    let shape = |scene: &Scene, expected: &str| {
        eventually("the sink has another shape", || {
            let sinks = scene.pactl(&["list", "short", "sinks"]);
            (sinks.contains(expected) && sinks.contains("RUNNING")).then_some(())
        });
    };
    scene.server.consort(&["driver", "timer", "--playback", "5"]).expect_success();
    shape(&scene, "5ch 48000Hz");
    scene.server.kill();
    scene.server.start_another(&[&TIMER[..], &["--rate", "44100"]].concat());
    shape(&scene, "2ch 44100Hz");
    player.finish().expect_success();
}
