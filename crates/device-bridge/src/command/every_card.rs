//! `consort run --stream-card all`: each card that plays or captures becomes a device for streams,
//! now or when it is plugged in.

use std::collections::BTreeMap;

use client::Observer;
use client::stream::{ServerWatch, Watched};
use sys::poll::{Interest, Poller};
use sys::signals::TerminationSignals;

use super::of_server;
use super::serve::Options;

/// How long after that a card is looked at, ns: its owner is set after it has come.
const SETTLING_NS: u64 = 500_000_000;

/// Tokens of what is waited for.
const SIGNALS: u64 = 0;
const SERVER: u64 = 1;
const NODES: u64 = 2;

/// The process that adds them.
pub(super) struct EveryCard {
    server: Observer,
    watch: ServerWatch,
    /// The cards that were added (`true`), or could not be.
    tried: BTreeMap<String, bool>,
}

impl EveryCard {
    /// Connects to a server.
    pub(super) fn open(server: &str) -> anyhow::Result<Self> {
        let watch = ServerWatch::open(Some(server), Watched::Devices)?;
        Ok(Self { server: Observer::open(Some(server))?, watch, tried: BTreeMap::new() })
    }

    /// Adds cards until the server ends, or this process is asked to.
    pub(super) fn serve(mut self, signals: &TerminationSignals) -> anyhow::Result<()> {
        let nodes = device::watch_cards();
        let (poller, mut events) = (Poller::new()?, Vec::new());
        poller.add(signals, SIGNALS, Interest::Readable)?;
        poller.add(&self.watch, SERVER, Interest::Readable)?;
        if let Some(nodes) = &nodes {
            poller.add(nodes, NODES, Interest::Readable)?;
        }
        let mut look_ns = None;
        self.look()?;
        loop {
            poller.wait(&mut events, look_ns)?;
            if signals.read()?.is_some() || self.watch.has_changed().is_err() {
                return Ok(());
            }
            if let Some(nodes) = nodes.as_ref().filter(|_| events.iter().any(|e| e.token == NODES))
            {
                nodes.reset();
                look_ns = Some(sys::clock::now_ns() + SETTLING_NS);
            } else if look_ns.is_some_and(|due_ns| due_ns <= sys::clock::now_ns()) {
                look_ns = None;
                self.look()?;
            }
        }
    }

    /// Adds the cards that are new. The server keeps those that it has had for when they are
    /// plugged in again.
    fn look(&mut self) -> anyhow::Result<()> {
        let cards = device::stream_cards();
        let is_there = |id: &String| cards.iter().any(|(card, _)| card == id);
        self.tried.retain(|id, is_added| *is_added || is_there(id));
        let driver = self.server.status()?.driver;
        for (id, device) in cards {
            if driver.contains(&device) || self.tried.contains_key(&id) {
                continue;
            }
            let options = Options { name: Some(id.clone()), ..Options::card_for_streams(&device) };
            let added = of_server::add(&self.server, &options);
            if let Err(error) = &added {
                eprintln!("consort: the card '{id}' is not a device for streams: {error:#}");
            }
            self.tried.insert(id, added.is_ok());
        }
        Ok(())
    }
}
