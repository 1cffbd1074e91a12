//! Attaching to a running server, as its observer.

use anyhow::anyhow;
use client::stream::StreamDevice;
use client::{Observer, Property, Requester, port_uuid};
use observe::Graph;
use proto::request::RequestError;
use proto::status::Status;
use rt::shm::LatencyRange;

use crate::command::status::streams::Streams;
use crate::server::{Latency, Port, Server, TransportView};

/// Connects to the server `name`.
pub(crate) fn to(name: &str) -> Result<impl Server, client::Error> {
    Observer::open(Some(name))
}

impl Server for Observer {
    fn ports(&self) -> anyhow::Result<Vec<Port>> {
        let graph = Graph::read(self.registry());
        let properties = self.properties(None)?;
        Ok(graph.ports().map(|port| shown(&graph, port, &properties)).collect())
    }

    fn status(&self) -> anyhow::Result<Status> {
        Ok(Self::status(self)?)
    }

    fn streams(&self) -> anyhow::Result<Streams> {
        let StreamDevice { state, wake_up_rate, lost_frames, channels, volume, .. } =
            self.stream_device()?;
        Ok(Streams {
            state,
            wake_up_rate,
            lost_frames,
            channels,
            volume,
            further: self.further_devices()?,
            streams: Self::streams(self)?,
        })
    }

    fn connect(&self, source: &str, destination: &str) -> anyhow::Result<()> {
        Requester::connect(self, source, destination).map_err(with_hint)
    }

    fn disconnect(&self, source: &str, destination: &str) -> anyhow::Result<()> {
        Requester::disconnect(self, source, destination).map_err(with_hint)
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

/// Adds what to do about a missing port, unless the server already suggests a similar name.
fn with_hint(error: client::Error) -> anyhow::Error {
    match &error {
        client::Error::Refused(RequestError::UnknownPort { nearest: None, .. }) => {
            anyhow!("{error}: `consort ls` lists the ports")
        }
        _ => error.into(),
    }
}

/// A port of the graph as commands show it.
fn shown(graph: &Graph, port: &observe::Port, properties: &[Property]) -> Port {
    let subject = port_uuid(port.info.id);
    let own = properties.iter().filter(|property| property.subject == subject);
    Port {
        id: port.info.id,
        name: port.info.name.clone(),
        owner: graph.client(port.info.owner).map(|client| client.name.clone()).unwrap_or_default(),
        port_type: port.info.port_type,
        flags: port.info.flags,
        aliases: port.info.aliases.clone(),
        properties: own.cloned().collect(),
        peers: graph.peers(port).map(|peer| peer.info.name.clone()).collect(),
        capture_latency: latency(port.capture_latency),
        playback_latency: latency(port.playback_latency),
    }
}

fn latency(range: LatencyRange) -> Latency {
    Latency { min_frames: range.min, max_frames: range.max }
}
