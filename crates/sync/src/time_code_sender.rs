//! Sending MIDI time code: continuously while the transport rolls, and once where it stops.

use super::time_code::{TimeCode, VideoRate};
use crate::status;

/// State of the time code that is sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimeCodeSender {
    rate: VideoRate,
    /// Audio frames per quarter frame of video.
    quarter: f64,
    /// The transport frame at which the cycle before ended.
    expected: Option<u32>,
}

impl TimeCodeSender {
    pub(crate) fn new(rate: VideoRate, sample_rate_hz: u32) -> Self {
        let quarter = f64::from(sample_rate_hz) / (4.0 * rate.frames_hz());
        Self { rate, quarter, expected: None }
    }

    /// Sends the messages of a cycle of `frames` frames that begins at the transport frame `frame`.
    pub(crate) fn cycle(
        &mut self,
        rolls: bool,
        frame: u32,
        frames: u32,
        mut send: impl FnMut(u32, &[u8]),
    ) {
        if self.expected != Some(frame) {
            let index = (f64::from(frame) / (4.0 * self.quarter) + 1e-6) as u32;
            send(0, &TimeCode::of(index, self.rate).full());
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
            // Eight pieces take two frames: they give the number of the first.
            let code = TimeCode::of(number / 8 * 2, self.rate);
            send(offset.max(0.0) as u32, &[status::QUARTER_FRAME, code.piece((number % 8) as u8)]);
            number += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quarter_frames_are_sample_accurate_with_any_quantum() {
        for (rate, sample_rate_hz) in [
            (VideoRate::Pal, 48_000),
            (VideoRate::Drop, 44_100),
            (VideoRate::Film, 96_000),
            (VideoRate::Thirty, 48_000),
        ] {
            for quantum in [64, 250, 1024, 8192] {
                let mut sender = TimeCodeSender::new(rate, sample_rate_hz);
                let mut times = Vec::new();
                for cycle in 0..(10 * sample_rate_hz / quantum) {
                    sender.cycle(true, cycle * quantum, quantum, |time, message| {
                        assert!(time < quantum);
                        if let [0xF1, piece] = *message {
                            assert_eq!(usize::from(piece >> 4), times.len() % 8);
                            times.push(cycle * quantum + time);
                        }
                    });
                }
                for (number, time) in times.iter().enumerate() {
                    let exact =
                        number as f64 * f64::from(sample_rate_hz) / (4.0 * rate.frames_hz());
                    assert!(
                        (f64::from(*time) - exact).abs() <= 0.5,
                        "{rate:?} {quantum} {number}: {time}"
                    );
                }
                let expected = 9.8 * 4.0 * rate.frames_hz();
                assert!(times.len() as f64 > expected, "{rate:?} {quantum}: {}", times.len());
            }
        }
    }

    #[test]
    fn a_full_frame_is_sent_at_first_and_after_each_jump() {
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
