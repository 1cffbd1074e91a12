//! Plots: the latency of each system, idle and loaded, and delays over time.

use std::error::Error;
use std::path::Path;

use plot::plotters::coord::Shift;
use plot::plotters::prelude::*;
use plot::{COLORS, FONT, Picture};

use super::entry::{Entry, Report};
use crate::command::load::Load;
use crate::command::table::Row;

/// Writes `latency` and `time`, as SVG and PNG.
pub(super) fn draw(report: &Report, directory: &Path) -> anyhow::Result<()> {
    plot::write(&Latencies(report), directory, "latency")?;
    plot::write(&OverTime(report), directory, "time")
}

/// Pixels for the names of systems.
const NAMES: u32 = 430;

fn measured(report: &Report) -> Vec<(&Entry, &Row)> {
    report.entries.iter().filter_map(|entry| Some((entry, entry.outcome.as_ref().ok()?))).collect()
}

fn name(row: &Row) -> String {
    format!("{}, {}", row.system.interface, row.system.buffer)
}

fn color(load: Load) -> RGBColor {
    COLORS[load as usize % COLORS.len()]
}

/// One line for each system: from its shortest to its longest delay, with a dot at its latency, for
/// each load.
struct Latencies<'a>(&'a Report);

impl Picture for Latencies<'_> {
    fn paint<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>) -> Result<(), Box<dyn Error>>
    where
        B::ErrorType: 'static,
    {
        let rows = measured(self.0);
        let mut names: Vec<String> = Vec::new();
        for (_, row) in &rows {
            if !names.contains(&name(row)) {
                names.push(name(row));
            }
        }
        let longest = rows
            .iter()
            .map(|(_, row)| row.found.milliseconds(row.found.distribution.maximum))
            .fold(1.0, f64::max);
        area.titled("Latency of each system, by load: shortest, median and longest", (FONT, 26))?;
        let mut chart = ChartBuilder::on(area)
            .margin(16)
            .margin_top(58)
            .x_label_area_size(44)
            .y_label_area_size(NAMES)
            .build_cartesian_2d(0.0..longest * 1.1, (0..names.len().max(1)).into_segmented())?;
        chart
            .configure_mesh()
            .x_desc("ms")
            .label_style((FONT, 14))
            .light_line_style(TRANSPARENT)
            .y_labels(names.len() + 1)
            .y_label_formatter(&|place| match place {
                SegmentValue::CenterOf(index) => names.get(*index).cloned().unwrap_or_default(),
                _ => String::new(),
            })
            .draw()?;
        let mut loads: Vec<Load> = rows.iter().map(|(entry, _)| entry.load).collect();
        loads.sort_by_key(|load| *load as usize);
        loads.dedup();
        for load in loads {
            let color = color(load);
            let of_load: Vec<_> = rows.iter().filter(|(entry, _)| entry.load == load).collect();
            let place =
                |row: &Row| names.iter().position(|known| *known == name(row)).unwrap_or_default();
            // Larger dots are drawn first, so that dots of several loads do not hide each other.
            let radius = 13 - 2 * load as i32;
            let ms = |row: &Row, frames| row.found.milliseconds(frames);
            let lines = of_load.iter().map(|(_, row)| {
                let ends = [row.found.distribution.minimum, row.found.distribution.maximum];
                let points =
                    ends.map(|frames| (ms(row, frames), SegmentValue::CenterOf(place(row))));
                PathElement::new(points.to_vec(), color.stroke_width(2))
            });
            chart.draw_series(lines)?;
            let dots = of_load.iter().map(|(_, row)| {
                Circle::new(
                    (ms(row, row.found.frames()), SegmentValue::CenterOf(place(row))),
                    radius,
                    color.filled(),
                )
            });
            chart
                .draw_series(dots)?
                .label(load.name())
                .legend(move |(x, y)| Circle::new((x + 10, y), 5, color.filled()));
        }
        chart
            .configure_series_labels()
            .label_font((FONT, 16))
            .background_style(WHITE.mix(0.85))
            .draw()?;
        Ok(area.present()?)
    }
}

/// Every delay, at the second at which it was measured.
struct OverTime<'a>(&'a Report);

impl Picture for OverTime<'_> {
    fn paint<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>) -> Result<(), Box<dyn Error>>
    where
        B::ErrorType: 'static,
    {
        let rows = measured(self.0);
        let points = |row: &Row| -> Vec<(f64, f64)> {
            let rate_hz = f64::from(row.found.sample_rate_hz);
            let delays = row.found.delays.iter();
            delays
                .map(|delay| {
                    (delay.at_frame as f64 / rate_hz, row.found.milliseconds(delay.frames))
                })
                .collect()
        };
        let all = || rows.iter().flat_map(|(_, row)| points(row));
        let (last, longest) =
            all().fold((1.0_f64, 1.0_f64), |(x, y), point| (x.max(point.0), y.max(point.1)));
        area.titled(
            "Every delay over time: a slope is drift, a step is inserted or lost frames",
            (FONT, 26),
        )?;
        let mut chart = ChartBuilder::on(area)
            .margin(16)
            .margin_top(58)
            .x_label_area_size(44)
            .y_label_area_size(70)
            .build_cartesian_2d(0.0..last, 0.0..longest * 1.4)?;
        chart
            .configure_mesh()
            .x_desc("s")
            .y_desc("ms")
            .label_style((FONT, 16))
            .light_line_style(TRANSPARENT)
            .draw()?;
        for (number, (entry, row)) in rows.iter().enumerate() {
            let color = COLORS[number % COLORS.len()];
            chart
                .draw_series(std::iter::once(PathElement::new(points(row), color)))?
                .label(format!("{}, {}", name(row), entry.load.name()))
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], color));
        }
        chart
            .configure_series_labels()
            .label_font((FONT, 13))
            .background_style(WHITE.mix(0.85))
            .position(SeriesLabelPosition::UpperRight)
            .draw()?;
        Ok(area.present()?)
    }
}
