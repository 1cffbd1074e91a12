//! `cargo xtask width`: comments and documents are wrapped where rustfmt wraps code.
//!
//! rustfmt leaves comments as they are. Tables, code blocks, headings, and lines that cannot be
//! broken at a space may be longer.

use anyhow::{Context, Result, ensure};

use crate::command::{root, tracked_files};

/// Columns of a line.
const WIDTH: usize = 100;

/// Checks every Rust source and Markdown file.
///
/// # Errors
/// Names every line that is too long.
pub fn run() -> Result<()> {
    let mut long = Vec::new();
    for path in tracked_files()? {
        let lines: fn(&str) -> Vec<usize> = match path.extension().and_then(|it| it.to_str()) {
            Some("rs") => long_comments,
            Some("md") if !path.starts_with("xtask/advisories") => long_prose,
            _ => continue,
        };
        let text = std::fs::read_to_string(root().join(&path))
            .with_context(|| format!("{} cannot be read", path.display()))?;
        long.extend(lines(&text).into_iter().map(|line| format!("{}:{line}", path.display())));
    }
    ensure!(long.is_empty(), "lines of more than {WIDTH} columns:\n{}", long.join("\n"));
    Ok(())
}

/// Numbers of the comment lines that are too long.
fn long_comments(text: &str) -> Vec<usize> {
    numbers(text, |line| {
        let words = line.trim_start();
        words.starts_with("//") && !words.trim_start_matches(['/', '!', ' ']).starts_with('|')
    })
}

/// Numbers of the lines of prose that are too long.
fn long_prose(text: &str) -> Vec<usize> {
    let mut in_block = false;
    numbers(text, move |line| {
        let words = line.trim_start();
        in_block ^= words.starts_with("```");
        let is_other = line.starts_with("    ") || words.starts_with(['|', '#', '!']);
        !in_block && !is_other
    })
}

/// Numbers of the lines that are too long and could be broken, of those that `counts` accepts. It
/// sees every line.
fn numbers(text: &str, mut counts: impl FnMut(&str) -> bool) -> Vec<usize> {
    let is_long = |line: &str| {
        // The line ends at its last space that still fits, or has none: a link or an address.
        let indent = line.chars().take_while(|c| " */!->".contains(*c)).count();
        let fits: String = line.chars().skip(indent).take(WIDTH + 1 - indent).collect();
        line.chars().count() > WIDTH && fits.contains(' ')
    };
    let lines = text.lines().enumerate();
    lines.filter(|(_, line)| counts(line) && is_long(line)).map(|(index, _)| index + 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_breakable_lines_are_too_long() {
        let long = "word ".repeat(30);
        let markdown = format!(
            "{long}\n| {long}\n```\n{long}\n```\n    {long}\n[a](b) {long}\n* {}\n",
            "a".repeat(120)
        );
        assert_eq!(long_prose(&markdown), [1, 7]);
        let code = format!("let a = \"{long}\";\n    /// {long}\n//! | {long}\n// short\n");
        assert_eq!(long_comments(&code), [2]);
    }
}
