//! How late the graph is heard on a card that starts its cycles.

use rt::stream::Wish;

use super::card::Faults;
use super::scenario::{CHANNELS, CYCLES, MS, QUANTUM, Scenario};
use super::streams::FAR;
use crate::{CardCycle, GraphCycles, Planes};

#[test]
fn a_program_of_the_graph_is_heard_as_late_as_without_streams() {
    // In async mode and in sync mode; and where the card's queue is too short for its safety.
    for (latency_frames, output_after, heard_after) in
        [(4 * QUANTUM, QUANTUM, 246), (4 * QUANTUM, 0, 182), (2 * QUANTUM, QUANTUM, 192)]
    {
        let mut scenario = Scenario::new(1, FAR, Faults::default());
        scenario.wish(0, Wish::Run);
        scenario.pass(3000 * MS);
        let played = scenario.card.played();
        scenario.card.cycle = Some(CardCycle { first: played - 10, latency_frames });
        let cycles = GraphCycles { frames: QUANTUM, output_after };
        let first = scenario.device.begin_graph(scenario.now_ns, &mut scenario.card, cycles);
        assert_eq!(first - played, heard_after);
    }
}

#[test]
fn cycles_after_one_that_was_too_late_are_heard_as_late_as_before() {
    let mut scenario = Scenario::new(1, FAR, Faults::default());
    scenario.wish(0, Wish::Run);
    scenario.pass(3000 * MS);
    // The card's cycle is due at its position, in this test.
    let due = |scenario: &mut Scenario| {
        let first = scenario.card.played();
        scenario.card.cycle = Some(CardCycle { first, latency_frames: 4 * QUANTUM });
        first
    };
    let begun = due(&mut scenario);
    let first = scenario.device.begin_graph(scenario.now_ns, &mut scenario.card, CYCLES);
    assert_eq!(first, begun + 4 * QUANTUM);
    scenario.pass(10 * MS);
    let next = due(&mut scenario);
    let mut planes = Planes::new(CHANNELS, QUANTUM as usize);
    planes.silence(QUANTUM as usize);
    scenario.device.play_graph(scenario.now_ns, &mut scenario.card, &planes);
    assert_eq!(scenario.card.frames(), next + 4 * QUANTUM, "of the cycle before");
}
