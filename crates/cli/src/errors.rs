//! Errors as one line on standard error.

/// A command line that makes no sense. The text says what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(pub String);

/// Returns the error and its causes in one line, without a cause that the text before it already
/// contains: many errors include their cause in their own message.
#[must_use]
pub fn error_chain(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |line, cause| match line.as_str() {
        "" => cause,
        _ if line.contains(&cause) => line,
        _ => format!("{line}: {cause}"),
    })
}

/// Returns the argument parser's message in one line, without the usage text that follows it.
#[must_use]
pub fn in_one_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let message: Vec<&str> =
        text.lines().take_while(|line| !line.is_empty()).map(str::trim).collect();
    let message = message.join(" ");
    let message = message.strip_prefix("error: ").unwrap_or(&message);
    format!("{message} (try --help)")
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn each_cause_is_printed_once() {
        let refused = || std::io::Error::from(std::io::ErrorKind::PermissionDenied);
        let kernel = refused().to_string();
        for (error, text) in [
            (anyhow!("no such port"), "no such port".to_owned()),
            (anyhow!(refused()).context("cannot write it"), format!("cannot write it: {kernel}")),
            (
                anyhow!(refused()).context(format!("cannot write: {kernel}")),
                format!("cannot write: {kernel}"),
            ),
            (
                anyhow!(refused()).context(format!("cannot write: {kernel}; try another")),
                format!("cannot write: {kernel}; try another"),
            ),
        ] {
            assert_eq!(error_chain(&error), text);
        }
    }
}
