//! A record stream, as its program sees it.

use sys::memory::PeerRing;

use super::{SamplesMut, StreamControl};

/// Empties the ring of a record stream.
#[derive(Debug)]
pub struct StreamReader {
    ring: PeerRing,
    control: StreamControl,
    position: u64,
    lost: u64,
}

impl StreamReader {
    /// Takes the ring that the server writes, and starts at position 0.
    #[must_use]
    pub fn new(ring: PeerRing, control: StreamControl) -> Self {
        Self { ring, control, position: 0, lost: 0 }
    }

    /// Returns its wishes and times.
    #[must_use]
    pub fn control(&self) -> &StreamControl {
        &self.control
    }

    /// Returns its wishes and times, for a wish.
    pub fn control_mut(&mut self) -> &mut StreamControl {
        &mut self.control
    }

    /// Returns the position of the next frame to be read.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Returns how many frames can be read now.
    #[must_use]
    pub fn available(&self) -> usize {
        let waiting = self.ring.header().written().saturating_sub(self.position);
        let capacity = self.ring.shape().capacity_frames();
        usize::try_from(waiting.min(capacity.into())).unwrap_or(0)
    }

    /// Returns how many frames the server has overwritten before they were read.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Reads the next frames; returns how many. Frames that were overwritten are skipped, and
    /// [counted](Self::lost). Never waits.
    pub fn read(&mut self, mut into: SamplesMut<'_, '_>) -> usize {
        let shape = self.ring.shape();
        let capacity = shape.capacity_frames();
        // The second try is for a reader that is overtaken during the first.
        for _ in 0..2 {
            let written = self.ring.header().written();
            let oldest = written.saturating_sub(capacity.into());
            if self.position < oldest {
                self.skip_to(oldest + u64::from(capacity / 4));
            }
            let frames = into.frames(shape.channels()).min(self.available());
            into.fill(shape.channels(), frames, |channel, first, plane| {
                self.ring.copy(channel, self.position + first as u64, plane);
            });
            if self.ring.header().is_intact(self.position, capacity) {
                self.position += frames as u64;
                return frames;
            }
            self.skip_to(self.position + u64::from(capacity / 4));
        }
        0
    }

    /// Skips lost frames and a reserve, so that the writer does not overtake the reader again at
    /// once.
    fn skip_to(&mut self, position: u64) {
        self.lost += position - self.position;
        self.position = position;
    }

    /// Waits until there are frames to read, and returns how many; 0 once `deadline_ns`
    /// (`CLOCK_MONOTONIC`) has passed. The wait ends `lag_ns` after the device's wake-up, which
    /// should be as long as a wake-up takes.
    #[must_use]
    pub fn await_frames(&self, lag_ns: u64, deadline_ns: u64) -> usize {
        let lag_ns = i64::try_from(lag_ns).unwrap_or(i64::MAX);
        if self.available() == 0 {
            let _ =
                self.control.await_device(self.position, lag_ns, deadline_ns, || self.available());
        }
        self.available()
    }
}
