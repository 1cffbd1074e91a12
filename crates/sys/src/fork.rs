//! Detects forks of this process: a child must not use what was opened before.

use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

/// Starts at 1: a variable that starts at zero would lie on another page than the rest of what
/// cycles read, and each page costs them.
static GENERATION: AtomicU32 = AtomicU32::new(1);

extern "C" fn note_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

/// Returns a number that differs between a process and its forked child: what was created under
/// another number belongs to an ancestor. Children of a bare `clone` are not detected, nor is
/// `vfork`, whose child only executes another program.
#[must_use]
#[inline]
pub fn generation() -> u32 {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        // SAFETY: the handler touches one atomic, which pthread_atfork allows in a child of a
        // threaded process. The only failure is a lack of memory, where forks go unnoticed.
        let _ = unsafe { libc::pthread_atfork(None, None, Some(note_child)) };
    });
    GENERATION.load(Ordering::Relaxed)
}

/// Returns whether this is still the process in which [`generation`] returned that number. Thread:
/// cycle.
#[must_use]
#[inline]
pub fn is_generation(generation: u32) -> bool {
    GENERATION.load(Ordering::Relaxed) == generation
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forked;

    #[test]
    fn only_a_forked_child_sees_another_generation() {
        let before = generation();
        assert_eq!(
            forked::exit_status(|| u8::from(generation() != before + 1 || is_generation(before))),
            0
        );
        assert_eq!(generation(), before);
        assert!(is_generation(before));
    }
}
