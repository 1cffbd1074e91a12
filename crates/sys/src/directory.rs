//! Notices that files come and go in a directory.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};

/// Readable once a file has come to a directory, has gone from there, or may be used by others.
#[derive(Debug)]
pub struct DirectoryWatch(OwnedFd);

impl DirectoryWatch {
    /// Watches a directory.
    ///
    /// # Errors
    /// There is no such directory, or the user has too many watches already.
    pub fn new(directory: &Path) -> io::Result<Self> {
        let watch = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        let news = WatchFlags::CREATE | WatchFlags::DELETE | WatchFlags::ATTRIB;
        inotify::add_watch(&watch, directory, news)?;
        Ok(Self(watch))
    }

    /// Takes all news: it is readable again once there are more.
    pub fn reset(&self) {
        let mut news = [MaybeUninit::uninit(); 4096];
        // Ends when nothing is left; what is reported is looked up by whom it concerns.
        while rustix::io::read(&self.0, &mut news).is_ok_and(|(read, _)| !read.is_empty()) {}
    }
}

impl AsFd for DirectoryWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poll::{Interest, Poller};

    #[test]
    fn it_is_readable_once_for_each_file_that_comes_or_goes() {
        let directory = std::env::temp_dir().join(format!("consort-watch-{}", std::process::id()));
        std::fs::create_dir(&directory).unwrap();
        let (watch, poller) = (DirectoryWatch::new(&directory).unwrap(), Poller::new().unwrap());
        poller.add(&watch, 3, Interest::Readable).unwrap();
        let file = directory.join("pcmC1D0p");
        let has_news = || {
            let mut events = Vec::new();
            poller.wait(&mut events, Some(0)).unwrap();
            watch.reset();
            !events.is_empty()
        };
        assert!(!has_news());
        std::fs::write(&file, "").unwrap();
        assert!(has_news() && !has_news());
        std::fs::remove_file(&file).unwrap();
        assert!(has_news() && !has_news());
        std::fs::remove_dir(&directory).unwrap();
        assert!(DirectoryWatch::new(&directory).is_err());
    }
}
