//! Tunnels: what is played on a device is heard at another server of PulseAudio's protocol, and
//! what is recorded there is played on a device.
//!
//! A tunnel is a link, one end of which is a stream at that server. When its frames are heard is
//! known from its answers.

pub(crate) mod far;
mod far_clock;
mod far_sink;
mod far_source;

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::bail;
use client::stream::{
    MAX_NAME_BYTES, PlaybackOptions, RecordOptions, RingSamples, StreamConnection,
};
use client::{OpenOptions, Session};
use convert::{ChannelMap, SampleFormat};
use pulse::{RemoteCookie, RemoteFormat, RemoteOptions, play_remotely, record_remotely};
use rt::rate::frames_in;

use crate::links::{
    End, INTERVALS, Link, LinkShape, LinkState, Links, Parts, Program, Sink, Source, open_sink,
    open_source, spawn,
};
pub(crate) use far_clock::{Answer, FarClock, timing_at};
pub(crate) use far_sink::FarSink;
use far_source::FarSource;

/// How soon a connection is tried again where nothing else is asked for.
const RECONNECT: Duration = Duration::from_secs(1);

/// A device of this server, and one of another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TunnelOptions {
    /// The device here: what leaves it is heard there, or what is recorded there is played on it.
    pub(crate) device: String,
    /// Where the other server listens, in PulseAudio's words.
    pub(crate) peer: String,
    /// The sink or the source there; `None`: the default one.
    pub(crate) peer_device: Option<String>,
    pub(crate) cookie: RemoteCookie,
    pub(crate) format: SampleFormat,
    /// All channels of the device here.
    pub(crate) map: ChannelMap,
    /// From when a frame is heard at one until it is heard at the other, ms.
    pub(crate) latency_ms: u32,
    /// How long after the connection has ended another is tried; `None`: the tunnel ends.
    pub(crate) reconnect: Option<Duration>,
}

/// In which direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// From here to there.
    There,
    /// From there to here.
    Here,
}

impl TunnelOptions {
    fn latency(&self) -> Duration {
        Duration::from_millis(self.latency_ms.into())
    }

    fn latency_ns(&self) -> u64 {
        u64::from(self.latency_ms) * 1_000_000
    }

    /// What it connects, for users.
    fn title(&self, direction: Direction) -> String {
        let part = self.peer_device.as_ref().map_or_else(String::new, |name| format!("{name} on "));
        let far = format!("{part}{}", self.peer);
        match direction {
            Direction::There => format!("{} to {far}", self.device),
            Direction::Here => format!("{far} to {}", self.device),
        }
    }

    /// The same as the name of a stream.
    fn name(&self, direction: Direction) -> String {
        let title = self.title(direction);
        let is_in = |(at, letter): &(usize, char)| at + letter.len_utf8() <= MAX_NAME_BYTES;
        title.char_indices().take_while(is_in).map(|(_, letter)| letter).collect()
    }

    fn remote(&self, rate_hz: u32, direction: Direction) -> RemoteOptions {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let (buffer, name) = match direction {
            // What is left of the latency is for the intervals here, and for the network.
            Direction::There => (self.latency() / 2, format!("what {} plays", self.device)),
            Direction::Here => (self.latency() / INTERVALS as u32, format!("for {}", self.device)),
        };
        RemoteOptions {
            server: self.peer.clone(),
            cookie: self.cookie.clone(),
            device: self.peer_device.clone(),
            program: format!("consort on {}", host.trim()),
            name,
            format: RemoteFormat { format: self.format, rate_hz, map: self.map },
            buffer: Some(buffer),
            corked: direction == Direction::There,
        }
    }

    /// Connects both ends, for the first time or again.
    ///
    /// # Errors
    /// The device is not there; the other server cannot be reached, or refuses.
    fn open(
        &self,
        direction: Direction,
        connection: &StreamConnection,
        state: &Arc<LinkState>,
    ) -> anyhow::Result<Box<dyn Tunnel>> {
        let found = connection.device_named(Some(&self.device))?;
        let rate_hz = found.sample_rate_hz;
        let (latency_ns, plays) = (self.latency_ns(), self.map.channels());
        let channels: Vec<u32> = (0..u32::try_from(plays)?).collect();
        let (source_hz, sink_hz) = (rate_hz, rate_hz);
        let shape =
            LinkShape { channels: plays, source_hz, sink_hz, plays, matrix: None, latency_ns };
        let remote = self.remote(rate_hz, direction);
        let frames = u32::try_from(frames_in(latency_ns, rate_hz))?;
        let (program, name) = ("consort tunnel".to_owned(), self.name(direction));
        let device = Some(self.device.clone());
        let state = Arc::clone(state);
        Ok(match direction {
            Direction::There => {
                let sink = FarSink::new(play_remotely(&remote)?, remote.format, latency_ns)?;
                let options = RecordOptions {
                    program,
                    name,
                    device,
                    monitor: true,
                    channels,
                    interval_frames: frames,
                    lets_sleep: true,
                };
                let source = open_source(connection, options)?;
                Box::new(Link::new(source, sink, shape, state)?)
            }
            Direction::Here => {
                let options = PlaybackOptions {
                    program,
                    name,
                    device,
                    channels,
                    depth_frames: frames,
                    samples: RingSamples::Planes,
                };
                let sink = open_sink(connection, options, 0)?;
                let source = FarSource::new(record_remotely(&remote)?, remote.format, latency_ns)?;
                Box::new(Link::new(source, sink, shape, state)?)
            }
        })
    }

    /// Passes frames on, from the link that there is, until the device is removed, or the other
    /// server has gone and is not awaited.
    ///
    /// # Errors
    /// Why it ended.
    fn run(
        &self,
        direction: Direction,
        connection: &StreamConnection,
        state: &Arc<LinkState>,
        mut link: Option<Box<dyn Tunnel>>,
    ) -> anyhow::Result<()> {
        loop {
            let mut connected = match link.take() {
                Some(link) => link,
                None => self.await_peer(direction, connection, state),
            };
            let ended = connected.run();
            drop(connected);
            state.set_plays(false);
            match (ended, self.reconnect) {
                (Ok(_), _) => bail!("the device '{}' was removed", self.device),
                (Err(reason), None) => return Err(reason),
                (Err(_), Some(interval)) => thread::sleep(interval),
            }
        }
    }

    /// Tries to connect until it succeeds, or the process ends.
    fn await_peer(
        &self,
        direction: Direction,
        connection: &StreamConnection,
        state: &Arc<LinkState>,
    ) -> Box<dyn Tunnel> {
        loop {
            match self.open(direction, connection, state) {
                Ok(link) => return link,
                Err(_) => thread::sleep(self.reconnect.unwrap_or(RECONNECT)),
            }
        }
    }
}

/// A link in either direction.
trait Tunnel: Send {
    fn run(&mut self) -> anyhow::Result<End>;
}

impl<F: Source + Send, T: Sink + Send> Tunnel for Link<F, T> {
    fn run(&mut self) -> anyhow::Result<End> {
        Link::run(self, |_| Ok(()))
    }
}

/// Starts a tunnel. One that is to reconnect is there before it is connected.
///
/// # Errors
/// The device is not there; the other server cannot be reached, or refuses.
pub(crate) fn start(
    session: Session,
    options: TunnelOptions,
    direction: Direction,
    open: &OpenOptions,
) -> anyhow::Result<Links> {
    let (description, latency_ms) = (options.title(direction), Some(options.latency_ms));
    let parts = Parts::new(session, description, latency_ms);
    Links::begin(parts, open, |program| {
        let Program { connection, state } = program()?;
        let link = match options.reconnect {
            Some(_) => None,
            None => Some(options.open(direction, &connection, &state)?),
        };
        spawn(Arc::clone(&state), move || options.run(direction, &connection, &state, link))
    })
}
