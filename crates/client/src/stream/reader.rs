//! A record stream, as its program sees it.

use sys::memory::PeerRing;

use super::{SamplesMut, StreamControl};

const NS_PER_SECOND: u128 = 1_000_000_000;

/// Empties the ring of a record stream.
#[derive(Debug)]
pub struct StreamReader {
    ring: PeerRing,
    /// The ring of a server that has gone, as long as it has frames to be read.
    earlier: Option<PeerRing>,
    control: StreamControl,
    position: u64,
    lost: u64,
    unrecorded_ns: u64,
    gap: Option<Gap>,
}

/// A time without a server whose end is not known yet.
#[derive(Debug, Clone, Copy)]
struct Gap {
    /// When the first frame that is missing was heard, ns.
    since_ns: u64,
    /// The position of the first frame after it.
    position: u64,
}

impl StreamReader {
    /// Takes the ring that the server writes, and starts at position 0.
    #[must_use]
    pub fn new(ring: PeerRing, control: StreamControl) -> Self {
        Self { ring, earlier: None, control, position: 0, lost: 0, unrecorded_ns: 0, gap: None }
    }

    /// The server has gone.
    pub(super) fn leave(&mut self, at_ns: u64) {
        self.measure_gap();
        let position = self.end();
        // What it had not passed on by then is missing as well.
        let heard_ns = self.control.timing().time_of(position);
        self.control.leave(at_ns, position);
        if let Some(since_ns) = heard_ns.filter(|_| self.gap.is_none() && self.control.runs()) {
            self.gap = Some(Gap { since_ns, position });
        }
    }

    /// Goes on at another server, with the position that follows the last frame of the one before.
    pub(super) fn follow(&mut self, ring: PeerRing, control: StreamControl) {
        if let Some(earlier) = self.earlier.take() {
            let left = earlier.header().written().saturating_sub(self.position);
            (self.lost, self.position) = (self.lost + left, self.position + left);
        }
        self.earlier = Some(std::mem::replace(&mut self.ring, ring));
        self.control = control;
    }

    /// Returns the position after the last frame that was recorded.
    pub(super) fn end(&self) -> u64 {
        self.ring.header().written()
    }

    /// Returns for how many frames of time there was no server, or one that died before it passed
    /// them on, since the stream began; `None` until the next one has recorded something.
    pub fn unrecorded_frames(&mut self) -> Option<u64> {
        self.measure_gap();
        if self.gap.is_some() {
            return None;
        }
        let rate_hz = self.control.page().state().map_or(0, |state| state.sample_rate_hz);
        let frames = u128::from(self.unrecorded_ns) * u128::from(rate_hz) / NS_PER_SECOND;
        Some(u64::try_from(frames).unwrap_or(u64::MAX))
    }

    fn measure_gap(&mut self) {
        let Some(gap) = self.gap else { return };
        let timing = self.control.timing();
        if timing.position <= gap.position {
            return;
        }
        if let Some(ends_ns) = timing.time_of(gap.position) {
            self.unrecorded_ns += ends_ns.saturating_sub(gap.since_ns);
            self.gap = None;
        }
    }

    /// Returns the ring that has the next frame.
    fn source(&self) -> &PeerRing {
        let earlier = self.earlier.as_ref();
        earlier.filter(|ring| self.position < ring.header().written()).unwrap_or(&self.ring)
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
        let ring = self.source();
        let waiting = ring.header().written().saturating_sub(self.position);
        let capacity = ring.shape().capacity_frames();
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
        if self.earlier.as_ref().is_some_and(|ring| ring.header().written() <= self.position) {
            self.earlier = None;
        }
        // The second try is for a reader that is overtaken during the first.
        for _ in 0..2 {
            let ring = self.source();
            let (shape, written) = (ring.shape(), ring.header().written());
            let capacity = shape.capacity_frames();
            let oldest = written.saturating_sub(capacity.into());
            if self.position < oldest {
                self.skip_to(oldest + u64::from(capacity / 4));
            }
            let ring = self.source();
            let frames = into.frames(shape.channels()).min(self.available());
            into.fill(shape.channels(), frames, |channel, first, plane| {
                ring.copy(channel, self.position + first as u64, plane);
            });
            if ring.header().is_intact(self.position, capacity) {
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
