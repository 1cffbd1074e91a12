//! What modules ask for besides devices: what passes frames on, plays for others, or lets them in.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use convert::{ChannelMap, SampleFormat};

use crate::processing::Processing;
use crate::remote::RemoteCookie;

/// What passes frames on between devices, in a process of its own. A device without a name is the
/// one that drives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NewLink {
    /// What is heard at one device is heard on others.
    Loopback(NewLoopback),
    /// The same, after something has happened to it.
    Processed(NewLoopback, Box<Processing>),
    /// What leaves a device is written to a FIFO.
    PipeSink(NewPipe),
    /// What comes out of a FIFO is played on a device.
    PipeSource(NewPipe),
    /// What leaves a device is heard at another server.
    TunnelSink(NewTunnel),
    /// What is recorded at another server is played on a device.
    TunnelSource(NewTunnel),
    /// Raw samples of sockets are played and recorded, by programs of this front end.
    Simple(NewSimple),
    /// What is recorded is sent to a group in the network, by a program of this front end.
    RtpSender(NewRtpSender),
    /// What is announced there is played, by a program of this front end.
    RtpReceiver(NewRtpReceiver),
    /// Other machines learn of the sinks and sources here.
    ZeroconfPublisher {
        /// At which programs come in.
        port: u16,
    },
    /// Tunnels lead to the sinks and sources of other machines.
    ZeroconfDiscoverer {
        /// Of the tunnels, ms; `None`: as they like.
        latency_ms: Option<u32>,
    },
    /// A sample is played when an X server rings its bell.
    X11Bell(NewBell),
}

impl NewLink {
    /// Returns its ends at devices of which one is heard on others.
    pub fn ends(&self) -> Vec<LinkEnd> {
        match self {
            Self::Loopback(loopback) => loopback.ends().collect(),
            Self::Processed(loopback, processing) => {
                let further = processing.heard_on().map(|device| LinkEnd::Plays(device.clone()));
                loopback.ends().chain(further).collect()
            }
            Self::PipeSink(_)
            | Self::PipeSource(_)
            | Self::TunnelSink(_)
            | Self::TunnelSource(_)
            | Self::Simple(_)
            | Self::RtpSender(_)
            | Self::RtpReceiver(_)
            | Self::ZeroconfPublisher { .. }
            | Self::ZeroconfDiscoverer { .. }
            | Self::X11Bell(_) => Vec::new(),
        }
    }

    /// Returns the devices that it connects.
    pub fn devices(&self) -> Vec<Option<&str>> {
        match self {
            Self::Loopback(loopback) => loopback.devices().collect(),
            Self::Processed(loopback, processing) => {
                loopback.devices().chain(processing.devices()).collect()
            }
            Self::PipeSink(pipe) | Self::PipeSource(pipe) => vec![Some(&pipe.device)],
            Self::TunnelSink(tunnel) | Self::TunnelSource(tunnel) => vec![Some(&tunnel.device)],
            Self::Simple(_)
            | Self::RtpSender(_)
            | Self::RtpReceiver(_)
            | Self::ZeroconfPublisher { .. }
            | Self::ZeroconfDiscoverer { .. }
            | Self::X11Bell(_) => Vec::new(),
        }
    }
}

/// An end of what passes frames on: a stream of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LinkEnd {
    /// It plays on this device.
    Plays(Option<String>),
    /// It records this.
    Records(Heard),
}

impl LinkEnd {
    /// Returns the device where it plays or records.
    pub fn device(&self) -> Option<&str> {
        match self {
            Self::Plays(device) | Self::Records(Heard { device, .. }) => device.as_deref(),
        }
    }
}

/// What is heard at a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Heard {
    /// The device.
    pub device: Option<String>,
    /// What it captures, instead of what leaves it.
    pub captures: bool,
}

/// From one device to others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewLoopback {
    /// Where the frames come from.
    pub from: Heard,
    /// All channels of that.
    pub from_map: ChannelMap,
    /// What they are mixed into first.
    pub via: Option<ChannelMap>,
    /// The devices that play them, with all of their channels.
    pub to: Vec<(Option<String>, ChannelMap)>,
    /// Positions that one side lacks are mixed into others.
    pub mixed: bool,
    /// From when a frame is heard there until it is heard here, ms.
    pub latency_ms: u32,
}

impl NewLoopback {
    /// Returns whether what it plays is what it records, at once.
    pub fn is_into_itself(&self) -> bool {
        let Heard { device, captures } = &self.from;
        !captures && self.to.iter().any(|(to, _)| to == device)
    }

    /// Returns where it records, and where it plays.
    pub fn ends(&self) -> impl Iterator<Item = LinkEnd> {
        let to = self.to.iter().map(|(device, _)| LinkEnd::Plays(device.clone()));
        std::iter::once(LinkEnd::Records(self.from.clone())).chain(to)
    }

    fn devices(&self) -> impl Iterator<Item = Option<&str>> {
        let to = self.to.iter().map(|(device, _)| device.as_deref());
        std::iter::once(self.from.device.as_deref()).chain(to)
    }
}

/// Between a device and a FIFO.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewPipe {
    /// The device.
    pub device: String,
    /// The FIFO.
    pub file: PathBuf,
    /// The samples in it.
    pub format: SampleFormat,
    /// Hz: the device's rate.
    pub rate_hz: u32,
    /// All channels of the device.
    pub channels: u32,
}

/// Between a device and one of another server of PulseAudio's protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewTunnel {
    /// The device here.
    pub device: String,
    /// Where the other server listens, in PulseAudio's words.
    pub server: String,
    /// The sink or the source there; `None`: the default one.
    pub far_device: Option<String>,
    /// What is shown to it.
    pub cookie: RemoteCookie,
    /// The samples on their way.
    pub format: SampleFormat,
    /// All channels of the device here.
    pub map: ChannelMap,
    /// From when a frame is heard at one end until it is heard at the other, ms.
    pub latency_ms: u32,
    /// How long after the connection has ended another is tried, ms; `None`: that is the end.
    pub reconnect_ms: Option<u32>,
}

/// Where raw samples come in over TCP, and go out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewSimple {
    /// Where it listens.
    pub at: SocketAddr,
    /// The sink that plays; `None`: the default one.
    pub sink: Option<String>,
    /// The source that is recorded; `None`: the default one.
    pub source: Option<String>,
    /// What comes in is played.
    pub plays: bool,
    /// What is recorded goes out.
    pub records: bool,
    /// The samples.
    pub format: SampleFormat,
    /// Hz.
    pub rate_hz: u32,
    /// Their channels.
    pub map: ChannelMap,
}

/// What is sent to a group in the network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewRtpSender {
    /// The source that is recorded; `None`: the default one.
    pub source: Option<String>,
    /// The address of this machine from which is sent; `None`: that of the route.
    pub from: Option<IpAddr>,
    /// The group, or one machine.
    pub to: IpAddr,
    /// `None`: one that is likely to be free.
    pub port: Option<u16>,
    /// Bytes of samples in a packet, at most: whole frames.
    pub payload: usize,
    /// One more than the routers that a packet may pass.
    pub hops: u8,
    /// It is received on this machine, too.
    pub loops: bool,
    /// The name of the session; `None`: the host's.
    pub name: Option<String>,
    /// Hz.
    pub rate_hz: u32,
    /// The channels.
    pub map: ChannelMap,
}

/// What is played of a group in the network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewRtpReceiver {
    /// The sink that plays; `None`: the default one.
    pub sink: Option<String>,
    /// Where sessions are announced.
    pub group: IpAddr,
    /// From when a frame arrives until it is heard, ms.
    pub latency_ms: u32,
}

/// What is played when an X server rings its bell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewBell {
    /// The sink that plays; `None`: the default one.
    pub sink: Option<String>,
    /// The name of the sample.
    pub sample: String,
    /// The X server; `None`: that of this process.
    pub display: Option<String>,
    /// The file with what is shown to be let in there; `None`: the user's.
    pub authority: Option<PathBuf>,
}

/// Where programs are to be let in over TCP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewListening {
    /// `None`: any address of this machine.
    pub address: Option<IpAddr>,
    /// The port.
    pub port: u16,
    /// Programs need no cookie.
    pub is_open: bool,
    /// Programs that come from there need none.
    pub open_to: Vec<Network>,
    /// The others may show it: without, they are not let in.
    pub takes_cookie: bool,
}

/// Addresses that begin alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Network {
    /// One of them.
    pub address: IpAddr,
    /// How many bits they share.
    pub bits: u32,
}

impl Network {
    /// Returns whether this address is one of them.
    pub fn has(&self, address: IpAddr) -> bool {
        // A shift by all bits leaves nothing to compare.
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                let differs = own.to_bits() ^ other.to_bits();
                differs.checked_shr(32 - self.bits.min(32)).unwrap_or(0) == 0
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                let differs = own.to_bits() ^ other.to_bits();
                differs.checked_shr(128 - self.bits.min(128)).unwrap_or(0) == 0
            }
            _ => false,
        }
    }
}
