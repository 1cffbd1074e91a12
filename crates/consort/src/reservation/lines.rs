//! The lines that `consort reserve` exchanges with the driver that has the card.

use std::fmt;

/// What `consort reserve` prints, one line each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The card is ours: at first, again, or still, because a request was withdrawn.
    Ours,
    /// Its owner, by the name it gives itself, does not release it.
    Refused(String),
    /// A program of higher priority asks for the card, and waits until it is closed.
    Asked {
        /// Number of the request.
        request: u32,
        /// The program.
        by: String,
    },
}

const OURS: &str = "ours";
const REFUSED: &str = "refused ";
const ASKED: &str = "asked ";
const CLOSED: &str = "closed ";

impl fmt::Display for Answer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let in_one_line = |name: &str| name.replace(char::is_control, " ");
        match self {
            Self::Ours => formatter.write_str(OURS),
            Self::Refused(owner) => write!(formatter, "{REFUSED}{}", in_one_line(owner)),
            Self::Asked { request, by } => {
                write!(formatter, "{ASKED}{request} {}", in_one_line(by))
            }
        }
    }
}

impl Answer {
    /// Reads a line; `None` if it says something else.
    pub(crate) fn read(line: &str) -> Option<Self> {
        if line == OURS {
            return Some(Self::Ours);
        }
        if let Some(owner) = line.strip_prefix(REFUSED) {
            return Some(Self::Refused(owner.to_owned()));
        }
        let (request, by) = line.strip_prefix(ASKED)?.split_once(' ')?;
        Some(Self::Asked { request: request.parse().ok()?, by: by.to_owned() })
    }
}

/// Returns the line that says to `consort reserve` that the card was closed for a request.
pub(crate) fn closed(request: u32) -> String {
    format!("{CLOSED}{request}")
}

/// Returns the request for which a line says that the card was closed.
pub(crate) fn read_closed(line: &str) -> Option<u32> {
    line.strip_prefix(CLOSED)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_say_what_was_meant() {
        for answer in [
            Answer::Ours,
            Answer::Refused("another server".into()),
            Answer::Asked { request: 7, by: "jack d".into() },
        ] {
            assert_eq!(Answer::read(&answer.to_string()), Some(answer));
        }
        assert_eq!(Answer::Refused("a\nb".into()).to_string(), "refused a b");
        assert_eq!(read_closed(&closed(9)), Some(9));
        for line in ["", "our", "asked", "asked x y", "asked 7", "closed 7"] {
            assert_eq!(Answer::read(line), None, "{line:?}");
        }
        for line in ["", "closed", "closed x", "ours"] {
            assert_eq!(read_closed(line), None, "{line:?}");
        }
    }
}
