//! A recording of the screen and of what is heard has both together: the latencies of what is
//! played and of what is recorded are as programs are answered.

use std::path::PathBuf;
use std::time::Duration;

use harness::{Program, Sound, in_three_attempts, tone};
use rustix::process::Signal;

use crate::programs::{await_streams, screen};
use crate::{RATE_HZ, Scene, is_installed, path};

const SECONDS: usize = 12;
const PICTURES_HZ: usize = 100;
/// Pictures are shown and taken in steps of 10 ms each.
const MOST_S: f64 = 0.020;

/// A film with a flash and a tone at the begin of each second.
fn film(scene: &Scene) -> PathBuf {
    let second = RATE_HZ as usize;
    let mut channel = tone(1_000.0, RATE_HZ, SECONDS * second);
    channel.chunks_mut(second).for_each(|chunk| chunk[second / 10..].fill(0.0));
    let sound = scene.file("tones.wav", &Sound::of(RATE_HZ, &[channel]));
    let film = scene.server.directory().join("film.mkv");
    let black = format!("color=black:size=64x64:rate={PICTURES_HZ}:duration={SECONDS}");
    let flash = format!("drawbox=color=white:t=fill:enable=lt(mod(n\\,{PICTURES_HZ})\\,10)");
    let input = ["-loglevel", "error", "-nostdin", "-f", "lavfi", "-i", &black, "-i", path(&sound)];
    let output = ["-vf", &flash, "-c:v", "mjpeg", "-c:a", "copy", path(&film)];
    scene.run("ffmpeg", &[&input[..], &output].concat()).expect_success();
    film
}

/// When the values that a filter of ffmpeg has written rise above a level, s.
fn onsets(file: &std::path::Path, ticks_hz: f64, level: f64) -> Vec<f64> {
    let printed = std::fs::read_to_string(file).expect("written");
    let mut onsets = Vec::new();
    let (mut at, mut was_above) = (0.0, true);
    for line in printed.lines() {
        let number = |text: &str| text.trim().split(' ').next().and_then(|text| text.parse().ok());
        if let Some(ticks) = line.split("pts:").nth(1).and_then(number) {
            let ticks: f64 = ticks;
            at = ticks / ticks_hz;
        } else if let Some(value) = line.split('=').nth(1).and_then(number) {
            let is_above = value > level;
            onsets.extend((is_above && !was_above).then_some(at));
            was_above = is_above;
        }
    }
    onsets
}

#[test]
fn a_recording_of_the_screen_has_picture_and_sound_together() {
    if !is_installed("mpv") || !is_installed("Xvfb") {
        return;
    }
    in_three_attempts(|| {
        let scene = Scene::new();
        let (_screen, display) = screen(&scene);
        let film = film(&scene);
        let [seen, heard] = ["seen", "heard"].map(|name| scene.server.directory().join(name));
        let size = ["-framerate", "100", "-video_size", "32x32"];
        let screen = [&["-f", "x11grab"], &size[..], &["-i", &display]].concat();
        let bright = format!(
            "settb=1/1000000,signalstats,metadata=print:key=lavfi.signalstats.YAVG:file={}",
            path(&seen)
        );
        // Of each millisecond.
        let loud = format!(
            "asettb=1/{RATE_HZ},asetnsamples=48,astats=metadata=1:reset=1,\
             ametadata=print:key=lavfi.astats.Overall.RMS_level:file={}",
            path(&heard)
        );
        let sound = ["-f", "pulse", "-sample_rate", "48000", "-i", "consort.monitor"];
        let filters = ["-vf", &bright, "-af", &loud, "-f", "null", "-"];
        let quiet = ["-loglevel", "error", "-nostdin", "-copyts"];
        let recorder = scene.spawn("ffmpeg", &[&quiet, &screen[..], &sound, &filters].concat());
        await_streams(&scene, "source-outputs", 1);
        let quiet = ["--no-config", "--no-terminal", "--osc=no", "--osd-level=0", "--ao=pulse"];
        let place = ["--vo=x11", "--no-border", "--geometry=64x64+0+0", path(&film)];
        let mut player = scene.command("mpv", &[&quiet[..], &place].concat());
        player.env("DISPLAY", &display);
        Program::start(player).finish().expect_success();
        std::thread::sleep(Duration::from_millis(500));
        recorder.signal(Signal::INT);
        recorder.finish();
        let (flashes, tones) = (onsets(&seen, 1e6, 128.0), onsets(&heard, 48_000.0, -40.0));
        let apart = |tone: &f64| flashes.iter().map(|flash| tone - flash).min_by(by_size);
        // The player and the recorder need a moment to find their clocks.
        let mut apart: Vec<f64> = tones.iter().skip(3).filter_map(apart).collect();
        apart.sort_by(f64::total_cmp);
        let is_right = |median: &f64| apart.len() >= SECONDS / 2 && median.abs() < MOST_S;
        match apart.get(apart.len() / 2).filter(|median| is_right(median)) {
            Some(_) => Ok(()),
            None => Err(format!("tones after flashes, s: {apart:?}")),
        }
    });
}

fn by_size(one: &f64, other: &f64) -> std::cmp::Ordering {
    one.abs().total_cmp(&other.abs())
}
