//! A stream's gains at each frame of its device.

use rt::stream::Gains;

use crate::SEGMENTS;

/// From a device frame on: a straight line from one set of gains to another, and these from then
/// on.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Ramp {
    start: u64,
    from: Gains,
    to: Gains,
    frames: u32,
}

impl Ramp {
    fn at(&self, channel: usize, frame: u64) -> f32 {
        let (from, to) = (self.from.of(channel), self.to.of(channel));
        match frame.checked_sub(self.start) {
            Some(passed) if passed < u64::from(self.frames) => {
                from + (to - from) * ((passed + 1) as f32 / (self.frames + 1) as f32)
            }
            Some(_) => to,
            None => from,
        }
    }

    fn end(&self) -> u64 {
        self.start.saturating_add(self.frames.into())
    }
}

/// A stream's gains at each frame of its device. Changes come in the order of their frames.
#[derive(Debug, Clone)]
pub struct GainLine {
    ramps: Vec<Ramp>,
}

impl GainLine {
    /// Returns the line of a stream whose samples are played as they are. Not for a device's
    /// thread.
    #[must_use]
    pub fn new() -> Self {
        let mut ramps = Vec::with_capacity(SEGMENTS);
        let (from, to) = (Gains::default(), Gains::default());
        ramps.push(Ramp { start: 0, from, to, frames: 0 });
        Self { ramps }
    }

    /// Returns the line of a stream that continues on another device with the newest gains. It
    /// allocates: not for a device's thread.
    #[must_use]
    pub fn moved(&self) -> Self {
        let mut line = Self::new();
        if let Some(newest) = self.ramps.last() {
            line.apply(newest.to, 0, 0);
        }
        line
    }

    /// Returns whether another change can be noted. Thread: cycle.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.ramps.len() < SEGMENTS
    }

    /// Returns the first frame at which a change may take effect. Thread: cycle.
    #[must_use]
    pub fn first_changeable(&self) -> u64 {
        self.ramps.last().map_or(0, |ramp| ramp.start)
    }

    /// Moves to `gains` in `frames` frames from device frame `at` on. Thread: cycle.
    pub fn apply(&mut self, gains: Gains, frames: u32, at: u64) {
        // A ramp replaced at its own first frame never takes effect, so its start gains are kept.
        let replaced = self.ramps.pop_if(|last| last.start >= at);
        let from = replaced.map_or_else(|| self.all_at(at), |replaced| replaced.from);
        if self.ramps.len() < SEGMENTS {
            self.ramps.push(Ramp { start: at, from, to: gains, frames });
        }
    }

    fn all_at(&self, frame: u64) -> Gains {
        let gains = core::array::from_fn(|channel| self.at(channel, frame));
        Gains::new(gains).unwrap_or_default()
    }

    fn ramp_at(&self, frame: u64) -> Option<&Ramp> {
        self.ramps.iter().rev().find(|ramp| ramp.start <= frame).or_else(|| self.ramps.first())
    }

    /// Returns the gain of a channel at a device frame. Thread: cycle.
    #[must_use]
    pub fn at(&self, channel: usize, frame: u64) -> f32 {
        self.ramp_at(frame).map_or(1.0, |ramp| ramp.at(channel, frame))
    }

    /// Returns the gain of a channel in `frames` frames from device frame `first` on, if it is the
    /// same in all of them. Thread: cycle.
    #[must_use]
    pub fn constant(&self, channel: usize, first: u64, frames: usize) -> Option<f32> {
        let end = first.saturating_add(frames as u64);
        let ramp = self.ramp_at(first)?;
        let changes = self.ramps.iter().any(|other| first < other.start && other.start < end);
        (!changes && ramp.end() <= first).then(|| ramp.to.of(channel))
    }

    /// Forgets what is needed for no frame from `frame` on. Thread: cycle.
    pub fn prune(&mut self, frame: u64) {
        let over = self.ramps.iter().skip(1).take_while(|next| next.start <= frame).count();
        self.ramps.drain(..over);
    }
}

impl Default for GainLine {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gains_move_in_a_straight_line_from_what_they_are() {
        let mut line = GainLine::new();
        line.apply(Gains::all(0.0).unwrap(), 3, 10);
        let at = |line: &GainLine, frame| line.at(1, frame);
        assert_eq!(
            [9, 10, 11, 12, 13, 99].map(|frame| at(&line, frame)),
            [1.0, 0.75, 0.5, 0.25, 0.0, 0.0]
        );
        line.apply(Gains::all(1.0).unwrap(), 0, 11);
        assert_eq!([10, 11].map(|frame| at(&line, frame)), [0.75, 1.0]);
        line.prune(11);
        assert_eq!(at(&line, 11), 1.0);
        assert_eq!(
            (line.constant(0, 11, 9), GainLine::new().constant(0, 0, 9)),
            (Some(1.0), Some(1.0))
        );
    }

    #[test]
    fn a_gain_is_constant_outside_of_ramps_alone() {
        let mut line = GainLine::new();
        line.apply(Gains::all(0.5).unwrap(), 4, 100);
        let constant = |first, frames| line.constant(0, first, frames);
        assert_eq!([constant(0, 100), constant(0, 101)], [Some(1.0), None]);
        assert_eq!([constant(103, 1), constant(104, 1000)], [None, Some(0.5)]);
    }
}
