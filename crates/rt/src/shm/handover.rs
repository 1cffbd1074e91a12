//! Hands a plan from the control thread to the driver thread without a lock.

use core::marker::PhantomData;
use core::ptr;

use crate::sync::{AtomicPtr, Ordering};

/// A cell for at most one value that one thread publishes and another takes.
///
/// This is the pair of current and next state of Letz, Orlarey, Fober 2005: the cell contains the
/// next state, and the taker owns the current one. [`take`](Self::take) is one atomic swap, so the
/// driver switches in bounded time, and the control thread can [`withdraw`](Self::withdraw) a plan
/// that was not taken yet and replace it.
#[derive(Debug)]
pub struct Handover<T: 'static> {
    next: AtomicPtr<T>,
    owns: PhantomData<&'static mut T>,
}

// SAFETY: a value is reachable either through this cell or through the one `&'static mut` that came
// out of it; the swaps below keep that, so sharing the cell only ever moves exclusive references.
unsafe impl<T: Send> Sync for Handover<T> {}

impl<T: 'static> Default for Handover<T> {
    fn default() -> Self {
        Self { next: AtomicPtr::new(ptr::null_mut()), owns: PhantomData }
    }
}

impl<T: Send + 'static> Handover<T> {
    /// Publishes `value`; returns the previous value if it was not taken.
    pub fn publish(&self, value: &'static mut T) -> Option<&'static mut T> {
        self.swap(value)
    }

    /// Takes the published value, if any. Thread: cycle.
    pub fn take(&self) -> Option<&'static mut T> {
        self.swap(ptr::null_mut())
    }

    /// Takes back the published value. `None` if the other side has taken it, or nothing was
    /// published.
    pub fn withdraw(&self) -> Option<&'static mut T> {
        self.swap(ptr::null_mut())
    }

    fn swap(&self, value: *mut T) -> Option<&'static mut T> {
        // AcqRel: the taker sees the value as its publisher left it, and so does the withdrawer.
        // MUTATION: handover.without_release, handover.without_acquire
        let before = self.next.swap(value, Ordering::AcqRel);
        // SAFETY: `before` is null or came from a `&'static mut T` given to `publish`, and the swap
        // has removed it from the only place that knew it.
        unsafe { before.as_mut() }
    }
}
