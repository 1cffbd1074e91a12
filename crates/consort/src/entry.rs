//! Runs a command line and turns its result into an exit code.

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use clap::error::ErrorKind;
use cli::{error_chain, in_one_line, output};

use crate::arguments::Arguments;
use crate::{as_jackd, exit};

/// How long a command that ends waits until everything that it reported is written.
const LAST_LINES: Duration = Duration::from_secs(1);

/// Runs the command line `words`. Its first word is the name that the program was called by: as
/// `jackd` or `jackdmp` it takes the options of JACK's server. Errors are printed on standard error
/// in one line.
pub fn run(words: impl IntoIterator<Item = OsString>) -> ExitCode {
    let words: Vec<OsString> = words.into_iter().collect();
    let name = words.first().and_then(|word| Path::new(word).file_name()).unwrap_or_default();
    let (name, result) = match name.to_str() {
        Some(name @ ("jackd" | "jackdmp")) => {
            (name, as_jackd::run(words.get(1..).unwrap_or_default()))
        }
        _ => ("consort", run_consort(&words)),
    };
    sys::log::flush(LAST_LINES);
    result.unwrap_or_else(|error| {
        // Standard error may be closed, which changes nothing about the outcome.
        let _ = writeln!(std::io::stderr(), "{name}: {}", error_chain(&error));
        ExitCode::from(exit::code(&error))
    })
}

fn run_consort(words: &[OsString]) -> anyhow::Result<ExitCode> {
    match parse(words) {
        Ok(arguments) => arguments.run(),
        Err(error) if is_usage_error(error.kind()) => {
            Err(cli::UsageError(in_one_line(&error)).into())
        }
        // Help and version, asked for or because there is no command.
        Err(error) => {
            output::unless_closed(error.print())?;
            Ok(ExitCode::from(if error.use_stderr() { exit::USAGE } else { 0 }))
        }
    }
}

/// Reads the command line on a thread of its own: a server runs for months, and the memory for the
/// definition of all commands goes with the thread.
fn parse(words: &[OsString]) -> clap::error::Result<Arguments> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("arguments".into());
        match thread.spawn_scoped(scope, || Arguments::try_parse_from(words)) {
            Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(_) => Arguments::try_parse_from(words),
        }
    })
}

fn is_usage_error(kind: ErrorKind) -> bool {
    !matches!(
        kind,
        ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    )
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let words =
                ["consort"].into_iter().chain(words).map(OsString::from).collect::<Vec<_>>();
            let error = run_consort(&words).expect_err(what);
            let text = error.to_string();
            assert!(!text.contains('\n') && text.contains(part), "{what}: {text}");
            assert_eq!(exit::code(&error), exit::USAGE, "{what}");
        }
    }
}
