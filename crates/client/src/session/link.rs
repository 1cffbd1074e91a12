//! What a client shares with one server. With each server that takes the place of another comes a link; those before
//! stay mapped as long as the client, because programs hold names and threads hold pages in them.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use rt::park::Sleepers;
use rt::shm::{CycleInfo, EngineSegment, Orders, OwnPage, SignalPage};
use sys::clock::now_ns;
use sys::futex::Futex;
use sys::memory::{Access, Shared, SharedRegistry};

use super::{receive, registry};
use crate::Error;
use crate::growing::Growing;

/// The memory by which a client takes part in one server's cycles.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) registry: Arc<SharedRegistry>,
    pub(crate) engine: Shared<EngineSegment>,
    pub(crate) orders: Shared<Orders>,
    pub(crate) own: Shared<OwnPage>,
    pub(crate) signals: Shared<SignalPage>,
    /// Where the frame clock stood when the server was found to be gone, to be counted from at the nominal rate.
    pub(crate) end: OnceLock<CycleInfo>,
}

impl Link {
    /// Maps what a server sent.
    pub(crate) fn map(
        server_name: &str,
        [engine, registry, orders, own, signals]: [OwnedFd; 5],
    ) -> Result<Self, Error> {
        let link = Self {
            engine: receive(engine, Access::ReadOnly)?,
            orders: receive(orders, Access::ReadOnly)?,
            own: receive(own, Access::Writable)?,
            signals: receive(signals, Access::Writable)?,
            // At last: it takes the place of an older server's, which stays if anything is wrong with this one.
            registry: registry::of_server(server_name, registry)?,
            end: OnceLock::new(),
        };
        if link.is_realtime() {
            // What a limit refuses may be paged out, as the rest of the program.
            let _ = link.engine.lock_on_fault();
            let _ = link.orders.lock_on_fault();
            let _ = link.own.lock_on_fault();
            let _ = link.signals.lock_on_fault();
        }
        Ok(link)
    }

    /// Whether the server runs its clients in real time.
    pub(crate) fn is_realtime(&self) -> bool {
        self.engine.flags().realtime
    }

    /// Makes the process thread look what it is to do, if it sleeps on the page that came with the link or on the
    /// cycle's word.
    pub(crate) fn wake(&self) {
        self.signals.wake_surely(&Futex);
        self.engine.wake_group(Sleepers::ALL, &Futex);
    }

    /// Notes where the frame clock stands.
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

/// The links of a client, oldest first. There is always one.
#[derive(Debug)]
pub(crate) struct Links {
    first: Link,
    later: Growing<OnceLock<Link>, 1>,
    /// Index of the newest.
    current: AtomicU32,
    /// The server of the newest is gone.
    cut: AtomicBool,
}

impl Links {
    pub(crate) fn new(first: Link) -> Self {
        Self {
            first,
            later: Growing::new([OnceLock::new()]),
            current: AtomicU32::new(0),
            cut: AtomicBool::new(false),
        }
    }

    /// Index of the newest link. Thread: cycle.
    #[inline]
    pub(crate) fn newest(&self) -> u32 {
        // Acquire: pairs with `add`.
        self.current.load(Ordering::Acquire)
    }

    /// Link number `index`. Thread: cycle.
    #[inline]
    pub(crate) fn get(&self, index: u32) -> &Link {
        let later = index.checked_sub(1).and_then(|index| self.later.get(index as usize));
        later.and_then(OnceLock::get).unwrap_or(&self.first)
    }

    /// The newest link. Thread: cycle.
    #[inline]
    pub(crate) fn current(&self) -> &Link {
        self.get(self.newest())
    }

    /// Where the frame clock stood before the newest server. Thread: cycle.
    pub(crate) fn end_before(&self) -> Option<CycleInfo> {
        let before = self.newest().checked_sub(1)?;
        self.get(before).end.get().copied()
    }

    /// Whether no server keeps the newest link. Thread: cycle.
    pub(crate) fn is_cut(&self) -> bool {
        self.cut.load(Ordering::Acquire)
    }

    /// The server of the newest link is gone; `newest` is its last cycle. The caller wakes the process thread.
    /// Service thread.
    pub(crate) fn cut(&self, newest: Option<CycleInfo>) {
        let link = self.current();
        link.note_end(newest);
        self.cut.store(true, Ordering::Release);
    }

    /// Another server has taken its place: the process thread follows. False after more servers than can be counted.
    /// Service thread.
    pub(crate) fn add(&self, link: Link) -> bool {
        let before = self.newest();
        let Some(place) = self.later.make(before as usize) else { return false };
        if place.set(link).is_err() {
            return false;
        }
        // Programs keep addresses of names in what the server before has shown, beyond the client's end.
        std::mem::forget(Arc::clone(&self.get(before).registry));
        // Release: who sees the index finds the link.
        self.current.store(before + 1, Ordering::Release);
        self.cut.store(false, Ordering::Release);
        self.get(before).wake();
        true
    }
}
