//! The server's volume of a stream, and of a device, at each of the device's frames.

use rt::stream::Gains;

use crate::{GainLine, Planes};

/// One gain for all channels of a stream, which moves to what the server wants of it in a straight
/// line.
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

/// A gain for each channel of a device, which move to what the server wants of them in straight
/// lines.
#[derive(Debug)]
pub(crate) struct DeviceVolumeLine {
    line: GainLine,
    /// The gains of the newest ramp's end.
    wanted: Gains,
    /// How long a ramp takes, frames.
    ramp_frames: u32,
}

impl DeviceVolumeLine {
    /// Returns the line of these gains. Not for a device's thread.
    pub(crate) fn new(gains: Gains, ramp_frames: u32) -> Self {
        let mut line = GainLine::new();
        line.apply(gains, 0, 0);
        Self { line, wanted: gains, ramp_frames }
    }

    /// Returns whether `gains` are others than are on their way. Thread: cycle.
    pub(crate) fn wants(&self, gains: &Gains) -> bool {
        *gains != self.wanted
    }

    /// Moves to `gains` from device frame `at` on, if they are others and there is room for the
    /// change. Thread: cycle.
    pub(crate) fn follow(&mut self, gains: Gains, at: u64) {
        if self.wants(&gains) && self.line.has_room() {
            self.line.apply(gains, self.ramp_frames, at.max(self.line.first_changeable()));
            self.wanted = gains;
        }
    }

    /// Multiplies the samples of device frame `first` and after. Those at a gain of 1 keep every
    /// bit. Thread: cycle.
    pub(crate) fn scale(&self, first: u64, planes: &mut Planes) {
        for channel in 0..planes.channels() {
            // Channels beyond those that can have a gain of their own have that of the last.
            let gain_of = channel.min(Gains::CHANNELS - 1);
            match self.line.constant(gain_of, first, planes.frames()) {
                Some(1.0) => {}
                Some(gain) => {
                    planes.channel_mut(channel).iter_mut().for_each(|sample| *sample *= gain);
                }
                None => {
                    let samples = (first..).zip(planes.channel_mut(channel));
                    samples.for_each(|(frame, sample)| *sample *= self.line.at(gain_of, frame));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_channel_of_a_device_is_scaled_by_its_own_gain() {
        let mut gains = [0.25; Gains::CHANNELS];
        (gains[0], gains[1]) = (1.0, 0.5);
        let gains = Gains::new(gains).unwrap();
        let mut line = DeviceVolumeLine::new(gains, 2);
        let scaled = |line: &DeviceVolumeLine, first| {
            let mut planes = Planes::new(Gains::CHANNELS + 2, 3);
            planes.silence(3);
            (0..planes.channels()).for_each(|channel| planes.channel_mut(channel).fill(1.0));
            line.scale(first, &mut planes);
            [0, 1, 2, Gains::CHANNELS + 1].map(|channel| planes.channel(channel).to_vec())
        };
        assert_eq!(scaled(&line, 0), [[1.0; 3], [0.5; 3], [0.25; 3], [0.25; 3]]);
        line.follow(Gains::all(0.5).unwrap(), 10);
        assert!(!line.wants(&Gains::all(0.5).unwrap()));
        let [left, right, other, last] = scaled(&line, 9);
        assert_eq!(right, [0.5; 3], "no other gain, no ramp");
        assert!(left[0] == 1.0 && left[1] > left[2] && left[2] > 0.5, "{left:?}");
        assert!(other[0] == 0.25 && other[1] < other[2] && other[2] < 0.5 && other == last);
        assert_eq!(scaled(&line, 12), [[0.5; 3]; 4].map(|gains| gains.to_vec()));
    }
}
