//! How much one program may have of what all programs share. Pure; the control thread asks before
//! it grants something, and counts afresh what programs have.
//!
//! The last part of everything is kept for programs that have little of it, so that a program that
//! comes later finds something, whatever one that came before has taken.

/// This part of a whole is for programs that have little of it.
const RESERVED_PART: u64 = 64;
/// A program has little if it has at most this part of the whole.
const MODEST_PART: u64 = 256;
/// A program with at most this many pieces of something has little, however small the whole is.
const MODEST_PIECES: u64 = 4;
/// How many programs find something in the reserve, however small the whole is.
const NEWCOMERS: u64 = 2;
/// No more than this part of a small whole is reserved.
const MOST_RESERVED_PART: u64 = 4;

/// How something is shared, in any unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// All of it.
    in_all: u64,
    /// The most that one program may have.
    of_program: u64,
    /// What a program may have that gets a part of the reserve.
    modest: u64,
    /// What is kept for such programs.
    reserve: u64,
}

/// What is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// What the program that asks for more uses.
    pub of_program: u64,
    /// What all programs use, including this one.
    pub in_all: u64,
}

/// Which limit a program would exceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Excess {
    /// What one program may have.
    OfProgram {
        /// The most.
        limit: u64,
    },
    /// What is left is for programs that have at most this much.
    Reserved {
        /// The most.
        modest: u64,
    },
    /// There is no more.
    InAll {
        /// The most.
        limit: u64,
    },
}

impl Quota {
    /// Shares `in_all`, of which one program may have `of_program`. A piece is what programs ask
    /// for at a time.
    pub fn new(in_all: u64, of_program: u64, piece: u64) -> Self {
        let modest = (in_all / MODEST_PART).max(piece.saturating_mul(MODEST_PIECES));
        let reserve = (in_all / RESERVED_PART).max(modest.saturating_mul(NEWCOMERS));
        let reserve = reserve.min(in_all / MOST_RESERVED_PART);
        Self { in_all, of_program, modest: modest.min(of_program), reserve }
    }

    /// Decides whether a program may have `more`.
    ///
    /// # Errors
    /// The limit that it would exceed.
    pub fn check(self, used: Usage, more: u64) -> Result<(), Excess> {
        let of_program = used.of_program.saturating_add(more);
        let in_all = used.in_all.saturating_add(more);
        // MUTATION: quota.of_program_without_limit
        if of_program > self.of_program {
            return Err(Excess::OfProgram { limit: self.of_program });
        }
        if in_all > self.in_all {
            return Err(Excess::InAll { limit: self.in_all });
        }
        // MUTATION: quota.nothing_reserved
        if of_program > self.modest && in_all > self.in_all - self.reserve {
            return Err(Excess::Reserved { modest: self.modest });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PROGRAMS: usize = 6;

    /// A quota, and what programs have of it.
    #[derive(Debug)]
    struct Shared {
        quota: Quota,
        programs: [u64; PROGRAMS],
    }

    impl Shared {
        fn new(quota: Quota) -> Self {
            Self { quota, programs: [0; PROGRAMS] }
        }

        fn used(&self, program: usize) -> Usage {
            Usage { of_program: self.programs[program], in_all: self.programs.iter().sum() }
        }

        fn ask(&mut self, program: usize, more: u64) -> Result<(), Excess> {
            self.quota.check(self.used(program), more)?;
            self.programs[program] += more;
            Ok(())
        }

        fn take_all(&mut self, program: usize) {
            while self.ask(program, 1).is_ok() {}
        }
    }

    #[test]
    fn a_greedy_program_gets_its_part_and_leaves_the_rest() {
        let mut shared = Shared::new(Quota::new(2048, 512, 1));
        shared.take_all(0);
        assert_eq!(shared.programs[0], 512);
        assert_eq!(shared.ask(0, 1), Err(Excess::OfProgram { limit: 512 }));
    }

    #[test]
    fn programs_that_have_much_leave_the_reserve_to_newcomers() {
        let mut shared = Shared::new(Quota::new(2048, 1536, 1));
        shared.take_all(0);
        shared.take_all(1);
        assert_eq!(shared.programs[..2], [1536, 480]);
        assert_eq!(shared.ask(1, 1), Err(Excess::Reserved { modest: 8 }));
        (2..6).for_each(|program| shared.take_all(program));
        assert_eq!(shared.programs[2..], [8, 8, 8, 8]);
        shared.programs = [1536, 256, 256, 0, 0, 0];
        assert_eq!(shared.ask(3, 1), Err(Excess::InAll { limit: 2048 }));
    }

    #[test]
    fn a_small_whole_has_room_for_a_newcomer_of_a_few_pieces() {
        let mut shared = Shared::new(Quota::new(64, 48, 1));
        shared.take_all(0);
        shared.take_all(1);
        shared.take_all(2);
        assert_eq!(shared.programs[..3], [48, 8, 4]);
    }

    #[derive(Debug, Clone)]
    struct Step {
        program: usize,
        amount: u64,
        gives_back: bool,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = (0..PROGRAMS, 0..400_u64, prop::bool::weighted(0.3))
            .prop_map(|(program, amount, gives_back)| Step { program, amount, gives_back });
        prop::collection::vec(step, 1..200)
    }

    proptest! {
        #[test]
        fn no_order_of_requests_takes_what_is_kept_for_others(
            steps in steps(),
            in_all in 1..4000_u64,
            part in 1..5_u64,
            piece in 1..20_u64,
        ) {
            let quota = Quota::new(in_all, (in_all / part).max(1), piece);
            let mut shared = Shared::new(quota);
            for Step { program, amount, gives_back } in steps {
                if gives_back {
                    shared.programs[program] -= amount.min(shared.programs[program]);
                    continue;
                }
                let (before, used) = (shared.programs, shared.used(program));
                let granted = shared.ask(program, amount).is_ok();
                let after = used.of_program + amount;
                if !granted {
                    prop_assert_eq!(before, shared.programs, "a refusal takes nothing");
                }
                let fits = used.in_all + amount <= in_all;
                if after <= quota.modest {
                    prop_assert_eq!(granted, fits, "a modest program gets what is there");
                }
                if granted {
                    prop_assert!(after <= quota.of_program && fits);
                }
                // Of the reserve, a program that has more than a little has taken nothing.
                if granted && after > quota.modest {
                    prop_assert!(used.in_all + amount <= in_all - quota.reserve);
                }
            }
        }
    }
}
