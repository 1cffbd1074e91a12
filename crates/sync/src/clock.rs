//! Following MIDI clock: 24 messages for each quarter note.

use super::{Wish, status};

/// Clock messages per quarter note.
pub(crate) const CLOCKS_PER_BEAT: f64 = 24.0;
/// Clock messages per sixteenth, the unit of song positions.
pub(crate) const CLOCKS_PER_SIXTEENTH: u32 = 6;
/// The weight of a new interval in the average: a change of tempo is followed within about two
/// beats.
const WEIGHT: f64 = 1.0 / 24.0;
/// Relative difference from which an interval is a new tempo, not jitter.
const NEW_TEMPO: f64 = 0.3;

/// State of the clock that is followed.
#[derive(Debug, Clone)]
pub(crate) struct ClockFollower {
    sample_rate_hz: f64,
    /// Frames between two clock messages, averaged; at first according to the assumed tempo.
    interval: f64,
    /// Frame time of the newest clock message.
    newest: Option<u32>,
    /// The position of the next clock message, in clock messages from the start.
    next: u32,
    runs: bool,
}

impl ClockFollower {
    /// Creates a follower that assumes this tempo until clock messages arrive.
    pub(crate) fn new(sample_rate_hz: u32, beats_per_minute: f64) -> Self {
        let sample_rate_hz = f64::from(sample_rate_hz);
        let interval = sample_rate_hz * 60.0 / (beats_per_minute * CLOCKS_PER_BEAT);
        Self { sample_rate_hz, interval, newest: None, next: 0, runs: false }
    }

    /// Takes a message with the frame time `at`. Messages other than a clock's are ignored.
    pub(crate) fn hear(&mut self, at: u32, message: &[u8], mut wish: impl FnMut(Wish)) {
        match *message {
            [status::CLOCK] => self.tick(at),
            [status::START] => {
                (self.next, self.runs) = (0, true);
                wish(Wish::Locate(0));
                wish(Wish::Start);
            }
            [status::CONTINUE] => {
                self.runs = true;
                wish(Wish::Locate(self.frame()));
                wish(Wish::Start);
            }
            [status::STOP] => {
                self.runs = false;
                wish(Wish::Stop);
            }
            [status::SONG_POSITION, low @ 0..=0x7F, high @ 0..=0x7F] => {
                self.next = (u32::from(high) << 7 | u32::from(low)) * CLOCKS_PER_SIXTEENTH;
                // Senders send it while stopped; one that is running continues from there.
                wish(Wish::Locate(self.frame()));
            }
            _ => {}
        }
    }

    fn tick(&mut self, at: u32) {
        if let Some(newest) = self.newest {
            let interval = f64::from(at.wrapping_sub(newest));
            // Two at the same time come from a sender that is catching up.
            if interval > 0.0 {
                let difference = interval - self.interval;
                let is_new = difference.abs() > self.interval * NEW_TEMPO;
                self.interval += difference * if is_new { 1.0 } else { WEIGHT };
            }
        }
        self.newest = Some(at);
        if self.runs {
            self.next = self.next.wrapping_add(1);
        }
    }

    pub(crate) fn beats_per_minute(&self) -> f64 {
        self.sample_rate_hz * 60.0 / (self.interval * CLOCKS_PER_BEAT)
    }

    /// Quarter notes from the start at the frame time `at`, which is not before the newest clock
    /// message.
    pub(crate) fn beats(&self, at: u32) -> f64 {
        let newest = if self.runs { f64::from(self.next) - 1.0 } else { f64::from(self.next) };
        let since = match self.newest {
            // The beats stop where the next clock message is missing.
            Some(newest) if self.runs => {
                (f64::from(at.wrapping_sub(newest)) / self.interval).min(1.0)
            }
            _ => 0.0,
        };
        ((newest + since) / CLOCKS_PER_BEAT).max(0.0)
    }

    /// The transport frame of the next clock message, at this tempo.
    fn frame(&self) -> u32 {
        (f64::from(self.next) * self.interval).round() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE_HZ: u32 = 48_000;
    /// Frames between two clock messages at 120 beats per minute.
    const INTERVAL: u32 = 1000;

    fn wishes(follower: &mut ClockFollower, at: u32, message: &[u8]) -> Vec<Wish> {
        let mut wishes = Vec::new();
        follower.hear(at, message, |wish| wishes.push(wish));
        wishes
    }

    #[test]
    fn tempo_and_beats_follow_the_clock_not_the_assumed_tempo() {
        let mut follower = ClockFollower::new(RATE_HZ, 30.0);
        // Frame times wrap on the way.
        let begin = u32::MAX - 20 * INTERVAL;
        assert_eq!(wishes(&mut follower, begin, &[0xFA]), [Wish::Locate(0), Wish::Start]);
        for clock in 0..=48 {
            let at = begin.wrapping_add(clock * INTERVAL);
            assert!(wishes(&mut follower, at, &[0xF8]).is_empty());
            assert!((follower.beats(at) - f64::from(clock) / 24.0).abs() < 1e-9, "clock {clock}");
        }
        assert!((follower.beats_per_minute() - 120.0).abs() < 1e-6);
        let between = begin.wrapping_add(48 * INTERVAL + INTERVAL / 2);
        assert!((follower.beats(between) - 48.5 / 24.0).abs() < 1e-9);
        // The next clock message is missing.
        let late = begin.wrapping_add(60 * INTERVAL);
        assert!((follower.beats(late) - 49.0 / 24.0).abs() < 1e-9);
    }

    #[test]
    fn jitter_is_averaged_but_a_new_tempo_is_adopted() {
        let mut follower = ClockFollower::new(RATE_HZ, 120.0);
        let mut at = 0;
        for clock in 0..240_u32 {
            at += INTERVAL;
            wishes(&mut follower, at + (clock * 7919 % 41), &[0xF8]);
        }
        assert!(
            (follower.beats_per_minute() - 120.0).abs() < 1.0,
            "{}",
            follower.beats_per_minute()
        );
        for _ in 0..2 {
            at += INTERVAL / 2;
            wishes(&mut follower, at, &[0xF8]);
        }
        assert!(follower.beats_per_minute() > 200.0, "{}", follower.beats_per_minute());
    }

    #[test]
    fn the_transport_continues_at_the_song_position() {
        let mut follower = ClockFollower::new(RATE_HZ, 120.0);
        // Two bars: 32 sixteenths of six clocks.
        let place = 32 * 6 * INTERVAL;
        assert_eq!(wishes(&mut follower, 0, &[0xF2, 32, 0]), [Wish::Locate(place)]);
        assert_eq!(wishes(&mut follower, 0, &[0xFB]), [Wish::Locate(place), Wish::Start]);
        wishes(&mut follower, 10, &[0xF8]);
        assert!((follower.beats(10) - 8.0).abs() < 1e-9);
        assert_eq!(wishes(&mut follower, 20, &[0xFC]), [Wish::Stop]);
        assert_eq!(wishes(&mut follower, 20, &[0xF2, 1, 1]), [Wish::Locate(129 * 6 * INTERVAL)]);
    }

    #[test]
    fn messages_other_than_clock_are_ignored() {
        let mut follower = ClockFollower::new(RATE_HZ, 120.0);
        for message in [
            &[][..],
            &[0xF2],
            &[0xF2, 1],
            &[0xF2, 0x80, 0],
            &[0x90, 60, 100],
            &[0xF8, 0xF8],
            &[0xFE],
        ] {
            assert!(wishes(&mut follower, 5, message).is_empty(), "{message:?}");
        }
        assert_eq!((follower.newest, follower.next), (None, 0));
    }
}
