//! Streams on a simulated card: every frame that leaves it is what the wishes say.

use std::collections::VecDeque;

use proptest::prelude::*;
use rt::shm::{Miss, Schedule, Timing};
use rt::stream::{Gains, Wish};

use super::card::{Faults, SimulatedCard};
use super::model::sounds;
use crate::{DeviceLoop, DeviceShape, NumberedWish, Planes, Stream, StreamMemory};

const RATE_HZ: u32 = 48_000;
const CHANNELS: usize = 2;
const FADE: u32 = 240;
const MS: u64 = 1_000_000;

/// A sample of a stream: any bits, but mostly sound.
fn sample(seed: u64, position: u64, channel: usize) -> f32 {
    let mut bits = (position ^ seed.rotate_left(17)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits ^= bits >> 29;
    bits = bits.wrapping_mul(0xbf58_476d_1ce4_e5b9).wrapping_add(channel as u64);
    match bits % 1000 {
        0 => f32::NAN,
        1 => f32::INFINITY,
        2 => 1e30,
        _ => ((bits >> 40) as f32 / 8_388_608.0) - 1.0,
    }
}

/// A stream's memory, with everything written from the beginning, or up to a limit.
#[derive(Debug)]
struct Memory {
    seed: u64,
    wishes: VecDeque<NumberedWish>,
    next_number: u64,
    sent: Vec<Wish>,
    acknowledged: Vec<(u64, Wish)>,
    written: u64,
    lowest: u64,
    misses: Vec<Miss>,
    timing: Timing,
    schedule: Schedule,
}

impl Memory {
    fn new(seed: u64, written: u64) -> Self {
        Self {
            seed,
            wishes: VecDeque::new(),
            next_number: 0,
            sent: Vec::new(),
            acknowledged: Vec::new(),
            written,
            lowest: 0,
            misses: Vec::new(),
            timing: Timing::default(),
            schedule: Schedule::default(),
        }
    }

    fn wish(&mut self, wish: Wish) {
        self.next_number += 1;
        self.sent.push(wish);
        self.wishes.push_back(NumberedWish { number: self.next_number, wish: Some(wish) });
    }
}

/// Shared with the test, which is the program.
type Shared = std::rc::Rc<std::cell::RefCell<Memory>>;

impl StreamMemory for Shared {
    fn channels(&self) -> usize {
        CHANNELS
    }

    fn next_wish(&mut self) -> Option<NumberedWish> {
        self.borrow_mut().wishes.pop_front()
    }

    fn acknowledge(&mut self, number: u64, device_frame: Option<u64>) {
        let mut memory = self.borrow_mut();
        let wish = memory.sent[number as usize - 1];
        memory.acknowledged.extend(device_frame.map(|frame| (frame, wish)));
    }

    fn written(&mut self) -> u64 {
        self.borrow().written
    }

    fn read(&self, channel: usize, position: u64, into: &mut [f32]) {
        let memory = self.borrow();
        assert!(position >= memory.lowest, "read again below the lowest position");
        for (position, into) in (position..).zip(into) {
            assert!(position < memory.written, "read beyond what is written");
            *into = sample(memory.seed, position, channel);
        }
    }

    fn set_lowest(&mut self, position: u64) {
        let mut memory = self.borrow_mut();
        assert!(position >= memory.lowest, "the lowest position goes back");
        memory.lowest = position;
    }

    fn note_miss(&mut self, miss: Miss) {
        self.borrow_mut().misses.push(miss);
    }

    fn publish(&mut self, timing: Timing, schedule: Schedule) {
        let mut memory = self.borrow_mut();
        (memory.timing, memory.schedule) = (timing, schedule);
    }
}

/// A device with its streams and its clock.
struct Scenario {
    device: DeviceLoop<Shared>,
    card: SimulatedCard,
    streams: Vec<Shared>,
    now_ns: u64,
    wake_ns: Option<u64>,
    wake_ups: u64,
    late_ns: u64,
    /// What the graph played, by device frame.
    graph_played: Vec<(u64, Vec<f32>)>,
}

impl Scenario {
    fn new(streams: usize, written: u64, faults: Faults) -> Self {
        let shape = DeviceShape {
            sample_rate_hz: RATE_HZ,
            channels: CHANNELS,
            graph_frames: 8192,
            streams,
        };
        let mut device = DeviceLoop::new(shape);
        let memories: Vec<Shared> = (0..streams as u64)
            .map(|seed| Shared::new(std::cell::RefCell::new(Memory::new(seed, written))))
            .collect();
        for memory in &memories {
            let stream = Stream::new(memory.clone(), vec![0, 1], 2 * RATE_HZ, FADE);
            assert!(device.add(Box::new(stream)).is_ok());
        }
        Self {
            device,
            card: SimulatedCard::new(RATE_HZ, CHANNELS, faults),
            streams: memories,
            now_ns: 1_000_000_000,
            wake_ns: None,
            wake_ups: 0,
            late_ns: 0,
            graph_played: Vec::new(),
        }
    }

    /// The thread is called.
    fn call(&mut self) {
        self.wake_ups += 1;
        self.wake_ns = self.device.wake(self.now_ns, &mut self.card);
    }

    /// Time passes; the thread wakes when it asked for it, and later by the lateness.
    fn pass(&mut self, duration_ns: u64) {
        let end_ns = self.now_ns + duration_ns;
        while let Some(wake_ns) = self.wake_ns.filter(|wake_ns| *wake_ns + self.late_ns <= end_ns) {
            self.now_ns = self.now_ns.max(wake_ns + self.late_ns);
            self.card.advance(self.now_ns);
            self.call();
        }
        self.now_ns = end_ns;
        self.card.advance(end_ns);
    }

    fn wish(&mut self, stream: usize, wish: Wish) {
        let mut memory = self.streams[stream].borrow_mut();
        // Seeks go forward in the ring, from what may be overwritten.
        let wish = match wish {
            Wish::Splice { position } => Wish::Splice { position: memory.lowest + position },
            _ => wish,
        };
        memory.wish(wish);
        drop(memory);
        self.call();
    }

    /// A program of the graph plays for so many cycles of 64 frames.
    fn graph(&mut self, cycles: u64) {
        const QUANTUM: u64 = 64;
        let mut first = self.device.begin_graph(self.now_ns, &mut self.card);
        let mut planes = Planes::new(CHANNELS, QUANTUM as usize);
        // Two cycles ahead of the hardware.
        for cycle in 0..cycles + 2 {
            planes.silence(QUANTUM as usize);
            for channel in 0..CHANNELS {
                for (frame, into) in planes.channel_mut(channel).iter_mut().enumerate() {
                    *into = 0.1 * sample(99, first + frame as u64, channel).clamp(-1.0, 1.0);
                    if into.is_nan() {
                        *into = 0.0;
                    }
                }
            }
            let played: Vec<f32> = (0..QUANTUM as usize)
                .flat_map(|frame| (0..CHANNELS).map(move |channel| (frame, channel)))
                .map(|(frame, channel)| planes.channel(channel)[frame])
                .collect();
            self.graph_played.push((first, played));
            self.device.play_graph(self.now_ns, &mut self.card, &planes);
            first += QUANTUM;
            if cycle >= 2 {
                self.now_ns += QUANTUM * 1_000_000_000 / u64::from(RATE_HZ);
                self.card.advance(self.now_ns);
            }
        }
        self.device.end_graph();
        self.call();
    }

    /// Compares everything that the hardware has read with what was wished for.
    fn check(&self) {
        let frames = self.card.played().min(self.card.frames());
        for channel in 0..CHANNELS {
            let mut expected = vec![0.0_f32; frames as usize];
            for (first, samples) in &self.graph_played {
                for (index, sample) in samples.iter().skip(channel).step_by(CHANNELS).enumerate() {
                    if let Some(expected) = expected.get_mut(*first as usize + index) {
                        *expected += sample;
                    }
                }
            }
            for stream in &self.streams {
                let memory = stream.borrow();
                let sounds =
                    sounds(&memory.acknowledged, frames, FADE.into(), channel, |position| {
                        sample(memory.seed, position, channel)
                    });
                expected.iter_mut().zip(sounds).for_each(|(sum, sample)| *sum += sample);
            }
            let heard = self.card.written.iter().skip(channel).step_by(CHANNELS);
            for (frame, (heard, expected)) in heard.zip(&expected).enumerate() {
                assert!(
                    (heard - expected).abs() <= 1e-5 * expected.abs().max(1.0),
                    "frame {frame} of channel {channel}: {heard}, not {expected}"
                );
            }
        }
    }
}

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

#[derive(Debug, Clone)]
enum Step {
    Wish(usize, Wish),
    Pass(u64),
    Graph(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (0..3_usize, wishes()).prop_map(|(stream, wish)| Step::Wish(stream, wish)),
        1 => (0..30_u64).prop_map(Step::Pass),
        1 => (0..800_u64).prop_map(Step::Pass),
        1 => (1..20_u64).prop_map(Step::Graph),
    ];
    prop::collection::vec(step, 1..40)
}

const FAR: u64 = 1 << 40;

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn every_frame_that_leaves_the_card_is_what_the_wishes_say(
        steps in steps(),
        refused in prop::sample::select(vec![0_u64, 0, 128, 256]),
        coarse_frames in prop::sample::select(vec![0_u64, 0, 480]),
        drift_ppm in -200..200_i64,
    ) {
        let mut scenario = Scenario::new(3, FAR, Faults { coarse_frames, refused, drift_ppm });
        for step in steps {
            match step {
                Step::Wish(stream, wish) => scenario.wish(stream, wish),
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
fn frames_that_are_written_in_time_are_heard_as_if_they_had_always_been_there() {
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
    assert_eq!(miss.position, 48_000 - u64::from(FADE), "it begins again where its fade began");
    let Timing { device_frame, position, .. } = memory.timing;
    let heard_again = device_frame - (miss.device_frame + miss.frames);
    assert_eq!(position - miss.position, heard_again, "and goes on from there");
}

#[test]
fn a_card_that_ran_out_costs_time_and_no_frame_of_a_stream() {
    let mut scenario = Scenario::new(1, FAR, Faults::default());
    scenario.wish(0, Wish::Run);
    scenario.pass(5000 * MS);
    scenario.late_ns = 3000 * MS;
    scenario.pass(9000 * MS);
    scenario.late_ns = 0;
    scenario.pass(9000 * MS);
    let lost = scenario.device.lost_frames();
    assert!(lost > 0);
    let Timing { device_frame, position, .. } = scenario.streams[0].borrow().timing;
    assert_eq!(position + lost, device_frame, "it went on where it was");
}
