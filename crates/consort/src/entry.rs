//! From the words of the command line to the exit code.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

use crate::arguments::Arguments;
use crate::{exit, jackd, output};

/// Runs the program that `words` ask for; the first is the name that it was called by, `jackd` and `jackdmp`
/// being JACK's server with its own options. Says on standard error what went wrong, in one line.
pub fn run(words: impl IntoIterator<Item = OsString>) -> ExitCode {
    let words: Vec<OsString> = words.into_iter().collect();
    let name = words.first().and_then(|word| Path::new(word).file_name()).unwrap_or_default();
    let (name, result) = match name.to_str() {
        Some(name @ ("jackd" | "jackdmp")) => (name, jackd::run(words.get(1..).unwrap_or_default())),
        _ => ("consort", run_consort(&words)),
    };
    result.unwrap_or_else(|error| {
        eprintln!("{name}: {}", told(&error));
        ExitCode::from(exit::code(&error))
    })
}

/// What went wrong and why, each cause once: many errors name theirs in their own text already.
pub(crate) fn told(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |told, cause| match told.as_str() {
        "" => cause,
        _ if told.contains(&cause) => told,
        _ => format!("{told}: {cause}"),
    })
}

fn run_consort(words: &[OsString]) -> anyhow::Result<ExitCode> {
    match Arguments::try_parse_from(words) {
        Ok(arguments) => arguments.run(),
        Err(error) if is_usage_error(error.kind()) => Err(exit::UsageError(in_one_line(&error)).into()),
        // Help and version, asked for or for want of a command.
        Err(error) => {
            output::unless_unread(error.print())?;
            Ok(ExitCode::from(if error.use_stderr() { exit::USAGE } else { 0 }))
        }
    }
}

fn is_usage_error(kind: ErrorKind) -> bool {
    !matches!(
        kind,
        ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    )
}

/// The parser's message without the page that follows it.
pub(crate) fn in_one_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let message: Vec<&str> = text.lines().take_while(|line| !line.is_empty()).map(str::trim).collect();
    let message = message.join(" ");
    let message = message.strip_prefix("error: ").unwrap_or(&message);
    format!("{message} (try --help)")
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn every_cause_is_told_once() {
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
            assert_eq!(told(&error), text);
        }
    }

    #[test]
    fn a_wrong_command_line_is_explained_in_one_line() {
        for (what, words, part) in [
            ("an argument that is missing", vec!["connect", "a:b"], "<DESTINATION>"),
            ("an unknown option", vec!["ls", "--colour"], "--colour"),
            ("an unknown command", vec!["lst"], "lst"),
            ("a value out of range", vec!["run", "--quantum", "8193"], "8193"),
            (
                "both ways of real time",
                vec!["run", "--no-realtime", "--realtime-priority", "5"],
                "--no-realtime",
            ),
        ] {
            let words = ["consort"].into_iter().chain(words).map(OsString::from).collect::<Vec<_>>();
            let error = run_consort(&words).expect_err(what);
            let text = error.to_string();
            assert!(!text.contains('\n') && text.contains(part), "{what}: {text}");
            assert_eq!(exit::code(&error), exit::USAGE, "{what}");
        }
    }
}
