//! A loop that comes to a card on which the graph's cycles play already.

use rt::stream::Wish;

use super::card::Faults;
use super::scenario::{CHANNELS, MS, QUANTUM, Scenario};
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
