//! The timer driver: cycles by an absolute clock, with ports that lead nowhere (jackd's "dummy") or
//! back to the graph.

mod cable;
mod null_card;
mod tap;

use std::path::PathBuf;

use mix::Card;
use proto::limits::QUANTUM_FRAMES;
use rt::rate::duration_ns;
use rt::shm::CycleInfo;
use sys::alarm::Alarm;

use self::cable::Cable;
use self::null_card::NullCard;
use self::tap::Tap;
use crate::{Capture, Channels, Driver, Pacing, Playback, Wake, silence};

/// Starts a cycle every quantum, at times that do not drift.
#[derive(Debug)]
pub struct Timer {
    channels: Channels,
    sample_rate_hz: u32,
    quantum: u32,
    /// The time from which cycles are counted, and the frames since then: exact at any rate.
    /// `None`: no cycle has begun.
    origin_ns: Option<u64>,
    frames: u64,
    /// Frames of the capture ports that have been silent since the start, unless the cable has
    /// written them.
    silenced_frames: u32,
    /// Connects each playback channel to the capture channel of the same number.
    cable: Option<Cable>,
    /// Where streams are played, unless there is a cable.
    card: NullCard,
    alarm: Alarm,
}

impl Timer {
    /// Returns a timer with these ports.
    #[must_use]
    pub fn new(channels: Channels, sample_rate_hz: u32) -> Self {
        Self {
            card: NullCard::new(sample_rate_hz),
            channels,
            sample_rate_hz,
            quantum: 0,
            origin_ns: None,
            frames: 0,
            silenced_frames: 0,
            cable: None,
            alarm: Alarm::new(),
        }
    }

    /// Returns this timer with every playback channel connected to the capture channel of the same
    /// number.
    ///
    /// The delay is the same as through a device: the playback of a period takes a quantum, and so
    /// does its capture. If the timer misses a cycle, the frames in the cable are lost, as in a
    /// device that underruns.
    #[must_use]
    pub fn looped(self) -> Self {
        let channels = self.channels.capture.min(self.channels.playback) as usize;
        Self { cable: Some(Cable::new(channels, *QUANTUM_FRAMES.end() as usize)), ..self }
    }

    /// Returns this timer with everything recorded that is played while there are streams, from the
    /// first frame of the first stream on: for tests.
    ///
    /// # Errors
    /// Why the file cannot be written.
    pub fn recorded(mut self, path: PathBuf) -> Result<Self, String> {
        let channels = self.channels.playback as usize;
        self.card.record(Tap::start(path, channels, self.sample_rate_hz)?);
        Ok(self)
    }

    /// Takes over from another driver: the first cycle is due at `due_ns`. Thread: cycle.
    pub(super) fn take_over(&mut self, due_ns: u64, quantum: u32) {
        (self.origin_ns, self.frames, self.quantum) = (Some(due_ns), 0, quantum);
    }

    fn due_ns(&self) -> u64 {
        self.due_ns_after(0)
    }

    /// Returns when the frame `frames` after the next cycle's first one is due.
    fn due_ns_after(&self, frames: u32) -> u64 {
        let after_origin_ns = duration_ns(self.frames + u64::from(frames), self.sample_rate_hz);
        self.origin_ns.unwrap_or(0).saturating_add(after_origin_ns)
    }
}

impl Driver for Timer {
    fn description(&self) -> String {
        if self.cable.is_some() { "timer, looped".into() } else { "timer".into() }
    }

    fn channels(&self) -> Channels {
        self.channels.clone()
    }

    fn sample_rate_hz(&self) -> u32 {
        self.sample_rate_hz
    }

    fn pacing(&self) -> Pacing {
        Pacing::RealTime
    }

    fn start(&mut self, quantum: u32) -> Result<(), String> {
        self.quantum = quantum;
        self.frames = u64::from(quantum);
        self.origin_ns = None;
        self.silenced_frames = 0;
        if let Some(cable) = &mut self.cable {
            cable.restart(2 * quantum as usize);
        }
        Ok(())
    }

    fn wait(&mut self) -> Wake {
        self.origin_ns.get_or_insert_with(sys::clock::now_ns);
        let due_ns = self.due_ns();
        self.alarm.sleep_until(due_ns, self.due_ns_after(self.quantum));
        let late_ns = sys::clock::now_ns().saturating_sub(due_ns);
        self.frames += u64::from(self.quantum);
        let period_ns = CycleInfo::nominal_period_ns(self.quantum, self.sample_rate_hz) as u64;
        // MUTATION: timer.missed_cycles_are_run
        if late_ns <= period_ns {
            return Wake::Cycle { due_ns, xrun_us: None };
        }
        // A whole cycle was missed: continue from now rather than run the missed cycles in a burst.
        let now_ns = due_ns + late_ns;
        self.origin_ns = Some(now_ns);
        self.frames = u64::from(self.quantum);
        if let Some(cable) = &mut self.cable {
            cable.silence();
        }
        Wake::Cycle {
            due_ns: now_ns,
            xrun_us: Some(u32::try_from(late_ns / 1000).unwrap_or(u32::MAX)),
        }
    }

    fn next_due_ns(&self) -> u64 {
        self.due_ns()
    }

    fn set_quantum(&mut self, quantum: u32) {
        // The current cycle keeps its due time; the following ones use the new distance.
        let begun = self.frames.saturating_sub(u64::from(self.quantum));
        if let Some(cable) = &mut self.cable {
            // A device restarts with other periods, and as many of them in its queue.
            let periods = cable.frames().checked_div(self.quantum as usize).unwrap_or(0);
            cable.restart(periods * quantum as usize);
        }
        self.quantum = quantum;
        self.frames = begun + u64::from(quantum);
    }

    fn can_park(&self) -> bool {
        true
    }

    fn card(&mut self) -> Option<&mut dyn Card> {
        // What goes through the cable is taken in cycles.
        if self.cable.is_some() { None } else { Some(&mut self.card) }
    }

    fn resume(&mut self) {
        self.origin_ns = Some(sys::clock::now_ns());
        self.frames = u64::from(self.quantum);
    }

    fn read(&mut self, capture: &mut dyn Capture) {
        // Another driver's samples may be in the ports.
        if self.silenced_frames < self.quantum {
            silence(self.channels.capture, capture);
            self.silenced_frames = self.quantum;
        }
        if let Some(cable) = &mut self.cable {
            cable.read(self.quantum as usize, capture);
        }
    }

    fn write(&mut self, frames: u32, playback: &mut dyn Playback) {
        if let Some(cable) = &mut self.cable {
            cable.write(frames as usize, playback);
        }
    }

    fn stop(&mut self) {
        self.card.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::tests::Ports;

    #[test]
    fn the_predicted_due_time_of_a_cycle_is_its_actual_one() {
        let mut timer = Timer::new(Channels { capture: 0, playback: 0, monitors: 0 }, 44_100);
        timer.take_over(123_456_789, 64);
        for cycle in 0..10_000 {
            let predicted_ns = timer.due_ns_after(64);
            timer.frames += 64;
            assert_eq!(timer.due_ns(), predicted_ns, "cycle {cycle}");
        }
    }

    #[test]
    fn cycles_that_were_missed_are_not_run_in_a_burst() {
        let mut timer = Timer::new(Channels { capture: 0, playback: 0, monitors: 0 }, 48_000);
        timer.start(48).unwrap();
        timer.wait();
        std::thread::sleep(std::time::Duration::from_millis(20));
        let Wake::Cycle { due_ns, xrun_us } = timer.wait() else { panic!("no cycle") };
        assert!(xrun_us.is_some_and(|us| us > 10_000), "{xrun_us:?}");
        assert_eq!(timer.next_due_ns(), due_ns + 1_000_000);
    }

    #[test]
    fn samples_of_another_driver_are_not_heard_again() {
        let timer = Timer::new(Channels { capture: 3, playback: 1, monitors: 0 }, 48_000);
        let looped = Timer::new(timer.channels(), 48_000).looped();
        for mut timer in [timer, looped] {
            timer.start(16).unwrap();
            timer.resume();
            let mut ports = Ports::new(3, 16);
            timer.read(&mut ports);
            assert!(ports.planes.iter().flatten().all(|sample| *sample == 0.0));
        }
    }
}
