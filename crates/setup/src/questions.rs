//! Questions, answered line by line.

use std::io::{BufRead, Write};

use anyhow::Result;
use cli::UsageError;

/// How often an answer that makes no sense is asked for again.
const ATTEMPTS: usize = 3;

/// Asks on `output` until a line of `input` makes sense. An empty line is the default answer.
pub(crate) fn ask<T>(
    input: &mut impl BufRead,
    output: &mut impl Write,
    question: &str,
    default: &str,
    mut parse: impl FnMut(&str) -> Result<T>,
) -> Result<T> {
    let unanswered =
        || UsageError(format!("'{question}' was not answered: see --help for options"));
    for _ in 0..ATTEMPTS {
        write!(output, "{question} [{default}] ")?;
        output.flush()?;
        let mut line = String::new();
        if input.read_line(&mut line)? == 0 {
            writeln!(output)?;
            return Err(unanswered().into());
        }
        let answer = line.trim();
        match parse(if answer.is_empty() { default } else { answer }) {
            Ok(value) => return Ok(value),
            Err(error) => writeln!(output, "{}", cli::error_chain(&error))?,
        }
    }
    Err(unanswered().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(lines: &str) -> Result<u32> {
        let parse = |answer: &str| Ok(answer.parse()?);
        ask(&mut lines.as_bytes(), &mut Vec::new(), "How many?", "3", parse)
    }

    #[test]
    fn an_empty_line_is_the_default_and_nonsense_is_asked_again() {
        assert_eq!(asked("\n").expect("answered"), 3);
        assert_eq!(asked("many\n7\n").expect("answered"), 7);
    }

    #[test]
    fn questions_end() {
        assert!(asked("").is_err());
        assert!(asked("a\nb\nc\n4\n").is_err());
    }
}
