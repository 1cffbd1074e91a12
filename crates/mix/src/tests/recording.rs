//! Record streams: what leaves the device, frame for frame, and what the graph brings.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use rt::shm::{Miss, Schedule, Timing};
use rt::stream::{Gains, Wish};

use super::card::Faults;
use super::scenario::{CHANNELS, FADE, MS, QUANTUM, RATE_HZ, Scenario};
use crate::{FrameHistory, NumberedWish, RecordMemory, Recorder, Source};

/// The memory of a record stream, shared with the test, which is the program.
pub(super) type Recording = Rc<RefCell<Recorded>>;

#[derive(Debug, Default)]
pub(super) struct Recorded {
    wishes: VecDeque<NumberedWish>,
    wished: u64,
    acknowledged: Vec<Option<u64>>,
    volume: f32,
    channels: [Vec<f32>; CHANNELS],
    begun: u64,
    finished: u64,
    misses: Vec<Miss>,
    timing: Timing,
    schedule: Schedule,
}

impl RecordMemory for Recording {
    fn channels(&self) -> usize {
        CHANNELS
    }

    fn next_wish(&mut self) -> Option<NumberedWish> {
        self.borrow_mut().wishes.pop_front()
    }

    fn acknowledge(&mut self, number: u64, device_frame: Option<u64>) {
        let mut recorded = self.borrow_mut();
        assert_eq!(number, recorded.acknowledged.len() as u64 + 1, "in order");
        recorded.acknowledged.push(device_frame);
    }

    fn volume(&self) -> f32 {
        self.borrow().volume
    }

    fn begin(&mut self, end: u64) {
        self.borrow_mut().begun = end;
    }

    fn write(&mut self, channel: usize, position: u64, samples: &[f32]) {
        let mut recorded = self.borrow_mut();
        assert!(position + samples.len() as u64 <= recorded.begun, "announced");
        assert_eq!(recorded.channels[channel].len() as u64, position, "one after the other");
        recorded.channels[channel].extend_from_slice(samples);
    }

    fn finish(&mut self, end: u64) {
        let mut recorded = self.borrow_mut();
        assert!(recorded.channels.iter().all(|channel| channel.len() as u64 == end));
        recorded.finished = end;
    }

    fn note_miss(&mut self, miss: Miss) {
        self.borrow_mut().misses.push(miss);
    }

    fn publish(&mut self, timing: Timing, schedule: Schedule) {
        let mut recorded = self.borrow_mut();
        (recorded.timing, recorded.schedule) = (timing, schedule);
    }
}

fn recorder(scenario: &mut Scenario, source: Source, interval_frames: u32) -> Recording {
    opened(scenario, source, interval_frames, |recorder| recorder)
}

fn opened(
    scenario: &mut Scenario,
    source: Source,
    interval_frames: u32,
    as_wanted: impl FnOnce(Recorder<Recording>) -> Recorder<Recording>,
) -> Recording {
    let memory = Recording::new(RefCell::new(Recorded { volume: 1.0, ..Recorded::default() }));
    if source == Source::Monitor {
        let frames = 4 * RATE_HZ as usize;
        scenario.device.recorders_mut().set_monitor(Box::new(FrameHistory::new(CHANNELS, frames)));
    }
    let recorder = Recorder::new(memory.clone(), source, vec![0, 1], interval_frames, FADE);
    let recorder = as_wanted(recorder);
    assert!(scenario.device.recorders_mut().add(Box::new(recorder)).is_ok());
    memory
}

fn wish(scenario: &mut Scenario, memory: &Recording, wish: Wish) -> Option<u64> {
    let number = {
        let mut recorded = memory.borrow_mut();
        recorded.wished += 1;
        let number = recorded.wished;
        recorded.wishes.push_back(NumberedWish { number, wish: Some(wish) });
        number
    };
    scenario.call();
    memory.borrow().acknowledged[number as usize - 1]
}

/// Compares a recording with what the hardware has read from device frame `first` on.
fn check(scenario: &Scenario, memory: &Recording, first: u64) {
    let recorded = memory.borrow();
    assert!(recorded.finished > 0 && recorded.misses.is_empty());
    for (channel, samples) in recorded.channels.iter().enumerate() {
        let written = scenario.card.written.iter().skip(channel).step_by(CHANNELS);
        let heard: Vec<f32> = written.skip(first as usize).copied().collect();
        let same = samples.iter().zip(&heard).take_while(|(one, other)| one == other).count();
        assert_eq!(same, samples.len().min(heard.len()), "channel {channel} from {first} on");
        assert!(samples[same..].iter().all(|sample| *sample == 0.0), "and silence");
    }
}

const FAR: u64 = 1 << 40;

#[test]
fn a_monitor_gets_what_was_heard_however_often_it_was_rendered_again() {
    for coarse_frames in [0, 480] {
        let heard = Faults { coarse_frames, ..Faults::default() };
        let recorded = monitored(heard);
        // What would be heard, if nothing is mixed without the monitor.
        assert!(recorded == monitored(Faults { is_unheard: true, ..heard }));
    }
}

/// Records a device while everything about its streams changes, and returns what was recorded,
/// which is what the card has.
fn monitored(faults: Faults) -> [Vec<f32>; CHANNELS] {
    let coarse_frames = faults.coarse_frames;
    let mut scenario = Scenario::new(2, FAR, faults);
    scenario.wish(0, Wish::Run);
    scenario.pass(3000 * MS);
    let memory = recorder(&mut scenario, Source::Monitor, 4800);
    let first = wish(&mut scenario, &memory, Wish::Run).expect("it begins");
    let safety = u64::from(scenario.card.safety());
    assert!(first <= scenario.card.played() + safety, "with what can be rendered again");
    for round in 0..20_u64 {
        scenario.pass((37 + 100 * (round % 3)) * MS);
        match round % 5 {
            0 => scenario.wish(1, Wish::Run),
            1 => scenario.wish(0, Wish::Splice { position: 3_000_000 }),
            2 => scenario.set_device_volume([0.5 + 0.01 * round as f32, 0.25]),
            3 => scenario.wish(1, Wish::Hold),
            _ if coarse_frames == 0 => scenario.graph(round),
            _ => scenario.wish(0, Wish::Gain { gains: Gains::all(0.5).unwrap(), ramp_frames: 100 }),
        }
    }
    scenario.pass(500 * MS);
    assert!(memory.borrow().finished + 3 * 4800 > scenario.card.played() - first);
    check(&scenario, &memory, first);
    assert_eq!(scenario.card.underruns, 0);
    let before = &scenario.card.written[..first as usize * CHANNELS];
    assert_eq!(before.iter().all(|sample| *sample == 0.0), faults.is_unheard, "not mixed");
    let recorded = memory.borrow();
    recorded.channels.clone()
}

#[test]
fn a_program_may_change_how_long_frames_wait_up_to_what_it_was_opened_with() {
    let mut scenario = Scenario::new(1, FAR, Faults::default());
    let memory = recorder(&mut scenario, Source::Monitor, 4800);
    wish(&mut scenario, &memory, Wish::Run).expect("it begins");
    for (frames, expected) in [(480, 480), (2400, 2400), (1 << 30, 4800), (0, 1)] {
        wish(&mut scenario, &memory, Wish::Depth { frames }).expect("obeyed");
        scenario.pass(20 * MS);
        assert_eq!(memory.borrow().schedule.interval_frames, expected);
    }
}

#[test]
fn a_monitor_of_a_silent_device_records_silence_for_as_long_as_it_runs() {
    let mut scenario = Scenario::new(1, FAR, Faults::default());
    let memory = recorder(&mut scenario, Source::Monitor, 4800);
    scenario.call();
    assert_eq!(scenario.wake_ns, None, "a stream that holds wakes nothing");
    let first = wish(&mut scenario, &memory, Wish::Run).expect("it begins");
    scenario.pass(3000 * MS);
    let before = scenario.wake_ups;
    scenario.pass(10_000 * MS);
    let wake_ups = scenario.wake_ups - before;
    assert!((80..=120).contains(&wake_ups), "{wake_ups}, not one each 100 ms");
    check(&scenario, &memory, first);
    let recorded = memory.borrow().finished;
    assert!((12 * 48_000..=13 * 48_000).contains(&recorded), "{recorded}");
    let held = wish(&mut scenario, &memory, Wish::Hold).expect("it ends");
    assert_eq!(memory.borrow().finished, held - first, "with the last frame that was heard");
    assert!(memory.borrow().timing.until <= memory.borrow().timing.position);
    scenario.pass(3000 * MS);
    assert_eq!((scenario.wake_ns, scenario.device.is_parked()), (None, true));
}

#[test]
fn a_monitor_that_lets_the_device_sleep_gets_what_is_heard_and_nothing_else() {
    let mut scenario = Scenario::new(1, FAR, Faults::default());
    let memory = opened(&mut scenario, Source::Monitor, 1920, Recorder::letting_sleep);
    let first = wish(&mut scenario, &memory, Wish::Run).expect("it begins");
    scenario.pass(3000 * MS);
    assert_eq!((scenario.wake_ns, scenario.device.is_parked()), (None, true));
    assert_eq!(memory.borrow().finished, 0, "nothing is heard");
    for _ in 0..3 {
        let before = memory.borrow().finished;
        scenario.wish(0, Wish::Run);
        scenario.pass(1000 * MS);
        let frames = memory.borrow().finished - before;
        assert!((46_000..=48_000).contains(&frames), "{frames} frames in a second");
        scenario.wish(0, Wish::Hold);
        scenario.pass(3000 * MS);
        assert_eq!((scenario.wake_ns, scenario.device.is_parked()), (None, true));
        let recorded = memory.borrow();
        assert!(recorded.timing.until <= recorded.timing.position, "nothing more is heard");
        assert_eq!(recorded.schedule.due(recorded.finished), None);
    }
    check(&scenario, &memory, first);
}

#[test]
fn a_device_that_only_a_monitor_keeps_awake_loses_no_frames_of_streams() {
    let mut scenario = Scenario::new(1, FAR, Faults::default());
    let memory = recorder(&mut scenario, Source::Monitor, 4800);
    wish(&mut scenario, &memory, Wish::Run);
    scenario.pass(1000 * MS);
    scenario.late_ns = 3000 * MS;
    scenario.pass(5000 * MS);
    assert_eq!(scenario.device.take_lost_frames(), 0);
}

#[test]
fn a_player_is_rendered_as_far_ahead_beside_a_monitor() {
    let mut scenario = Scenario::new(1, FAR, Faults::default());
    scenario.wish(0, Wish::Run);
    let memory = recorder(&mut scenario, Source::Monitor, 4800);
    wish(&mut scenario, &memory, Wish::Run);
    scenario.pass(5000 * MS);
    let ahead = scenario.device.rendered() - scenario.card.played();
    assert!(ahead > u64::from(RATE_HZ), "{ahead} frames");
}

#[test]
fn what_is_recorded_has_the_servers_volume_and_impossible_wishes_are_refused() {
    let mut scenario = Scenario::new(1, FAR, Faults::default());
    scenario.wish(0, Wish::Run);
    let memory = recorder(&mut scenario, Source::Monitor, 480);
    for refused in [Wish::Drain { end: 5 }, Wish::Splice { position: 1 }] {
        assert_eq!(wish(&mut scenario, &memory, refused), None, "{refused:?}");
    }
    let first = wish(&mut scenario, &memory, Wish::Run).expect("it begins") as usize;
    scenario.pass(100 * MS);
    memory.borrow_mut().volume = 0.0;
    scenario.pass(100 * MS);
    let recorded = memory.borrow();
    let heard: Vec<f32> = scenario.card.written.iter().step_by(CHANNELS).copied().collect();
    assert_eq!(recorded.channels[0][..4000], heard[first..][..4000]);
    assert!(recorded.channels[0].iter().rev().take(2000).all(|sample| *sample == 0.0), "muted");
}

#[test]
fn a_stream_to_which_the_graph_brings_nothing_records_silence_and_comes_back_when_closed() {
    let mut scenario = Scenario::new(1, FAR, Faults::default());
    let memory = recorder(&mut scenario, Source::Graph, 480);
    wish(&mut scenario, &memory, Wish::Run);
    scenario.pass(100 * MS);
    assert!(memory.borrow().finished >= 4000);
    assert!(memory.borrow().channels.concat().iter().all(|sample| *sample == 0.0));
    assert!(scenario.device.recorders_mut().take_closed().is_none());
    scenario.device.recorders_mut().close(|_| true);
    scenario.call();
    assert!(scenario.device.recorders_mut().take_closed().is_some());
    scenario.pass(3000 * MS);
    assert!(scenario.device.is_parked());
}

/// Moves a monitor from one device to the other; returns the number of frames that it had.
fn move_over(memory: &Recording, from: &mut Scenario, to: &mut Scenario) -> usize {
    from.device.recorders_mut().close(|_| true);
    from.call();
    let moved = from.device.recorders_mut().take_closed().expect("it is over").moved(FADE);
    let had = memory.borrow().channels[0].len();
    assert!(to.device.recorders_mut().add(Box::new(moved)).is_ok());
    to.call();
    had
}

#[test]
fn a_monitor_that_moves_goes_on_with_what_is_heard_on_the_other_device() {
    let faults = Faults { drift_ppm: 100, ..Faults::default() };
    let mut from = Scenario::new(1, FAR, Faults::default());
    let mut to = Scenario::new(2, FAR, faults);
    let frames = 4 * RATE_HZ as usize;
    to.device.recorders_mut().set_monitor(Box::new(FrameHistory::new(CHANNELS, frames)));
    let memory = recorder(&mut from, Source::Monitor, 12_000);
    from.wish(0, Wish::Run);
    to.wish(1, Wish::Run);
    let first = wish(&mut from, &memory, Wish::Run).expect("it begins") as usize;
    from.pass(1100 * MS);
    to.pass(2000 * MS);
    let arrived = to.card.played() as usize;
    let had = move_over(&memory, &mut from, &mut to);
    assert_eq!(had, from.card.played() as usize - first, "to the last frame that was heard");
    to.pass(1100 * MS);
    let recorded = memory.borrow();
    assert!(recorded.misses.is_empty() && recorded.finished > had as u64 + 40_000);
    for (channel, samples) in recorded.channels.iter().enumerate() {
        let heard = |device: &Scenario| -> Vec<f32> {
            device.card.written.iter().skip(channel).step_by(CHANNELS).copied().collect()
        };
        let (before, after) = samples.split_at(had);
        assert_eq!(before, &heard(&from)[first..first + had]);
        let there = heard(&to);
        let mut begins = arrived..=arrived + to.card.safety() as usize;
        assert!(begins.any(|begin| there[begin..].starts_with(after)), "from {arrived} on");
    }
}

#[test]
fn a_monitor_that_holds_is_moved_without_a_frame_and_obeys_on_the_other_device() {
    let mut from = Scenario::new(1, FAR, Faults::default());
    let mut to = Scenario::new(1, FAR, Faults::default());
    let frames = 4 * RATE_HZ as usize;
    to.device.recorders_mut().set_monitor(Box::new(FrameHistory::new(CHANNELS, frames)));
    let memory = recorder(&mut from, Source::Monitor, 480);
    from.device.recorders_mut().close(|_| true);
    memory.borrow_mut().wished = 1;
    let run = NumberedWish { number: 1, wish: Some(Wish::Run) };
    memory.borrow_mut().wishes.push_back(run);
    from.call();
    assert!(memory.borrow().acknowledged.is_empty(), "it obeys no more wishes there");
    let moved = from.device.recorders_mut().take_closed().expect("it is over").moved(FADE);
    assert_eq!(memory.borrow().finished, 0);
    assert!(to.device.recorders_mut().add(Box::new(moved)).is_ok());
    to.call();
    assert!(memory.borrow().acknowledged[0].is_some());
    wish(&mut to, &memory, Wish::Hold).expect("it ends");
    let had = memory.borrow().finished;
    assert_eq!(move_over(&memory, &mut to, &mut from) as u64, had);
    from.pass(500 * MS);
    assert_eq!(memory.borrow().finished, had, "it holds there, too");
}

/// A stream that records what the graph's cycles bring it.
fn fed(
    as_wanted: impl FnOnce(Recorder<Recording>) -> Recorder<Recording>,
) -> (Scenario, Recording) {
    let mut scenario = Scenario::new(1, FAR, Faults::default());
    let memory = opened(&mut scenario, Source::Graph, 480, as_wanted);
    scenario.device.recorders_mut().feed(|_| true);
    wish(&mut scenario, &memory, Wish::Run).expect("it begins");
    (scenario, memory)
}

/// Runs cycles of the graph from device frame `first` on, which bring the numbers from `brought`
/// on; returns where both go on.
fn bring(scenario: &mut Scenario, first: u64, brought: u16, cycles: usize) -> (u64, u16) {
    let (mut first, mut brought) = (first, brought);
    for _ in 0..cycles {
        let mut samples = [f32::NAN; QUANTUM as usize];
        scenario.device.record_graph(&mut samples, |_, channel, into| {
            let numbers = (brought..).map(f32::from);
            into.iter_mut().zip(numbers).for_each(|(into, from)| {
                *into = if channel == 0 { from } else { -from };
            });
        });
        first = scenario.cycle(first);
        brought += QUANTUM as u16;
    }
    (first, brought)
}

#[test]
fn what_the_graph_brings_is_recorded_without_a_gap() {
    let (mut scenario, memory) = fed(|recorder| recorder);
    assert!(scenario.device.recorders().need_cycles());
    scenario.pass(300 * MS);
    assert_eq!(memory.borrow().finished, 0, "nothing without cycles");
    let first = scenario.begin_graph();
    bring(&mut scenario, first, 1, 200);
    let recorded = memory.borrow();
    assert!(recorded.misses.is_empty(), "{:?}", recorded.misses);
    let expected: Vec<f32> = (1..=200 * QUANTUM as u16).map(f32::from).collect();
    assert_eq!(recorded.channels[0], expected);
    assert!(recorded.channels[1].iter().zip(&expected).all(|(one, other)| *one == -other));
    let Timing { at_ns, position, .. } = recorded.timing;
    let behind_ns = scenario.now_ns - at_ns;
    assert_eq!(position, 200 * QUANTUM);
    assert!((1_300_000..1_400_000).contains(&behind_ns), "a cycle, and not {behind_ns} ns");
}

#[test]
fn frames_that_the_graph_did_not_bring_are_noted_as_lost() {
    let (mut scenario, memory) = fed(|recorder| recorder);
    let first = scenario.begin_graph();
    let (first, brought) = bring(&mut scenario, first, 1, 20);
    // The card was away, and played no further cycles.
    scenario.now_ns += 100 * MS;
    scenario.card.advance(scenario.now_ns);
    let first = first.max(scenario.card.played() + 1000);
    bring(&mut scenario, first, brought, 20);
    let recorded = memory.borrow();
    let expected: Vec<f32> = (1..=40 * QUANTUM as u16).map(f32::from).collect();
    assert_eq!(recorded.channels[0], expected, "everything that was brought");
    let [miss] = recorded.misses[..] else { panic!("{:?}", recorded.misses) };
    assert_eq!(miss.position, 21 * QUANTUM);
    assert!((4700..=4900).contains(&miss.frames), "100 ms, and not {} frames", miss.frames);
}

#[test]
fn a_meter_of_what_the_graph_brings_needs_no_cycles() {
    let (mut scenario, memory) = fed(Recorder::letting_sleep);
    assert!(!scenario.device.recorders().need_cycles());
    let first = scenario.begin_graph();
    bring(&mut scenario, first, 1, 20);
    assert_eq!(memory.borrow().finished, 20 * QUANTUM, "but it has what is brought");
}

#[test]
fn a_stream_that_begins_in_a_cycle_gets_nothing_of_before() {
    let (mut scenario, memory) = fed(|recorder| recorder);
    let first = scenario.begin_graph();
    let (first, brought) = bring(&mut scenario, first, 1, 10);
    wish(&mut scenario, &memory, Wish::Hold).expect("it ends");
    let (first, _) = bring(&mut scenario, first, brought, 10);
    let before = memory.borrow().finished;
    let began = wish(&mut scenario, &memory, Wish::Run).expect("it begins");
    bring(&mut scenario, first, 10_000, 10);
    let recorded = memory.borrow();
    let begun = recorded.channels[0][before as usize];
    // A cycle's frames were captured before it began.
    let since = began - (scenario.card.played() - 10 * QUANTUM);
    assert_eq!(begun, (10_000 + QUANTUM + since) as f32, "{began}");
    assert!(recorded.misses.is_empty(), "it held in between");
}

#[test]
fn a_stream_that_is_disconnected_and_connected_again_has_silence_in_between() {
    let (mut scenario, memory) = fed(|recorder| recorder);
    let first = scenario.begin_graph();
    let (first, brought) = bring(&mut scenario, first, 1, 10);
    scenario.device.recorders_mut().feed(|_| false);
    assert!(!scenario.device.recorders().need_cycles());
    let (first, _) = bring(&mut scenario, first, 20_000, 100);
    scenario.device.recorders_mut().feed(|_| true);
    bring(&mut scenario, first, brought, 10);
    let recorded = memory.borrow();
    assert!(recorded.misses.is_empty(), "{:?}", recorded.misses);
    let sounds = recorded.channels[0].iter().filter(|sample| **sample != 0.0);
    let expected: Vec<f32> = (1..=20 * QUANTUM as u16).map(f32::from).collect();
    assert_eq!(sounds.copied().collect::<Vec<f32>>(), expected);
    let silence = recorded.channels[0].len() as u64 - 20 * QUANTUM;
    assert!((99 * QUANTUM..=102 * QUANTUM).contains(&silence), "{silence} frames of silence");
}
