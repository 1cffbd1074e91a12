//! The devices of a front end are published, as long as they are there.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};
use client::{OpenOptions, Session};
use pulse::RemoteControl;

use super::avahi::{Avahi, Signal};
use super::service::{Service, services};
use crate::links::{LinkState, Links, Parts, Program, spawn};

/// Things that were said and not looked at, at most.
const MOST_WAITING: usize = 1024;
/// Changes of devices within this time are one.
const SETTLES: Duration = Duration::from_millis(250);

/// What is published, and with which port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PublishOptions {
    /// Where the front end listens, in PulseAudio's words.
    pub(crate) front_end: String,
    /// At which programs of other machines come in.
    pub(crate) port: u16,
}

/// What the publisher is notified of.
#[derive(Debug)]
enum Event {
    Services(Vec<Service>),
    Avahi(Signal),
    /// The front end has gone: why.
    Ended(String),
}

impl From<Signal> for Event {
    fn from(signal: Signal) -> Self {
        Self::Avahi(signal)
    }
}

/// Publishes, on a thread of its own.
///
/// # Errors
/// Nobody publishes services; the front end cannot be reached.
pub(crate) fn start(
    session: Session,
    options: &PublishOptions,
    open: &OpenOptions,
) -> anyhow::Result<Links> {
    let (events, said) = sync_channel(MOST_WAITING);
    let avahi = Avahi::open(events.clone())?;
    let mut control = RemoteControl::open(&options.front_end, "zeroconf publisher")?;
    control.subscribe()?;
    let title = format!("sinks and sources of port {}", options.port);
    let parts = Parts::new(session, title, None);
    let port = options.port;
    Links::begin(parts, open, |program| {
        let Program { connection: _, state } = program()?;
        let watch = move || watch(control, &events);
        thread::Builder::new().name("consort-devices".into()).spawn(watch)?;
        let (wanted, published, names) = Default::default();
        let publisher = Publisher { avahi, said, port, wanted, published, names };
        spawn(Arc::clone(&state), move || publisher.run(&state))
    })
}

/// Passes on what there is to publish, each time that it changes.
fn watch(mut control: RemoteControl, events: &SyncSender<Event>) {
    let next = |control: &mut RemoteControl| -> anyhow::Result<Event> {
        let all = services(&control.server()?, &control.devices()?);
        Ok(Event::Services(all))
    };
    loop {
        let event = next(&mut control);
        let is_last = event.is_err();
        let event = event.unwrap_or_else(|error| Event::Ended(cli::error_chain(&error)));
        if events.send(event).is_err() || is_last {
            return;
        }
        // If it fails, so does what is asked next.
        if control.await_change().is_ok() {
            thread::sleep(SETTLES);
        }
    }
}

/// What is published, by the names that are wished for.
struct Publisher {
    avahi: Avahi,
    said: Receiver<Event>,
    port: u16,
    wanted: Vec<Service>,
    published: BTreeMap<Key, Published>,
    /// Names in place of those that another machine has.
    names: BTreeMap<Key, String>,
}

/// The name that is wished for, and the kind.
type Key = (String, &'static str);

/// A service that is published.
struct Published {
    service: Service,
    group: String,
    name: String,
}

impl Publisher {
    /// Publishes until the front end ends.
    ///
    /// # Errors
    /// Why it has ended.
    fn run(mut self, state: &LinkState) -> anyhow::Result<()> {
        loop {
            match self.said.recv().context("nobody says anything more")? {
                Event::Services(wanted) => self.wanted = wanted,
                Event::Avahi(Signal::Gone) => {
                    self.published.clear();
                    state.set_plays(false);
                    continue;
                }
                Event::Avahi(Signal::There) => self.take_back_all(),
                Event::Avahi(Signal::Refused(group)) => self.refused(&group),
                Event::Avahi(Signal::Found(_) | Signal::Lost(_)) => continue,
                Event::Ended(reason) => bail!("{reason}"),
            }
            self.settle();
            state.set_plays(!self.published.is_empty());
        }
    }

    fn take_back_all(&mut self) {
        for Published { group, .. } in std::mem::take(&mut self.published).into_values() {
            self.avahi.take_back(&group);
        }
    }

    /// Another machine has the name: another one is published.
    fn refused(&mut self, group: &str) {
        let refused = self.published.iter().find(|(_, known)| known.group == group);
        let Some(key) = refused.map(|(key, _)| key.clone()) else { return };
        self.avahi.take_back(group);
        if let Some(Published { name, .. }) = self.published.remove(&key)
            && let Ok(other) = self.avahi.another_name(&name)
        {
            self.names.insert(key, other);
        }
    }

    /// Publishes what is wanted and is not published, and takes back the rest.
    fn settle(&mut self) {
        let is_wanted = |service: &Service| self.wanted.contains(service);
        let (kept, gone): (BTreeMap<_, _>, BTreeMap<_, _>) = std::mem::take(&mut self.published)
            .into_iter()
            .partition(|(_, known)| is_wanted(&known.service));
        gone.into_values().for_each(|known| self.avahi.take_back(&known.group));
        self.published = kept;
        for service in &self.wanted {
            let key = (service.name.clone(), service.kind);
            if self.published.contains_key(&key) {
                continue;
            }
            // What Avahi refuses is tried again with the next change.
            let name = self.names.get(&key).unwrap_or(&service.name);
            if let Ok((group, name)) = self.avahi.publish(service, name, self.port) {
                let published = Published { service: service.clone(), group, name };
                self.published.insert(key, published);
            }
        }
    }
}
