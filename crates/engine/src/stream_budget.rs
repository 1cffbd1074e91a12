//! How much memory streams may take. Pure; the control thread asks before a ring is made.
//!
//! Rings are locked in the server's memory, so they are as limited as that. A program that asks for
//! two seconds gets less when many streams exist, instead of the next program getting none.

use std::collections::BTreeMap;

use rt::shm::{RingSamples, RingShape, StreamPage, WishPage};

/// An account, a process and the server have each a limit, which is divided in three: a generous
/// part for the first streams, equal parts for the next ones, and the rest for the smallest rings,
/// so that there is one for each stream that may come.
#[derive(Debug, Clone, Copy)]
struct Division {
    /// Percent of the limit, from which a stream gets what it asks for, but no more than one part
    /// in `generous_parts` of what is left of it.
    generous_percent: usize,
    generous_parts: usize,
    /// An equal part is the limit divided by this: 170 ms of two planes at 48 kHz if the server may
    /// lock as much as it needs.
    equal_parts: usize,
}

const ACCOUNT: Division = Division { generous_percent: 38, generous_parts: 3, equal_parts: 128 };
const PROCESS: Division = Division { generous_percent: 27, generous_parts: 10, equal_parts: 768 };
const IN_ALL: Division = Division { generous_percent: 25, generous_parts: 12, equal_parts: 768 };

/// Percent of each limit that are for the smallest rings alone.
const SMALLEST_PERCENT: usize = 12;

/// Whose memory a stream takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Account {
    /// The process, by its id.
    pub process: u32,
    /// One of the programs for which the process plays; 0: itself.
    pub number: u32,
}

impl Account {
    /// Returns the account of a process that states a number. Processes that cannot be told apart
    /// are one program, whatever they state.
    #[must_use]
    pub fn of(process: u32, stated: u32) -> Self {
        // MUTATION: open.accounts_of_the_unseen
        let number = if process == 0 { 0 } else { stated };
        Self { process, number }
    }
}

/// Memory for streams, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamLimits {
    /// For all streams together.
    pub in_all: usize,
    /// For the streams of all accounts of one process.
    pub per_process: usize,
    /// For the streams of one account.
    pub per_account: usize,
}

impl StreamLimits {
    /// Returns the limits of a server that may lock `lockable` bytes (`None` = unlimited): 160
    /// MiB, but no more than half of what may be locked; seven eighths of that for one process, and
    /// a sixth for one account: what one takes leaves later ones more than an equal part.
    #[must_use]
    pub fn within(lockable: Option<u64>) -> Self {
        const MOST: usize = 160 << 20;
        let half = lockable.and_then(|bytes| usize::try_from(bytes / 2).ok());
        let in_all = half.map_or(MOST, |half| half.min(MOST));
        Self { in_all, per_process: in_all / 8 * 7, per_account: in_all / 6 }
    }
}

/// Keeps account of the memory of all streams.
#[derive(Debug)]
pub struct StreamBudget {
    limits: StreamLimits,
    /// What each account has; no entry for nothing.
    accounts: BTreeMap<Account, usize>,
}

/// The memory of one stream; to be [released](StreamBudget::release) when that is gone.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub struct StreamGrant {
    account: Account,
    shape: RingShape,
    /// What it takes besides, bytes.
    more: usize,
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

/// A limit, and what is taken of it, bytes.
#[derive(Debug, Clone, Copy)]
struct Share {
    limit: usize,
    used: usize,
    division: Division,
}

impl Share {
    fn left(self) -> usize {
        self.limit.saturating_sub(self.used)
    }

    /// Returns what is due to one stream.
    fn due(self) -> usize {
        let Division { generous_percent, generous_parts, equal_parts } = self.division;
        let generous = (self.limit / 100 * generous_percent).saturating_sub(self.used);
        let for_many = self.left().saturating_sub(self.limit / 100 * SMALLEST_PERCENT);
        (generous / generous_parts).max(for_many.min(self.limit / equal_parts))
    }
}

impl StreamBudget {
    /// Returns the budget of a server without streams.
    #[must_use]
    pub fn new(limits: StreamLimits) -> Self {
        Self { limits, accounts: BTreeMap::new() }
    }

    /// Returns the limits that a stream of an account has to keep.
    fn shares(&self, account: Account) -> [Share; 3] {
        let StreamLimits { in_all, per_process, per_account } = self.limits;
        // MUTATION: grant.one_program_gets_all
        let of_account = self.used_by(account);
        // MUTATION: grant.one_process_gets_all
        let of_process = self.used_by_process(account.process);
        [
            Share { limit: per_account, used: of_account, division: ACCOUNT },
            Share { limit: per_process, used: of_process, division: PROCESS },
            Share { limit: in_all, used: self.used(), division: IN_ALL },
        ]
    }

    /// Returns the most that an account can still get, bytes.
    fn left(&self, account: Account) -> usize {
        self.shares(account).map(Share::left).into_iter().min().unwrap_or(0)
    }

    /// Grants a stream of `account` the ring for a depth of `depth_frames`, or for as much of it as
    /// is due to one stream; `None` if not even the smallest ring is left, or for an impossible
    /// number of channels, or too many for samples that lie so.
    pub fn grant(
        &mut self,
        account: Account,
        (channels, samples): (u32, RingSamples),
        depth_frames: u32,
    ) -> Option<StreamGrant> {
        let asked = RingShape::for_depth(channels, depth_frames)?.holding(samples)?;
        let due = self.shares(account).map(Share::due).into_iter().min().unwrap_or(0);
        let shape = std::iter::successors(Some(asked), |shape| shape.halved()).find(|shape| {
            // The smallest ring is too little to share.
            let most = if shape.halved().is_none() { self.left(account) } else { due };
            cost(*shape) <= most
        })?;
        *self.accounts.entry(account).or_default() += cost(shape);
        Some(StreamGrant { account, shape, more: 0 })
    }

    /// Reduces a grant to what the kernel was able to lock. A larger shape, or one of other
    /// channels, changes nothing.
    pub fn shrink(&mut self, grant: &mut StreamGrant, lockable: RingShape) {
        if lockable.channels() == grant.shape.channels() && cost(lockable) < cost(grant.shape) {
            self.give_back(grant.account, cost(grant.shape) - cost(lockable));
            grant.shape = lockable;
        }
    }

    /// Grants a stream more memory, besides its ring; returns false if there is not as much left.
    pub fn extend(&mut self, grant: &mut StreamGrant, bytes: usize) -> bool {
        // MUTATION: extend.without_limit
        let fits = bytes <= self.left(grant.account);
        if fits {
            *self.accounts.entry(grant.account).or_default() += bytes;
            grant.more += bytes;
        }
        fits
    }

    /// Takes back what a stream got besides its ring.
    pub fn retract(&mut self, grant: &mut StreamGrant) {
        let more = std::mem::take(&mut grant.more);
        self.give_back(grant.account, more);
    }

    /// Takes a grant back.
    pub fn release(&mut self, grant: StreamGrant) {
        self.give_back(grant.account, cost(grant.shape) + grant.more);
    }

    fn give_back(&mut self, account: Account, bytes: usize) {
        if let Some(used) = self.accounts.get_mut(&account) {
            *used = used.saturating_sub(bytes);
            if *used == 0 {
                self.accounts.remove(&account);
            }
        }
    }

    /// Returns what the streams of an account take, bytes.
    #[must_use]
    pub fn used_by(&self, account: Account) -> usize {
        self.accounts.get(&account).copied().unwrap_or(0)
    }

    /// Returns what the streams of all accounts of a process take, bytes.
    #[must_use]
    pub fn used_by_process(&self, process: u32) -> usize {
        let all = Account { process, number: 0 }..=Account { process, number: u32::MAX };
        self.accounts.range(all).map(|(_, used)| used).sum()
    }

    /// Returns what all streams take, bytes.
    #[must_use]
    pub fn used(&self) -> usize {
        self.accounts.values().sum()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn own(process: u32) -> Account {
        Account { process, number: 0 }
    }

    const TWO_SECONDS: u32 = 96_000;

    fn planes(channels: u32) -> (u32, RingSamples) {
        (channels, RingSamples::Planes)
    }

    #[test]
    fn a_stream_of_16_bits_takes_half_as_much_for_as_long() {
        let mut budget = StreamBudget::new(StreamLimits::within(None));
        let mut of = |process, samples| {
            let grant = budget.grant(own(process), (2, samples), TWO_SECONDS).unwrap();
            assert_eq!(grant.shape().samples(), samples);
            (grant.shape().depth_frames(), budget.used_by(own(process)))
        };
        let (depth, planes) = of(1, RingSamples::Planes);
        let (as_deep, bytes) = of(2, RingSamples::Frames16);
        assert_eq!(depth, as_deep);
        assert!(bytes < planes / 2 + 16_384, "{bytes} of {planes}");
    }

    #[test]
    fn more_memory_for_a_stream_comes_from_its_programs_share() {
        let limits = StreamLimits { in_all: 400_000, per_process: 200_000, per_account: 100_000 };
        let mut budget = StreamBudget::new(limits);
        let mut grant = budget.grant(own(1), planes(2), 0).unwrap();
        let ring = budget.used();
        assert!(budget.extend(&mut grant, 50_000));
        assert!(!budget.extend(&mut grant, 100_000 - ring - 49_999), "one byte too much");
        assert_eq!(budget.used_by(own(1)), ring + 50_000);
        budget.release(grant);
        assert_eq!(budget.used_by(own(1)), 0);
    }

    #[test]
    fn the_first_stream_gets_the_depth_that_it_asks_for() {
        let mut budget = StreamBudget::new(StreamLimits::within(None));
        let grant = budget.grant(own(1), planes(2), TWO_SECONDS).unwrap();
        assert_eq!(grant.shape(), RingShape::for_depth(2, TWO_SECONDS).unwrap());
        assert_eq!(budget.used(), grant.shape().bytes() + 4 * 4096);
        budget.release(grant);
        assert_eq!((budget.used(), budget.accounts.len()), (0, 0));
    }

    #[test]
    fn each_of_a_hundred_streams_gets_some_depth() {
        let mut budget = StreamBudget::new(StreamLimits::within(None));
        let depths: Vec<u32> = (0..100)
            .map(|stream| {
                budget.grant(own(stream % 10), planes(2), TWO_SECONDS).unwrap().shape.depth_frames()
            })
            .collect();
        assert!(depths.is_sorted_by(|earlier, later| earlier >= later), "{depths:?}");
        // 171 ms at 48 kHz.
        assert_eq!((depths[0], depths[99]), (131_072, 8192));
        assert!(budget.used() <= 160 << 20);
    }

    #[test]
    fn a_greedy_program_leaves_others_their_depth() {
        let mut budget = StreamBudget::new(StreamLimits::within(None));
        let kept: Vec<_> =
            std::iter::from_fn(|| budget.grant(own(1), planes(32), u32::MAX)).collect();
        assert!(kept.len() > 10 && budget.used_by(own(1)) <= 27 << 20);
        let other = budget.grant(own(2), planes(2), TWO_SECONDS / 2).unwrap();
        assert_eq!(other.shape(), RingShape::for_depth(2, TWO_SECONDS / 2).unwrap());
    }

    #[test]
    fn limits_follow_what_may_be_locked() {
        let limits = [Some(0), Some(8 << 20), Some(u64::MAX), None].map(StreamLimits::within);
        assert_eq!(limits.map(|limits| limits.in_all >> 20), [0, 4, 160, 160]);
        assert_eq!(limits.map(|limits| limits.per_account >> 20), [0, 0, 26, 26]);
        assert_eq!(limits.map(|limits| limits.per_process >> 20), [0, 3, 140, 140]);
        assert_eq!(StreamBudget::new(limits[0]).grant(own(1), planes(1), 0), None);
    }

    #[test]
    fn a_process_that_plays_for_hundreds_of_programs_has_memory_for_each() {
        let mut budget = StreamBudget::new(StreamLimits::within(None));
        let account = |number| Account { process: 7, number };
        let depths: Vec<u32> = (1..=500)
            .map(|number| budget.grant(account(number), planes(2), TWO_SECONDS).unwrap())
            .map(|grant| grant.shape.depth_frames())
            .collect();
        // 2.7 s, and 171 ms.
        assert_eq!([depths[0], depths[99], depths[499]], [131_072, 8192, 8192]);
        // What is left is for others.
        let kept =
            (501..).map_while(|number| budget.grant(account(number), planes(2), TWO_SECONDS));
        assert!(kept.count() > 0 && budget.used_by_process(7) <= 140 << 20);
        assert!(
            (0..100)
                .all(|process| budget.grant(own(100 + process), planes(2), TWO_SECONDS).is_some())
        );
    }

    #[test]
    fn an_account_shares_its_limit_with_no_other() {
        let mut budget = StreamBudget::new(StreamLimits::within(None));
        let account = |number| Account { process: 7, number };
        let taken: Vec<_> =
            std::iter::from_fn(|| budget.grant(account(1), planes(2), u32::MAX)).collect();
        assert!(!taken.is_empty() && budget.used_by(account(1)) <= 27 << 20);
        let other = budget.grant(account(2), planes(2), TWO_SECONDS / 2).unwrap();
        assert_eq!(other.shape(), RingShape::for_depth(2, TWO_SECONDS / 2).unwrap());
    }

    #[derive(Debug, Clone)]
    enum Step {
        Grant { account: Account, channels: u32, depth: u32 },
        Shrink { stream: usize },
        Release { stream: usize },
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            4 => (0..6_u32, 0..34_u32, any::<u32>().prop_map(|bits| bits >> (bits % 32)))
                .prop_map(|(account, channels, depth)| {
                    // Three processes with two accounts each.
                    let account = Account { process: account / 2, number: account % 2 };
                    Step::Grant { account, channels, depth }
                }),
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
            let (per_process, per_account) = (in_all / 2, in_all / 3);
            let limits = StreamLimits { in_all, per_process, per_account };
            let mut budget = StreamBudget::new(limits);
            let mut grants: Vec<StreamGrant> = Vec::new();
            for step in steps {
                match step {
                    Step::Grant { account, channels, depth } => {
                        let least = RingShape::for_depth(channels, 0).map(cost);
                        let fits = least.is_some_and(|least| {
                            least <= per_account - budget.used_by(account)
                                && least <= per_process - budget.used_by_process(account.process)
                                && least <= in_all - budget.used()
                        });
                        let granted = budget.grant(account, planes(channels), depth);
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
                let sum = |is_its: &dyn Fn(Account) -> bool| -> usize {
                    let its = grants.iter().filter(|grant| is_its(grant.account));
                    its.map(|grant| cost(grant.shape)).sum()
                };
                for (process, number) in [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)] {
                    let account = Account { process, number };
                    let own = sum(&|other| other == account);
                    prop_assert_eq!(budget.used_by(account), own);
                    prop_assert!(own <= per_account);
                    let all = sum(&|other| other.process == process);
                    prop_assert_eq!(budget.used_by_process(process), all);
                    prop_assert!(all <= per_process);
                }
                prop_assert!(budget.used() <= in_all);
            }
        }
    }
}
