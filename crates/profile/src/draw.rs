//! Plots of a recording as SVG and PNG files.

use std::collections::HashSet;
use std::error::Error;
use std::path::Path;

use plot::plotters::coord::Shift;
use plot::plotters::prelude::*;
use plot::{COLORS, FONT, Picture};

use crate::plots::{Plot, Series};

/// Number of cells in each direction. Two points in the same cell cannot be told apart.
const CELLS: (f64, f64) = (1100.0, 560.0);

/// Draws `plot` as an SVG and a PNG file in `directory`. With `highest_us`, the axis ends there and
/// higher points lie on its end, so that pictures of several runs can be compared.
pub(crate) fn draw(plot: &Plot, highest_us: Option<f64>, directory: &Path) -> anyhow::Result<()> {
    plot::write(&Dots { plot, highest_us }, directory, plot.file)
}

/// A plot drawn as dots.
struct Dots<'a> {
    plot: &'a Plot,
    highest_us: Option<f64>,
}

impl Picture for Dots<'_> {
    fn paint<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>) -> Result<(), Box<dyn Error>>
    where
        B::ErrorType: 'static,
    {
        let Self { plot, highest_us } = *self;
        area.titled(plot.title, (FONT, 26))?;
        let summary = format!("{}; µs: median / 99 % / longest", plot.summary);
        area.draw_text(&shortened(&summary), &(FONT, 15).into_text_style(area), (16, 34))?;
        let (longest_x, highest_y) = extent(&plot.series, highest_us);
        let mut chart = ChartBuilder::on(area)
            .margin(16)
            .margin_top(58)
            .x_label_area_size(44)
            .y_label_area_size(70)
            .build_cartesian_2d(0.0..longest_x, 0.0..highest_y)?;
        chart
            .configure_mesh()
            .x_desc("audio cycles")
            .y_desc("µs")
            .label_style((FONT, 16))
            .light_line_style(TRANSPARENT)
            .x_label_formatter(&|value| format!("{value:.0}"))
            .y_label_formatter(&|value| format!("{value:.0}"))
            .draw()?;
        for (number, series) in plot.series.iter().enumerate() {
            let color = COLORS[number % COLORS.len()];
            let points = visible(series, (longest_x, highest_y));
            let dots = points.into_iter().map(|point| Circle::new(point, 1, color.filled()));
            chart
                .draw_series(dots)?
                .label(&series.name)
                .legend(move |(x, y)| Circle::new((x + 10, y), 4, color.filled()));
        }
        chart
            .configure_series_labels()
            .label_font((FONT, 16))
            .background_style(WHITE.mix(0.85))
            .border_style(BLACK.mix(0.3))
            .position(SeriesLabelPosition::UpperRight)
            .draw()?;
        Ok(area.present()?)
    }
}

/// Returns the part of a text that fits in one line.
fn shortened(text: &str) -> String {
    const LONGEST: usize = 165;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Returns the ends of the axes. The vertical one ends a fifth above the highest point, which
/// leaves room for the legend.
fn extent(series: &[Series], highest_us: Option<f64>) -> (f64, f64) {
    let points = || series.iter().flat_map(|series| &series.points);
    let longest = points().map(|(x, _)| *x).fold(1.0, f64::max);
    let highest = points().map(|(_, y)| *y).fold(1.0, f64::max);
    (longest, highest_us.unwrap_or(highest * 1.2))
}

/// Returns one point of each cell that has any: the picture is the same, and the SVG is smaller.
fn visible(series: &Series, (longest_x, highest_y): (f64, f64)) -> Vec<(f64, f64)> {
    let cell =
        |(x, y): (f64, f64)| ((x / longest_x * CELLS.0) as i32, (y / highest_y * CELLS.1) as i32);
    let mut seen = HashSet::new();
    let points = series.points.iter().map(|(x, y)| (*x, y.min(highest_y)));
    points.filter(|point| seen.insert(cell(*point))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_in_one_cell_are_drawn_once() {
        let mut points: Vec<(f64, f64)> = (0..100_000).map(|at| (f64::from(at), 10.0)).collect();
        points[50_000].1 = 900.0;
        let series = Series { name: "a".into(), points };
        let extent = extent(std::slice::from_ref(&series), None);
        assert_eq!(extent, (99_999.0, 1080.0));
        let drawn = visible(&series, extent);
        assert!(drawn.len() <= 1102 && drawn.contains(&(50_000.0, 900.0)), "{}", drawn.len());
        let cut = visible(&series, (extent.0, 100.0));
        assert!(cut.contains(&(50_000.0, 100.0)), "above the end of the axis");
    }

    #[test]
    fn long_names_are_shortened() {
        assert_eq!(shortened("short"), "short");
        assert_eq!(shortened(&"é".repeat(300)).chars().count(), 166);
    }
}
