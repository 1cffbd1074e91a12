//! Waking before the turn: a CPU that sleeps takes long to wake, so one client there wakes shortly
//! before the cycle is due, and waits for its turn without sleeping.

use core::hint::spin_loop;

use crate::park::Park;

/// How long before the next cycle is due the client wakes, ns.
pub(super) const EARLY_NS: u64 = 10_000;

/// How long it then waits without sleeping, at most, ns. No model waits so: time does not pass
/// there.
pub(super) const SPIN_NS: u64 = if cfg!(loom) { 0 } else { 40_000 };

/// After waits in vain, at most this many cycles pass without one, and at least half as many.
const LONGEST_PAUSE: u32 = 1023;

/// When a client wakes before its turn.
#[derive(Debug, Default)]
pub(super) struct EarlyWake {
    /// When the next sleep ends without the turn, ns.
    at_ns: Option<u64>,
    /// Cycles to come without an early wake.
    pause: u32,
    /// How many there were, or are, after the last wait in vain; 0: it was not in vain.
    last_pause: u32,
}

impl EarlyWake {
    /// Plans the wake for the cycle that is due at `due_ns`, if one is `wanted`.
    #[inline]
    pub(super) fn plan(&mut self, wanted: bool, due_ns: u64) {
        self.at_ns = None;
        if wanted {
            match self.pause.checked_sub(1) {
                Some(left) => self.pause = left,
                None => self.at_ns = Some(due_ns.saturating_sub(EARLY_NS)),
            }
        }
    }

    /// Returns when the sleep that begins now is to end, ns: once for each cycle.
    #[inline]
    pub(super) fn take(&mut self) -> Option<u64> {
        self.at_ns.take()
    }

    /// After a sleep until `at_ns`: waits in bounded time, without sleeping, until `has_come`.
    #[cold]
    pub(super) fn wait(&mut self, at_ns: u64, park: &impl Park, has_come: impl Fn() -> bool) {
        let until_ns = at_ns.max(park.now_ns()).saturating_add(SPIN_NS);
        let mut in_vain = false;
        // Something else ended the sleep if it is too early.
        while !has_come() && park.now_ns() >= at_ns && !in_vain {
            spin_loop();
            in_vain = park.now_ns() >= until_ns;
        }
        self.last_pause = if in_vain { (2 * self.last_pause + 1).min(LONGEST_PAUSE) } else { 0 };
        self.pause = self.last_pause;
    }
}
