//! What a stream plays, recorded alone.

use super::*;
use crate::input::Input as _;
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

fn tap() -> Tap {
    let mut tap = Tap::new(RATE_HZ, 1);
    assert!(tap.run(true) && tap.set_interval(1920));
    tap
}

#[test]
fn a_tap_has_every_frame_that_was_heard_and_none_that_is_queued() {
    let mut playback = playback(0);
    let mut tap = tap();
    assert_eq!(tap.due_ns(), Some(0), "the first look is due at once");
    tap.follow(&mut playback, false, 0);
    playback.put(&bytes(0, 2 * RATE_HZ as usize));
    let mut heard = Vec::new();
    for look in 1..=25 {
        playback.late(look * SECOND_NS / 25);
        tap.follow(&mut playback, false, look * SECOND_NS / 25);
        assert_eq!(tap.due_ns(), Some((look + 1) * SECOND_NS / 25));
        heard.extend(read(&mut tap));
        assert_eq!(tap.position(), heard.len() as u64);
    }
    let position = playback.heard_position(SECOND_NS) as usize;
    assert!(position > 47_000, "{position} frames were heard");
    assert_eq!(heard, playback.output.samples[..position]);
}

#[test]
fn what_a_program_skips_is_not_recorded() {
    let mut playback = playback(0);
    let mut tap = tap();
    tap.follow(&mut playback, false, 0);
    playback.put(&bytes(0, RATE_HZ as usize));
    let at_ns = SECOND_NS / 10;
    playback.late(at_ns);
    tap.follow(&mut playback, false, at_ns);
    read(&mut tap);
    playback.flush(at_ns);
    playback.put(&bytes(20_000, 10_000));
    tap.follow(&mut playback, false, at_ns + 20_000_000);
    let heard = read(&mut tap);
    assert!(heard.len() <= 1440, "no more than 30 ms: {}", heard.len());
    let last = heard.last().expect("some");
    assert!(*last >= 20_000.0 / 32_768.0, "what came after the seek: {last}");
}

#[test]
fn a_stream_that_holds_is_silent_unless_its_device_sleeps() {
    let mut playback = playback(0);
    let mut tap = tap();
    playback.cork(true, 0);
    tap.follow(&mut playback, false, 0);
    for look in 1..=25 {
        tap.follow(&mut playback, false, look * SECOND_NS / 25);
    }
    assert_eq!(read(&mut tap), vec![0.0; RATE_HZ as usize]);
    for look in 26..=50 {
        tap.follow(&mut playback, true, look * SECOND_NS / 25);
    }
    assert_eq!(read(&mut tap), [0.0; 0]);
    assert_eq!(tap.due_ns(), None, "nobody wakes for it");
    tap.follow(&mut playback, false, 51 * SECOND_NS / 25);
    assert_eq!(read(&mut tap).len(), 1920, "the time since the last look");
}
