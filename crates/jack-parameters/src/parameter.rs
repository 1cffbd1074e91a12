//! A parameter as the table describes it.

use crate::value::Value;

/// Values that a parameter may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Constraint {
    /// All values of its type.
    Any,
    /// Numbers from the first to the second.
    Range(i64, i64),
    /// These values, each with its meaning.
    OneOf(&'static [(Value, &'static str)]),
}

impl Constraint {
    /// Checks a value of the parameter's type.
    ///
    /// # Errors
    /// A sentence that says which values are allowed.
    pub fn check(&self, value: &Value) -> Result<(), String> {
        match self {
            Self::Any => Ok(()),
            Self::Range(min, max) => match value.number() {
                Some(number) if (*min..=*max).contains(&number) => Ok(()),
                _ => Err(format!("{value} is out of range: {min} to {max}")),
            },
            Self::OneOf(values) if values.iter().any(|(allowed, _)| allowed == value) => Ok(()),
            Self::OneOf(values) => {
                let allowed: Vec<String> =
                    values.iter().map(|(allowed, _)| format!("'{allowed}'")).collect();
                let value = value.to_string();
                Err(format!("'{}' is not one of {}", value.escape_debug(), allowed.join(", ")))
            }
        }
    }
}

/// What a parameter does as an option of `jackd`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The option has no value and makes it true.
    IfTrue,
    /// `-r` makes it false, and its own option makes it true again.
    IfFalse,
    /// A value follows the option.
    Valued,
    /// A value may follow the option.
    OptionallyValued,
    /// The option is accepted and has no effect, for this reason. With `true` a value follows.
    Ignored(bool, &'static str),
}

/// A parameter of the server, a driver or a plug-in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// Letter of its option. `None`: it has only a long option.
    pub letter: Option<char>,
    /// Its name in jackctl and D-Bus.
    pub name: &'static str,
    /// Names of its long options; the first one is in the help.
    pub long: &'static [&'static str],
    /// What the help calls its value.
    pub value_name: &'static str,
    /// Its value unless it is set.
    pub default: Value,
    /// Whether the value comes from a file unless it is set. Then `default` is only what front ends
    /// show.
    pub is_derived: bool,
    /// Values that it may have.
    pub constraint: Constraint,
    /// What it does as an option.
    pub effect: Effect,
    /// Its description, in one line of plain text.
    pub text: &'static str,
}

impl Parameter {
    /// Returns its line in the help of `jackd`: the option, its text and its default.
    #[must_use]
    pub fn help(&self) -> String {
        let long = self.long.first().unwrap_or(&self.name);
        let letter = self.letter.map(|letter| format!("-{letter}, ")).unwrap_or_default();
        let default = match &self.default {
            _ if !self.has_effect() || self.is_derived => String::new(),
            Value::Bool(true) => " (default)".into(),
            value if value.number().is_some_and(|number| number != 0) => {
                format!(" (default: {value})")
            }
            _ => String::new(),
        };
        let option = format!("{letter}--{long} {}", self.value_name);
        help_line(option.trim_end(), &format!("{}{default}", self.text))
    }

    /// Returns the words of a command line of `jackd` that set it to `value`: none for its default,
    /// except for a flag that is true.
    #[must_use]
    pub fn words(&self, value: &Value) -> Vec<String> {
        let Some(letter) = self.letter else { return Vec::new() };
        match (self.effect, value) {
            (Effect::IfTrue, Value::Bool(true)) => vec![format!("-{letter}")],
            (Effect::IfFalse, Value::Bool(false)) => {
                vec![format!("-{}", letter.to_ascii_lowercase())]
            }
            (Effect::Valued | Effect::OptionallyValued, value) if *value != self.default => {
                vec![format!("-{letter}"), value.to_string()]
            }
            _ => Vec::new(),
        }
    }

    /// Returns whether it has an effect here.
    #[must_use]
    pub fn has_effect(&self) -> bool {
        !matches!(self.effect, Effect::Ignored(..))
    }

    /// Reads a value of a command line and checks it. `written` is the option as it was written.
    ///
    /// # Errors
    /// A sentence that says which values are allowed.
    pub fn parse(&self, written: &str, word: &str) -> Result<Value, String> {
        let value = Value::parse(self.default.kind(), word)
            .filter(|value| self.constraint.check(value).is_ok());
        value.ok_or_else(|| match self.constraint {
            Constraint::Range(min, max) => {
                format!("{written} {word} is not a number from {min} to {max}")
            }
            Constraint::OneOf(values) => {
                let allowed: Vec<String> =
                    values.iter().map(|(allowed, _)| format!("'{allowed}'")).collect();
                format!("{written} {word} is not one of {}", allowed.join(", "))
            }
            Constraint::Any => format!("{written} {word} makes no sense"),
        })
    }
}

/// Columns of the options in a help text.
const OPTION_COLUMNS: usize = 27;
/// Columns of a help text.
const COLUMNS: usize = 100;

/// Returns a line of a help text, wrapped: an option and what it does.
#[must_use]
pub fn help_line(option: &str, text: &str) -> String {
    let mut lines = format!("    {option:<OPTION_COLUMNS$}");
    let mut column = lines.chars().count();
    // Two spaces end the option: the man page is generated from these lines.
    let mut separator = "  ";
    for word in text.split(' ') {
        let columns = word.chars().count();
        if column + separator.len() + columns > COLUMNS {
            lines.push_str(&format!("\n{:width$}", "", width = OPTION_COLUMNS + 6));
            (column, separator) = (OPTION_COLUMNS + 6, "");
        }
        lines.push_str(separator);
        lines.push_str(word);
        column += separator.len() + columns;
        separator = " ";
    }
    lines.push('\n');
    lines
}
