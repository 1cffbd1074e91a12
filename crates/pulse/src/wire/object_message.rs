//! Messages to objects, which the codec does not know: since version 35 of the protocol.

use std::ffi::{CStr, CString};

/// The number of the command.
pub(super) const COMMAND: u32 = 104;
/// A packet's tagged values begin behind its command and number, each a tag and four bytes.
const HEAD_BYTES: usize = 10;

/// A message to an object, and its parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ObjectMessage {
    /// Path of the object.
    pub object: CString,
    /// What is asked of it.
    pub message: CString,
}

impl ObjectMessage {
    /// Reads a packet that [`tagstruct::check`](super::tagstruct::check) has passed; `None` if it
    /// has other values. No object takes parameters: they are left alone.
    pub fn read(packet: &[u8]) -> Option<Self> {
        let mut rest = packet.get(HEAD_BYTES..)?;
        let object = text(&mut rest)??;
        let message = text(&mut rest)??;
        let _parameters = text(&mut rest)?;
        rest.is_empty().then_some(Self { object, message })
    }
}

/// Reads a text, which may be none.
fn text(rest: &mut &[u8]) -> Option<Option<CString>> {
    match rest.split_first()? {
        (b'N', after) => {
            *rest = after;
            Some(None)
        }
        (b't', after) => {
            let text = CStr::from_bytes_until_nul(after).ok()?;
            *rest = after.get(text.count_bytes() + 1..)?;
            Some(Some(text.to_owned()))
        }
        _ => None,
    }
}

/// Returns the bytes of the answer to a message.
pub(crate) fn object_reply(tag: u32, response: &CStr) -> Vec<u8> {
    // A reply, as an acknowledgement is, and behind it the text.
    let mut bytes = super::success(tag);
    bytes.push(b't');
    bytes.extend(response.to_bytes_with_nul());
    let length = u32::try_from(bytes.len() - DESCRIPTOR_BYTES).unwrap_or(u32::MAX);
    bytes[..4].copy_from_slice(&length.to_be_bytes());
    bytes
}

/// Bytes before a packet, which begin with its length.
const DESCRIPTOR_BYTES: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(values: &[u8]) -> Vec<u8> {
        [b"L\0\0\0\x68L\0\0\0\x07", values].concat()
    }

    #[test]
    fn a_message_names_an_object_and_what_is_asked() {
        let expected = ObjectMessage { object: c"/core".into(), message: c"list".into() };
        for values in [&b"t/core\0tlist\0N"[..], b"t/core\0tlist\0tparameters\0"] {
            assert_eq!(ObjectMessage::read(&packet(values)).as_ref(), Some(&expected));
        }
        for values in [
            &b"t/core\0tlist\0"[..],
            b"Ntlist\0N",
            b"t/core\0NN",
            b"t/core\0tlist\0NN",
            b"L\0\0\0\x01tlist\0N",
            b"",
        ] {
            assert_eq!(ObjectMessage::read(&packet(values)), None, "{values:?}");
        }
    }

    #[test]
    fn an_answer_is_a_reply_with_a_text() {
        let bytes = object_reply(7, c"[]");
        assert_eq!(bytes[..4], [0, 0, 0, 14]);
        assert_eq!(bytes[20..], *b"L\0\0\0\x02L\0\0\0\x07t[]\0");
    }
}
