//! A client's own page: its dates and state, between it and the server only.

use super::header::{Layout, SegmentHeader};
use super::snapshot::Snapshot;
use super::transport_requests::TransportRequests;
use crate::park::Park;
use crate::sync::{AtomicU32, AtomicU64, Ordering, fence};
use crate::transport::{POSITION_WORDS, Position};

/// When a client woke and finished in a cycle, and where.
///
/// Written by the client about itself: a hint for statistics, never ground for a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Dates {
    /// `CLOCK_MONOTONIC` ns.
    pub awake_ns: u64,
    /// `CLOCK_MONOTONIC` ns.
    pub finished_ns: u64,
    /// CPU on which it finished.
    pub cpu: u32,
}

/// Written by one client and the server. A client that writes nonsense here is late, or is counted as
/// finished before it is and heard as silence; nobody else sees this page.
#[repr(C)]
#[cfg_attr(not(loom), repr(align(4096)))]
#[derive(Debug, Default)]
pub struct OwnPage {
    header: SegmentHeader,
    /// The cycle that the client began last.
    awake: AtomicU32,
    /// The cycle that the client finished last; the futex word of a driver that waits for the graph's end.
    finished: AtomicU32,
    /// 1 while the driver sleeps on `finished`.
    driver_sleeping: AtomicU32,
    /// 1 after the server took the client's real-time priority away, until the client has it again.
    demoted: AtomicU32,
    /// Counts how often the client looked whether it is its turn: a stopped one does not.
    looks: AtomicU32,
    /// [`QUICK`]; or [`NEEDS_TIME`]; or [`IS_READY`] and, in the lower half, for which round of the transport.
    sync: AtomicU64,
    /// By parity of the cycle: one can be read while the next is written.
    dates: [DatesCell; 2],
    /// What it wants of the transport.
    transport: TransportRequests,
    /// As timebase master: the cycle in which it ran, and the position for the next one.
    timebase: Snapshot<TIMEBASE_WORDS>,
}

const QUICK: u64 = 0;
const IS_READY: u64 = 1 << 32;
const NEEDS_TIME: u64 = 2 << 32;

/// None of it is read in models.
const TIMEBASE_WORDS: usize = if cfg!(loom) { 1 } else { POSITION_WORDS + 1 };

#[repr(C, align(64))]
#[derive(Debug, Default)]
struct DatesCell {
    awake_ns: AtomicU64,
    finished_ns: AtomicU64,
    cpu: AtomicU32,
    reserved: AtomicU32,
}

// SAFETY: repr(C), the header first, atomics only.
unsafe impl Layout for OwnPage {
    const KIND: u32 = 4;

    fn header(&self) -> &SegmentHeader {
        &self.header
    }
}

impl OwnPage {
    fn cell(&self, cycle: u32) -> &DatesCell {
        &self.dates[(cycle % 2) as usize]
    }

    /// The client begins `cycle`. Process thread. Thread: cycle.
    #[inline]
    pub fn begin(&self, cycle: u32, now_ns: u64) {
        self.cell(cycle).awake_ns.store(now_ns, Ordering::Relaxed);
        self.awake.store(cycle, Ordering::Release);
    }

    /// The client has finished `cycle`; its buffers are marked already. Process thread. Thread: cycle.
    #[inline]
    pub fn finish(&self, cycle: u32, now_ns: u64, cpu: u32) {
        let cell = self.cell(cycle);
        cell.finished_ns.store(now_ns, Ordering::Relaxed);
        cell.cpu.store(cpu, Ordering::Relaxed);
        // Release: a driver that sees the cycle finished sees its dates and its samples.
        self.finished.store(cycle, Ordering::Release);
    }

    /// Wakes the driver if it sleeps until this client has finished. Process thread. Thread: cycle.
    pub fn wake_driver(&self, park: &impl Park) {
        // SeqCst: either this sees the driver sleeping, or the driver's second look sees the finished cycle.
        fence(Ordering::SeqCst);
        if self.driver_sleeping.load(Ordering::Relaxed) != 0 {
            park.wake(&self.finished, 1);
        }
    }

    /// Sleeps until the client has finished `cycle` or the deadline passed; true if it has. Driver thread.
    ///
    /// Wakes from a client that never finishes are bounded by `tries`: one that keeps changing its page
    /// cannot keep the driver busy.
    pub fn await_finish(&self, cycle: u32, deadline_ns: u64, tries: u32, park: &impl Park) -> bool {
        for _ in 0..tries {
            self.driver_sleeping.store(1, Ordering::Relaxed);
            // SeqCst: see `wake_driver`.
            fence(Ordering::SeqCst);
            // Relaxed: the last look below acquires what the client wrote.
            let finished = self.finished.load(Ordering::Relaxed);
            let done = finished == cycle;
            if !done && park.now_ns() < deadline_ns {
                park.wait(&self.finished, finished, Some(deadline_ns));
            }
            self.driver_sleeping.store(0, Ordering::Relaxed);
            if done || park.now_ns() >= deadline_ns {
                break;
            }
        }
        self.finished() == cycle
    }

    /// The cycle that the client began last.
    #[inline]
    pub fn awake(&self) -> u32 {
        self.awake.load(Ordering::Acquire)
    }

    /// The cycle that the client finished last.
    #[inline]
    pub fn finished(&self) -> u32 {
        // Acquire: pairs with `finish`.
        self.finished.load(Ordering::Acquire)
    }

    /// What the client says of `cycle` or, if it went on, of the one two later.
    pub fn dates(&self, cycle: u32) -> Dates {
        let cell = self.cell(cycle);
        Dates {
            awake_ns: cell.awake_ns.load(Ordering::Relaxed),
            finished_ns: cell.finished_ns.load(Ordering::Relaxed),
            cpu: cell.cpu.load(Ordering::Relaxed),
        }
    }

    /// Where the client's threads ask for the transport to be changed.
    pub fn transport(&self) -> &TransportRequests {
        &self.transport
    }

    /// The transport need not wait for the client. Process thread. Thread: cycle.
    pub fn note_quick(&self) {
        self.sync.store(QUICK, Ordering::Relaxed);
    }

    /// The client needs time before the transport rolls. Process thread. Thread: cycle.
    pub fn note_needs_time(&self) {
        self.sync.store(NEEDS_TIME, Ordering::Relaxed);
    }

    /// The client is ready to roll in `round`. Process thread. Thread: cycle.
    pub fn note_ready(&self, round: u32) {
        // Relaxed, as above: the driver looks when the client has finished the cycle or later.
        self.sync.store(IS_READY | u64::from(round), Ordering::Relaxed);
    }

    /// Whether the transport is to wait for the client in `round`: its own word, believed up to the sync timeout.
    pub fn holds_up(&self, round: u32) -> bool {
        let sync = self.sync.load(Ordering::Relaxed);
        sync != QUICK && sync != IS_READY | u64::from(round)
    }

    /// The timebase master states the position of the cycle after `cycle`. Process thread. Thread: cycle.
    pub fn state_position(&self, cycle: u32, position: &Position) {
        let position = position.to_words();
        self.timebase.write(&core::array::from_fn(|index| match index.checked_sub(1) {
            None => u64::from(cycle),
            Some(index) => position[index],
        }));
    }

    /// What it stated in `cycle`, not checked yet. Driver thread. Thread: cycle.
    pub fn stated_position(&self, cycle: u32) -> Option<Position> {
        let words = self.timebase.read()?;
        let position = core::array::from_fn(|index| words.get(index + 1).copied().unwrap_or(0));
        (words[0] == u64::from(cycle)).then(|| Position::from_words(&position))
    }

    /// The client looks whether it is its turn, and it is not. Process thread. Thread: cycle.
    #[inline]
    pub fn note_look(&self) {
        self.looks.fetch_add(1, Ordering::Relaxed);
    }

    /// How often the client has looked.
    pub fn looks(&self) -> u32 {
        self.looks.load(Ordering::Relaxed)
    }

    /// Tells the client that its priority was taken away. Server.
    pub fn note_demoted(&self) {
        self.demoted.store(1, Ordering::Release);
    }

    /// Whether the priority was taken away since the last call. Process thread. Thread: cycle.
    #[inline]
    pub fn take_demoted(&self) -> bool {
        // A plain load first: the page is the client's own cache line until the server writes it.
        self.demoted.load(Ordering::Relaxed) != 0 && self.demoted.swap(0, Ordering::AcqRel) != 0
    }
}
