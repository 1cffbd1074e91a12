//! Packets: what a program asks, what it is answered, and what it is notified of.

use std::ffi::CString;

use pulseaudio::protocol::{
    Command, CommandReply, ProtocolError, PulseError, SubscriptionMask, TagStructReader,
    encode_ack_message, encode_command_message, encode_reply_message, write_error,
};

use super::object_message::{self, ObjectMessage};
use super::tagstruct;

/// The number of packets that answer none.
pub(super) const NO_ANSWER: u32 = u32::MAX;
/// The newest command of the protocol, and those that it once had.
const LAST_COMMAND: u32 = 104;
const FORMER_COMMANDS: std::ops::RangeInclusive<u32> = 53..=56;

/// The command that subscribes to events.
const SUBSCRIBE: u32 = 35;

/// A packet from a program.
#[derive(Debug)]
pub(crate) struct Packet {
    /// The number by which it is answered.
    pub tag: u32,
    /// What it asks.
    pub request: Request,
    /// The keys that a `Remove…Proplist` names, or the name that a `GetSampleInfo` asks for.
    pub keys: Vec<CString>,
    /// What an `Extension` asks of its module.
    pub extension: Vec<u8>,
}

/// What a packet asks.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Request {
    /// What the codec knows.
    Command(Box<Command>),
    /// A message to an object.
    Message(ObjectMessage),
}

/// Why a packet cannot be understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unreadable {
    /// The number by which that is answered; `None` if the packet has none.
    pub tag: Option<u32>,
    /// PulseAudio's code for it.
    pub error: PulseError,
}

/// Reads a packet of a program that speaks `version`.
///
/// # Errors
/// [`Unreadable`]; the frames after it can be read all the same.
pub(crate) fn read(packet: &[u8], version: u16) -> Result<Packet, Unreadable> {
    let refuse = |error| {
        let tag = tagstruct::head(packet).map(|(_, tag)| tag);
        Unreadable { tag, error }
    };
    let (number, tag) = tagstruct::check(packet).ok_or_else(|| refuse(PulseError::Protocol))?;
    if number > LAST_COMMAND || FORMER_COMMANDS.contains(&number) {
        return Err(refuse(PulseError::NotSupported));
    }
    // The codec takes what it does not know for nothing.
    let is_kind = |mask: u32| mask & !SubscriptionMask::ALL.bits() == 0;
    let has_wrong_kind =
        number == SUBSCRIBE && tagstruct::only_u32(packet).is_some_and(|mask| !is_kind(mask));
    if has_wrong_kind || tagstruct::has_wrong_volume(packet) {
        return Err(refuse(PulseError::Invalid));
    }
    if number == object_message::COMMAND {
        let message = ObjectMessage::read(packet).ok_or_else(|| refuse(PulseError::Protocol))?;
        let (keys, extension) = (Vec::new(), Vec::new());
        return Ok(Packet { tag, request: Request::Message(message), keys, extension });
    }
    let mut rest = packet;
    let command = match Command::read_tag_prefixed(&mut rest, version) {
        Ok((_, command)) => command,
        Err(ProtocolError::Unimplemented(..)) => return Err(refuse(PulseError::NotSupported)),
        Err(_) => return Err(refuse(PulseError::Protocol)),
    };
    let (mut keys, mut extension) = (Vec::new(), Vec::new());
    match command {
        Command::Extension(_) => extension = std::mem::take(&mut rest).to_vec(),
        Command::RemovePlaybackStreamProplist(_)
        | Command::RemoveRecordStreamProplist(_)
        | Command::RemoveClientProplist => {
            let mut values = TagStructReader::new(&mut rest, version);
            while let Some(key) = values.read_string().map_err(|_| refuse(PulseError::Protocol))? {
                keys.push(key);
            }
        }
        Command::GetSampleInfo(_) if !rest.is_empty() => {
            let mut values = TagStructReader::new(&mut rest, version);
            keys.extend(values.read_string().map_err(|_| refuse(PulseError::Protocol))?);
        }
        _ => {}
    }
    if !rest.is_empty() {
        return Err(refuse(PulseError::Protocol));
    }
    Ok(Packet { tag, request: Request::Command(Box::new(command)), keys, extension })
}

/// Returns the bytes of an answer.
pub(crate) fn reply(tag: u32, reply: &impl CommandReply, version: u16) -> Vec<u8> {
    let mut bytes = Vec::new();
    written(encode_reply_message(&mut bytes, tag, reply, version));
    bytes
}

/// Returns the bytes of an answer that says no more than that it was done.
pub(crate) fn success(tag: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    written(encode_ack_message(tag, &mut bytes));
    bytes
}

/// Returns the bytes of a refusal.
pub(crate) fn error(tag: u32, error: PulseError) -> Vec<u8> {
    let mut bytes = Vec::new();
    written(write_error(&mut bytes, tag, &error));
    bytes
}

/// Returns the bytes of what a program is notified of.
pub(crate) fn event(command: &Command, version: u16) -> Vec<u8> {
    request(NO_ANSWER, command, version)
}

/// Returns the bytes of a request to another server, which is answered by its number.
pub(crate) fn request(tag: u32, command: &Command, version: u16) -> Vec<u8> {
    let mut bytes = Vec::new();
    written(encode_command_message(&mut bytes, tag, command, version));
    bytes
}

/// Reads the head of what another server sends: its command, its number, and the values after
/// them, which are whole; `None` if it has none.
pub(crate) fn reply_head(packet: &[u8]) -> Option<(u32, u32, &[u8])> {
    let (command, tag) = tagstruct::check(packet)?;
    Some((command, tag, packet.get(tagstruct::HEAD_BYTES..)?))
}

/// Only a writer could fail, and a vector takes everything.
fn written<T>(result: Result<T, ProtocolError>) {
    debug_assert!(result.is_ok(), "{:?}", result.err());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use pulseaudio::protocol::{AuthParams, MAX_VERSION};

    use super::*;

    fn packet(command: u32, values: &[u8]) -> Vec<u8> {
        let mut bytes = b"L".to_vec();
        bytes.extend(command.to_be_bytes());
        bytes.extend(b"L\0\0\0\x07");
        bytes.extend(values);
        bytes
    }

    fn refusal(packet: &[u8]) -> (Option<u32>, PulseError) {
        let Unreadable { tag, error } = read(packet, MAX_VERSION).expect_err("unreadable");
        (tag, error)
    }

    #[test]
    fn a_packet_is_read_with_its_number() {
        let command = Command::Auth(AuthParams { version: 35, ..AuthParams::default() });
        let bytes = event(&command, MAX_VERSION);
        let packet = read(&bytes[20..], MAX_VERSION).expect("a packet");
        assert_eq!((packet.tag, packet.request), (NO_ANSWER, Request::Command(Box::new(command))));
    }

    #[test]
    fn keys_to_be_removed_are_read() {
        let bytes = packet(84, b"L\0\0\0\x02tone\0ttwo\0N");
        let read = read(&bytes, MAX_VERSION).expect("a packet");
        let command = Command::RemovePlaybackStreamProplist(2);
        assert_eq!(read.request, Request::Command(Box::new(command)));
        assert_eq!(read.keys, [c"one".to_owned(), c"two".to_owned()]);
    }

    #[test]
    fn what_cannot_be_read_is_refused_with_pulseaudios_code() {
        let unknown = [(Some(7), PulseError::NotSupported); 3];
        // A former command, one of the future, and one that the codec cannot read.
        let packets = [packet(53, b""), packet(105, b""), packet(101, b"")];
        assert_eq!(packets.map(|packet| refusal(&packet)), unknown);
        let cut = packet(10, b"tsink");
        let too_long = packet(20, b"L\0\0\0\x01");
        let other_values = packet(10, b"L\0\0\0\x01");
        for packet in [cut, too_long, other_values] {
            assert_eq!(refusal(&packet), (Some(7), PulseError::Protocol));
        }
        assert_eq!(refusal(b"none"), (None, PulseError::Protocol));
    }

    proptest! {
        #[test]
        fn any_values_are_a_packet_or_refused(
            command in 0..106_u32,
            values in prop::collection::vec(any::<u8>(), 0..100),
            version in 13..36_u16,
        ) {
            let _ = read(&packet(command, &values), version);
        }
    }
}
