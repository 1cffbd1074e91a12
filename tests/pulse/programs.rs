//! Programs of a desktop: browsers, voices, meters, mixers.

use std::path::PathBuf;

use harness::{PATIENCE, Program, Sound, eventually, eventually_within, in_three_attempts};
use rustix::process::Signal;

use crate::{RATE_HZ, Scene, compare, is_installed, path, ramps};

/// A file of the tests.
pub fn source(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("pulse").join(name)
}

/// Waits for this many streams. Some are those of browsers, which take long to start.
pub fn await_streams(scene: &Scene, what: &str, count: usize) {
    eventually_within(2 * PATIENCE, &format!("{count} {what}"), || {
        let list = scene.pactl(&["list", "short", what]);
        (list.lines().count() == count).then_some(())
    });
}

/// What Chromium plays of a page with two seconds of sound; it is waited for until its end.
fn heard_of_chromium(latency_ms: Option<&str>) -> Sound {
    let scene = Scene::new();
    let profile = format!("--user-data-dir={}", path(scene.server.directory()));
    let page = format!("file://{}", path(&source("clients/player.html")));
    let arguments = [
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--autoplay-policy=no-user-gesture-required",
        &profile,
        &page,
    ];
    let mut command = scene.command("chromium", &arguments);
    command.envs(latency_ms.map(|ms| ("PULSE_LATENCY_MSEC", ms)));
    let browser = Program::start(command);
    await_streams(&scene, "sink-inputs", 1);
    await_streams(&scene, "sink-inputs", 0);
    browser.terminate();
    scene.recorded()
}

#[test]
fn chromium_plays_web_audio_sample_for_sample() {
    if !is_installed("chromium") {
        return;
    }
    let sound = ramps(2 * RATE_HZ as usize);
    // So much that a busy machine does not matter.
    in_three_attempts(|| compare(&heard_of_chromium(Some("300")), &sound.channels));
}

#[test]
fn chromium_plays_to_the_end_when_it_is_late() {
    if !is_installed("chromium") {
        return;
    }
    // With the latency that it asks for itself, some 40 ms, it may well run out of frames.
    let heard = heard_of_chromium(None).sounding(0);
    assert!(heard.channels[0].len() >= 2 * RATE_HZ as usize - 4096);
}

#[test]
fn arecord_takes_what_is_played_through_alsas_plug_in() {
    let sound = ramps(2 * RATE_HZ as usize);
    for device in ["pulse", "default"] {
        in_three_attempts(|| {
            let scene = Scene::new();
            let played = scene.file("played.wav", &sound);
            let taken = scene.server.directory().join("taken.wav");
            let format = ["-f", "S16_LE", "-r", "48000", "-c", "2"];
            let arguments = [&["-q", "-D", device], &format[..], &[path(&taken)]].concat();
            let recorder = scene.spawn("arecord", &arguments);
            await_streams(&scene, "source-outputs", 1);
            scene.run("paplay", &[path(&played)]).expect_success();
            std::thread::sleep(std::time::Duration::from_secs(1));
            recorder.signal(Signal::INT);
            recorder.finish();
            compare(&Sound::read(&taken), &sound.channels)
        });
    }
}

#[test]
fn speaker_test_plays_a_tone_on_each_side() {
    let scene = Scene::new();
    let tone = ["-t", "sine", "-f", "1000", "-l", "1"];
    let format = ["-D", "pulse", "-c", "2", "-r", "48000", "-F", "FLOAT_LE"];
    scene.run("speaker-test", &[&format[..], &tone].concat()).expect_success();
    let heard = scene.recorded();
    for channel in 0..2 {
        let side = heard.sounding(channel);
        let (frequency, frames) = (side.frequency_hz(0), side.channels[0].len());
        assert!((frequency - 1000.0).abs() < 1.0, "{frequency} Hz");
        // Three seconds each, one after the other.
        let is_about_3_s = (2 * RATE_HZ as usize..4 * RATE_HZ as usize).contains(&frames);
        assert!(is_about_3_s, "{frames} frames");
    }
}

/// Asserts that a voice was heard for about as long as it speaks.
fn assert_speaks(heard: &Sound) {
    let voice = heard.sounding(0);
    let frames = voice.channels[0].len();
    let level = voice.rms(0);
    assert!((RATE_HZ as usize..5 * RATE_HZ as usize).contains(&frames), "{frames} frames");
    assert!((0.01..0.5).contains(&level), "{level}");
}

#[test]
fn espeak_speaks() {
    if !is_installed("espeak-ng") {
        return;
    }
    let scene = Scene::new();
    scene.run("espeak-ng", &["one, two, three, four"]).expect_success();
    assert_speaks(&scene.recorded());
}

#[test]
fn speech_dispatcher_speaks() {
    if !is_installed("spd-say") {
        return;
    }
    let scene = Scene::new();
    let directory = scene.server.directory();
    let socket = directory.join("speech");
    let pid = directory.join("speech.pid");
    let logs = path(directory);
    let dispatcher = scene.spawn(
        "speech-dispatcher",
        &["-s", "-t", "0", "-P", path(&pid), "-L", logs, "-c", "unix_socket", "-S", path(&socket)],
    );
    eventually("it listens", || socket.exists().then_some(()));
    let mut voice = scene.command("spd-say", &["-w", "one, two, three, four"]);
    voice.env("SPEECHD_ADDRESS", format!("unix_socket:{}", path(&socket)));
    Program::start(voice).finish().expect_success();
    dispatcher.terminate();
    assert_speaks(&scene.recorded());
}

#[test]
fn cava_shows_what_is_heard() {
    if !is_installed("cava") {
        return;
    }
    let scene = Scene::new();
    let settings = scene.server.directory().join("cava.conf");
    let input = "[general]\nframerate = 20\nbars = 4\n[input]\nmethod = pulse\nsource = auto\n";
    let output = "[output]\nmethod = raw\nraw_target = /dev/stdout\ndata_format = ascii\n";
    std::fs::write(&settings, format!("{input}{output}channels = mono\n")).expect("written");
    let mut meter = scene.spawn("cava", &["-p", path(&settings)]);
    await_streams(&scene, "source-outputs", 1);
    let is_high =
        |line: &&str| line.split(';').filter_map(|bar| bar.parse().ok()).any(|bar: u32| bar > 300);
    assert_eq!(meter.stdout().lines().find(is_high), None, "nothing plays");
    let file = scene.file("played.wav", &ramps(3 * RATE_HZ as usize));
    let player = scene.spawn("paplay", &[path(&file)]);
    eventually("bars rise", || meter.stdout().lines().any(|line| is_high(&line)).then_some(()));
    player.finish().expect_success();
    meter.terminate();
}

/// Starts a screen without hardware; returns its name as well, for `DISPLAY`.
pub fn screen(scene: &Scene) -> (Program, String) {
    let mut screen = scene.spawn("Xvfb", &["-displayfd", "1", "-screen", "0", "800x600x24"]);
    let display = eventually("a screen", || {
        screen.stdout().lines().next().map(|number| format!(":{number}"))
    });
    (screen, display)
}

#[test]
fn pavucontrol_shows_a_meter_that_lets_the_device_sleep() {
    if !is_installed("pavucontrol") || !is_installed("Xvfb") {
        return;
    }
    let scene = Scene::new();
    let (_screen, display) = screen(&scene);
    let mut command = scene.command("pavucontrol", &["-t", "3"]);
    command.env("DISPLAY", &display);
    let mut mixer = Program::start(command);
    eventually("a meter", || {
        let list = scene.pactl(&["list", "source-outputs"]);
        list.contains("media.name = \"Peak detect\"").then_some(())
    });
    eventually("the sink sleeps", || {
        scene.pactl(&["list", "short", "sinks"]).contains("SUSPENDED").then_some(())
    });
    let file = scene.file("played.wav", &ramps(RATE_HZ as usize));
    scene.run("paplay", &[path(&file)]).expect_success();
    assert!(mixer.is_running(), "{}", mixer.stderr());
    mixer.terminate();
    await_streams(&scene, "source-outputs", 0);
}

#[test]
fn pulsectl_lists_changes_and_is_notified() {
    let scene = Scene::new();
    let has = scene.run("/usr/bin/python3", &["-c", "import pulsectl"]).code == Some(0);
    if !has {
        return harness::not_run("python3-pulsectl is not installed");
    }
    let script = source("mixer.py");
    let file = scene.file("played.wav", &ramps(4 * RATE_HZ as usize));
    let player = scene.spawn("paplay", &[path(&file)]);
    await_streams(&scene, "sink-inputs", 1);
    let finished = scene.run("/usr/bin/python3", &[path(&script)]).expect_success();
    let lines: Vec<&str> = finished.stdout.lines().collect();
    assert_eq!(
        lines,
        [
            "server consort",
            "sinks consort",
            "sources consort.monitor",
            "sink volume 0.5",
            "stream volume 0.25 muted 1",
            "event change",
        ]
    );
    player.finish();
}

#[test]
fn openal_lists_the_sink_and_its_monitor() {
    if !is_installed("openal-info") {
        return;
    }
    let scene = Scene::new();
    let mut command = scene.command("openal-info", &[]);
    command.env("ALSOFT_DRIVERS", "pulse");
    let printed = Program::start(command).finish().expect_success().stdout;
    for line in ["Default playback device: consort", "Default capture device: Monitor of consort"] {
        assert!(printed.contains(line), "{line}: {printed}");
    }
}
