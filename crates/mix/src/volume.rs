//! The server's volume of a stream or a device at each of the device's frames.

use rt::stream::Gains;

use crate::{GainLine, Planes};

/// One gain for all channels, which moves to what the server wants of it in a straight line.
#[derive(Debug)]
pub(crate) struct VolumeLine {
    line: GainLine,
    /// The gain of the newest ramp's end.
    wanted: f32,
    /// How long a ramp takes, frames.
    ramp_frames: u32,
}

impl VolumeLine {
    /// Returns the line of a gain of 1. Not for a device's thread.
    pub(crate) fn new(ramp_frames: u32) -> Self {
        Self { line: GainLine::new(), wanted: 1.0, ramp_frames }
    }

    /// Returns whether `gain` is another one than is on its way. Thread: cycle.
    pub(crate) fn wants(&self, gain: f32) -> bool {
        // Bits: a gain is copied, not computed.
        gain.to_bits() != self.wanted.to_bits()
    }

    /// Moves to `gain` from device frame `at` on, if it is another one and there is room for the
    /// change. What is no gain changes nothing. Thread: cycle.
    pub(crate) fn follow(&mut self, gain: f32, at: u64) {
        if self.wants(gain)
            && self.line.has_room()
            && let Some(gains) = Gains::all(gain)
        {
            self.line.apply(gains, self.ramp_frames, at.max(self.line.first_changeable()));
            self.wanted = gain;
        }
    }

    /// Starts at `gain`, without a ramp. Not for a device's thread.
    pub(crate) fn start_at(&mut self, gain: f32) {
        if let Some(gains) = Gains::all(gain) {
            self.line.apply(gains, 0, 0);
            self.wanted = gain;
        }
    }

    /// Returns the gain at a device frame. Thread: cycle.
    pub(crate) fn at(&self, frame: u64) -> f32 {
        self.line.at(0, frame)
    }

    /// Returns the gain of `frames` frames from device frame `first` on, if it is the same in all
    /// of them. Thread: cycle.
    pub(crate) fn constant(&self, first: u64, frames: usize) -> Option<f32> {
        self.line.constant(0, first, frames)
    }

    /// Multiplies the samples of device frame `first` and after. Those at a gain of 1 keep every
    /// bit. Thread: cycle.
    pub(crate) fn scale(&self, first: u64, planes: &mut Planes) {
        match self.constant(first, planes.frames()) {
            Some(1.0) => {}
            Some(gain) => {
                for channel in 0..planes.channels() {
                    planes.channel_mut(channel).iter_mut().for_each(|sample| *sample *= gain);
                }
            }
            None => {
                for channel in 0..planes.channels() {
                    let samples = (first..).zip(planes.channel_mut(channel));
                    samples.for_each(|(frame, sample)| *sample *= self.at(frame));
                }
            }
        }
    }

    /// Returns where the newest change begins.
    #[cfg(test)]
    pub(crate) fn changed_at(&self) -> u64 {
        self.line.first_changeable()
    }

    /// Forgets what is needed for no frame from `frame` on. Thread: cycle.
    pub(crate) fn prune(&mut self, frame: u64) {
        self.line.prune(frame);
    }
}
