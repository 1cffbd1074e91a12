//! Detection of clients that run on another CPU than the plan assigns.

/// Counts cycles in a row that a client ended on another CPU than assigned. Thread: control.
#[derive(Debug, Default, Clone, Copy)]
pub struct AffinityMismatch(u32);

/// From this many cycles on, the client does not follow its assignment: its own affinity or its
/// cpuset excludes the CPU. A client that follows needs a cycle or two.
pub const MISMATCH_CYCLES: u32 = 64;

impl AffinityMismatch {
    /// Notes one more cycle. Returns true once for every [`MISMATCH_CYCLES`] cycles in a row that
    /// ended elsewhere.
    pub fn note(&mut self, is_elsewhere: bool) -> bool {
        self.0 = if is_elsewhere { self.0 + 1 } else { 0 };
        let is_mismatch = self.0 == MISMATCH_CYCLES;
        if is_mismatch {
            self.0 = 0;
        }
        is_mismatch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mismatch_is_reported_once_per_limit_of_cycles_elsewhere() {
        let mut mismatch = AffinityMismatch::default();
        let mut found =
            |cycles: u32, elsewhere: bool| (0..cycles).filter(|_| mismatch.note(elsewhere)).count();
        assert_eq!(found(MISMATCH_CYCLES - 1, true), 0, "on its way");
        assert_eq!(found(1, false), 0, "there");
        assert_eq!(found(10 * MISMATCH_CYCLES, true), 10);
        assert_eq!(found(1, false) + found(MISMATCH_CYCLES, true), 1, "again");
    }
}
