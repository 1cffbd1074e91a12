//! Announcements of sessions (SAP, RFC 2974): pure.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const VERSION: u8 = 1;
const CONTENT: &[u8] = b"application/sdp\0";
/// What a description begins with, where its kind is not named.
const DESCRIPTION: &[u8] = b"v=0";

/// What one says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Announcement<'a> {
    /// The session has ended.
    pub(super) ends: bool,
    /// Another one with each change of the session.
    pub(super) version: u16,
    /// The address of the sender.
    pub(super) from: IpAddr,
    pub(super) description: &'a str,
}

impl<'a> Announcement<'a> {
    /// Reads a datagram; `None` if it is no announcement of this version, is encrypted or
    /// compressed, or its lengths are not true.
    pub(super) fn read(bytes: &'a [u8]) -> Option<Self> {
        let ([flags, words, high, low], rest) = bytes.split_first_chunk()?;
        let is_plain = flags & 0x3 == 0;
        if flags >> 5 != VERSION || !is_plain {
            return None;
        }
        let (from, rest) = if flags & 0x10 == 0 {
            let (address, rest) = rest.split_first_chunk::<4>()?;
            (IpAddr::V4(Ipv4Addr::from(*address)), rest)
        } else {
            let (address, rest) = rest.split_first_chunk::<16>()?;
            (IpAddr::V6(Ipv6Addr::from(*address)), rest)
        };
        // What would prove who sends it.
        let rest = rest.get(4 * usize::from(*words)..)?;
        let description = match rest.strip_prefix(CONTENT) {
            Some(description) => description,
            None if rest.starts_with(DESCRIPTION) => rest,
            None => return None,
        };
        Some(Self {
            ends: flags & 0x4 != 0,
            version: u16::from_be_bytes([*high, *low]),
            from,
            description: std::str::from_utf8(description).ok()?,
        })
    }

    /// Writes it.
    pub(super) fn write(&self) -> Vec<u8> {
        let is_six = u8::from(self.from.is_ipv6());
        let flags = VERSION << 5 | is_six << 4 | u8::from(self.ends) << 2;
        let mut bytes = vec![flags, 0];
        bytes.extend(self.version.to_be_bytes());
        match self.from {
            IpAddr::V4(address) => bytes.extend(address.octets()),
            IpAddr::V6(address) => bytes.extend(address.octets()),
        }
        bytes.extend(CONTENT);
        bytes.extend(self.description.as_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn announcements_are_read_as_rfc_2974_has_them() {
        let bytes = b"\x24\x01\x12\x34\x0a\0\0\x01autho=notthis".to_vec();
        assert_eq!(Announcement::read(&bytes), None, "it has no description");
        let bytes = b"\x24\x01\x12\x34\x0a\0\0\x01authv=0\no=me\n";
        let read = Announcement::read(bytes).expect("an announcement");
        assert_eq!((read.ends, read.version), (true, 0x1234));
        assert_eq!((read.from, read.description), ([10, 0, 0, 1].into(), "v=0\no=me\n"));
        for (bytes, why) in [
            (&b"\x20\0\0"[..], "it is too short"),
            (b"\x40\0\0\0\x0a\0\0\x01v=0\n", "another version"),
            (b"\x22\0\0\0\x0a\0\0\x01v=0\n", "it is encrypted"),
            (b"\x21\0\0\0\x0a\0\0\x01v=0\n", "it is compressed"),
            (b"\x30\0\0\0\x0a\0\0\x01v=0\n", "its address is cut off"),
            (b"\x20\xff\0\0\x0a\0\0\x01v=0\n", "its proof is cut off"),
            (b"\x20\0\0\0\x0a\0\0\x01v=0\xff", "it is not text"),
            (b"\x20\0\0\0\x0a\0\0\x01text/plain\0v=0\n", "it describes something else"),
        ] {
            assert_eq!(Announcement::read(bytes), None, "{why}");
        }
    }

    proptest! {
        #[test]
        fn any_datagram_is_an_announcement_within_it_or_refused(
            flags in 0x20_u8..0x40,
            bytes in proptest::collection::vec(any::<u8>(), 0..80),
        ) {
            let bytes = [&[flags, 0, 0, 0, 1, 2, 3, 4][..], b"v=0", &bytes].concat();
            if let Some(read) = Announcement::read(&bytes) {
                prop_assert!(read.description.len() < bytes.len());
            }
        }

        #[test]
        fn any_announcement_is_read_as_it_was_written(
            ends: bool,
            version: u16,
            four: bool,
            address: [u8; 16],
            rest in ".{0,40}",
        ) {
            let [a, b, c, d, ..] = address;
            let from = if four { [a, b, c, d].into() } else { address.into() };
            let description = format!("v=0\n{rest}");
            let written = Announcement { ends, version, from, description: &description };
            let bytes = written.write();
            prop_assert_eq!(Announcement::read(&bytes), Some(written));
        }
    }
}
