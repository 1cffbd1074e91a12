//! Rings that are populated while their streams play.

use super::*;

fn long() -> NewStream {
    NewStream { depth_frames: 2 * 48_000, ..stereo() }
}

#[test]
fn a_stream_is_on_its_device_before_its_ring_is_populated() {
    let mut scenario = Scenario::new();
    let (number, shape) = scenario.open(1, long()).unwrap();
    scenario.begin(1, number, shape).unwrap();
    assert_eq!(scenario.ordered(), ["begin".into(), format!("add {number}")]);
    assert!(scenario.streams.are_populating());
    let mut pieces = 1;
    while scenario.streams.are_populating() {
        assert_eq!(scenario.calls(), 1, "to take it");
        scenario.streams.populate_next(0);
        pieces += 1;
    }
    assert_eq!(scenario.calls(), 2, "it can play on");
    assert_eq!(pieces, shape.bytes() / (128 << 10), "all but the header");
}

#[test]
fn a_short_ring_is_populated_at_once() {
    let mut scenario = Scenario::new();
    scenario.begun(1);
    assert!(!scenario.streams.are_populating());
}

#[test]
fn rings_are_populated_in_the_order_of_their_streams_and_no_longer_than_these_play() {
    let mut scenario = Scenario::new();
    let [first, second] = [1, 2].map(|peer| {
        let (number, shape) = scenario.open(peer, long()).unwrap();
        scenario.begin(peer, number, shape).unwrap();
        number
    });
    scenario.streams.populate_next(0);
    assert_eq!(scenario.streams.populating.streams(), [first, second]);
    scenario.streams.forget(first);
    assert_eq!(scenario.streams.populating.streams(), [second]);
    while scenario.streams.are_populating() {
        scenario.streams.populate_next(0);
    }
}
