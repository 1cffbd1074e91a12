//! Rows as in the paper's Table 4: a system, how it was set, and its latency.

use latency::{Analysis, Continuity};
use serde_json::{Value, json};

use super::findings::number;
use super::systems::System;

/// One measurement.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) system: System,
    pub(crate) found: Analysis,
}

const HEADINGS: [&str; 11] = [
    "interface",
    "device",
    "buffer",
    "format",
    "kernel",
    "scheduling",
    "stated",
    "latency",
    "ms",
    "dropouts",
    "xruns",
];
/// Columns of text; the others are numbers, which end at the right.
const TEXT_COLUMNS: usize = 6;

/// An aligned table; frames but for "ms".
pub(crate) fn as_text(rows: &[Row]) -> String {
    let mut cells = vec![HEADINGS.map(String::from)];
    cells.extend(rows.iter().map(row_cells));
    let widths: [usize; HEADINGS.len()] = std::array::from_fn(|column| {
        cells.iter().map(|row| row[column].chars().count()).max().unwrap_or_default()
    });
    let line = |row: &[String; HEADINGS.len()]| {
        let aligned: Vec<String> = (0..)
            .zip(row.iter().zip(&widths))
            .map(
                |(column, (cell, &width))| {
                    if column < TEXT_COLUMNS { format!("{cell:width$}") } else { format!("{cell:>width$}") }
                },
            )
            .collect();
        format!("{}\n", aligned.join("  ").trim_end())
    };
    cells.iter().map(line).collect()
}

fn row_cells(row: &Row) -> [String; HEADINGS.len()] {
    let Row { system, found } = row;
    let dropouts = match &found.continuity {
        Continuity::Compared { dropouts, .. } => dropouts.len().to_string(),
        Continuity::Sparse | Continuity::NotACopy => "-".into(),
    };
    [
        system.interface.clone(),
        system.device.clone(),
        system.buffer.clone(),
        format!("{}, {} Hz", system.format, system.sample_rate_hz),
        system.kernel.clone(),
        system.scheduling.clone(),
        system.stated_frames.map_or_else(|| "-".into(), |frames| frames.to_string()),
        number(found.frames()),
        format!("{:.2}", found.milliseconds(found.frames())),
        dropouts,
        system.xruns.to_string(),
    ]
}

/// The system beside what was found of it.
pub(crate) fn as_json(system: &System, found: Value) -> Value {
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
        "found": found,
    })
}

#[cfg(test)]
mod tests {
    use latency::{Recording, Signal};

    use super::*;

    #[test]
    fn a_row_names_the_system_and_how_it_was_set() {
        let left = Signal::Marked.samples(48_000, 48_000);
        let right: Vec<f32> =
            std::iter::repeat_n(0.0, 128).chain(left[..48_000 - 128].iter().copied()).collect();
        let found = latency::analyse(&Recording::new(&[left, right], 48_000).unwrap()).unwrap();
        let system = System {
            interface: "consort 0.1.0".into(),
            device: "timer, looped".into(),
            buffer: "64 frames, sync".into(),
            sample_rate_hz: 48_000,
            format: "32-bit float",
            kernel: "Linux 6.1".into(),
            scheduling: "FIFO 5".into(),
            stated_frames: Some(128),
            xruns: 1,
        };
        let text = as_text(&[Row { system, found }]);
        let row = "consort 0.1.0  timer, looped  64 frames, sync  32-bit float, 48000 Hz  Linux 6.1  FIFO 5         128      128  2.67         0      1";
        assert_eq!(text.lines().nth(1), Some(row), "{text}");
    }
}
