//! The times of a run as a plot: a bar to each median, and a line from there to the 99th
//! percentile.

use std::path::Path;

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// One bar.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// What was measured; bars of the same name stand together.
    pub measure: String,
    /// The server, or the floor.
    pub server: String,
    /// The median, in µs.
    pub median: f64,
    /// The 99th percentile, in µs; at least the median.
    pub p99: f64,
}

/// Pixels.
const WIDTH: i32 = 1100;
const LABELS: i32 = 640;
const MARGIN: i32 = 24;
const HEAD: i32 = 40;
const ROW: i32 = 17;
/// Between two measures.
const GAP: i32 = 9;

/// Distinguishable on white, also for most colour-blind readers (Okabe and Ito's palette).
const COLORS: [RGBColor; 4] =
    [RGBColor(0, 114, 178), RGBColor(213, 94, 0), RGBColor(0, 158, 115), RGBColor(204, 121, 167)];
/// The floors' colour.
const GRAY: RGBColor = RGBColor(150, 150, 150);

/// Writes the bars as an SVG; times are on a logarithmic axis, since they span four decades.
///
/// # Errors
/// If there is no bar, or the file cannot be written.
pub fn write(bars: &[Bar], file: &Path) -> Result<()> {
    let failed = |error: String| anyhow!("cannot write {}: {error}", file.display());
    let axis = Axis::of(bars).ok_or_else(|| failed("no times were measured".into()))?;
    let height = HEAD + MARGIN + rows(bars).last().map_or(0, |(_, y)| y + ROW);
    let size = (WIDTH as u32, height.unsigned_abs());
    let area = SVGBackend::new(file, size).into_drawing_area();
    paint(bars, axis, height, &area).map_err(|error| failed(error.to_string()))
}

/// Each bar and its upper edge.
fn rows(bars: &[Bar]) -> impl Iterator<Item = (&Bar, i32)> {
    let mut below = HEAD;
    let mut last: Option<&str> = None;
    bars.iter().map(move |bar| {
        if last.is_some_and(|last| last != bar.measure) {
            below += GAP;
        }
        last = Some(&bar.measure);
        below += ROW;
        (bar, below - ROW)
    })
}

/// From µs to pixels.
#[derive(Clone, Copy, Debug)]
struct Axis {
    /// Powers of ten.
    first: i32,
    last: i32,
}

impl Axis {
    fn of(bars: &[Bar]) -> Option<Self> {
        let times = || bars.iter().flat_map(|bar| [bar.median, bar.p99]).filter(|time| *time > 0.0);
        let first = times().min_by(f64::total_cmp)?.log10().floor() as i32;
        let last = times().max_by(f64::total_cmp)?.log10().ceil() as i32;
        Some(Self { first, last: last.max(first + 1) })
    }

    fn x(self, time: f64) -> i32 {
        let decades = f64::from(self.last - self.first);
        let part = (time.max(f64::MIN_POSITIVE).log10() - f64::from(self.first)) / decades;
        LABELS + (part.clamp(0.0, 1.0) * f64::from(WIDTH - MARGIN - LABELS)) as i32
    }
}

fn paint(
    bars: &[Bar],
    axis: Axis,
    height: i32,
    area: &DrawingArea<SVGBackend<'_>, Shift>,
) -> Result<(), Box<dyn std::error::Error>> {
    area.fill(&WHITE)?;
    let text = |size: i32, at: HPos| {
        TextStyle::from(("sans-serif", size).into_font()).pos(Pos::new(at, VPos::Center))
    };
    for power in axis.first..=axis.last {
        let x = axis.x(10_f64.powi(power));
        area.draw(&PathElement::new([(x, HEAD - 8), (x, height - MARGIN / 2)], BLACK.mix(0.2)))?;
        let label = format!("{} µs", 10_f64.powi(power));
        area.draw(&Text::new(label, (x, HEAD / 2), text(12, HPos::Center)))?;
    }
    let mut servers: Vec<&str> = Vec::new();
    let mut last = "";
    for (bar, y) in rows(bars) {
        let middle = y + ROW / 2;
        if bar.measure != last {
            area.draw(&Text::new(
                bar.measure.as_str(),
                (MARGIN / 2, middle),
                text(12, HPos::Left),
            ))?;
            last = &bar.measure;
        }
        area.draw(&Text::new(bar.server.as_str(), (LABELS - 8, middle), text(12, HPos::Right)))?;
        let color = color_of(&bar.server, &mut servers);
        let end = axis.x(bar.median).max(LABELS + 1);
        area.draw(&Rectangle::new([(LABELS, y + 2), (end, y + ROW - 2)], color.filled()))?;
        area.draw(&PathElement::new(
            [(end, middle), (axis.x(bar.p99), middle)],
            color.stroke_width(2),
        ))?;
    }
    Ok(area.present()?)
}

/// Each server's own, in the order in which they come; floors are gray.
fn color_of<'a>(server: &'a str, servers: &mut Vec<&'a str>) -> RGBColor {
    if server.starts_with("floor") {
        return GRAY;
    }
    let number = servers.iter().position(|known| *known == server).unwrap_or_else(|| {
        servers.push(server);
        servers.len() - 1
    });
    COLORS[number % COLORS.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(measure: &str, server: &str, median: f64, p99: f64) -> Bar {
        Bar { measure: measure.into(), server: server.into(), median, p99 }
    }

    #[test]
    fn longer_times_have_longer_bars_within_the_picture() {
        let bars = [bar("a", "x", 5.0, 20.0), bar("a", "y", 500.0, 90_000.0)];
        let axis = Axis::of(&bars).unwrap();
        let places = [0.0, 5.0, 20.0, 500.0, 90_000.0, 1e9].map(|time| axis.x(time));
        assert!(places.is_sorted() && places[1] < places[2] && places[3] < places[4], "{places:?}");
        assert!(places.iter().all(|x| (LABELS..=WIDTH - MARGIN).contains(x)));
        assert!(Axis::of(&[]).is_none());
    }

    #[test]
    fn the_picture_names_each_measure_once() {
        let directory =
            std::env::temp_dir().join(format!("consort-bench-plot-{}", std::process::id()));
        let bars = [
            bar("hop", "x", 5.0, 20.0),
            bar("hop", "floor: one CPU", 4.0, 9.0),
            bar("open", "x", 1.0, 2.0),
        ];
        write(&bars, &directory).unwrap();
        let svg = std::fs::read_to_string(&directory).unwrap();
        std::fs::remove_file(&directory).unwrap();
        assert!(svg.starts_with("<svg"));
        let lines = |word: &str| svg.lines().filter(|line| line.trim() == word).count();
        assert_eq!(
            (lines("hop"), lines("open"), lines("x"), lines("floor: one CPU")),
            (1, 1, 2, 1),
            "{svg}"
        );
        assert!(write(&[], &directory).is_err());
    }
}
