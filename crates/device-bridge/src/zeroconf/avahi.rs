//! Avahi on the system bus: what publishes services in the local network, and finds others.

use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::mpsc::SyncSender;
use std::thread;
use std::time::Duration;

use anyhow::{Context, ensure};
use futures_core::Stream;
use zbus::connection::Builder;
use zbus::message::{Header, Type};
use zbus::{Connection, Message, MessageStream, OwnedObjectPath};

use super::service::{Resolved, SINKS, Service};

const NAME: &str = "org.freedesktop.Avahi";
const SERVER: &str = "org.freedesktop.Avahi.Server";
const GROUP: &str = "org.freedesktop.Avahi.EntryGroup";
const BROWSER: &str = "org.freedesktop.Avahi.ServiceBrowser";
const COLLISION: &str = "org.freedesktop.Avahi.CollisionError";
const BUS: &str = "org.freedesktop.DBus";
const BUS_OBJECT: &str = "/org/freedesktop/DBus";
/// Bound for each answer: Avahi waits some seconds for other machines.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// All interfaces, all protocols; the one with addresses of four bytes.
const ANY: i32 = -1;
const IPV4: i32 = 0;
/// A state of the server, and two of a group.
const RUNNING: i32 = 2;
const COLLIDES: i32 = 3;
const FAILS: i32 = 4;
/// The service is of this machine.
const LOCAL: u32 = 8;
/// How often a service gets another name before it is left out.
const NAMES: usize = 8;

/// What Avahi says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Signal {
    /// It has ended, and with it all that was asked of it.
    Gone,
    /// It is there, or goes on under another name of the host: what was published is not.
    There,
    /// A group was not published: another machine has the name, or so.
    Refused(String),
    Found(Sighting),
    Lost(Sighting),
}

/// A service of another machine, on an interface, by a protocol.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Sighting {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) domain: String,
    pub(super) interface: i32,
    pub(super) protocol: i32,
}

/// A connection to the system bus.
#[derive(Debug)]
pub(super) struct Avahi {
    bus: Connection,
}

impl Avahi {
    /// Connects, and has `take` take what Avahi says, on a thread of its own, until `take` says
    /// that it takes no more.
    ///
    /// # Errors
    /// There is no system bus, or nobody on it publishes services.
    pub(super) fn open<E: From<Signal> + Send + 'static>(
        events: SyncSender<E>,
    ) -> anyhow::Result<Self> {
        let (bus, owner) = zbus::block_on(connect()).context("cannot reach the system bus")?;
        ensure!(owner.is_some(), "no program publishes services: install and start avahi-daemon");
        let stream = MessageStream::from(&bus);
        let listen = move || zbus::block_on(listen(stream, owner, &events));
        thread::Builder::new().name("consort-avahi".into()).spawn(listen)?;
        Ok(Self { bus })
    }

    /// Publishes a service under this name, or another one if it is taken here; returns its group,
    /// and its name.
    ///
    /// # Errors
    /// Avahi refuses it.
    pub(super) fn publish(
        &self,
        service: &Service,
        name: &str,
        port: u16,
    ) -> zbus::Result<(String, String)> {
        zbus::block_on(async {
            let group: OwnedObjectPath =
                answer(&self.call("/", SERVER, "EntryGroupNew", &()).await?)?;
            let published = self.publish_in(&group, service, name, port).await;
            if published.is_err() {
                let _ = self.call(group.as_str(), GROUP, "Free", &()).await;
            }
            published.map(|name| (group.as_str().to_owned(), name))
        })
    }

    async fn publish_in(
        &self,
        group: &OwnedObjectPath,
        service: &Service,
        name: &str,
        port: u16,
    ) -> zbus::Result<String> {
        let Service { kind, subtypes, records, .. } = service;
        let (mut name, mut tries) = (name.to_owned(), 1);
        loop {
            let about = (ANY, ANY, 0_u32, &*name, *kind, "", "", port, records);
            match self.call(group.as_str(), GROUP, "AddService", &about).await {
                Err(zbus::Error::MethodError(error, ..))
                    if error.as_str() == COLLISION && tries < NAMES =>
                {
                    (name, tries) = (self.alternative(&name).await?, tries + 1);
                }
                decided => {
                    decided?;
                    break;
                }
            }
        }
        for subtype in subtypes {
            let about = (ANY, ANY, 0_u32, &*name, *kind, "", &**subtype);
            self.call(group.as_str(), GROUP, "AddServiceSubtype", &about).await?;
        }
        self.call(group.as_str(), GROUP, "Commit", &()).await.map(|_| name)
    }

    /// Returns another name in place of one that is taken.
    ///
    /// # Errors
    /// Avahi does not answer.
    pub(super) fn another_name(&self, name: &str) -> zbus::Result<String> {
        zbus::block_on(self.alternative(name))
    }

    async fn alternative(&self, name: &str) -> zbus::Result<String> {
        answer(&self.call("/", SERVER, "GetAlternativeServiceName", &name).await?)
    }

    /// Takes back what was published.
    pub(super) fn take_back(&self, group: &str) {
        // If Avahi has ended, so has the group.
        let _ = zbus::block_on(self.call(group, GROUP, "Free", &()));
    }

    /// Has services of this kind be found.
    ///
    /// # Errors
    /// Avahi refuses it.
    pub(super) fn browse(&self, kind: &str) -> zbus::Result<()> {
        let about = (ANY, ANY, kind, "", 0_u32);
        zbus::block_on(self.call("/", SERVER, "ServiceBrowserNew", &about)).map(|_| ())
    }

    /// Asks what a service says of itself.
    ///
    /// # Errors
    /// It does not answer in time.
    pub(super) fn resolve(&self, found: &Sighting) -> anyhow::Result<Resolved> {
        let Sighting { name, kind, domain, interface, protocol } = found;
        let ask = |addresses: i32| {
            let about = (*interface, *protocol, &**name, &**kind, &**domain, addresses, 0_u32);
            zbus::block_on(self.call("/", SERVER, "ResolveService", &about))
        };
        let said = ask(IPV4).or_else(|_| ask(ANY))?;
        type Said = (i32, i32, String, String, String, String, i32, String, u16, Vec<Vec<u8>>, u32);
        let (.., kind, _, host, _, address, port, records, _): Said = answer(&said)?;
        let address: IpAddr = address.parse()?;
        Ok(Resolved { is_sink: kind == SINKS, host, address, port, records })
    }

    async fn call<B>(
        &self,
        path: &str,
        interface: &str,
        method: &str,
        body: &B,
    ) -> zbus::Result<Message>
    where
        B: serde::Serialize + zbus::DynamicType,
    {
        self.bus.call_method(Some(NAME), path, Some(interface), method, body).await
    }
}

/// Reads the body of an answer.
fn answer<T>(message: &Message) -> zbus::Result<T>
where
    T: serde::de::DeserializeOwned + zbus::DynamicType + zbus::Type,
{
    message.body().deserialize()
}

/// Connects, and returns the bus's name of Avahi, if it is there. From then on, what it says comes.
async fn connect() -> zbus::Result<(Connection, Option<String>)> {
    let bus = Builder::system().method_timeout(ANSWER_TIMEOUT).build().await?;
    let rules = [
        format!("type='signal',sender='{NAME}'"),
        format!(
            "type='signal',sender='{BUS}',interface='{BUS}',member='NameOwnerChanged',arg0='{NAME}'"
        ),
    ];
    for rule in &rules {
        bus.call_method(Some(BUS), BUS_OBJECT, Some(BUS), "AddMatch", rule).await?;
    }
    // Has the bus start it, if it can.
    let _ = bus.call_method(Some(NAME), "/", Some(SERVER), "GetState", &()).await;
    let owner = bus.call_method(Some(BUS), BUS_OBJECT, Some(BUS), "GetNameOwner", &NAME).await;
    let owner = owner.ok().and_then(|owner| answer(&owner).ok());
    Ok((bus, owner))
}

/// Passes on what Avahi says, until nobody takes it or the bus has ended.
async fn listen<E: From<Signal>>(
    mut stream: MessageStream,
    mut owner: Option<String>,
    events: &SyncSender<E>,
) {
    while let Some(message) = poll_fn(|context| Pin::new(&mut stream).poll_next(context)).await {
        let Ok(message) = message else { continue };
        let header = message.header();
        let sender = header.sender().map(|name| name.as_str());
        let said = if sender == Some(BUS) {
            of_owner(&header, &message).map(|now| {
                owner = now;
                if owner.is_some() { Signal::There } else { Signal::Gone }
            })
        } else if sender.is_some() && sender == owner.as_deref() {
            of_avahi(&header, &message)
        } else {
            // Anybody may broadcast on this bus.
            None
        };
        // Answers come by the same way, so nothing is waited for here: what has no room is lost.
        if let Some(said) = said
            && let Err(std::sync::mpsc::TrySendError::Disconnected(_)) =
                events.try_send(said.into())
        {
            return;
        }
    }
    let _ = events.send(Signal::Gone.into());
}

/// Returns who is Avahi from now on, if a message says so.
fn of_owner(header: &Header<'_>, message: &Message) -> Option<Option<String>> {
    if header.member()?.as_str() != "NameOwnerChanged" {
        return None;
    }
    let (name, _, owner): (String, String, String) = answer(message).ok()?;
    (name == NAME).then(|| (!owner.is_empty()).then_some(owner))
}

fn of_avahi(header: &Header<'_>, message: &Message) -> Option<Signal> {
    if header.message_type() != Type::Signal {
        return None;
    }
    match (header.interface()?.as_str(), header.member()?.as_str()) {
        (SERVER, "StateChanged") => {
            let (state, _): (i32, String) = answer(message).ok()?;
            (state == RUNNING).then_some(Signal::There)
        }
        (GROUP, "StateChanged") => {
            let (state, _): (i32, String) = answer(message).ok()?;
            let path = header.path()?.as_str().to_owned();
            [COLLIDES, FAILS].contains(&state).then_some(Signal::Refused(path))
        }
        (BROWSER, "ItemNew") => {
            let (sighting, flags) = sighting(message)?;
            (flags & LOCAL == 0).then_some(Signal::Found(sighting))
        }
        (BROWSER, "ItemRemove") => Some(Signal::Lost(sighting(message)?.0)),
        _ => None,
    }
}

fn sighting(message: &Message) -> Option<(Sighting, u32)> {
    let said: (i32, i32, String, String, String, u32) = answer(message).ok()?;
    let (interface, protocol, name, kind, domain, flags) = said;
    Some((Sighting { name, kind, domain, interface, protocol }, flags))
}
