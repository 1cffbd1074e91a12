//! Rings that are populated while their streams play.

use super::devices::notices;
use super::*;

fn long() -> NewStream {
    NewStream { depth_frames: 2 * 48_000, ..stereo() }
}

impl Scenario {
    fn long(&mut self, peer: u64) -> u32 {
        let (number, shape) = self.open(peer, long()).unwrap();
        self.begin(peer, number, shape).unwrap();
        number
    }

    /// Populates the next piece; returns whether there is more.
    fn populate(&mut self) -> bool {
        let Some(due_ns) = self.streams.populate(|| 0) else { return false };
        self.streams.populate(|| due_ns).is_some()
    }
}

#[test]
fn a_stream_is_on_its_device_before_its_ring_is_populated() {
    let mut scenario = Scenario::new();
    let number = scenario.long(1);
    assert_eq!(scenario.ordered(), ["begin".into(), format!("add {number}")]);
    assert!(scenario.populate());
    assert_eq!(scenario.calls(), 0);
    while scenario.populate() {}
    assert_eq!(scenario.calls(), 1, "it can play on");
}

#[test]
fn a_short_ring_is_populated_at_once() {
    let mut scenario = Scenario::new();
    scenario.begun(1);
    assert!(!scenario.populate());
}

#[test]
fn this_thread_rests_before_each_piece() {
    let mut scenario = Scenario::new();
    scenario.long(1);
    let first_ns = scenario.streams.populate(|| 5).unwrap();
    assert!(first_ns > 5);
    assert_eq!(scenario.streams.populate(|| first_ns - 1), Some(first_ns));
    let second_ns = scenario.streams.populate(|| first_ns).unwrap();
    assert!(second_ns > first_ns);
}

#[test]
fn a_ring_that_is_far_from_its_end_leaves_its_program_the_cpu() {
    let mut scenario = Scenario::new();
    let begun_ns = now_ns();
    scenario.long(1);
    let due_ns = scenario.streams.populate(|| begun_ns).unwrap();
    assert!(due_ns > begun_ns + 2_000_000, "{} ns", due_ns - begun_ns);
    assert!(due_ns <= begun_ns + 3_000_000, "{} ns", due_ns - begun_ns);
}

#[test]
fn streams_that_begin_at_once_all_have_their_pieces_before_they_come_to_their_ends() {
    /// How long a slow machine takes for a piece, ns.
    const PIECE_NS: u64 = 200_000;
    for streams in [1, 8, 64] {
        let mut scenario = Scenario::new();
        let begun_ns = now_ns();
        let streams: Vec<u32> = (0..streams).map(|peer| scenario.long(peer)).collect();
        let mut at_ns = begun_ns;
        while let Some(due_ns) = scenario.streams.populate(|| at_ns) {
            at_ns = if due_ns > at_ns { due_ns } else { at_ns + PIECE_NS };
            for stream in &streams {
                let populated = scenario.streams.populating.populated_frames(*stream);
                let played = (at_ns - begun_ns) * 48 / 1_000_000;
                assert!(populated.is_none_or(|frames| frames > played), "stream {stream}");
            }
        }
    }
}

#[test]
fn a_stream_that_begins_keeps_no_other_ring_from_being_populated() {
    let mut scenario = Scenario::new();
    let first = scenario.long(1);
    let frames = |scenario: &Scenario| scenario.streams.populating.populated_frames(first).unwrap();
    let before = frames(&scenario);
    let due_ns = scenario.streams.populate(|| 5).unwrap();
    scenario.long(2);
    scenario.streams.populate(|| due_ns);
    assert!(frames(&scenario) > before);
}

#[test]
fn the_ring_that_runs_out_first_comes_first() {
    let mut scenario = Scenario::new();
    let [first, second] = [scenario.long(1), scenario.long(2)];
    let frames = |scenario: &Scenario, stream: u32| {
        let rings = &scenario.streams.populating;
        rings.populated_frames(stream)
    };
    for _ in 0..6 {
        scenario.populate();
    }
    let both = [first, second].map(|stream| frames(&scenario, stream).unwrap());
    assert_eq!(both[0], both[1], "they began within a piece of each other");
    assert_eq!(scenario.streams.close(1, first), Ok(()));
    assert_eq!(frames(&scenario, first), None, "it fades out");
    while scenario.populate() {}
}

#[test]
fn a_stream_without_memory_is_reported_when_it_has_ended() {
    let mut scenario = Scenario::new();
    let _other = devices::add(&mut scenario, "other");
    for moves in [false, true] {
        let number = scenario.long(1);
        if moves {
            let (to, all) = (Some("other"), Permissions::ALL);
            let device = device(2);
            scenario.streams.begin_move((1, process(1)), all, number, to, &device).unwrap();
        }
        let cut = |scenario: &mut Scenario| scenario.streams.cut(number);
        assert!(!notices(&mut scenario, Watched::Devices, cut), "there is nothing to see yet");
        assert_eq!(scenario.ordered().last(), Some(&format!("close {number}")));
        let returned = |scenario: &mut Scenario| scenario.streams.take_returns();
        assert!(notices(&mut scenario, Watched::Devices, returned));
        assert!(scenario.streams.is_empty());
        scenario.ordered();
    }
}
