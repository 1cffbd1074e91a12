//! The figures of a run: a table to read, JSON to keep.

use std::fmt;

use serde::Serialize;
use serde_json::{Value, json};

use crate::machine::Machine;
use crate::markdown::{self, Cell};
use crate::plot::Bar;
use crate::statistics::Summary;

/// What was measured, and how it ran. It is the same in all rounds of a run: its threads are
/// inspected once, in the first measurement that adds a figure.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Subject {
    /// The server's name, or "floor".
    pub server: String,
    /// Its version.
    pub version: String,
    /// How it was started.
    pub command: String,
    /// Policy and priority of the server's threads.
    pub server_threads: String,
    /// Policy and priority of one client's threads.
    pub client_threads: String,
}

/// What the samples of a row are.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reading {
    /// Each sample is a time: median, p99 and maximum matter.
    Spread,
    /// Each sample is a number of events: the total matters.
    Total,
    /// Each sample is a round's figure: the median matters, and the range. They are shown as a
    /// table with a column for each server.
    Round,
}

/// One measurement of one server.
#[derive(Clone, Debug)]
struct Row {
    measure: String,
    unit: &'static str,
    reading: Reading,
    /// What it should be; empty where nothing is wanted.
    target: &'static str,
    subject: Subject,
    samples: Vec<f64>,
    /// The samples of each round.
    medians: Vec<f64>,
}

/// Everything measured so far. Rounds add to the same rows.
pub struct Report {
    /// The highest real-time priority of the clients measured so far; the floors take it. 0: none
    /// was real-time.
    pub priority: u32,
    machine: Machine,
    rows: Vec<Row>,
    failures: Vec<String>,
    notes: Vec<String>,
}

impl Report {
    /// Returns an empty report.
    pub fn new(machine: Machine) -> Self {
        Self { priority: 0, machine, rows: Vec::new(), failures: Vec::new(), notes: Vec::new() }
    }

    /// Adds samples that are times.
    pub fn spread(
        &mut self,
        subject: &Subject,
        measure: &str,
        unit: &'static str,
        samples: impl IntoIterator<Item = f64>,
    ) {
        self.add(subject, measure, unit, Reading::Spread, "", samples);
    }

    /// Adds a number of events.
    pub fn total(&mut self, subject: &Subject, measure: &str, unit: &'static str, count: u64) {
        self.add(subject, measure, unit, Reading::Total, "", [count as f64]);
    }

    /// Adds a figure of a round.
    pub fn round(
        &mut self,
        subject: &Subject,
        measure: &str,
        unit: &'static str,
        target: &'static str,
        value: f64,
    ) {
        self.add(subject, measure, unit, Reading::Round, target, [value]);
    }

    fn add(
        &mut self,
        subject: &Subject,
        measure: &str,
        unit: &'static str,
        reading: Reading,
        target: &'static str,
        samples: impl IntoIterator<Item = f64>,
    ) {
        let samples: Vec<f64> = samples.into_iter().collect();
        let median = Summary::of(&samples).map(|summary| summary.median);
        let same = |row: &Row| row.measure == measure && row.subject.server == subject.server;
        let place = self.rows.iter().position(same).unwrap_or_else(|| {
            self.rows.push(Row {
                measure: measure.to_owned(),
                unit,
                reading,
                target,
                subject: subject.clone(),
                samples: Vec::new(),
                medians: Vec::new(),
            });
            self.rows.len() - 1
        });
        self.rows[place].samples.extend(samples);
        self.rows[place].medians.extend(median);
    }

    /// The median of the rounds' ratios: the first server's median in a round, divided by this
    /// server's.
    fn first_ratio(&self, row: &Row) -> Option<f64> {
        let first = self.rows.iter().find(|first| first.measure == row.measure)?;
        let is_comparable = row.reading == Reading::Spread
            && first.subject.server != row.subject.server
            && first.medians.len() == row.medians.len();
        let pairs = first
            .medians
            .iter()
            .zip(&row.medians)
            .filter(|(_, this)| is_comparable && **this > 0.0);
        let ratios: Vec<f64> = pairs.map(|(first, this)| first / this).collect();
        Summary::of(&ratios).map(|summary| summary.median)
    }

    /// Notes a measurement that could not be made.
    pub fn fail(&mut self, server: &str, what: String) {
        eprintln!("{server}: {what}");
        self.failures.push(format!("{server}: {what}"));
    }

    /// Adds a note about the whole run, once.
    pub fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// The machine of this run.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// What could not be measured.
    pub fn failures(&self) -> &[String] {
        &self.failures
    }

    /// Rows in the order of their measures, the servers of one measure next to each other.
    fn sorted(&self) -> Vec<&Row> {
        let place = |measure: &str| self.rows.iter().position(|row| row.measure == measure);
        let mut rows: Vec<&Row> = self.rows.iter().collect();
        rows.sort_by_key(|row| place(&row.measure));
        rows
    }

    /// Every time that was measured, those of one measure next to each other.
    pub fn bars(&self) -> Vec<Bar> {
        let bar = |row: &Row| {
            let summary = Summary::of(&row.samples).filter(|_| row.unit == "µs")?;
            let (measure, server) = (row.measure.trim().to_owned(), row.subject.server.clone());
            Some(Bar { measure, server, median: summary.median, p99: summary.p99 })
        };
        self.sorted().into_iter().filter_map(bar).collect()
    }

    /// All rows, each complete in itself, and the machine.
    pub fn to_json(&self) -> Value {
        let row = |row: &&Row| {
            json!({
                "measure": row.measure,
                "unit": row.unit,
                "reading": row.reading,
                "target": row.target,
                "subject": row.subject,
                "summary": Summary::of(&row.samples),
                "first_beside": self.first_ratio(row),
                "machine": self.machine,
            })
        };
        let rows: Vec<Value> = self.sorted().iter().map(row).collect();
        json!({ "rows": rows, "failures": self.failures, "notes": self.notes })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        writeln!(formatter, "machine: {}", self.machine)?;
        let mut known: Vec<&Subject> = Vec::new();
        for row in &self.rows {
            if known.iter().any(|subject| subject.server == row.subject.server) {
                continue;
            }
            known.push(&row.subject);
            let Subject { server, version, command, server_threads, client_threads } = &row.subject;
            writeln!(formatter, "{}: {command}", format!("{server} {version}").trim_end())?;
            writeln!(
                formatter,
                "    server threads: {server_threads}; threads of a client: {client_threads}"
            )?;
        }
        if self.rows.iter().any(|row| row.reading != Reading::Round) {
            self.write_rows(formatter)?;
        }
        if self.rows.iter().any(|row| row.reading == Reading::Round) {
            write!(formatter, "\n{}", markdown::table(&self.columns()))?;
        }
        for note in &self.notes {
            writeln!(formatter, "{note}")?;
        }
        for failure in &self.failures {
            writeln!(formatter, "NOT MEASURED: {failure}")?;
        }
        Ok(())
    }
}

impl Report {
    fn write_rows(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        writeln!(
            formatter,
            "\n{:<52} {:<33} {:>7} {:>10} {:>10} {:>10}  {:<8}  first ÷ this",
            "measure", "server", "n", "median", "p99", "max", "unit"
        )?;
        let mut last = "";
        for row in self.sorted() {
            let is_shown = row.reading != Reading::Round;
            if let Some(summary) = Summary::of(&row.samples).filter(|_| is_shown) {
                let name = if row.measure == last { "" } else { &row.measure };
                write_row(formatter, name, row, &summary, self.first_ratio(row))?;
                last = &row.measure;
            }
        }
        Ok(())
    }

    /// The figures of rounds, for a table.
    fn columns(&self) -> Vec<Cell<'_>> {
        let rows = self.sorted().into_iter().filter(|row| row.reading == Reading::Round);
        let cell = |row: &'_ Row| {
            let summary = Summary::of(&row.samples)?;
            Some((row.subject.server.clone(), row.subject.version.clone(), summary))
        };
        let cells = rows.filter_map(|row| {
            let (server, version, summary) = cell(row)?;
            Some(Cell {
                measure: &row.measure,
                unit: row.unit,
                target: row.target,
                server: format!("{server} {version}"),
                summary,
            })
        });
        cells.collect()
    }
}

fn write_row(
    formatter: &mut fmt::Formatter,
    name: &str,
    row: &Row,
    summary: &Summary,
    first_ratio: Option<f64>,
) -> fmt::Result {
    let server = format!("{} {}", row.subject.server, row.subject.version).trim_end().to_owned();
    let ratio_text = first_ratio.map_or(String::new(), |ratio| format!("{:<6}{ratio:>8.2}", ""));
    let figures = match row.reading {
        Reading::Spread => format!(
            "{:>7} {:>10.1} {:>10.1} {:>10.1}  {}{ratio_text}",
            summary.samples, summary.median, summary.p99, summary.maximum, row.unit
        ),
        Reading::Total | Reading::Round => {
            format!("{:>7} {:>10} {:>10} {:>10}  {}", "", summary.total, "", "", row.unit)
        }
    };
    writeln!(formatter, "{name:<52} {server:<33} {figures}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(server: &str) -> Subject {
        Subject {
            server: server.into(),
            version: "1".into(),
            command: "run".into(),
            server_threads: "FIFO 10 ×1".into(),
            client_threads: "FIFO 5 ×1".into(),
        }
    }

    #[test]
    fn rounds_add_to_the_row_of_their_server_and_measure() {
        let mut report = Report::new(Machine::here().unwrap());
        for round in [1.0, 2.0] {
            report.spread(&subject("a"), "hop", "µs", [round]);
            report.spread(&subject("a"), "other", "µs", [round * 10.0]);
            report.spread(&subject("b"), "hop", "µs", [round * 100.0]);
            report.total(&subject("a"), "lost", "cycles", 2);
        }
        let json = report.to_json();
        let rows: Vec<(String, String, f64)> = json["rows"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| {
                let text = |value: &Value| value.as_str().unwrap().to_owned();
                let total = row["summary"]["total"].as_f64().unwrap();
                (text(&row["measure"]), text(&row["subject"]["server"]), total)
            })
            .collect();
        let expected =
            [("hop", "a", 3.0), ("hop", "b", 300.0), ("other", "a", 30.0), ("lost", "a", 4.0)];
        let expected =
            expected.map(|(measure, server, total)| (measure.to_owned(), server.to_owned(), total));
        assert_eq!(rows, expected);
    }

    #[test]
    fn servers_are_compared_within_each_round() {
        let mut report = Report::new(Machine::here().unwrap());
        for (first, second) in
            [([2.0, 2.0, 9.0], [4.0, 4.0, 4.0]), ([20.0; 3], [40.0; 3]), ([8.0; 3], [1.0; 3])]
        {
            report.spread(&subject("a"), "hop", "µs", first);
            report.spread(&subject("b"), "hop", "µs", second);
            report.total(&subject("b"), "lost", "cycles", 1);
        }
        report.spread(&subject("c"), "hop", "µs", [1.0]);
        let json = report.to_json();
        let ratio = |row: usize| json["rows"][row]["first_beside"].as_f64();
        assert_eq!([0, 1, 2, 3].map(ratio), [None, Some(0.5), None, None], "{json}");
    }

    #[test]
    fn a_part_that_was_not_measured_is_listed() {
        let mut report = Report::new(Machine::here().unwrap());
        report.fail("b", "connect: no server".into());
        assert!(report.to_string().contains("NOT MEASURED: b: connect: no server"));
        assert_eq!(report.to_json()["failures"][0], "b: connect: no server");
    }
}
