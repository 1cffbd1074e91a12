//! Rules for the names of servers, clients and ports.

use serde::{Deserialize, Serialize};

use crate::limits::{CLIENT_NAME_BYTES, FULL_NAME_BYTES};

/// What is wrong with a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[non_exhaustive]
pub enum NameError {
    /// The name is empty or consists of white space.
    #[error("a name must not be empty")]
    Empty,
    /// The name has too many bytes.
    #[error("a name of {found} bytes is too long: at most {limit}")]
    TooLong {
        /// Its length.
        found: usize,
        /// The longest allowed.
        limit: usize,
    },
    /// The name contains a character that C strings or the terminal cannot represent.
    #[error("a name must not contain control characters")]
    Control,
    /// A server's name has to be valid as the name of a file.
    #[error("a server's name must not contain '/' nor begin with '.'")]
    NotAFileName,
}

/// Checks a client's name.
pub fn check_client(name: &str) -> Result<(), NameError> {
    check(name, CLIENT_NAME_BYTES)
}

/// Checks a port's short name, given the name of its client.
pub fn check_port(client: &str, name: &str) -> Result<(), NameError> {
    check(name, FULL_NAME_BYTES.saturating_sub(client.len() + 1))
}

/// Checks an alias, or a full port name.
pub fn check_full(name: &str) -> Result<(), NameError> {
    check(name, FULL_NAME_BYTES)
}

/// Checks a server's name.
pub fn check_server(name: &str) -> Result<(), NameError> {
    check(name, CLIENT_NAME_BYTES)?;
    if name.contains('/') || name.starts_with('.') { Err(NameError::NotAFileName) } else { Ok(()) }
}

/// Returns `client:port`.
pub fn full(client: &str, port: &str) -> String {
    format!("{client}:{port}")
}

/// Returns what follows the first colon of a full name, as JACK splits it.
pub fn short(full: &str) -> &str {
    full.split_once(':').map_or(full, |(_, short)| short)
}

fn check(name: &str, limit: usize) -> Result<(), NameError> {
    if name.trim().is_empty() {
        Err(NameError::Empty)
    } else if name.len() > limit {
        Err(NameError::TooLong { found: name.len(), limit })
    } else if name.chars().any(char::is_control) {
        Err(NameError::Control)
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_refused_for_its_own_reason() {
        let long = "x".repeat(65);
        for (what, name, expected) in [
            ("the longest", &long[..64], Ok(())),
            ("one byte more", &long[..], Err(NameError::TooLong { found: 65, limit: 64 })),
            ("empty", "", Err(NameError::Empty)),
            ("white", " \t", Err(NameError::Empty)),
            ("a line break", "a\nb", Err(NameError::Control)),
            ("colons are JACK's own habit", "a:b", Ok(())),
        ] {
            assert_eq!(check_client(name), expected, "{what}");
        }
        assert_eq!(check_server("../evil"), Err(NameError::NotAFileName));
        assert_eq!(check_port("client", &"x".repeat(312)), Ok(()));
        assert!(check_port("client", &"x".repeat(313)).is_err());
    }

    #[test]
    fn a_full_name_is_split_at_its_first_colon() {
        assert_eq!((short("a:b:c"), short("a"), full("a:b", "c").as_str()), ("b:c", "a", "a:b:c"));
    }
}
