//! Sends the signal and records, cycle by cycle, the direct sound and the sound that came back.

use std::time::{Duration, Instant};

use crate::analysis::Signal;
use anyhow::{bail, ensure};
use rtrb::{Consumer, Producer, RingBuffer};

/// What to send and record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) signal: Signal,
    /// Frames of the signal.
    pub(crate) frames: usize,
    /// Frames recorded after the signal: the longest latency that can be measured.
    pub(crate) tail_frames: usize,
    pub(crate) sample_rate_hz: u32,
}

/// Phases of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Sends a tone until it comes back: connections may take some cycles.
    Searching,
    /// Waits until the tone has died away.
    Settling,
    /// Sends the signal and records.
    Recording,
    /// Sends silence: everything is recorded.
    Over,
}

/// Level above which the tone has come back, and below which it has died away.
const RECEIVED: f32 = 0.01;
/// Level of the tone: a square wave, which no high-pass removes.
const TONE: f32 = 0.1;
/// Period of the tone in frames.
const TONE_PERIOD: usize = 64;
/// Time limit of the first two phases in seconds, after which the recording begins in any case.
const SEARCH_LIMIT_S: usize = 5;
/// The tone has died away after this part of a second of silence.
const SETTLE_DIVISOR: usize = 10;
/// Frames of silence before the signal.
const LEAD_FRAMES: usize = 512;

/// The end inside the cycle. It never allocates.
#[derive(Debug)]
pub(crate) struct ProbeSender {
    signal: Vec<f32>,
    recorded: Producer<[f32; 2]>,
    phase: Phase,
    /// Frames since the phase began.
    frames: usize,
    /// Frames since the last one above [`RECEIVED`].
    quiet_frames: usize,
    sample_rate_hz: usize,
}

/// The end outside of the cycle.
#[derive(Debug)]
pub(crate) struct ProbeRecorder {
    recorded: Consumer<[f32; 2]>,
    frames: usize,
}

impl ProbeSender {
    /// Allocates all memory of a measurement, and returns its two ends.
    pub(crate) fn new(plan: &Plan) -> (Self, ProbeRecorder) {
        let mut signal = vec![0.0; LEAD_FRAMES];
        signal.extend(plan.signal.samples(plan.frames, plan.sample_rate_hz));
        signal.resize(signal.len() + plan.tail_frames, 0.0);
        let (mut producer, mut consumer) = RingBuffer::new(signal.len());
        // Touch every page here: the first touch in a cycle would be a page fault.
        while producer.push([0.0; 2]).is_ok() {}
        while consumer.pop().is_ok() {}
        let frames = signal.len();
        let sender = Self {
            signal,
            recorded: producer,
            phase: Phase::Searching,
            frames: 0,
            quiet_frames: 0,
            sample_rate_hz: plan.sample_rate_hz.max(1) as usize,
        };
        (sender, ProbeRecorder { recorded: consumer, frames })
    }

    /// Takes the samples received in a cycle, and fills those to send. Thread: cycle.
    pub(crate) fn cycle(&mut self, received: &[f32], sent: &mut [f32]) {
        for (received, sent) in received.iter().zip(sent) {
            *sent = self.frame(*received);
        }
    }

    /// Returns whether everything is recorded.
    pub(crate) fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    fn frame(&mut self, received: f32) -> f32 {
        self.quiet_frames = if received.abs() > RECEIVED { 0 } else { self.quiet_frames + 1 };
        let limit = SEARCH_LIMIT_S * self.sample_rate_hz;
        match self.phase {
            Phase::Searching => {
                let half = self.frames / (TONE_PERIOD / 2) % 2;
                self.next(self.quiet_frames == 0 || self.frames >= limit, Phase::Settling);
                if half == 0 { TONE } else { -TONE }
            }
            Phase::Settling => {
                let settled = self.quiet_frames >= self.sample_rate_hz / SETTLE_DIVISOR;
                self.next(
                    (settled && self.frames >= self.quiet_frames) || self.frames >= limit,
                    Phase::Recording,
                );
                0.0
            }
            Phase::Recording => {
                let sent = self.signal.get(self.frames).copied().unwrap_or(0.0);
                // The ring has room for the whole recording.
                let _ = self.recorded.push([sent, received]);
                self.next(self.frames + 1 >= self.signal.len(), Phase::Over);
                sent
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

/// A system that runs no frame for this long has stopped.
const STALLED: Duration = Duration::from_secs(30);

impl ProbeRecorder {
    /// Waits until everything is recorded. Returns the direct channel and the delayed one.
    ///
    /// # Errors
    /// The system has stopped: `is_running` returns false, or no frame runs.
    pub(crate) fn wait(mut self, is_running: impl Fn() -> bool) -> anyhow::Result<[Vec<f32>; 2]> {
        let mut channels = [Vec::with_capacity(self.frames), Vec::with_capacity(self.frames)];
        let mut moved = Instant::now();
        while channels[0].len() < self.frames {
            // Before the frames are taken: what has ended after them has recorded all.
            let was_running = is_running();
            let before = channels[0].len();
            while let Ok(frame) = self.recorded.pop() {
                channels.iter_mut().zip(frame).for_each(|(channel, sample)| channel.push(sample));
            }
            let recorded = channels[0].len();
            if recorded > before {
                moved = Instant::now();
            }
            ensure!(
                was_running || recorded == self.frames,
                "the system disappeared after {recorded} frames"
            );
            if moved.elapsed() > STALLED {
                bail!("the system has stopped after {recorded} of {} frames", self.frames);
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

    /// Measures a line with a delay of `delay` frames that passes nothing for its first `deaf`
    /// frames.
    fn record(delay: usize, deaf: usize) -> [Vec<f32>; 2] {
        let (mut sender, recorder) = ProbeSender::new(&PLAN);
        let mut line: VecDeque<f32> = vec![0.0; delay].into();
        let mut passed = 0;
        while sender.phase != Phase::Over {
            let mut sent = [0.0; 64];
            let received: Vec<f32> = (0..64).map(|_| line.pop_front().unwrap_or(0.0)).collect();
            sender.cycle(&received, &mut sent);
            passed += 64;
            line.extend(sent.iter().map(|sample| if passed < deaf { 0.0 } else { *sample }));
        }
        recorder.wait(|| true).unwrap()
    }

    #[test]
    fn a_late_connection_loses_nothing_of_the_signal() {
        for (delay, deaf) in [(64, 0), (256, 10_000), (4_096, 100_000)] {
            let [direct, delayed] = record(delay, deaf);
            assert_eq!(direct[..direct.len() - delay], delayed[delay..], "{delay} {deaf}");
            assert_eq!(direct.len(), LEAD_FRAMES + PLAN.frames + PLAN.tail_frames);
        }
    }

    #[test]
    fn a_system_that_returns_nothing_is_recorded() {
        let [direct, delayed] = record(64, usize::MAX);
        assert!(
            direct.iter().any(|sample| *sample != 0.0)
                && delayed.iter().all(|sample| *sample == 0.0)
        );
    }

    #[test]
    fn a_system_that_disappears_is_an_error() {
        let (_sender, recorder) = ProbeSender::new(&PLAN);
        assert!(
            recorder.wait(|| false).unwrap_err().to_string().contains("disappeared after 0 frames")
        );
    }
}
