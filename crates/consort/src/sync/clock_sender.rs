//! Sending MIDI clock while the transport rolls.

use super::clock::{CLOCKS_PER_BEAT, CLOCKS_PER_SIXTEENTH};
use super::status;

/// The largest song position, in sixteenths.
const LAST_SIXTEENTH: u32 = (1 << 14) - 1;
/// A place that differs by so many clocks from where the cycle before ended is another one.
const JUMP_CLOCKS: f64 = 0.5;

/// Where the transport is in a cycle.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Place {
    /// Whether it rolls.
    pub(crate) rolls: bool,
    /// Quarter notes from the start, at the cycle's first frame.
    pub(crate) beats: f64,
    /// Frames of a quarter note.
    pub(crate) frames_per_beat: f64,
}

/// What was sent.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct ClockSender {
    /// Where the cycle before has ended, in clocks; `None`: it did not roll.
    expected: Option<f64>,
    /// The next clock to be sent, by its position.
    next: u32,
    /// The receiver stands still.
    waits: bool,
    from_start: bool,
}

impl ClockSender {
    /// Says what belongs into a cycle of `frames` frames: each message with its time in the cycle,
    /// in order.
    pub(crate) fn cycle(&mut self, place: Place, frames: u32, mut say: impl FnMut(u32, &[u8])) {
        if !place.rolls {
            if self.expected.take().is_some() {
                say(0, &[status::STOP]);
            }
            return;
        }
        let per_frame = CLOCKS_PER_BEAT / place.frames_per_beat.max(1.0);
        let begin = place.beats.max(0.0) * CLOCKS_PER_BEAT;
        let jumped = self.expected.is_none_or(|expected| (expected - begin).abs() > JUMP_CLOCKS);
        if jumped {
            if self.expected.is_some() {
                say(0, &[status::STOP]);
            }
            self.begin_at(begin, &mut say);
        }
        loop {
            let offset = ((f64::from(self.next) - begin) / per_frame).round().max(0.0);
            if offset >= f64::from(frames) {
                break;
            }
            let time = offset as u32;
            if std::mem::take(&mut self.waits) {
                say(time, &[if self.from_start { status::START } else { status::CONTINUE }]);
            }
            say(time, &[status::CLOCK]);
            self.next += 1;
        }
        self.expected = Some(begin + f64::from(frames) * per_frame);
    }

    /// Has the receiver go on at the first sixteenth that is not before `clocks`: that is as fine
    /// as positions are.
    fn begin_at(&mut self, clocks: f64, say: &mut impl FnMut(u32, &[u8])) {
        let sixteenth = (clocks / f64::from(CLOCKS_PER_SIXTEENTH) - 1e-6).ceil().max(0.0) as u32;
        self.next = sixteenth * CLOCKS_PER_SIXTEENTH;
        self.waits = true;
        self.from_start = sixteenth == 0;
        if !self.from_start {
            let told = sixteenth.min(LAST_SIXTEENTH);
            say(0, &[status::SONG_POSITION, (told & 0x7F) as u8, (told >> 7) as u8]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 120 beats per minute at 48 kHz: a clock every 1000 frames.
    const FRAMES_PER_BEAT: f64 = 24_000.0;

    fn place(rolls: bool, frame: u32) -> Place {
        Place { rolls, beats: f64::from(frame) / FRAMES_PER_BEAT, frames_per_beat: FRAMES_PER_BEAT }
    }

    /// All that is said in cycles of `quantum` frames, by the frame of the piece.
    fn said(sender: &mut ClockSender, from: u32, cycles: u32, quantum: u32) -> Vec<(u32, Vec<u8>)> {
        let mut said = Vec::new();
        for cycle in 0..cycles {
            let frame = from + cycle * quantum;
            sender.cycle(place(true, frame), quantum, |time, message| {
                assert!(time < quantum);
                said.push((frame + time, message.to_vec()));
            });
        }
        said
    }

    #[test]
    fn from_the_start_every_clock_is_at_its_frame_whatever_the_quantum() {
        for quantum in [64, 256, 1024, 4096] {
            let mut sender = ClockSender::default();
            let said = said(&mut sender, 0, 16_384 / quantum, quantum);
            let mut expected = vec![(0, vec![0xFA])];
            expected.extend((0..=16).map(|clock| (clock * 1000, vec![0xF8])));
            assert_eq!(said, expected, "{quantum}");
        }
    }

    #[test]
    fn elsewhere_the_position_is_told_and_it_goes_on_at_the_next_sixteenth() {
        let mut sender = ClockSender::default();
        // Sixteenths are 6000 frames: the next one after this is number 3.
        let said = said(&mut sender, 13_000, 24, 256);
        assert_eq!(
            said[..3],
            [(13_000, vec![0xF2, 3, 0]), (18_000, vec![0xFB]), (18_000, vec![0xF8])]
        );
        assert_eq!(said[3], (19_000, vec![0xF8]));
    }

    #[test]
    fn a_stop_and_a_jump_are_told_once() {
        let mut sender = ClockSender::default();
        said(&mut sender, 0, 10, 256);
        let mut after = Vec::new();
        for _ in 0..3 {
            sender.cycle(place(false, 2560), 256, |time, message| {
                after.push((time, message.to_vec()))
            });
        }
        assert_eq!(after, [(0, vec![0xFC])]);
        said(&mut sender, 0, 10, 256);
        let jumped = said(&mut sender, 24_000, 3, 256);
        let expected = [
            (24_000, vec![0xFC]),
            (24_000, vec![0xF2, 4, 0]),
            (24_000, vec![0xFB]),
            (24_000, vec![0xF8]),
        ];
        assert_eq!(jumped, expected);
    }
}
