//! How much memory streams may take. Pure; the control thread asks before a ring is made.
//!
//! Rings are locked in the server's memory, so they are as limited as that. A program that asks for
//! two seconds gets less when many streams exist, instead of the next program getting none.

use std::collections::BTreeMap;

use rt::shm::{RingShape, StreamPage, WishPage};

/// The part of what is left to a program that one of its streams gets, at most.
const PART_OF_PROGRAM: usize = 6;

/// The part of what is left in all that one stream gets, at most.
const PART_IN_ALL: usize = 24;

/// Memory for streams, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamLimits {
    /// For all streams together.
    pub in_all: usize,
    /// For the streams of one program.
    pub per_program: usize,
}

impl StreamLimits {
    /// Returns the limits of a server that may lock `lockable` bytes (`None` = unlimited): 64 MiB,
    /// but no more than half of what may be locked, and a quarter of that for one program.
    #[must_use]
    pub fn within(lockable: Option<u64>) -> Self {
        const MOST: usize = 64 << 20;
        let half = lockable.and_then(|bytes| usize::try_from(bytes / 2).ok());
        let in_all = half.map_or(MOST, |half| half.min(MOST));
        Self { in_all, per_program: in_all / 4 }
    }
}

/// Keeps account of the memory of all streams.
#[derive(Debug)]
pub struct StreamBudget {
    limits: StreamLimits,
    /// What each program has, by its number; no entry for nothing.
    programs: BTreeMap<u32, usize>,
}

/// The memory of one stream; to be [released](StreamBudget::release) when that is gone.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub struct StreamGrant {
    program: u32,
    shape: RingShape,
}

impl StreamGrant {
    /// Returns the shape of the ring, and so the largest depth.
    #[must_use]
    pub fn shape(&self) -> RingShape {
        self.shape
    }
}

/// Returns what a stream with such a ring takes, bytes.
fn cost(shape: RingShape) -> usize {
    shape.bytes() + size_of::<WishPage>() + size_of::<StreamPage>()
}

impl StreamBudget {
    /// Returns the budget of a server without streams.
    #[must_use]
    pub fn new(limits: StreamLimits) -> Self {
        Self { limits, programs: BTreeMap::new() }
    }

    /// Grants a stream of `program` the ring for a depth of `depth_frames`, or for as much of it as
    /// is due to one stream; `None` if not even the smallest ring is left, or for an impossible
    /// number of channels.
    pub fn grant(&mut self, program: u32, channels: u32, depth_frames: u32) -> Option<StreamGrant> {
        let asked = RingShape::for_depth(channels, depth_frames)?;
        let of_program = self.limits.per_program.saturating_sub(self.used_by(program));
        let in_all = self.limits.in_all.saturating_sub(self.used());
        let due = (of_program / PART_OF_PROGRAM).min(in_all / PART_IN_ALL);
        let shape = std::iter::successors(Some(asked), |shape| shape.halved()).find(|shape| {
            // The smallest ring is too little to share.
            let most = if shape.halved().is_none() { of_program.min(in_all) } else { due };
            cost(*shape) <= most
        })?;
        *self.programs.entry(program).or_default() += cost(shape);
        Some(StreamGrant { program, shape })
    }

    /// Reduces a grant to what the kernel was able to lock. A larger shape, or one of other
    /// channels, changes nothing.
    pub fn shrink(&mut self, grant: &mut StreamGrant, lockable: RingShape) {
        if lockable.channels() == grant.shape.channels() && cost(lockable) < cost(grant.shape) {
            self.give_back(grant.program, cost(grant.shape) - cost(lockable));
            grant.shape = lockable;
        }
    }

    /// Takes a grant back.
    pub fn release(&mut self, grant: StreamGrant) {
        self.give_back(grant.program, cost(grant.shape));
    }

    fn give_back(&mut self, program: u32, bytes: usize) {
        if let Some(used) = self.programs.get_mut(&program) {
            *used = used.saturating_sub(bytes);
            if *used == 0 {
                self.programs.remove(&program);
            }
        }
    }

    /// Returns what the streams of a program take, bytes.
    #[must_use]
    pub fn used_by(&self, program: u32) -> usize {
        self.programs.get(&program).copied().unwrap_or(0)
    }

    /// Returns what all streams take, bytes.
    #[must_use]
    pub fn used(&self) -> usize {
        self.programs.values().sum()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TWO_SECONDS: u32 = 96_000;

    #[test]
    fn the_first_stream_gets_the_depth_that_it_asks_for() {
        let mut budget = StreamBudget::new(StreamLimits::within(None));
        let grant = budget.grant(1, 2, TWO_SECONDS).unwrap();
        assert_eq!(grant.shape(), RingShape::for_depth(2, TWO_SECONDS).unwrap());
        assert_eq!(budget.used(), grant.shape().bytes() + 4 * 4096);
        budget.release(grant);
        assert_eq!((budget.used(), budget.programs.len()), (0, 0));
    }

    #[test]
    fn a_hundred_streams_get_less_each_but_none_gets_nothing() {
        let mut budget = StreamBudget::new(StreamLimits::within(None));
        let depths: Vec<u32> = (0..100)
            .map(|stream| budget.grant(stream % 10, 2, TWO_SECONDS).unwrap().shape.depth_frames())
            .collect();
        assert!(depths.is_sorted_by(|earlier, later| earlier >= later), "{depths:?}");
        // 85 ms at 48 kHz.
        assert_eq!((depths[0], depths[99]), (131_072, 4096));
        assert!(budget.used() <= 64 << 20);
    }

    #[test]
    fn a_greedy_program_leaves_others_their_depth() {
        let mut budget = StreamBudget::new(StreamLimits::within(None));
        let kept: Vec<_> = std::iter::from_fn(|| budget.grant(1, 32, u32::MAX)).collect();
        assert!(kept.len() > 10 && budget.used_by(1) <= 16 << 20);
        let other = budget.grant(2, 2, TWO_SECONDS / 2).unwrap();
        assert_eq!(other.shape(), RingShape::for_depth(2, TWO_SECONDS / 2).unwrap());
    }

    #[test]
    fn limits_follow_what_may_be_locked() {
        let limits = [Some(0), Some(8 << 20), Some(u64::MAX), None].map(StreamLimits::within);
        assert_eq!(limits.map(|limits| limits.in_all >> 20), [0, 4, 64, 64]);
        assert_eq!(limits.map(|limits| limits.per_program >> 20), [0, 1, 16, 16]);
        assert_eq!(StreamBudget::new(limits[0]).grant(1, 1, 0), None);
    }

    #[derive(Debug, Clone)]
    enum Step {
        Grant { program: u32, channels: u32, depth: u32 },
        Shrink { stream: usize },
        Release { stream: usize },
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            4 => (0..6_u32, 0..34_u32, any::<u32>().prop_map(|bits| bits >> (bits % 32)))
                .prop_map(|(program, channels, depth)| Step::Grant { program, channels, depth }),
            1 => any::<usize>().prop_map(|stream| Step::Shrink { stream }),
            2 => any::<usize>().prop_map(|stream| Step::Release { stream }),
        ];
        prop::collection::vec(step, 1..200)
    }

    proptest! {
        #[test]
        fn no_order_of_streams_exceeds_a_limit_or_loses_a_byte(
            steps in steps(),
            in_all in 0..128_usize << 20,
        ) {
            let limits = StreamLimits { in_all, per_program: in_all / 3 };
            let mut budget = StreamBudget::new(limits);
            let mut grants: Vec<StreamGrant> = Vec::new();
            for step in steps {
                match step {
                    Step::Grant { program, channels, depth } => {
                        let least = RingShape::for_depth(channels, 0).map(cost);
                        let fits = least.is_some_and(|least| {
                            least <= limits.per_program.saturating_sub(budget.used_by(program))
                                && least <= in_all - budget.used()
                        });
                        let granted = budget.grant(program, channels, depth);
                        prop_assert_eq!(granted.is_some(), fits, "the smallest is always granted");
                        if let Some(grant) = granted {
                            let asked = RingShape::for_depth(channels, depth).unwrap();
                            prop_assert!(grant.shape.bytes() <= asked.bytes());
                            grants.push(grant);
                        }
                    }
                    Step::Shrink { stream } if !grants.is_empty() => {
                        let place = stream % grants.len();
                        let grant = &mut grants[place];
                        let half = grant.shape.halved().unwrap_or(grant.shape);
                        budget.shrink(grant, half);
                        prop_assert_eq!(grant.shape, half);
                    }
                    Step::Release { stream } if !grants.is_empty() => {
                        budget.release(grants.swap_remove(stream % grants.len()));
                    }
                    Step::Shrink { .. } | Step::Release { .. } => {}
                }
                let sum = |program: u32| -> usize {
                    let own = grants.iter().filter(|grant| grant.program == program);
                    own.map(|grant| cost(grant.shape)).sum()
                };
                for program in 0..6 {
                    prop_assert_eq!(budget.used_by(program), sum(program));
                    prop_assert!(sum(program) <= limits.per_program);
                }
                prop_assert!(budget.used() <= in_all);
            }
        }
    }
}
