//! The server of a command, and what interrupts the command's sleep: signals, and that server's
//! end.

use anyhow::{Context, bail};
use client::Error;
use client::stream::{PlaybackStream, RecordStream, ServerWatch, StreamConnection, Watched};
use sys::clock::now_ns;
use sys::poll::{Interest, Poller};
use sys::signals::{Signal, TerminationSignals};

/// A stream that goes on with the next server.
pub(crate) trait LastingStream {
    /// Leaves a server that has gone at `at_ns`.
    fn leave(&mut self, at_ns: u64);

    /// Goes on at the next one.
    ///
    /// # Errors
    /// Why it cannot.
    fn return_to(&mut self, connection: &StreamConnection) -> Result<(), Error>;
}

impl LastingStream for PlaybackStream {
    fn leave(&mut self, at_ns: u64) {
        Self::leave(self, at_ns);
    }

    fn return_to(&mut self, connection: &StreamConnection) -> Result<(), Error> {
        Self::return_to(self, connection)
    }
}

impl LastingStream for RecordStream {
    fn leave(&mut self, at_ns: u64) {
        Self::leave(self, at_ns);
    }

    fn return_to(&mut self, connection: &StreamConnection) -> Result<(), Error> {
        Self::return_to(self, connection)
    }
}

/// The connection to the server, and the signals that end the command.
#[derive(Debug)]
pub(crate) struct Server {
    connection: StreamConnection,
    signals: TerminationSignals,
    poller: Poller,
    /// Of the server that this is, by name.
    watch: Option<(String, ServerWatch)>,
}

/// What has ended a sleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interruption {
    Signal(Signal),
    ServerGone,
    /// A device has changed, or a stream is wanted on another one.
    DevicesChanged,
}

/// How the wait for the next server has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// The stream is on the next one.
    Returned {
        /// How long there was none.
        gone_ms: u64,
    },
    Signal(Signal),
}

const SIGNALS: u64 = 0;
const SERVER: u64 = 1;
const DEVICES: u64 = 2;
const NS_PER_MS: u64 = 1_000_000;

impl Server {
    /// Watches the connection and the signals.
    ///
    /// # Errors
    /// The system has no descriptors left.
    pub(crate) fn new(
        connection: StreamConnection,
        signals: TerminationSignals,
    ) -> anyhow::Result<Self> {
        let poller = Poller::new()?;
        poller.add(&signals, SIGNALS, Interest::Readable)?;
        poller.add(&connection, SERVER, Interest::Readable)?;
        Ok(Self { connection, signals, poller, watch: None })
    }

    /// Has changes of the devices end sleeps, on the server of this name.
    ///
    /// # Errors
    /// The errors of connecting.
    pub(crate) fn watch_devices(&mut self, server: &str) -> anyhow::Result<()> {
        let watch = ServerWatch::open(Some(server), Watched::Devices)?;
        self.poller.add(&watch, DEVICES, Interest::Readable)?;
        self.watch = Some((server.to_owned(), watch));
        Ok(())
    }

    /// Returns the connection to the server.
    pub(crate) fn connection(&self) -> &StreamConnection {
        &self.connection
    }

    /// Returns whether the devices have changed.
    fn have_devices_changed(&mut self) -> anyhow::Result<bool> {
        let Some((_, watch)) = &mut self.watch else { return Ok(false) };
        match watch.has_changed() {
            Ok(changed) => Ok(changed),
            // The connection says so as well.
            Err(Error::ServerGone) => {
                self.poller.remove(watch)?;
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Sleeps until `until_ns`; returns earlier with what interrupts that.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn sleep_until(&mut self, until_ns: u64) -> anyhow::Result<Option<Interruption>> {
        let mut events = Vec::new();
        while now_ns() < until_ns {
            self.poller.wait(&mut events, Some(until_ns))?;
            let is_ready = |token| events.iter().any(|event| event.token == token);
            // First: the command may have been asked to end together with its server.
            if is_ready(SIGNALS)
                && let Some(signal) = self.signals.read().context("cannot read signals")?
            {
                return Ok(Some(Interruption::Signal(signal)));
            }
            if is_ready(SERVER) {
                return Ok(Some(Interruption::ServerGone));
            }
            if is_ready(DEVICES) && self.have_devices_changed()? {
                return Ok(Some(Interruption::DevicesChanged));
            }
        }
        Ok(None)
    }

    /// Waits for the server that follows this one, which has gone, and has the stream go on there.
    ///
    /// # Errors
    /// No server follows, or the stream cannot go on there.
    pub(crate) fn await_next(&mut self, stream: &mut impl LastingStream) -> anyhow::Result<Wait> {
        let Some(mut awaited) = self.connection.await_next(now_ns()) else {
            bail!("the server has ended");
        };
        stream.leave(awaited.gone_ns());
        // Both stay readable.
        self.poller.remove(&self.connection)?;
        let watched = self.watch.take().map(|(server, watch)| {
            // It may be out already.
            let _ = self.poller.remove(&watch);
            server
        });
        loop {
            if let Some(next) = awaited.attempt(|next| stream.return_to(next))? {
                self.poller.add(&next, SERVER, Interest::Readable)?;
                self.connection = next;
                if let Some(server) = watched {
                    self.watch_devices(&server)?;
                }
                let gone_ms = now_ns().saturating_sub(awaited.gone_ns()) / NS_PER_MS;
                return Ok(Wait::Returned { gone_ms });
            }
            if let Some(Interruption::Signal(signal)) = self.sleep_until(awaited.due_ns())? {
                return Ok(Wait::Signal(signal));
            }
        }
    }
}
