//! The values of a packet, checked before they are decoded.
//!
//! The codec allocates what a packet states as the length of a value, and computes with its times.
//! A packet that passes here has no length beyond its own end, and no time that is none. It takes
//! a volume that is none for the largest there is.

/// Most channels of a map and of volumes.
const MAX_CHANNELS: u8 = 32;
const MICROSECONDS: u32 = 1_000_000;
/// The largest volume of a channel.
pub(crate) const MAX_VOLUME: u32 = u32::MAX / 2;
/// Bytes of a packet's command and number.
pub(super) const HEAD_BYTES: usize = 10;

/// Returns the packet's command and the number by which it is answered; `None` if it has none, or
/// values that are cut short or impossible.
pub(super) fn check(packet: &[u8]) -> Option<(u32, u32)> {
    let mut rest = packet;
    let command = tagged_u32(&mut rest)?;
    let tag = tagged_u32(&mut rest)?;
    while !rest.is_empty() {
        skip_value(&mut rest)?;
    }
    Some((command, tag))
}

/// Returns the command and number alone, for the answer to a packet that fails the check.
pub(super) fn head(packet: &[u8]) -> Option<(u32, u32)> {
    let mut rest = packet;
    Some((tagged_u32(&mut rest)?, tagged_u32(&mut rest)?))
}

/// Returns whether a packet that passes the check has a volume that is none for some channel.
pub(super) fn has_wrong_volume(packet: &[u8]) -> bool {
    let mut rest = packet;
    loop {
        let value = rest;
        if skip_value(&mut rest).is_none() {
            return false;
        }
        let [b'v', _, volumes @ ..] = &value[..value.len() - rest.len()] else { continue };
        let volumes = volumes.as_chunks::<4>().0.iter();
        if volumes.map(|volume| u32::from_be_bytes(*volume)).any(|volume| volume > MAX_VOLUME) {
            return true;
        }
    }
}

/// Returns the only value of a packet; `None` if it is another one, or not the only one.
pub(super) fn only_u32(packet: &[u8]) -> Option<u32> {
    let mut rest = packet;
    let [_, _, value] = [tagged_u32(&mut rest)?, tagged_u32(&mut rest)?, tagged_u32(&mut rest)?];
    rest.is_empty().then_some(value)
}

fn skip_value(rest: &mut &[u8]) -> Option<()> {
    // Lists of properties and formats are tagged values in a row, after a tag of their own.
    match byte(rest)? {
        b'N' | b'0' | b'1' | b'P' | b'f' => {}
        b't' => skip(rest, rest.iter().position(|byte| *byte == 0)? + 1)?,
        b'B' => skip(rest, 1)?,
        b'L' | b'V' => skip(rest, 4)?,
        b'a' => skip(rest, 6)?,
        b'R' | b'r' | b'U' => skip(rest, 8)?,
        b'T' => {
            skip(rest, 4)?;
            word(rest).filter(|microseconds| *microseconds < MICROSECONDS)?;
        }
        b'x' => {
            let bytes = word(rest)?;
            skip(rest, bytes as usize)?;
        }
        b'm' => {
            let channels = byte(rest).filter(|channels| *channels <= MAX_CHANNELS)?;
            skip(rest, channels.into())?;
        }
        b'v' => {
            let channels = byte(rest).filter(|channels| *channels <= MAX_CHANNELS)?;
            skip(rest, 4 * usize::from(channels))?;
        }
        _ => return None,
    }
    Some(())
}

fn tagged_u32(rest: &mut &[u8]) -> Option<u32> {
    byte(rest).filter(|tag| *tag == b'L')?;
    word(rest)
}

fn word(rest: &mut &[u8]) -> Option<u32> {
    let (word, after) = rest.split_first_chunk::<4>()?;
    *rest = after;
    Some(u32::from_be_bytes(*word))
}

fn byte(rest: &mut &[u8]) -> Option<u8> {
    let (first, after) = rest.split_first()?;
    *rest = after;
    Some(*first)
}

fn skip(rest: &mut &[u8], bytes: usize) -> Option<()> {
    *rest = rest.get(bytes..)?;
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(values: &[u8]) -> Vec<u8> {
        [b"L\0\0\0\x0eL\0\0\0\x07", values].concat()
    }

    #[test]
    fn a_packet_of_whole_values_has_a_command_and_a_number() {
        for values in [
            &b""[..],
            b"L\0\0\0\x01tname\0N01",
            b"B\x07R12345678r12345678U12345678V1234a123456",
            b"T\0\0\0\x01\0\x0f\x42\x3fm\x02\x01\x02v\x01\0\x01\0\0x\0\0\0\x03abc",
            b"Ptkey\0L\0\0\0\x02x\0\0\0\x02a\0NfB\x01PN",
        ] {
            assert_eq!(check(&packet(values)), Some((14, 7)), "{values:?}");
        }
    }

    #[test]
    fn a_value_that_is_cut_short_or_impossible_is_refused() {
        for values in [
            &b"L\0\0\0"[..],
            b"tname without an end",
            b"x\xff\xff\xff\xffabc",
            b"T\0\0\0\x01\xff\xff\xff\xff",
            b"T\0\0\0\x01\0\x0f\x42\x40",
            b"m\x21012345678901234567890123456789012",
            b"v\x02\0\x01\0\0",
            b"?",
        ] {
            assert_eq!(check(&packet(values)), None, "{values:?}");
            assert_eq!(head(&packet(values)), Some((14, 7)));
        }
        assert_eq!(check(b"L\0\0\0\x0e"), None);
        assert_eq!(head(b""), None);
    }

    #[test]
    fn a_volume_that_is_none_is_found_in_any_channel() {
        for (values, is_wrong) in [
            (&b""[..], false),
            (b"v\x02\x7f\xff\xff\xff\0\0\0\0", false),
            (b"v\x02\0\0\0\0\x80\0\0\0", true),
            (b"tname\0v\x01\xff\xff\xff\xff1", true),
            // A sample that is played in a volume of its own has none.
            (b"V\xff\xff\xff\xffv\0L\xff\xff\xff\xff", false),
        ] {
            assert_eq!(has_wrong_volume(&packet(values)), is_wrong, "{values:?}");
        }
    }
}
