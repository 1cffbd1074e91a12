//! A stream goes on at another device, which has a clock and a ring of its own.

use client::stream::Wish;
use proptest::prelude::*;

use super::*;
use crate::output::Output as _;

/// A device with this much room, on which nothing has played.
fn go_on(playback: &mut Playback<Card>, capacity: u64) {
    let now_ns = playback.output.now_ns;
    let mut card = Card::new(capacity);
    card.now_ns = now_ns;
    let (device, attributes) = (*playback.stream(), playback.attributes());
    let gone_on = playback.go_on_with(card, device, attributes, Gains::default(), now_ns);
    gone_on.expect("possible");
}

/// The samples of the ring, as numbers.
fn numbers(playback: &Playback<Card>) -> Vec<usize> {
    let samples = &playback.output.samples;
    samples.iter().map(|sample| (sample * 32_768.0) as usize).collect()
}

#[test]
fn what_nobody_has_heard_is_played_there_from_the_byte_that_is_heard() {
    let mut playback = playback(1000);
    playback.put(&bytes(0, 20_000));
    playback.pass(SECOND_NS / 10);
    let before = playback.times(SECOND_NS / 10);
    go_on(&mut playback, 1 << 16);
    assert_eq!(playback.times(SECOND_NS / 10).read_index, before.read_index);
    assert_eq!(playback.times(SECOND_NS / 10).write_index, before.write_index);
    let heard = before.read_index as usize / 2;
    assert_eq!(numbers(&playback), (heard + 1..=20_000).collect::<Vec<_>>());
    assert_eq!(playback.output.obeyed, [Wish::Run]);
    playback.pass(SECOND_NS / 5);
    assert_eq!(playback.times(SECOND_NS / 5).read_index, before.read_index + SECOND as i64 / 10);
}

#[test]
fn a_stream_that_is_held_is_held_there() {
    let mut playback = playback(1000);
    playback.put(&bytes(0, 20_000));
    playback.pass(SECOND_NS / 10);
    playback.cork(true, SECOND_NS / 10);
    go_on(&mut playback, 1 << 16);
    assert_eq!(playback.output.obeyed, []);
    playback.cork(false, SECOND_NS / 10);
    assert_eq!(playback.output.obeyed, [Wish::Run]);
}

#[test]
fn what_was_thrown_away_is_not_played_there() {
    let mut playback = playback(0);
    playback.put(&bytes(0, 20_000));
    playback.flush(0);
    playback.put(&bytes(100, 5));
    go_on(&mut playback, 1 << 16);
    assert_eq!(numbers(&playback), (101..106).collect::<Vec<_>>());
}

#[test]
fn a_drain_is_answered_when_the_end_is_heard_there() {
    // Also if nothing was heard before, so that the end has the same position on both.
    for moved_ns in [0, SECOND_NS / 10] {
        let mut playback = playback(1000);
        playback.put(&bytes(0, 20_000));
        playback.drain(7, 0);
        playback.pass(moved_ns);
        go_on(&mut playback, 1 << 16);
        let end = playback.output.written();
        assert!(playback.output.obeyed.contains(&Wish::Drain { end }), "it ends exactly");
        let notices = playback.pass(SECOND_NS);
        let drained = Notice::Drained { tag: 7 };
        let at_ns = notices.iter().find(|(_, notice)| *notice == drained).expect("drained").0;
        let end_ns = 20_000 * SECOND_NS / u64::from(RATE_HZ);
        assert!((end_ns..end_ns + SECOND_NS / 50).contains(&at_ns), "{at_ns}");
    }
}

proptest! {
    #[test]
    fn however_often_it_moves_no_byte_is_lost_and_time_never_goes_back(
        steps in prop::collection::vec((1..300_u64, 0..3_usize, 8..16_u32), 1..30),
    ) {
        let mut playback = playback(0);
        let (mut written, mut last, mut heard) = (0, 0, Vec::new());
        for (passed_ms, action, capacity) in steps {
            let now_ns = playback.output.now_ns + passed_ms * 1_000_000;
            playback.pass(now_ns);
            let times = playback.times(now_ns);
            prop_assert!(times.read_index >= last, "{} after {last}", times.read_index);
            last = times.read_index;
            match action {
                0 => {
                    heard.extend(&numbers(&playback)[..playback.output.heard() as usize]);
                    go_on(&mut playback, 1 << capacity);
                    prop_assert_eq!(playback.times(now_ns).read_index, last);
                }
                _ if written < 25_000 => {
                    playback.put(&bytes(written, 4000));
                    written += 4000;
                }
                _ => {}
            }
        }
        let end_ns = playback.output.now_ns + 5 * SECOND_NS;
        playback.pass(end_ns);
        heard.extend(numbers(&playback));
        prop_assert_eq!(playback.times(end_ns).read_index, 2 * written as i64);
        prop_assert_eq!(heard, (1..=written).collect::<Vec<_>>());
    }
}
