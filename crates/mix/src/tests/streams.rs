//! Streams on a simulated card: every frame that leaves it is what the wishes say.

use proptest::prelude::*;
use rt::shm::Timing;
use rt::stream::{Gains, Wish};

use super::card::Faults;
use super::scenario::{CHANNELS, CYCLES, MS, RATE_HZ, Scenario, Shared};
use crate::Planes;

fn wishes() -> impl Strategy<Value = Wish> {
    prop_oneof![
        3 => Just(Wish::Run),
        2 => Just(Wish::Hold),
        2 => (0..10_000_000_u64).prop_map(|position| Wish::Splice { position }),
        2 => (0.0..2.0_f32, 0..5000_u32).prop_map(|(gain, ramp_frames)| Wish::Gain {
            gains: Gains::all(gain).unwrap(),
            ramp_frames
        }),
        1 => (0..96_000_u32).prop_map(|frames| Wish::Depth { frames }),
        1 => (0..1_000_000_u64).prop_map(|end| Wish::Drain { end }),
    ]
}

fn volumes() -> impl Strategy<Value = f32> {
    prop::sample::select(vec![0.0, 0.25, 1.0, 1.5])
}

fn routes() -> impl Strategy<Value = Vec<(usize, usize)>> {
    prop::collection::vec((0..CHANNELS, 0..CHANNELS), 0..4)
}

#[derive(Debug, Clone)]
enum Step {
    Wish(usize, Wish),
    Volume(usize, f32),
    DeviceVolume([f32; CHANNELS]),
    Route(usize, Vec<(usize, usize)>),
    Pass(u64),
    Graph(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (0..3_usize, wishes()).prop_map(|(stream, wish)| Step::Wish(stream, wish)),
        1 => (0..3_usize, volumes()).prop_map(|(stream, volume)| Step::Volume(stream, volume)),
        1 => [volumes(), volumes()].prop_map(Step::DeviceVolume),
        1 => (0..3_usize, routes()).prop_map(|(stream, routes)| Step::Route(stream, routes)),
        1 => (0..30_u64).prop_map(Step::Pass),
        1 => (0..800_u64).prop_map(Step::Pass),
        1 => (1..20_u64).prop_map(Step::Graph),
    ];
    prop::collection::vec(step, 1..40)
}

/// More than is ever played.
pub(super) const FAR: u64 = 1 << 40;

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn every_frame_that_leaves_the_card_is_what_the_wishes_say(
        steps in steps(),
        refused in prop::sample::select(vec![0_u64, 0, 128, 256]),
        coarse_frames in prop::sample::select(vec![0_u64, 0, 480]),
        drift_ppm in -200..200_i64,
    ) {
        let mut scenario = Scenario::new(3, FAR, Faults { coarse_frames, refused, drift_ppm, ..Faults::default() });
        for step in steps {
            match step {
                Step::Wish(stream, wish) => scenario.wish(stream, wish),
                Step::Volume(stream, volume) => scenario.set_volume(stream, volume),
                Step::DeviceVolume(volume) => scenario.set_device_volume(volume),
                Step::Route(stream, routes) => scenario.route(stream, routes.into_iter().collect()),
                Step::Pass(ms) => scenario.pass(ms * MS),
                // A refusing card cannot be taken back for the graph: it would wait for seconds.
                Step::Graph(cycles) if refused == 0 && coarse_frames == 0 => scenario.graph(cycles),
                Step::Graph(_) => {}
            }
        }
        scenario.pass(300 * MS);
        prop_assert_eq!(scenario.card.underruns, 0);
        scenario.check();
    }

    #[test]
    fn programs_of_the_graph_hear_what_the_device_plays(
        steps in prop::collection::vec((0..6_u64, prop::option::of(wishes()), 0..60_u64), 1..30),
    ) {
        let mut scenario = Scenario::new(2, FAR, Faults::default());
        scenario.streams[0].borrow_mut().hears = true;
        scenario.wish(0, Wish::Run);
        scenario.wish(1, Wish::Run);
        for (cycles, wish, pause_ms) in steps {
            let mut first = scenario.begin_graph();
            for cycle in 0..cycles {
                if let Some(wish) = wish.filter(|_| cycle == cycles / 2) {
                    let mut memory = scenario.streams[0].borrow_mut();
                    // Seeks go forward.
                    let position = memory.timing.until + 100_000;
                    memory.wish(match wish {
                        Wish::Splice { .. } => Wish::Splice { position },
                        _ => wish,
                    });
                }
                first = scenario.cycle(first);
            }
            scenario.end_graph();
            scenario.pass(pause_ms * MS);
        }
        scenario.pass(300 * MS);
        scenario.check();
        prop_assert!(scenario.check_heard(0) > 0);
        prop_assert!(scenario.streams[1].borrow().heard.is_empty());
    }
}

#[test]
fn a_player_sleeps_for_nearly_two_seconds_at_a_time() {
    let mut scenario = Scenario::new(1, FAR, Faults::default());
    scenario.wish(0, Wish::Run);
    scenario.pass(10_000 * MS);
    let before = scenario.wake_ups;
    scenario.pass(60_000 * MS);
    assert!(scenario.wake_ups - before <= 32, "{} in a minute", scenario.wake_ups - before);
    assert_eq!(scenario.card.underruns, 0);
    scenario.check();
}

#[test]
fn a_wish_is_heard_within_the_cards_safety() {
    let mut scenario = Scenario::new(1, FAR, Faults::default());
    scenario.wish(0, Wish::Run);
    scenario.pass(5000 * MS);
    for wish in [
        Wish::Hold,
        Wish::Run,
        Wish::Splice { position: 5_000_000 },
        Wish::Gain { gains: Gains::all(0.0).unwrap(), ramp_frames: 480 },
    ] {
        let played = scenario.card.played();
        scenario.wish(0, wish);
        let at = scenario.streams[0].borrow().acknowledged.last().unwrap().0;
        assert!(at - played <= 64, "{wish:?}: {} frames later", at - played);
        scenario.pass(3000 * MS);
    }
    scenario.check();
}

#[test]
fn a_card_that_fetches_little_plays_a_wish_after_that() {
    let faults = Faults { fetched_frames: Some(10), ..Faults::default() };
    let mut scenario = Scenario::new(1, FAR, faults);
    scenario.wish(0, Wish::Run);
    scenario.pass(5000 * MS);
    for wish in [Wish::Hold, Wish::Run, Wish::Splice { position: 5_000_000 }] {
        let played = scenario.card.played();
        scenario.wish(0, wish);
        let at = scenario.streams[0].borrow().acknowledged.last().unwrap().0;
        assert!(at - played <= 10, "{wish:?}: {} frames later", at - played);
        scenario.pass(3000 * MS);
    }
    assert_eq!(scenario.card.underruns, 0);
    scenario.check();
}

#[test]
fn positions_are_published_as_they_are_heard_whatever_is_wished() {
    let mut scenario = Scenario::new(1, FAR, Faults::default());
    scenario.wish(0, Wish::Run);
    scenario.pass(5000 * MS);
    let heard =
        |scenario: &Scenario| scenario.streams[0].borrow().timing.position_at(scenario.now_ns);
    let before = heard(&scenario);
    scenario.wish(0, Wish::Splice { position: 5_000_000 });
    let (at, start) = {
        let memory = scenario.streams[0].borrow();
        let (at, Wish::Splice { position }) = *memory.acknowledged.last().unwrap() else {
            panic!("a splice")
        };
        (at, position)
    };
    assert!(start > before);
    for _ in 0..150 {
        scenario.pass(10 * MS);
        // Times are rounded to nanoseconds.
        let expected = start + scenario.card.played() - at;
        assert!(heard(&scenario).abs_diff(expected) <= 1, "after a seek");
    }
    scenario.wish(0, Wish::Hold);
    let at = scenario.streams[0].borrow().acknowledged.last().unwrap().0;
    let holds = scenario.streams[0].borrow().timing;
    assert_eq!((holds.position_at(scenario.now_ns), holds.device_frame), (holds.until, at));
    scenario.pass(2000 * MS);
    assert_eq!(heard(&scenario), holds.until, "it holds");
    let stands = scenario.streams[0].borrow().timing.device_frame_at(scenario.now_ns);
    assert_eq!(stands, scenario.card.played(), "and so does the device");
    scenario.wish(0, Wish::Run);
    let at = scenario.streams[0].borrow().acknowledged.last().unwrap().0;
    scenario.pass(100 * MS);
    let expected = holds.until + scenario.card.played() - at;
    assert!(heard(&scenario).abs_diff(expected) <= 1, "it goes on");
}

#[test]
fn beyond_a_change_that_is_heard_later_no_position_is_known() {
    // A card that gives nothing back plays a second of what was rendered before.
    let faults = Faults { refused: 256, ..Faults::default() };
    let mut scenario = Scenario::new(1, FAR, faults);
    scenario.wish(0, Wish::Run);
    scenario.pass(3000 * MS);
    scenario.wish(0, Wish::Splice { position: 5_000_000 });
    let memory = scenario.streams[0].borrow();
    let at = memory.acknowledged.last().unwrap().0;
    let Timing { device_frame, position, until, .. } = memory.timing;
    assert!(at > device_frame + u64::from(RATE_HZ) / 20, "{at}: it is heard later");
    assert_eq!(until, position + at - device_frame);
}

#[test]
fn a_volume_is_heard_within_the_cards_safety() {
    let mut scenario = Scenario::new(2, FAR, Faults::default());
    scenario.wish(0, Wish::Run);
    scenario.wish(1, Wish::Run);
    scenario.pass(5000 * MS);
    for (stream, volume) in [(0, 0.5), (1, 0.0)] {
        let played = scenario.card.played();
        scenario.set_volume(stream, volume);
        let line = scenario.device.streams().nth(stream).unwrap().volume();
        assert!(line.changed_at() - played <= 64, "stream {stream}: too late");
        scenario.pass(3000 * MS);
        let played = scenario.card.played();
        scenario.set_device_volume([0.25 + volume, 0.75]);
        assert!(scenario.device.volume().changed_at() - played <= 64, "the device: too late");
        scenario.pass(3000 * MS);
    }
    scenario.check();
}

#[test]
fn other_routes_are_heard_within_the_cards_safety() {
    let mut scenario = Scenario::new(1, FAR, Faults::default());
    scenario.wish(0, Wish::Run);
    scenario.pass(5000 * MS);
    for pairs in [&[(1, 1)][..], &[], &[(0, 1), (1, 0)]] {
        let routes = pairs.iter().copied().collect();
        let played = scenario.card.played();
        scenario.route(0, routes);
        let (at, now) = *scenario.streams[0].borrow().routed.last().unwrap();
        assert!(now == routes && at - played <= 64, "{routes:?}: {} frames later", at - played);
        scenario.pass(3000 * MS);
    }
    scenario.check();
}

#[test]
fn a_thousand_programs_that_come_and_go_change_no_frame_of_a_player() {
    let mut scenario = Scenario::new(1, FAR, Faults::default());
    scenario.wish(0, Wish::Run);
    scenario.pass(3000 * MS);
    for round in 0..1000_u64 {
        scenario.graph(1 + round % 7);
        scenario.pass((round % 13) * MS);
    }
    scenario.pass(100 * MS);
    assert_eq!(scenario.card.underruns, 0);
    scenario.check();
}

#[test]
fn nothing_wakes_when_nothing_plays() {
    let mut scenario = Scenario::new(2, FAR, Faults::default());
    scenario.call();
    assert_eq!((scenario.wake_ns, scenario.device.is_parked()), (None, true));
    scenario.wish(0, Wish::Run);
    scenario.wish(1, Wish::Run);
    scenario.pass(500 * MS);
    scenario.wish(0, Wish::Hold);
    scenario.wish(1, Wish::Drain { end: 48_000 });
    scenario.pass(3000 * MS);
    assert_eq!((scenario.wake_ns, scenario.device.is_parked()), (None, true));
    let frames = scenario.card.frames();
    scenario.pass(60_000 * MS);
    assert_eq!(scenario.card.frames(), frames);
    // And it goes on where it stood.
    scenario.wish(0, Wish::Run);
    scenario.pass(500 * MS);
    assert_eq!(scenario.card.starts, 2);
    scenario.check();
}

#[test]
fn a_late_thread_wakes_earlier_from_then_on() {
    let mut scenario = Scenario::new(1, FAR, Faults::default());
    scenario.wish(0, Wish::Run);
    scenario.late_ns = 15 * MS;
    scenario.pass(20_000 * MS);
    scenario.late_ns = 50 * MS;
    scenario.pass(20_000 * MS);
    assert_eq!(scenario.card.underruns, 0, "the lead had grown before");
    scenario.check();
}

#[test]
fn a_device_that_may_render_20_ms_ahead_sleeps_through_most_of_them() {
    let mut scenario = Scenario::new(1, FAR, Faults::default());
    scenario.wish(0, Wish::Depth { frames: 960 });
    scenario.wish(0, Wish::Run);
    scenario.pass(2000 * MS);
    let before = scenario.wake_ups;
    scenario.pass(1000 * MS);
    let wake_ups = scenario.wake_ups - before;
    assert!((60..=80).contains(&wake_ups), "{wake_ups} wake-ups in a second");
    assert_eq!(scenario.card.underruns, 0);
    scenario.check();
}

#[test]
fn frames_written_in_time_are_heard_in_their_place() {
    let mut scenario = Scenario::new(1, 48_000, Faults::default());
    scenario.wish(0, Wish::Run);
    scenario.pass(900 * MS);
    // What is rendered reaches beyond the frames that are there.
    assert!(scenario.device.streams().next().is_some_and(|stream| !stream.plays_at(u64::MAX)));
    scenario.streams[0].borrow_mut().written = FAR;
    scenario.call();
    scenario.pass(2000 * MS);
    assert!(scenario.streams[0].borrow().misses.is_empty());
    scenario.check();
}

#[test]
fn a_stream_without_frames_waits_and_misses_none_of_its_own() {
    let mut scenario = Scenario::new(1, 48_000, Faults::default());
    scenario.wish(0, Wish::Run);
    scenario.pass(3000 * MS);
    assert!(scenario.device.is_parked(), "it has nothing to play");
    scenario.streams[0].borrow_mut().written = FAR;
    scenario.call();
    scenario.pass(1000 * MS);
    let memory = scenario.streams[0].borrow();
    let [miss] = memory.misses[..] else { panic!("{:?}", memory.misses) };
    assert_eq!(miss.position, 48_000, "all that there was has been heard");
    let Timing { device_frame, position, .. } = memory.timing;
    let heard_again = device_frame - (miss.device_frame + miss.frames);
    assert_eq!(position - miss.position, heard_again, "and goes on from there");
}

#[test]
fn a_short_sound_is_heard_to_its_end_if_the_drain_comes_late() {
    for (what, wait_ms) in [("before the fade is heard", 0), ("after it", 50)] {
        let mut scenario = Scenario::new(1, 480, Faults::default());
        scenario.wish(0, Wish::Run);
        scenario.pass(wait_ms * MS);
        scenario.wish(0, Wish::Drain { end: 480 });
        scenario.pass(1000 * MS);
        let memory = scenario.streams[0].borrow();
        assert_eq!(memory.timing.position, 480, "{what}");
        assert!(memory.misses.is_empty(), "{what}");
        assert!(scenario.device.is_parked(), "{what}");
    }
}

#[test]
fn frames_that_were_heard_may_be_overwritten() {
    let mut scenario = Scenario::new(1, FAR, Faults::default());
    scenario.wish(0, Wish::Run);
    scenario.pass(10_000 * MS);
    let Timing { position, .. } = scenario.streams[0].borrow().timing;
    assert!(position > 7 * 48_000);
    assert_eq!(scenario.streams[0].borrow().lowest, position);
    // A fade still needs what lies before the seek.
    scenario.wish(0, Wish::Splice { position: 10 * 48_000 });
    let (heard, memory) = (scenario.card.played(), scenario.streams[0].borrow());
    assert!(memory.lowest <= memory.timing.position && memory.lowest > heard - 100);
}

#[test]
fn a_program_that_follows_the_schedule_is_never_late() {
    for cycles in [0, 1] {
        let mut scenario = Scenario::new(1, 2 * 48_000, Faults::default());
        scenario.wish(0, Wish::Run);
        let mut writes = 0;
        for _ in 0..10_000 {
            scenario.graph(cycles);
            // It looks each 3 ms, and writes a second when the device needs it within 10 ms.
            scenario.pass(3 * MS);
            let now_ns = scenario.now_ns;
            let mut memory = scenario.streams[0].borrow_mut();
            let written = memory.written;
            if memory.schedule.due(written).is_some_and(|due| due.at_ns < now_ns + 10 * MS) {
                memory.written += 48_000;
                writes += 1;
            }
        }
        let memory = scenario.streams[0].borrow();
        assert_eq!(memory.misses, [], "{cycles} cycles");
        assert!((20..70).contains(&writes), "{writes} writes in half a minute or more");
    }
}

#[test]
fn a_program_that_writes_no_more_than_is_due_is_heard_whole_in_the_graph() {
    let mut scenario = Scenario::new(1, 4800, Faults::default());
    scenario.streams[0].borrow_mut().hears = true;
    scenario.wish(0, Wish::Run);
    scenario.pass(5 * MS);
    let mut first = scenario.begin_graph();
    for _ in 0..1000 {
        let next_ns = scenario.now_ns + 2 * MS;
        let mut memory = scenario.streams[0].borrow_mut();
        let due = memory.schedule.due(memory.written).filter(|due| due.at_ns < next_ns);
        memory.written = due.map_or(memory.written, |due| due.until);
        drop(memory);
        first = scenario.cycle(first);
    }
    scenario.streams[0].borrow_mut().written = FAR;
    scenario.end_graph();
    scenario.pass(1000 * MS);
    assert!(scenario.streams[0].borrow().misses.is_empty());
    assert!(scenario.check_heard(0) > 100_000);
    scenario.check();
}

#[test]
fn a_closed_stream_fades_out_and_comes_back_when_that_was_heard() {
    let mut scenario = Scenario::new(2, FAR, Faults::default());
    scenario.wish(0, Wish::Run);
    scenario.wish(1, Wish::Run);
    scenario.pass(3000 * MS);
    let closed = scenario.streams[0].clone();
    scenario.device.close(|memory| Shared::ptr_eq(memory, &closed));
    let at = scenario.card.played();
    // It obeys no more.
    scenario.wish(0, Wish::Gain { gains: Gains::all(2.0).unwrap(), ramp_frames: 0 });
    assert!(scenario.device.take_closed().is_none(), "its end is not heard yet");
    scenario.pass(3000 * MS);
    let stream = scenario.device.take_closed().expect("it is over");
    assert!(Shared::ptr_eq(stream.memory(), &closed));
    assert!(scenario.device.take_closed().is_none() && scenario.device.streams().count() == 1);
    // What was heard is what a hold at that frame says.
    let held = at + u64::from(scenario.card.safety());
    closed.borrow_mut().acknowledged.push((held, Wish::Hold));
    scenario.check();
}

#[test]
fn a_graph_that_was_late_is_in_time_again() {
    const QUANTUM: u64 = 64;
    let cycle_ns = QUANTUM * 1_000_000_000 / u64::from(RATE_HZ);
    let mut scenario = Scenario::new(1, FAR, Faults::default());
    scenario.wish(0, Wish::Run);
    scenario.pass(1000 * MS);
    scenario.device.begin_graph(scenario.now_ns, &mut scenario.card, CYCLES);
    let mut planes = Planes::new(CHANNELS, QUANTUM as usize);
    planes.silence(QUANTUM as usize);
    // Returns how far the device has come: a cycle, and the gap before it.
    let mut cycle = |late_ns: i64| {
        scenario.now_ns += cycle_ns.saturating_add_signed(late_ns);
        scenario.card.advance(scenario.now_ns);
        let before = scenario.device.rendered();
        scenario.device.play_graph(scenario.now_ns, &mut scenario.card, &planes);
        scenario.device.rendered() - before
    };
    // As late as a cycle, and in time again.
    let uneven = || [1_300_000, -1_300_000].into_iter().cycle().take(100);
    assert!(uneven().all(|late_ns| cycle(late_ns) == QUANTUM));
    assert!(cycle(10_000_000) > QUANTUM, "the card had run out");
    assert!(uneven().all(|late_ns| cycle(late_ns) == QUANTUM));
}
