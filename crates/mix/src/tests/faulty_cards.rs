//! Cards that run out, go away, refuse, or report a wrong position.

use rt::shm::Timing;
use rt::stream::Wish;

use super::card::Faults;
use super::scenario::{MS, RATE_HZ, Scenario};
use super::streams::FAR;

#[test]
fn a_card_that_ran_out_costs_time_and_no_frame_of_a_stream() {
    let mut scenario = Scenario::new(1, FAR, Faults::default());
    scenario.wish(0, Wish::Run);
    scenario.pass(5000 * MS);
    scenario.late_ns = 3000 * MS;
    scenario.pass(9000 * MS);
    scenario.late_ns = 0;
    scenario.pass(9000 * MS);
    let lost = scenario.device.take_lost_frames();
    assert!(lost > 0);
    let Timing { device_frame, position, .. } = scenario.streams[0].borrow().timing;
    assert_eq!(position + lost, device_frame, "it went on where it was");
}

#[test]
fn a_card_that_is_opened_late_begins_with_the_first_frame() {
    let mut scenario = Scenario::new(1, FAR, Faults::default());
    scenario.card.is_closed = true;
    scenario.call();
    assert!(!scenario.card.is_wanted, "nothing plays");
    scenario.wish(0, Wish::Run);
    assert!(scenario.card.is_wanted);
    scenario.pass(80 * MS);
    assert_eq!((scenario.wake_ns, scenario.card.frames()), (None, 0));
    scenario.card.is_there = true;
    scenario.call();
    scenario.pass(3000 * MS);
    assert!(scenario.card.played() > 2 * u64::from(RATE_HZ));
    assert_eq!(scenario.card.underruns, 0);
    scenario.check();
}

#[test]
fn a_card_that_was_away_costs_time_and_no_frame_of_a_stream() {
    let mut scenario = Scenario::new(2, FAR, Faults::default());
    scenario.wish(0, Wish::Run);
    for round in 0..40 {
        scenario.pass((50 + 97 * round) % 1500 * MS);
        scenario.wish(1, if round % 2 == 0 { Wish::Run } else { Wish::Hold });
        scenario.card.lose();
        scenario.call();
        assert!(scenario.device.is_parked() && scenario.card.is_wanted);
        if round % 3 == 0 {
            scenario.wish(1, Wish::Splice { position: 1000 * round });
        }
        scenario.pass(40 * MS);
        scenario.card.is_there = true;
        scenario.call();
    }
    scenario.pass(3000 * MS);
    assert!(scenario.card.played() > 20 * u64::from(RATE_HZ));
    scenario.check();
}

#[test]
fn a_pointer_that_stands_and_then_jumps_changes_no_frame() {
    let mut scenario = Scenario::new(1, FAR, Faults::default());
    scenario.wish(0, Wish::Run);
    scenario.pass(3000 * MS);
    for round in 1..40 {
        scenario.card.stands_at = Some(scenario.card.played());
        // Less than what is queued: a second after a change, and then two.
        scenario.pass((17 * round) % 600 * MS);
        scenario.card.stands_at = None;
        scenario.call();
        scenario.pass(round % 5 * MS);
    }
    assert_eq!(scenario.card.underruns, 0);
    let wake_ups = scenario.wake_ups;
    assert!(wake_ups < 200, "{wake_ups} wake-ups in half a minute");
    scenario.check();
}

#[test]
fn what_a_card_refuses_is_counted_from_what_it_has() {
    let faults = Faults { refused: 128, ..Faults::default() };
    let mut scenario = Scenario::new(2, FAR, faults);
    scenario.wish(1, Wish::Run);
    scenario.pass(21 * MS);
    // Obeyed at the end of what is rendered, which the next wish takes back.
    scenario.wish(1, Wish::Depth { frames: 1608 });
    scenario.wish(1, Wish::Hold);
    scenario.wish(0, Wish::Run);
    scenario.pass(300 * MS);
    scenario.check();
}

#[test]
fn only_the_first_change_waits_long_for_a_card_that_gives_little_back() {
    let ahead_after_a_change = |refused| {
        let mut scenario = Scenario::new(1, FAR, Faults { refused, ..Faults::default() });
        scenario.wish(0, Wish::Run);
        scenario.pass(5000 * MS);
        scenario.set_device_volume([0.5; 2]);
        scenario.pass(5000 * MS);
        scenario.check();
        scenario.device.rendered() - scenario.card.played()
    };
    let tenth = u64::from(RATE_HZ) / 10;
    for refused in [256, 200] {
        let ahead = ahead_after_a_change(refused);
        assert!(ahead <= tenth, "{ahead} frames, and {refused} of 256 are refused");
    }
    let ahead = ahead_after_a_change(64);
    assert!(ahead > 10 * tenth, "{ahead} frames: most was given back");
}
