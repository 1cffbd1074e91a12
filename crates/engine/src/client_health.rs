//! Whether a client keeps up, as the driver thread and the control thread see it.

use rt::sync::{AtomicU32, Ordering};

/// Whether a client keeps up, from plan to plan.
///
/// The driver thread writes the counts; the control thread reads them, and writes the rest.
#[derive(Debug, Default)]
pub struct ClientHealth {
    /// Cycles in a row at whose end the client had not finished, by its own fault.
    late_cycles: AtomicU32,
    /// 1: a predecessor was late in the last cycle.
    starved: AtomicU32,
    /// 1: the driver waited for the client in the last cycle, until it could wait no longer.
    overdue: AtomicU32,
    /// In how many cycles that was the client's own fault; wraps.
    overdue_cycles: AtomicU32,
    /// 1: the client's socket has closed, so that the driver need not wait for it.
    departed: AtomicU32,
}

impl ClientHealth {
    /// Cycles in a row that the client has been late. Thread: any.
    pub fn late_cycles(&self) -> u32 {
        // Relaxed, here and below: says nothing about other memory.
        self.late_cycles.load(Ordering::Relaxed)
    }

    /// Counts one more cycle that the client has not finished by its own fault. Thread: cycle.
    pub fn count_late_cycle(&self) {
        self.late_cycles.fetch_add(1, Ordering::Relaxed);
    }

    /// Forgets how late the client was: it is activated or reinstated, or the clock is another one.
    pub fn forget_late_cycles(&self) {
        self.late_cycles.store(0, Ordering::Relaxed);
    }

    /// Whether the client's socket has closed.
    pub fn has_departed(&self) -> bool {
        self.departed.load(Ordering::Relaxed) != 0
    }

    /// Notes that the client's socket has closed. Thread: control.
    pub fn note_departed(&self) {
        self.departed.store(1, Ordering::Relaxed);
    }

    /// Notes that the driver waited for the client until it could wait no longer. Thread: cycle.
    pub fn note_overdue(&self) {
        self.overdue.store(1, Ordering::Relaxed);
    }

    /// Returns whether the driver waited so for the client in the last cycle, and forgets it.
    /// Thread: cycle.
    pub fn take_overdue(&self) -> bool {
        self.overdue.swap(0, Ordering::Relaxed) != 0
    }

    /// Counts one more cycle in which that was the client's own fault. Thread: cycle.
    pub fn count_overdue_cycle(&self) {
        self.overdue_cycles.fetch_add(1, Ordering::Relaxed);
    }

    /// In how many cycles the driver has waited for the client in vain; wraps. Thread: any.
    pub fn overdue_cycles(&self) -> u32 {
        self.overdue_cycles.load(Ordering::Relaxed)
    }

    /// Returns whether a predecessor was late in the last cycle.
    pub fn is_starved(&self) -> bool {
        self.starved.load(Ordering::Relaxed) != 0
    }

    /// Notes whether a predecessor was late in the last cycle. Thread: cycle.
    pub fn set_starved(&self, is_starved: bool) {
        self.starved.store(u32::from(is_starved), Ordering::Relaxed);
    }
}
