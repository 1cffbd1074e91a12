//! What sends to a group in the network, and what plays that: the options, which the front end of
//! PulseAudio's programs gives for its modules.

use std::net::IpAddr;

use anyhow::{Context, ensure};
use clap::Args;
use cli::in_range;
use client::{OpenOptions, Session};
use convert::SampleFormat;
use pulse::RemoteFormat;

use super::serve::Options;
use crate::links::Links;
use crate::rtp::{self, ReceiveOptions, SendOptions};

/// In which direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// What is recorded is sent.
    Send,
    /// What is announced is played.
    Receive,
}

/// What is sent where.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct RtpArguments {
    /// RTP: where packets are sent, or sessions are announced. The front end is --peer
    #[arg(long, value_name = "ADDRESS", hide = true)]
    pub group: Option<IpAddr>,
    /// RTP: the port of the packets
    #[arg(long, value_name = "PORT", hide = true)]
    pub group_port: Option<u16>,
    /// RTP: the address of this machine from which is sent
    #[arg(long, value_name = "ADDRESS", hide = true)]
    pub local: Option<IpAddr>,
    /// RTP: the samples in a packet
    #[arg(long, value_name = "BYTES", hide = true)]
    pub payload: Option<u16>,
    /// RTP: one more than the routers that a packet may pass
    #[arg(long, value_name = "N", hide = true)]
    pub hops: Option<u8>,
    /// RTP: from when a frame arrives until it is heard, ms
    #[arg(long, value_name = "MS", hide = true, value_parser = in_range(40..=2000))]
    pub packet_latency: Option<u32>,
    /// RTP: packets are received on this machine, too
    #[arg(long, hide = true)]
    pub loops: bool,
    /// RTP: the name of the session
    #[arg(long, value_name = "NAME", hide = true)]
    pub session_name: Option<String>,
}

impl Kind {
    /// Returns the kind of this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        [Self::Send, Self::Receive].into_iter().find(|kind| kind.name() == name)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Send => "rtp-send",
            Self::Receive => "rtp-receive",
        }
    }
}

impl RtpArguments {
    /// The command-line arguments that stand for these.
    pub(super) fn words(&self) -> Vec<String> {
        let pairs = [
            ("--group", self.group.map(|group| group.to_string())),
            ("--group-port", self.group_port.map(|port| port.to_string())),
            ("--local", self.local.map(|local| local.to_string())),
            ("--payload", self.payload.map(|bytes| bytes.to_string())),
            ("--hops", self.hops.map(|hops| hops.to_string())),
            ("--packet-latency", self.packet_latency.map(|ms| ms.to_string())),
            ("--session-name", self.session_name.clone()),
        ];
        let words = pairs.into_iter().filter_map(|(option, value)| Some((option, value?)));
        let words = words.map(|(option, value)| format!("{option}={value}"));
        words.chain(self.loops.then(|| "--loops".into())).collect()
    }
}

/// Starts what sends or plays.
///
/// # Errors
/// Options are missing; those of what is started.
pub(super) fn start(kind: Kind, options: &Options, open: &OpenOptions) -> anyhow::Result<Links> {
    let (tunnel, rtp) = (&options.tunnel, &options.rtp);
    let name = kind.name();
    ensure!(!options.has_hardware_options(), "an option of sound cards is not for a {name}");
    let front_end = tunnel.peer.clone().with_context(|| format!("a {name} needs --peer"))?;
    let group = rtp.group.with_context(|| format!("a {name} needs --group"))?;
    let session = || Session::open(options.name.as_deref().unwrap_or(name), open);
    if kind == Kind::Receive {
        let latency_ms = rtp.packet_latency;
        let latency_ms = latency_ms.with_context(|| format!("a {name} needs --packet-latency"))?;
        let sink = tunnel.peer_device.clone();
        let receive = ReceiveOptions { front_end, sink, group, latency_ms };
        return rtp::receive(session()?, receive, open);
    }
    let map = tunnel.positions.with_context(|| format!("a {name} needs --positions"))?;
    let rate_hz = options.rate.with_context(|| format!("a {name} needs --rate"))?;
    let format = SampleFormat::Linear(dsp::Format::S16Be);
    let send = SendOptions {
        front_end,
        source: tunnel.peer_source.clone(),
        from: rtp.local,
        to: group,
        port: rtp.group_port,
        payload: rtp.payload.with_context(|| format!("a {name} needs --payload"))?.into(),
        hops: rtp.hops.unwrap_or(1),
        loops: rtp.loops,
        name: rtp.session_name.clone(),
        format: RemoteFormat { format, rate_hz, map },
    };
    rtp::send(session()?, send, open)
}
