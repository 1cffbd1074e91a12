//! What the front end asks of a server: devices, and streams on them.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use client::stream::{ChannelGains, ClientRole, DeviceVolume, Schedule, Timing, Volume, Wish};
use convert::{ChannelMap, SampleFormat};

use crate::input::{Input, NewInput};
use crate::processing::Processing;
use crate::remote::RemoteCookie;

/// What streams are converted to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DeviceFormat {
    /// Hz.
    pub rate_hz: u32,
    /// Channels, in ALSA's order.
    pub channels: u32,
    /// Channels that it captures, in the same order; 0: it captures nothing.
    pub captured: u32,
}

/// A device of the server that plays streams.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DeviceStatus {
    /// `None`: the one that drives the graph.
    pub name: Option<String>,
    /// The server's number of a further device: a later one of the same name has another.
    pub number: u32,
    /// What streams on it are converted to.
    pub format: DeviceFormat,
    /// The volume of all that it plays.
    pub volume: DeviceVolume,
}

/// A device without hardware, to be added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewNullDevice {
    /// Its name.
    pub name: String,
    /// Channels that it plays.
    pub channels: u32,
    /// Hz; `None`: that of the device that drives.
    pub rate_hz: Option<u32>,
}

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

/// A stream to be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewOutput {
    /// Name of the device; `None`: the one that drives.
    pub device: Option<String>,
    /// All of the device's channels.
    pub channels: u32,
    /// Name of the program, for users.
    pub program: String,
    /// Name of what is played, for users.
    pub name: String,
    /// How far ahead it may be rendered, frames.
    pub depth_frames: u32,
    /// The account of its program.
    pub account: u32,
}

/// Why the server has not done something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It is not there, or does not answer: it may later.
    NotNow,
    /// It refuses it.
    Never,
}

/// A server's devices. A device is named by its name, or is the one that drives the graph.
pub(crate) trait Devices {
    /// A stream that plays.
    type Output: Output;
    /// A stream that records.
    type Input: Input;

    /// Returns those that there are, the one that drives first; `None` as long as no server says.
    fn list(&mut self) -> Option<Vec<DeviceStatus>>;

    /// Returns the roles of the graph's active clients that state one; `None` if no server says.
    fn client_roles(&mut self) -> Option<Vec<ClientRole>>;

    /// Returns ALSA's name of the card that drives; `None`: what drives is no card.
    fn card(&mut self) -> Option<String>;

    /// Changes the volume of a device, as far as that is not `None`; returns it.
    ///
    /// # Errors
    /// The server refuses it.
    fn set_volume(
        &mut self,
        device: Option<&str>,
        gains: Option<ChannelGains>,
        muted: Option<bool>,
    ) -> Result<DeviceVolume, Refusal>;

    /// Adds a device, which ends with this process.
    ///
    /// # Errors
    /// The server refuses it.
    fn add(&mut self, new: NewNullDevice) -> Result<(), Refusal>;

    /// Removes a device that was added: its streams end.
    fn remove(&mut self, device: &str);

    /// Starts what passes frames on, by a number that no other has. Whether it has begun, or has
    /// ended, is known later.
    ///
    /// # Errors
    /// A reason why it cannot be started.
    fn link(&mut self, number: u32, new: NewLink) -> Result<(), String>;

    /// Ends that.
    fn unlink(&mut self, number: u32);

    /// Sets the volume of an end of what passes frames on, if it is there.
    ///
    /// # Errors
    /// The server refuses it.
    fn set_link_volume(
        &mut self,
        number: u32,
        end: &LinkEnd,
        volume: Volume,
    ) -> Result<(), Refusal>;

    /// Lets programs in over TCP, by a number that no other has.
    ///
    /// # Errors
    /// A reason why it cannot listen there.
    fn listen(&mut self, number: u32, new: NewListening) -> Result<(), String>;

    /// Lets in no further ones.
    fn unlisten(&mut self, number: u32);

    /// Leaves a line to the user that runs this.
    fn report(&mut self, line: String);

    /// Opens a stream, which holds at position 0.
    ///
    /// # Errors
    /// The server refuses it.
    fn open(&mut self, new: NewOutput) -> Result<Self::Output, Refusal>;

    /// Opens a stream that records, and holds at position 0.
    ///
    /// # Errors
    /// The server refuses it.
    fn record(&mut self, new: NewInput) -> Result<Self::Input, Refusal>;

    /// Has a stream of a server that has gone go on at this one, at the same position, on a device
    /// of the same format.
    ///
    /// # Errors
    /// The server cannot take it, or not yet.
    fn return_output(&mut self, output: &mut Self::Output) -> Result<(), Refusal>;

    /// The same of a stream that records.
    ///
    /// # Errors
    /// The server cannot take it, or not yet.
    fn return_input(&mut self, input: &mut Self::Input) -> Result<(), Refusal>;

    /// Has a stream go on at another device of the same format; returns false if the server
    /// refuses it.
    fn move_output(&mut self, output: &Self::Output, device: Option<&str>) -> bool;

    /// Returns the device of each stream of this process that plays, by the stream's number.
    fn homes(&mut self) -> BTreeMap<u32, Option<String>>;
}

/// The program's end of a stream: a ring and wishes. Positions count its frames.
pub(crate) trait Output {
    /// Returns its number on the server.
    fn number(&self) -> u32;

    /// Returns the most frames that it holds.
    fn capacity_frames(&self) -> u64;

    /// Returns how many frames can be written now.
    fn room(&self) -> usize;

    /// Writes frames at the end, a slice for each channel of the device; there is room for them.
    fn write(&mut self, planes: &[&[f32]]);

    /// Returns the position after the last frame that was written.
    fn written(&self) -> u64;

    /// States a wish, to be obeyed after [`commit`](Self::commit).
    fn wish(&mut self, wish: Wish);

    /// Makes the device obey the wishes so far.
    fn commit(&mut self);

    /// Makes a device that has gone to sleep look at what was written.
    fn call(&mut self);

    /// Returns whether the device knows all wishes so far.
    fn is_committed(&self) -> bool;

    /// Returns what is heard when.
    fn timing(&mut self) -> Timing;

    /// Returns when the device wakes, and what it needs then; `None` if it sleeps, or that is not
    /// known.
    fn schedule(&self) -> Option<Schedule>;

    /// Returns whether the server has ended it.
    fn has_ended(&self) -> bool;

    /// Returns whether more wishes wait for the server than a program may have.
    fn has_too_many_wishes(&self) -> bool;

    /// The server has ended it or has gone itself, as was noticed at `now_ns`: nothing more is
    /// heard. What is written and wished from now on is kept.
    fn leave(&mut self, now_ns: u64);
}
