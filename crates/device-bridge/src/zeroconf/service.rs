//! What is published of a server's devices, in PulseAudio's words, and what is made of that which
//! others publish: pure.

use std::net::IpAddr;

use convert::{ChannelMap, SampleFormat};
use pulse::{RemoteDevice, RemoteDeviceKind, RemoteServer};

/// Service types of sinks, sources and servers.
pub(super) const SINKS: &str = "_pulse-sink._tcp";
const SOURCES: &str = "_pulse-source._tcp";
const SERVERS: &str = "_pulse-server._tcp";
/// Service type of sources that are not monitors.
pub(super) const OWN_SOURCES: &str = "_non-monitor._sub._pulse-source._tcp";
/// The longest name of a service, and of one record about it, bytes.
const MAX_NAME_BYTES: usize = 63;
const MAX_RECORD_BYTES: usize = 255;
/// Records that are read of a service, and the longest name of a device, bytes.
const MAX_RECORDS: usize = 64;
const MAX_DEVICE_BYTES: usize = 128;
/// The longest name of a device here, bytes.
const MAX_OWN_NAME_BYTES: usize = 64;

/// One service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Service {
    pub(super) name: String,
    pub(super) kind: &'static str,
    pub(super) subtypes: Vec<String>,
    pub(super) records: Vec<Vec<u8>>,
}

/// Returns what there is to publish: the server, and each of its own devices.
pub(super) fn services(server: &RemoteServer, devices: &[RemoteDevice]) -> Vec<Service> {
    let about = [
        ("server-version", server.version.clone()),
        ("user-name", server.user.clone()),
        ("fqdn", server.host.clone()),
        ("cookie", format!("0x{:08x}", server.cookie)),
    ];
    let of_server = Service {
        name: cut(&format!("{}@{}", server.user, server.host), MAX_NAME_BYTES),
        kind: SERVERS,
        subtypes: Vec::new(),
        records: records(about.clone()),
    };
    // Those that are elsewhere are published there.
    let own = devices.iter().filter(|device| !device.is_far);
    let of_devices = own.map(|device| of_device(server, device, &about));
    std::iter::once(of_server).chain(of_devices).collect()
}

fn of_device(
    server: &RemoteServer,
    device: &RemoteDevice,
    about: &[(&'static str, String)],
) -> Service {
    let RemoteServer { user, host, .. } = server;
    let kind = if device.kind == RemoteDeviceKind::Sink { SINKS } else { SOURCES };
    let subtype = if device.is_hardware { "hardware" } else { "virtual" };
    let mut subtypes = vec![format!("_{subtype}._sub.{kind}")];
    subtypes.extend((kind == SOURCES).then(|| OWN_SOURCES.to_owned()));
    let format = device.format;
    let mut own = vec![
        ("device", device.name.clone()),
        ("rate", format.rate_hz.to_string()),
        ("channels", format.map.channels().to_string()),
        ("format", format.format.to_string()),
        ("channel_map", format.map.to_string()),
        ("subtype", subtype.to_owned()),
        ("description", device.description.clone()),
    ];
    own.extend(device.icon.clone().map(|icon| ("icon-name", icon)));
    Service {
        name: cut(&format!("{user}@{host}: {}", device.description), MAX_NAME_BYTES),
        kind,
        subtypes,
        records: records(about.iter().cloned().chain(own)),
    }
}

fn records(pairs: impl IntoIterator<Item = (&'static str, String)>) -> Vec<Vec<u8>> {
    let record = |(key, value)| cut(&format!("{key}={value}"), MAX_RECORD_BYTES).into_bytes();
    pairs.into_iter().map(record).collect()
}

/// Returns as much of a text as fits.
fn cut(text: &str, most_bytes: usize) -> String {
    let mut end = text.len().min(most_bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

/// A service of another machine, as it says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Resolved {
    /// It is a sink, and not a source.
    pub(super) is_sink: bool,
    pub(super) host: String,
    pub(super) address: IpAddr,
    pub(super) port: u16,
    pub(super) records: Vec<Vec<u8>>,
}

/// The module that leads to a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tunnel {
    pub(super) module: &'static str,
    pub(super) arguments: String,
}

impl Resolved {
    fn value(&self, key: &str) -> Option<&str> {
        self.records.iter().take(MAX_RECORDS).find_map(|record| {
            let (of, value) = std::str::from_utf8(record).ok()?.split_once('=')?;
            (of == key).then_some(value)
        })
    }

    /// Returns the module that leads there; `None` if what it says of itself makes no sense. No
    /// cookie is shown to who says in a network that there is a server.
    pub(super) fn tunnel(&self, latency_ms: Option<u32>) -> Option<Tunnel> {
        // MUTATION: tunnel.any_device
        let device = self.value("device").filter(|name| is_name(name))?;
        let rate_hz: u32 = self.value("rate")?.parse().ok()?;
        if !(1..=convert::MAX_RATE_HZ).contains(&rate_hz) || self.port == 0 {
            return None;
        }
        let map: ChannelMap = self.value("channel_map")?.parse().ok()?;
        let channels: usize = self.value("channels")?.parse().ok()?;
        let format: SampleFormat = self.value("format")?.parse().ok()?;
        // Without a zone, an address of the link leads nowhere.
        let is_of_link = match self.address {
            IpAddr::V4(_) => false,
            IpAddr::V6(address) => address.is_unicast_link_local(),
        };
        if channels != map.channels() || is_of_link || self.address.is_unspecified() {
            return None;
        }
        let (module, word) = match self.is_sink {
            true => ("module-tunnel-sink", "sink"),
            false => ("module-tunnel-source", "source"),
        };
        let host: String = self.host.chars().filter(|letter| is_letter(*letter)).collect();
        let name = cut(&format!("tunnel.{host}.{device}"), MAX_OWN_NAME_BYTES);
        let latency = latency_ms.map_or_else(String::new, |ms| format!(" latency_msec={ms}"));
        // MUTATION: tunnel.shows_cookie
        let arguments = format!(
            "server=tcp:[{}]:{} {word}={device} format={format} rate={rate_hz} \
             channels={channels} channel_map={map} {word}_name={name} \
             auth-cookie-enabled=no{latency}",
            self.address, self.port
        );
        Some(Tunnel { module, arguments })
    }
}

/// Letters of names of devices, as PulseAudio has them.
fn is_letter(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || ".-_".contains(letter)
}

fn is_name(name: &str) -> bool {
    (1..=MAX_DEVICE_BYTES).contains(&name.len()) && name.chars().all(is_letter)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use pulse::RemoteFormat;

    use super::*;

    fn server() -> RemoteServer {
        RemoteServer {
            version: "consort 1".into(),
            user: "ada".into(),
            host: "engine".into(),
            cookie: 0xbeef,
        }
    }

    fn device(kind: RemoteDeviceKind) -> RemoteDevice {
        RemoteDevice {
            kind,
            name: "consort".into(),
            description: "Loudspeakers".into(),
            format: RemoteFormat {
                format: "float32le".parse().expect("a format"),
                rate_hz: 48_000,
                map: "front-left,front-right".parse().expect("a map"),
            },
            is_hardware: kind == RemoteDeviceKind::Source,
            is_far: false,
            icon: None,
        }
    }

    fn texts(service: &Service) -> Vec<&str> {
        service.records.iter().map(|record| std::str::from_utf8(record).expect("text")).collect()
    }

    fn resolved(service: &Service) -> Resolved {
        Resolved {
            is_sink: service.kind == SINKS,
            host: "engine.local".into(),
            address: [192, 168, 1, 2].into(),
            port: 4713,
            records: service.records.clone(),
        }
    }

    #[test]
    fn each_own_device_is_a_service_with_pulseaudios_records() {
        let far = RemoteDevice { is_far: true, ..device(RemoteDeviceKind::Sink) };
        let devices = [device(RemoteDeviceKind::Sink), far, device(RemoteDeviceKind::Source)];
        let all = services(&server(), &devices);
        let names: Vec<(&str, &str)> =
            all.iter().map(|service| (service.kind, &*service.name)).collect();
        let of_devices = "ada@engine: Loudspeakers";
        assert_eq!(names, [(SERVERS, "ada@engine"), (SINKS, of_devices), (SOURCES, of_devices)]);
        assert_eq!(
            texts(&all[1]),
            [
                "server-version=consort 1",
                "user-name=ada",
                "fqdn=engine",
                "cookie=0x0000beef",
                "device=consort",
                "rate=48000",
                "channels=2",
                "format=float32le",
                "channel_map=front-left,front-right",
                "subtype=virtual",
                "description=Loudspeakers",
            ]
        );
        assert_eq!(all[1].subtypes, ["_virtual._sub._pulse-sink._tcp"]);
        let of_source = ["_hardware._sub._pulse-source._tcp", OWN_SOURCES];
        assert_eq!(all[2].subtypes, of_source);
    }

    #[test]
    fn what_is_published_leads_to_a_tunnel_that_shows_no_cookie() {
        let devices = [device(RemoteDeviceKind::Sink), device(RemoteDeviceKind::Source)];
        let all = services(&server(), &devices);
        let sink = resolved(&all[1]).tunnel(None).expect("a tunnel");
        assert_eq!(sink.module, "module-tunnel-sink");
        assert_eq!(
            sink.arguments,
            "server=tcp:[192.168.1.2]:4713 sink=consort format=float32le rate=48000 channels=2 \
             channel_map=front-left,front-right sink_name=tunnel.engine.local.consort \
             auth-cookie-enabled=no"
        );
        let source = resolved(&all[2]).tunnel(Some(50)).expect("a tunnel");
        assert_eq!(source.module, "module-tunnel-source");
        let ending =
            "source_name=tunnel.engine.local.consort auth-cookie-enabled=no latency_msec=50";
        assert!(source.arguments.ends_with(ending), "{}", source.arguments);
    }

    #[test]
    fn a_service_that_makes_no_sense_leads_nowhere() {
        let all = services(&server(), &[device(RemoteDeviceKind::Sink)]);
        let sink = resolved(&all[1]);
        let with = |key: &str, value: &str| {
            let mut changed = sink.clone();
            let of_key = |record: &Vec<u8>| record.starts_with(format!("{key}=").as_bytes());
            changed.records.retain(|record| !of_key(record));
            changed.records.push(format!("{key}={value}").into_bytes());
            changed
        };
        for (key, value) in [
            ("device", ""),
            ("device", "a b"),
            ("device", "a'b"),
            ("device", &*"x".repeat(129)),
            ("rate", "0"),
            ("rate", "768001"),
            ("rate", "48000 server=tcp:other"),
            ("channels", "1"),
            ("format", "s16le cookie=/etc/shadow"),
            ("channel_map", "left"),
        ] {
            assert_eq!(with(key, value).tunnel(None), None, "{key}={value}");
        }
        let at = |address: &str| Resolved {
            address: address.parse().expect("an address"),
            ..sink.clone()
        };
        assert_eq!(at("fe80::1").tunnel(None), None);
        assert_eq!(at("0.0.0.0").tunnel(None), None);
        assert!(at("2001:db8::1").tunnel(None).is_some());
        assert_eq!(Resolved { port: 0, ..sink.clone() }.tunnel(None), None);
        assert_eq!(Resolved { records: Vec::new(), ..sink }.tunnel(None), None);
    }

    proptest! {
        #[test]
        fn any_records_are_arguments_of_single_words_or_nothing(
            host in ".{0,80}",
            values in proptest::collection::vec("[ -~é]{0,12}", 5),
            known in proptest::collection::vec(any::<bool>(), 5),
        ) {
            const KEYS: [(&str, &str); 5] = [
                ("device", "consort"),
                ("rate", "48000"),
                ("channels", "2"),
                ("format", "s16le"),
                ("channel_map", "front-left,front-right"),
            ];
            let pairs = KEYS.iter().zip(values.iter().zip(&known));
            let records = pairs.map(|((key, good), (any, is_good))| {
                let value = if *is_good { good } else { any.as_str() };
                format!("{key}={value}").into_bytes()
            });
            let address = [10, 0, 0, 1].into();
            let (is_sink, records) = (true, records.collect());
            let resolved = Resolved { is_sink, host, address, port: 1, records };
            if let Some(tunnel) = resolved.tunnel(None) {
                prop_assert_eq!(tunnel.arguments.split(' ').count(), 8);
                prop_assert!(tunnel.arguments.chars().all(|letter| letter.is_ascii_graphic()
                    && !"\\'\"".contains(letter) || letter == ' '));
            }
        }
    }
}
