//! A recorder of the screen beside PipeWire: it has its pictures from there, and what is heard from
//! consort.

use std::fs;
use std::process::Command;

use harness::{Program, Sound, eventually};
use serde_json::Value;

use super::built::wide_packages;
use super::debian::{Booted, Debian, Machine};
use super::sounds::{TONE_HZ, await_connected, most_frequent_hz, write_tone};
use super::{AUDIO_TOOLS, desktop, install};

/// GNOME's compositor, a player, and what records.
const PROGRAMS: &str = "mutter mpv gstreamer1.0-tools gstreamer1.0-plugins-good \
                        gstreamer1.0-pipewire gstreamer1.0-pulseaudio python3-gi";

/// A screen of pixels in memory.
const COMPOSITOR: &str = "mutter --headless --wayland --no-x11 --virtual-monitor 320x240";

/// A film that fills the screen with red, 10 pictures a second, and has the tone as its sound.
const PLAYER: &str = "mpv --no-config --no-terminal --fullscreen --vo=wlshm --ao=pulse \
                      --audio-file=tone.wav av://lavfi:color=red:size=320x240:rate=10";

const WIDTH: usize = 320;
const PIXELS: usize = WIDTH * 240;

/// What is recorded: pictures, and sounds of 10 ms. Both take 3 s.
const PICTURES: usize = 30;
const SOUNDS: usize = 300;

#[test]
#[ignore = "minutes: it installs a compositor; cargo test --test packages -- --ignored"]
fn thoroughly_with_a_recording_of_the_screen() {
    let Some(debian) = Debian::make() else { return };
    debian.take(&wide_packages());
    desktop::install(&debian);
    debian.run(&install(&format!("{AUDIO_TOOLS} {PROGRAMS}"))).expect_success();
    desktop::expect_pipewire_without_sound(&debian);
    write_tone(&debian);
    let recorder = debian.path("/home/musician/recorder.py");
    fs::write(recorder, include_str!("recorder.py")).expect("written");

    let Some(booted) = debian.boot() else { return };
    let mut compositor = booted.user_starts(&format!("exec {COMPOSITOR}"));
    eventually("there is a screen", || {
        assert!(compositor.is_running(), "{}", compositor.stderr());
        (booted.user("test -S $XDG_RUNTIME_DIR/wayland-0").code == Some(0)).then_some(())
    });
    let mut player = booted.user_starts(&format!("exec {PLAYER}"));
    await_connected(&booted, "mpv:output_FL", &mut player);
    let record = format!("exec python3 recorder.py film.mkv {PICTURES} {SOUNDS}");
    let mut recorder = booted.user_starts(&record);
    expect_video_alone_in_pipewire(&booted, &mut recorder);
    recorder.finish().expect_success();
    expect_film(&debian);
    drop((player, compositor));
    booted.power_off();
}

/// While it records, PipeWire has the screen and its recorder, and no sound.
fn expect_video_alone_in_pipewire(booted: &Booted, recorder: &mut Program) {
    let classes = eventually("the recorder takes pictures from PipeWire", || {
        assert!(recorder.is_running(), "{}", recorder.stderr());
        let classes = classes(booted);
        classes.contains(&"Stream/Input/Video".to_owned()).then_some(classes)
    });
    let is_sound = |class: &String| class.contains("Audio") || class.contains("Midi");
    assert!(!classes.iter().any(is_sound), "{classes:?}");
}

/// The classes of what PipeWire has, such as `Audio/Sink`.
fn classes(booted: &Booted) -> Vec<String> {
    let dump = booted.user("pw-dump").expect_success().stdout;
    let dump: Value = serde_json::from_str(&dump).expect("pw-dump prints JSON");
    let class = |object: &Value| Some(object["info"]["props"]["media.class"].as_str()?.to_owned());
    dump.as_array().expect("a list").iter().filter_map(class).collect()
}

/// Both are in one file: every picture is red, and the sound is the tone from begin to end.
fn expect_film(debian: &Debian) {
    let home = debian.path("/home/musician");
    let convert = |arguments: &[&str]| {
        let mut ffmpeg = Command::new("ffmpeg");
        ffmpeg.args(["-loglevel", "error", "-nostdin", "-i", "film.mkv"]).args(arguments);
        ffmpeg.current_dir(&home);
        Program::start(ffmpeg).finish().expect_success();
    };
    convert(&["-f", "rawvideo", "-pix_fmt", "rgb24", "-fps_mode", "passthrough", "film.rgb"]);
    convert(&["film.wav"]);
    let pictures = fs::read(home.join("film.rgb")).expect("pictures");
    assert_eq!(pictures.len(), PICTURES * PIXELS * 3);
    // As exact as JPEG is.
    let is_red = |pixel: &[u8]| pixel[0] > 240 && pixel[1] < 16 && pixel[2] < 16;
    let mut others = pictures.chunks(3).enumerate().filter(|(_, pixel)| !is_red(pixel));
    let other = others.next().map(|(at, pixel)| {
        (at / PIXELS, at % PIXELS % WIDTH, at % PIXELS / WIDTH, pixel, others.count() + 1)
    });
    assert_eq!(other, None, "every picture is red all over: picture, x, y, pixel, how many");
    let sound = Sound::read(&home.join("film.wav"));
    assert_eq!(sound.channels[0].len(), SOUNDS * 480);
    let heard_hz = most_frequent_hz(&sound.channels[0]);
    assert!((heard_hz - TONE_HZ).abs() < 5.0, "{heard_hz} Hz");
}
