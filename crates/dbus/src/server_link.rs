//! The connection with the server of a name. It is noticed when one comes, changes and goes, and
//! none is started by that, although a service manager may wait for the first program.

use std::fs::DirBuilder;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use client::stream::{ServerWatch, Watched};
use client::{Error, Observer};
use sys::directory::DirectoryWatch;
use sys::lock::is_served;
use sys::poll::{Interest, Poller};
use sys::runtime_directory::{lock_path, server_directory};

use crate::watch::SERVER;

/// The server of a name, or the place at which it will be noticed.
#[derive(Debug)]
pub(crate) struct ServerLink {
    /// What the main loop sleeps on.
    poller: Arc<Poller>,
    server: Option<Connected>,
    /// `None` while there is a server, or nothing to be noticed.
    place: Option<Place>,
    /// One serves at the place, and could not be connected with.
    is_unreachable: bool,
}

#[derive(Debug)]
struct Connected {
    observer: Arc<Observer>,
    /// Readable when its graph has changed, and when it has gone.
    watch: ServerWatch,
}

/// The directory of a server that does not run. It is readable when one begins to serve there.
#[derive(Debug)]
struct Place {
    name: String,
    watch: DirectoryWatch,
    /// The directory's device and inode: another one of its name may have come since.
    inode: (u64, u64),
}

/// What has become of the server since the last look.
#[derive(Debug, Default)]
pub(crate) struct News {
    /// The one that was there has gone.
    pub(crate) is_lost: bool,
    /// There is another one.
    pub(crate) is_new: bool,
    /// There is one of another release, for this reason.
    pub(crate) other_release: Option<String>,
}

impl ServerLink {
    /// A link to no server yet, whose descriptors are ready in `poller` when it is to be looked at.
    pub(crate) fn new(poller: Arc<Poller>) -> Self {
        Self { poller, server: None, place: None, is_unreachable: false }
    }

    /// The server, if there was one at the last look.
    pub(crate) fn server(&self) -> Option<Arc<Observer>> {
        self.server.as_ref().map(|server| Arc::clone(&server.observer))
    }

    /// Whether nothing will be ready when a server comes: it has to be looked for from time to
    /// time.
    pub(crate) fn is_blind(&self) -> bool {
        self.server.is_none() && (self.place.is_none() || self.is_unreachable)
    }

    /// Looks whether the server of this name is still there, or has come.
    pub(crate) fn look(&mut self, name: &str) -> News {
        let mut news = News::default();
        if self.server.as_mut().is_some_and(|server| server.has_gone() || server.name() != name) {
            let lost = self.server.take();
            let _ = lost.map(|lost| self.poller.remove(&lost.watch));
            news.is_lost = true;
        }
        if self.server.is_none() {
            // Before the look, so that one that comes after it is noticed.
            self.watch_place(name);
            let connected = self.connect(name);
            self.is_unreachable = connected.is_err() && serves(name);
            match connected {
                Ok(server) => {
                    self.leave_place();
                    self.server = Some(server);
                    news.is_new = true;
                }
                Err(error) if error.is_of_other_release() => {
                    news.other_release = Some(error.to_string());
                }
                Err(_) => {}
            }
        }
        news
    }

    fn connect(&self, name: &str) -> Result<Connected, Error> {
        let observer = Arc::new(Observer::open_running(Some(name))?);
        let watch = ServerWatch::open(Some(name), Watched::Graph)?;
        let mut server = Connected { observer, watch };
        if server.has_gone() || self.add(&server.watch).is_err() {
            return Err(Error::ServerGone);
        }
        Ok(server)
    }

    fn add(&self, watch: impl AsFd) -> io::Result<()> {
        self.poller.add(watch, SERVER, Interest::Readable)
    }

    fn watch_place(&mut self, name: &str) {
        if self.place.as_ref().is_none_or(|place| place.name != name || !place.is_there()) {
            self.leave_place();
            self.place = Place::of(name).ok().filter(|place| self.add(&place.watch).is_ok());
        }
        if let Some(place) = &self.place {
            place.watch.reset();
        }
    }

    fn leave_place(&mut self) {
        let place = self.place.take();
        let _ = place.map(|place| self.poller.remove(&place.watch));
    }
}

impl Connected {
    fn name(&self) -> &str {
        self.observer.server_name()
    }

    fn has_gone(&mut self) -> bool {
        self.observer.engine().has_stopped() || self.watch.has_changed().is_err()
    }
}

impl Place {
    /// Watches the directory in which a server of this user would serve, which may be the first to
    /// do so. Nothing is to be seen there of a server for a group.
    fn of(name: &str) -> io::Result<Self> {
        if std::env::var_os("JACK_PROMISCUOUS_SERVER").is_some_and(|group| !group.is_empty()) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let directory = directory(name)?;
        DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
        let watch = DirectoryWatch::new(&directory)?;
        Ok(Self { name: name.to_owned(), watch, inode: inode(&directory)? })
    }

    fn is_there(&self) -> bool {
        directory(&self.name).and_then(|directory| inode(&directory)).ok() == Some(self.inode)
    }
}

fn directory(name: &str) -> io::Result<PathBuf> {
    server_directory(name).map_err(io::Error::other)
}

fn inode(directory: &Path) -> io::Result<(u64, u64)> {
    directory.metadata().map(|found| (found.dev(), found.ino()))
}

fn serves(name: &str) -> bool {
    directory(name).is_ok_and(|directory| is_served(&lock_path(&directory)))
}
