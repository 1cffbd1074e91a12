//! Session files of internal clients: plug-ins to load and connections to make, as read by `jackd
//! -C` and `jackctl_server_load_session_file`.

use std::path::Path;

use proto::internal::PlugIn;

use crate::{Observer, Requester};

/// One line of a session file.
#[derive(Debug, PartialEq, Eq)]
enum Line {
    /// `l NAME [PLUG-IN [PARAMETERS…]]`, or `load` instead of `l`.
    Load(PlugIn),
    /// `c SOURCE DESTINATION`, or `con` or `connect` instead of `c`.
    Connect { source: String, destination: String },
}

impl Observer {
    /// Loads the plug-ins and makes the connections listed in `file`, in order.
    ///
    /// # Errors
    /// A message for the user. A line that cannot be parsed fails before anything is done; a
    /// request that fails leaves the lines before it in effect.
    pub fn load_internal_session(&self, file: &Path) -> Result<(), String> {
        let name = file.display();
        let text = std::fs::read_to_string(file)
            .map_err(|error| format!("cannot read {name}: {error}"))?;
        let lines = read(&text).map_err(|line| format!("{name}, line {line}: not understood"))?;
        for line in lines {
            let result = match line {
                Line::Connect { source, destination } => self.connect(&source, &destination),
                Line::Load(plug_in) => self.load_internal(plug_in).map(drop),
            };
            result.map_err(|error| format!("{name}: {error}"))?;
        }
        Ok(())
    }
}

/// Parses all lines. Fails with the number of the first line that cannot be parsed. Lines that
/// begin with `#` are comments; text between quotation marks is one word.
fn read(text: &str) -> Result<Vec<Line>, usize> {
    let mut lines = Vec::new();
    for (index, text) in text.lines().enumerate() {
        if text.trim().is_empty() || text.trim_start().starts_with('#') {
            continue;
        }
        lines.push(line(text).ok_or(index + 1)?);
    }
    Ok(lines)
}

fn line(text: &str) -> Option<Line> {
    let words = words(text)?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["c" | "con" | "connect", source, destination] => {
            Some(Line::Connect { source: source.into(), destination: destination.into() })
        }
        ["l" | "load", name] => Some(load(name, name, String::new())),
        ["l" | "load", name, object, ref parameters @ ..] => {
            Some(load(name, object, parameters.join(" ")))
        }
        _ => None,
    }
}

fn load(name: &str, object: &str, parameters: String) -> Line {
    Line::Load(PlugIn { name: name.into(), exact: false, object: object.into(), parameters })
}

/// Splits a line into words. Returns `None` if a quotation mark is not closed.
fn words(text: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut quoted) = (Vec::new(), None::<String>, false);
    for character in text.chars() {
        match character {
            '"' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            _ if character.is_whitespace() && !quoted => words.extend(word.take()),
            _ => word.get_or_insert_default().push(character),
        }
    }
    words.extend(word);
    (!quoted).then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_file_lists_plug_ins_and_connections() {
        let text = "# mine\n\n l in inprocess\nload meter profiler -c \"-p\"\nl alone\nc \"a b:out\" c:in\ncon x:y z:w\n";
        let connect = |source: &str, destination: &str| Line::Connect {
            source: source.into(),
            destination: destination.into(),
        };
        let expected = [
            load("in", "inprocess", String::new()),
            load("meter", "profiler", "-c -p".into()),
            load("alone", "alone", String::new()),
            connect("a b:out", "c:in"),
            connect("x:y", "z:w"),
        ];
        assert_eq!(read(text).expect("sense"), expected);
        for (nonsense, line) in
            [("c one", 1), ("#\nc \"a b", 2), ("l", 1), ("l x\nunload x", 2), ("c a b c", 1)]
        {
            assert_eq!(read(nonsense), Err(line), "{nonsense}");
        }
    }
}
