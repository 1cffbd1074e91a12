//! Descriptions of sessions (SDP, RFC 4566), as far as they are about linear samples of 16 bits:
//! pure.

use std::fmt::Write;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;

/// The longest description that is read, and of that its origin and its name, bytes.
pub(super) const MAX_BYTES: usize = 4 << 10;
const MAX_ORIGIN_BYTES: usize = 256;
const MAX_NAME_BYTES: usize = 128;
/// Rates that are played, Hz.
const RATES_HZ: RangeInclusive<u32> = 4_000..=192_000;
const MAX_CHANNELS: u32 = convert::MAX_CHANNELS as u32;
/// What a payload type stands for without a description, by RFC 3551: linear samples of 16 bits.
const STATIC: [(u8, u32, u32); 2] = [(10, 44_100, 2), (11, 44_100, 1)];
/// The payload type of everything else, as PulseAudio has it.
const DYNAMIC: u8 = 127;
const MAX_PAYLOAD_TYPE: u8 = 127;

/// One session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Description {
    /// Which session it is, all over the world.
    pub(super) origin: String,
    /// For users.
    pub(super) name: String,
    /// Where its packets are sent.
    pub(super) to: SocketAddr,
    pub(super) samples: Samples,
}

/// The samples of a session, as packets have them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Samples {
    pub(super) payload_type: u8,
    /// Hz.
    pub(super) rate_hz: u32,
    pub(super) channels: u32,
}

impl Samples {
    /// Returns what is sent for this rate and as many channels.
    pub(super) fn new(rate_hz: u32, channels: u32) -> Self {
        let known = STATIC.into_iter().find(|(_, rate, of)| (*rate, *of) == (rate_hz, channels));
        let payload_type = known.map_or(DYNAMIC, |(payload_type, ..)| payload_type);
        Self { payload_type, rate_hz, channels }
    }

    fn known(payload_type: u8) -> Option<Self> {
        let known = STATIC.into_iter().find(|(of, ..)| *of == payload_type);
        known.map(|(payload_type, rate_hz, channels)| Self { payload_type, rate_hz, channels })
    }

    /// Reads what follows `a=rtpmap:`, such as `127 L16/48000/2`.
    fn read(mapping: &str) -> Option<Self> {
        let (payload_type, encoding) = mapping.split_once(' ')?;
        let payload_type = read_payload_type(payload_type)?;
        let mut parts = encoding.trim().split('/');
        if !parts.next()?.eq_ignore_ascii_case("L16") {
            return None;
        }
        let rate_hz = parts.next()?.parse().ok().filter(|rate| RATES_HZ.contains(rate))?;
        let channels = parts.next().map_or(Ok(1), str::parse).ok();
        let channels = channels.filter(|channels| (1..=MAX_CHANNELS).contains(channels))?;
        Some(Self { payload_type, rate_hz, channels })
    }
}

fn read_payload_type(word: &str) -> Option<u8> {
    word.parse().ok().filter(|payload_type| *payload_type <= MAX_PAYLOAD_TYPE)
}

/// What is known of a description on the way through its lines.
#[derive(Debug, Default)]
struct Reading {
    name: String,
    /// The session's address, and that of the part that is being read.
    address: Option<IpAddr>,
    own_address: Option<IpAddr>,
    /// The port of this part, if it is about sound, and its payload types.
    port: Option<u16>,
    payload_types: Vec<u8>,
    samples: Option<Samples>,
    is_in_part: bool,
}

impl Reading {
    /// Returns the part that has been read, if it can be played.
    fn part(&self) -> Option<(SocketAddr, Samples)> {
        let address = self.own_address.or(self.address)?;
        Some((SocketAddr::new(address, self.port?), self.samples?))
    }

    fn take(&mut self, kind: &str, value: &str) {
        match kind {
            "s" => self.name = clean(value, MAX_NAME_BYTES),
            "c" if self.is_in_part => self.own_address = address(value),
            "c" => self.address = address(value),
            "m" => self.begin_part(value),
            "a" => {
                let samples = value.strip_prefix("rtpmap:").and_then(Samples::read);
                let is_of_part =
                    |samples: &Samples| self.payload_types.contains(&samples.payload_type);
                if let Some(samples) = samples.filter(is_of_part) {
                    self.samples = Some(samples);
                }
            }
            _ => {}
        }
    }

    /// Reads what a part is about, such as `audio 46000 RTP/AVP 127`.
    fn begin_part(&mut self, value: &str) {
        self.is_in_part = true;
        (self.own_address, self.port, self.samples) = (None, None, None);
        self.payload_types.clear();
        let mut words = value.split_ascii_whitespace();
        if words.next() != Some("audio") {
            return;
        }
        let port = words.next().and_then(|word| word.split('/').next());
        let port = port.and_then(|word| word.parse().ok()).filter(|port| *port > 0);
        if words.next() != Some("RTP/AVP") {
            return;
        }
        self.payload_types = words.filter_map(read_payload_type).collect();
        self.samples = self.payload_types.iter().find_map(|of| Samples::known(*of));
        self.port = port;
    }
}

/// Reads an address, such as `IN IP4 224.0.0.56/1`.
fn address(value: &str) -> Option<IpAddr> {
    let mut words = value.split_ascii_whitespace();
    let (net, kind, address) = (words.next()?, words.next()?, words.next()?);
    let address: IpAddr = address.split('/').next()?.parse().ok()?;
    let is_of_kind = match kind {
        "IP4" => address.is_ipv4(),
        "IP6" => address.is_ipv6(),
        _ => false,
    };
    (net == "IN" && is_of_kind && !address.is_unspecified()).then_some(address)
}

/// Returns as much of a text as fits, without what is no letter.
fn clean(text: &str, most_bytes: usize) -> String {
    let letters = text.chars().filter(|letter| !letter.is_control());
    let mut clean = String::new();
    for letter in letters {
        if clean.len() + letter.len_utf8() > most_bytes {
            break;
        }
        clean.push(letter);
    }
    clean
}

fn lines(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().filter_map(|line| line.split_once('='))
}

/// Returns which session a description is about, also if there is nothing else in it.
pub(super) fn origin(text: &str) -> Option<&str> {
    let mut lines = lines(text);
    if text.len() > MAX_BYTES || lines.next() != Some(("v", "0")) {
        return None;
    }
    let (_, origin) = lines.find(|(kind, _)| *kind == "o")?;
    let is_good = (1..=MAX_ORIGIN_BYTES).contains(&origin.len())
        && !origin.contains(|letter: char| letter.is_control());
    is_good.then_some(origin)
}

impl Description {
    /// Reads a description; `None` if nothing in it can be played, or it is no description.
    pub(super) fn read(text: &str) -> Option<Self> {
        let origin = origin(text)?.to_owned();
        let mut reading = Reading::default();
        for (kind, value) in lines(text) {
            // The first part that can be played is played.
            if kind == "m" && reading.part().is_some() {
                break;
            }
            reading.take(kind, value);
        }
        let (to, samples) = reading.part()?;
        Some(Self { origin, name: reading.name, to, samples })
    }

    /// Writes it; `hops` is that of its packets, `since` when it began, seconds since 1900. Lines
    /// end as PulseAudio reads them, without a carriage return.
    pub(super) fn write(&self, hops: u8, since: u64) -> String {
        let Self { origin, name, to, samples } = self;
        let Samples { payload_type, rate_hz, channels } = samples;
        let address = to.ip();
        let kind = if address.is_ipv4() { "IP4" } else { "IP6" };
        let is_group = address.is_ipv4() && address.is_multicast();
        let hops = if is_group { format!("/{hops}") } else { String::new() };
        let name = clean(name, MAX_NAME_BYTES);
        let port = to.port();
        let mut text = format!("v=0\no={origin}\ns={name}\nc=IN {kind} {address}{hops}\n");
        let _ = write!(text, "t={since} 0\na=recvonly\nm=audio {port} RTP/AVP {payload_type}\n");
        let _ = writeln!(text, "a=rtpmap:{payload_type} L16/{rate_hz}/{channels}");
        text.push_str("a=type:broadcast\n");
        text
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// As PulseAudio 16.1 sends it.
    const PULSEAUDIO: &str = "v=0\no=user 3928000000 0 IN IP4 192.168.1.2\ns=PulseAudio RTP Stream \
        on host\nc=IN IP4 224.0.0.56\nt=3928000000 0\na=recvonly\nm=audio 46410 RTP/AVP 127\n\
        a=rtpmap:127 L16/48000/2\na=type:broadcast\n";

    fn pulseaudio() -> Description {
        Description {
            origin: "user 3928000000 0 IN IP4 192.168.1.2".into(),
            name: "PulseAudio RTP Stream on host".into(),
            to: "224.0.0.56:46410".parse().expect("an address"),
            samples: Samples { payload_type: 127, rate_hz: 48_000, channels: 2 },
        }
    }

    #[test]
    fn a_session_of_pulseaudio_is_read_and_written_as_it_writes_it() {
        assert_eq!(Description::read(PULSEAUDIO), Some(pulseaudio()));
        let written = pulseaudio().write(3, 3_928_000_000);
        assert_eq!(written, PULSEAUDIO.replace("0.56\n", "0.56/3\n"));
    }

    #[test]
    fn the_first_part_that_can_be_played_is_played() {
        let text = "v=0\r\no=- 1 1 IN IP6 fe80::1\r\ns= \r\nc=IN IP4 239.1.1.1/32\r\n\
            m=video 5000 RTP/AVP 31\r\nm=audio 5002 RTP/AVP 0 96\r\na=rtpmap:96 opus/48000/2\r\n\
            m=audio 5004/2 RTP/AVP 0 98\r\nc=IN IP6 ff02::5/2\r\na=rtpmap:97 L16/8000\r\n\
            a=rtpmap:98 l16/8000\r\nm=audio 5006 RTP/AVP 10\r\n";
        let played = Description::read(text).expect("a session");
        assert_eq!(played.to, "[ff02::5]:5004".parse().expect("an address"));
        assert_eq!(played.samples, Samples { payload_type: 98, rate_hz: 8000, channels: 1 });
        let known = "v=0\no=x\nc=IN IP4 127.0.0.1\nm=audio 9 RTP/AVP 11\n";
        let known = Description::read(known).expect("a session");
        assert_eq!(known.samples, Samples::new(44_100, 1));
        assert_eq!(Samples::new(44_100, 2).payload_type, 10);
    }

    #[test]
    fn what_cannot_be_played_is_refused() {
        for (from, to) in [
            ("v=0", "v=1"),
            ("o=user 3928000000 0 IN IP4 192.168.1.2\n", ""),
            ("c=IN IP4 224.0.0.56\n", ""),
            ("c=IN IP4 224.0.0.56", "c=IN IP6 224.0.0.56"),
            ("c=IN IP4 224.0.0.56", "c=IN IP4 0.0.0.0"),
            ("m=audio 46410", "m=audio 0"),
            ("m=audio 46410", "m=audio 65536"),
            ("RTP/AVP 127", "RTP/SAVP 127"),
            ("RTP/AVP 127", "RTP/AVP 96"),
            ("L16/48000/2", "L24/48000/2"),
            ("L16/48000/2", "L16/0/2"),
            ("L16/48000/2", "L16/192001/2"),
            ("L16/48000/2", "L16/48000/33"),
            ("L16/48000/2", "L16/48000/0"),
            ("L16/48000/2", "L16"),
        ] {
            assert!(PULSEAUDIO.contains(from), "{from}");
            assert_eq!(Description::read(&PULSEAUDIO.replace(from, to)), None, "{to}");
        }
        let long = PULSEAUDIO.replace("user", &"u".repeat(MAX_ORIGIN_BYTES));
        assert_eq!(Description::read(&long), None, "a long origin");
        let long = format!("{PULSEAUDIO}{}", "a=x\n".repeat(MAX_BYTES / 4));
        assert_eq!(Description::read(&long), None, "a long description");
    }

    #[test]
    fn an_end_needs_no_more_than_an_origin() {
        assert_eq!(origin("v=0\r\no=- 1 1 IN IP4 10.0.0.1\r\n"), Some("- 1 1 IN IP4 10.0.0.1"));
        assert_eq!(origin("v=0\no=\n"), None);
        assert_eq!(origin("o=1\nv=0\n"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_a_session_within_bounds_or_refused(
            kinds in proptest::collection::vec(0_usize..9, 0..12),
            value in "[ -~\r\n]{0,40}",
        ) {
            const BEGINNINGS: [&str; 9] =
                ["s=", "c=IN IP4 ", "c=IN IP6 ::", "m=audio 9 RTP/AVP 10 ", "m=audio ", "m=",
                "a=rtpmap:", "a=rtpmap:10 L16/", "a=rtpmap:97 L16/8000/"];
            let lines = kinds.iter().map(|kind| format!("{}{value}\n", BEGINNINGS[*kind]));
            let text = format!("v=0\no=me\n{}", lines.collect::<String>());
            if let Some(read) = Description::read(&text) {
                prop_assert!(RATES_HZ.contains(&read.samples.rate_hz));
                prop_assert!((1..=MAX_CHANNELS).contains(&read.samples.channels));
                prop_assert!(read.name.len() <= MAX_NAME_BYTES && read.to.port() > 0);
                prop_assert!(!read.name.contains(|letter: char| letter.is_control()));
            }
        }

        #[test]
        fn any_session_is_read_as_it_was_written(
            name in "[^\0-\x1f\x7f-\u{9f}]{0,20}",
            address in any::<[u8; 16]>(),
            port in 1_u16..,
            rate_hz in RATES_HZ,
            channels in 1..=MAX_CHANNELS,
        ) {
            let to = SocketAddr::new(IpAddr::from(address), port);
            prop_assume!(!to.ip().is_unspecified());
            let origin = "- 1 1 IN IP4 10.0.0.1".into();
            let name = clean(&name, MAX_NAME_BYTES);
            let written =
                Description { origin, name, to, samples: Samples::new(rate_hz, channels) };
            prop_assert_eq!(Description::read(&written.write(1, 7)), Some(written));
        }
    }
}
