//! Sending MIDI time code while the transport rolls, and where it stands.

use super::status;
use super::time_code::{TimeCode, VideoRate};

/// What was sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimeCodeSender {
    rate: VideoRate,
    /// Audio frames of a quarter frame of video.
    quarter: f64,
    /// Where the cycle before has ended.
    expected: Option<u32>,
}

impl TimeCodeSender {
    /// Nothing was sent.
    pub(crate) fn new(rate: VideoRate, sample_rate_hz: u32) -> Self {
        let quarter = f64::from(sample_rate_hz) / (4.0 * rate.frames_hz());
        Self { rate, quarter, expected: None }
    }

    /// Says what belongs into a cycle of `frames` frames that begins at `frame` of the piece.
    pub(crate) fn cycle(
        &mut self,
        rolls: bool,
        frame: u32,
        frames: u32,
        mut say: impl FnMut(u32, &[u8]),
    ) {
        if self.expected != Some(frame) {
            let index = (f64::from(frame) / (4.0 * self.quarter) + 1e-6) as u32;
            say(0, &TimeCode::of(index, self.rate).full());
        }
        self.expected = Some(if rolls { frame.wrapping_add(frames) } else { frame });
        if !rolls {
            return;
        }
        let mut number =
            (f64::from(frame) / self.quarter - 0.5 / self.quarter).ceil().max(0.0) as u32;
        loop {
            let offset = (f64::from(number) * self.quarter).round() - f64::from(frame);
            if offset >= f64::from(frames) {
                break;
            }
            // Eight pieces in two frames: they say the first of the two.
            let code = TimeCode::of(number / 8 * 2, self.rate);
            say(offset.max(0.0) as u32, &[status::QUARTER_FRAME, code.piece((number % 8) as u8)]);
            number += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_quarter_frame_is_sent_once_at_its_date_whatever_the_quantum() {
        for (rate, sample_rate_hz) in [
            (VideoRate::Pal, 48_000),
            (VideoRate::Drop, 44_100),
            (VideoRate::Film, 96_000),
            (VideoRate::Thirty, 48_000),
        ] {
            for quantum in [64, 250, 1024, 8192] {
                let mut sender = TimeCodeSender::new(rate, sample_rate_hz);
                let mut dates = Vec::new();
                for cycle in 0..(10 * sample_rate_hz / quantum) {
                    sender.cycle(true, cycle * quantum, quantum, |time, message| {
                        assert!(time < quantum);
                        if let [0xF1, piece] = *message {
                            assert_eq!(usize::from(piece >> 4), dates.len() % 8);
                            dates.push(cycle * quantum + time);
                        }
                    });
                }
                for (number, date) in dates.iter().enumerate() {
                    let exact =
                        number as f64 * f64::from(sample_rate_hz) / (4.0 * rate.frames_hz());
                    assert!(
                        (f64::from(*date) - exact).abs() <= 0.5,
                        "{rate:?} {quantum} {number}: {date}"
                    );
                }
                let expected = 9.8 * 4.0 * rate.frames_hz();
                assert!(dates.len() as f64 > expected, "{rate:?} {quantum}: {}", dates.len());
            }
        }
    }

    #[test]
    fn a_place_is_told_whole_at_first_and_after_a_jump() {
        let mut sender = TimeCodeSender::new(VideoRate::Pal, 48_000);
        let mut full = Vec::new();
        for (rolls, frame) in [
            (false, 48_000),
            (false, 48_000),
            (true, 48_000),
            (true, 48_256),
            (true, 0),
            (false, 256),
        ] {
            sender.cycle(rolls, frame, 256, |_, message| full.extend(TimeCode::of_full(message)));
        }
        assert_eq!(full, [TimeCode::of(25, VideoRate::Pal), TimeCode::of(0, VideoRate::Pal)]);
    }
}
