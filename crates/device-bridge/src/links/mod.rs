//! Links: what is heard on one device of streams is played on another, whose clock is another one.
//!
//! A link is a program with two streams. Each frame is heard at its end a constant time after it
//! was heard at its beginning: [`alignment`] computes that from the times that both devices
//! publish.

mod alignment;
mod frames;
mod link;
mod options;
mod own_device;
mod state;
#[cfg(test)]
mod tests;

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::thread;

use anyhow::Context;
use client::stream::StreamConnection;
use client::{OpenOptions, Session};
use sys::poll::Waker;

use link::Link;
pub use options::{LinkOptions, LinkSource};
pub use own_device::OwnDevice;
use state::LinkState;

/// The links of one process, and the client that stands for them, which has no ports.
#[derive(Debug)]
pub struct Links {
    session: Session,
    description: String,
    /// The device that is heard on the others, if it is there for that alone.
    _device: Option<OwnDevice>,
    latency_ms: u32,
    states: Vec<Arc<LinkState>>,
    waker: Arc<Waker>,
    /// Readable once the server has gone.
    server: StreamConnection,
}

impl Links {
    /// Starts the links, each on a thread of its own, which end with the process. All have the same
    /// latency, so devices that play the same are in step.
    ///
    /// # Errors
    /// The server refuses the client or a stream: there is no such device, or no such channel.
    pub fn start(
        session: Session,
        device: Option<OwnDevice>,
        all: Vec<LinkOptions>,
        open: &OpenOptions,
    ) -> anyhow::Result<Self> {
        let server = StreamConnection::open(open.server.as_deref())?;
        let waker = Arc::new(Waker::new().context("cannot make a waker")?);
        let names: Vec<String> = all.iter().map(ToString::to_string).collect();
        let description = names.join("; ");
        let latency_ms = all.first().map_or(0, |options| options.latency_ms);
        let states = all.into_iter().map(|options| {
            // Of its own: a request of one keeps no other waiting.
            let connection = StreamConnection::open(open.server.as_deref())?;
            let state = Arc::new(LinkState::new(Arc::clone(&waker)));
            let link = Link::open(&connection, &options, Arc::clone(&state))?;
            let shared = Arc::clone(&state);
            let body = move || {
                // The reason is the server's end or a device's, which users know of.
                let _ = link::run(link, &connection, &options);
                shared.end();
            };
            thread::Builder::new().name("consort-link".into()).spawn(body)?;
            Ok(state)
        });
        let states = states.collect::<anyhow::Result<Vec<_>>>()?;
        Ok(Self { session, description, _device: device, latency_ms, states, waker, server })
    }

    /// Returns the client that stands for them.
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Returns what they connect.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Returns what wakes the process's main thread when the state changes.
    pub(crate) fn waker(&self) -> &Waker {
        &self.waker
    }

    /// Returns whether one of them has ended: a device was removed, or the server has gone.
    #[must_use]
    pub fn has_left(&self) -> bool {
        self.states.iter().any(|state| state.has_ended())
    }

    /// Returns the latency and the state, for users.
    #[must_use]
    pub fn state(&self) -> String {
        let states: Vec<String> = self.states.iter().map(|state| state.text()).collect();
        format!("{} ms, {}", self.latency_ms, states.join("; "))
    }
}

/// Readable once the server has gone.
impl AsFd for Links {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.server.as_fd()
    }
}
