//! Rows as in the paper's tables: a system, its settings, and its latency.

use crate::analysis::{Analysis, Continuity};
use serde_json::{Value, json};

use super::findings::{self, number};
use super::systems::System;

/// One measurement.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) system: System,
    pub(crate) found: Analysis,
}

/// A column: its heading, and its cell for each row.
pub(crate) struct Column {
    pub(crate) heading: &'static str,
    /// Whether cells are numbers, which are aligned to the right.
    pub(crate) is_number: bool,
    pub(crate) cell: fn(&Row) -> String,
}

const fn text(heading: &'static str, cell: fn(&Row) -> String) -> Column {
    Column { heading, is_number: false, cell }
}

const fn figure(heading: &'static str, cell: fn(&Row) -> String) -> Column {
    Column { heading, is_number: true, cell }
}

/// Columns of a single measurement, in frames except for "ms".
pub(crate) const COLUMNS: [Column; 11] = [
    text("interface", |row| row.system.interface.clone()),
    text("device", |row| row.system.device.clone()),
    text("buffer", |row| row.system.buffer.clone()),
    text("format", |row| format!("{}, {} Hz", row.system.format, row.system.sample_rate_hz)),
    text("kernel", |row| row.system.kernel.clone()),
    text("scheduling", |row| row.system.scheduling.clone()),
    figure("stated", |row| or_none(row.system.stated_frames)),
    figure("latency", |row| number(row.found.frames())),
    figure("ms", |row| format!("{:.2}", row.found.milliseconds(row.found.frames()))),
    figure("dropouts", dropouts),
    figure("xruns", |row| or_none(row.system.xruns)),
];
/// Columns that a report adds.
pub(crate) const DISTRIBUTION: [Column; 5] = [
    figure("min", |row| number(row.found.distribution.minimum)),
    figure("median", |row| number(row.found.distribution.median)),
    figure("p99", |row| number(row.found.distribution.p99)),
    figure("max", |row| number(row.found.distribution.maximum)),
    figure("drift, ppm", |row| {
        row.found.drift.map_or_else(none, |drift| format!("{:+.1}", drift.ppm))
    }),
];

fn none() -> String {
    "-".into()
}

fn or_none(frames: Option<u32>) -> String {
    frames.map_or_else(none, |frames| frames.to_string())
}

fn dropouts(row: &Row) -> String {
    match &row.found.continuity {
        Continuity::Compared { dropouts, .. } => dropouts.len().to_string(),
        Continuity::Sparse | Continuity::NotACopy => none(),
    }
}

/// Formats an aligned table.
pub(crate) fn as_text(rows: &[Row]) -> String {
    let headings = COLUMNS.map(|column| (column.heading.to_owned(), column.is_number));
    let cells: Vec<Vec<String>> =
        rows.iter().map(|row| COLUMNS.iter().map(|column| (column.cell)(row)).collect()).collect();
    aligned(&headings, &cells)
}

/// Aligns cells under headings. Each heading comes with whether its column is numbers, which are
/// aligned to the right.
pub(crate) fn aligned(headings: &[(String, bool)], rows: &[Vec<String>]) -> String {
    let titles: Vec<String> = headings.iter().map(|(title, _)| title.clone()).collect();
    let all = || std::iter::once(&titles).chain(rows);
    let width = |column: usize| {
        all()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or_default()
    };
    let widths: Vec<usize> = (0..headings.len()).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(headings).zip(&widths);
        let aligned: Vec<String> = cells
            .map(
                |((cell, (_, is_number)), &width)| {
                    if *is_number { format!("{cell:>width$}") } else { format!("{cell:width$}") }
                },
            )
            .collect();
        format!("{}\n", aligned.join("  ").trim_end())
    };
    all().map(line).collect()
}

impl Row {
    /// Returns the system and its result.
    pub(crate) fn as_json(&self) -> Value {
        let system = &self.system;
        json!({
            "system": {
                "interface": system.interface,
                "device": system.device,
                "buffer": system.buffer,
                "format": system.format,
                "sample_rate_hz": system.sample_rate_hz,
                "kernel": system.kernel,
                "scheduling": system.scheduling,
                "stated_frames": system.stated_frames,
                "xruns": system.xruns,
            },
            "found": findings::as_json(&self.found),
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use crate::analysis::{Recording, Signal};

    use super::*;

    /// A row of a system with a latency of `frames`.
    pub(crate) fn row(frames: usize) -> Row {
        let left = Signal::Marked.samples(48_000, 48_000);
        let right: Vec<f32> = std::iter::repeat_n(0.0, frames)
            .chain(left[..48_000 - frames].iter().copied())
            .collect();
        let found =
            crate::analysis::analyse(&Recording::new(&[left, right], 48_000).unwrap()).unwrap();
        let system = System {
            interface: "consort 0.1.0".into(),
            device: "timer, looped".into(),
            buffer: "64 frames, sync".into(),
            sample_rate_hz: 48_000,
            format: "32-bit float",
            kernel: "Linux 6.1".into(),
            scheduling: "FIFO 5".into(),
            stated_frames: Some(128),
            xruns: Some(1),
        };
        Row { system, found }
    }

    #[test]
    fn a_row_shows_the_system_with_its_settings() {
        let text = as_text(&[row(128)]);
        let row = "consort 0.1.0  timer, looped  64 frames, sync  32-bit float, 48000 Hz  Linux 6.1  FIFO 5         128      128  2.67         0      1";
        assert_eq!(text.lines().nth(1), Some(row), "{text}");
    }
}
