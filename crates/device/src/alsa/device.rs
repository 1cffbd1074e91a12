//! An open device and its cycles. Thread: cycle, unless said otherwise.

use alsa::{Access, Fault, Pcm, Position};
use rt::rate::duration_ns;

use super::period_clock::PeriodClock;
use super::stream_queue::StreamQueue;
use super::transfer::{Transfer, write_silence};
use crate::{Capture, Playback};

/// What wakes the driver thread for a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WakeSource {
    /// The device's interrupts.
    Interrupt,
    /// A timer that follows the device's position.
    Timer,
}

/// What the driver needs of a device: it is configured for one or the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    /// Cycles: the shortest buffer, and an interrupt for each.
    Cycles,
    /// Streams, and cycles beside them: the longest buffer, and no interrupts if the device can do
    /// without them.
    Streams,
}

/// Lengths of a device's cycles.
#[derive(Debug, Clone, Copy)]
pub(super) struct Queue {
    /// Frames of a cycle.
    pub(super) quantum: u32,
    /// Frames in the playback queue after a cycle has been written.
    pub(super) queue_frames: u32,
}

/// One or both directions of a card, configured. A cycle reads a quantum from capture and writes a
/// quantum to playback, so the latency between the two stays the same to the frame.
#[derive(Debug)]
pub(super) struct Device {
    pub(super) capture: Option<Pcm>,
    pub(super) playback: Option<Pcm>,
    pub(super) quantum: u32,
    pub(super) need: Need,
    /// The device plays streams: where their frames are.
    pub(super) streams: Option<StreamQueue>,
    /// It was configured for cycles, and plays streams because they came while it ran.
    pub(super) is_interim: bool,
    /// The device starts with the frames that are written next: it has stopped by itself.
    pub(super) starts_with_next: bool,
    /// Cycles are run beside the streams, so capture runs with playback.
    pub(super) runs_cycles: bool,
    /// How many frames after its position cannot be changed any more.
    pub(super) safety_frames: u32,
    /// Frames in the playback queue after a cycle has been written: as configured, and now.
    pub(super) first_queue_frames: u32,
    pub(super) queue_frames: u32,
    /// The output of a cycle has been written since the last one was due.
    pub(super) has_written: bool,
    pub(super) rate_hz: u32,
    pub(super) wake_source: WakeSource,
    /// Starting or stopping one direction does so for both.
    pub(super) linked: bool,
    /// The device accepts and returns any number of frames at any time, as `null` does.
    without_clock: bool,
    /// `None`: the device does not run.
    pub(super) clock: Option<PeriodClock>,
    /// The next cycle does not begin before this time. A device that rarely reports its position
    /// has several quanta at once: they are spread as far as the queue allows, so that clients have
    /// time for each cycle.
    pub(super) hold_ns: u64,
    transfer: Transfer,
}

/// A device whose position does not change for this long and two quanta is stuck.
const STALL_NS: u64 = 250_000_000;
/// Shortest sleep after a timer that fired too early.
const SHORTEST_NAP_NS: u64 = 50_000;

impl Device {
    /// Returns a device that does not run yet. Thread: not the cycle's.
    pub(super) fn new(
        capture: Option<Pcm>,
        playback: Option<Pcm>,
        Queue { quantum, queue_frames }: Queue,
        rate_hz: u32,
        wake_source: WakeSource,
        need: Need,
    ) -> Self {
        // While streams play, capture starts and stops with the cycles.
        let linked = capture
            .as_ref()
            .zip(playback.as_ref().filter(|_| need == Need::Cycles))
            .is_some_and(|(left, right)| left.link(right).is_ok());
        let without_clock = false;
        Self {
            capture,
            playback,
            quantum,
            need,
            streams: None,
            is_interim: false,
            starts_with_next: false,
            runs_cycles: false,
            safety_frames: 0,
            first_queue_frames: queue_frames,
            queue_frames,
            has_written: false,
            rate_hz,
            wake_source,
            linked,
            without_clock,
            clock: None,
            hold_ns: 0,
            transfer: Transfer::new(quantum),
        }
    }

    /// Returns whether the device has a clock; known once it has been started.
    pub(super) fn has_clock(&self) -> bool {
        !self.without_clock
    }

    /// Returns what wakes the driver, for users. Thread: any.
    pub(super) fn manner(&self) -> &'static str {
        match self.wake_source {
            WakeSource::Interrupt => "by its interrupts",
            WakeSource::Timer => "by timer",
        }
    }

    /// Returns when the next cycle is due; `None` if the device does not run.
    pub(super) fn next_due_ns(&self) -> Option<u64> {
        self.clock.as_ref().map(|clock| clock.next_due_ns().max(self.hold_ns))
    }

    /// Starts or restarts the device with a full queue of silence.
    pub(super) fn start(&mut self) -> Result<(), Fault> {
        (self.clock, self.hold_ns) = (None, 0);
        self.queue_frames = self.first_queue_frames;
        self.has_written = true;
        let directions = [&mut self.capture, &mut self.playback];
        for pcm in directions.into_iter().flatten() {
            pcm.stop();
            pcm.prepare()?;
        }
        if let Some(playback) = &mut self.playback {
            write_silence(playback, self.queue_frames)?;
        }
        if let Some(capture) = &mut self.capture {
            capture.start()?;
        }
        let own_start = self.capture.is_none() || !self.linked;
        if let Some(playback) = self.playback.as_mut().filter(|_| own_start) {
            playback.start()?;
        }
        self.clock =
            Some(PeriodClock::started_at(sys::clock::now_ns(), self.quantum, self.rate_hz));
        self.without_clock = self.takes_anything()?;
        Ok(())
    }

    /// Returns whether the device has consumed or filled its buffer as soon as it was started.
    fn takes_anything(&self) -> Result<bool, Fault> {
        let Some(pcm) = self.playback.as_ref().or(self.capture.as_ref()) else { return Ok(false) };
        let Some(setup) = pcm.setup().filter(|setup| setup.access == Access::Copied) else {
            return Ok(false);
        };
        Ok(pcm.position(true)?.avail_frames >= setup.buffer_frames)
    }

    /// Sleeps until the next cycle is due, and returns when that was, ns.
    pub(super) fn wait(&mut self) -> Result<u64, Fault> {
        let clock = self.clock.as_ref().ok_or(Fault::Stalled)?;
        let limit_ns = self.quanta_ns(2) + STALL_NS + clock.next_due_ns();
        if self.wake_source == WakeSource::Timer {
            sys::clock::sleep_until(clock.next_wakeup_ns());
        }
        loop {
            let (ahead_frames, at_ns) = self.ahead()?;
            let now_ns = sys::clock::now_ns();
            if let Ok(ahead_frames) = u64::try_from(ahead_frames) {
                if now_ns < self.hold_ns {
                    sys::clock::sleep_until(self.hold_ns);
                    continue;
                }
                self.hold_ns = now_ns + self.time_to_hold_ns(ahead_frames);
                let due_ns = at_ns.saturating_sub(self.frames_ns(ahead_frames));
                self.clock.as_mut().ok_or(Fault::Stalled)?.note(due_ns);
                if let Some(streams) = &mut self.streams {
                    streams.begin_cycle(self.quantum);
                }
                self.has_written = false;
                return Ok(due_ns);
            }
            if now_ns > limit_ns {
                return Err(Fault::Stalled);
            }
            self.sleep_on(ahead_frames.unsigned_abs(), limit_ns);
        }
    }

    /// Returns how long the next cycle can be delayed when the device is `ahead_frames` beyond the
    /// end of this one: at most half a quantum, and half of what is left in the queue.
    fn time_to_hold_ns(&self, ahead_frames: u64) -> u64 {
        let left = match &self.streams {
            Some(streams) => streams.queued().saturating_sub(self.safety_frames.into()),
            None => u64::from(self.queue_frames - self.quantum).saturating_sub(ahead_frames),
        };
        self.frames_ns(left.min(self.quantum.into())) / 2
    }

    /// Sleeps until the device has moved `short_frames` further, as far as that can be predicted.
    fn sleep_on(&mut self, short_frames: u64, limit_ns: u64) {
        match self.wake_source {
            WakeSource::Interrupt => {
                // One after the other: a direction that is ready stays ready meanwhile.
                for pcm in self.capture.iter().chain(&self.playback) {
                    let _ = pcm.sleep_until_ready(limit_ns);
                }
            }
            WakeSource::Timer => {
                let nap_ns = self.frames_ns(short_frames).max(SHORTEST_NAP_NS);
                if let Some(clock) = &mut self.clock {
                    clock.note_early(nap_ns);
                }
                sys::clock::sleep_until(sys::clock::now_ns() + nap_ns);
            }
        }
    }

    /// Returns how many frames the device is beyond the end of the quantum (negative: short of it),
    /// and the time of that position.
    fn ahead(&mut self) -> Result<(i64, u64), Fault> {
        let ask = self.wake_source == WakeSource::Timer;
        let mut least = None;
        for pcm in self.capture.iter().chain(&self.playback) {
            let position = pcm.position(ask)?;
            let ahead = match (&mut self.streams, pcm.direction()) {
                (Some(streams), alsa::Direction::Playback) => {
                    streams.note(queued_frames(pcm, position), position.at_ns);
                    streams.ahead_of_cycle()
                }
                _ => i64::from(position.avail_frames) - i64::from(self.awaited_frames(pcm)),
            };
            if least.is_none_or(|(least, _)| ahead < least) {
                least = Some((ahead, position.at_ns));
            }
        }
        least.ok_or(Fault::Gone)
    }

    /// Returns the frames that can be read or written at the end of a quantum.
    fn awaited_frames(&self, pcm: &Pcm) -> u32 {
        match (pcm.direction(), pcm.setup()) {
            (alsa::Direction::Playback, Some(setup)) => {
                setup.buffer_frames.saturating_sub(self.queue_frames) + self.quantum
            }
            _ => self.quantum,
        }
    }

    fn quanta_ns(&self, quanta: u64) -> u64 {
        self.frames_ns(quanta * u64::from(self.quantum))
    }

    fn frames_ns(&self, frames: u64) -> u64 {
        duration_ns(frames, self.rate_hz)
    }

    /// Reads a quantum.
    pub(super) fn read(&mut self, into: &mut dyn Capture) -> Result<(), Fault> {
        let Some(capture) = &mut self.capture else { return Ok(()) };
        self.transfer.read(capture, into)
    }

    /// Writes a quantum. `finish` may change the mixed samples of each channel before they are
    /// converted.
    pub(super) fn write(
        &mut self,
        from: &mut dyn Playback,
        finish: impl FnMut(u32, &mut [f32]),
    ) -> Result<(), Fault> {
        let Some(playback) = &mut self.playback else { return Ok(()) };
        self.has_written = true;
        self.transfer.write(playback, from, finish)
    }

    /// Stops the device at once. Thread: any.
    pub(super) fn stop(&mut self) {
        self.clock = None;
        self.capture.iter_mut().chain(&mut self.playback).for_each(Pcm::stop);
    }
}

/// Returns how many frames a playback device still has.
pub(super) fn queued_frames(playback: &Pcm, position: Position) -> u32 {
    let buffer = playback.setup().map_or(0, |setup| setup.buffer_frames);
    buffer.saturating_sub(position.avail_frames)
}
