//! A client's own page: its timestamps and state, shared by the client and the server only.

use super::header::{Layout, SegmentHeader};
use super::snapshot::Snapshot;
use super::transport_requests::TransportRequests;
use crate::park::Park;
use crate::sync::{AtomicU32, AtomicU64, Ordering, fence};
use crate::transport::{POSITION_WORDS, Position};

/// When a client woke and finished in a cycle, and on which CPU.
///
/// The client writes these about itself: a hint for statistics, never the basis of a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Timestamps {
    /// `CLOCK_MONOTONIC` ns.
    pub awake_ns: u64,
    /// `CLOCK_MONOTONIC` ns.
    pub finished_ns: u64,
    /// CPU on which it finished.
    pub cpu: u32,
}

/// State that one client and the server share. A client that writes nonsense here counts as late,
/// or as finished too early and is heard as silence; no other client sees this page.
#[repr(C)]
#[cfg_attr(not(loom), repr(align(4096)))]
#[derive(Debug, Default)]
pub struct OwnPage {
    header: SegmentHeader,
    /// The last cycle that the client began.
    awake: AtomicU32,
    /// The last cycle that the client finished; the futex word of a driver that waits for the
    /// graph's end.
    finished: AtomicU32,
    /// 1 while the driver sleeps on `finished`.
    driver_sleeping: AtomicU32,
    /// 1 after the server has demoted the client's thread, until the client takes note.
    demoted: AtomicU32,
    /// Counts how often the client has polled for its turn; a stopped client does not poll.
    polls: AtomicU32,
    /// [`SYNC_NOT_NEEDED`], [`SYNC_PENDING`], or [`SYNC_READY`] with the transport's round in the
    /// lower half.
    sync: AtomicU64,
    /// Two cells, by parity of the cycle: one can be read while the next is written.
    timestamps: [TimestampsCell; 2],
    /// The client's requests to the transport.
    transport: TransportRequests,
    /// Written by a timebase master: the cycle in which it ran, and the position for the next one.
    timebase: Snapshot<TIMEBASE_WORDS>,
}

same_for_all_widths!(
    OwnPage: 4096 bytes;
    awake at 16, polls at 32, sync at 40, timestamps at 64, transport at 192, timebase at 768
);

const SYNC_NOT_NEEDED: u64 = 0;
const SYNC_READY: u64 = 1 << 32;
const SYNC_PENDING: u64 = 2 << 32;

/// No model reads the position.
const TIMEBASE_WORDS: usize = if cfg!(loom) { 1 } else { POSITION_WORDS + 1 };

#[repr(C, align(64))]
#[derive(Debug, Default)]
struct TimestampsCell {
    awake_ns: AtomicU64,
    finished_ns: AtomicU64,
    cpu: AtomicU32,
    reserved: AtomicU32,
}

same_for_all_widths!(TimestampsCell: 64 bytes; awake_ns at 0, finished_ns at 8, cpu at 16);

// SAFETY: repr(C), the header first, atomics only.
unsafe impl Layout for OwnPage {
    const KIND: u32 = 4;

    fn header(&self) -> &SegmentHeader {
        &self.header
    }
}

impl OwnPage {
    fn cell(&self, cycle: u32) -> &TimestampsCell {
        &self.timestamps[(cycle % 2) as usize]
    }

    /// Notes that the client begins `cycle`. Process thread. Thread: cycle.
    #[inline]
    pub fn begin(&self, cycle: u32, now_ns: u64) {
        self.cell(cycle).awake_ns.store(now_ns, Ordering::Relaxed);
        self.awake.store(cycle, Ordering::Release);
    }

    /// Notes that the client has finished `cycle`, after its buffers were marked. Process thread.
    /// Thread: cycle.
    #[inline]
    pub fn finish(&self, cycle: u32, now_ns: u64, cpu: u32) {
        let cell = self.cell(cycle);
        cell.finished_ns.store(now_ns, Ordering::Relaxed);
        cell.cpu.store(cpu, Ordering::Relaxed);
        // Release: a driver that sees the cycle finished sees its timestamps and its samples.
        // MUTATION: finish.relaxed
        self.finished.store(cycle, Ordering::Release);
    }

    /// Wakes the driver if it sleeps until this client has finished. Process thread. Thread: cycle.
    pub fn wake_driver(&self, park: &impl Park) {
        // SeqCst: either this sees `driver_sleeping`, or the driver sees the finished cycle when it
        // checks again.
        // MUTATION: wake_driver.without_fence
        fence(Ordering::SeqCst);
        if self.driver_sleeping.load(Ordering::Relaxed) != 0 {
            park.wake(&self.finished, 1);
        }
    }

    /// Sleeps until the client has finished `cycle` or the deadline has passed; returns true if it
    /// has finished. Driver thread.
    ///
    /// `tries` bounds the wake-ups of a client that never finishes, so that a client that keeps
    /// changing its page cannot keep the driver busy.
    pub fn await_finish(&self, cycle: u32, deadline_ns: u64, tries: u32, park: &impl Park) -> bool {
        for _ in 0..tries {
            self.driver_sleeping.store(1, Ordering::Relaxed);
            // SeqCst: see `wake_driver`.
            // MUTATION: await_finish.without_fence
            fence(Ordering::SeqCst);
            // Relaxed: the last load below acquires what the client wrote.
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

    /// Returns the last cycle that the client began.
    #[inline]
    pub fn awake(&self) -> u32 {
        self.awake.load(Ordering::Acquire)
    }

    /// Returns the last cycle that the client finished.
    #[inline]
    pub fn finished(&self) -> u32 {
        // Acquire: pairs with `finish`.
        // MUTATION: finished.relaxed
        self.finished.load(Ordering::Acquire)
    }

    /// Returns the client's timestamps of `cycle`, or of a later cycle of the same parity that
    /// overwrote them.
    pub fn timestamps(&self, cycle: u32) -> Timestamps {
        let cell = self.cell(cycle);
        Timestamps {
            awake_ns: cell.awake_ns.load(Ordering::Relaxed),
            finished_ns: cell.finished_ns.load(Ordering::Relaxed),
            cpu: cell.cpu.load(Ordering::Relaxed),
        }
    }

    /// Returns the slots in which the client's threads request changes of the transport.
    pub fn transport(&self) -> &TransportRequests {
        &self.transport
    }

    /// Notes that the transport need not wait for the client. Process thread. Thread: cycle.
    pub fn note_sync_not_needed(&self) {
        self.sync.store(SYNC_NOT_NEEDED, Ordering::Relaxed);
    }

    /// Notes that the client needs time before the transport rolls. Process thread. Thread: cycle.
    pub fn note_sync_pending(&self) {
        self.sync.store(SYNC_PENDING, Ordering::Relaxed);
    }

    /// Notes that the client is ready to roll in `round`. Process thread. Thread: cycle.
    pub fn note_sync_ready(&self, round: u32) {
        // Relaxed, as above: the driver reads it after the client has finished the cycle.
        self.sync.store(SYNC_READY | u64::from(round), Ordering::Relaxed);
    }

    /// Returns whether the transport has to wait for the client in `round`. The client says so
    /// itself, and is believed until the sync timeout.
    pub fn delays_transport(&self, round: u32) -> bool {
        let sync = self.sync.load(Ordering::Relaxed);
        sync != SYNC_NOT_NEEDED && sync != SYNC_READY | u64::from(round)
    }

    /// Publishes the timebase master's position for the cycle after `cycle`. Process thread.
    /// Thread: cycle.
    pub fn publish_timebase(&self, cycle: u32, position: &Position) {
        let position = position.to_words();
        self.timebase.write(&core::array::from_fn(|index| match index.checked_sub(1) {
            None => u64::from(cycle),
            Some(index) => position[index],
        }));
    }

    /// Returns the position that the master published in `cycle`, still unchecked. Driver thread.
    /// Thread: cycle.
    pub fn timebase_position(&self, cycle: u32) -> Option<Position> {
        let words = self.timebase.read()?;
        let position = core::array::from_fn(|index| words.get(index + 1).copied().unwrap_or(0));
        (words[0] == u64::from(cycle)).then(|| Position::from_words(&position))
    }

    /// Counts a poll in which it was not the client's turn. Process thread. Thread: cycle.
    #[inline]
    pub fn note_poll(&self) {
        self.polls.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how often the client has polled.
    pub fn polls(&self) -> u32 {
        self.polls.load(Ordering::Relaxed)
    }

    /// Notifies the client that its thread was demoted. Server.
    pub fn note_demoted(&self) {
        self.demoted.store(1, Ordering::Release);
    }

    /// Returns whether the thread was demoted since the last call. Process thread. Thread: cycle.
    #[inline]
    pub fn take_demoted(&self) -> bool {
        // A plain load first: the cache line stays the client's own until the server writes to it.
        self.demoted.load(Ordering::Relaxed) != 0 && self.demoted.swap(0, Ordering::AcqRel) != 0
    }
}
