//! The kernel's dates of what arrives at the sequencer.
//!
//! The kernel stamps an event with the time of a queue, when it is delivered: at the end of the interrupt that brought it,
//! and not when a thread has woken to read it. A queue's time goes on with its timer, in steps, and between these with
//! `CLOCK_MONOTONIC`. So the timer's ticks are all that the two differ by, some microseconds for each tick that came late;
//! they are compared each time that something arrives, and hold for what was stamped a moment before.

use std::ffi::CStr;

use alsa::poll::Descriptors;
use alsa::seq::{Event, EventType, PortInfo, Seq};

/// As seldom as the kernel has it: a queue's own tick is to wake nobody.
const TICKS_HZ: u32 = 10;
/// The two clocks are compared within such a time, ns, or once more: somebody else had the CPU meanwhile.
const QUICK_NS: u64 = 20_000;
const COMPARISONS: usize = 3;

/// A queue that runs, in which nothing waits.
#[derive(Debug)]
pub(super) struct Stamps {
    queue: i32,
}

/// What a queue's time is by `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct QueueClock {
    queue: i32,
    /// When the queue's time was `time_ns`.
    now_ns: u64,
    time_ns: u64,
}

impl Stamps {
    /// Starts a queue; `None`: there is none to be had, or its timer does not run.
    pub(super) fn start(seq: &Seq, name: &CStr) -> Option<Self> {
        let queue = seq.alloc_named_queue(name).ok()?;
        let stamps = Self { queue };
        if stamps.run(seq).is_none() {
            // It ends with the handle at the latest.
            let _ = seq.free_queue(queue);
            return None;
        }
        Some(stamps)
    }

    fn run(&self, seq: &Seq) -> Option<()> {
        let descriptors = (seq, None).get().ok()?;
        // Where the configuration has another sequencer than the kernel's, this is refused, and there are no stamps.
        sys::midi::set_queue_timer_hz(descriptors.first()?.fd, self.queue, TICKS_HZ).ok()?;
        seq.control_queue(self.queue, EventType::Start, 0, None).ok()?;
        seq.drain_output().ok()?;
        let runs = seq.get_queue_status(self.queue).ok()?.get_status() != 0;
        runs.then_some(())
    }

    /// Has the kernel stamp what arrives at a port that is about to be created.
    pub(super) fn be_put_on_what_arrives_at(&self, port: &PortInfo) {
        port.set_timestamping(true);
        port.set_timestamp_real(true);
        port.set_timestamp_queue(self.queue);
    }

    /// Compares the clocks.
    pub(super) fn clock(&self, seq: &Seq) -> Option<QueueClock> {
        let mut best = self.compare(seq)?;
        for _ in 1..COMPARISONS {
            if best.0 <= QUICK_NS {
                break;
            }
            best = self.compare(seq).into_iter().chain([best]).min_by_key(|(duration_ns, _)| *duration_ns)?;
        }
        Some(best.1)
    }

    /// How long it took, and what was found.
    fn compare(&self, seq: &Seq) -> Option<(u64, QueueClock)> {
        let begin_ns = sys::clock::now_ns();
        let status = seq.get_queue_status(self.queue).ok()?;
        let duration_ns = sys::clock::now_ns() - begin_ns;
        let time_ns = u64::try_from(status.get_real_time().as_nanos()).ok()?;
        let now_ns = begin_ns + duration_ns / 2;
        Some((duration_ns, QueueClock { queue: self.queue, now_ns, time_ns }))
    }
}

impl QueueClock {
    /// When an event was stamped; `None`: it was not, or by another queue.
    pub(super) fn date_ns(self, event: &Event<'_>) -> Option<u64> {
        let time = event.get_time().filter(|_| event.get_queue() == self.queue)?;
        Some(self.date_of(u64::try_from(time.as_nanos()).ok()?))
    }

    /// What the queue calls `time_ns`.
    fn date_of(self, time_ns: u64) -> u64 {
        // Later than the comparison, too: what arrived since.
        self.now_ns.saturating_add_signed(time_ns.wrapping_sub(self.time_ns).cast_signed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_as_far_from_the_comparison_by_both_clocks() {
        let clock = QueueClock { queue: 3, now_ns: 5_000_000_000, time_ns: 1_000_000_000 };
        assert_eq!(clock.date_of(1_000_000_000), 5_000_000_000);
        assert_eq!(clock.date_of(999_980_000), 4_999_980_000);
        assert_eq!(clock.date_of(1_000_000_700), 5_000_000_700);
    }

    #[test]
    fn only_what_its_own_queue_stamped_has_a_date() {
        let clock = QueueClock { queue: 3, now_ns: 5_000_000_000, time_ns: 1_000_000_000 };
        let mut event = Event::new(EventType::Sensing, &());
        event.set_direct();
        assert_eq!(clock.date_ns(&event), None);
        let time = std::time::Duration::from_nanos(1_000_000_700);
        event.schedule_real(2, false, time);
        assert_eq!(clock.date_ns(&event), None);
        event.schedule_real(3, false, time);
        assert_eq!(clock.date_ns(&event), Some(5_000_000_700));
    }
}
