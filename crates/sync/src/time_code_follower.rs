//! Following MIDI time code.

use super::chase::{Chase, Heard};
use super::time_code::TimeCode;
use super::{Wish, status};

/// State of the time code that is followed.
#[derive(Debug, Clone)]
pub(crate) struct TimeCodeFollower {
    sample_rate_hz: f64,
    pieces: [u8; 8],
    /// Number of consecutive pieces of one time code received so far.
    count: u8,
    chase: Chase,
}

impl TimeCodeFollower {
    pub(crate) fn new(sample_rate_hz: u32) -> Self {
        Self {
            sample_rate_hz: f64::from(sample_rate_hz),
            pieces: [0; 8],
            count: 0,
            chase: Chase::new(sample_rate_hz),
        }
    }

    /// Takes a message with the frame time `at`. Messages other than time code are ignored.
    pub(crate) fn hear(&mut self, at: u32, message: &[u8], mut wish: impl FnMut(Wish)) {
        if let Some(code) = TimeCode::of_full(message) {
            // A full frame means that the sender has moved and is not running yet.
            self.count = 0;
            self.chase.stop(&mut wish);
            let frame = f64::from(code.index()) * self.sample_rate_hz / code.rate.frames_hz();
            wish(Wish::Locate(frame.round() as u32));
        } else if let [status::QUARTER_FRAME, piece @ 0..=0x7F] = *message {
            self.chase.hear_sign(at);
            self.take(at, piece);
        }
    }

    fn take(&mut self, at: u32, piece: u8) {
        let number = piece >> 4;
        if number != self.count {
            // A time code starts with piece 0; one that runs backwards is not followed.
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
        // The time code is that of the first piece, which came seven quarter frames earlier.
        let tolerance = self.sample_rate_hz / code.rate.frames_hz();
        let frame = (f64::from(code.index()) + 1.75) * tolerance;
        self.chase.hear(Heard { at, frame, tolerance });
    }

    /// Same as [`Chase::end_cycle`].
    pub(crate) fn end_cycle(
        &mut self,
        begin: u32,
        frames: u32,
        rolling: Option<u32>,
        wish: impl FnMut(Wish),
    ) {
        self.chase.end_cycle(begin, frames, rolling, wish);
    }
}

#[cfg(test)]
mod tests {
    use super::super::time_code::VideoRate;
    use super::super::time_code_sender::TimeCodeSender;
    use super::*;

    const RATE_HZ: u32 = 48_000;
    const QUANTUM: u32 = 256;

    /// A transport, which starts in the cycle after a request and rolls in the one after that, and
    /// the time code sender that it follows.
    struct Pair {
        follower: TimeCodeFollower,
        sender: TimeCodeSender,
        begin: u32,
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
                // Frame times wrap on the way.
                begin: u32::MAX - 10 * QUANTUM + 1,
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
                let (follower, begin) = (&mut self.follower, self.begin);
                self.sender.cycle(self.sender_rolls, self.sent, QUANTUM, |time, message| {
                    follower.hear(begin.wrapping_add(time), message, |wish| wishes.push(wish));
                });
                let rolling = self.rolls.then_some(self.frame);
                follower.end_cycle(begin, QUANTUM, rolling, |wish| wishes.push(wish));
                self.begin = begin.wrapping_add(QUANTUM);
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
    fn the_transport_starts_jumps_and_stops_with_the_time_code() {
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
    fn pieces_out_of_order_are_not_a_time_code() {
        let mut follower = TimeCodeFollower::new(RATE_HZ);
        let code = TimeCode::of(500, VideoRate::Pal);
        for number in [0, 1, 2, 4, 5, 6, 7, 7, 6, 5, 4, 3, 2, 1, 0] {
            follower.hear(0, &[0xF1, code.piece(number)], |wish| panic!("{wish:?}"));
        }
        for message in [&[][..], &[0xF1], &[0xF1, 0x80], &[0xF8], &[0xF0, 0xF7]] {
            follower.hear(0, message, |wish| panic!("{wish:?}"));
        }
        follower.end_cycle(0, QUANTUM, None, |wish| panic!("{wish:?}"));
        assert_eq!(follower.chase.heard(), None);
    }
}
