//! A client's signal page, and the one that replaces it when a former neighbour has it mapped, or
//! when another client has to.
//!
//! The page of a plan is closed: no further program can map it for writing, and none can discard
//! its memory. So a client that becomes a predecessor needs another page, as long as that is open.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use rt::shm::SignalPage;
use sys::memory::{SegmentError, Shared};

use crate::realtime_limits::Locking;

/// One page.
#[derive(Debug)]
pub struct Page {
    /// Number among the client's pages.
    pub number: u32,
    /// For the client, and for its predecessors; `None`: it is closed.
    memory: Option<Arc<OwnedFd>>,
    /// For the server itself.
    pub shared: Arc<Shared<SignalPage>>,
    /// A former neighbour has it mapped.
    is_revoked: bool,
    /// A neighbour needs it and cannot map it.
    lacks_writer: bool,
}

/// A page that is being mapped.
#[derive(Debug)]
struct Successor {
    page: Page,
    /// The client has mapped it.
    is_mapped: bool,
    /// When it was created, ns.
    since_ns: u64,
    /// How many of the times in [`ALL_PATIENCE_NS`] have been noted to be over.
    noted: usize,
}

/// A new predecessor that was asked to map a page has this long before others go on without it, ns.
/// It will be asked to map the next page.
pub const NEWCOMERS_PATIENCE_NS: u64 = 1_000_000_000;
/// The same for a predecessor that is heard, ns: it falls silent until it has mapped the next page,
/// and a program whose other threads are held up for a moment should stay audible.
pub const PREDECESSORS_PATIENCE_NS: u64 = 5_000_000_000;
const ALL_PATIENCE_NS: [u64; 2] = [NEWCOMERS_PATIENCE_NS, PREDECESSORS_PATIENCE_NS];

/// The pages of one client.
#[derive(Debug)]
pub struct SignalPages {
    /// The page that the next plan gives the client.
    current: Page,
    /// The page after that.
    coming: Option<Successor>,
    /// Number and memory of the page of the plan in force, where the client may sleep.
    in_force: (u32, Arc<Shared<SignalPage>>),
}

impl Page {
    fn create(number: u32) -> Result<Self, SegmentError> {
        let (shared, fd) = Shared::for_writers("consort-signals")?;
        let (memory, shared) = (Some(Arc::new(fd)), Arc::new(shared));
        Ok(Self { number, memory, shared, is_revoked: false, lacks_writer: false })
    }

    /// Returns its segment, for a client that is to map it; `None` if it is closed.
    pub fn memory(&self) -> Option<&Arc<OwnedFd>> {
        self.memory.as_ref()
    }

    fn close(&mut self, locking: Locking) -> Result<(), SegmentError> {
        if let Some(memory) = &self.memory {
            // MUTATION: signal_page.not_closed
            self.shared.close_to_writers(memory)?;
            self.memory = None;
            locking.lock(|| self.shared.lock_on_fault());
        }
        Ok(())
    }

    /// Returns the number by which assignments name it.
    pub fn place(&self) -> u32 {
        self.number % 2
    }
}

impl SignalPages {
    /// A client's first page.
    ///
    /// # Errors
    /// [`SegmentError`] if the kernel has no memory.
    pub fn create() -> Result<Self, SegmentError> {
        let current = Page::create(0)?;
        let in_force = (0, Arc::clone(&current.shared));
        Ok(Self { current, coming: None, in_force })
    }

    /// The page that the next plan gives the client.
    pub fn current(&self) -> &Page {
        &self.current
    }

    /// The page that will replace it, if one is under way.
    pub fn coming(&self) -> Option<&Page> {
        self.coming.as_ref().map(|coming| &coming.page)
    }

    /// The page that the next plan's cycles leave, if they use another one.
    pub fn left(&self) -> Option<&Arc<Shared<SignalPage>>> {
        (self.in_force.0 != self.current.number).then_some(&self.in_force.1)
    }

    /// Wakes the client, on whichever page it sleeps. Control thread.
    pub fn wake_unconditionally(&self, park: &impl rt::park::Park) {
        self.current.shared.wake_unconditionally(park);
        self.left().into_iter().for_each(|left| left.wake_unconditionally(park));
    }

    /// Notes that a former neighbour has page `number` mapped.
    pub fn revoke(&mut self, number: u32) {
        let coming = self.coming.as_mut().map(|coming| &mut coming.page);
        for page in coming.into_iter().chain([&mut self.current]) {
            // MUTATION: signal_pages.former_neighbour_keeps_page
            page.is_revoked |= page.number == number;
        }
    }

    /// Closes the current page. Control thread, before a plan has the client for the first time.
    ///
    /// # Errors
    /// See [`Shared::close_to_writers`].
    pub fn close_current(&mut self, locking: Locking) -> Result<(), SegmentError> {
        self.current.close(locking)
    }

    /// Notes that a new predecessor has to map a page: the current one if it is open, otherwise
    /// another one.
    pub fn need_open_page(&mut self) {
        self.current.lacks_writer |= self.current.memory.is_none();
    }

    /// Creates the page that replaces the current one if that has to be replaced, unless one is
    /// under way already. It is not created before the driver runs a plan with the page that it
    /// replaces: the client has places for two.
    pub fn replace_if_needed(&mut self, now_ns: u64) -> Option<&Page> {
        let is_needed = self.current.is_revoked || self.current.lacks_writer;
        if !is_needed || self.coming.is_some() || self.left().is_some() {
            return None;
        }
        // Without memory for it, the next plan tries again.
        let page = Page::create(self.current.number.wrapping_add(1)).ok();
        self.coming =
            page.map(|page| Successor { page, is_mapped: false, since_ns: now_ns, noted: 0 });
        self.coming()
    }

    /// Notes whether the client has mapped the coming page. If it cannot, another one is made for
    /// the next plan; returns the number of the page that is given up.
    pub fn answered(&mut self, is_mapped: bool) -> Option<u32> {
        match &mut self.coming {
            Some(coming) if is_mapped => {
                coming.is_mapped = true;
                None
            }
            coming => coming.take().map(|coming| coming.page.number),
        }
    }

    /// Whether a former neighbour has the current page mapped.
    pub fn is_revoked(&self) -> bool {
        self.current.is_revoked
    }

    /// Whether the client has mapped the coming page.
    pub fn is_coming_mapped(&self) -> bool {
        self.coming.as_ref().is_some_and(|coming| coming.is_mapped)
    }

    /// Whether those who are to map the coming page have had `patience_ns` for it.
    pub fn is_coming_overdue(&self, patience_ns: u64, now_ns: u64) -> bool {
        self.coming.as_ref().is_some_and(|coming| now_ns >= coming.since_ns + patience_ns)
    }

    /// Returns true once for each coming page and time that it may take: when that is over, so that
    /// a plan is needed.
    pub fn becomes_overdue(&mut self, now_ns: u64) -> bool {
        let is_over = |patience_ns: &u64| self.is_coming_overdue(*patience_ns, now_ns);
        let over = ALL_PATIENCE_NS.iter().filter(|patience_ns| is_over(patience_ns)).count();
        self.coming.as_mut().is_some_and(|coming| std::mem::replace(&mut coming.noted, over) < over)
    }

    /// Closes the coming page and makes it the client's from the next plan on. If it cannot be
    /// closed, another one is made for the next plan; returns the number of the page that is given
    /// up.
    pub fn advance(&mut self, locking: Locking) -> Option<u32> {
        let Successor { mut page, .. } = self.coming.take()?;
        if page.close(locking).is_err() {
            return Some(page.number);
        }
        self.current = page;
        None
    }

    /// Notes that the driver runs a plan in which the client has its current page; returns the
    /// number of the page that it has left.
    pub fn adopted(&mut self) -> Option<u32> {
        let left = self.left().is_some().then_some(self.in_force.0);
        self.in_force = (self.current.number, Arc::clone(&self.current.shared));
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revoked_page_is_replaced_once_the_client_has_mapped_another() {
        let mut pages = SignalPages::create().unwrap();
        assert!(pages.replace_if_needed(0).is_none());
        pages.revoke(7);
        assert!(pages.replace_if_needed(0).is_none(), "a page from long before");
        pages.revoke(0);
        assert_eq!(pages.replace_if_needed(0).map(Page::place), Some(1));
        assert!(pages.replace_if_needed(0).is_none(), "one at a time");
        assert!(!pages.is_coming_mapped());
        assert_eq!(pages.answered(true), None);
        assert!(pages.is_coming_mapped() && pages.left().is_none());
        assert_eq!(pages.advance(Locking::Nothing), None);
        assert_eq!((pages.current().number, pages.left().is_some()), (1, true));
        pages.revoke(1);
        assert!(
            pages.replace_if_needed(0).is_none(),
            "the client may sleep on page 0, whose place it would take"
        );
        assert_eq!((pages.adopted(), pages.adopted()), (Some(0), None));
        assert_eq!(pages.replace_if_needed(0).map(Page::place), Some(0));
    }

    #[test]
    fn a_page_that_the_client_cannot_map_is_tried_again() {
        let mut pages = SignalPages::create().unwrap();
        pages.revoke(0);
        assert!(pages.replace_if_needed(0).is_some());
        assert_eq!(pages.answered(false), Some(1));
        assert!(pages.coming().is_none());
        assert!(pages.replace_if_needed(0).is_some());
    }

    #[test]
    fn a_page_in_a_plan_is_replaced_for_a_new_predecessor() {
        let mut pages = SignalPages::create().unwrap();
        pages.need_open_page();
        assert!(pages.replace_if_needed(0).is_none(), "the first page is open");
        pages.close_current(Locking::Nothing).unwrap();
        assert!(pages.current().memory().is_none());
        pages.need_open_page();
        assert!(pages.replace_if_needed(0).is_some_and(|page| page.memory().is_some()));
        assert_eq!(pages.answered(true), None);
        assert_eq!(pages.advance(Locking::Nothing), None);
        assert_eq!((pages.current().number, pages.current().memory().is_none()), (1, true));
    }

    #[test]
    fn a_plan_is_needed_once_for_each_time_that_is_over() {
        let mut pages = SignalPages::create().unwrap();
        pages.revoke(0);
        pages.replace_if_needed(7);
        for patience_ns in [NEWCOMERS_PATIENCE_NS, PREDECESSORS_PATIENCE_NS] {
            assert!(!pages.becomes_overdue(6 + patience_ns));
            assert!(pages.becomes_overdue(7 + patience_ns));
            assert!(!pages.becomes_overdue(8 + patience_ns));
            assert!(pages.is_coming_overdue(patience_ns, 8 + patience_ns));
        }
    }
}
