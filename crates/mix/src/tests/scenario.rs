//! A device on a simulated card, its streams and their programs.

use std::collections::VecDeque;

use rt::shm::{Miss, Schedule, Timing};
use rt::stream::{Gains, Wish};

use super::card::{Faults, SimulatedCard};
use super::model::{gains, levels, sounds};
use super::recording::Recording;
use crate::{
    DeviceLoop, DeviceShape, GraphCycles, NumberedWish, Planes, Routes, Stream, StreamMemory,
};

pub(super) const RATE_HZ: u32 = 48_000;
pub(super) const CHANNELS: usize = 2;
pub(super) const FADE: u32 = 240;
pub(super) const MS: u64 = 1_000_000;
/// Frames of the graph's cycles.
pub(super) const QUANTUM: u64 = 64;
pub(super) const CYCLES: GraphCycles = GraphCycles { frames: QUANTUM, output_after: QUANTUM };

/// A sample of a stream: any bits, but mostly sound.
pub(super) fn sample(seed: u64, position: u64, channel: usize) -> f32 {
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
pub(super) struct Memory {
    pub(super) seed: u64,
    /// What it plays, by its seed, the position and the channel.
    pub(super) sound: fn(u64, u64, usize) -> f32,
    pub(super) wishes: VecDeque<NumberedWish>,
    pub(super) next_number: u64,
    pub(super) sent: Vec<Wish>,
    pub(super) acknowledged: Vec<(u64, Wish)>,
    /// The server's volume, and what became of it: the gain from each device frame on.
    pub(super) volume: f32,
    pub(super) volumes: Vec<(u64, Wish)>,
    /// Its routes from these device frames on.
    pub(super) routed: Vec<(u64, Routes)>,
    /// What programs of the graph have heard of a channel in the cycle that begins.
    pub(super) hears: bool,
    pub(super) cycle: Vec<Vec<f32>>,
    /// And in all of them, by device frame.
    pub(super) heard: Vec<(u64, Vec<Vec<f32>>)>,
    pub(super) written: u64,
    /// Frames that the program writes just before it makes the wish of a number, and both while the
    /// device looks.
    pub(super) written_before: Option<(u64, u64)>,
    pub(super) lowest: u64,
    pub(super) misses: Vec<Miss>,
    pub(super) timing: Timing,
    pub(super) schedule: Schedule,
}

impl Memory {
    pub(super) fn new(seed: u64, written: u64) -> Self {
        Self {
            seed,
            sound: sample,
            wishes: VecDeque::new(),
            next_number: 0,
            sent: Vec::new(),
            acknowledged: Vec::new(),
            volume: 1.0,
            volumes: Vec::new(),
            routed: vec![(0, straight())],
            hears: false,
            cycle: vec![Vec::new(); CHANNELS],
            heard: Vec::new(),
            written,
            written_before: None,
            lowest: 0,
            misses: Vec::new(),
            timing: Timing::default(),
            schedule: Schedule::default(),
        }
    }

    pub(super) fn wish(&mut self, wish: Wish) {
        self.next_number += 1;
        self.sent.push(wish);
        self.wishes.push_back(NumberedWish { number: self.next_number, wish: Some(wish) });
    }
}

/// Shared with the test, which is the program.
pub(super) type Shared = std::rc::Rc<std::cell::RefCell<Memory>>;

impl StreamMemory for Shared {
    fn channels(&self) -> usize {
        CHANNELS
    }

    fn next_wish(&mut self) -> Option<NumberedWish> {
        let mut memory = self.borrow_mut();
        let next = memory.wishes.pop_front()?;
        if let Some((_, frames)) = memory.written_before.take_if(|(wish, _)| *wish == next.number) {
            memory.written += frames;
        }
        Some(next)
    }

    fn acknowledge(&mut self, number: u64, device_frame: Option<u64>) {
        let mut memory = self.borrow_mut();
        let wish = memory.sent[number as usize - 1];
        memory.acknowledged.extend(device_frame.map(|frame| (frame, wish)));
    }

    fn volume(&self) -> f32 {
        self.borrow().volume
    }

    fn written(&mut self) -> u64 {
        self.borrow().written
    }

    fn read(&self, channel: usize, position: u64, into: &mut [f32]) {
        let memory = self.borrow();
        assert!(position >= memory.lowest, "read again below the lowest position");
        for (position, into) in (position..).zip(into) {
            assert!(position < memory.written, "read beyond what is written");
            *into = (memory.sound)(memory.seed, position, channel);
        }
    }

    fn is_heard(&self, _channel: usize) -> bool {
        self.borrow().hears
    }

    fn hear(&mut self, channel: usize, offset: usize, samples: &[f32]) {
        let cycle = &mut self.borrow_mut().cycle[channel];
        assert_eq!(cycle.len(), offset, "in a row");
        cycle.extend_from_slice(samples);
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

/// Each channel on the device's channel of the same number.
pub(super) fn straight() -> Routes {
    (0..CHANNELS).map(|channel| (channel, channel)).collect()
}

/// A device with its streams and its clock.
pub(super) struct Scenario {
    pub(super) device: DeviceLoop<Shared, Recording>,
    pub(super) card: SimulatedCard,
    pub(super) streams: Vec<Shared>,
    pub(super) now_ns: u64,
    pub(super) wake_ns: Option<u64>,
    pub(super) wake_ups: u64,
    pub(super) late_ns: u64,
    /// What the graph played, by device frame.
    pub(super) graph_played: Vec<(u64, Vec<f32>)>,
    /// The device's volume: the gain from each device frame on.
    pub(super) volumes: Vec<(u64, Wish)>,
}

impl Scenario {
    pub(super) fn new(streams: usize, written: u64, faults: Faults) -> Self {
        let shape = DeviceShape {
            sample_rate_hz: RATE_HZ,
            channels: CHANNELS,
            graph_frames: 8192,
            // And one that comes from another device.
            streams: streams + 1,
            ramp_frames: FADE,
        };
        let mut device = DeviceLoop::new(shape, Gains::default());
        let memories: Vec<Shared> = (0..streams as u64)
            .map(|seed| Shared::new(std::cell::RefCell::new(Memory::new(seed, written))))
            .collect();
        for memory in &memories {
            let stream = Stream::new(memory.clone(), straight(), 2 * RATE_HZ, FADE);
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
            volumes: Vec::new(),
        }
    }

    /// The thread is called.
    pub(super) fn call(&mut self) {
        self.wake_ups += 1;
        self.wake_ns = self.device.wake(self.now_ns, &mut self.card);
        for stream in self.device.streams() {
            let routed = &mut stream.memory().borrow_mut().routed;
            let newest = stream.routed();
            if routed.last() != Some(&newest) {
                routed.push(newest);
            }
        }
    }

    /// Time passes; the thread wakes when it asked for it, and later by the lateness.
    pub(super) fn pass(&mut self, duration_ns: u64) {
        let end_ns = self.now_ns + duration_ns;
        while let Some(wake_ns) = self.wake_ns.filter(|wake_ns| *wake_ns + self.late_ns <= end_ns) {
            self.now_ns = self.now_ns.max(wake_ns + self.late_ns);
            self.card.advance(self.now_ns);
            self.call();
        }
        self.now_ns = end_ns;
        self.card.advance(end_ns);
    }

    pub(super) fn wish(&mut self, stream: usize, wish: Wish) {
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

    /// The server sets the volume of the device, by channel.
    pub(super) fn set_device_volume(&mut self, volume: [f32; CHANNELS]) {
        let mut gains = [1.0; Gains::CHANNELS];
        gains[..CHANNELS].copy_from_slice(&volume);
        let gains = Gains::new(gains).unwrap();
        let before = self.device.volume().changed_at();
        let is_new = self.device.volume().wants(&gains);
        self.device.set_volume(gains);
        self.call();
        let at = self.device.volume().changed_at();
        assert!(!self.device.volume().wants(&gains) && at >= before, "no room");
        self.volumes.extend(is_new.then_some((at, Wish::Gain { gains, ramp_frames: FADE })));
    }

    /// The server sets the volume of a stream.
    pub(super) fn set_volume(&mut self, stream: usize, volume: f32) {
        let gain = Wish::Gain { gains: Gains::all(volume).unwrap(), ramp_frames: FADE };
        let is_new = self.streams[stream].borrow().volume != volume;
        self.streams[stream].borrow_mut().volume = volume;
        self.call();
        let line = self.device.streams().nth(stream).unwrap().volume();
        assert!(!line.wants(volume), "no room");
        let change = is_new.then_some((line.changed_at(), gain));
        self.streams[stream].borrow_mut().volumes.extend(change);
    }

    /// A stream gets other routes, and the thread is called.
    pub(super) fn route(&mut self, stream: usize, routes: Routes) {
        let memory = self.streams[stream].clone();
        for channel in 0..CHANNELS {
            let to = routes.of(channel);
            self.device.route(|other| Shared::ptr_eq(other, &memory), channel, to);
        }
        self.call();
    }

    /// A program of the graph plays for this number of cycles of 64 frames: the output of each is
    /// there when the next one is due.
    pub(super) fn graph(&mut self, cycles: u64) {
        let mut first = self.begin_graph();
        (0..cycles).for_each(|_| first = self.cycle(first));
        self.end_graph();
    }

    /// Returns the device frame of the graph's first cycle.
    pub(super) fn begin_graph(&mut self) -> u64 {
        let first = self.device.begin_graph(self.now_ns, &mut self.card, CYCLES);
        self.feed(first);
        first
    }

    /// Ends the cycle that is heard at device frame `first`; returns that of the next one.
    pub(super) fn cycle(&mut self, first: u64) -> u64 {
        let mut planes = Planes::new(CHANNELS, QUANTUM as usize);
        self.now_ns += QUANTUM * 1_000_000_000 / u64::from(RATE_HZ);
        self.card.advance(self.now_ns);
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
        self.feed(first + QUANTUM);
        first + QUANTUM
    }

    pub(super) fn end_graph(&mut self) {
        self.device.end_graph(self.now_ns);
        self.call();
    }

    fn feed(&mut self, first: u64) {
        self.device.feed_graph(QUANTUM as usize);
        for stream in self.streams.iter().filter(|stream| stream.borrow().hears) {
            let mut memory = stream.borrow_mut();
            let cycle = std::mem::replace(&mut memory.cycle, vec![Vec::new(); CHANNELS]);
            memory.heard.push((first, cycle));
        }
    }

    /// Compares everything that programs of the graph have heard of a stream with what the device
    /// plays of it at these frames. Returns how many frames these are.
    pub(super) fn check_heard(&self, stream: usize) -> usize {
        let memory = self.streams[stream].borrow();
        let frames = self.card.played().min(self.card.frames());
        let mut compared = 0;
        for channel in 0..CHANNELS {
            let sounds = sounds(&memory.acknowledged, frames, FADE.into(), channel, |at| {
                sample(memory.seed, at, channel)
            });
            let volumes = gains(&memory.volumes, 0, frames);
            let expected: Vec<f32> = sounds.iter().zip(volumes).map(|(one, by)| one * by).collect();
            for (first, cycle) in &memory.heard {
                let there = expected.iter().skip(*first as usize);
                for (frame, (heard, expected)) in cycle[channel].iter().zip(there).enumerate() {
                    assert!(
                        (heard - expected).abs() <= 1e-5 * expected.abs().max(1.0),
                        "frame {frame} from {first} on: {heard}, not {expected}"
                    );
                    compared += 1;
                }
            }
        }
        compared
    }

    /// Compares everything that the hardware has read with what was wished for.
    pub(super) fn check(&self) {
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
                for from in 0..CHANNELS {
                    let sounds = sounds(&memory.acknowledged, frames, FADE.into(), from, |at| {
                        sample(memory.seed, at, from)
                    });
                    let levels = levels(&memory.routed, FADE.into(), (from, channel));
                    let volumes = gains(&memory.volumes, 0, frames);
                    let heard = sounds.iter().zip(levels).zip(volumes);
                    let heard = heard.map(|((sample, level), gain)| sample * level * gain);
                    expected.iter_mut().zip(heard).for_each(|(sum, sample)| *sum += sample);
                }
            }
            let volumes = gains(&self.volumes, channel, frames);
            expected.iter_mut().zip(volumes).for_each(|(sum, gain)| *sum *= gain);
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
