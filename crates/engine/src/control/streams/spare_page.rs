//! The page of the next stream, made before a program asks for it and waits.

use std::os::fd::OwnedFd;

use rt::shm::StreamPage;
use sys::memory::{SegmentError, Shared};

/// A new stream page, and the descriptor for the stream's program.
pub(super) type NewPage = (Shared<StreamPage>, OwnedFd);

/// Holds at most one page, of no stream yet.
#[derive(Debug)]
pub(super) struct SparePage(Option<NewPage>);

impl SparePage {
    /// Makes the first page, if there is memory for it.
    pub(super) fn new() -> Self {
        Self(page().ok())
    }

    /// Returns the page, or one that is made now.
    ///
    /// # Errors
    /// [`SegmentError`] if there is no memory for it.
    pub(super) fn take(&mut self) -> Result<NewPage, SegmentError> {
        self.0.take().map_or_else(page, Ok)
    }

    /// Makes a page in place of one that was taken, when nobody waits. Without memory, the next
    /// stream has its own made.
    pub(super) fn renew(&mut self) {
        if self.0.is_none() {
            self.0 = page().ok();
        }
    }
}

fn page() -> Result<NewPage, SegmentError> {
    Shared::for_readers("consort-stream-page")
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn each_stream_has_a_page_of_its_own() {
        let mut spare = SparePage::new();
        assert!(spare.0.is_some(), "the first stream does not wait");
        let first = spare.take().expect("memory");
        assert!(spare.0.is_none(), "nothing is kept of what was taken");
        let second = spare.take().expect("memory");
        spare.renew();
        assert!(spare.0.is_some(), "nor does the next one after another has ended");
        let third = spare.take().expect("memory");
        let inodes = [first, second, third].map(|(page, memfd)| {
            let inode = File::from(memfd).metadata().expect("metadata").ino();
            (page, inode)
        });
        let [first, second, third] = &inodes;
        assert!(first.1 != second.1 && second.1 != third.1 && third.1 != first.1);
    }
}
