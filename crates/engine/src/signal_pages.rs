//! A client's signal page, and the one that replaces it when a former neighbour has it mapped.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use rt::shm::SignalPage;
use sys::memory::{SegmentError, Shared};

/// One page.
#[derive(Debug)]
pub struct Page {
    /// Number among the client's pages.
    pub number: u32,
    /// For the client, and for its predecessors.
    pub memory: Arc<OwnedFd>,
    /// For the server itself.
    pub shared: Arc<Shared<SignalPage>>,
    /// A former neighbour has it mapped.
    must_be_replaced: bool,
}

/// The pages of one client.
#[derive(Debug)]
pub struct SignalPages {
    /// The page that the next plan gives the client.
    current: Page,
    /// The page after that, and whether the client has mapped it.
    coming: Option<(Page, bool)>,
    /// Number and memory of the page of the plan in force, where the client may sleep.
    in_force: (u32, Arc<Shared<SignalPage>>),
}

impl Page {
    fn create(number: u32) -> Result<Self, SegmentError> {
        let (shared, fd) = Shared::for_writers("consort-signals")?;
        Ok(Self { number, memory: Arc::new(fd), shared: Arc::new(shared), must_be_replaced: false })
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
        self.coming.as_ref().map(|(page, _)| page)
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
        let coming = self.coming.as_mut().map(|(page, _)| page);
        for page in coming.into_iter().chain([&mut self.current]) {
            page.must_be_replaced |= page.number == number;
        }
    }

    /// Creates the page that replaces a revoked one, unless one is under way already. It is not
    /// created before the driver runs a plan with the page that it replaces: the client has places
    /// for two.
    pub fn replace_if_revoked(&mut self) -> Option<&Page> {
        if !self.current.must_be_replaced || self.coming.is_some() || self.left().is_some() {
            return None;
        }
        // Without memory for it, the next plan tries again.
        self.coming =
            Page::create(self.current.number.wrapping_add(1)).ok().map(|page| (page, false));
        self.coming()
    }

    /// Notes whether the client has mapped the coming page. If it cannot, another one is made for
    /// the next plan.
    pub fn answered(&mut self, is_mapped: bool) {
        match &mut self.coming {
            Some((_, mapped)) if is_mapped => *mapped = true,
            coming => *coming = None,
        }
    }

    /// Whether the client has mapped the coming page.
    pub fn is_coming_mapped(&self) -> bool {
        self.coming.as_ref().is_some_and(|(_, is_mapped)| *is_mapped)
    }

    /// Makes the coming page the client's from the next plan on.
    pub fn advance(&mut self) {
        if let Some((page, _)) = self.coming.take() {
            self.current = page;
        }
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
        assert!(pages.replace_if_revoked().is_none());
        pages.revoke(7);
        assert!(pages.replace_if_revoked().is_none(), "a page from long before");
        pages.revoke(0);
        assert_eq!(pages.replace_if_revoked().map(Page::place), Some(1));
        assert!(pages.replace_if_revoked().is_none(), "one at a time");
        assert!(!pages.is_coming_mapped());
        pages.answered(true);
        assert!(pages.is_coming_mapped() && pages.left().is_none());
        pages.advance();
        assert_eq!((pages.current().number, pages.left().is_some()), (1, true));
        pages.revoke(1);
        assert!(
            pages.replace_if_revoked().is_none(),
            "the client may sleep on page 0, whose place it would take"
        );
        assert_eq!((pages.adopted(), pages.adopted()), (Some(0), None));
        assert_eq!(pages.replace_if_revoked().map(Page::place), Some(0));
    }

    #[test]
    fn a_page_that_the_client_cannot_map_is_tried_again() {
        let mut pages = SignalPages::create().unwrap();
        pages.revoke(0);
        assert!(pages.replace_if_revoked().is_some());
        pages.answered(false);
        assert!(pages.coming().is_none());
        assert!(pages.replace_if_revoked().is_some());
    }
}
