//! A loop that comes to a card on which the graph's cycles play already.

use rt::stream::Wish;

use super::card::Faults;
use super::scenario::{CHANNELS, MS, QUANTUM, RATE_HZ, Scenario, sample};
use super::streams::FAR;
use crate::{Card, Planes};

/// Frames that the card has when the loop comes.
const QUEUED: usize = 3 * QUANTUM as usize;

/// A card that has read 48 frames of what the graph has played, and a stream that is to begin.
fn playing() -> Scenario {
    let mut scenario = Scenario::new(1, FAR, Faults::default());
    let mut planes = Planes::new(CHANNELS, QUEUED);
    planes.silence(QUEUED);
    (0..CHANNELS).for_each(|channel| planes.channel_mut(channel).fill(0.5));
    scenario.card.write(0, &planes);
    scenario.card.start(scenario.now_ns);
    scenario.graph_played.push((0, vec![0.5; QUEUED * CHANNELS]));
    scenario.pass(MS);
    scenario.streams[0].borrow_mut().wish(Wish::Run);
    scenario
}

#[test]
fn the_graph_follows_what_it_has_queued_before_the_first_stream() {
    let mut scenario = playing();
    let mut first = scenario.begin_graph();
    assert_eq!(first, QUEUED as u64);
    (0..100).for_each(|_| first = scenario.cycle(first));
    assert_eq!(first, QUEUED as u64 + 100 * QUANTUM, "no frame between");
    assert_eq!((scenario.card.starts, scenario.card.underruns), (1, 0));
    scenario.check();
}

#[test]
fn what_was_queued_before_the_first_stream_is_not_taken_back_by_a_wish() {
    let mut scenario = playing();
    let mut first = scenario.begin_graph();
    scenario.wish(0, Wish::Hold);
    scenario.wish(0, Wish::Run);
    assert_eq!(scenario.card.rewinds, 0);
    (0..8).for_each(|_| first = scenario.cycle(first));
    scenario.end_graph();
    scenario.pass(100 * MS);
    assert_eq!(scenario.card.underruns, 0);
    scenario.check();
}

/// Frames that a card has room for that was opened for cycles.
const ROOM: u32 = 2 * QUEUED as u32;

/// A stream that plays on a card which was opened for cycles, after the graph has left.
fn left_by_the_graph() -> Scenario {
    let mut scenario = playing();
    scenario.card.room_of_cycles = Some(ROOM);
    let mut first = scenario.begin_graph();
    (0..100).for_each(|_| first = scenario.cycle(first));
    scenario.end_graph();
    scenario.pass(3000 * MS);
    assert!(scenario.card.room_of_cycles.is_some(), "it is heard");
    scenario
}

#[test]
fn a_card_that_the_graph_has_left_becomes_deep_in_a_silence_and_no_frame_is_lost() {
    let mut scenario = left_by_the_graph();
    scenario.set_device_volume([0.0; CHANNELS]);
    scenario.pass(90 * MS);
    assert!(scenario.card.room_of_cycles.is_some(), "the silence may be shorter");
    scenario.pass(60 * MS);
    assert!(scenario.card.room_of_cycles.is_none() && scenario.device.is_parked());
    let rendered = scenario.device.rendered();
    scenario.call();
    assert!(scenario.card.is_wanted);
    scenario.pass(50 * MS);
    assert_eq!(scenario.device.rendered(), rendered, "streams wait for it");
    scenario.card.is_there = true;
    scenario.call();
    scenario.set_device_volume([1.0; CHANNELS]);
    scenario.pass(3000 * MS);
    assert!(scenario.device.rendered() - scenario.card.played() > 10 * u64::from(ROOM), "deep");
    assert_eq!((scenario.card.underruns, scenario.device.take_lost_frames()), (0, 0));
    scenario.check();
}

/// Sound, but for the seventh second.
fn pausing(seed: u64, position: u64, channel: usize) -> f32 {
    if position / u64::from(RATE_HZ) == 6 { 0.0 } else { sample(seed, position, channel) }
}

#[test]
fn a_card_that_gave_nothing_back_renders_far_ahead_once_it_is_deep() {
    let mut scenario = playing();
    scenario.streams[0].borrow_mut().sound = pausing;
    scenario.card.room_of_cycles = Some(ROOM);
    scenario.card.faults.refused = 256;
    let mut first = scenario.begin_graph();
    (0..100).for_each(|_| first = scenario.cycle(first));
    scenario.set_volume(0, 0.5);
    scenario.end_graph();
    scenario.pass(6500 * MS);
    assert!(scenario.card.room_of_cycles.is_none(), "in the pause");
    scenario.card.faults.refused = 0;
    scenario.card.is_there = true;
    scenario.call();
    scenario.pass(500 * MS);
    assert!(scenario.device.rendered() - scenario.card.played() > u64::from(RATE_HZ), "deep");
}

#[test]
fn a_card_that_the_graph_has_left_stays_as_it_is_for_a_stream_that_needs_a_short_queue() {
    let mut scenario = left_by_the_graph();
    scenario.wish(0, Wish::Depth { frames: ROOM });
    scenario.set_device_volume([0.0; CHANNELS]);
    scenario.pass(3000 * MS);
    assert!(scenario.card.room_of_cycles.is_some());
    scenario.check();
}

#[test]
fn a_card_that_runs_the_graphs_cycles_is_not_opened_again_in_a_silence() {
    let mut scenario = left_by_the_graph();
    scenario.set_device_volume([0.0; CHANNELS]);
    let mut first = scenario.begin_graph();
    (0..1000).for_each(|_| first = scenario.cycle(first));
    assert!(scenario.card.room_of_cycles.is_some());
    scenario.check();
}
