//! Properties of clients and ports, by uuid.
//!
//! A uuid is JACK's: its upper half is 1 for a port and 2 for a client, and its lower half is a
//! number that is never 0.

use serde::{Deserialize, Serialize};

use crate::limits::{PROPERTY_KEY_BYTES, PROPERTY_TYPE_BYTES, PROPERTY_VALUE_BYTES};

const PORT: u64 = 1 << 32;
const CLIENT: u64 = 2 << 32;

/// Returns the uuid of client `number`, counted from 1.
pub const fn client_uuid(number: u32) -> u64 {
    CLIENT | number as u64
}

/// Returns the uuid of port `number`. The last of the 2^32 numbers belongs to no port.
pub const fn port_uuid(port_id: u32) -> u64 {
    PORT | port_id.wrapping_add(1) as u64
}

/// The property of a client that says what it is for, in PulseAudio's words: `phone`, `music`.
pub const ROLE_KEY: &str = "media.role";

/// The subject of a uuid, whether or not it exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// A client, by its id.
    Client(u32),
    /// A port, by its id.
    Port(u32),
}

impl Subject {
    /// Returns the subject of `uuid`, if this kind of server may have made it.
    pub const fn of(uuid: u64) -> Option<Self> {
        let number = uuid as u32;
        match (uuid >> 32, number) {
            (1, 1..) => Some(Self::Port(number - 1)),
            (2, 1..) => Some(Self::Client(number)),
            _ => None,
        }
    }
}

/// A property of a subject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Property {
    /// Uuid of the subject.
    pub subject: u64,
    /// The key, usually a URI.
    pub key: String,
    /// The value.
    pub value: PropertyValue,
}

/// A property's value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PropertyValue {
    /// The value in UTF-8, whatever the type says.
    pub text: String,
    /// A MIME type; empty if none was given.
    pub type_name: String,
}

/// The next part of a listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PropertyPage {
    /// The subject; `None` for all.
    pub subject: Option<u64>,
    /// The last property (subject and key) of the previous page.
    pub after: Option<(u64, String)>,
}

/// A request about properties. The comment names the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum PropertyRequest {
    /// Sets a property. [`Reply::Done`](crate::request::Reply::Done).
    Set(Property),
    /// Reads a property. [`Reply::Property`](crate::request::Reply::Property).
    Get {
        /// Uuid of the subject.
        subject: u64,
        /// The key.
        key: String,
    },
    /// Lists properties. [`Reply::Properties`](crate::request::Reply::Properties).
    List(PropertyPage),
    /// Removes a property; only clients may. [`Reply::Done`](crate::request::Reply::Done).
    Remove {
        /// Uuid of the subject.
        subject: u64,
        /// The key.
        key: String,
    },
    /// Removes all properties of a subject; only clients may.
    /// [`Reply::Count`](crate::request::Reply::Count).
    RemoveAllOf {
        /// Uuid of the subject.
        subject: u64,
    },
    /// Removes all properties of all subjects; only clients may.
    /// [`Reply::Done`](crate::request::Reply::Done).
    RemoveAll,
}

/// Kind of change of a property.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PropertyChange {
    /// The property was created.
    Created,
    /// The value was replaced.
    Changed,
    /// The property was removed.
    Deleted,
}

/// Checks whether a property may have this key, value and type.
///
/// # Errors
/// A sentence that says what is wrong.
pub fn check_texts(key: &str, value: &str, type_name: &str) -> Result<(), String> {
    for (what, text, limit) in [
        ("key", key, PROPERTY_KEY_BYTES),
        ("value", value, PROPERTY_VALUE_BYTES),
        ("type", type_name, PROPERTY_TYPE_BYTES),
    ] {
        if text.len() > limit {
            let found = text.len();
            return Err(format!(
                "a property's {what} of {found} bytes is too long: at most {limit}"
            ));
        }
        if text.contains('\0') {
            return Err(
                "a property's key, value and type must not contain a 0, which ends a text in C"
                    .into(),
            );
        }
    }
    if key.is_empty() || value.is_empty() {
        return Err("a property needs a key and a value".into());
    }
    Ok(())
}

impl Property {
    /// Returns the bytes that it counts for.
    pub const fn bytes(&self) -> usize {
        self.key.len() + self.value.text.len() + self.value.type_name.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids_have_jacks_format() {
        assert_eq!((client_uuid(1), port_uuid(0)), (8_589_934_593, 4_294_967_297));
        for (uuid, subject) in [
            (client_uuid(7), Some(Subject::Client(7))),
            (port_uuid(70_000), Some(Subject::Port(70_000))),
            (0, None),
            (1 << 32, None),
            (3 << 32 | 1, None),
            (u64::MAX, None),
        ] {
            assert_eq!(Subject::of(uuid), subject, "{uuid}");
        }
    }
}
