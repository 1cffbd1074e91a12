//! Command lines as `getopt_long` (getopt(3)) reads them: `-P70`, `-P 70`, `-RTS`, `--name=x`,
//! `--name x`, and long names cut short as long as they stay unambiguous.

/// Whether an option has a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueForm {
    /// Never.
    None,
    /// Always: the rest of the word, or else the next word.
    Required,
    /// The rest of the word, or the next word if that is not an option.
    Optional,
    /// Only the rest of the word, or what follows `=`.
    Attached,
}

/// One option of a program.
#[derive(Debug, Clone, Copy)]
pub struct Spec<Id> {
    /// What it stands for.
    pub id: Id,
    /// Its letter.
    pub short: Option<char>,
    /// Its long names.
    pub long: &'static [&'static str],
    /// Whether it has a value.
    pub value: ValueForm,
}

/// An option of a command line.
#[derive(Debug, PartialEq, Eq)]
pub struct Found<'a, Id> {
    /// What it stands for.
    pub id: Id,
    /// The option as it was written, for messages.
    pub written: String,
    /// Its value.
    pub value: Option<&'a str>,
}

/// Reads the options of a command line one after the other.
#[derive(Debug)]
pub struct OptionReader<'a> {
    rest: &'a [String],
    /// The letters of a word such as `-RTS` that are not read yet.
    cluster: &'a str,
}

impl<'a> OptionReader<'a> {
    /// Begins at the front of `words`.
    #[must_use]
    pub fn new(words: &'a [String]) -> Self {
        Self { rest: words, cluster: "" }
    }

    /// Returns the next option, or `None` at the end.
    ///
    /// # Errors
    /// A sentence that names the wrong word.
    pub fn next_option<Id: Copy>(
        &mut self,
        specs: &[Spec<Id>],
    ) -> Result<Option<Found<'a, Id>>, String> {
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
            Err(format!("'{word}' is not an option (try --help)"))
        }
    }

    fn next_short<Id: Copy>(&mut self, specs: &[Spec<Id>]) -> Result<Found<'a, Id>, String> {
        let mut letters = self.cluster.chars();
        let letter = letters.next().unwrap_or_default();
        let tail = letters.as_str();
        let written = format!("-{letter}");
        let spec = specs.iter().find(|spec| spec.short == Some(letter));
        let spec = spec.ok_or_else(|| unknown(&written))?;
        self.cluster = if spec.value == ValueForm::None { tail } else { "" };
        let attached = (!tail.is_empty()).then_some(tail);
        let value = self.value(spec.value, attached, &written)?;
        Ok(Found { id: spec.id, written, value })
    }

    fn long<Id: Copy>(
        &mut self,
        long: &'a str,
        specs: &[Spec<Id>],
    ) -> Result<Found<'a, Id>, String> {
        let (name, attached) = match long.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (long, None),
        };
        let written = format!("--{name}");
        let spec = find_long(name, specs)?;
        if spec.value == ValueForm::None && attached.is_some() {
            return Err(format!("{written} has no value"));
        }
        let value = self.value(spec.value, attached, &written)?;
        Ok(Found { id: spec.id, written, value })
    }

    fn value(
        &mut self,
        value: ValueForm,
        attached: Option<&'a str>,
        written: &str,
    ) -> Result<Option<&'a str>, String> {
        let next = self.rest.first().map(String::as_str);
        let from_next = match value {
            ValueForm::None => return Ok(None),
            _ if attached.is_some() => return Ok(attached),
            ValueForm::Required => {
                Some(next.ok_or_else(|| format!("{written} needs a value after it"))?)
            }
            ValueForm::Attached => None,
            ValueForm::Optional => next.filter(|word| !word.starts_with('-')),
        };
        if from_next.is_some() {
            self.rest = self.rest.get(1..).unwrap_or_default();
        }
        Ok(from_next)
    }
}

fn find_long<'s, Id>(name: &str, specs: &'s [Spec<Id>]) -> Result<&'s Spec<Id>, String> {
    if let Some(spec) = specs.iter().find(|spec| spec.long.contains(&name)) {
        return Ok(spec);
    }
    let mut begun = specs.iter().filter(|spec| spec.long.iter().any(|long| long.starts_with(name)));
    match (begun.next(), begun.next()) {
        (Some(spec), None) => Ok(spec),
        (Some(_), Some(_)) => Err(format!("--{name} is short for several options (try --help)")),
        (None, _) => Err(unknown(&format!("--{name}"))),
    }
}

fn unknown(written: &str) -> String {
    format!("there is no option {written} (try --help)")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPECS: &[Spec<char>] = &[
        Spec { id: 'R', short: Some('R'), long: &["realtime"], value: ValueForm::None },
        Spec {
            id: 'P',
            short: Some('P'),
            long: &["realtime-priority"],
            value: ValueForm::Required,
        },
        Spec { id: 'n', short: Some('n'), long: &["name"], value: ValueForm::Required },
        Spec { id: 'C', short: Some('C'), long: &["capture"], value: ValueForm::Optional },
        Spec { id: '=', short: None, long: &["replace-registry"], value: ValueForm::None },
    ];

    /// The letters and values found, one after the other, and the error at the end if there is one.
    fn read(line: &str) -> String {
        let words: Vec<String> = line.split_whitespace().map(String::from).collect();
        let mut reader = OptionReader::new(&words);
        let mut read = Vec::new();
        loop {
            match reader.next_option(SPECS) {
                Ok(Some(found)) => {
                    read.push(format!("{}{}", found.id, found.value.unwrap_or_default()))
                }
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
            (
                "an optional value given",
                "-Chw:0 -C hw:1 --capture hw:2 --capture=",
                "Chw:0 Chw:1 Chw:2 C",
            ),
            ("an optional value left out", "-C -R -C", "C R C"),
            ("an unknown letter", "-Rx", "R [there is no option -x (try --help)]"),
            ("an unknown long name", "--xyz", "[there is no option --xyz (try --help)]"),
            ("ambiguous", "--re", "[--re is short for several options (try --help)]"),
            ("no value", "-R -P", "R [-P needs a value after it]"),
            ("a value too many", "--realtime=yes", "[--realtime has no value]"),
            ("a word", "-R alsa", "R ['alsa' is not an option (try --help)]"),
            ("a lonely dash", "-", "['-' is not an option (try --help)]"),
            ("a letter of several bytes", "-ü", "[there is no option -ü (try --help)]"),
        ] {
            assert_eq!(read(line), expected, "{what}");
        }
    }
}
