//! Objects that take messages. There is one: the core, which lists those that there are.

use pulseaudio::protocol::PulseError;

use super::{Answer, Answered};
use crate::wire::{ObjectMessage, object_reply};

/// All objects, as JSON.
const HANDLERS: &std::ffi::CStr =
    c"[{\"name\":\"/core\",\"description\":\"Core message handler\"}]";

/// Answers a message to an object.
pub(super) fn answer_message(tag: u32, message: &ObjectMessage) -> Answered {
    if *message.object != *c"/core" {
        return Err(PulseError::NoEntity);
    }
    match message.message.to_bytes() {
        b"list-handlers" => Ok(Answer::Packet(object_reply(tag, HANDLERS))),
        _ => Err(PulseError::NotImplemented),
    }
}
