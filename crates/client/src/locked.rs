//! Locks that a panic in one of the program's callbacks does not make useless.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// Locks `mutex`, poisoned or not: what it guards is changed in steps that each leave it valid.
pub(crate) fn locked<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// As [`locked`], if nobody else has locked it.
pub(crate) fn try_locked<T: ?Sized>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}
