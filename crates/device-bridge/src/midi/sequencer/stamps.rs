//! The kernel's timestamps of events that arrive at the sequencer.
//!
//! The kernel stamps an event with the time of a queue when it is delivered: at the end of the
//! interrupt that brought it, and not when a thread has woken to read it. A queue's time advances
//! with its timer in steps, and with `CLOCK_MONOTONIC` between them. So the two clocks differ only
//! by the timer's late ticks, some microseconds each; they are compared whenever something arrives,
//! and the result holds for what was stamped a moment before.

use std::ffi::CStr;

use alsa_rs::poll::Descriptors;
use alsa_rs::seq::{Event, EventType, PortInfo, Seq};

/// The kernel's lowest rate: a queue's tick should not wake the machine.
const TICKS_HZ: u32 = 10;
/// A comparison that took longer than this, ns, is repeated: another thread had the CPU meanwhile.
const QUICK_NS: u64 = 20_000;
const COMPARISONS: usize = 3;

/// A running queue that holds no events.
#[derive(Debug)]
pub(super) struct Stamps {
    queue: i32,
}

/// The relation of a queue's time to `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct QueueClock {
    queue: i32,
    /// `CLOCK_MONOTONIC` when the queue's time was `time_ns`.
    now_ns: u64,
    time_ns: u64,
}

impl Stamps {
    /// Starts a queue; `None` if there is none left, or its timer does not run.
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
        // A configuration with a sequencer other than the kernel's refuses this, and there are no
        // timestamps.
        sys::midi::set_queue_timer_hz(descriptors.first()?.fd, self.queue, TICKS_HZ).ok()?;
        seq.control_queue(self.queue, EventType::Start, 0, None).ok()?;
        seq.drain_output().ok()?;
        let runs = seq.get_queue_status(self.queue).ok()?.get_status() != 0;
        runs.then_some(())
    }

    /// Makes the kernel stamp what arrives at a port that is about to be created.
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
            best = self
                .compare(seq)
                .into_iter()
                .chain([best])
                .min_by_key(|(duration_ns, _)| *duration_ns)?;
        }
        Some(best.1)
    }

    /// Returns how long the comparison took, and its result.
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
    /// Returns when an event was stamped; `None` if it was not, or by another queue.
    pub(super) fn timestamp_ns(self, event: &Event<'_>) -> Option<u64> {
        let time = event.get_time().filter(|_| event.get_queue() == self.queue)?;
        Some(self.monotonic_ns(u64::try_from(time.as_nanos()).ok()?))
    }

    /// Converts the queue's `time_ns`.
    fn monotonic_ns(self, time_ns: u64) -> u64 {
        // Valid for times after the comparison, too: of events that have arrived since.
        self.now_ns.saturating_add_signed(time_ns.wrapping_sub(self.time_ns).cast_signed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_as_far_from_the_comparison_by_both_clocks() {
        let clock = QueueClock { queue: 3, now_ns: 5_000_000_000, time_ns: 1_000_000_000 };
        assert_eq!(clock.monotonic_ns(1_000_000_000), 5_000_000_000);
        assert_eq!(clock.monotonic_ns(999_980_000), 4_999_980_000);
        assert_eq!(clock.monotonic_ns(1_000_000_700), 5_000_000_700);
    }

    #[test]
    fn only_events_stamped_by_the_own_queue_have_a_timestamp() {
        let clock = QueueClock { queue: 3, now_ns: 5_000_000_000, time_ns: 1_000_000_000 };
        let mut event = Event::new(EventType::Sensing, &());
        event.set_direct();
        assert_eq!(clock.timestamp_ns(&event), None);
        let time = std::time::Duration::from_nanos(1_000_000_700);
        event.schedule_real(2, false, time);
        assert_eq!(clock.timestamp_ns(&event), None);
        event.schedule_real(3, false, time);
        assert_eq!(clock.timestamp_ns(&event), Some(5_000_000_700));
    }
}
