//! Where a copy is not one: stretches that are missing, repeated, silent or foreign, to the frame.

/// What happened to a stretch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Frames of the left channel that the right one never has.
    Missing,
    /// Frames that come a second time.
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
    /// What is wrong.
    pub fault: Fault,
    /// Where in the right channel it begins, frames. Where the samples on both sides of a cut
    /// happen to agree, it may be some frames before.
    pub at_frame: usize,
    /// Frames that are missing, repeated, silent or foreign.
    pub frames: usize,
    /// How much longer the delay is from there on; 0 where the stretch stands in place of the right
    /// one.
    pub shift_frames: i64,
}

/// A copy, and how it was made.
pub struct Copy<'a> {
    pub left: &'a [f64],
    pub right: &'a [f64],
    /// The right channel is `gain · left + offset`, within `tolerance`.
    pub gain: f64,
    pub offset: f64,
    pub tolerance: f64,
    /// What silence is on the right channel.
    pub silence: f64,
    /// The longest delay that a break may lead to, frames.
    pub longest: i64,
}

/// As many samples in a row are no chance: of a two-valued sequence, one place in 10^14 has them.
const WINDOW: usize = 48;
/// All delays are tried at each of the first so many frames after a break, then ever more seldom.
const CLOSE: usize = 4;
/// As seldom at most, frames.
const SELDOM: usize = 4096;

impl Copy<'_> {
    /// Compares sample for sample, from frame `from` of the left channel to frame `to`, which hold
    /// sound without silence in between, starting at `delay` or the nearest one that holds there.
    /// Gives the breaks and the number of frames compared.
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

    /// The delay nearest to `delay` with which the first frames of `left` are in the right channel.
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
        let mut look = at;
        let mut next_wide = at;
        while look + WINDOW <= self.right.len() {
            let silent_to = (look..self.right.len())
                .find(|frame| !self.is_silent(*frame))
                .unwrap_or(self.right.len());
            if silent_to > look + 1 {
                (look, next_wide) = (silent_to, silent_to);
                continue;
            }
            let same = self.is_copy(left, look, delay).then_some(delay);
            let found = same.or_else(|| {
                (look >= next_wide).then(|| self.any_delay(left, look, delay)).flatten()
            });
            if let Some(new_delay) = found {
                let before = (at..look)
                    .rev()
                    .take_while(|frame| self.is_same(left, *frame, new_delay))
                    .count();
                return Some((look - before, new_delay));
            }
            if look >= next_wide {
                let gone = look - at;
                next_wide = look + if gone < CLOSE { 1 } else { gone.min(SELDOM) };
            }
            look += 1;
        }
        None
    }

    /// The delay nearest to `delay` with which the right channel is a copy at `at`.
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
