//! Command lines as `getopt_long` (getopt(3)) reads them: `-P70`, `-P 70`, `-RTS`, `--name=x`, `--name x`, and
//! long names cut short as long as they stay unambiguous.

use crate::exit::UsageError;

/// Whether an option has a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value {
    /// Never.
    None,
    /// Always: the rest of the word, or else the next word.
    Required,
    /// The rest of the word, or the next word if that is no option.
    Optional,
}

/// One option of a program.
#[derive(Debug)]
pub(super) struct Spec<Id> {
    /// What it means.
    pub(super) id: Id,
    /// Its letter.
    pub(super) short: Option<char>,
    /// Its long names.
    pub(super) long: &'static [&'static str],
    /// Whether a value follows.
    pub(super) value: Value,
}

/// An option that was found.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Found<'a, Id> {
    pub(super) id: Id,
    /// As it was written, for messages.
    pub(super) written: String,
    pub(super) value: Option<&'a str>,
}

/// Reads options from the front of a command line.
#[derive(Debug)]
pub(super) struct Words<'a> {
    rest: &'a [String],
    /// What is left of a word such as `-RTS`.
    cluster: &'a str,
}

impl<'a> Words<'a> {
    pub(super) fn new(words: &'a [String]) -> Self {
        Self { rest: words, cluster: "" }
    }

    /// The next option; `None` at the end.
    pub(super) fn next<Id: Copy>(&mut self, specs: &[Spec<Id>]) -> Result<Option<Found<'a, Id>>, UsageError> {
        if !self.cluster.is_empty() {
            return self.next_short(specs).map(Some);
        }
        let Some((word, rest)) = self.rest.split_first() else { return Ok(None) };
        self.rest = rest;
        if let Some(long) = word.strip_prefix("--") {
            self.long(long, specs).map(Some)
        } else if let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) {
            self.cluster = letters;
            self.next_short(specs).map(Some)
        } else {
            Err(UsageError(format!("'{word}' is no option (try --help)")))
        }
    }

    fn next_short<Id: Copy>(&mut self, specs: &[Spec<Id>]) -> Result<Found<'a, Id>, UsageError> {
        let mut letters = self.cluster.chars();
        let letter = letters.next().unwrap_or_default();
        let tail = letters.as_str();
        let written = format!("-{letter}");
        let spec = specs.iter().find(|spec| spec.short == Some(letter));
        let spec = spec.ok_or_else(|| unknown(&written))?;
        self.cluster = if spec.value == Value::None { tail } else { "" };
        let attached = (!tail.is_empty()).then_some(tail);
        let value = self.value(spec.value, attached, &written)?;
        Ok(Found { id: spec.id, written, value })
    }

    fn long<Id: Copy>(&mut self, long: &'a str, specs: &[Spec<Id>]) -> Result<Found<'a, Id>, UsageError> {
        let (name, attached) = match long.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (long, None),
        };
        let written = format!("--{name}");
        let spec = find_long(name, specs)?;
        if spec.value == Value::None && attached.is_some() {
            return Err(UsageError(format!("{written} has no value")));
        }
        let value = self.value(spec.value, attached, &written)?;
        Ok(Found { id: spec.id, written, value })
    }

    fn value(
        &mut self,
        value: Value,
        attached: Option<&'a str>,
        written: &str,
    ) -> Result<Option<&'a str>, UsageError> {
        let next = self.rest.first().map(String::as_str);
        let from_next = match value {
            Value::None => return Ok(None),
            _ if attached.is_some() => return Ok(attached),
            Value::Required => {
                Some(next.ok_or_else(|| UsageError(format!("{written} needs a value after it")))?)
            }
            Value::Optional => next.filter(|word| !word.starts_with('-')),
        };
        if from_next.is_some() {
            self.rest = self.rest.get(1..).unwrap_or_default();
        }
        Ok(from_next)
    }
}

fn find_long<'s, Id>(name: &str, specs: &'s [Spec<Id>]) -> Result<&'s Spec<Id>, UsageError> {
    if let Some(spec) = specs.iter().find(|spec| spec.long.contains(&name)) {
        return Ok(spec);
    }
    let mut begun = specs.iter().filter(|spec| spec.long.iter().any(|long| long.starts_with(name)));
    match (begun.next(), begun.next()) {
        (Some(spec), None) => Ok(spec),
        (Some(_), Some(_)) => Err(UsageError(format!("--{name} is short for several options (try --help)"))),
        (None, _) => Err(unknown(&format!("--{name}"))),
    }
}

fn unknown(written: &str) -> UsageError {
    UsageError(format!("there is no option {written} (try --help)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPECS: &[Spec<char>] = &[
        Spec { id: 'R', short: Some('R'), long: &["realtime"], value: Value::None },
        Spec { id: 'P', short: Some('P'), long: &["realtime-priority"], value: Value::Required },
        Spec { id: 'n', short: Some('n'), long: &["name"], value: Value::Required },
        Spec { id: 'C', short: Some('C'), long: &["capture"], value: Value::Optional },
        Spec { id: '=', short: None, long: &["replace-registry"], value: Value::None },
    ];

    /// The letters and values found, one after the other, and the error at the end if there is one.
    fn read(line: &str) -> String {
        let words: Vec<String> = line.split_whitespace().map(String::from).collect();
        let mut reader = Words::new(&words);
        let mut read = Vec::new();
        loop {
            match reader.next(SPECS) {
                Ok(Some(found)) => read.push(format!("{}{}", found.id, found.value.unwrap_or_default())),
                Ok(None) => return read.join(" "),
                Err(error) => {
                    read.push(format!("[{error}]"));
                    return read.join(" ");
                }
            }
        }
    }

    #[test]
    fn options_are_read_as_getopt_reads_them() {
        for (what, line, expected) in [
            ("nothing", "", ""),
            ("a value in the same word", "-P70", "P70"),
            ("a value in the next word", "-P 70", "P70"),
            ("a value that looks like an option", "-n -R", "n-R"),
            ("letters in one word", "-RP70", "R P70"),
            ("the last letter's value in the next word", "-RP 70 -R", "R P70 R"),
            ("a long name", "--realtime --name=x", "R nx"),
            ("a long name's value in the next word", "--name x", "nx"),
            ("a value with '='", "--name=a=b", "na=b"),
            ("a long name that begins another", "--realtime", "R"),
            ("a long name cut short", "--rep --nam x --realtime-p 5", "= nx P5"),
            ("an optional value given", "-Chw:0 -C hw:1 --capture hw:2 --capture=", "Chw:0 Chw:1 Chw:2 C"),
            ("an optional value left out", "-C -R -C", "C R C"),
            ("an unknown letter", "-Rx", "R [there is no option -x (try --help)]"),
            ("an unknown long name", "--xyz", "[there is no option --xyz (try --help)]"),
            ("ambiguous", "--re", "[--re is short for several options (try --help)]"),
            ("no value", "-R -P", "R [-P needs a value after it]"),
            ("a value too many", "--realtime=yes", "[--realtime has no value]"),
            ("a word", "-R alsa", "R ['alsa' is no option (try --help)]"),
            ("a lonely dash", "-", "['-' is no option (try --help)]"),
            ("a letter of several bytes", "-ü", "[there is no option -ü (try --help)]"),
        ] {
            assert_eq!(read(line), expected, "{what}");
        }
    }
}
