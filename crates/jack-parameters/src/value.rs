//! Values of parameters, and the words that stand for them.

use std::borrow::Cow;
use std::fmt;

/// Type of a parameter's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Yes or no.
    Bool,
    /// A letter.
    Char,
    /// A signed number.
    Int,
    /// An unsigned number.
    UInt,
    /// A text.
    Text,
}

/// Value of a parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Yes or no.
    Bool(bool),
    /// A letter.
    Char(char),
    /// A signed number.
    Int(i32),
    /// An unsigned number.
    UInt(u32),
    /// A text.
    Text(Cow<'static, str>),
}

impl Value {
    /// Returns a text of the table.
    pub(crate) const fn fixed(text: &'static str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }

    /// Returns its type.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::Bool(_) => Kind::Bool,
            Self::Char(_) => Kind::Char,
            Self::Int(_) => Kind::Int,
            Self::UInt(_) => Kind::UInt,
            Self::Text(_) => Kind::Text,
        }
    }

    /// Returns the number, if it is one.
    #[must_use]
    pub fn number(&self) -> Option<i64> {
        match self {
            Self::Int(number) => Some(i64::from(*number)),
            Self::UInt(number) => Some(i64::from(*number)),
            _ => None,
        }
    }

    /// Reads the value of a command line's word. A letter may be followed by the rest of a name, as
    /// in `shaped`, and everything but 0, false, off and no is true.
    #[must_use]
    pub fn parse(kind: Kind, word: &str) -> Option<Self> {
        match kind {
            Kind::Bool => Some(Self::Bool(!["0", "false", "off", "no"].contains(&word))),
            Kind::Char => word.chars().next().map(Self::Char),
            Kind::Int => word.parse().ok().map(Self::Int),
            Kind::UInt => word.parse().ok().map(Self::UInt),
            Kind::Text => Some(Self::Text(word.to_owned().into())),
        }
    }

    /// Reads the value that its [`Display`](fmt::Display) has written, and no other spelling.
    #[must_use]
    pub fn parse_exactly(kind: Kind, text: &str) -> Option<Self> {
        let value = match kind {
            Kind::Bool => Self::Bool(text.parse().ok()?),
            kind => Self::parse(kind, text)?,
        };
        (value.to_string() == text).then_some(value)
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(is_so) => write!(f, "{is_so}"),
            Self::Char(letter) => write!(f, "{letter}"),
            Self::Int(number) => write!(f, "{number}"),
            Self::UInt(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_value_is_read_as_it_was() {
        for value in [
            Value::Bool(true),
            Value::Bool(false),
            Value::Char(' '),
            Value::Int(-5),
            Value::UInt(u32::MAX),
            Value::Text("hw:CARD=USB,DEV=0 ".into()),
        ] {
            assert_eq!(Value::parse_exactly(value.kind(), &value.to_string()), Some(value));
        }
        for (kind, text) in
            [(Kind::Bool, "yes"), (Kind::Char, "es"), (Kind::Int, "1e3"), (Kind::UInt, "+1")]
        {
            assert_eq!(Value::parse_exactly(kind, text), None, "{text}");
        }
    }

    #[test]
    fn a_word_of_a_command_line_may_be_longer_than_its_letter() {
        assert_eq!(Value::parse(Kind::Char, "shaped"), Some(Value::Char('s')));
        assert_eq!(Value::parse(Kind::Bool, "off"), Some(Value::Bool(false)));
        assert_eq!(Value::parse(Kind::Bool, "1"), Some(Value::Bool(true)));
        assert_eq!(Value::parse(Kind::UInt, "-1"), None);
    }
}
