//! The memory of other clients that a client has mapped, its port ties and transport callbacks, and
//! the way in which changes to them reach the process thread.

use std::sync::Arc;

use rt::shm::SignalPage;
use rtrb::{Consumer, Producer, RingBuffer};
use sys::memory::{PeerSlab, Shared};

use super::ties::Tie;
use super::transport::TransportCallbacks;

/// Changes that may be on their way to the process thread at one time.
const CHANGES: usize = 64;
/// Assignments cannot name larger indices of pages or slabs.
const LAST_INDEX: u32 = 1 << 16;

/// What the indices in assignments refer to.
#[derive(Debug, Default, Clone)]
pub(crate) struct Tables {
    /// The client's own signal pages that have replaced the first one, which is part of the
    /// server's memory; each with the index of the server whose assignments name it.
    own_pages: [Option<(u32, Arc<Shared<SignalPage>>)>; 2],
    pages: Vec<Option<Arc<Shared<SignalPage>>>>,
    slabs: Vec<Option<Arc<PeerSlab>>>,
    /// At most one for each output.
    ties: Vec<Tie>,
    /// The callbacks that may change while the client is active.
    pub(crate) transport: TransportCallbacks,
}

impl Tables {
    /// Returns the client's own signal page in `place` as named by assignments of `server`, unless
    /// it is the first one. Thread: cycle.
    pub(crate) fn own_page(&self, server: u32, place: u32) -> Option<&SignalPage> {
        let (of, page) = self.own_pages.get(place as usize)?.as_ref()?;
        (*of == server).then_some(page)
    }

    /// Iterates over the client's own signal pages, except the first one.
    pub(crate) fn own_pages(&self) -> impl Iterator<Item = &SignalPage> {
        self.own_pages.iter().flatten().map(|(_, page)| &***page)
    }

    /// Returns the signal page of a follower. Thread: cycle.
    pub(crate) fn page(&self, index: u32) -> Option<&SignalPage> {
        Some(self.pages.get(index as usize)?.as_ref()?)
    }

    /// Returns a slab to read from. Thread: cycle.
    pub(crate) fn slab(&self, index: u32) -> Option<&PeerSlab> {
        Some(self.slabs.get(index as usize)?.as_ref()?)
    }

    /// Drops all memory received from a server.
    pub(crate) fn clear(&mut self) -> bool {
        (self.own_pages, self.pages, self.slabs) = Default::default();
        true
    }

    /// Stores one of the client's own signal pages for the assignments of `server`. Returns false
    /// if the place is out of range.
    pub(crate) fn set_own_page(
        &mut self,
        server: u32,
        place: u32,
        page: Arc<Shared<SignalPage>>,
    ) -> bool {
        let place = self.own_pages.get_mut(place as usize);
        place.map(|place| *place = Some((server, page))).is_some()
    }

    /// Returns the tied outputs. Thread: cycle.
    pub(crate) fn ties(&self) -> &[Tie] {
        &self.ties
    }

    /// Ties an output, replacing an earlier tie.
    pub(crate) fn tie(&mut self, tie: Tie) -> bool {
        self.untie(tie.output);
        self.ties.push(tie);
        true
    }

    /// Ends every tie of a port, by its number. Returns false if it had none.
    pub(crate) fn untie(&mut self, number: u32) -> bool {
        let before = self.ties.len();
        self.ties.retain(|tie| tie.output != number && tie.input != number);
        self.ties.len() < before
    }

    /// Stores or drops a signal page. Returns false if the index is out of range.
    pub(crate) fn set_page(&mut self, index: u32, page: Option<Arc<Shared<SignalPage>>>) -> bool {
        set(&mut self.pages, index, page)
    }

    /// Stores or drops a slab. Returns false if the index is out of range.
    pub(crate) fn set_slab(&mut self, index: u32, slab: Option<Arc<PeerSlab>>) -> bool {
        set(&mut self.slabs, index, slab)
    }
}

fn set<T>(entries: &mut Vec<Option<T>>, index: u32, value: Option<T>) -> bool {
    if index > LAST_INDEX {
        return false;
    }
    let index = index as usize;
    if entries.len() <= index {
        entries.resize_with(index + 1, || None);
    }
    entries[index] = value;
    true
}

/// The changing side, protected by the session's lock. Tables are replaced as a whole and never
/// changed in use.
#[derive(Debug, Default)]
pub(crate) struct TablesSender {
    current: Arc<Tables>,
    /// Present while there is a process thread.
    queue: Option<Queue>,
    /// `current` has not been queued yet.
    unsent: bool,
    /// Mappings to be acknowledged to the server once they are queued.
    waiting: Vec<u64>,
}

#[derive(Debug)]
struct Queue {
    changes: Producer<Arc<Tables>>,
    retired: Consumer<Arc<Tables>>,
    /// Tables that were sent and whose predecessors have not come back.
    under_way: usize,
}

/// The process thread's side.
#[derive(Debug)]
pub(crate) struct TablesReceiver {
    current: Arc<Tables>,
    changes: Consumer<Arc<Tables>>,
    retired: Producer<Arc<Tables>>,
}

impl TablesSender {
    /// Changes a copy of the tables and makes it current. Returns false if `change` refuses.
    /// `token` is acknowledged by a later [`settle`](Self::settle).
    pub(crate) fn change(
        &mut self,
        token: Option<u64>,
        change: impl FnOnce(&mut Tables) -> bool,
    ) -> bool {
        let mut tables = Tables::clone(&self.current);
        if !change(&mut tables) {
            return false;
        }
        self.current = Arc::new(tables);
        self.unsent = true;
        self.waiting.extend(token);
        true
    }

    /// Drops pending acknowledgements, since the server that waited for them is gone.
    pub(crate) fn forget_waiting(&mut self) {
        self.waiting.clear();
    }

    /// Sends the current tables, drops returned ones, and returns the tokens of changes that the
    /// process thread will see in its next cycle.
    pub(crate) fn settle(&mut self) -> Vec<u64> {
        if let Some(queue) = &mut self.queue {
            while queue.retired.pop().is_ok() {
                queue.under_way -= 1;
            }
            // Never more under way than fit into the return queue, so that the process thread never
            // has to drop tables.
            if self.unsent && queue.under_way < CHANGES {
                self.unsent = queue.changes.push(Arc::clone(&self.current)).is_err();
                queue.under_way += usize::from(!self.unsent);
            }
        } else {
            self.unsent = false;
        }
        if self.unsent { Vec::new() } else { std::mem::take(&mut self.waiting) }
    }

    /// Returns whether [`settle`](Self::settle) must be called again soon.
    pub(crate) fn is_unsettled(&self) -> bool {
        self.unsent || self.queue.as_ref().is_some_and(|queue| queue.under_way > 0)
    }

    /// Creates the receiving side for a new process thread, with the current tables.
    pub(crate) fn start(&mut self) -> TablesReceiver {
        let (changes, receiver) = RingBuffer::new(CHANGES);
        let (retirer, retired) = RingBuffer::new(CHANGES);
        self.queue = Some(Queue { changes, retired, under_way: 0 });
        self.unsent = false;
        TablesReceiver { current: Arc::clone(&self.current), changes: receiver, retired: retirer }
    }

    /// Returns the newest tables.
    pub(crate) fn current(&self) -> &Tables {
        &self.current
    }

    /// Records that the process thread has ended.
    pub(crate) fn stop(&mut self) {
        self.queue = None;
    }
}

impl TablesReceiver {
    /// Takes the newest tables that were sent. Thread: cycle.
    #[inline]
    pub(crate) fn refresh(&mut self) {
        while let Ok(tables) = self.changes.pop() {
            self.take(tables);
        }
    }

    #[cold]
    fn take(&mut self, tables: Arc<Tables>) {
        let old = std::mem::replace(&mut self.current, tables);
        // Always fits: see `settle`.
        let _ = self.retired.push(old);
    }

    /// Returns the tables in use. Thread: cycle.
    pub(crate) fn current(&self) -> &Tables {
        &self.current
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slab() -> Arc<PeerSlab> {
        let own = sys::memory::OwnSlab::create().unwrap();
        Arc::new(PeerSlab::map(own.segment()).unwrap())
    }

    #[test]
    fn a_mapping_is_answered_when_the_process_thread_can_find_it() {
        let mut sender = TablesSender::default();
        assert!(sender.change(Some(1), |tables| tables.set_slab(2, Some(slab()))));
        assert_eq!(sender.settle(), [1], "without a process thread at once");
        let mut receiver = sender.start();
        assert!(receiver.current().slab(2).is_some());
        for token in 0..CHANGES as u64 {
            assert!(sender.change(Some(token), |tables| tables.set_slab(3, Some(slab()))));
            assert_eq!(sender.settle(), [token]);
        }
        assert!(sender.change(Some(99), |tables| tables.set_slab(4, Some(slab()))));
        assert_eq!(sender.settle(), [], "the process thread stands still");
        assert!(sender.is_unsettled());
        receiver.refresh();
        assert_eq!(sender.settle(), [99]);
        receiver.refresh();
        assert!(receiver.current().slab(4).is_some());
    }

    #[test]
    fn unmapped_memory_is_freed_once_the_process_thread_has_released_it() {
        let mut sender = TablesSender::default();
        let held = slab();
        assert!(sender.change(None, |tables| tables.set_slab(0, Some(Arc::clone(&held)))));
        let mut receiver = sender.start();
        assert!(sender.change(None, |tables| tables.set_slab(0, None)));
        sender.settle();
        assert_eq!(Arc::strong_count(&held), 2, "the process thread reads it still");
        receiver.refresh();
        assert_eq!(Arc::strong_count(&held), 2, "it does not unmap");
        sender.settle();
        assert_eq!(Arc::strong_count(&held), 1);
        assert!(!sender.is_unsettled());
    }

    #[test]
    fn an_index_that_no_orders_can_hold_is_refused() {
        let mut sender = TablesSender::default();
        assert!(!sender.change(Some(1), |tables| tables.set_page(u32::MAX, None)));
        assert_eq!(sender.settle(), []);
    }
}
