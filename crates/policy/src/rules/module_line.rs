//! A line that loads a module.

/// What begins such a line.
const WORD: &str = "load-module";

/// A module that is to be loaded: the line is as in PulseAudio's `default.pa`, but for comments,
/// which may stand behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleLine {
    /// The number of its line, from 1.
    pub line: usize,
    /// PulseAudio's name of it.
    pub name: String,
    /// Its arguments, as programs of PulseAudio give them; may be empty.
    pub arguments: String,
}

impl ModuleLine {
    /// Reads a line; `None`: it loads no module.
    ///
    /// # Errors
    /// A sentence about what it lacks.
    pub(super) fn parse(line: usize, text: &str) -> Result<Option<Self>, String> {
        let Some(rest) = text.trim_start().strip_prefix(WORD) else { return Ok(None) };
        if rest.starts_with(|letter: char| !letter.is_whitespace()) {
            return Ok(None);
        }
        let rest = without_comment(rest).trim();
        let (name, arguments) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        if name.is_empty() {
            return Err(format!("it names no module: write {WORD} NAME ARGUMENTS"));
        }
        let (name, arguments) = (name.to_owned(), arguments.trim().to_owned());
        Ok(Some(Self { line, name, arguments }))
    }

    /// Returns whether a line says the same, wherever it is.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        (&self.name, &self.arguments) == (&other.name, &other.arguments)
    }
}

/// Returns what is before a `#` that begins a word, and is in no quotes.
fn without_comment(text: &str) -> &str {
    let (mut quote, mut before) = (None, ' ');
    for (at, letter) in text.char_indices() {
        match (quote, letter) {
            (None, '#') if before.is_whitespace() => return &text[..at],
            (None, '"' | '\'') => quote = Some(letter),
            (Some(open), _) if open == letter => quote = None,
            _ => {}
        }
        before = letter;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_what_follows_the_name() {
        for (text, name, arguments) in [
            ("load-module module-a", "module-a", ""),
            ("  load-module\tmodule-a  x=1 y='# 2' # z=3", "module-a", "x=1 y='# 2'"),
            ("load-module module-a x=\"it's #1\" y=#2", "module-a", "x=\"it's #1\" y=#2"),
        ] {
            let line = ModuleLine::parse(1, text).expect("a line").expect("a module");
            assert_eq!((line.name.as_str(), line.arguments.as_str()), (name, arguments));
        }
        for none in ["", "# load-module a", "load-modules a", "volume=50% name=load-module"] {
            assert_eq!(ModuleLine::parse(1, none), Ok(None), "{none}");
        }
        for nameless in ["load-module", "load-module  # module-a"] {
            let refusal = ModuleLine::parse(1, nameless).expect_err(nameless);
            assert!(refusal.contains("names no module"), "{refusal}");
        }
    }
}
