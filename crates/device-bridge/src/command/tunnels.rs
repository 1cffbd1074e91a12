//! What connects devices with other servers, and with other machines: the options, which the front
//! end of PulseAudio's programs gives for its modules.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use clap::Args;
use client::{OpenOptions, Session};
use convert::ChannelMap;
use pulse::{RemoteCookie, RemoteFormat};

use super::links::{DEFAULT_FORMAT, DEFAULT_LATENCY_MS};
use super::serve::Options;
use crate::links::{LinkSource, Links};
use crate::simple::{self, SimpleOptions};
use crate::tunnels::{self, Direction, TunnelOptions};

/// What connects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A device is heard at another server.
    Sink,
    /// What is recorded at another server is played on a device.
    Source,
    /// Raw samples of sockets are played and recorded.
    Simple,
}

/// What a tunnel connects.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct TunnelArguments {
    /// Tunnel: where the other server listens, in PulseAudio's words
    #[arg(long, value_name = "ADDRESS", hide = true)]
    pub peer: Option<String>,
    /// Tunnel: the sink or the source there
    #[arg(long, value_name = "NAME", hide = true)]
    pub peer_device: Option<String>,
    /// Tunnel: the file with the cookie of the other server
    #[arg(long, value_name = "FILE", hide = true)]
    pub peer_cookie: Option<PathBuf>,
    /// Tunnel: the other server is shown no cookie
    #[arg(long, hide = true, conflicts_with = "peer_cookie")]
    pub no_cookie: bool,
    /// Tunnel: the positions of the device's channels
    #[arg(long, value_name = "POSITIONS", hide = true)]
    pub positions: Option<ChannelMap>,
    /// Tunnel: how long after the connection has ended another is tried, ms
    #[arg(long, value_name = "MS", hide = true)]
    pub reconnect: Option<u32>,
    /// Simple protocol: where it listens. Its front end is --peer
    #[arg(long, value_name = "ADDRESS:PORT", hide = true)]
    pub listen: Option<SocketAddr>,
    /// Simple protocol: what comes in is played
    #[arg(long, hide = true)]
    pub plays: bool,
    /// Simple protocol: what is recorded goes out
    #[arg(long, hide = true)]
    pub records: bool,
    /// Zeroconf: the port that is published. The front end is --peer
    #[arg(long, value_name = "PORT", hide = true)]
    pub published_port: Option<u16>,
    /// Bell: the sample that is played. The front end is --peer, the sink --peer-device
    #[arg(long, value_name = "NAME", hide = true)]
    pub sample: Option<String>,
    /// Simple protocol: the source that is recorded
    #[arg(long, value_name = "NAME", hide = true)]
    pub peer_source: Option<String>,
}

impl Kind {
    /// Returns the kind of this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        [Self::Sink, Self::Source, Self::Simple].into_iter().find(|kind| kind.name() == name)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Sink => "tunnel-sink",
            Self::Source => "tunnel-source",
            Self::Simple => "simple-protocol",
        }
    }
}

impl TunnelArguments {
    /// The command-line arguments that stand for these.
    pub(super) fn words(&self) -> Vec<String> {
        let cookie = self.peer_cookie.as_ref();
        let pairs = [
            ("--peer", self.peer.clone()),
            ("--peer-device", self.peer_device.clone()),
            ("--peer-cookie", cookie.map(|file| file.to_string_lossy().into_owned())),
            ("--positions", self.positions.map(|map| map.to_string())),
            ("--reconnect", self.reconnect.map(|ms| ms.to_string())),
            ("--listen", self.listen.map(|at| at.to_string())),
            ("--published-port", self.published_port.map(|port| port.to_string())),
            ("--sample", self.sample.clone()),
            ("--peer-source", self.peer_source.clone()),
        ];
        let words = pairs.into_iter().filter_map(|(option, value)| Some((option, value?)));
        let words = words.map(|(option, value)| format!("{option}={value}"));
        let flags =
            [("--plays", self.plays), ("--records", self.records), ("--no-cookie", self.no_cookie)];
        let flags = flags.into_iter().filter(|(_, is_set)| *is_set).map(|(flag, _)| flag.into());
        words.chain(flags).collect()
    }
}

/// Starts what connects.
///
/// # Errors
/// Options are missing; those of what is started.
pub(super) fn start(kind: Kind, options: &Options, open: &OpenOptions) -> anyhow::Result<Links> {
    let (link, tunnel) = (&options.link, &options.tunnel);
    let name = kind.name();
    ensure!(!options.has_hardware_options(), "an option of sound cards is not for a {name}");
    let peer = tunnel.peer.clone().with_context(|| format!("a {name} needs --peer"))?;
    let map = tunnel.positions.with_context(|| format!("a {name} needs --positions"))?;
    let format = link.format.unwrap_or(DEFAULT_FORMAT);
    let session = || Session::open(options.name.as_deref().unwrap_or(name), open);
    let (device, direction) = match (kind, &link.from, link.to.as_slice()) {
        (Kind::Sink, Some(LinkSource { device, captures: false }), []) => {
            (device.clone(), Direction::There)
        }
        (Kind::Source, None, [device]) => (device.clone(), Direction::Here),
        (Kind::Sink, ..) => bail!("a {name} needs --from: the device that is heard there"),
        (Kind::Source, ..) => bail!("a {name} needs --to: the device that plays"),
        (Kind::Simple, ..) => {
            let rate_hz = options.rate.with_context(|| format!("a {name} needs --rate"))?;
            let simple = SimpleOptions {
                at: tunnel.listen.with_context(|| format!("a {name} needs --listen"))?,
                front_end: peer,
                sink: tunnel.peer_device.clone(),
                source: tunnel.peer_source.clone(),
                plays: tunnel.plays,
                records: tunnel.records,
                format: RemoteFormat { format, rate_hz, map },
            };
            return simple::start(session()?, simple, open);
        }
    };
    let cookie = match (&tunnel.peer_cookie, tunnel.no_cookie) {
        (Some(file), _) => RemoteCookie::File(file.clone()),
        (None, true) => RemoteCookie::Zeros,
        (None, false) => RemoteCookie::OfUser,
    };
    let tunnel = TunnelOptions {
        device,
        peer,
        peer_device: tunnel.peer_device.clone(),
        cookie,
        format,
        map,
        latency_ms: link.latency.unwrap_or(DEFAULT_LATENCY_MS),
        reconnect: tunnel.reconnect.map(|ms| Duration::from_millis(ms.into())),
    };
    tunnels::start(session()?, tunnel, direction, open)
}
