//! Programs that call the device, so that it obeys a wish at once.

use std::collections::BTreeMap;

/// The least time between two calls of the driver thread, on average, ns. Each may have it render
/// again what all streams play, so a program that calls all the time must not set the pace.
const LEAST_NS: u64 = 2_000_000;
/// How much earlier a single call may be: a new stream calls for its connections to the device, and
/// soon after that for its first frames.
const AHEAD_NS: u64 = LEAST_NS;
/// When a device's thread is called for a new stream at the latest, ns. Its program is about to
/// call for the first frames, which are heard sooner if that thread does not wake before.
const LATER_NS: u64 = 5_000_000;

/// Which programs wait for the device, and when it is called next.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// Streams whose programs have called, with the number of the device's call that was made for
    /// them; `None`: it is due.
    waiting: BTreeMap<u32, Option<u32>>,
    /// When the next call would be on time.
    next_ns: u64,
    due_ns: Option<u64>,
}

impl Calls {
    /// A program has called for its stream.
    pub(super) fn add(&mut self, stream: u32, now_ns: u64) {
        self.waiting.insert(stream, None);
        self.need(now_ns);
    }

    /// The driver thread is to be called for what no program waits for.
    pub(super) fn need(&mut self, now_ns: u64) {
        // MUTATION: calls.at_any_rate
        let earliest_ns = self.next_ns.saturating_sub(AHEAD_NS).max(now_ns);
        self.due_ns = Some(self.due_ns.map_or(earliest_ns, |due_ns| due_ns.min(earliest_ns)));
    }

    /// The same, in a while: whatever it is called for before does for this as well.
    pub(super) fn need_later(&mut self, now_ns: u64) {
        self.due_ns.get_or_insert(now_ns + LATER_NS);
    }

    /// When the driver thread is to be called.
    pub(super) fn due_ns(&self) -> Option<u64> {
        self.due_ns
    }

    /// Returns whether the driver thread is to be called at `now_ns`, once.
    pub(super) fn take_due(&mut self, now_ns: u64) -> bool {
        let is_due = self.due_ns.take_if(|due_ns| *due_ns <= now_ns).is_some();
        if is_due {
            self.next_ns = self.next_ns.max(now_ns) + LEAST_NS;
        }
        is_due
    }

    /// The driver thread was called, and has this number of calls by now.
    pub(super) fn note_call(&mut self, calls: u32) {
        self.waiting.values_mut().for_each(|call| *call = call.or(Some(calls)));
    }

    /// Returns whether the program of a stream has called, and the driver thread has answered a
    /// call that was made since: it has answered its first `answered` ones.
    pub(super) fn take_served(&mut self, stream: u32, answered: u32) -> bool {
        // Both wrap, and are never far from each other.
        let is_answered = |call: u32| answered.wrapping_sub(call) <= u32::MAX / 2;
        let is_served = self.waiting.get(&stream).is_some_and(|call| call.is_some_and(is_answered));
        is_served && self.waiting.remove(&stream).is_some()
    }

    /// The stream has ended.
    pub(super) fn forget(&mut self, stream: u32) {
        self.waiting.remove(&stream);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_follow_each_other_closely_are_one() {
        let mut calls = Calls::default();
        calls.add(1, 5);
        assert!(!calls.take_served(1, 9), "the driver thread was not called yet");
        assert_eq!((calls.take_due(5), calls.take_due(5)), (true, false));
        calls.add(1, 6);
        assert!(calls.take_due(6), "one more is at once");
        calls.add(2, 6);
        calls.add(1, 7);
        assert_eq!(calls.due_ns(), Some(5 + LEAST_NS));
        assert!(!calls.take_due(4 + LEAST_NS) && calls.take_due(5 + LEAST_NS));
        calls.note_call(9);
        assert_eq!([1, 2, 1].map(|stream| calls.take_served(stream, 9)), [true, true, false]);
    }

    #[test]
    fn a_program_is_served_by_the_answer_to_its_own_call_and_no_earlier_one() {
        for first in [1, u32::MAX] {
            let second = first.wrapping_add(1);
            let mut calls = Calls::default();
            calls.need(5);
            assert!(calls.take_due(5));
            calls.note_call(first);
            calls.add(1, 6);
            assert!(calls.take_due(6), "at once");
            calls.note_call(second);
            calls.add(2, 7);
            assert_eq!([1, 2].map(|stream| calls.take_served(stream, first)), [false; 2]);
            assert_eq!([1, 2].map(|stream| calls.take_served(stream, second)), [true, false]);
        }
    }

    #[test]
    fn a_call_that_can_wait_is_made_with_the_next_one() {
        let mut calls = Calls::default();
        calls.need_later(5);
        assert_eq!(calls.due_ns(), Some(5 + LATER_NS));
        calls.add(1, 7);
        assert!(calls.take_due(7), "at once");
        assert_eq!(calls.due_ns(), None);
    }

    #[test]
    fn a_program_that_calls_all_the_time_is_served_once_in_two_milliseconds() {
        let mut calls = Calls::default();
        let second = 1_000_000_000;
        let served = (0..second).step_by(10_000).filter(|now_ns| {
            calls.add(1, *now_ns);
            calls.take_due(*now_ns)
        });
        assert_eq!(served.count() as u64, second / LEAST_NS + 1);
    }
}
