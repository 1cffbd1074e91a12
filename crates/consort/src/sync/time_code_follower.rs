//! Following MIDI time code: the transport stands where the next cycles will be, and rolls when
//! they come.

use super::time_code::TimeCode;
use super::{Wish, status};

/// How far ahead the transport waits for the time code, so that clients can get ready.
const AHEAD_S: f64 = 0.3;
/// Time code that does not come for so long has stopped.
const SILENCE_S: f64 = 0.15;

/// Where the time code is.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Lock {
    /// A date.
    at: u32,
    /// The frame of the piece at that date.
    frame: f64,
    /// Audio frames of a frame of video: as far as the transport may be off.
    tolerance: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Stopped,
    /// The transport waits for the cycle that begins at this date.
    Ahead {
        rolls_at: u32,
    },
    Rolling,
}

/// What was heard.
#[derive(Debug, Clone)]
pub(crate) struct TimeCodeFollower {
    sample_rate_hz: f64,
    pieces: [u8; 8],
    /// How many pieces of a whole code have come in a row.
    count: u8,
    newest: u32,
    lock: Option<Lock>,
    stage: Stage,
}

impl TimeCodeFollower {
    /// Nothing was heard.
    pub(crate) fn new(sample_rate_hz: u32) -> Self {
        let sample_rate_hz = f64::from(sample_rate_hz);
        Self {
            sample_rate_hz,
            pieces: [0; 8],
            count: 0,
            newest: 0,
            lock: None,
            stage: Stage::Stopped,
        }
    }

    /// Takes a message that came at the date `at`. Other messages than time code are passed over.
    pub(crate) fn hear(&mut self, at: u32, message: &[u8], mut wish: impl FnMut(Wish)) {
        if let Some(code) = TimeCode::of_full(message) {
            // A machine that goes somewhere does not run there yet.
            self.stop(&mut wish);
            let frame = f64::from(code.index()) * self.sample_rate_hz / code.rate.frames_hz();
            wish(Wish::Locate(frame.round() as u32));
        } else if let [status::QUARTER_FRAME, piece @ 0..=0x7F] = *message {
            self.newest = at;
            self.take(at, piece);
        }
    }

    fn take(&mut self, at: u32, piece: u8) {
        let number = piece >> 4;
        if number != self.count {
            // A code begins with its first piece; one that runs backwards is not followed.
            self.count = 0;
        }
        if number != self.count {
            return;
        }
        self.pieces[usize::from(number)] = piece;
        self.count += 1;
        if self.count < 8 {
            return;
        }
        self.count = 0;
        let Some(code) = TimeCode::of_pieces(&self.pieces) else { return };
        // The code was that of the first piece's date, seven quarters before.
        let tolerance = self.sample_rate_hz / code.rate.frames_hz();
        let frame = (f64::from(code.index()) + 1.75) * tolerance;
        self.lock = Some(Lock { at, frame, tolerance });
    }

    fn stop(&mut self, wish: &mut impl FnMut(Wish)) {
        (self.lock, self.count) = (None, 0);
        if std::mem::replace(&mut self.stage, Stage::Stopped) != Stage::Stopped {
            wish(Wish::Stop);
        }
    }

    /// At the end of a cycle of `frames` frames that began at the date `begin`, with the transport
    /// at `frame` if it rolls.
    pub(crate) fn end_cycle(
        &mut self,
        begin: u32,
        frames: u32,
        rolling: Option<u32>,
        mut wish: impl FnMut(Wish),
    ) {
        let Some(lock) = self.lock else { return };
        let silent = f64::from(begin.wrapping_sub(self.newest).cast_signed());
        if silent > self.sample_rate_hz * SILENCE_S {
            return self.stop(&mut wish);
        }
        let place_at = |date: u32| lock.frame + f64::from(date.wrapping_sub(lock.at).cast_signed());
        match self.stage {
            Stage::Stopped => {
                let cycles = (self.sample_rate_hz * AHEAD_S / f64::from(frames)).ceil() as u32;
                let rolls_at = begin.wrapping_add(frames.wrapping_mul(cycles.max(3)));
                wish(Wish::Stop);
                wish(Wish::Locate(place_at(rolls_at).round().max(0.0) as u32));
                self.stage = Stage::Ahead { rolls_at };
            }
            Stage::Ahead { rolls_at } => {
                // A transport that is asked now starts with the next cycle, and rolls with the one
                // after it.
                let next = begin.wrapping_add(frames.wrapping_mul(2));
                if rolls_at.wrapping_sub(next).cast_signed() <= 0 {
                    wish(Wish::Start);
                    self.stage = Stage::Rolling;
                }
            }
            Stage::Rolling => {
                let is_off = rolling.is_some_and(|frame| {
                    (f64::from(frame) - place_at(begin)).abs() > lock.tolerance
                });
                if is_off {
                    // Another place, or another speed: from the beginning.
                    self.stop(&mut wish);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::time_code::VideoRate;
    use super::super::time_code_sender::TimeCodeSender;
    use super::*;

    const RATE_HZ: u32 = 48_000;
    const QUANTUM: u32 = 256;

    /// A transport that obeys with the next cycle, in which it starts before it rolls, and the
    /// sender of another one that it follows.
    struct Pair {
        follower: TimeCodeFollower,
        sender: TimeCodeSender,
        date: u32,
        sent: u32,
        sender_rolls: bool,
        frame: u32,
        starts: bool,
        rolls: bool,
    }

    impl Pair {
        fn new(rate: VideoRate, from: u32) -> Self {
            Self {
                follower: TimeCodeFollower::new(RATE_HZ),
                sender: TimeCodeSender::new(rate, RATE_HZ),
                // Dates wrap on the way.
                date: u32::MAX - 10 * QUANTUM + 1,
                sent: from,
                sender_rolls: true,
                frame: 0,
                starts: false,
                rolls: false,
            }
        }

        fn cycles(&mut self, cycles: u32) {
            for _ in 0..cycles {
                let mut wishes = Vec::new();
                let (follower, date) = (&mut self.follower, self.date);
                self.sender.cycle(self.sender_rolls, self.sent, QUANTUM, |time, message| {
                    follower.hear(date.wrapping_add(time), message, |wish| wishes.push(wish));
                });
                let rolling = self.rolls.then_some(self.frame);
                follower.end_cycle(date, QUANTUM, rolling, |wish| wishes.push(wish));
                self.date = date.wrapping_add(QUANTUM);
                self.sent += if self.sender_rolls { QUANTUM } else { 0 };
                self.frame += if self.rolls { QUANTUM } else { 0 };
                self.rolls |= std::mem::take(&mut self.starts);
                for wish in wishes {
                    match wish {
                        Wish::Start => self.starts = true,
                        Wish::Stop => self.rolls = false,
                        Wish::Locate(frame) => self.frame = frame,
                    }
                }
            }
        }
    }

    #[test]
    fn the_transport_rolls_with_the_time_code_to_the_frame_stops_with_it_and_follows_its_jumps() {
        for rate in [VideoRate::Film, VideoRate::Pal, VideoRate::Drop, VideoRate::Thirty] {
            let mut pair = Pair::new(rate, 96_000);
            pair.cycles(200);
            assert!(pair.rolls, "{rate:?}");
            assert!(
                pair.frame.abs_diff(pair.sent) <= 1,
                "{rate:?}: {} and {}",
                pair.frame,
                pair.sent
            );
            pair.sent = 48_000 * 60;
            pair.cycles(200);
            assert!(pair.rolls && pair.frame.abs_diff(pair.sent) <= 1, "{rate:?} after a jump");
            pair.sender_rolls = false;
            pair.cycles(60);
            assert!(!pair.rolls, "{rate:?} stops");
            pair.sent = 480_000;
            pair.cycles(2);
            let video = (f64::from(RATE_HZ) / rate.frames_hz()) as u32;
            assert!(!pair.rolls && pair.frame.abs_diff(pair.sent) <= video, "{rate:?} stands");
        }
    }

    #[test]
    fn pieces_out_of_order_and_other_messages_are_no_time_code() {
        let mut follower = TimeCodeFollower::new(RATE_HZ);
        let code = TimeCode::of(500, VideoRate::Pal);
        for number in [0, 1, 2, 4, 5, 6, 7, 7, 6, 5, 4, 3, 2, 1, 0] {
            follower.hear(0, &[0xF1, code.piece(number)], |wish| panic!("{wish:?}"));
        }
        for message in [&[][..], &[0xF1], &[0xF1, 0x80], &[0xF8], &[0xF0, 0xF7]] {
            follower.hear(0, message, |wish| panic!("{wish:?}"));
        }
        follower.end_cycle(0, QUANTUM, None, |wish| panic!("{wish:?}"));
        assert_eq!(follower.lock, None);
    }
}
