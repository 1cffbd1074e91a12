//! Every command of `pactl`, as its manual lists them, does what it does with PulseAudio.

use std::process::Command;

use harness::{Finished, Program, Sound, eventually};

use crate::conformance::PulseAudio;
use crate::{RATE_HZ, Scene, is_installed, path};

/// Commands, in this order, while a stream plays (`PLAYING`) and one records (`RECORDING`); and
/// what is different: why, what PulseAudio does, and what we do.
const COMMANDS: &[(&str, Option<[&str; 2]>)] = &[
    ("stat", Some(["prints", "prints"])),
    ("info", Some(["prints", "prints"])),
    ("list", Some(["prints", "prints"])),
    ("list short", Some(["prints", "prints"])),
    ("list cards", None),
    ("list samples", None),
    ("--format=json list", Some(["prints", "prints"])),
    ("get-default-sink", None),
    ("get-default-source", None),
    ("set-default-sink consort", None),
    ("set-default-sink nowhere", None),
    ("set-default-source consort.monitor", None),
    ("set-default-source nowhere", None),
    ("get-sink-volume consort", None),
    ("get-sink-volume nowhere", None),
    ("set-sink-volume consort 50%", None),
    ("get-sink-volume @DEFAULT_SINK@", None),
    ("set-sink-volume consort +10%", None),
    ("set-sink-volume consort -6dB", None),
    ("set-sink-volume consort 40000", None),
    ("set-sink-volume consort 0.5", None),
    ("get-sink-volume consort", None),
    ("set-sink-volume consort 30% 60%", None),
    ("get-sink-volume consort", None),
    ("set-sink-volume consort +10%", None),
    ("get-sink-volume consort", None),
    ("set-sink-volume consort 10% 20% 30%", None),
    ("set-sink-volume nowhere 50%", None),
    ("set-sink-mute consort 1", None),
    ("get-sink-mute consort", None),
    ("set-sink-mute consort toggle", None),
    ("get-sink-mute consort", None),
    ("set-source-volume consort.monitor 30% 60%", None),
    ("get-source-volume consort.monitor", None),
    ("set-source-mute consort.monitor 1", None),
    ("get-source-mute @DEFAULT_SOURCE@", None),
    ("set-sink-input-volume PLAYING 25% 75%", None),
    ("set-sink-input-volume 99 25%", None),
    ("set-sink-input-mute PLAYING toggle", None),
    ("set-source-output-volume RECORDING 25%", None),
    ("set-source-output-volume 99 25%", None),
    ("set-source-output-mute RECORDING 1", None),
    ("move-sink-input PLAYING consort", None),
    ("move-sink-input PLAYING nowhere", None),
    ("move-sink-input 99 consort", None),
    ("move-source-output RECORDING consort.monitor", None),
    ("move-source-output 99 consort.monitor", None),
    ("upload-sample FILE bell", None),
    ("play-sample bell", None),
    ("play-sample nothing", None),
    ("play-sample bell nowhere", None),
    ("remove-sample bell", None),
    ("remove-sample bell", None),
    ("load-module module-null-sink sink_name=other", Some(["prints", "prints"])),
    ("list short sinks", Some(["prints", "prints"])),
    ("load-module module-nothing", None),
    ("unload-module 99", None),
    ("suspend-sink consort 1", None),
    ("suspend-sink consort 0", None),
    ("suspend-source consort.monitor 1", None),
    ("suspend-source consort.monitor 0", None),
    ("set-card-profile 0 off", None),
    ("set-sink-port consort port", None),
    ("set-source-port consort.monitor port", None),
    ("set-port-latency-offset card port 1000", None),
    ("set-sink-formats 0 pcm", None),
    ("send-message /core list-handlers", None),
    // All modules of the name: with PulseAudio, that is every sink.
    ("unload-module module-null-sink", None),
    ("nonsense", None),
    ("exit", Some(["", "Not supported"])),
];

/// The exit code, and all that was printed.
fn outcome(finished: &Finished) -> (Option<i32>, String) {
    (finished.code, format!("{}{}", finished.stdout, finished.stderr))
}

/// Runs all commands on a server.
fn outcomes(command: &dyn Fn(&str, &[&str]) -> Command, file: &str) -> Vec<(Option<i32>, String)> {
    let run = |program: &str, arguments: &[&str]| Program::start(command(program, arguments));
    let player = run("paplay", &[file]);
    let recorder = run("parec", &["--device=consort.monitor", "--raw", "/dev/null"]);
    let index = |of: &str| {
        eventually(of, || {
            let list = run("pactl", &["list", "short", of]).finish().stdout;
            list.split_whitespace().next().map(str::to_owned)
        })
    };
    let [playing, recording] = ["sink-inputs", "source-outputs"].map(index);
    let all = COMMANDS.iter().map(|(line, _)| {
        let words = line.split_whitespace().map(|word| match word {
            "PLAYING" => &playing,
            "RECORDING" => &recording,
            "FILE" => file,
            word => word,
        });
        outcome(&run("pactl", &words.collect::<Vec<_>>()).finish())
    });
    let all = all.collect();
    drop((player, recorder));
    all
}

/// pactl quits when a volume has too many channels, and again when it has read the rest of the
/// answer: its exit code is that of the last time, which it may not come to.
fn quits_twice(text: &str) -> bool {
    text.contains("You tried to set volumes for")
}

#[test]
fn every_command_of_pactl_does_what_it_does_with_pulseaudio() {
    if !is_installed("pulseaudio") {
        return;
    }
    let quiet = Sound::of(RATE_HZ, &[vec![0.01; 30 * RATE_HZ as usize]]);
    let pulseaudio = PulseAudio::start();
    let file = pulseaudio.directory().join("quiet.wav");
    quiet.write(&file);
    let theirs =
        outcomes(&|program, arguments| pulseaudio.command(program, arguments), path(&file));
    let scene = Scene::new();
    let ours = outcomes(&|program, arguments| scene.command(program, arguments), path(&file));
    let mut wrong = Vec::new();
    for (((line, difference), theirs), ours) in COMMANDS.iter().zip(theirs).zip(ours) {
        let is_like = |(code, text): &(Option<i32>, String), expected: &str| match expected {
            "" => *code == Some(0) && text.is_empty(),
            "prints" => *code == Some(0) && !text.is_empty(),
            error => *code == Some(1) && text.contains(error),
        };
        let is_right = match difference {
            None => theirs == ours || (quits_twice(&theirs.1) && theirs.1 == ours.1),
            Some([of_them, of_us]) => is_like(&theirs, of_them) && is_like(&ours, of_us),
        };
        if !is_right {
            wrong.push(format!("pactl {line}:\n  PulseAudio: {theirs:?}\n  consort: {ours:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let json = scene.pactl(&["--format=json", "list"]);
    serde_json::from_str::<serde_json::Value>(&json).expect("JSON");
}

#[test]
fn pacmd_says_that_there_is_nothing_for_it_and_starts_no_other_server() {
    let scene = Scene::new();
    let finished = scene.run("pacmd", &["list-sinks"]);
    assert_eq!(finished.code, Some(1));
    assert!(finished.stderr.contains("No PulseAudio daemon running"), "{}", finished.stderr);
    let left = std::fs::read_dir(scene.server.directory().join("pulse")).expect("a directory");
    let left: Vec<_> = left.map(|entry| entry.expect("an entry").file_name()).collect();
    assert_eq!(left, ["native"], "no other server has its files there");
    assert!(scene.pactl(&["info"]).contains("Server Name: consort"));
}
