//! Which bytes are where.

use client::stream::Wish;
use proptest::prelude::*;

use super::*;
use crate::output::Output as _;

/// The samples from a position of the ring on, as numbers.
fn numbers(playback: &Playback<Card>, from: usize) -> Vec<i32> {
    let samples = &playback.output.samples[from..];
    samples.iter().map(|sample| (sample * 32_768.0) as i32).collect()
}

#[test]
fn samples_go_into_the_ring_in_their_order_however_they_are_cut() {
    let mut playback = playback(0);
    bytes(0, 5000).chunks(777).for_each(|piece| playback.put(piece));
    assert_eq!(numbers(&playback, 0), (1..=5000).collect::<Vec<_>>());
    assert_eq!(playback.times(0).write_index, 10_000);
}

#[test]
fn what_a_small_ring_has_no_room_for_waits() {
    let mut playback = playback(0);
    playback.output = Card::new(1024);
    playback.put(&bytes(0, 4000));
    assert_eq!(playback.output.written(), 1024);
    playback.pass(SECOND_NS);
    assert_eq!(numbers(&playback, 0), (1..=4000).collect::<Vec<_>>());
    assert_eq!(playback.output.heard(), 4000);
}

#[test]
fn a_flush_throws_away_what_is_not_heard() {
    let mut playback = playback(1000);
    playback.put(&bytes(0, RATE_HZ as usize));
    playback.pass(SECOND_NS / 2);
    playback.flush(SECOND_NS / 2);
    let times = playback.times(SECOND_NS / 2);
    assert_eq!((times.write_index, times.read_index), (SECOND as i64 / 2, SECOND as i64 / 2));
    let position = u64::from(RATE_HZ);
    assert_eq!(playback.output.obeyed[1..], [Wish::Hold, Wish::Splice { position }]);
    playback.put(&bytes(7, 1000));
    assert_eq!(playback.output.obeyed[3..], [Wish::Run]);
    assert_eq!(numbers(&playback, RATE_HZ as usize), (8..1008).collect::<Vec<_>>());
    playback.pass(SECOND_NS / 2 + SECOND_NS / 100);
    assert_eq!(playback.times(SECOND_NS / 2 + SECOND_NS / 100).read_index, SECOND as i64 / 2 + 960);
}

#[test]
fn a_gap_is_silence_and_what_is_written_back_is_replaced() {
    for mut playback in each(DEFAULT_PREBUFFER) {
        playback.put(&bytes(0, 3));
        playback.write(Seek::Relative(4), &bytes(10, 1), 0);
        assert_eq!(numbers(&playback, 0), [1, 2, 3, 0, 0, 11]);
        playback.write(Seek::Absolute(20), &bytes(20, 1), 0);
        assert_eq!(numbers(&playback, 6), [0, 0, 0, 0, 21]);
        playback.write(Seek::OnRead(0), &bytes(30, 2), 0);
        assert_eq!(playback.times(0).write_index, 4);
        assert_eq!(playback.output.obeyed, [Wish::Splice { position: 11 }]);
        assert_eq!(numbers(&playback, 11), [31, 32]);
    }
}

/// Plays what [`Card`] has heard of samples that are numbered, as runs of consecutive ones: the
/// first of each, and how many.
fn runs(samples: &[i32]) -> Vec<(i32, usize)> {
    let mut runs: Vec<(i32, usize)> = Vec::new();
    for sample in samples {
        match runs.last_mut() {
            Some((first, count)) if *first + *count as i32 == *sample => *count += 1,
            _ => runs.push((*sample, 1)),
        }
    }
    runs
}

#[test]
fn what_is_written_back_is_heard_in_its_place_and_what_is_left_of_the_rest_after_it() {
    for mut playback in each(1000) {
        playback.put(&bytes(0, 24_000));
        playback.pass(SECOND_NS / 10);
        let now_ns = playback.output.now_ns;
        // 10 ms are written again at 0.3 s, of which 0.1 s are heard.
        let back = Seek::Absolute(2 * 14_400);
        playback.write(back, &bytes(26_000, 480), now_ns);
        assert_eq!(playback.times(now_ns).write_index, 2 * 14_880);
        playback.write(Seek::OnEnd(0), &bytes(24_000, 1000), now_ns);
        // What was heard meanwhile is not written again.
        let again = numbers(&playback, 24_000);
        let obeyed = runs(&again)[0].0;
        assert!((4800..=4800 + 480).contains(&obeyed), "{obeyed}");
        let until = 14_401 - obeyed;
        let expected = [(obeyed, until as usize), (26_001, 480), (14_881, 10_120)];
        assert_eq!(runs(&again), expected);
    }
}

#[test]
fn what_is_written_back_is_in_its_place_while_the_device_publishes_positions() {
    for mut playback in each(1000) {
        playback.put(&bytes(0, 24_000));
        playback.pass(SECOND_NS / 10);
        playback.output.hurries_by = 48;
        let back = Seek::Absolute(2 * 14_400);
        playback.write(back, &bytes(26_000, 480), playback.output.now_ns);
        let again = numbers(&playback, 24_000);
        let until = 14_401 - again[0];
        let expected = [(again[0], until as usize), (26_001, 480)];
        assert_eq!(runs(&again), expected);
    }
}

#[test]
fn a_program_that_goes_back_with_every_byte_has_its_buffer_converted_now_and_then() {
    let mut playback = playback(1000);
    playback.put(&bytes(0, 48_000));
    playback.pass(SECOND_NS / 10);
    let now_ns = playback.output.now_ns;
    for _ in 0..1000 {
        playback.write(Seek::Relative(-2), &bytes(0, 1), now_ns);
    }
    assert!(playback.output.written() < 5 * 48_000, "{}", playback.output.written());
    playback.put(&bytes(0, 24_000));
    playback.pass(SECOND_NS / 2);
    // A while later.
    let (now_ns, written) = (playback.output.now_ns, playback.output.written());
    playback.write(Seek::Relative(-2), &bytes(0, 1), now_ns);
    assert!(playback.output.written() > written + 1000);
}

#[test]
fn what_is_written_over_what_is_heard_already_is_heard_at_once() {
    for mut playback in each(1000) {
        playback.put(&bytes(0, 24_000));
        playback.pass(SECOND_NS / 10);
        let now_ns = playback.output.now_ns;
        playback.write(Seek::Absolute(2 * 1000), &bytes(26_000, 480), now_ns);
        playback.write(Seek::Relative(2), &bytes(27_000, 1), now_ns);
        assert_eq!(runs(&numbers(&playback, 24_000)), [(26_001, 480), (0, 1), (27_001, 1)]);
    }
}

#[test]
fn bytes_beyond_the_limit_are_refused() {
    let mut playback = playback(DEFAULT_PREBUFFER);
    let most = playback.attributes().max_length as usize;
    let ready = playback.pace().bytes(playback.attributes().sink_latency_us) as usize;
    playback.put(&vec![0; most + ready]);
    assert_eq!(playback.take_notices().last(), None);
    playback.put(&[0; 2]);
    assert_eq!(playback.take_notices(), [Notice::Overflow]);
    playback.write(Seek::Relative(i64::MAX), &[], 0);
    assert_eq!(playback.take_notices(), [Notice::Overflow]);
    assert_eq!(playback.times(0).write_index, (most + ready) as i64);
}

#[test]
fn another_rate_holds_for_what_is_written_afterwards() {
    let [_, mut playback, _] = each(0);
    playback.put(&bytes(0, 4800));
    playback.set_rate(96_000, true).expect("possible");
    playback.put(&bytes(0, 9600));
    playback.drain(1, 0);
    assert_eq!(playback.output.written(), 9600);
    playback.pass(SECOND_NS * 3 / 20);
    assert_eq!(playback.times(SECOND_NS * 3 / 20).read_index, 2 * (4800 + 4800));
    assert!(playback.set_rate(0, true).is_err());
}

const DEFAULT_PREBUFFER: u32 = u32::MAX;

#[derive(Debug, Clone)]
enum Step {
    Write(Seek, usize),
    Cork(bool),
    Flush,
    Trigger,
    Prebuffer,
    Drain,
    Pass(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let seek = prop_oneof![
        4 => Just(Seek::Relative(0)),
        1 => (-9000..9000_i64).prop_map(Seek::Relative),
        1 => (-9000..90_000_i64).prop_map(Seek::OnRead),
        1 => (-9000..9000_i64).prop_map(Seek::OnEnd),
    ];
    let step = prop_oneof![
        6 => (seek, 0..60_000_usize).prop_map(|(seek, length)| Step::Write(seek, length)),
        1 => any::<bool>().prop_map(Step::Cork),
        1 => Just(Step::Flush),
        1 => Just(Step::Trigger),
        1 => Just(Step::Prebuffer),
        1 => Just(Step::Drain),
        6 => (0..SECOND_NS).prop_map(Step::Pass),
    ];
    prop::collection::vec(step, 0..60)
}

proptest! {
    #[test]
    fn nothing_that_a_program_does_makes_indices_wrong_or_a_look_endless(
        prebuffer in prop_oneof![Just(0), Just(DEFAULT_PREBUFFER), 1..20_000_u32],
        capacity in prop_oneof![Just(1024), Just(65_536), Just(524_288_u64)],
        steps in steps(),
    ) {
        let mut playback = playback(prebuffer);
        playback.output = Card::new(capacity);
        let mut tag = 0;
        let mut open_drains = 0_i32;
        for step in steps {
            let now_ns = playback.output.now_ns;
            match step {
                Step::Write(seek, length) => playback.write(seek, &vec![1; length], now_ns),
                Step::Cork(corks) => playback.cork(corks, now_ns),
                Step::Flush => playback.flush(now_ns),
                Step::Trigger => playback.trigger(now_ns),
                Step::Prebuffer => playback.prebuffer(now_ns),
                Step::Drain => {
                    tag += 1;
                    open_drains += 1;
                    playback.drain(tag, now_ns);
                }
                Step::Pass(ns) => {
                    let notices = playback.pass(now_ns + ns);
                    let drained = notices.iter()
                        .filter(|(_, notice)| matches!(notice, Notice::Drained { .. }));
                    open_drains -= drained.count() as i32;
                }
            }
            let times = playback.times(playback.output.now_ns);
            prop_assert!(times.read_index <= times.write_index);
        }
        // Whatever happened, a drain is answered once its stream may play.
        let now_ns = playback.output.now_ns;
        playback.cork(false, now_ns);
        let notices = playback.pass(now_ns + 60 * SECOND_NS);
        let drained = notices.iter().filter(|(_, notice)| matches!(notice, Notice::Drained { .. }));
        prop_assert_eq!(open_drains, drained.count() as i32);
    }
}
