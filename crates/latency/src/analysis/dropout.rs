//! Finds the faults of a copy to the frame: missing, repeated, silent or foreign stretches.

/// Kind of fault of a stretch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Frames of the left channel that are not in the right one.
    Missing,
    /// Frames that occur a second time.
    Repeated,
    /// Silence where there should be sound.
    Silent,
    /// Samples that were never sent.
    Foreign,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Missing => "missing",
            Self::Repeated => "repeated",
            Self::Silent => "silent",
            Self::Foreign => "foreign",
        })
    }
}

/// One break of the sound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dropout {
    /// The kind of fault.
    pub fault: Fault,
    /// Where it begins in the right channel, frames. If samples on both sides of a cut happen to
    /// agree, this may be some frames early.
    pub at_frame: usize,
    /// Frames that are missing, repeated, silent or foreign.
    pub frames: usize,
    /// How much longer the delay is afterwards, frames; 0 if the stretch replaces the original one.
    pub shift_frames: i64,
}

/// A copy, and its relation to the original.
pub struct Copy<'a> {
    pub left: &'a [f64],
    pub right: &'a [f64],
    /// The right channel is `gain · left + offset`, within `tolerance`.
    pub gain: f64,
    pub offset: f64,
    pub tolerance: f64,
    /// The value of silence on the right channel.
    pub silence: f64,
    /// The longest delay that a break may lead to, frames.
    pub longest: i64,
}

/// This many consecutive samples do not agree by chance: in a two-valued sequence, one position in
/// 10^14 has them.
const WINDOW: usize = 48;
/// Number of frames after a break at which all delays are tried; beyond them, the interval grows.
const CLOSE: usize = 4;
/// Limit of that interval, frames.
const SELDOM: usize = 4096;

impl Copy<'_> {
    /// Compares every sample from frame `from` to frame `to` of the left channel, a range of sound
    /// without silence, starting at `delay` or the nearest delay that fits there. Returns the
    /// breaks and the number of frames compared.
    pub fn compare(&self, from: usize, to: usize, mut delay: i64) -> (Vec<Dropout>, usize) {
        let left = from..to.min(self.left.len());
        delay = self.delay_of(&left, delay).unwrap_or(delay);
        let begin = usize::try_from(from as i64 + delay).unwrap_or(0);
        let end = |delay: i64| {
            usize::try_from(left.end as i64 + delay).unwrap_or(0).min(self.right.len())
        };
        let (mut at, mut dropouts) = (begin, Vec::new());
        while at < end(delay) {
            if self.is_same(&left, at, delay) {
                at += 1;
                continue;
            }
            let (resumes, new_delay) =
                self.resume(&left, at, delay).unwrap_or_else(|| (end(delay), delay));
            dropouts.push(self.describe(at, resumes, new_delay - delay));
            delay = new_delay;
            at = (resumes + 1).min(self.right.len());
        }
        (dropouts, at.saturating_sub(begin))
    }

    /// The delay nearest to `delay` at which the first frames of `left` are in the right channel.
    fn delay_of(&self, left: &std::ops::Range<usize>, delay: i64) -> Option<i64> {
        let nearest = (0..=self.longest).flat_map(|distance| [delay + distance, delay - distance]);
        nearest.filter(|delay| *delay >= -1).find(|delay| {
            usize::try_from(left.start as i64 + delay)
                .is_ok_and(|at| self.is_copy(left, at, *delay))
        })
    }

    fn is_same(&self, left: &std::ops::Range<usize>, at: usize, delay: i64) -> bool {
        let Ok(sent) = usize::try_from(at as i64 - delay) else { return false };
        let (Some(got), true) = (self.right.get(at), left.contains(&sent)) else { return false };
        (got - self.gain * self.left[sent] - self.offset).abs() <= self.tolerance
    }

    fn is_copy(&self, left: &std::ops::Range<usize>, at: usize, delay: i64) -> bool {
        (at..at + WINDOW).all(|at| self.is_same(left, at, delay))
    }

    fn is_silent(&self, at: usize) -> bool {
        (self.right[at] - self.silence).abs() <= self.tolerance
    }

    /// The first frame from `at` on where the right channel is a copy again, and its delay.
    fn resume(&self, left: &std::ops::Range<usize>, at: usize, delay: i64) -> Option<(usize, i64)> {
        let mut candidate = at;
        let mut next_wide = at;
        while candidate + WINDOW <= self.right.len() {
            let silent_to = (candidate..self.right.len())
                .find(|frame| !self.is_silent(*frame))
                .unwrap_or(self.right.len());
            if silent_to > candidate + 1 {
                (candidate, next_wide) = (silent_to, silent_to);
                continue;
            }
            let same = self.is_copy(left, candidate, delay).then_some(delay);
            let found = same.or_else(|| {
                (candidate >= next_wide).then(|| self.any_delay(left, candidate, delay)).flatten()
            });
            if let Some(new_delay) = found {
                let before = (at..candidate)
                    .rev()
                    .take_while(|frame| self.is_same(left, *frame, new_delay))
                    .count();
                return Some((candidate - before, new_delay));
            }
            if candidate >= next_wide {
                let gone = candidate - at;
                next_wide = candidate + if gone < CLOSE { 1 } else { gone.min(SELDOM) };
            }
            candidate += 1;
        }
        None
    }

    /// The delay nearest to `delay` at which the right channel is a copy at `at`.
    fn any_delay(&self, left: &std::ops::Range<usize>, at: usize, delay: i64) -> Option<i64> {
        let all = (1..=self.longest).flat_map(|distance| [delay + distance, delay - distance]);
        all.filter(|delay| *delay >= -1).find(|delay| self.is_copy(left, at, *delay))
    }

    fn describe(&self, at: usize, resumes: usize, shift_frames: i64) -> Dropout {
        let frames = resumes - at;
        let moved = usize::try_from(shift_frames.unsigned_abs()).unwrap_or(usize::MAX);
        let (fault, frames) = match frames {
            0 if shift_frames < 0 => (Fault::Missing, moved),
            0 => (Fault::Repeated, moved),
            _ if (at..resumes).all(|frame| self.is_silent(frame)) => (Fault::Silent, frames),
            _ => (Fault::Foreign, frames),
        };
        Dropout { fault, at_frame: at, frames, shift_frames }
    }
}
