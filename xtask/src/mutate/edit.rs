//! How a mutation changes the statement that carries its marker.

/// A change of one statement.
#[derive(Debug, Clone, Copy)]
pub(super) enum Edit {
    /// Removes the statement.
    Delete,
    /// Replaces the first text, which the statement contains exactly once, by the second.
    Replace(&'static str, &'static str),
    /// Inserts code after the statement.
    After(&'static str),
}

pub(super) const ACQUIRE_RELAXED: Edit = Edit::Replace("Ordering::Acquire", "Ordering::Relaxed");
pub(super) const RELEASE_RELAXED: Edit = Edit::Replace("Ordering::Release", "Ordering::Relaxed");

impl Edit {
    /// Returns the changed statement; `None` if the text to replace is not in it exactly once.
    pub(super) fn apply(self, statement: &str) -> Option<String> {
        let code = without_comments(statement);
        Some(match self {
            Self::Delete => String::new(),
            Self::Replace(old, new) => replace_once(&code, old, new)?,
            Self::After(inserted) => format!("{code}{inserted}\n"),
        })
    }
}

/// Removes line comments, so that their words are never taken for code.
fn without_comments(statement: &str) -> String {
    statement
        .lines()
        .map(|line| line.split_once("//").map_or(line, |(code, _)| code).trim_end())
        .filter(|line| !line.is_empty())
        .fold(String::new(), |code, line| code + line + "\n")
}

/// Replaces `old` in `code`, however rustfmt has broken the lines there.
fn replace_once(code: &str, old: &str, new: &str) -> Option<String> {
    let significant = |text: &str| -> Vec<(usize, char)> {
        text.char_indices().filter(|(_, character)| !character.is_whitespace()).collect()
    };
    let (text, wanted) = (significant(code), significant(old));
    let mut matches = text
        .windows(wanted.len())
        .filter(|window| window.iter().zip(&wanted).all(|((_, left), (_, right))| left == right));
    let (first, last) = matches.next().and_then(|window| window.first().zip(window.last()))?;
    let end = last.0 + last.1.len_utf8();
    matches.next().is_none().then(|| [&code[..first.0], new, &code[end..]].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_line_breaks_do_not_hide_the_text_to_replace() {
        let statement = "let ready = page // Not page.load(Acquire).\n    .load(\n    Acquire);\n";
        let edited = Edit::Replace("page.load(Acquire)", "0").apply(statement);
        assert_eq!(edited.as_deref(), Some("let ready = 0;\n"));
    }

    #[test]
    fn text_that_occurs_twice_is_refused() {
        assert_eq!(Edit::Replace("a", "b").apply("a + a;\n"), None);
        assert_eq!(Edit::Replace("c", "b").apply("a + a;\n"), None);
    }
}
