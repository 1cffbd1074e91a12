//! Sends a signal and records, cycle by cycle: the direct sound beside what came back.

use std::time::{Duration, Instant};

use anyhow::{bail, ensure};
use latency::Signal;
use rtrb::{Consumer, Producer, RingBuffer};

/// What is sent and recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) signal: Signal,
    /// Frames of the signal.
    pub(crate) frames: usize,
    /// Frames that are recorded after it: the longest latency that can be measured.
    pub(crate) tail_frames: usize,
    pub(crate) sample_rate_hz: u32,
}

/// Where the recording is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Sends a call until it comes back: connections may take some cycles to be made.
    Calling,
    /// Waits until the call has died away.
    Hushing,
    /// Sends and records.
    Rolling,
    /// Silent, and done.
    Over,
}

/// What comes back of the call is above this, and what is left of it below.
const HEARD: f32 = 0.01;
/// The call: a square wave of this height and period, which no high-pass takes away.
const CALL: f32 = 0.1;
const CALL_PERIOD: usize = 64;
/// Nobody answers a call for longer than this: then the recording begins all the same, and shows what there is.
const CALL_LIMIT_S: usize = 5;
/// As long has the call to have died away.
const HUSH_DIVISOR: usize = 10;
/// Silence before the signal.
const LEAD_FRAMES: usize = 512;

/// The end in the cycle.
#[derive(Debug)]
pub(crate) struct Tape {
    signal: Vec<f32>,
    recorded: Producer<[f32; 2]>,
    phase: Phase,
    /// Frames since the phase began, and since something was heard.
    frames: usize,
    quiet_frames: usize,
    sample_rate_hz: usize,
}

/// The end outside of it.
#[derive(Debug)]
pub(crate) struct Reel {
    recorded: Consumer<[f32; 2]>,
    frames: usize,
}

impl Tape {
    /// A tape with all its memory, and the reel that it runs onto.
    pub(crate) fn new(plan: &Plan) -> (Self, Reel) {
        let mut signal = vec![0.0; LEAD_FRAMES];
        signal.extend(plan.signal.samples(plan.frames, plan.sample_rate_hz));
        signal.resize(signal.len() + plan.tail_frames, 0.0);
        let (mut producer, mut consumer) = RingBuffer::new(signal.len());
        // Every page is touched now: the first touch in a cycle would be a page fault.
        while producer.push([0.0; 2]).is_ok() {}
        while consumer.pop().is_ok() {}
        let frames = signal.len();
        let tape = Self {
            signal,
            recorded: producer,
            phase: Phase::Calling,
            frames: 0,
            quiet_frames: 0,
            sample_rate_hz: plan.sample_rate_hz.max(1) as usize,
        };
        (tape, Reel { recorded: consumer, frames })
    }

    /// One cycle: what was heard in it, and what is to be said. Thread: cycle.
    pub(crate) fn cycle(&mut self, heard: &[f32], said: &mut [f32]) {
        for (heard, said) in heard.iter().zip(said) {
            *said = self.frame(*heard);
        }
    }

    /// Whether everything has been recorded.
    pub(crate) fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    fn frame(&mut self, heard: f32) -> f32 {
        self.quiet_frames = if heard.abs() > HEARD { 0 } else { self.quiet_frames + 1 };
        let limit = CALL_LIMIT_S * self.sample_rate_hz;
        match self.phase {
            Phase::Calling => {
                let half = self.frames / (CALL_PERIOD / 2) % 2;
                self.next(self.quiet_frames == 0 || self.frames >= limit, Phase::Hushing);
                if half == 0 { CALL } else { -CALL }
            }
            Phase::Hushing => {
                let hushed = self.quiet_frames >= self.sample_rate_hz / HUSH_DIVISOR;
                self.next(
                    (hushed && self.frames >= self.quiet_frames) || self.frames >= limit,
                    Phase::Rolling,
                );
                0.0
            }
            Phase::Rolling => {
                let said = self.signal.get(self.frames).copied().unwrap_or(0.0);
                // There is room for all of it.
                let _ = self.recorded.push([said, heard]);
                self.next(self.frames + 1 >= self.signal.len(), Phase::Over);
                said
            }
            Phase::Over => 0.0,
        }
    }

    fn next(&mut self, ends: bool, phase: Phase) {
        if ends {
            (self.phase, self.frames) = (phase, 0);
        } else {
            self.frames += 1;
        }
    }
}

/// A system that does not run a single frame for so long has stopped.
const STALLED: Duration = Duration::from_secs(30);

impl Reel {
    /// Waits until all is recorded: the direct sound, and what came back.
    ///
    /// # Errors
    /// The system has stopped, as `is_running` says, or as it shows by not moving on.
    pub(crate) fn wait(mut self, is_running: impl Fn() -> bool) -> anyhow::Result<[Vec<f32>; 2]> {
        let mut channels = [Vec::with_capacity(self.frames), Vec::with_capacity(self.frames)];
        let mut moved = Instant::now();
        while channels[0].len() < self.frames {
            let before = channels[0].len();
            while let Ok(frame) = self.recorded.pop() {
                channels.iter_mut().zip(frame).for_each(|(channel, sample)| channel.push(sample));
            }
            let recorded = channels[0].len();
            if recorded > before {
                moved = Instant::now();
            }
            ensure!(is_running() || recorded == self.frames, "the system went away after {recorded} frames");
            if moved.elapsed() > STALLED {
                bail!("the system stands still after {recorded} of {} frames", self.frames);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(channels)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    const PLAN: Plan =
        Plan { signal: Signal::Marked, frames: 30_000, tail_frames: 5_000, sample_rate_hz: 48_000 };

    /// Runs a tape against a line of `delay` frames that passes nothing for its first `deaf` frames.
    fn roll(delay: usize, deaf: usize) -> [Vec<f32>; 2] {
        let (mut tape, reel) = Tape::new(&PLAN);
        let mut line: VecDeque<f32> = vec![0.0; delay].into();
        let mut passed = 0;
        while tape.phase != Phase::Over {
            let mut said = [0.0; 64];
            let heard: Vec<f32> = (0..64).map(|_| line.pop_front().unwrap_or(0.0)).collect();
            tape.cycle(&heard, &mut said);
            passed += 64;
            line.extend(said.iter().map(|sample| if passed < deaf { 0.0 } else { *sample }));
        }
        reel.wait(|| true).unwrap()
    }

    #[test]
    fn nothing_of_the_signal_is_lost_however_late_the_connection_is_made() {
        for (delay, deaf) in [(64, 0), (256, 10_000), (4_096, 100_000)] {
            let [direct, delayed] = roll(delay, deaf);
            assert_eq!(direct[..direct.len() - delay], delayed[delay..], "{delay} {deaf}");
            assert_eq!(direct.len(), LEAD_FRAMES + PLAN.frames + PLAN.tail_frames);
        }
    }

    #[test]
    fn a_system_that_returns_nothing_is_recorded_all_the_same() {
        let [direct, delayed] = roll(64, usize::MAX);
        assert!(direct.iter().any(|sample| *sample != 0.0) && delayed.iter().all(|sample| *sample == 0.0));
    }

    #[test]
    fn a_system_that_goes_away_is_an_error() {
        let (_tape, reel) = Tape::new(&PLAN);
        assert!(reel.wait(|| false).unwrap_err().to_string().contains("went away after 0 frames"));
    }
}
