//! Modules that send to a group in the network, and play what is sent there.

use std::net::{IpAddr, Ipv4Addr};

use convert::{ChannelMap, SampleFormat, Standard};

use super::arguments::{Arguments, Samples};
use super::plans::Plan;
use crate::front_end::FrontEnd;
use crate::output::{Devices, NewLink, NewRtpReceiver, NewRtpSender};

/// Where packets are sent and sessions announced, as in PulseAudio.
const GROUP: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 56);
/// Bytes of samples in a packet, as in PulseAudio, and the most that a datagram has room for.
const DEFAULT_PAYLOAD: usize = 1280;
const MOST_PAYLOAD: u32 = 65_000;
/// Milliseconds until a frame is heard: what a link can have, and PulseAudio's default.
const LATENCY_MS: std::ops::RangeInclusive<u32> = 40..=2000;
const DEFAULT_LATENCY_MS: u32 = 500;
/// Rates that are sent and played, Hz.
const RATES_HZ: std::ops::RangeInclusive<u32> = 4_000..=192_000;
/// What is done about sinks that sleep while they are sent.
const MONITORS_SLEEP: &str = "only_with_non_monitor_sources";
/// Longest name of a session, bytes.
const MAX_NAME_BYTES: usize = 128;

impl<D: Devices> FrontEnd<D> {
    /// What a source records is sent.
    pub(super) fn rtp_send(&self, arguments: &Arguments) -> Result<Plan, String> {
        let source = arguments.name("source")?;
        let of_source = self.named_source(source.clone())?;
        let Samples { format, rate_hz, map } = arguments.samples()?;
        if format.is_some_and(|format| format != SampleFormat::Linear(dsp::Format::S16Be)) {
            return Err("format is s16be: no other one is sent".into());
        }
        if arguments.boolean("enable_opus")?.unwrap_or(false) {
            return Err("enable_opus: samples are sent as they are".into());
        }
        let sleeps = arguments.text("inhibit_auto_suspend");
        if sleeps.is_some_and(|sleeps| sleeps != MONITORS_SLEEP) {
            return Err(format!("inhibit_auto_suspend is always {MONITORS_SLEEP}"));
        }
        let own = of_source.map.channels();
        let channels = map.map_or(own, |map| map.channels());
        let map = match channels == own {
            true => Some(of_source.map),
            false => ChannelMap::extended(Standard::Aiff, channels),
        };
        let map = map.ok_or("channels are too many")?;
        let rate_hz = rate_hz.unwrap_or(of_source.rate_hz);
        if !RATES_HZ.contains(&rate_hz) {
            let (least, most) = RATES_HZ.into_inner();
            return Err(format!("rate is {rate_hz}, and {least} to {most} can be sent"));
        }
        let frame_bytes = 2 * map.channels();
        let payload = arguments.number("mtu", 1..=MOST_PAYLOAD)?;
        let payload = payload.and_then(|bytes| usize::try_from(bytes).ok());
        let payload = payload.unwrap_or(DEFAULT_PAYLOAD - DEFAULT_PAYLOAD % frame_bytes);
        if !payload.is_multiple_of(frame_bytes) {
            return Err(format!("mtu is {payload}, and a frame has {frame_bytes} bytes"));
        }
        let to = match (arguments.name("destination_ip")?, arguments.name("destination")?) {
            (Some(_), Some(_)) => return Err("destination is destination_ip".into()),
            (Some(text), None) => address("destination_ip", &text)?,
            (None, Some(text)) => address("destination", &text)?,
            (None, None) => GROUP.into(),
        };
        let from = arguments.name("source_ip")?;
        let from = from.map(|text| address("source_ip", &text)).transpose()?;
        if from.is_some_and(|from| from.is_ipv4() != to.is_ipv4()) {
            return Err("source_ip is an address of another kind than destination_ip".into());
        }
        let port = arguments.number("port", 1..=u16::MAX.into())?.map(u16::try_from);
        let hops = arguments.number("ttl", 1..=u8::MAX.into())?.unwrap_or(1);
        let name = arguments.name("stream_name")?;
        if name.as_ref().is_some_and(|name| name.len() > MAX_NAME_BYTES) {
            return Err(format!("stream_name is longer than {MAX_NAME_BYTES} bytes"));
        }
        let sender = NewRtpSender {
            source,
            from,
            to,
            port: port.transpose().map_err(|_| "port is too high")?,
            payload,
            hops: u8::try_from(hops).map_err(|_| "ttl is too high")?,
            loops: arguments.boolean("loop")?.unwrap_or(false),
            name,
            rate_hz,
            map,
        };
        let link = Box::new(move |_| NewLink::RtpSender(sender));
        Ok(Plan { device: None, link: Some(link), listening: None })
    }

    /// What is announced is played.
    pub(super) fn rtp_receive(&self, arguments: &Arguments) -> Result<Plan, String> {
        let sink = arguments.name("sink")?;
        self.named_sink(sink.clone())?;
        let group = arguments.name("sap_address")?;
        let group = group.map(|text| address("sap_address", &text)).transpose()?;
        let latency_ms = arguments.number("latency_msec", 1..=300_000)?;
        let latency_ms = latency_ms.unwrap_or(DEFAULT_LATENCY_MS).max(*LATENCY_MS.start());
        if latency_ms > *LATENCY_MS.end() {
            let most = LATENCY_MS.end();
            return Err(format!("latency_msec is {latency_ms}, and {most} is the most"));
        }
        let group = group.unwrap_or_else(|| GROUP.into());
        let receiver = NewRtpReceiver { sink, group, latency_ms };
        let link = Box::new(move |_| NewLink::RtpReceiver(receiver));
        Ok(Plan { device: None, link: Some(link), listening: None })
    }
}

fn address(key: &str, text: &str) -> Result<IpAddr, String> {
    text.parse().map_err(|_| format!("{key} is '{text}', and takes an address"))
}
