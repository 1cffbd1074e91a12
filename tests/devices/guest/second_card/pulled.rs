//! The card that drives is pulled out while a program of PulseAudio plays.

use std::time::Duration;

use harness::Sound;

use super::{RATE, awaited, file, front_end_of, has_card, listed, monitor, names, pull, pulse};
use crate::guest::streams::await_device;
use crate::guest::{driver, server_on};

const SECONDS: usize = 6;
/// How long each level lasts.
const STEP: usize = RATE / 10;

/// Plugs the card in, for which the machine begins another file.
fn plug_in() {
    monitor(&["device_add", "usb-audio,id=usbsnd,bus=xhci.0,audiodev=usb"]);
    awaited("the kernel has it", || has_card(9).then_some(()));
}

/// What it has played since then, of the left channel.
fn heard() -> Vec<i16> {
    let folder = std::env::var_os("OUT").expect("the machine's folder");
    let bytes = std::fs::read(std::path::Path::new(&folder).join("usb.wav")).expect("a recording");
    // Behind the head of the file, which has no length yet.
    let frames = bytes.get(44..).unwrap_or_default();
    frames.chunks_exact(4).map(|frame| i16::from_le_bytes([frame[0], frame[1]])).collect()
}

/// The levels that are heard for longer than a fade, and for how many frames, as they follow.
fn levels(heard: &[i16]) -> Vec<(i16, usize)> {
    let runs = heard.chunk_by(|one, other| one == other).map(|run| (run[0], run.len()));
    runs.filter(|(level, frames)| *level != 0 && *frames > RATE / 200).collect()
}

/// A card that is away stands still, and nothing is heard twice (docs/design/streams.md).
#[test]
#[ignore = "in the virtual machine"]
fn a_program_waits_for_the_card_that_drives_and_goes_on_where_it_was_pulled_out() {
    pull("usbsnd", 9);
    plug_in();
    let server = server_on("hw:9", &[]);
    let _front_end = front_end_of(&server);
    let rise: Vec<f32> =
        (0..SECONDS * RATE).map(|frame| (1 + frame / STEP) as f32 / 100.0).collect();
    let song = file(&server, &Sound::of(RATE as u32, &[rise.clone(), rise]));
    let mut player = pulse(&server, "paplay", &[&song.to_string_lossy()]);
    await_device(&server, "deep");
    let count = || heard().iter().filter(|sample| **sample != 0).count();
    awaited("a second is heard", || (count() > RATE).then_some(()));
    let input = listed(&server, "sink-inputs");
    pull("usbsnd", 9);
    awaited("the status says so", || driver(&server).contains("not there").then_some(()));
    // For longer than it would take to play the rest.
    std::thread::sleep(Duration::from_secs(SECONDS as u64 + 2));
    assert!(player.is_running(), "it stays connected, and waits: {}", player.stderr());
    assert_eq!(listed(&server, "sink-inputs")[0][..2], input[0][..2], "at the same sink");
    assert_eq!(names(&server, "sinks"), ["consort"]);
    let mut all = levels(&heard());
    plug_in();
    player.finish().expect_success();
    all.extend(levels(&heard()));
    assert!(all.is_sorted_by_key(|(level, _)| *level), "nothing is heard again: {all:?}");
    for same in all.chunk_by(|one, other| one.0 == other.0) {
        assert!(same.iter().map(|(_, frames)| frames).sum::<usize>() <= STEP, "{all:?}");
    }
    // What was on its way to the card is lost with it, and the time until it is missed.
    let frames: usize = all.iter().map(|(_, frames)| frames).sum();
    assert!(frames + RATE > SECONDS * RATE, "{frames} frames are heard: {all:?}");
}
