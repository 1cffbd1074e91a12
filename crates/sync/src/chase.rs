//! Chasing a position that runs: the transport is located slightly ahead, and starts when the
//! position gets there.

use super::Wish;

/// How far ahead the transport waits for the position, so that clients can get ready.
const AHEAD_S: f64 = 0.3;
/// A position that is not heard of for this long has stopped.
const SILENCE_S: f64 = 0.15;

/// A position that was heard.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Heard {
    /// A frame time.
    pub(crate) at: u32,
    /// The transport frame at that time.
    pub(crate) frame: f64,
    /// Audio frames by which the transport may be off.
    pub(crate) tolerance: f64,
}

impl Heard {
    /// Returns the transport frame at a frame time.
    pub(crate) fn place_at(&self, time: u32) -> f64 {
        self.frame + f64::from(time.wrapping_sub(self.at).cast_signed())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Stopped,
    /// The transport waits for the cycle that begins at this frame time.
    Ahead {
        rolls_at: u32,
    },
    Rolling,
}

/// State of the transport that chases.
#[derive(Debug, Clone)]
pub(crate) struct Chase {
    sample_rate_hz: f64,
    /// Frame time of the newest sign that the position runs.
    newest: u32,
    heard: Option<Heard>,
    stage: Stage,
}

impl Chase {
    pub(crate) fn new(sample_rate_hz: u32) -> Self {
        let sample_rate_hz = f64::from(sample_rate_hz);
        Self { sample_rate_hz, newest: 0, heard: None, stage: Stage::Stopped }
    }

    /// Notes at a frame time that the position still runs.
    pub(crate) fn hear_sign(&mut self, at: u32) {
        self.newest = at;
    }

    /// Notes a position.
    pub(crate) fn hear(&mut self, heard: Heard) {
        self.newest = heard.at;
        self.heard = Some(heard);
    }

    /// Returns the newest position.
    pub(crate) fn heard(&self) -> Option<Heard> {
        self.heard
    }

    /// Forgets the position, and stops the transport if it chases.
    pub(crate) fn stop(&mut self, mut wish: impl FnMut(Wish)) {
        self.heard = None;
        if std::mem::replace(&mut self.stage, Stage::Stopped) != Stage::Stopped {
            wish(Wish::Stop);
        }
    }

    /// Asks for changes at the end of a cycle of `frames` frames that began at the frame time
    /// `begin`. `rolling` is the transport's frame, if it rolls.
    pub(crate) fn end_cycle(
        &mut self,
        begin: u32,
        frames: u32,
        rolling: Option<u32>,
        mut wish: impl FnMut(Wish),
    ) {
        let Some(heard) = self.heard else { return };
        let silent = f64::from(begin.wrapping_sub(self.newest).cast_signed());
        if silent > self.sample_rate_hz * SILENCE_S {
            return self.stop(wish);
        }
        match self.stage {
            Stage::Stopped => {
                let cycles = (self.sample_rate_hz * AHEAD_S / f64::from(frames)).ceil() as u32;
                let rolls_at = begin.wrapping_add(frames.wrapping_mul(cycles.max(3)));
                wish(Wish::Stop);
                wish(Wish::Locate(heard.place_at(rolls_at).round().max(0.0) as u32));
                self.stage = Stage::Ahead { rolls_at };
            }
            Stage::Ahead { rolls_at } => {
                // After a request now, the transport is starting in the next cycle and rolls in the
                // one after it.
                let next = begin.wrapping_add(frames.wrapping_mul(2));
                if rolls_at.wrapping_sub(next).cast_signed() <= 0 {
                    wish(Wish::Start);
                    self.stage = Stage::Rolling;
                }
            }
            Stage::Rolling => {
                let is_off = rolling.is_some_and(|frame| {
                    (f64::from(frame) - heard.place_at(begin)).abs() > heard.tolerance
                });
                if is_off {
                    // Wrong position or speed: locate again.
                    self.stop(wish);
                }
            }
        }
    }
}
