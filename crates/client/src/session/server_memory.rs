//! The memory that a client shares with one server. Each server that replaces a dead one brings its
//! own; the earlier ones stay mapped as long as the client exists, because programs hold names and
//! threads hold pages in them.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use rt::shm::{Assignments, CycleInfo, EngineSegment, Layout, OwnPage, SignalPage};
use sys::clock::now_ns;
use sys::futex::Futex;
use sys::memory::{Access, Seals, Segment, SegmentRequirements, Shared, SharedRegistry};

use super::registry;
use crate::Error;
use crate::chunked_list::ChunkedList;

/// The shared memory through which a client takes part in one server's cycles.
#[derive(Debug)]
pub(crate) struct ServerMemory {
    pub(crate) registry: Arc<SharedRegistry>,
    pub(crate) engine: Shared<EngineSegment>,
    pub(crate) assignments: Shared<Assignments>,
    pub(crate) own: Shared<OwnPage>,
    pub(crate) signals: Shared<SignalPage>,
    /// Frame clock at the moment when the server's end was noticed; from there it continues at the
    /// nominal rate.
    pub(crate) end: OnceLock<CycleInfo>,
}

impl ServerMemory {
    /// Maps the segments that a server sent.
    pub(crate) fn map(
        server_name: &str,
        [engine, registry, assignments, own, signals]: [OwnedFd; 5],
    ) -> Result<Self, Error> {
        let memory = Self {
            engine: receive(engine, Access::ReadOnly)?,
            assignments: receive(assignments, Access::ReadOnly)?,
            own: receive(own, Access::Writable)?,
            signals: receive(signals, Access::Writable)?,
            // Last, because it replaces the registry of an older server, which must stay if any
            // other segment is invalid.
            registry: registry::of_server(server_name, registry)?,
            end: OnceLock::new(),
        };
        if memory.is_realtime() {
            // Best effort: pages that a limit leaves unlocked may be paged out, like the rest of
            // the program.
            let _ = memory.engine.lock_on_fault();
            let _ = memory.assignments.lock_on_fault();
            let _ = memory.own.lock_on_fault();
            let _ = memory.signals.lock_on_fault();
        }
        Ok(memory)
    }

    /// Returns whether the server runs its clients in real time.
    pub(crate) fn is_realtime(&self) -> bool {
        self.engine.flags().realtime
    }

    /// Wakes the process thread if it sleeps on the signal page of this memory or on its
    /// assignments, so that it checks its state.
    pub(crate) fn wake(&self) {
        self.signals.wake_unconditionally(&Futex);
        self.assignments.wake(&Futex);
    }

    /// Records the frame clock at the server's end.
    fn note_end(&self, newest: Option<CycleInfo>) {
        let Some(info) = newest.filter(|info| info.cycle != 0) else { return };
        let now_ns = now_ns();
        let period_ns = CycleInfo::nominal_period_ns(info.quantum, info.sample_rate_hz);
        let end = CycleInfo {
            frames: info.frame_at(now_ns),
            wakeup_ns: now_ns,
            next_wakeup_ns: now_ns.saturating_add(period_ns as u64),
            period_ns,
            ..info
        };
        self.end.get_or_init(|| end);
    }
}

/// The memories shared with all servers of a client, oldest first. Never empty.
#[derive(Debug)]
pub(crate) struct ServerMemories {
    first: ServerMemory,
    later: ChunkedList<OnceLock<ServerMemory>, 1>,
    /// Index of the newest.
    current: AtomicU32,
    /// The newest server is gone.
    detached: AtomicBool,
}

impl ServerMemories {
    pub(crate) fn new(first: ServerMemory) -> Self {
        Self {
            first,
            later: ChunkedList::new([OnceLock::new()]),
            current: AtomicU32::new(0),
            detached: AtomicBool::new(false),
        }
    }

    /// Returns the index of the newest memory. Thread: cycle.
    #[inline]
    pub(crate) fn newest(&self) -> u32 {
        // Acquire: pairs with the store in `add`.
        self.current.load(Ordering::Acquire)
    }

    /// Returns the memory with index `index`. Thread: cycle.
    #[inline]
    pub(crate) fn get(&self, index: u32) -> &ServerMemory {
        let later = index.checked_sub(1).and_then(|index| self.later.get(index as usize));
        later.and_then(OnceLock::get).unwrap_or(&self.first)
    }

    /// Returns the newest memory. Thread: cycle.
    #[inline]
    pub(crate) fn current(&self) -> &ServerMemory {
        self.get(self.newest())
    }

    /// Returns the frame clock at the end of the server before the newest. Thread: cycle.
    pub(crate) fn end_before(&self) -> Option<CycleInfo> {
        let before = self.newest().checked_sub(1)?;
        self.get(before).end.get().copied()
    }

    /// Returns whether the newest server is gone. Thread: cycle.
    pub(crate) fn is_detached(&self) -> bool {
        self.detached.load(Ordering::Acquire)
    }

    /// Records that the newest server is gone; `newest` is its last cycle. The caller wakes the
    /// process thread. Service thread.
    pub(crate) fn mark_detached(&self, newest: Option<CycleInfo>) {
        let memory = self.current();
        memory.note_end(newest);
        self.detached.store(true, Ordering::Release);
    }

    /// Adds the memory of a replacement server; the process thread switches to it. Returns false if
    /// the list is full. Service thread.
    pub(crate) fn add(&self, memory: ServerMemory) -> bool {
        let before = self.newest();
        let Some(place) = self.later.make(before as usize) else { return false };
        if place.set(memory).is_err() {
            return false;
        }
        // Programs keep addresses of names in the previous server's registry even after the client
        // is closed, so that mapping is never dropped.
        std::mem::forget(Arc::clone(&self.get(before).registry));
        // Release: a thread that reads the index finds the memory.
        self.current.store(before + 1, Ordering::Release);
        self.detached.store(false, Ordering::Release);
        self.get(before).wake();
        true
    }
}

/// The last cycle information that could be read. Used when the server is stopped while it writes
/// the next one. Accessed with `try_lock` only: a thread that finds it locked has just read newer
/// information itself.
#[derive(Debug, Default)]
pub(crate) struct LastCycle(Mutex<Option<CycleInfo>>);

impl LastCycle {
    /// Keeps newer information. Thread: any.
    pub(crate) fn note(&self, info: CycleInfo) {
        if let Ok(mut last) = self.0.try_lock() {
            *last = Some(info);
        }
    }

    /// Returns the last information; `None` before the first, or while a thread keeps newer.
    /// Thread: any.
    pub(crate) fn get(&self) -> Option<CycleInfo> {
        self.0.try_lock().ok().and_then(|last| *last)
    }
}

/// Maps a page from the server. It must have exactly this size, and a page that this process only
/// reads must not be writable by any other receiver.
pub(crate) fn receive<T: Layout>(memfd: OwnedFd, access: Access) -> Result<Shared<T>, Error> {
    let exact = SegmentRequirements::exactly(size_of::<T>() as u64);
    let wanted = match access {
        Access::ReadOnly => {
            SegmentRequirements { seals: Seals::SIZE | Seals::FUTURE_WRITE, ..exact }
        }
        Access::Writable => exact,
    };
    let segment = Segment::receive(memfd, &wanted)?;
    Ok(Shared::open(&segment, access)?)
}
