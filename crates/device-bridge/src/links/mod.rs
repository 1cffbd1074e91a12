//! Links: what is heard on one device of streams is played on another, whose clock is another one.
//!
//! A link is a program with two streams. Each frame is heard at its end a constant time after it
//! was heard at its beginning: [`alignment`] computes that from the times that both devices
//! publish.

mod alignment;
mod blocks;
mod circles;
mod echo;
mod ends;
mod frames;
mod inlet;
mod link;
mod mix;
mod options;
mod outlet;
mod own_device;
mod reference;
mod state;
#[cfg(test)]
mod tests;

use std::fmt::Debug;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::thread;

use anyhow::Context;
use client::stream::StreamConnection;
use client::{OpenOptions, Session};
use sys::poll::Waker;

use crate::pipes::Fifo;
pub use echo::EchoOptions;
pub(crate) use ends::{Sink, Source};
use link::DeviceLink;
pub(crate) use link::{End, INTERVALS, Link, LinkShape, open_sink, open_source};
pub use options::{LinkMix, LinkOptions, LinkSource, Processing};
pub use own_device::OwnDevice;
pub(crate) use state::LinkState;

/// The links of one process, and the client that stands for them, which has no ports.
#[derive(Debug)]
pub struct Links {
    parts: Parts,
    states: Vec<Arc<LinkState>>,
    waker: Arc<Waker>,
    /// Readable once the server has gone.
    server: StreamConnection,
}

/// What links have besides their threads.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) session: Session,
    /// What they connect, for users.
    pub(crate) description: String,
    pub(crate) latency_ms: Option<u32>,
    /// The device that is heard elsewhere, if it is there for that alone.
    pub(crate) _device: Option<OwnDevice>,
    /// What is read or written instead of a device.
    pub(crate) _fifo: Option<Fifo>,
    /// What else ends with these links.
    pub(crate) _ending: Option<Box<dyn Debug + Send + Sync>>,
}

impl Parts {
    /// Creates the parts of links that have neither a device nor a FIFO of their own.
    pub(crate) fn new(session: Session, description: String, latency_ms: Option<u32>) -> Self {
        let (_device, _fifo, _ending) = (None, None, None);
        Self { session, description, latency_ms, _device, _fifo, _ending }
    }
}

/// What a link's thread has of its own: a request of one keeps no other waiting.
pub(crate) struct Program {
    pub(crate) connection: StreamConnection,
    pub(crate) state: Arc<LinkState>,
}

/// Runs a link on a thread of its own, which ends with the process.
pub(crate) fn spawn(
    state: Arc<LinkState>,
    run: impl FnOnce() -> anyhow::Result<()> + Send + 'static,
) -> anyhow::Result<()> {
    let body = move || {
        state.end(run().err().map(|error| cli::error_chain(&error)));
    };
    thread::Builder::new().name("consort-link".into()).spawn(body)?;
    Ok(())
}

impl Links {
    /// Starts links, each on a thread of its own. All have the same latency, so devices that play
    /// the same are in step.
    ///
    /// # Errors
    /// The server refuses the client or a stream: there is no such device, or no such channel.
    pub fn start(
        session: Session,
        device: Option<OwnDevice>,
        all: Vec<LinkOptions>,
        open: &OpenOptions,
    ) -> anyhow::Result<Self> {
        let names: Vec<String> = all.iter().map(ToString::to_string).collect();
        let latency_ms = all.first().map(|options| options.latency_ms);
        let parts = Parts { _device: device, ..Parts::new(session, names.join("; "), latency_ms) };
        Self::begin(parts, open, |program| {
            all.into_iter().try_for_each(|options| {
                let Program { connection, state } = program()?;
                let link = DeviceLink::open(&connection, &options, Arc::clone(&state))?;
                spawn(state, move || link::run(link, &connection, &options))
            })
        })
    }

    /// Starts what `begin` starts, with what it asks for.
    ///
    /// # Errors
    /// There is no server; those of `begin`.
    pub(crate) fn begin(
        parts: Parts,
        open: &OpenOptions,
        begin: impl FnOnce(&mut dyn FnMut() -> anyhow::Result<Program>) -> anyhow::Result<()>,
    ) -> anyhow::Result<Self> {
        let server = StreamConnection::open(open.server.as_deref())?;
        let waker = Arc::new(Waker::new().context("cannot make a waker")?);
        let mut states = Vec::new();
        begin(&mut || {
            let connection = StreamConnection::open(open.server.as_deref())?;
            let state = Arc::new(LinkState::new(Arc::clone(&waker)));
            states.push(Arc::clone(&state));
            Ok(Program { connection, state })
        })?;
        Ok(Self { parts, states, waker, server })
    }

    /// Returns the client that stands for them.
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.parts.session
    }

    /// Returns what they connect.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.parts.description
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

    /// Returns why one of them has ended, if it says.
    #[must_use]
    pub(crate) fn reason(&self) -> Option<&str> {
        self.states.iter().find_map(|state| state.reason())
    }

    /// Returns the latency and the state, for users.
    #[must_use]
    pub fn state(&self) -> String {
        let states: Vec<String> = self.states.iter().map(|state| state.text()).collect();
        let latency = self.parts.latency_ms.map_or_else(String::new, |ms| format!("{ms} ms, "));
        format!("{latency}{}", states.join("; "))
    }
}

/// Readable once the server has gone.
impl AsFd for Links {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.server.as_fd()
    }
}
