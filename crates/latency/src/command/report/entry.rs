//! The measurements as the paper's two tables.

use std::cmp::Ordering;
use std::fmt::Write as _;

use super::machine;
use crate::command::load::Load;
use crate::command::table::{self, COLUMNS, Column, DISTRIBUTION, Row};

/// One system under one load.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    /// The system, in its words on the command line.
    pub(super) words: String,
    pub(super) load: Load,
    pub(super) is_baseline: bool,
    /// The measurement, or why there is none.
    pub(super) outcome: Result<Row, String>,
}

impl Entry {
    /// Whether neither could be measured, for the same reason.
    pub(super) fn is_missing_as(&self, other: &Self) -> bool {
        let reason = |entry: &Self| entry.outcome.as_ref().err().cloned();
        self.words == other.words
            && self.load == other.load
            && reason(self).is_some()
            && reason(self) == reason(other)
    }

    /// The latency in milliseconds, if it was measured.
    pub(super) fn latency_ms(&self) -> Option<f64> {
        self.outcome.as_ref().ok().map(|row| row.found.milliseconds(row.found.frames()))
    }
}

/// One of the tables.
pub(super) struct Table<'a> {
    pub(super) title: &'static str,
    pub(super) entries: Vec<&'a Entry>,
}

/// The contents of a report.
pub(super) struct Report {
    /// The baseline first, then as in the paper by latency, shortest first. Systems that could not
    /// be measured come last.
    pub(super) entries: Vec<Entry>,
    /// Lines that describe the method.
    pub(super) method: Vec<String>,
    pub(super) machine: Vec<(&'static str, String)>,
}

impl Report {
    pub(super) fn new(mut entries: Vec<Entry>, loads: &[Load], method: &str) -> Self {
        entries.sort_by(order);
        let mut lines = vec![format!(
            "method: {method}; recorded samples only, latency in frames unless stated otherwise"
        )];
        lines.extend(loads.iter().map(|load| format!("load {}", load.text())));
        Self { entries, method: lines, machine: machine::description() }
    }

    /// The paper's tables 4 and 5.
    pub(super) fn tables(&self) -> [Table<'_>; 2] {
        let (idle, loaded) = self.entries.iter().partition(|entry| entry.load == Load::Idle);
        [
            Table { title: "Latency without load (the paper's Table 4)", entries: idle },
            Table { title: "Latency with load (the paper's Table 5)", entries: loaded },
        ]
    }

    /// Everything, as a page of text.
    pub(super) fn as_text(&self) -> String {
        let mut text = String::new();
        for (what, value) in &self.machine {
            let _ = writeln!(text, "{what:<14}{value}");
        }
        for line in &self.method {
            let _ = writeln!(text, "{line}");
        }
        for table in self.tables().iter().filter(|table| !table.entries.is_empty()) {
            let (measured, missing): (Vec<&Entry>, Vec<&Entry>) =
                table.entries.iter().partition(|entry| entry.outcome.is_ok());
            let rows: Vec<Vec<String>> = measured.into_iter().map(cells).collect();
            let _ = write!(text, "\n{}\n\n{}", table.title, table::aligned(&headings(), &rows));
            // Reasons would make columns too wide to read.
            for entry in missing {
                let cells = cells(entry);
                let _ = writeln!(text, "{}", cells[..3].join("  "));
            }
        }
        text
    }
}

fn order(left: &Entry, right: &Entry) -> Ordering {
    let latency = |entry: &Entry| entry.latency_ms().unwrap_or(f64::INFINITY);
    right.is_baseline.cmp(&left.is_baseline).then(latency(left).total_cmp(&latency(right)))
}

fn columns() -> impl Iterator<Item = &'static Column> {
    static BOTH: ([Column; 11], [Column; 5]) = (COLUMNS, DISTRIBUTION);
    BOTH.0.iter().chain(&BOTH.1)
}

/// The headings of every table, and whether their columns are numbers.
pub(super) fn headings() -> Vec<(String, bool)> {
    let load = ("load".to_owned(), false);
    std::iter::once(load)
        .chain(columns().map(|column| (column.heading.to_owned(), column.is_number)))
        .collect()
}

/// The cells of a row. If nothing was measured, the reason replaces the device.
pub(super) fn cells(entry: &Entry) -> Vec<String> {
    let load = entry.load.name().to_owned();
    let rest: Vec<String> = match &entry.outcome {
        Ok(row) => columns().map(|column| (column.cell)(row)).collect(),
        Err(reason) => {
            let first = [entry.words.clone(), format!("not measured: {reason}")];
            first.into_iter().chain(std::iter::repeat("-".into())).take(columns().count()).collect()
        }
    };
    std::iter::once(load).chain(rest).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::command::table::tests::row;

    pub(in super::super) fn report() -> Report {
        let entry = |words: &str, load, is_baseline, outcome: Result<usize, &str>| Entry {
            words: words.into(),
            load,
            is_baseline,
            outcome: outcome.map(row).map_err(String::from),
        };
        Report::new(
            vec![
                entry(
                    "pulse",
                    Load::Idle,
                    false,
                    Err("cannot load libpulse-simple.so.0: no, \"not\" there"),
                ),
                entry("run", Load::Idle, false, Ok(512)),
                entry("alsa", Load::Idle, false, Ok(128)),
                entry("run", Load::Cpu, false, Ok(768)),
                entry("memory", Load::Idle, true, Ok(256)),
            ],
            &[Load::Idle, Load::Cpu],
            "1 s each",
        )
    }

    #[test]
    fn the_tables_are_ordered_by_latency_below_the_baseline() {
        let report = report();
        let [idle, loaded] = report.tables();
        let words = |table: &Table<'_>| -> Vec<String> {
            table.entries.iter().map(|entry| entry.words.clone()).collect()
        };
        assert_eq!(words(&idle), ["memory", "alsa", "run", "pulse"]);
        assert_eq!(words(&loaded), ["run"]);
        let text = report.as_text();
        for part in [
            "Table 4",
            "Table 5",
            "not measured: cannot load libpulse",
            "stress-ng --cpu 0",
            "kernel",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
