//! Locks that survive a panic in one of the program's callbacks.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// Locks `mutex`, poisoned or not: the values guarded here are valid after every single step of a
/// change.
pub(crate) fn locked<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Like [`locked`]; returns `None` if the mutex is locked already.
pub(crate) fn try_locked<T: ?Sized>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}
