//! What the control thread keeps of one connected client: its memory and what it has mapped.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use proto::request::Activation;
use proto::timing::ClientTiming;
use rt::shm::{Orders, OwnPage, absent};
use sys::memory::{PeerSlab, SegmentError, Shared};

use crate::autopsy::Watch;
use crate::average::Average;
use crate::lateness::Lateness;
use crate::mapped::MappedTable;
use crate::outbox::Outbox;
use crate::plan::{Pulse, Sleep};
use crate::policy::Rights;
use crate::release::{Astray, Release};
use crate::signal_pages::SignalPages;
use crate::times::Times;

/// A slab of a client's output ports.
#[derive(Debug, Clone)]
pub struct Slab {
    /// For its readers.
    pub memory: Arc<OwnedFd>,
    /// For the server itself.
    pub peer: Arc<PeerSlab>,
}

/// Orders as they were written last, so that an unchanged client costs nothing.
#[derive(Debug)]
struct Issued {
    words: Vec<u32>,
    valid_from: u64,
}

/// The memory that the server shares with one client.
#[derive(Debug)]
pub struct ClientMemory {
    orders: Shared<Orders>,
    issued: Issued,
    /// Its own page.
    pub own: Arc<Shared<OwnPage>>,
    /// Its signal pages.
    pub signals: SignalPages,
    /// Its slabs, in the order in which it added them.
    pub slabs: Vec<Slab>,
}

impl ClientMemory {
    /// Fresh memory, and the descriptors that the client receives beside its signal page: orders, own page.
    ///
    /// # Errors
    /// [`SegmentError`] if the kernel has none.
    pub fn create() -> Result<(Self, [OwnedFd; 2]), SegmentError> {
        let (orders, orders_fd) = Shared::for_readers("consort-orders")?;
        let (own, own_fd) = Shared::for_writers("consort-own")?;
        let signals = SignalPages::create()?;
        let issued = Issued { words: Vec::new(), valid_from: 0 };
        Ok((Self { orders, issued, own: Arc::new(own), signals, slabs: Vec::new() }, [orders_fd, own_fd]))
    }

    /// Writes the client's orders from plan `generation` on; `in_force` is the plan that the driver runs.
    pub fn issue(&mut self, words: Vec<u32>, generation: u64, in_force: u64) {
        if self.issued.words == words {
            return;
        }
        let written = if self.issued.valid_from > in_force {
            self.orders.replace_newest(generation, &words)
        } else {
            self.orders.publish(generation, &words)
        };
        debug_assert!(written, "the builder keeps to the room");
        self.issued = Issued { words, valid_from: generation };
    }

    /// Orders to do nothing.
    pub fn issue_absent(&mut self, generation: u64, in_force: u64) {
        if !self.issued.words.is_empty() {
            self.issue(absent(self.signals.current().place()).to_vec(), generation, in_force);
        }
    }
}

/// Measured durations of a client.
#[derive(Debug, Default)]
pub struct Measured {
    /// Signaled to awake.
    scheduling: Times,
    /// Awake to finished.
    duration: Times,
    /// CPU that it ran on last.
    pub cpu: Option<u32>,
    average: Average,
}

impl Measured {
    /// Notes the cycle that began at `date_ns`: from signaled to awake, from awake to finished, and where.
    pub fn note(&mut self, date_ns: u64, scheduling_ns: Option<u64>, duration_ns: u64, cpu: u16) {
        // What a client says of itself is a hint: a date in the far future is none.
        let duration_ns = duration_ns.min(LONGEST_NS);
        if let Some(scheduling_ns) = scheduling_ns {
            self.scheduling.note(date_ns, scheduling_ns.min(LONGEST_NS));
        }
        self.duration.note(date_ns, duration_ns);
        self.cpu = Some(u32::from(cpu));
        self.average.note(duration_ns);
    }

    /// Over the last second, minute, and since it opened, at `now_ns`.
    pub fn timing(&mut self, now_ns: u64) -> ClientTiming {
        ClientTiming { scheduling: self.scheduling.windows(now_ns), duration: self.duration.windows(now_ns) }
    }

    /// From awake to finished, lately.
    pub fn duration_ns(&self) -> u64 {
        self.average.ns()
    }
}

/// No duration is counted as longer: it spans more cycles than any client is waited for.
const LONGEST_NS: u64 = 100_000_000_000;

/// A client that is bypassed: when to look whether it answers again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bypass {
    /// `CLOCK_MONOTONIC` ns.
    pub look_at_ns: u64,
    /// How often the client had looked for its turn when it was looked at last.
    pub looks: u32,
}

/// Where a client comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Past {
    /// This server has opened it.
    New,
    /// It was another server's, and is saying what it was there.
    Returning,
    /// It was another server's, and is again what it was there.
    Returned,
}

/// One connected client.
#[derive(Debug)]
pub struct ClientSlot {
    /// Its connection's serial number.
    pub connection: u64,
    /// Process id as the kernel gave it; `None` in another pid namespace.
    pub process: Option<u32>,
    /// What its program may do.
    pub rights: Rights,
    /// Events to it.
    pub outbox: Outbox,
    /// Memory shared with it.
    pub memory: ClientMemory,
    /// What it said when it became active.
    pub activation: Option<Activation>,
    /// Where it comes from.
    pub past: Past,
    /// The quantum that its buffer-size callback, if it has one, knows of.
    pub told_quantum: u32,
    /// How it keeps up.
    pub pulse: Arc<Pulse>,
    /// Where it sleeps in the plan in force.
    pub sleep: Sleep,
    /// Signal pages that it has mapped, by client and number.
    pub pages: MappedTable<(u32, u32)>,
    /// Slabs that it has mapped, by client and number.
    pub slabs: MappedTable<(u32, u32)>,
    /// It is left out of plans.
    pub bypass: Option<Bypass>,
    /// How often it was left out lately: each time it is let in later.
    pub bypasses: u32,
    /// ... and since it opened.
    pub all_bypasses: u64,
    /// When it was left out last.
    pub bypassed_ns: u64,
    /// Cycles in which it was late, since it opened.
    pub late_cycles: u64,
    /// How late it is lately.
    pub lateness: Lateness,
    /// The kernel's counters of its process thread.
    pub watch: Option<Watch>,
    /// Its durations.
    pub measured: Measured,
    /// When it runs wherever the kernel likes.
    pub release: Release,
    /// Whether it goes where it is told.
    pub astray: Astray,
    /// ... and if not, the log has said so.
    pub said_astray: bool,
}

impl ClientSlot {
    /// Whether it takes part in cycles of `quantum` frames.
    pub fn runs(&self, quantum: u32) -> bool {
        let has_thread = self.activation.is_some_and(|activation| activation.process_thread.is_some());
        has_thread && self.bypass.is_none() && !self.must_be_told(quantum)
    }

    /// Whether it has a buffer-size callback that does not know of `quantum` yet.
    pub fn must_be_told(&self, quantum: u32) -> bool {
        let has_callback = self.activation.is_some_and(|activation| activation.quantum_callback);
        has_callback && self.told_quantum != quantum
    }
}
