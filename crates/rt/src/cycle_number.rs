//! The numbers of cycles: 32 bits that wrap, after 66 days at 64 frames and 48 kHz.
//!
//! Numbers begin at 2, and begin there again after the last one. 0 stands for no cycle. 1 is left
//! out so that odd and even numbers alternate also where the count begins again: what is kept in
//! two cells by parity is never overwritten in the next cycle.

/// The number of the first cycle, and of the one after the last number.
pub const FIRST: u32 = 2;

/// Returns the number of the cycle after `cycle`; of the first one after no cycle (0).
#[must_use]
pub const fn next(cycle: u32) -> u32 {
    match cycle {
        0 | u32::MAX => FIRST,
        _ => cycle + 1,
    }
}

/// Returns the number of the cycle before `cycle`.
#[must_use]
pub const fn previous(cycle: u32) -> u32 {
    if cycle <= FIRST { u32::MAX } else { cycle - 1 }
}

/// Returns how many cycles after `earlier` the cycle `cycle` is.
#[must_use]
pub const fn distance(earlier: u32, cycle: u32) -> u32 {
    let distance = cycle.wrapping_sub(earlier);
    if cycle < earlier { distance.wrapping_sub(FIRST) } else { distance }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn numbers_alternate_in_parity_and_are_never_0() {
        let mut cycle = u32::MAX - 5;
        for _ in 0..10 {
            let after = next(cycle);
            assert_eq!((after % 2, previous(after)), (1 - cycle % 2, cycle), "{cycle}");
            assert!(after >= FIRST);
            cycle = after;
        }
        assert_eq!(next(0), FIRST);
    }

    #[test]
    fn distances_count_the_cycles_between() {
        let mut cycle = u32::MAX - 2;
        for passed in 0..6 {
            assert_eq!(distance(u32::MAX - 2, cycle), passed);
            cycle = next(cycle);
        }
        assert_eq!(distance(5, 9), 4);
    }
}
