//! Plots as pictures, SVG and PNG, without any other program.

use std::collections::HashSet;
use std::error::Error;
use std::path::Path;
use std::sync::Once;

use anyhow::anyhow;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::register_font;

use super::plots::{Plot, Series};

/// Pixels.
const SIZE: (u32, u32) = (1200, 700);
/// Cells into which points fall: more than one point in a cell cannot be told apart.
const CELLS: (f64, f64) = (1100.0, 560.0);
pub(crate) const FONT: &str = "sans-serif";

/// Told apart on white, also by most who see fewer colours (Okabe and Ito's, without yellow).
pub(crate) const COLORS: [RGBColor; 7] = [
    RGBColor(0, 0, 0),
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
];

/// What can be painted, on whatever a backend makes.
pub(crate) trait Picture {
    /// Paints it on white.
    fn paint<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>) -> Result<(), Box<dyn Error>>
    where
        B::ErrorType: 'static;
}

/// Writes `picture` as `directory/NAME.svg` and `.png`.
pub(crate) fn write(picture: &impl Picture, directory: &Path, name: &str) -> anyhow::Result<()> {
    static FONTS: Once = Once::new();
    // The bitmap's letters; an SVG names the font, and whoever shows it brings it. It cannot fail: it is a font.
    FONTS.call_once(|| drop(register_font(FONT, FontStyle::Normal, epaint_default_fonts::UBUNTU_LIGHT)));
    let path = |extension: &str| directory.join(format!("{name}.{extension}"));
    let (svg, png) = (path("svg"), path("png"));
    let failed = |path: &Path, error: Box<dyn Error>| anyhow!("cannot write {}: {error}", path.display());
    on_white(picture, &SVGBackend::new(&svg, SIZE).into_drawing_area())
        .map_err(|error| failed(&svg, error))?;
    on_white(picture, &BitMapBackend::new(&png, SIZE).into_drawing_area())
        .map_err(|error| failed(&png, error))
}

fn on_white<B: DrawingBackend>(
    picture: &impl Picture,
    area: &DrawingArea<B, Shift>,
) -> Result<(), Box<dyn Error>>
where
    B::ErrorType: 'static,
{
    area.fill(&WHITE)?;
    picture.paint(area)
}

/// Draws `plot` as `directory/NAME.svg` and `.png`. With `highest_us`, the axis ends there, and points above it lie on
/// its end: pictures of several runs can be compared.
pub(crate) fn draw(plot: &Plot, highest_us: Option<f64>, directory: &Path) -> anyhow::Result<()> {
    write(&Dots { plot, highest_us }, directory, plot.file)
}

/// A plot as dots.
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

/// What fits in one line.
fn shortened(text: &str) -> String {
    const LONGEST: usize = 165;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The ends of the axes: a fifth above the highest point, where the legend is.
fn extent(series: &[Series], highest_us: Option<f64>) -> (f64, f64) {
    let points = || series.iter().flat_map(|series| &series.points);
    let longest = points().map(|(x, _)| *x).fold(1.0, f64::max);
    let highest = points().map(|(_, y)| *y).fold(1.0, f64::max);
    (longest, highest_us.unwrap_or(highest * 1.2))
}

/// One point of each cell that has any: the picture is the same, and the SVG is not larger than it need be.
fn visible(series: &Series, (longest_x, highest_y): (f64, f64)) -> Vec<(f64, f64)> {
    let cell = |(x, y): (f64, f64)| ((x / longest_x * CELLS.0) as i32, (y / highest_y * CELLS.1) as i32);
    let mut seen = HashSet::new();
    let points = series.points.iter().map(|(x, y)| (*x, y.min(highest_y)));
    points.filter(|point| seen.insert(cell(*point))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_that_fall_together_are_drawn_once_and_no_peak_is_left_out() {
        let mut points: Vec<(f64, f64)> = (0..100_000).map(|at| (f64::from(at), 10.0)).collect();
        points[50_000].1 = 900.0;
        let series = Series { name: "a".into(), points };
        let extent = extent(std::slice::from_ref(&series), None);
        assert_eq!(extent, (99_999.0, 1080.0));
        let drawn = visible(&series, extent);
        assert!(drawn.len() <= 1102 && drawn.contains(&(50_000.0, 900.0)), "{}", drawn.len());
        let cut = visible(&series, (extent.0, 100.0));
        assert!(cut.contains(&(50_000.0, 100.0)), "above the axis' end");
    }

    #[test]
    fn names_of_any_length_leave_the_line_readable() {
        assert_eq!(shortened("short"), "short");
        assert_eq!(shortened(&"é".repeat(300)).chars().count(), 166);
    }
}
