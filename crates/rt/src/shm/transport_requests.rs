//! What a client wants of the transport: said without a lock or a system call by any of its threads, heard by the
//! driver once in a cycle.

use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::transport::{POSITION_WORDS, Position};

/// How many of a position's words are shared: in models only those that they look at.
const SHARED_WORDS: usize = if cfg!(loom) { 2 } else { POSITION_WORDS };

/// Threads of one client that may be in the middle of asking for a position at once. One more is refused: it could
/// only wait for a thread that was stopped there.
const PLACES: usize = if cfg!(loom) { 2 } else { 4 };

/// What was asked since the driver looked last; of each kind the last one asked.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct TransportRequest {
    /// To start (true) or to stop.
    pub roll: Option<bool>,
    /// To go there. Not checked yet.
    pub position: Option<Position>,
    /// How long the transport waits for clients that need time, µs.
    pub sync_timeout_us: Option<u64>,
}

impl TransportRequest {
    /// Both, where the later one counts.
    #[must_use]
    pub fn and_then(self, later: Self) -> Self {
        Self {
            roll: later.roll.or(self.roll),
            position: later.position.or(self.position),
            sync_timeout_us: later.sync_timeout_us.or(self.sync_timeout_us),
        }
    }
}

/// Requests on their way from many threads to one that never waits for them.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub struct TransportRequests {
    /// 1: something was asked since the driver looked last. All that it reads in a cycle without requests.
    news: AtomicU32,
    /// [`START`], [`STOP`], or 0.
    roll: AtomicU32,
    /// In µs and one more; 0: nothing was asked.
    sync_timeout: AtomicU64,
    /// Counts positions, so that the newest is known.
    tickets: AtomicU32,
    reserved: AtomicU32,
    places: [Place; PLACES],
}

const START: u32 = 1;
const STOP: u32 = 2;

/// A place for a position that was asked for.
#[repr(C, align(64))]
#[derive(Debug, Default)]
struct Place {
    /// [`FREE`], [`WRITING`], or a ticket's number and [`READY`].
    state: AtomicU32,
    reserved: AtomicU32,
    words: [AtomicU64; SHARED_WORDS],
}

const FREE: u32 = 0;
const WRITING: u32 = 1;
const READY: u32 = 2;

/// Whether the ticket in `state` was given after the one in `other`.
const fn is_newer(state: u32, other: u32) -> bool {
    // The tickets' own order, in the upper 30 bits, which wraps.
    (state & !3).wrapping_sub(other & !3).cast_signed() > 0
}

impl TransportRequests {
    /// Asks to start or to stop. Thread: any.
    pub fn ask_to_roll(&self, roll: bool) {
        // An exchange, as the driver's: the two have one order, whichever is first. Relaxed: see `tell`.
        self.roll.swap(if roll { START } else { STOP }, Ordering::Relaxed);
        self.tell();
    }

    /// Asks to wait for clients that need time for at most so long. Thread: any.
    pub fn ask_sync_timeout(&self, timeout_us: u64) {
        self.sync_timeout.swap(timeout_us.saturating_add(1), Ordering::Relaxed);
        self.tell();
    }

    /// Asks to go to `position`; false if too many threads are in the middle of the same. Thread: any.
    pub fn ask_position(&self, position: &Position) -> bool {
        let words = position.to_words();
        // Whoever takes a place away meanwhile has made progress itself: a few tries are enough.
        for _ in 0..PLACES {
            let Some((place, state)) = self.place_to_write() else { return false };
            // Acquire: what is written below is written after the driver has read what was here.
            let claimed =
                place.state.compare_exchange(state, WRITING, Ordering::Acquire, Ordering::Relaxed).is_ok();
            if claimed {
                for (shared, word) in place.words.iter().zip(words) {
                    shared.store(word, Ordering::Relaxed);
                }
                let ticket = self.tickets.fetch_add(1, Ordering::Relaxed);
                // Release: whoever sees the ticket sees the words.
                place.state.store(ticket << 2 | READY, Ordering::Release);
                self.tell();
                return true;
            }
        }
        false
    }

    /// A free place, or else one with an older request: the newer one comes in its stead.
    fn place_to_write(&self) -> Option<(&Place, u32)> {
        let state = |place: &Place| place.state.load(Ordering::Relaxed);
        let mut places =
            self.places.iter().map(|place| (place, state(place))).filter(|(_, state)| *state != WRITING);
        let first = places.next()?;
        if first.1 == FREE {
            Some(first)
        } else {
            Some(places.find(|(_, state)| *state == FREE).unwrap_or(first))
        }
    }

    fn tell(&self) {
        // Release: a driver that sees the news sees what they are. An operation rather than a store, so that it
        // also sees those of a thread that told before this one.
        self.news.fetch_or(1, Ordering::Release);
    }

    /// What was asked since the last call. Driver thread. Thread: cycle.
    pub fn take(&self) -> Option<TransportRequest> {
        // A plain load first: the line is the client's own until it asks for something. Acquire: see `tell`.
        if self.news.load(Ordering::Relaxed) == 0 || self.news.swap(0, Ordering::Acquire) == 0 {
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

    /// The newest position; all older ones are forgotten.
    fn take_position(&self) -> Option<Position> {
        let (place, state) =
            self.ready().reduce(|newest, other| if is_newer(other.1, newest.1) { other } else { newest })?;
        // A second look, after the newest was seen: every older one of its thread is seen now.
        for (older, state) in self.ready().filter(|(_, other)| is_newer(state, *other)) {
            // Fails if a newer one is being written there. Relaxed: nothing of it was read.
            let _ = older.state.compare_exchange(state, FREE, Ordering::Relaxed, Ordering::Relaxed);
        }
        let mut words = [0; POSITION_WORDS];
        for (word, shared) in words.iter_mut().zip(&place.words) {
            *word = shared.load(Ordering::Relaxed);
        }
        // Release: who writes here next does so after the words were read. It fails if somebody has begun to write
        // a newer position over this one, whose end is the next news.
        let whole = place.state.compare_exchange(state, FREE, Ordering::Release, Ordering::Relaxed).is_ok();
        whole.then(|| Position::from_words(&words))
    }

    /// The places with a position in them, and their states.
    fn ready(&self) -> impl Iterator<Item = (&Place, u32)> {
        // Acquire: pairs with the end of the write.
        let states = self.places.iter().map(|place| (place, place.state.load(Ordering::Acquire)));
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
            assert!(requests.ask_position(&Position::at(frame)), "older requests make room for newer ones");
        }
        requests.ask_to_roll(true);
        requests.ask_to_roll(false);
        requests.ask_sync_timeout(0);
        let heard = TransportRequest {
            roll: Some(false),
            position: Some(Position::at(19)),
            sync_timeout_us: Some(0),
        };
        assert_eq!(requests.take(), Some(heard));
        assert_eq!(requests.take(), None, "once");
        requests.ask_to_roll(true);
        assert_eq!(
            requests.take(),
            Some(TransportRequest { roll: Some(true), ..TransportRequest::default() })
        );
    }

    #[test]
    fn threads_that_stopped_in_the_middle_of_a_request_take_nothing_but_their_places() {
        let requests = TransportRequests::default();
        for place in &requests.places[1..] {
            place.state.store(WRITING, Ordering::Relaxed);
        }
        for frame in [5, 6] {
            assert!(requests.ask_position(&Position::at(frame)));
        }
        assert_eq!(requests.take().unwrap().position, Some(Position::at(6)));
        requests.places[0].state.store(WRITING, Ordering::Relaxed);
        assert!(!requests.ask_position(&Position::at(7)), "refused at once");
    }

    #[test]
    fn the_newest_request_is_known_when_the_tickets_wrap() {
        let requests = TransportRequests::default();
        requests.tickets.store(u32::MAX - 1, Ordering::Relaxed);
        for frame in 0..6 {
            requests.ask_position(&Position::at(frame));
            requests.ask_position(&Position::at(frame + 100));
            assert_eq!(requests.take().unwrap().position, Some(Position::at(frame + 100)));
        }
    }
}
