//! Sending MIDI clock while the transport rolls.

use super::clock::{CLOCKS_PER_BEAT, CLOCKS_PER_SIXTEENTH};
use crate::status;

/// The largest song position, in sixteenths.
const LAST_SIXTEENTH: u32 = (1 << 14) - 1;
/// Distance from the end of the cycle before, in clock messages, from which a position is a jump.
const JUMP_CLOCKS: f64 = 0.5;

/// Position of the transport in a cycle.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Place {
    /// Whether it rolls.
    pub(crate) rolls: bool,
    /// Quarter notes from the start, at the cycle's first frame.
    pub(crate) beats: f64,
    /// Frames per quarter note.
    pub(crate) frames_per_beat: f64,
}

/// State of the clock that is sent.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct ClockSender {
    /// Where the cycle before ended, in clock messages; `None`: it did not roll.
    expected: Option<f64>,
    /// Position of the next clock message to send.
    next: u32,
    /// The receiver is still stopped.
    waits: bool,
    from_start: bool,
}

impl ClockSender {
    /// Sends the messages of a cycle of `frames` frames, each with its time in the cycle, in order.
    pub(crate) fn cycle(&mut self, place: Place, frames: u32, mut send: impl FnMut(u32, &[u8])) {
        if !place.rolls {
            if self.expected.take().is_some() {
                send(0, &[status::STOP]);
            }
            return;
        }
        let per_frame = CLOCKS_PER_BEAT / place.frames_per_beat.max(1.0);
        let begin = place.beats.max(0.0) * CLOCKS_PER_BEAT;
        let jumped = self.expected.is_none_or(|expected| (expected - begin).abs() > JUMP_CLOCKS);
        if jumped {
            if self.expected.is_some() {
                send(0, &[status::STOP]);
            }
            self.begin_at(begin, &mut send);
        }
        loop {
            let offset = ((f64::from(self.next) - begin) / per_frame).round().max(0.0);
            if offset >= f64::from(frames) {
                break;
            }
            let time = offset as u32;
            if std::mem::take(&mut self.waits) {
                send(time, &[if self.from_start { status::START } else { status::CONTINUE }]);
            }
            send(time, &[status::CLOCK]);
            self.next += 1;
        }
        self.expected = Some(begin + f64::from(frames) * per_frame);
    }

    /// Lets the receiver continue at the first sixteenth that is not before `clocks`, since song
    /// positions are sixteenths.
    fn begin_at(&mut self, clocks: f64, send: &mut impl FnMut(u32, &[u8])) {
        let sixteenth = (clocks / f64::from(CLOCKS_PER_SIXTEENTH) - 1e-6).ceil().max(0.0) as u32;
        self.next = sixteenth * CLOCKS_PER_SIXTEENTH;
        self.waits = true;
        self.from_start = sixteenth == 0;
        if !self.from_start {
            let position = sixteenth.min(LAST_SIXTEENTH);
            send(0, &[status::SONG_POSITION, (position & 0x7F) as u8, (position >> 7) as u8]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 120 beats per minute at 48 kHz: a clock message every 1000 frames.
    const FRAMES_PER_BEAT: f64 = 24_000.0;

    fn place(rolls: bool, frame: u32) -> Place {
        Place { rolls, beats: f64::from(frame) / FRAMES_PER_BEAT, frames_per_beat: FRAMES_PER_BEAT }
    }

    /// All messages sent in cycles of `quantum` frames, with their transport frames.
    fn sent(sender: &mut ClockSender, from: u32, cycles: u32, quantum: u32) -> Vec<(u32, Vec<u8>)> {
        let mut sent = Vec::new();
        for cycle in 0..cycles {
            let frame = from + cycle * quantum;
            sender.cycle(place(true, frame), quantum, |time, message| {
                assert!(time < quantum);
                sent.push((frame + time, message.to_vec()));
            });
        }
        sent
    }

    #[test]
    fn clock_messages_are_sample_accurate_with_any_quantum() {
        for quantum in [64, 256, 1024, 4096] {
            let mut sender = ClockSender::default();
            let sent = sent(&mut sender, 0, 16_384 / quantum, quantum);
            let mut expected = vec![(0, vec![0xFA])];
            expected.extend((0..=16).map(|clock| (clock * 1000, vec![0xF8])));
            assert_eq!(sent, expected, "{quantum}");
        }
    }

    #[test]
    fn a_start_elsewhere_sends_the_position_of_the_next_sixteenth() {
        let mut sender = ClockSender::default();
        // Sixteenths are 6000 frames: the next one after this is number 3.
        let sent = sent(&mut sender, 13_000, 24, 256);
        assert_eq!(
            sent[..3],
            [(13_000, vec![0xF2, 3, 0]), (18_000, vec![0xFB]), (18_000, vec![0xF8])]
        );
        assert_eq!(sent[3], (19_000, vec![0xF8]));
    }

    #[test]
    fn a_stop_or_a_jump_is_sent_once() {
        let mut sender = ClockSender::default();
        sent(&mut sender, 0, 10, 256);
        let mut after = Vec::new();
        for _ in 0..3 {
            sender.cycle(place(false, 2560), 256, |time, message| {
                after.push((time, message.to_vec()))
            });
        }
        assert_eq!(after, [(0, vec![0xFC])]);
        sent(&mut sender, 0, 10, 256);
        let jumped = sent(&mut sender, 24_000, 3, 256);
        let expected = [
            (24_000, vec![0xFC]),
            (24_000, vec![0xF2, 4, 0]),
            (24_000, vec![0xFB]),
            (24_000, vec![0xF8]),
        ];
        assert_eq!(jumped, expected);
    }
}
