//! Which byte of the program is heard, given the position of the ring that is.

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
        let bytes = u128::from(position - before.position) * u128::from(self.frame_bytes);
        are_same && i128::try_from(bytes).ok() == Some(i128::from(index) - i128::from(before.index))
    }

    /// Returns the runs of frames from a position on, each as its first position and byte.
    pub fn runs_from(&self, position: u64) -> Vec<(u64, i64)> {
        let later = self.segments.iter().filter(|segment| segment.position > position);
        let later = later.map(|segment| (segment.position, segment.index));
        std::iter::once((position, self.index(position))).chain(later).collect()
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
        assert_eq!(heard.runs_from(5), [(5, 20)]);
        heard.begin(10_000, 40_001, 48_000);
        assert_eq!(heard.runs_from(5), [(5, 20), (10_000, 40_001)]);
        assert_eq!(heard.runs_from(10_000), [(10_000, 40_001)]);
    }

    #[test]
    fn only_the_newest_segments_are_remembered() {
        let mut heard = HeardBytes::new(1, 48_000, 48_000);
        (1..1000).for_each(|at| heard.begin(at * 10, 0, 48_000));
        assert_eq!(heard.segments.len(), SEGMENTS);
        assert_eq!(heard.index(9995), 5);
    }
}
