//! What both directions of a stream share: wishes to the server, times and counts from it.

use rt::shm::{Acknowledgement, Due, StreamPage, Timing, WISHES, WishPage};
use rt::stream::Wish;
use sys::clock::{now_ns, sleep_until};
use sys::futex::Futex;
use sys::memory::Shared;

/// Poll interval while a device is later than its schedule.
const LATE_DEVICE_NS: u64 = 2_000_000;

/// A stream's wishes, and what the server publishes about it.
#[derive(Debug)]
pub struct StreamControl {
    wishes: Shared<WishPage>,
    page: Shared<StreamPage>,
    last_wish: u64,
    misses: u64,
    timing: Timing,
}

/// All [`WISHES`] wishes are still unacknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the stream has {WISHES} wishes that the server has not acknowledged: wait for one of them"
)]
pub struct NoRoomForWish;

impl StreamControl {
    /// Takes the program's wish page, which only it writes, and the server's page.
    #[must_use]
    pub fn new(wishes: Shared<WishPage>, page: Shared<StreamPage>) -> Self {
        Self { wishes, page, last_wish: 0, misses: 0, timing: Timing::default() }
    }

    /// Publishes a wish and returns its number. The device obeys when it wakes next; a request over
    /// the socket wakes it at once.
    ///
    /// # Errors
    /// [`NoRoomForWish`].
    pub fn wish(&mut self, wish: Wish) -> Result<u64, NoRoomForWish> {
        let number = self.last_wish + 1;
        if !self.page.has_room_for(number) {
            return Err(NoRoomForWish);
        }
        self.wishes.publish(number, wish);
        self.last_wish = number;
        Ok(number)
    }

    /// Returns what became of a wish; `None` as long as that is open.
    #[must_use]
    pub fn acknowledgement(&self, wish: u64) -> Option<Acknowledgement> {
        self.page.acknowledgement(wish)
    }

    /// Waits until a wish is acknowledged; `None` once `deadline_ns` (`CLOCK_MONOTONIC`) has
    /// passed.
    #[must_use]
    pub fn await_acknowledgement(&self, wish: u64, deadline_ns: u64) -> Option<Acknowledgement> {
        self.page.await_acknowledgement(wish, deadline_ns, &Futex)
    }

    /// Returns the newest relation of positions and time: what is heard when, and the latency.
    pub fn timing(&mut self) -> Timing {
        // While the server's thread was stopped during a write, the one before still holds.
        if let Some(timing) = self.page.timing() {
            self.timing = timing;
        }
        self.timing
    }

    /// Returns how often the device had to leave frames out since the stream began: each time is
    /// counted when the frames have come.
    pub fn misses(&mut self) -> u64 {
        while self.page.has_missed(self.misses + 1) {
            self.misses += 1;
        }
        self.misses
    }

    /// Returns the frames that the device had to leave out since the stream began.
    #[must_use]
    pub fn missed_frames(&self) -> u64 {
        self.page.missed_frames()
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
