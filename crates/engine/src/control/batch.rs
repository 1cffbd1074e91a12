//! How many packets of one socket are handled in a row. Pure; the control thread passes the time.

use round_robin::TimeSlice;

/// The packets of a socket that may be handled before other sockets have their turn: a number of
/// them, in its program's time slice.
#[derive(Debug, Clone, Copy)]
pub(super) struct Batch {
    slice: TimeSlice,
    packets: usize,
}

impl Batch {
    pub(super) fn new(slice: TimeSlice, packets: usize) -> Self {
        Self { slice, packets }
    }

    /// Returns whether another packet may be handled, and counts it.
    pub(super) fn takes_packet(&mut self, now_ns: u64) -> bool {
        let goes_on = self.packets > 0 && self.slice.goes_on(now_ns);
        self.packets = self.packets.saturating_sub(1);
        goes_on
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_ends_after_its_packets_and_with_its_time() {
        let takes = |times_ns: [u64; 3]| {
            let mut batch = Batch::new(TimeSlice::due(0), 2);
            times_ns.map(|now_ns| batch.takes_packet(now_ns))
        };
        assert_eq!(takes([0, 0, 0]), [true, true, false]);
        assert_eq!(takes([0, u64::MAX, u64::MAX]), [true, false, false]);
    }
}
