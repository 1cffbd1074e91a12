//! Figures as a table in Markdown, with a column for each server.

use crate::statistics::Summary;

/// One figure of one server.
#[derive(Debug)]
pub struct Cell<'a> {
    /// What was measured.
    pub measure: &'a str,
    /// In which unit.
    pub unit: &'a str,
    /// What it should be.
    pub target: &'a str,
    /// Of which server.
    pub server: String,
    /// Its rounds.
    pub summary: Summary,
}

/// The cells of a measure make a row, in the order in which the measures come first; a server has a
/// column, in the order in which the servers come first.
pub fn table(cells: &[Cell]) -> String {
    let mut servers: Vec<&str> = Vec::new();
    let mut measures: Vec<&Cell> = Vec::new();
    for cell in cells {
        if !servers.contains(&cell.server.as_str()) {
            servers.push(&cell.server);
        }
        if !measures.iter().any(|known| known.measure == cell.measure) {
            measures.push(cell);
        }
    }
    let mut text = format!("| | target | {} |\n", servers.join(" | "));
    text.push_str(&format!("|{}\n", "---|".repeat(servers.len() + 2)));
    for Cell { measure, unit, target, .. } in measures {
        let of = |server: &&str| {
            let is_it = |cell: &&Cell| cell.measure == *measure && cell.server == **server;
            cells.iter().find(is_it).map_or_else(|| String::from("–"), |cell| shown(&cell.summary))
        };
        let figures: Vec<String> = servers.iter().map(of).collect();
        let unit = if unit.is_empty() { String::new() } else { format!(", {unit}") };
        text.push_str(&format!("| {measure}{unit} | {target} | {} |\n", figures.join(" | ")));
    }
    text
}

/// The median, and the range of more than one round.
fn shown(summary: &Summary) -> String {
    let median = digits(summary.median);
    let (least, most) = (digits(summary.minimum), digits(summary.maximum));
    if least == most { median } else { format!("{median} ({least}–{most})") }
}

/// Three significant digits, or as many as a whole number has.
fn digits(value: f64) -> String {
    match value.abs() {
        0.0 => String::from("0"),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 0.1 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_server_has_a_column_and_each_measure_a_row() {
        let cell = |measure, server: &str, samples: &[f64]| Cell {
            measure,
            unit: "/s",
            target: "≤ 3",
            server: server.into(),
            summary: Summary::of(samples).unwrap(),
        };
        let cells = [
            cell("alone", "a 1", &[2.5, 2.0, 3.25]),
            cell("alone", "b 2", &[1234.0]),
            cell("beside", "b 2", &[0.0, 0.0]),
        ];
        let expected = "| | target | a 1 | b 2 |\n\
                        |---|---|---|---|\n\
                        | alone, /s | ≤ 3 | 2.50 (2.00–3.25) | 1234 |\n\
                        | beside, /s | ≤ 3 | – | 0 |\n";
        assert_eq!(table(&cells), expected);
    }

    #[test]
    fn a_figure_has_three_digits() {
        let shown = [0.0, 0.0213, 0.5, 9.876, 98.76, 987.6, 12345.6].map(digits);
        assert_eq!(shown, ["0", "0.0213", "0.50", "9.88", "98.8", "988", "12346"]);
    }
}
