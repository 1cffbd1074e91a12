//! A card without hardware: its position follows `CLOCK_MONOTONIC` at the nominal rate, and nothing
//! comes of what is written to it.

use mix::{Card, CardPosition, Planes};
use rt::rate::{duration_ns, frames_in};

use super::tap::Tap;

/// How much is rendered ahead, at most.
const BUFFER_NS: u64 = 2_000_000_000;
/// How long before a frame is played it is written, for a thread that is late.
const SAFETY_NS: u64 = 1_000_000;
/// How long before a frame is played it is final. It reads nothing ahead, so this is for the thread
/// that renders: with a few streams, what it publishes about a change is known before that is
/// played.
const FETCHED_NS: u64 = 100_000;
const PS_PER_SECOND: u64 = 1_000_000_000_000;

/// A card that plays into nothing.
#[derive(Debug)]
pub(super) struct NullCard {
    sample_rate_hz: u32,
    /// When it was started, and the frame of then. `None`: it stands.
    started: Option<(u64, u64)>,
    /// Frames that have been played.
    played: u64,
    /// The frame after the last one that was written.
    written: u64,
    /// Records what is played.
    tap: Option<Box<Tap>>,
}

impl NullCard {
    /// Returns a card that stands at frame 0.
    #[must_use]
    pub fn new(sample_rate_hz: u32) -> Self {
        Self { sample_rate_hz, started: None, played: 0, written: 0, tap: None }
    }

    /// Records everything that is played from now on. Not for the driver thread.
    pub(super) fn record(&mut self, tap: Tap) {
        self.tap = Some(Box::new(tap));
    }

    /// Ends the recording with what has been played by now. Not for the driver thread.
    pub(super) fn end(&mut self) {
        self.position(sys::clock::now_ns());
        if let Some(tap) = &mut self.tap {
            tap.end();
        }
    }

    fn frames_in(&self, duration_ns: u64) -> u32 {
        u32::try_from(frames_in(duration_ns, self.sample_rate_hz)).unwrap_or(u32::MAX)
    }
}

impl Card for NullCard {
    fn buffer_frames(&self) -> u32 {
        self.frames_in(BUFFER_NS)
    }

    fn safety_frames(&self) -> u32 {
        self.frames_in(SAFETY_NS)
    }

    fn fetched_frames(&self) -> u32 {
        self.frames_in(FETCHED_NS)
    }

    fn position(&mut self, now_ns: u64) -> CardPosition {
        let mut at_ns = now_ns;
        if let Some((start_ns, frame)) = self.started {
            let passed = frames_in(now_ns.saturating_sub(start_ns), self.sample_rate_hz);
            self.played = frame + passed;
            at_ns = start_ns + duration_ns(passed, self.sample_rate_hz);
            if let Some(tap) = &mut self.tap {
                tap.play(self.played);
            }
        }
        let frame_ps = PS_PER_SECOND / u64::from(self.sample_rate_hz.max(1));
        CardPosition { played: self.played, at_ns, frame_ps }
    }

    fn written(&self) -> u64 {
        self.written
    }

    fn rewind(&mut self, frames: u64) -> u64 {
        let taken = frames.min(self.written.saturating_sub(self.played));
        if let Some(tap) = &mut self.tap {
            tap.take_back(self.written - taken, self.written);
        }
        self.written -= taken;
        taken
    }

    fn is_heard(&self) -> bool {
        self.tap.is_some()
    }

    fn write(&mut self, first: u64, planes: &Planes) {
        self.written = first + planes.frames() as u64;
        if let Some(tap) = &mut self.tap {
            tap.write(first, planes);
        }
    }

    fn start(&mut self, now_ns: u64) {
        self.started = Some((now_ns, self.played));
    }

    fn stop(&mut self) {
        // What is left was not heard, and is not when it is started again.
        self.rewind(u64::MAX);
        self.started = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    #[test]
    fn its_position_follows_the_clock_from_each_start_on() {
        let mut card = NullCard::new(44_100);
        assert_eq!(card.position(5).played, 0);
        card.start(SECOND_NS);
        // An hour later, to the frame.
        assert_eq!(card.position(3601 * SECOND_NS).played, 3600 * 44_100);
        let position = card.position(3601 * SECOND_NS + 30_000);
        assert_eq!((position.played, position.at_ns), (3600 * 44_100 + 1, 3_601_000_022_675));
        card.stop();
        assert_eq!(card.position(9000 * SECOND_NS).played, 3600 * 44_100 + 1);
        card.start(9000 * SECOND_NS);
        assert_eq!(card.position(9001 * SECOND_NS).played, 3601 * 44_100 + 1);
    }

    #[test]
    fn what_it_has_not_played_when_it_stops_is_gone() {
        let mut card = NullCard::new(48_000);
        let mut planes = Planes::new(2, 1024);
        planes.silence(1000);
        card.write(0, &planes);
        card.start(0);
        card.position(10_000_000);
        card.stop();
        assert_eq!(card.written(), 480);
    }

    #[test]
    fn it_gives_back_what_was_not_played_and_no_more() {
        let mut card = NullCard::new(48_000);
        let mut planes = Planes::new(2, 1024);
        planes.silence(1000);
        card.write(0, &planes);
        card.start(0);
        card.position(10_000_000);
        assert_eq!((card.rewind(100), card.rewind(9999), card.rewind(1)), (100, 420, 0));
    }
}
