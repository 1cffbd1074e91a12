//! Attaching to a running server, as its observer.

use anyhow::anyhow;
use client::{Observer, PortInfo, Property, RegistryView, port_uuid};
use proto::request::RequestError;
use proto::status::Status;

use crate::server::{Latency, Port, Server, TransportView};

/// Connects to the server `name`.
pub(crate) fn to(name: &str) -> Result<impl Server, client::Error> {
    Observer::open(Some(name))
}

impl Server for Observer {
    fn ports(&self) -> anyhow::Result<Vec<Port>> {
        let registry = self.registry();
        let properties = self.properties(None)?;
        Ok(registry.ports().map(|port| read(registry, port, &properties)).collect())
    }

    fn status(&self) -> anyhow::Result<Status> {
        Ok(Self::status(self)?)
    }

    fn connect(&self, source: &str, destination: &str) -> anyhow::Result<()> {
        Self::connect(self, source, destination).map_err(with_hint)
    }

    fn disconnect(&self, source: &str, destination: &str) -> anyhow::Result<()> {
        Self::disconnect(self, source, destination).map_err(with_hint)
    }

    fn transport(&self) -> anyhow::Result<TransportView> {
        let transport = Self::transport(self);
        let timebase = self.registry().client(transport.master).map(|client| client.name);
        let sample_rate_hz = self.engine().info().map_or(0, |info| info.sample_rate_hz);
        Ok(TransportView { transport, sample_rate_hz, timebase })
    }

    fn roll(&self, roll: bool) -> anyhow::Result<()> {
        Ok(self.roll_transport(roll)?)
    }

    fn locate(&self, frame: u32) -> anyhow::Result<()> {
        Ok(self.locate_transport(&client::Position::at(frame))?)
    }

    fn stop(&self) -> anyhow::Result<()> {
        Ok(Self::stop(self)?)
    }
}

/// What to do about a port that is not there, where the server itself has no name like it to offer.
fn with_hint(error: client::Error) -> anyhow::Error {
    match &error {
        client::Error::Refused(RequestError::UnknownPort { nearest: None, .. }) => {
            anyhow!("{error}: `consort ls` names those that there are")
        }
        _ => error.into(),
    }
}

/// The port with what the registry knows of it elsewhere. What has gone in the meantime is left out.
fn read(registry: RegistryView<'_>, port: PortInfo, properties: &[Property]) -> Port {
    let latency = |capture| {
        let range = registry.port_latency(port.id, capture).unwrap_or_default();
        Latency { min_frames: range.min, max_frames: range.max }
    };
    let peers = registry.connections(port.id).into_iter();
    let subject = port_uuid(port.id);
    Port {
        id: port.id,
        properties: properties.iter().filter(|property| property.subject == subject).cloned().collect(),
        owner: registry.client(port.owner).map(|client| client.name).unwrap_or_default(),
        port_type: port.port_type,
        flags: port.flags,
        peers: peers.filter_map(|peer| Some(registry.port(peer)?.name)).collect(),
        capture_latency: latency(true),
        playback_latency: latency(false),
        name: port.name,
        aliases: port.aliases,
    }
}
