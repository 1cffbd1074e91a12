//! What both directions of a stream share: wishes to the server, times and counts from it.

use std::ops::Deref;

use rt::shm::{Acknowledgement, Due, StreamPage, Timing, WISHES, WishPage, Wishes};
use rt::stream::Wish;
use sys::clock::{now_ns, sleep_until};
use sys::futex::Futex;
use sys::memory::{RingWishes, Shared};

use super::wished::Wished;

/// Poll interval while a device is later than its schedule.
const LATE_DEVICE_NS: u64 = 2_000_000;

/// Where a program writes the wishes of its stream.
#[derive(Debug)]
pub(super) enum OwnWishes {
    /// In the ring of one that plays.
    InRing(RingWishes),
    /// On a page of one that records.
    OnPage(Shared<WishPage>),
}

impl Deref for OwnWishes {
    type Target = Wishes;

    fn deref(&self) -> &Wishes {
        match self {
            Self::InRing(wishes) => wishes,
            Self::OnPage(page) => page.wishes(),
        }
    }
}

/// A stream's wishes, and what the server publishes about it.
#[derive(Debug)]
pub struct StreamControl {
    wishes: OwnWishes,
    page: Shared<StreamPage>,
    /// What was counted on servers that have gone.
    before: Counts,
    last_wish: u64,
    misses: u64,
    timing: Timing,
    wished: Wished,
    /// Its server has gone, and it is on no other yet.
    is_away: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    wishes: u64,
    misses: u64,
    missed_frames: u64,
}

/// All [`WISHES`] wishes are still unacknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the stream has {WISHES} wishes that the server has not acknowledged: wait for one of them"
)]
pub struct NoRoomForWish;

impl StreamControl {
    /// Takes the program's wishes, which only it writes, and the server's page.
    pub(super) fn new(wishes: OwnWishes, page: Shared<StreamPage>) -> Self {
        Self {
            wishes,
            page,
            before: Counts::default(),
            last_wish: 0,
            misses: 0,
            timing: Timing::default(),
            wished: Wished::default(),
            is_away: false,
        }
    }

    /// Returns its continuation on another server, which gets its wishes so far. Counts
    /// go on.
    pub(super) fn following(&self, wishes: OwnWishes, page: Shared<StreamPage>) -> Self {
        let before = Counts {
            wishes: self.last_wish,
            misses: self.misses,
            missed_frames: self.missed_frames(),
        };
        let mut next = Self {
            before,
            last_wish: self.last_wish,
            misses: self.misses,
            timing: self.timing,
            wished: self.wished,
            ..Self::new(wishes, page)
        };
        for wish in self.wished.wishes() {
            // A new page has room for one of each kind.
            let _ = next.wish(wish);
        }
        next
    }

    /// The server has gone, and at `at_ns` its device with it: nothing more is heard. The stream
    /// stays where it is, or was sent to, but not beyond position `end`, and wishes are for the
    /// next server.
    pub(super) fn leave(&mut self, at_ns: u64, end: u64) {
        if self.is_away {
            return;
        }
        self.misses();
        let timing = self.timing();
        let position = self.wished.position_at(at_ns, timing, |wish| self.acknowledgement(wish));
        let position = position.min(end);
        self.timing = Timing {
            at_ns,
            device_frame: timing.device_frame_at(at_ns),
            position,
            until: position,
            frame_ps: 0,
            latency_ns: 0,
        };
        self.wished.arrive();
        self.is_away = true;
    }

    /// Returns whether the program wants it to play or to record.
    pub(super) fn runs(&self) -> bool {
        self.wished.runs()
    }

    /// Publishes a wish and returns its number. The device obeys when it wakes next; a request over
    /// the socket wakes it at once. While the server is gone, the wish is for the next one.
    ///
    /// # Errors
    /// [`NoRoomForWish`].
    pub fn wish(&mut self, wish: Wish) -> Result<u64, NoRoomForWish> {
        let number = self.last_wish + 1;
        if !self.is_away {
            let on_page = number - self.before.wishes;
            if !self.page.has_room_for(on_page) {
                return Err(NoRoomForWish);
            }
            self.wishes.publish(on_page, wish);
        } else if let Wish::Splice { position } = wish {
            (self.timing.position, self.timing.until) = (position, position);
        }
        self.last_wish = number;
        self.wished.note(number, wish);
        if self.is_away {
            self.wished.arrive();
        }
        Ok(number)
    }

    /// Returns what became of a wish; `None` as long as that is open.
    #[must_use]
    pub fn acknowledgement(&self, wish: u64) -> Option<Acknowledgement> {
        match self.on_page(wish) {
            Some(on_page) => self.page.acknowledgement(on_page),
            None => Some(Acknowledgement::Forgotten),
        }
    }

    /// Returns the number of a wish on the server's page; `None`: a server before has known it.
    fn on_page(&self, wish: u64) -> Option<u64> {
        wish.checked_sub(self.before.wishes).filter(|on_page| *on_page > 0)
    }

    /// Waits until a wish is acknowledged; `None` once `deadline_ns` (`CLOCK_MONOTONIC`) has
    /// passed.
    #[must_use]
    pub fn await_acknowledgement(&self, wish: u64, deadline_ns: u64) -> Option<Acknowledgement> {
        match self.on_page(wish) {
            Some(on_page) => self.page.await_acknowledgement(on_page, deadline_ns, &Futex),
            None => Some(Acknowledgement::Forgotten),
        }
    }

    /// Returns the newest relation of positions and time: what is heard when, and the latency.
    pub fn timing(&mut self) -> Timing {
        // While the server's thread was stopped during a write, the one before still holds.
        if let Some(timing) = self.page.timing().filter(|_| !self.is_away) {
            self.timing = timing;
        }
        self.timing
    }

    /// Returns how often the device had to leave frames out since the stream began: each time is
    /// counted when the frames have come.
    pub fn misses(&mut self) -> u64 {
        while self.page.has_missed(self.misses - self.before.misses + 1) {
            self.misses += 1;
        }
        self.misses
    }

    /// Returns the frames that the device had to leave out since the stream began.
    #[must_use]
    pub fn missed_frames(&self) -> u64 {
        self.before.missed_frames + self.page.missed_frames()
    }

    /// Returns the page that the server publishes.
    #[must_use]
    pub fn page(&self) -> &StreamPage {
        &self.page
    }

    /// Sleeps until `shift_ns` after the wake-up that handles frames beyond `done`, then polls
    /// until there are `frames`, since a device may be late. `None` once `deadline_ns` has passed.
    pub(super) fn await_device(
        &self,
        done: u64,
        shift_ns: i64,
        deadline_ns: u64,
        frames: impl Fn() -> usize,
    ) -> Option<Due> {
        loop {
            let due = self.page.await_due(done, shift_ns, deadline_ns, &Futex)?;
            if frames() > 0 {
                return Some(due);
            }
            let now_ns = now_ns();
            if now_ns >= deadline_ns {
                return None;
            }
            sleep_until(deadline_ns.min(now_ns.saturating_add(LATE_DEVICE_NS)));
        }
    }
}
