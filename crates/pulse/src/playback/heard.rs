//! Which byte of the program is heard, given the position of the ring that is.

use std::ops::Range;

/// A run of the ring's frames that come from consecutive bytes of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Segment {
    /// The ring's position of the first frame.
    position: u64,
    /// The program's byte that it begins with.
    index: i64,
    /// The program's rate.
    rate_hz: u32,
}

/// The same with its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Run {
    /// Positions of the ring.
    pub positions: Range<u64>,
    /// The program's bytes.
    pub bytes: Range<i64>,
}

/// How positions of a ring follow from a program's bytes, newest part last.
#[derive(Debug, Clone)]
pub(super) struct HeardBytes {
    segments: Vec<Segment>,
    frame_bytes: u32,
    device_rate_hz: u32,
}

/// Segments that are remembered. A program that seeks more often than this within what is queued
/// has older ones counted by the newest rate.
const SEGMENTS: usize = 64;

impl HeardBytes {
    /// Begins at position and byte 0.
    pub fn new(frame_bytes: u32, rate_hz: u32, device_rate_hz: u32) -> Self {
        let segments = vec![Segment { position: 0, index: 0, rate_hz }];
        Self { segments, frame_bytes, device_rate_hz }
    }

    /// Notes that what is written from `position` on comes from the program's bytes from `index`
    /// on. There is no further run of frames if those before come from the bytes before.
    pub fn begin(&mut self, position: u64, index: i64, rate_hz: u32) {
        self.segments.retain(|segment| segment.position < position);
        if self.segments.last().is_some_and(|last| self.continues(last, position, index, rate_hz)) {
            return;
        }
        if self.segments.len() == SEGMENTS {
            self.segments.remove(0);
        }
        self.segments.push(Segment { position, index, rate_hz });
    }

    /// Returns whether a run of frames goes on at this position, with this byte.
    fn continues(&self, before: &Segment, position: u64, index: i64, rate_hz: u32) -> bool {
        let are_same = before.rate_hz == rate_hz && rate_hz == self.device_rate_hz;
        let bytes = i128::from(position - before.position) * i128::from(self.frame_bytes);
        are_same && bytes == i128::from(index) - i128::from(before.index)
    }

    /// Returns the runs of frames from a position on, up to a position and the byte that follows.
    /// Those that are not remembered any more are left out.
    pub fn runs(&self, from: u64, (end, end_index): (u64, i64)) -> Vec<Run> {
        let later = self.segments.partition_point(|segment| segment.position <= from);
        let first = (later > 0).then(|| (from, self.index(from)));
        let others = self.segments[later..].iter().map(|other| (other.position, other.index));
        let mut begins: Vec<(u64, i64)> = first.into_iter().chain(others).collect();
        begins.push((end, end_index));
        let run = |((begin, index), (end, end_index))| Run {
            positions: begin..end,
            bytes: index..end_index,
        };
        begins.iter().copied().zip(begins.iter().copied().skip(1)).map(run).collect()
    }

    /// Returns the byte that is heard at a position.
    pub fn index(&self, position: u64) -> i64 {
        let before = self.segments.iter().rev().find(|segment| segment.position <= position);
        let Some(segment) = before.or_else(|| self.segments.first()) else { return 0 };
        let frames = u128::from(position.saturating_sub(segment.position))
            * u128::from(segment.rate_hz)
            / u128::from(self.device_rate_hz.max(1));
        let bytes = i64::try_from(frames * u128::from(self.frame_bytes)).unwrap_or(i64::MAX);
        segment.index.saturating_add(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_heard_at_the_programs_rate_from_where_a_segment_began() {
        let mut heard = HeardBytes::new(4, 44_100, 48_000);
        assert_eq!(heard.index(0), 0);
        assert_eq!(heard.index(48_000), 4 * 44_100);
        // It seeks after a second, and is played faster after two.
        heard.begin(48_000, 1000, 44_100);
        heard.begin(96_000, 1000 + 4 * 44_100, 88_200);
        assert_eq!(heard.index(47_999), 4 * 44_099);
        assert_eq!(heard.index(48_000), 1000);
        assert_eq!(heard.index(144_000), 1000 + 4 * (44_100 + 88_200));
        // Another seek before anything was written replaces the first.
        heard.begin(96_000, 8, 44_100);
        assert_eq!(heard.index(96_000), 8);
    }

    #[test]
    fn what_goes_on_at_the_devices_rate_is_one_run() {
        let mut heard = HeardBytes::new(4, 48_000, 48_000);
        (1..1000).for_each(|at| heard.begin(at * 10, at as i64 * 40, 48_000));
        let whole = Run { positions: 5..20_000, bytes: 20..80_001 };
        assert_eq!(heard.runs(5, (20_000, 80_001)), [whole]);
        heard.begin(10_000, 40_001, 48_000);
        let first = Run { positions: 5..10_000, bytes: 20..40_001 };
        let second = Run { positions: 10_000..20_000, bytes: 40_001..80_001 };
        assert_eq!(heard.runs(5, (20_000, 80_001)), [first, second.clone()]);
        assert_eq!(heard.runs(10_000, (20_000, 80_001)), [second]);
    }

    #[test]
    fn only_the_newest_segments_are_remembered() {
        let mut heard = HeardBytes::new(1, 48_000, 48_000);
        (1..1000).for_each(|at| heard.begin(at * 10, 0, 48_000));
        assert_eq!(heard.segments.len(), SEGMENTS);
        let runs = heard.runs(0, (10_000, 1));
        assert_eq!((runs.len(), runs[0].positions.start), (SEGMENTS, 9360));
        assert_eq!(heard.index(9995), 5);
    }
}
