//! When the front end gives back memory that it needs no longer.

/// How long after a program has come its start is over, its first stream included.
const STARTED_NS: u64 = 3_000_000_000;

/// Memory that the start of a program has taken: most of the code that it runs is not run again
/// while the program plays.
#[derive(Debug, Default)]
pub(super) struct SpareMemory {
    /// When it can be given back; `None`: there is none.
    release_at_ns: Option<u64>,
}

impl SpareMemory {
    /// A program has come.
    pub fn taken(&mut self, now_ns: u64) {
        self.release_at_ns = Some(now_ns + STARTED_NS);
    }

    /// Returns whether it is to be given back, once. Asked when the front end is awake anyway:
    /// nothing wakes for it.
    pub fn take_due(&mut self, now_ns: u64) -> bool {
        self.release_at_ns.take_if(|at_ns| *at_ns <= now_ns).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_given_back_once_when_the_last_program_has_started() {
        let mut spare = SpareMemory::default();
        assert!(!spare.take_due(u64::MAX));
        spare.taken(0);
        spare.taken(1);
        assert!(!spare.take_due(STARTED_NS));
        assert!(spare.take_due(STARTED_NS + 1));
        assert!(!spare.take_due(u64::MAX));
    }
}
