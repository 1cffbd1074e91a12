//! Modules that connect devices with other servers, and raw sockets with the front end.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use convert::SampleFormat;

use super::arguments::{Arguments, Samples};
use super::plans::{Plan, PlannedDevice, described};
use crate::front_end::FrontEnd;
use crate::front_end::properties;
use crate::front_end::sinks::{DRIVER, Face, Shown};
use crate::output::{Devices, NewLink, NewSimple, NewTunnel};
use crate::remote::RemoteCookie;

/// Milliseconds from when a frame is heard at one end until it is heard at the other: what a link
/// can have, and what a network is likely to need.
const LATENCY_MS: std::ops::RangeInclusive<u32> = 20..=400;
const DEFAULT_LATENCY_MS: u32 = 200;
/// The port of raw sockets, and their samples, as in PulseAudio.
const SIMPLE_PORT: u32 = 4711;
/// Longest time between two attempts to connect, ms.
const MAX_RECONNECT_MS: u32 = 3_600_000;

/// In which direction sound goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    There,
    Here,
}

impl Direction {
    /// How the arguments begin that name what is here, and what it is called.
    fn word(self) -> &'static str {
        match self {
            Self::There => "sink",
            Self::Here => "source",
        }
    }
}

impl<D: Devices> FrontEnd<D> {
    /// A sink that is heard at another server, or a source of what is recorded there.
    pub(super) fn tunnel(
        &self,
        direction: Direction,
        arguments: &Arguments,
    ) -> Result<Plan, String> {
        let word = direction.word();
        if arguments.boolean("auto")?.unwrap_or(false) {
            return Err("auto: name the server".into());
        }
        let server = arguments.name("server")?.ok_or("server is needed: where another one is")?;
        if server.chars().any(char::is_whitespace) {
            return Err(format!("server is '{server}': one is enough"));
        }
        let Samples { format, rate_hz, map } = arguments.samples()?;
        let latency_ms = arguments.number("latency_msec", 1..=30_000)?;
        let latency_ms = latency_ms.unwrap_or(DEFAULT_LATENCY_MS).max(*LATENCY_MS.start());
        if latency_ms > *LATENCY_MS.end() {
            let most = LATENCY_MS.end();
            return Err(format!("latency_msec is {latency_ms}, and {most} is the most"));
        }
        let reconnect = arguments.number("reconnect_interval_ms", 0..=MAX_RECONNECT_MS)?;
        let device = arguments.name(word)?;
        let name = arguments.name(&format!("{word}_name"))?;
        let name = name.unwrap_or_else(|| format!("tunnel-{word}.{server}"));
        let far = device.as_ref().map_or_else(String::new, |device| format!("{device} on "));
        let mut props = described(&format!("Tunnel to {far}{server}"), "sound");
        properties::set(&mut props, c"tunnel.remote.server", &server);
        if let Some(device) = &device {
            let key = if direction == Direction::There {
                c"tunnel.remote.sink"
            } else {
                c"tunnel.remote.source"
            };
            properties::set(&mut props, key, device);
        }
        arguments.add_properties(&format!("{word}_properties"), &mut props)?;
        let map = map.map_or_else(|| self.default_map(), Ok)?;
        let rate_hz = rate_hz.or_else(|| self.sinks.get(DRIVER).map(|sink| sink.format.rate_hz));
        let face = if direction == Direction::There { Face::Sink } else { Face::Source };
        let shown = Shown { props, map, face, later_us: u64::from(latency_ms) * 1000 };
        let tunnel = NewTunnel {
            device: String::new(),
            server,
            far_device: device,
            cookie: cookie(arguments)?,
            // What devices have.
            format: format.unwrap_or(SampleFormat::Linear(dsp::Format::FloatLe)),
            map,
            latency_ms,
            reconnect_ms: reconnect.filter(|ms| *ms > 0),
        };
        let link = move |device| {
            let tunnel = NewTunnel { device, ..tunnel };
            match direction {
                Direction::There => NewLink::TunnelSink(tunnel),
                Direction::Here => NewLink::TunnelSource(tunnel),
            }
        };
        let device = PlannedDevice { name, rate_hz, shown };
        Ok(Plan { device: Some(device), link: Some(Box::new(link)), listening: None })
    }

    /// Raw samples of sockets are played, or what is recorded is written to them.
    pub(super) fn simple_protocol_tcp(&self, arguments: &Arguments) -> Result<Plan, String> {
        let address = arguments.name("listen")?.map(|text| {
            text.parse::<IpAddr>().map_err(|_| format!("listen is '{text}', and takes an address"))
        });
        let port = arguments.number("port", 1..=u16::MAX.into())?.unwrap_or(SIMPLE_PORT);
        let port = u16::try_from(port).map_err(|_| "port is too high")?;
        let plays = arguments.boolean("playback")?.unwrap_or(true);
        let records = arguments.boolean("record")?.unwrap_or(false);
        if !plays && !records {
            return Err("it neither plays nor records".into());
        }
        let Samples { format, rate_hz, map } = arguments.samples()?;
        let driver = self.sinks.get(DRIVER);
        let rate_hz = rate_hz.or_else(|| driver.map(|sink| sink.format.rate_hz));
        let simple = NewSimple {
            // That is all of IPv4 as well.
            at: SocketAddr::new(
                address.transpose()?.unwrap_or_else(|| Ipv6Addr::UNSPECIFIED.into()),
                port,
            ),
            sink: arguments.name("sink")?.filter(|_| plays),
            source: arguments.name("source")?.filter(|_| records),
            plays,
            records,
            format: format.unwrap_or(SampleFormat::Linear(dsp::Format::S16Le)),
            rate_hz: rate_hz.ok_or("rate is needed without a device that drives")?,
            map: map.map_or_else(|| self.default_map(), Ok)?,
        };
        let link = Box::new(move |_| NewLink::Simple(simple));
        Ok(Plan { device: None, link: Some(link), listening: None })
    }
}

/// What a tunnel shows to be let in.
fn cookie(arguments: &Arguments) -> Result<RemoteCookie, String> {
    let file = arguments.name("cookie")?;
    match (file, arguments.boolean("auth-cookie-enabled")?.unwrap_or(true)) {
        (Some(file), true) => Ok(RemoteCookie::File(file.into())),
        (None, true) => Ok(RemoteCookie::OfUser),
        (None, false) => Ok(RemoteCookie::Zeros),
        (Some(_), false) => Err("cookie: auth-cookie-enabled=no shows none".into()),
    }
}
