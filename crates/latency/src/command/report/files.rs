//! A report as files.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Context;
use serde_json::{Value, json};

use super::entry::{self, Entry, Report};
use super::plots;
use crate::command::load::Load;

/// Writes `report.txt`, `.csv`, `.json` and `.md`, and the plots.
pub(super) fn write(report: &Report, directory: &Path) -> anyhow::Result<()> {
    let json = format!("{:#}\n", as_json(report));
    for (name, text) in [
        ("report.txt", report.as_text()),
        ("report.csv", as_csv(report)),
        ("report.json", json),
        ("report.md", as_markdown(report)),
    ] {
        let path = directory.join(name);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    plots::draw(report, directory)
}

/// One table of all rows (RFC 4180).
fn as_csv(report: &Report) -> String {
    let quoted = |cell: &str| format!("\"{}\"", cell.replace('"', "\"\""));
    let line = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| quoted(cell)).collect();
        format!("{}\r\n", cells.join(","))
    };
    let titles: Vec<String> = entry::headings().into_iter().map(|(title, _)| title).collect();
    std::iter::once(line(&titles))
        .chain(report.entries.iter().map(|entry| line(&entry::cells(entry))))
        .collect()
}

fn as_markdown(report: &Report) -> String {
    let mut text = String::from("# Latency\n\n");
    for (what, value) in &report.machine {
        let _ = writeln!(text, "* {what}: {value}");
    }
    for line in &report.method {
        let _ = writeln!(text, "* {line}");
    }
    let line = |cells: Vec<String>| {
        let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    for table in report.tables().iter().filter(|table| !table.entries.is_empty()) {
        let headings = entry::headings();
        let rules = headings
            .iter()
            .map(|(_, is_number)| if *is_number { "---:" } else { "---" }.into())
            .collect();
        let _ = write!(text, "\n## {}\n\n", table.title);
        text.push_str(&line(headings.iter().map(|(title, _)| title.clone()).collect()));
        text.push_str(&line(rules));
        for entry in &table.entries {
            text.push_str(&line(entry::cells(entry)));
        }
    }
    text.push_str("\n![latency](latency.svg)\n\n![over time](time.svg)\n");
    text
}

fn as_json(report: &Report) -> Value {
    let [idle, loaded] =
        report.tables().map(|table| table.entries.into_iter().map(entry_json).collect::<Value>());
    let machine: serde_json::Map<String, Value> =
        report.machine.iter().map(|(what, value)| ((*what).to_owned(), json!(value))).collect();
    json!({ "machine": machine, "method": report.method, "without_load": idle, "with_load": loaded })
}

fn entry_json(entry: &Entry) -> Value {
    let mut value = match &entry.outcome {
        Ok(row) => row.as_json(),
        Err(reason) => json!({ "not_measured": reason }),
    };
    value["words"] = json!(entry.words);
    value["baseline"] = json!(entry.is_baseline);
    value["load"] = json!({ "name": entry.load.name(), "stress_ng": Load::arguments(entry.load) });
    value
}

#[cfg(test)]
mod tests {
    use super::super::entry::tests::report;
    use super::*;

    #[test]
    fn csv_has_a_quoted_line_for_each_row() {
        let csv = as_csv(&report());
        assert_eq!(csv.lines().count(), 1 + 5);
        assert!(
            csv.contains(
                "\"not measured: cannot load libpulse-simple.so.0: no, \"\"not\"\" there\""
            ),
            "{csv}"
        );
        assert!(
            csv.starts_with("\"load\",\"interface\",\"device\",\"buffer\",\"format\",\"kernel\""),
            "{csv}"
        );
    }

    #[test]
    fn markdown_has_the_same_number_of_cells_in_every_row() {
        let text = as_markdown(&report());
        let bars: Vec<usize> = text
            .lines()
            .filter(|line| line.starts_with('|'))
            .map(|line| line.matches(" | ").count())
            .collect();
        assert_eq!(bars, vec![entry::headings().len() - 1; 2 + 4 + 2 + 1]);
        assert!(text.contains("## Latency without load") && text.contains("## Latency with load"));
    }

    #[test]
    fn json_has_each_system_with_its_load() {
        let json = as_json(&report());
        assert_eq!(json["without_load"][0]["baseline"], true);
        assert_eq!(json["without_load"][1]["found"]["latency"]["frames"], 128.0);
        assert!(json["without_load"][3]["not_measured"].as_str().is_some());
        assert_eq!(json["with_load"][0]["load"]["name"], "cpu");
        assert!(json["machine"]["kernel"].is_string(), "{json}");
    }

    #[test]
    fn all_files_are_written() {
        let directory = std::env::temp_dir().join(format!("consort-report-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        write(&report(), &directory).unwrap();
        for (name, begins) in [
            ("report.txt", &b"processor"[..]),
            ("report.csv", b"\"load\""),
            ("report.json", b"{"),
            ("report.md", b"# Latency"),
            ("latency.svg", b"<svg"),
            ("latency.png", b"\x89PNG"),
            ("time.svg", b"<svg"),
            ("time.png", b"\x89PNG"),
        ] {
            assert!(std::fs::read(directory.join(name)).unwrap().starts_with(begins), "{name}");
        }
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
