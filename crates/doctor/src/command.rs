//! The command line of `consort doctor`.

use std::fmt::Write;
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

use crate::{Facts, Finding, Verdict, findings};

/// Find out what on this machine keeps sound from working, and what to do about it
///
/// Nothing is changed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  consort doctor
  consort doctor --json

With --json, a list of objects, one for each line:
  verdict  \"good\", \"note\" (works, but not as well as it could) or \"wrong\"
  subject  what it is about; several may be about the same
  found    what was found
  advice   what to do about it, or null

Exit codes:
  0  nothing is wrong
  1  something is wrong: a line of it begins with \"wrong\"")]
pub struct Doctor {
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

impl Doctor {
    /// Examines the machine, and the server `server` if it runs.
    ///
    /// # Errors
    /// If the findings cannot be printed.
    pub fn run(self, server: &str) -> anyhow::Result<ExitCode> {
        let found = findings(&Facts::gather(server));
        let text = if self.json { document(&found) } else { screen(&found) };
        cli::output::print(&text)?;
        let is_wrong = found.iter().any(|finding| finding.verdict == Verdict::Wrong);
        Ok(if is_wrong { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}

/// A line for each finding, and one below it for what to do.
pub(crate) fn screen(findings: &[Finding]) -> String {
    let width = findings.iter().map(|finding| finding.subject.len()).max().unwrap_or(0);
    let mut text = String::new();
    for Finding { verdict, subject, found, advice } in findings {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{:5}  {subject:width$}  {found}", verdict.word());
        if let Some(advice) = advice {
            let _ = writeln!(text, "{:5}  {:width$}  → {advice}", "", "");
        }
    }
    text
}

pub(crate) fn document(findings: &[Finding]) -> String {
    let list: Vec<Value> = findings
        .iter()
        .map(|Finding { verdict, subject, found, advice }| {
            json!({
                "verdict": verdict.word(), "subject": subject, "found": found, "advice": advice,
            })
        })
        .collect();
    format!("{:#}\n", Value::Array(list))
}
