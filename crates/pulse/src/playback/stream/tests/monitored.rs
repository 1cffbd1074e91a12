//! What a stream plays, recorded alone.

use client::stream::Timing;

use super::*;
use crate::input::Input as _;
use crate::output::Output as _;
use crate::recording::Tap;

/// Everything that was heard and is not read yet.
fn read(tap: &mut Tap) -> Vec<f32> {
    let mut all = Vec::new();
    loop {
        let mut piece = vec![0.0; 1000];
        match tap.read(&mut [&mut piece]) {
            0 => return all,
            frames => all.extend(&piece[..frames]),
        }
    }
}

/// With an interval of 40 ms.
fn tap() -> Tap {
    tap_of(1920)
}

fn tap_of(interval_frames: u32) -> Tap {
    let mut tap = Tap::new(RATE_HZ, 1);
    assert!(tap.run(true) && tap.set_interval(interval_frames));
    tap
}

/// Looks at it as it is heard by all others.
fn look(tap: &mut Tap, playback: &mut Playback<Card>, now_ns: u64) {
    playback.output.now_ns = now_ns;
    tap.follow(playback, Gains::default(), false, now_ns);
}

/// A second that plays, and its tap, which has looked at 100 ms of it.
fn playing(interval_frames: u32) -> (Playback<Card>, Tap) {
    let (mut playback, mut tap) = (playback(0), tap_of(interval_frames));
    look(&mut tap, &mut playback, 0);
    playback.put(&bytes(0, RATE_HZ as usize));
    look(&mut tap, &mut playback, 100 * MS);
    (playback, tap)
}

const MS: u64 = 1_000_000;

#[test]
fn a_tap_has_every_frame_that_was_heard_and_none_that_is_queued() {
    let mut playback = playback(0);
    let mut tap = tap();
    assert_eq!(tap.due_ns(), Some(0), "the first look is due at once");
    look(&mut tap, &mut playback, 0);
    playback.put(&bytes(0, 2 * RATE_HZ as usize));
    let mut heard = Vec::new();
    for at_ns in (1..=25).map(|look| look * 40 * MS) {
        playback.late(at_ns);
        look(&mut tap, &mut playback, at_ns);
        heard.extend(read(&mut tap));
        assert_eq!(tap.due_ns(), Some(at_ns + 40 * MS));
        assert_eq!(tap.position(), heard.len() as u64);
    }
    let position = playback.heard_position(SECOND_NS) as usize;
    assert!(position > 47_000, "{position} frames were heard");
    assert_eq!(heard, playback.output.samples[..position]);
}

#[test]
fn what_a_program_skips_is_not_recorded() {
    let (mut playback, mut tap) = playing(1920);
    playback.flush(100 * MS);
    playback.put(&bytes(20_000, 10_000));
    look(&mut tap, &mut playback, 2 * SECOND_NS / 10);
    let heard = read(&mut tap);
    let before = &playback.output.samples[..4800];
    let after = &playback.output.samples[RATE_HZ as usize..][..4800];
    assert!(heard == [before, after].concat(), "{} frames", heard.len());
}

#[test]
fn frames_are_recorded_until_the_device_goes_on_elsewhere() {
    let (mut playback, mut tap) = playing(1920);
    playback.output.is_deaf = true;
    playback.flush(100 * MS);
    playback.put(&bytes(20_000, 10_000));
    look(&mut tap, &mut playback, 105 * MS);
    // It went on 8 ms after it was asked to.
    let timing = playback.output.timing();
    let goes_on = Timing { position: 48_000, at_ns: 108 * MS, until: u64::MAX, ..timing };
    playback.output.stated = Some(goes_on);
    look(&mut tap, &mut playback, 120 * MS);
    let samples = &playback.output.samples;
    assert_eq!(read(&mut tap), [&samples[..5184], &samples[48_000..48_576]].concat());
}

#[test]
fn what_is_heard_never_goes_back() {
    let (mut playback, mut tap) = playing(1920);
    let timing = playback.output.timing();
    let earlier = Timing { position: 4000, at_ns: 100 * MS, ..timing };
    playback.output.stated = Some(earlier);
    look(&mut tap, &mut playback, 110 * MS);
    playback.output.stated = None;
    look(&mut tap, &mut playback, 120 * MS);
    assert_eq!(read(&mut tap), playback.output.samples[..5760]);
}

#[test]
fn a_stream_that_holds_is_silent_for_just_as_long() {
    let mut playback = playback(0);
    let mut tap = tap_of(2 * RATE_HZ);
    look(&mut tap, &mut playback, 0);
    playback.put(&bytes(0, 2 * RATE_HZ as usize));
    for (corked, at_ns) in [(true, 100 * MS), (false, 1100 * MS)] {
        look(&mut tap, &mut playback, at_ns);
        playback.cork(corked, at_ns);
    }
    look(&mut tap, &mut playback, 2 * SECOND_NS);
    let heard = read(&mut tap);
    let samples = &playback.output.samples;
    let silence = vec![0.0; RATE_HZ as usize];
    let whole = [&samples[..4800], &silence, &samples[4800..][..43_200]].concat();
    assert!(heard == whole, "{} frames", heard.len());
}

#[test]
fn a_stream_that_held_at_a_seek_is_recorded_without_what_it_skipped() {
    let (mut playback, mut tap) = playing(2 * RATE_HZ);
    playback.cork(true, 100 * MS);
    look(&mut tap, &mut playback, 300 * MS);
    playback.flush(300 * MS);
    playback.put(&bytes(20_000, 10_000));
    playback.output.now_ns = 350 * MS;
    playback.cork(false, 350 * MS);
    look(&mut tap, &mut playback, 400 * MS);
    let (heard, samples) = (read(&mut tap), &playback.output.samples);
    let (before, after) = (&samples[..4800], &samples[RATE_HZ as usize..][..2400]);
    let whole = [before, &[0.0; 9600], after, &[0.0; 2400]].concat();
    assert!(heard == whole, "{} frames", heard.len());
}

#[test]
fn another_ring_is_recorded_from_its_first_frame() {
    let (mut playback, mut tap) = playing(1920);
    playback.flush(100 * MS);
    playback.put(&bytes(20_000, 10_000));
    look(&mut tap, &mut playback, 150 * MS);
    read(&mut tap);
    let mut card = Card::new(8 * u64::from(RATE_HZ));
    card.now_ns = 150 * MS;
    let (device, attributes) = (*playback.stream(), playback.attributes());
    let gone_on = playback.go_on_with(card, device, attributes, Gains::default(), 150 * MS);
    gone_on.expect("possible");
    look(&mut tap, &mut playback, 250 * MS);
    assert_eq!(read(&mut tap), playback.output.samples[..4800]);
}

#[test]
fn a_stream_whose_device_sleeps_has_no_frames() {
    let mut playback = playback(0);
    let mut tap = tap();
    look(&mut tap, &mut playback, 0);
    for look in 1..=25 {
        tap.follow(&mut playback, Gains::default(), true, look * 40 * MS);
    }
    assert_eq!(read(&mut tap), [0.0; 0]);
    assert_eq!(tap.due_ns(), Some(SECOND_NS + 500 * MS));
    look(&mut tap, &mut playback, SECOND_NS + 40 * MS);
    assert_eq!(read(&mut tap).len(), 1920, "the time since the last look");
}

#[test]
fn a_tap_is_read_in_time_however_often_a_program_writes() {
    let mut playback = playback(0);
    let mut tap = tap();
    look(&mut tap, &mut playback, 0);
    for at_ns in (0..10).map(|write| write * 10 * MS) {
        look(&mut tap, &mut playback, at_ns);
        playback.output.now_ns = at_ns;
        playback.put(&bytes(0, 480));
    }
    assert_eq!(tap.due_ns(), Some(40 * MS));
}

#[test]
fn a_tap_that_is_not_read_keeps_the_newest_frames() {
    let mut playback = playback(0);
    let mut tap = tap();
    look(&mut tap, &mut playback, 0);
    for at_ns in (0..100).map(|write| write * 100 * MS) {
        playback.output.now_ns = at_ns;
        playback.put(&bytes(0, 4800));
        look(&mut tap, &mut playback, at_ns);
    }
    let kept = RATE_HZ as usize + 1920;
    assert_eq!(tap.kept_bytes(), 4 * kept);
    let position = playback.heard_position(9900 * MS) as usize;
    assert_eq!(read(&mut tap), playback.output.samples[position - kept..position]);
    assert_eq!(tap.position(), position as u64);
}

#[test]
fn frames_have_the_volume_with_which_they_were_heard() {
    let (mut playback, mut tap) = playing(RATE_HZ);
    let half = Gains::new([0.5; convert::MAX_CHANNELS]).expect("gains");
    playback.output.now_ns = 200 * MS;
    tap.follow(&mut playback, half, false, 200 * MS);
    let (heard, samples) = (read(&mut tap), &playback.output.samples);
    assert_eq!(heard[..4800], samples[..4800]);
    let halves: Vec<f32> = samples[5280..9600].iter().map(|sample| sample / 2.0).collect();
    assert_eq!(heard[5280..], halves, "behind a ramp of 10 ms");
}
