//! When a change was heard, from what left the null device. Pure.
//!
//! The player's ramp says in each frame which one it is, so the recording needs no clock: the
//! server states when one frame was heard, and every frame after it that is as it was written was
//! heard a frame's time later. The first one that is not is the change.

use anyhow::{Result, ensure};

/// The two samples of a frame.
pub type Frame = [i16; 2];

/// The samples of frame number `number` of the ramp (`clients/player.c`).
pub fn ramp(number: u64) -> Frame {
    [(1 + number % 15_013) as i16, -1 - (number % 14_983) as i16]
}

/// Frames from the bytes of a recording.
pub fn frames_of(bytes: &[u8]) -> Vec<Frame> {
    let frame = |bytes: &[u8]| {
        let sample = |at: usize| i16::from_le_bytes([bytes[at], bytes[at + 1]]);
        [sample(0), sample(2)]
    };
    bytes.chunks_exact(4).map(frame).collect()
}

/// What is known of a change.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// A frame that was heard before it.
    pub frame: u64,
    /// When that was.
    pub heard_ns: u64,
    /// When the change was asked for.
    pub asked_ns: u64,
}

/// The reading of a clock, a frame and when it is heard, in the middle of all: a single one may be
/// late, or the server may not have looked at its device for some time.
pub fn typical(readings: &[(u64, u64)], rate_hz: u32) -> Option<(u64, u64)> {
    let began_ns = |(frame, heard_ns): &(u64, u64)| {
        i128::from(*heard_ns) - i128::from(*frame) * 1_000_000_000 / i128::from(rate_hz)
    };
    let mut sorted = readings.to_vec();
    sorted.sort_by_key(began_ns);
    sorted.get(sorted.len() / 2).copied()
}

/// How long it took, in ns, until the first frame left the device that shows the change.
///
/// # Errors
/// The recording does not have the frame, or nothing changes after it, or something did before.
pub fn delay_ns(recorded: &[Frame], asked: &Asked, rate_hz: u32) -> Result<u64> {
    let found = recorded.iter().position(|frame| *frame == ramp(asked.frame));
    ensure!(found.is_some(), "frame {} was not recorded", asked.frame);
    let heard = &recorded[found.unwrap_or(0)..];
    let unchanged =
        heard.iter().zip(asked.frame..).take_while(|(is, number)| **is == ramp(*number));
    let count = unchanged.count();
    ensure!(count < heard.len(), "nothing has changed {count} frames after it was asked for");
    let changed_ns = asked.heard_ns + count as u64 * 1_000_000_000 / u64::from(rate_hz);
    ensure!(
        changed_ns >= asked.asked_ns,
        "the sound was another {} µs before that was asked for",
        (asked.asked_ns - changed_ns) / 1000
    );
    Ok(changed_ns - asked.asked_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE_HZ: u32 = 48_000;
    const MS_NS: u64 = 1_000_000;

    /// Silence, then the ramp from frame 0 on, muted from frame `end` on.
    fn recorded(end: u64) -> Vec<Frame> {
        let silence = std::iter::repeat_n([0, 0], 5000);
        silence.clone().chain((0..end).map(ramp)).chain(silence).collect()
    }

    #[test]
    fn a_change_is_heard_with_the_first_frame_that_is_another() {
        // Frame 48,000 was heard at 2 s, so frame 48,960 is at 2.02 s.
        let asked = Asked { frame: 48_000, heard_ns: 2000 * MS_NS, asked_ns: 2012 * MS_NS };
        assert_eq!(delay_ns(&recorded(48_960), &asked, RATE_HZ).unwrap(), 8 * MS_NS);
    }

    #[test]
    fn the_reading_of_a_clock_in_the_middle_is_believed() {
        let readings = [(48_000, 2000 * MS_NS), (48_000, 1990 * MS_NS), (48_480, 2090 * MS_NS)];
        assert_eq!(typical(&readings, RATE_HZ), Some(readings[0]));
        assert_eq!(typical(&[], RATE_HZ), None);
    }

    #[test]
    fn a_change_before_it_was_asked_for_is_an_error() {
        let asked = Asked { frame: 48_000, heard_ns: 0, asked_ns: 30 * MS_NS };
        let error = delay_ns(&recorded(48_960), &asked, RATE_HZ).unwrap_err().to_string();
        assert!(error.contains("10000 µs before"), "{error}");
    }

    #[test]
    fn a_recording_without_the_frame_or_without_a_change_is_an_error() {
        let asked = Asked { frame: 48_000, heard_ns: 0, asked_ns: 0 };
        assert!(delay_ns(&recorded(40_000), &asked, RATE_HZ).is_err());
        let unchanged: Vec<Frame> = (0..50_000).map(ramp).collect();
        assert!(delay_ns(&unchanged, &asked, RATE_HZ).is_err());
    }

    #[test]
    fn a_frame_is_read_as_two_samples_of_two_bytes() {
        assert_eq!(frames_of(&[1, 0, 255, 255, 0, 1, 2, 0, 9]), [[1, -1], [256, 2]]);
        assert_eq!(ramp(15_013 * 14_983), ramp(0));
        assert_ne!(ramp(15_013), ramp(0));
    }
}
