//! One connected client: its memory, and what it has mapped.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use proto::request::Activation;
use proto::timing::ClientTiming;
use rt::shm::{Assignments, OwnPage, absent};
use sys::futex::Futex;
use sys::memory::{SegmentError, Shared};

use crate::average::Average;
use crate::client_health::ClientHealth;
use crate::client_threads::ClientThreads;
use crate::mapped::MappedTable;
use crate::outbox::Outbox;
use crate::plan::Sleep;
use crate::policy::Permissions;
use crate::realtime_limits::Locking;
use crate::signal_pages::SignalPages;
use crate::slab::Slab;
use crate::supervision::ClientSupervision;
use crate::supervision::xrun_diagnosis::ThreadProbe;
use crate::times::Times;

/// The assignment as it was written last, so that an unchanged client costs nothing.
#[derive(Debug)]
struct IssuedAssignment {
    words: Vec<u32>,
    valid_from: u64,
}

/// The memory that the server shares with one client.
#[derive(Debug)]
pub struct ClientMemory {
    /// Its assignments.
    pub assignments: Arc<Shared<Assignments>>,
    issued: IssuedAssignment,
    /// Its own page.
    pub own: Arc<Shared<OwnPage>>,
    /// The segment of its own page, until no program may map that for writing any more.
    own_segment: Option<Arc<OwnedFd>>,
    /// Its signal pages.
    pub signals: SignalPages,
    /// Its slabs, in the order in which it added them.
    pub slabs: Vec<Slab>,
}

impl ClientMemory {
    /// Creates memory, and the descriptors of its assignments and of its own page. The client
    /// receives both, and its signal page.
    ///
    /// # Errors
    /// [`SegmentError`] if the kernel has none.
    pub fn create() -> Result<(Self, [Arc<OwnedFd>; 2]), SegmentError> {
        let (assignments, assignments_fd) = Shared::for_readers("consort-assignments")?;
        let (own, own_fd) = Shared::for_writers("consort-own")?;
        let own_fd = Arc::new(own_fd);
        let signals = SignalPages::create()?;
        let issued = IssuedAssignment { words: Vec::new(), valid_from: 0 };
        Ok((
            Self {
                assignments: Arc::new(assignments),
                issued,
                own: Arc::new(own),
                own_segment: Some(Arc::clone(&own_fd)),
                signals,
                slabs: Vec::new(),
            },
            [Arc::new(assignments_fd), own_fd],
        ))
    }

    /// Makes the memory ready for cycles: the client has mapped it, and no other program may map
    /// what the client writes for writing, so that no page that the driver touches can be
    /// discarded. Control thread, before a plan has the client for the first time.
    ///
    /// # Errors
    /// [`SegmentError::Seal`], [`SegmentError::Populate`].
    pub fn close_to_writers(&mut self, locking: Locking) -> Result<(), SegmentError> {
        if let Some(segment) = &self.own_segment {
            self.own.close_to_writers(segment)?;
            self.own_segment = None;
            locking.lock(|| self.own.lock_on_fault());
            locking.lock(|| self.assignments.lock_on_fault());
        }
        self.signals.close_current(locking)
    }

    /// Writes what plan `generation` and those after it assign to the client. `in_force` is the
    /// plan that the driver runs.
    pub fn issue(&mut self, words: Vec<u32>, generation: u64, in_force: u64) {
        if self.issued.words == words {
            return;
        }
        let written = if self.issued.valid_from > in_force {
            self.assignments.replace_newest(generation, &words)
        } else {
            self.assignments.publish(generation, &words)
        };
        debug_assert!(written, "the builder keeps to the room");
        self.issued = IssuedAssignment { words, valid_from: generation };
    }

    /// Wakes the client, wherever it sleeps. Control thread.
    pub fn wake(&self) {
        self.assignments.wake(&Futex);
        self.signals.wake_unconditionally(&Futex);
    }

    /// Assigns nothing to the client.
    pub fn issue_absent(&mut self, generation: u64, in_force: u64) {
        if !self.issued.words.is_empty() {
            self.issue(absent(self.signals.current().place()).to_vec(), generation, in_force);
        }
    }
}

/// Measured durations of a client.
#[derive(Debug, Default)]
pub struct MeasuredTimes {
    /// Signaled to awake.
    scheduling: Times,
    /// Awake to finished.
    duration: Times,
    /// CPU that it ran on last.
    pub cpu: Option<u32>,
    average: Average,
}

impl MeasuredTimes {
    /// Notes the cycle that began at `began_ns`: the times from signaled to awake and from awake to
    /// finished, and the CPU.
    pub fn note(&mut self, began_ns: u64, scheduling_ns: Option<u64>, duration_ns: u64, cpu: u16) {
        // The client writes its own times, so they are hints: one in the far future is not
        // believed.
        let duration_ns = duration_ns.min(LONGEST_NS);
        if let Some(scheduling_ns) = scheduling_ns {
            self.scheduling.note(began_ns, scheduling_ns.min(LONGEST_NS));
        }
        self.duration.note(began_ns, duration_ns);
        self.cpu = Some(u32::from(cpu));
        self.average.note(duration_ns);
    }

    /// Returns the durations of the last second, the last minute, and since the client opened.
    pub fn timing(&mut self, now_ns: u64) -> ClientTiming {
        ClientTiming {
            scheduling: self.scheduling.windows(now_ns),
            duration: self.duration.windows(now_ns),
        }
    }

    /// Returns the recent average from awake to finished.
    pub fn duration_ns(&self) -> u64 {
        self.average.ns()
    }
}

/// Longer durations are counted as this one: no client is waited for that long.
const LONGEST_NS: u64 = 100_000_000_000;

/// Where a client comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Opened on this server.
    New,
    /// Comes from another server, and is stating what it was there.
    Returning,
    /// Came from another server, and is what it was there again.
    Returned,
}

/// One connected client.
#[derive(Debug)]
pub struct ClientSlot {
    /// Its peer's serial number.
    pub peer: u64,
    /// Process id as the kernel gave it; `None` in another pid namespace.
    pub process: Option<u32>,
    /// What its program may do.
    pub permissions: Permissions,
    /// Events to it.
    pub outbox: Outbox,
    /// Memory shared with it.
    pub memory: ClientMemory,
    /// What it stated when it became active.
    pub activation: Option<Activation>,
    /// Where it comes from.
    pub origin: Origin,
    /// The quantum that its buffer-size callback, if it has one, was last called with.
    pub known_quantum: u32,
    /// Whether it keeps up.
    pub health: Arc<ClientHealth>,
    /// Where it sleeps in the plan in force.
    pub sleep: Sleep,
    /// Signal pages that it has mapped, by client and number.
    pub pages: MappedTable<(u32, u32)>,
    /// Slabs that it has mapped, by client and number.
    pub slabs: MappedTable<(u32, u32)>,
    /// Whether it is suspended, and whether a CPU may be assigned to it.
    pub supervision: ClientSupervision,
    /// The threads of its process.
    pub threads: ClientThreads,
    /// The kernel's counters of its process thread.
    pub probe: Option<ThreadProbe>,
    /// Its durations.
    pub measured: MeasuredTimes,
}

impl ClientSlot {
    /// Creates a client that has just connected, and knows of cycles of `known_quantum` frames.
    pub fn new(
        (peer, process, permissions): (u64, Option<u32>, Permissions),
        memory: ClientMemory,
        (origin, known_quantum): (Origin, u32),
        supervision: ClientSupervision,
    ) -> Self {
        Self {
            peer,
            process,
            permissions,
            outbox: Outbox::default(),
            memory,
            activation: None,
            origin,
            known_quantum,
            health: Arc::default(),
            sleep: Sleep::Absent,
            pages: MappedTable::default(),
            slabs: MappedTable::default(),
            supervision,
            threads: ClientThreads::default(),
            probe: None,
            measured: MeasuredTimes::default(),
        }
    }

    /// Returns whether it has a process thread, which runs in cycles or is suspended.
    pub fn is_active(&self) -> bool {
        self.activation.is_some_and(|activation| activation.process_thread.is_some())
    }

    /// Returns whether it takes part in cycles of `quantum` frames.
    pub fn runs(&self, quantum: u32) -> bool {
        self.is_active() && !self.supervision.is_suspended() && !self.must_be_notified(quantum)
    }

    /// Returns whether it has a buffer-size callback that has not been called for `quantum`.
    pub fn must_be_notified(&self, quantum: u32) -> bool {
        let has_callback = self.activation.is_some_and(|activation| activation.quantum_callback);
        has_callback && self.known_quantum != quantum
    }
}
