//! Supervision of late clients: which client loses its priority, its CPU, or its seat in the graph,
//! and when it gets them back.
//!
//! Two threads share the work. The driver thread acts inside a cycle ([`in_cycle`]) and on one
//! cycle alone: it goes on without a late client, and takes its priority. The control thread reads
//! the recording afterwards and decides what holds for longer, with one [`ClientSupervision`] for
//! each client. The client's own process thread takes part as well: it takes a lost priority back
//! when it has finished its cycle, and earns one above new clients by being in time
//! (`client/src/process/`).
//!
//! # What the control thread does
//!
//! The states are those of two independent regions: a client is *running* or *suspended* (left out
//! of plans), and it is *pinned* (the plan assigns a CPU) or *unpinned* (the kernel chooses one).
//!
//! | event | running | suspended |
//! |---|---|---|
//! | late in a cycle | count up; from [`UNPIN_CYCLES`] on: unpin, or stay unpinned for longer; from the timeout on: **suspend** (and unpin, demote with all threads of the process that keep a CPU, count from 0) | count up; from [`UNPIN_CYCLES`] on: unpin, or stay unpinned for longer |
//! | in time in a cycle | count down, but not for cycles in which the driver waited for it in vain | the same |
//! | 64 cycles in a row ([`affinity_mismatch`]) on another CPU than assigned | unpin; with `--cpus`: log it once | – (no CPU is assigned) |
//! | check due, the client is idle and polls for its turn | – | **reinstate**, and unpin |
//! | check due, otherwise | – | wake it, demote again; check again after [`SUSPENSION`]'s first time |
//! | activated again | – | **reinstate** |
//! | the time of an unpinned client is over | pin, with the next check of the placement | the same, once reinstated |
//!
//! Both measures back off exponentially: a client that is suspended again soon is checked later
//! each time ([`SUSPENSION`]), and one that is unpinned again soon stays so for longer each time
//! ([`UNPINNED`]). With `--cpus`, the user has chosen the CPUs: a client stays on them even while
//! it is unpinned, since the kernel would choose among all.

mod affinity_mismatch;
mod backoff;
pub mod in_cycle;
mod late_counter;
pub mod xrun_diagnosis;

pub use in_cycle::grace_ns;
pub use late_counter::timeout_cycles;

use affinity_mismatch::AffinityMismatch;
use backoff::{Backoff, BackoffLimits};
use late_counter::{LateCounter, UNPIN_CYCLES};

/// How long a suspended client is left alone before it is checked.
pub const SUSPENSION: BackoffLimits =
    BackoffLimits { first_ns: 10_000_000, longest_ns: 5_000_000_000 };
/// How long a client stays unpinned.
pub const UNPINNED: BackoffLimits =
    BackoffLimits { first_ns: 5_000_000_000, longest_ns: 320_000_000_000 };

/// What the control thread notices about one client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// It had not finished a cycle when the next one began, by its own fault.
    Late {
        /// The count at which a client is suspended, see [`timeout_cycles`].
        timeout_cycles: u32,
        /// [`Poll::polls`] of the moment.
        polls: u32,
        /// In how many cycles the driver has waited for it in vain; wraps.
        overdue_cycles: u32,
    },
    /// It finished a cycle in time.
    InTime,
    /// It ended a cycle on `cpu`, and `assigned` was assigned to it.
    RanOn {
        /// The CPU that it ran on.
        cpu: u32,
        /// The CPU that the plan says.
        assigned: u32,
    },
    /// A check of its suspension was due.
    Checked(Poll),
    /// Its program has activated it.
    Activated,
}

/// A hint from the client's own page that it is alive. A client that writes nonsense there is
/// reinstated too early, and late again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Poll {
    /// How often it has polled for its turn so far; wraps. A stopped client does not.
    pub polls: u32,
    /// It has finished the cycle that it began last.
    pub is_idle: bool,
}

/// What follows from an event. The control thread carries it out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Publish another plan: the client is unpinned.
    Unpin,
    /// Take the priority of the client's threads, and publish a plan without it. The driver thread
    /// does not supervise a client that is in no plan, and that client may be about to begin a
    /// cycle that it never ends.
    Suspend,
    /// Give the threads other than the process thread their priorities back, and publish a plan
    /// with the client.
    Reinstate,
    /// Wake the client, so that it polls for its turn if it is alive, and take the priority of its
    /// threads again.
    Wake,
    /// Log that the client does not run on this CPU, which the user's `--cpus` assigns.
    ReportMismatch {
        /// The CPU.
        assigned: u32,
    },
}

/// Why a client is unpinned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnpinReason {
    /// It was late too often: its CPU may have other work, which the schedule does not know.
    Late,
    /// It does not run on this CPU, which was assigned to it: its own affinity or its cpuset may
    /// exclude the CPU.
    Mismatch(u32),
}

/// A client that is left out of plans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Suspension {
    /// Time of the next check, `CLOCK_MONOTONIC` ns.
    check_at_ns: u64,
    /// [`Poll::polls`] at the last check.
    polls: u32,
}

/// The state of one client under supervision. Thread: control.
#[derive(Debug)]
pub struct ClientSupervision {
    is_confined: bool,
    counter: LateCounter,
    late_cycles: u64,
    /// The last known count of cycles in which the driver waited for it in vain; wraps.
    overdue_cycles: u32,
    suspension: Option<Suspension>,
    suspension_backoff: Backoff,
    suspensions: u64,
    unpin_backoff: Backoff,
    unpin_reason: UnpinReason,
    mismatch: AffinityMismatch,
    has_reported_mismatch: bool,
}

impl ClientSupervision {
    /// Creates the state of a client that has just opened. `is_confined`: the user has chosen the
    /// CPUs (`--cpus`).
    pub fn new(is_confined: bool) -> Self {
        Self {
            is_confined,
            counter: LateCounter::default(),
            late_cycles: 0,
            overdue_cycles: 0,
            suspension: None,
            suspension_backoff: Backoff::new(SUSPENSION),
            suspensions: 0,
            unpin_backoff: Backoff::new(UNPINNED),
            unpin_reason: UnpinReason::Late,
            mismatch: AffinityMismatch::default(),
            has_reported_mismatch: false,
        }
    }

    /// Notes an event; returns what is to be done about it.
    pub fn on(&mut self, event: Event, now_ns: u64) -> Option<Action> {
        match event {
            Event::Late { timeout_cycles, polls, overdue_cycles } => {
                let count = self.count_late(overdue_cycles, now_ns);
                self.on_late(count, timeout_cycles, polls, now_ns)
            }
            Event::InTime => {
                self.counter.note_in_time(now_ns);
                None
            }
            Event::RanOn { cpu, assigned } => {
                let is_mismatch = self.mismatch.note(cpu != assigned);
                is_mismatch.then(|| self.on_mismatch(assigned, now_ns)).flatten()
            }
            Event::Checked(poll) => self.on_check(poll, now_ns),
            Event::Activated => self.suspension.take().map(|_| Action::Reinstate),
        }
    }

    /// Counts one late cycle; returns the count.
    fn count_late(&mut self, overdue_cycles: u32, now_ns: u64) -> u32 {
        self.late_cycles += 1;
        if overdue_cycles == self.overdue_cycles {
            return self.counter.note_late();
        }
        self.overdue_cycles = self.overdue_cycles.wrapping_add(1);
        self.counter.note_overdue(now_ns)
    }

    fn on_late(
        &mut self,
        count: u32,
        timeout_cycles: u32,
        polls: u32,
        now_ns: u64,
    ) -> Option<Action> {
        let has_timed_out = count >= timeout_cycles;
        let is_newly_unpinned =
            (has_timed_out || count >= UNPIN_CYCLES) && self.unpin(UnpinReason::Late, now_ns);
        // MUTATION: supervision.never_suspends
        if has_timed_out && self.suspension.is_none() {
            let check_at_ns = self.suspension_backoff.begin(now_ns);
            self.suspension = Some(Suspension { check_at_ns, polls });
            self.suspensions += 1;
            self.counter = LateCounter::default();
            return Some(Action::Suspend);
        }
        is_newly_unpinned.then_some(Action::Unpin)
    }

    fn on_mismatch(&mut self, assigned: u32, now_ns: u64) -> Option<Action> {
        if self.is_confined {
            let is_known = std::mem::replace(&mut self.has_reported_mismatch, true);
            return (!is_known).then_some(Action::ReportMismatch { assigned });
        }
        self.unpin(UnpinReason::Mismatch(assigned), now_ns).then_some(Action::Unpin)
    }

    fn on_check(&mut self, poll: Poll, now_ns: u64) -> Option<Action> {
        let suspension = self.suspension.as_mut()?;
        if poll.is_idle && poll.polls != suspension.polls {
            self.suspension = None;
            // The time for which it was unpinned when it was suspended may be over.
            self.unpin(UnpinReason::Late, now_ns);
            return Some(Action::Reinstate);
        }
        *suspension = Suspension { check_at_ns: now_ns + SUSPENSION.first_ns, polls: poll.polls };
        Some(Action::Wake)
    }

    /// Unpins the client, or lets it stay unpinned for longer; returns whether it was pinned.
    fn unpin(&mut self, reason: UnpinReason, now_ns: u64) -> bool {
        let was_pinned = self.unpin_backoff.remaining_ns(now_ns).is_none();
        if was_pinned {
            self.unpin_backoff.begin(now_ns);
        } else {
            self.unpin_backoff.extend(now_ns);
        }
        self.unpin_reason = reason;
        was_pinned
    }

    /// Whether the client is left out of plans.
    pub fn is_suspended(&self) -> bool {
        self.suspension.is_some()
    }

    /// When its suspension is to be checked, `CLOCK_MONOTONIC` ns; `None` if it is not suspended.
    pub fn check_at_ns(&self) -> Option<u64> {
        self.suspension.map(|suspension| suspension.check_at_ns)
    }

    /// Whether a plan may assign a CPU to the client.
    pub fn may_be_pinned(&self, now_ns: u64) -> bool {
        self.is_confined || self.unpin_backoff.remaining_ns(now_ns).is_none()
    }

    /// Why the client is unpinned, and for how many more ns; `None` if it is not.
    pub fn unpinned(&self, now_ns: u64) -> Option<(UnpinReason, u64)> {
        self.unpin_backoff.remaining_ns(now_ns).map(|left_ns| (self.unpin_reason, left_ns))
    }

    /// Cycles in which the client was late, since it opened.
    pub fn late_cycles(&self) -> u64 {
        self.late_cycles
    }

    /// Times that the client was suspended, since it opened.
    pub fn suspensions(&self) -> u64 {
        self.suspensions
    }
}

#[cfg(test)]
mod tests;
