//! Requests to the transport: any thread of a client writes them without a lock or a system call,
//! and the driver reads them once per cycle.

use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::transport::{POSITION_WORDS, Position};

/// Number of a position's shared words. Models share only those that they check.
const SHARED_WORDS: usize = if cfg!(loom) { 2 } else { POSITION_WORDS };

/// Threads of one client that can be writing a position at the same time. Another one is refused,
/// since it could only wait for a thread that was stopped there.
const SLOTS: usize = if cfg!(loom) { 2 } else { 4 };

/// The requests since the driver's last poll; the last one of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct TransportRequest {
    /// Whether to start (true) or to stop.
    pub roll: Option<bool>,
    /// Where to go; not checked yet.
    pub position: Option<Position>,
    /// How long the transport waits for clients that need time, µs.
    pub sync_timeout_us: Option<u64>,
}

impl TransportRequest {
    /// Combines two requests. The later one takes precedence.
    #[must_use]
    pub fn and_then(self, later: Self) -> Self {
        Self {
            roll: later.roll.or(self.roll),
            position: later.position.or(self.position),
            sync_timeout_us: later.sync_timeout_us.or(self.sync_timeout_us),
        }
    }
}

/// Requests from many threads to a driver that never waits for them.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub struct TransportRequests {
    /// 1 if there were requests since the driver's last poll. In a cycle without requests the
    /// driver reads nothing else.
    pending: AtomicU32,
    /// [`START`], [`STOP`], or 0.
    roll: AtomicU32,
    /// The timeout in µs plus one; 0 if none was requested.
    sync_timeout: AtomicU64,
    /// Numbers the positions, to determine the newest.
    tickets: AtomicU32,
    reserved: AtomicU32,
    slots: [Slot; SLOTS],
}

same_for_all_widths!(
    TransportRequests: 576 bytes;
    pending at 0, roll at 4, sync_timeout at 8, tickets at 16, slots at 64
);

const START: u32 = 1;
const STOP: u32 = 2;

/// A slot for one requested position.
#[repr(C, align(64))]
#[derive(Debug, Default)]
struct Slot {
    /// [`FREE`], [`WRITING`], or a ticket's number with [`READY`].
    state: AtomicU32,
    reserved: AtomicU32,
    words: [AtomicU64; SHARED_WORDS],
}

same_for_all_widths!(Slot: 128 bytes; state at 0, words at 8);

const FREE: u32 = 0;
const WRITING: u32 = 1;
const READY: u32 = 2;

/// Returns whether the ticket in `state` was given after the one in `other`.
const fn is_newer(state: u32, other: u32) -> bool {
    // Tickets occupy the upper 30 bits, and wrap.
    (state & !3).wrapping_sub(other & !3).cast_signed() > 0
}

impl TransportRequests {
    /// Requests to start or to stop. Thread: any.
    pub fn request_roll(&self, roll: bool) {
        // An exchange, like the driver's, gives the two a total order. Relaxed: see `notify`.
        self.roll.swap(if roll { START } else { STOP }, Ordering::Relaxed);
        self.notify();
    }

    /// Requests a limit to the wait for clients that need time. Thread: any.
    pub fn request_sync_timeout(&self, timeout_us: u64) {
        self.sync_timeout.swap(timeout_us.saturating_add(1), Ordering::Relaxed);
        self.notify();
    }

    /// Requests `position`; returns false if too many threads are doing so at the same time.
    /// Thread: any.
    pub fn request_position(&self, position: &Position) -> bool {
        let words = position.to_words();
        // A thread that takes a slot away meanwhile has made progress itself, so a few tries are
        // enough.
        for _ in 0..SLOTS {
            let Some((slot, state)) = self.slot_to_write() else { return false };
            // Acquire: the words below are written after the driver has read the previous ones.
            let claimed = slot
                .state
                .compare_exchange(state, WRITING, Ordering::Acquire, Ordering::Relaxed)
                .is_ok();
            if claimed {
                for (shared, word) in slot.words.iter().zip(words) {
                    shared.store(word, Ordering::Relaxed);
                }
                let ticket = self.tickets.fetch_add(1, Ordering::Relaxed);
                // Release: a driver that sees the ticket sees the words.
                // MUTATION: requests.position_end_relaxed
                slot.state.store(ticket << 2 | READY, Ordering::Release);
                self.notify();
                return true;
            }
        }
        false
    }

    /// Returns a free slot, or else one with an older request, which the newer one replaces.
    fn slot_to_write(&self) -> Option<(&Slot, u32)> {
        let state = |slot: &Slot| slot.state.load(Ordering::Relaxed);
        let mut slots = self
            .slots
            .iter()
            .map(|slot| (slot, state(slot)))
            .filter(|(_, state)| *state != WRITING);
        let first = slots.next()?;
        if first.1 == FREE {
            Some(first)
        } else {
            Some(slots.find(|(_, state)| *state == FREE).unwrap_or(first))
        }
    }

    fn notify(&self) {
        // Release: a driver that sees the flag sees the request. A read-modify-write instead of a
        // store, so that the driver also sees the requests of threads that set the flag before.
        // MUTATION: requests.earlier_notice_overwritten, requests.notice_relaxed
        self.pending.fetch_or(1, Ordering::Release);
    }

    /// Takes the requests since the last call. Driver thread. Thread: cycle.
    pub fn take(&self) -> Option<TransportRequest> {
        // A plain load first: the cache line stays the client's own until it requests something.
        // Acquire: see `notify`.
        // MUTATION: requests.take_relaxed
        if self.pending.load(Ordering::Relaxed) == 0 || self.pending.swap(0, Ordering::Acquire) == 0
        {
            return None;
        }
        let roll = match self.roll.swap(0, Ordering::Relaxed) {
            START => Some(true),
            STOP => Some(false),
            _ => None,
        };
        let sync_timeout_us = self.sync_timeout.swap(0, Ordering::Relaxed).checked_sub(1);
        Some(TransportRequest { roll, position: self.take_position(), sync_timeout_us })
    }

    /// Takes the newest position, and discards all older ones.
    fn take_position(&self) -> Option<Position> {
        // MUTATION: requests.oldest_position_wins
        let (slot, state) = self
            .ready()
            .reduce(|newest, other| if is_newer(other.1, newest.1) { other } else { newest })?;
        // The slots are read again after the newest was found, so that all older positions of its
        // thread are seen.
        // MUTATION: requests.older_positions_kept
        for (older, state) in self.ready().filter(|(_, other)| is_newer(state, *other)) {
            // Fails if a newer position is being written there. Relaxed: nothing was read from it.
            let _ = older.state.compare_exchange(state, FREE, Ordering::Relaxed, Ordering::Relaxed);
        }
        let mut words = [0; POSITION_WORDS];
        for (word, shared) in words.iter_mut().zip(&slot.words) {
            *word = shared.load(Ordering::Relaxed);
        }
        // Release: the next thread to write here does so after the words were read. The exchange
        // fails if a thread has begun to overwrite this position, and will set the flag again.
        let whole =
            slot.state.compare_exchange(state, FREE, Ordering::Release, Ordering::Relaxed).is_ok();
        // MUTATION: requests.copy_not_checked
        whole.then(|| Position::from_words(&words))
    }

    /// Returns the slots that contain a position, and their states.
    fn ready(&self) -> impl Iterator<Item = (&Slot, u32)> {
        // Acquire: pairs with the end of the write.
        let states = self.slots.iter().map(|slot| (slot, slot.state.load(Ordering::Acquire)));
        states.filter(|(_, state)| state & 3 == READY)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn of_each_kind_the_last_request_is_heard_once() {
        let requests = TransportRequests::default();
        assert_eq!(requests.take(), None);
        for frame in 0..20 {
            assert!(
                requests.request_position(&Position::at(frame)),
                "older requests make room for newer ones"
            );
        }
        requests.request_roll(true);
        requests.request_roll(false);
        requests.request_sync_timeout(0);
        let heard = TransportRequest {
            roll: Some(false),
            position: Some(Position::at(19)),
            sync_timeout_us: Some(0),
        };
        assert_eq!(requests.take(), Some(heard));
        assert_eq!(requests.take(), None, "once");
        requests.request_roll(true);
        assert_eq!(
            requests.take(),
            Some(TransportRequest { roll: Some(true), ..TransportRequest::default() })
        );
    }

    #[test]
    fn stopped_threads_block_only_their_own_request_slots() {
        let requests = TransportRequests::default();
        for slot in &requests.slots[1..] {
            slot.state.store(WRITING, Ordering::Relaxed);
        }
        for frame in [5, 6] {
            assert!(requests.request_position(&Position::at(frame)));
        }
        assert_eq!(requests.take().unwrap().position, Some(Position::at(6)));
        requests.slots[0].state.store(WRITING, Ordering::Relaxed);
        assert!(!requests.request_position(&Position::at(7)), "refused at once");
    }

    #[test]
    fn the_newest_request_is_known_when_the_tickets_wrap() {
        let requests = TransportRequests::default();
        requests.tickets.store(u32::MAX - 1, Ordering::Relaxed);
        for frame in 0..6 {
            requests.request_position(&Position::at(frame));
            requests.request_position(&Position::at(frame + 100));
            assert_eq!(requests.take().unwrap().position, Some(Position::at(frame + 100)));
        }
    }
}
