//! Streams that move to another device.

use std::cell::RefCell;

use proptest::prelude::*;
use rt::stream::{Gains, Wish};

use super::card::Faults;
use super::scenario::{CHANNELS, FADE, MS, Memory, RATE_HZ, Scenario, Shared, sample, straight};
use super::streams::FAR;
use crate::{MAX_LEVEL, Stream};

/// What a stream has played on one device.
#[derive(Debug)]
struct Visit {
    device: usize,
    /// The device frame and the position at which it began.
    start: u64,
    position: u64,
    /// It had played elsewhere.
    fades_in: bool,
    /// The device frame at which it began to fade out.
    end: u64,
}

/// Two devices, and a stream that is on one of them.
struct Two {
    devices: [Scenario; 2],
    memory: Shared,
    on: usize,
    visits: Vec<Visit>,
    /// The position that was heard last.
    heard: u64,
}

impl Two {
    fn new(faults: [Faults; 2]) -> Self {
        let [first, second] = faults;
        let devices = [Scenario::new(1, FAR, first), Scenario::new(0, FAR, second)];
        let memory = devices[0].streams[0].clone();
        Self { devices, memory, on: 0, visits: Vec::new(), heard: 0 }
    }

    /// Time passes on both devices.
    fn pass(&mut self, duration_ns: u64) {
        self.devices.iter_mut().for_each(|device| device.pass(duration_ns));
        let heard = self.memory.borrow().timing.position_at(self.devices[0].now_ns);
        assert!(heard >= self.heard, "position {heard} is heard after {}", self.heard);
        self.heard = heard;
    }

    fn wish(&mut self, wish: Wish) {
        self.memory.borrow_mut().wish(wish);
        self.devices[self.on].call();
    }

    /// Moves the stream to the other device.
    fn move_over(&mut self) {
        let memory = self.memory.clone();
        let device = &mut self.devices[self.on];
        device.device.close(|other| Shared::ptr_eq(other, &memory));
        device.call();
        let leaves = self.memory.borrow().timing;
        if let Some(visit) = self.visits.last_mut() {
            visit.end = leaves.device_frame;
        }
        let mut passed_ns = 0;
        let stream = loop {
            if let Some(stream) = self.devices[self.on].device.take_closed() {
                break stream;
            }
            assert!(passed_ns < 20 * MS, "it comes back when its fade is over");
            self.pass(MS / 4);
            passed_ns += MS / 4;
        };
        self.on = 1 - self.on;
        let stream = Stream::moved(*stream, straight(), FADE);
        assert!(self.devices[self.on].device.add(Box::new(stream)).is_ok());
        self.devices[self.on].call();
        let arrives = self.memory.borrow().timing;
        assert_eq!(arrives.position, leaves.position, "where the fade began");
        self.begin_visit(true);
    }

    fn begin_visit(&mut self, fades_in: bool) {
        let timing = self.memory.borrow().timing;
        let (start, position) = (timing.device_frame, timing.position);
        self.visits.push(Visit { device: self.on, start, position, fades_in, end: u64::MAX });
    }

    /// Compares what was heard of each visit with what it should have been.
    fn check(&self) {
        for visit in &self.visits {
            let card = &self.devices[visit.device].card;
            let fade = u64::from(FADE);
            let end = visit.end.saturating_add(fade).min(card.played());
            for frame in visit.start..end {
                for channel in 0..CHANNELS {
                    let raw = sample(0, visit.position + frame - visit.start, channel);
                    let raw = if raw.is_finite() { raw.clamp(-MAX_LEVEL, MAX_LEVEL) } else { 0.0 };
                    let rises = if visit.fades_in { level(frame, visit.start) } else { 1.0 };
                    let falls = if frame < visit.end { 1.0 } else { 1.0 - level(frame, visit.end) };
                    let expected = raw * (rises * falls);
                    let heard = card.written[frame as usize * CHANNELS + channel];
                    assert!(
                        (heard - expected).abs() <= 1e-5 * expected.abs().max(1.0),
                        "frame {frame} of {visit:?}: {heard}, not {expected}"
                    );
                }
            }
        }
    }
}

fn level(frame: u64, start: u64) -> f32 {
    ((frame - start + 1) as f32 / (FADE + 1) as f32).min(1.0)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_stream_that_moves_goes_on_where_it_was_heard(
        stays_ms in prop::collection::vec(prop_oneof![0..20_u64, 0..3000_u64], 1..12),
        coarse_frames in prop::sample::select(vec![0_u64, 0, 128]),
        drift_ppm in -200..200_i64,
    ) {
        let faults = Faults { coarse_frames, drift_ppm, ..Faults::default() };
        let mut two = Two::new([Faults::default(), faults]);
        two.wish(Wish::Run);
        two.begin_visit(false);
        for stay_ms in stays_ms {
            two.pass(stay_ms * MS);
            two.move_over();
        }
        two.pass(300 * MS);
        two.check();
        prop_assert!(two.devices.iter().all(|device| device.card.underruns == 0));
        prop_assert!(two.memory.borrow().misses.is_empty());
    }
}

#[test]
fn a_stream_that_holds_is_moved_without_a_sound_and_runs_when_it_is_to() {
    let mut two = Two::new([Faults::default(); 2]);
    two.wish(Wish::Run);
    two.pass(100 * MS);
    two.wish(Wish::Gain { gains: Gains::all(0.5).unwrap(), ramp_frames: 0 });
    two.wish(Wish::Depth { frames: 4800 });
    two.wish(Wish::Hold);
    two.pass(300 * MS);
    let held = two.memory.borrow().timing.position;
    two.move_over();
    two.pass(300 * MS);
    assert!(two.devices[1].card.written.iter().all(|sample| *sample == 0.0));
    assert_eq!(two.memory.borrow().timing.position, held);
    // It kept its program's gains and depth.
    two.wish(Wish::Run);
    two.pass(50 * MS);
    assert_eq!(two.devices[1].device.streams().next().unwrap().depth_frames(), 4800);
    let (frame, _) = *two.memory.borrow().acknowledged.last().unwrap();
    let heard = two.devices[1].card.written[(frame + 1000) as usize * CHANNELS];
    let raw = sample(0, held + 1000, 0);
    let raw = if raw.is_finite() { raw.clamp(-MAX_LEVEL, MAX_LEVEL) } else { 0.0 };
    assert!((heard - 0.5 * raw).abs() < 1e-5, "{heard}, not half of {raw}");
}

#[test]
fn a_stream_that_is_cut_off_goes_on_where_it_was_heard() {
    for is_closed in [false, true] {
        let mut two = Two::new([Faults::default(); 2]);
        two.wish(Wish::Run);
        two.pass(500 * MS);
        let memory = two.memory.clone();
        let device = &mut two.devices[0];
        if is_closed {
            device.device.close(|other| Shared::ptr_eq(other, &memory));
        }
        // The device renders no more.
        device.now_ns += 300 * MS;
        let heard = memory.borrow().timing.position_at(device.now_ns);
        device.device.finish(device.now_ns, &mut device.card);
        let stream = device.device.take_any().unwrap();
        assert!(two.devices[1].device.add(Box::new(stream.moved(straight(), FADE))).is_ok());
        two.devices[1].call();
        let arrives = memory.borrow().timing;
        // Times are rounded to frames.
        assert!(arrives.position.abs_diff(heard) <= 1, "{} of {heard}", arrives.position);
        two.on = 1;
        two.begin_visit(true);
        two.pass(300 * MS);
        let later = memory.borrow().timing.position_at(two.devices[1].now_ns);
        assert!(later.abs_diff(heard + 300 * 48) <= 2, "it runs: {later} after {heard}");
        two.check();
    }
}

#[test]
fn a_wish_that_is_made_on_the_way_is_obeyed_on_the_other_device() {
    let mut two = Two::new([Faults::default(); 2]);
    two.wish(Wish::Run);
    two.pass(500 * MS);
    let memory = two.memory.clone();
    two.devices[0].device.close(|other| Shared::ptr_eq(other, &memory));
    two.devices[0].call();
    two.memory.borrow_mut().wish(Wish::Hold);
    two.pass(20 * MS);
    assert_eq!(two.memory.borrow().acknowledged.len(), 1, "it obeys no more wishes there");
    let stream = two.devices[0].device.take_closed().unwrap();
    assert!(two.devices[1].device.add(Box::new(stream.moved(straight(), FADE))).is_ok());
    two.devices[1].call();
    two.pass(300 * MS);
    assert_eq!(two.memory.borrow().acknowledged.len(), 2);
    assert!(two.devices[1].card.written.iter().all(|sample| *sample == 0.0), "it never ran there");
}

#[test]
fn a_stream_of_a_server_that_has_gone_fades_in_where_it_was_heard_at_its_volume() {
    const VOLUME: f32 = 0.25;
    for (position, fades_in) in [(0, false), (1, true), (1 << 62, true)] {
        let mut scenario = Scenario::new(0, FAR, Faults::default());
        let memory = Shared::new(RefCell::new(Memory::new(0, u64::MAX)));
        (memory.borrow_mut().volume, memory.borrow_mut().lowest) = (VOLUME, position);
        let stream =
            Stream::new(memory.clone(), straight(), 2 * RATE_HZ, FADE).beginning_at(position, FADE);
        assert!(scenario.device.add(Box::new(stream)).is_ok());
        scenario.call();
        let holds = memory.borrow().timing;
        assert_eq!((holds.position_at(u64::MAX), memory.borrow().lowest), (position, position));
        memory.borrow_mut().wish(Wish::Run);
        scenario.call();
        let start = memory.borrow().timing.device_frame;
        scenario.pass(100 * MS);
        for frame in start..scenario.card.played() {
            for channel in 0..CHANNELS {
                let raw = sample(0, position + frame - start, channel);
                let raw = if raw.is_finite() { raw.clamp(-MAX_LEVEL, MAX_LEVEL) } else { 0.0 };
                let expected = raw * VOLUME * if fades_in { level(frame, start) } else { 1.0 };
                let heard = scenario.card.written[frame as usize * CHANNELS + channel];
                assert!(
                    (heard - expected).abs() <= 1e-5 * expected.abs().max(1.0),
                    "frame {frame} from {position} on: {heard}, not {expected}"
                );
            }
        }
        assert!(scenario.card.played() > start + 2 * u64::from(FADE));
    }
}
