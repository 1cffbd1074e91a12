//! The five plots of "JACK2 timing measurements" (Letz et al.), from a recording, and the plot of
//! figures 5 to 8 of "Jack audio server for multi-processor machines" (Letz, Orlarey, Fober 2005):
//! three times of each client, in slices.

use crate::timeline::{Run, Timeline};

/// One plot: what happened in each cycle, in µs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Plot {
    /// Name of its files, without an extension.
    pub(crate) file: &'static str,
    pub(crate) title: &'static str,
    /// Its statistics in one line.
    pub(crate) summary: String,
    pub(crate) series: Vec<Series>,
}

/// The points of one name.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Series {
    pub(crate) name: String,
    /// Pairs of the cycle's number within the recording and a time in µs.
    pub(crate) points: Vec<(f64, f64)>,
}

/// A recording without anything to draw.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the recording has no two consecutive cycles: was the server running? record for a longer time"
)]
pub(crate) struct Empty;

fn us(from_ns: u64, to_ns: u64) -> f64 {
    to_ns.saturating_sub(from_ns) as f64 / 1000.0
}

/// Returns all plots.
pub(crate) fn plots(timeline: &Timeline) -> Result<[Plot; 6], Empty> {
    if timeline.pairs().next().is_none() {
        return Err(Empty);
    }
    let periods =
        driver(timeline, "audio period", |run, next| us(run.cycle.woken_ns, next.cycle.woken_ns));
    let ends =
        driver(timeline, "driver end time", |run, _| us(run.cycle.woken_ns, run.cycle.end_ns));
    let finished = clients(timeline, |run, client| {
        (client.finished_ns != 0).then(|| us(run.cycle.woken_ns, client.finished_ns))
    });
    let scheduling =
        clients(timeline, |_, client| client.scheduling_ns().map(|duration_ns| us(0, duration_ns)));
    let durations =
        clients(timeline, |_, client| client.duration_ns().map(|duration_ns| us(0, duration_ns)));
    let ideal_us = timeline.runs.first().map_or(0.0, |run| us(0, run.cycle.period_ns()));
    let mode = if timeline.origin.sync { "sync mode" } else { "async mode" };
    let about = |file, title, series: Vec<Series>| {
        let summary =
            format!("{mode}; {}", series.iter().map(summary).collect::<Vec<_>>().join("; "));
        Plot { file, title, summary, series }
    };
    let mut with_period = vec![periods.clone()];
    with_period.extend(finished);
    let mut first = about("1-audio-driver-timing", "Audio driver timing", vec![periods]);
    first.summary = format!("ideal {ideal_us:.1}; {}", first.summary);
    Ok([
        first,
        about("2-driver-end-time", "Driver end time", vec![ends]),
        about("3-clients-end-time", "Clients end time", with_period),
        about("4-clients-scheduling-latency", "Clients scheduling latency", scheduling),
        about("5-clients-duration", "Clients duration", durations),
        slices(timeline, mode),
    ])
}

fn driver(timeline: &Timeline, name: &str, value: impl Fn(&Run, &Run) -> f64) -> Series {
    let points =
        timeline.pairs().enumerate().map(|(at, (run, next))| (at as f64, value(run, next)));
    Series { name: name.into(), points: points.collect() }
}

fn clients(
    timeline: &Timeline,
    value: impl Fn(&Run, &rt::record::ClientRecord) -> Option<f64>,
) -> Vec<Series> {
    let mut series: Vec<Series> = timeline
        .names
        .iter()
        .map(|name| Series { name: name.clone(), points: Vec::new() })
        .collect();
    for (at, (run, _)) in timeline.pairs().enumerate() {
        for (client, record) in &run.clients {
            if let (Some(value), Some(series)) = (value(run, record), series.get_mut(*client)) {
                series.points.push((at as f64, value));
            }
        }
    }
    series.retain(|series| !series.points.is_empty());
    series
}

/// Returns the plot in which each client has a slice of the horizontal axis with all cycles of the
/// recording.
fn slices(timeline: &Timeline, mode: &str) -> Plot {
    let cycles = timeline.pairs().count() as f64;
    let ran = |index: &usize| {
        timeline.pairs().any(|(run, _)| run.clients.iter().any(|(client, _)| client == index))
    };
    let shown: Vec<usize> = (0..timeline.names.len()).filter(ran).collect();
    let mut times =
        ["signal", "awake", "finish"].map(|name| Series { name: name.into(), points: Vec::new() });
    let mut ends = Series { name: "end".into(), points: Vec::new() };
    for (at, (run, _)) in timeline.pairs().enumerate() {
        for (client, record) in &run.clients {
            let Some(slice) = shown.iter().position(|index| index == client) else { continue };
            let x = slice as f64 * cycles + at as f64;
            let found = [record.signaled_ns, record.awake_ns, record.finished_ns];
            for (series, time_ns) in
                times.iter_mut().zip(found).filter(|(_, time_ns)| *time_ns != 0)
            {
                series.points.push((x, us(run.cycle.woken_ns, time_ns)));
            }
        }
        let last_ns = run
            .clients
            .iter()
            .map(|(_, record)| record.finished_ns)
            .max()
            .filter(|time_ns| *time_ns != 0);
        ends.points.extend(last_ns.map(|time_ns| (at as f64, us(run.cycle.woken_ns, time_ns))));
    }
    let names: Vec<&str> =
        shown.iter().filter_map(|index| timeline.names.get(*index)).map(String::as_str).collect();
    Plot {
        file: "6-clients-in-slices",
        title: "Signal, awake and finish times, one slice per client",
        summary: format!("{mode}; slices: {}; {}", names.join(", "), summary(&ends)),
        series: times.into(),
    }
}

fn summary(series: &Series) -> String {
    let mut values: Vec<f64> = series.points.iter().map(|(_, value)| *value).collect();
    values.sort_by(f64::total_cmp);
    let at = |share: f64| values.get(((values.len().max(1) - 1) as f64 * share) as usize).copied();
    let [median, high, max] = [0.5, 0.99, 1.0].map(|share| at(share).unwrap_or_default());
    format!("{} {median:.0} / {high:.0} / {max:.0}", series.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::Origin;
    use crate::timeline::tests::sample;

    #[test]
    fn each_plot_shows_what_its_title_says() {
        let [.., slices] = plots(&sample(4)).unwrap();
        let first_and_last =
            |series: &Series| (series.points.len(), series.points[0], series.points[5]);
        for (series, (name, synth, reverb)) in slices.series.iter().zip([
            ("signal", 2.0, 112.0),
            ("awake", 12.0, 120.0),
            ("finish", 112.0, 320.0),
        ]) {
            assert_eq!(series.name, name);
            assert_eq!(
                first_and_last(series),
                (6, (0.0, synth), (5.0, reverb)),
                "two slices of three cycles"
            );
        }
        assert!(
            slices.summary.contains("slices: synth, reverb; end 320 / 320 / 320"),
            "{}",
            slices.summary
        );
        let [plots @ .., _] = plots(&sample(4)).unwrap();
        let values = plots.map(|plot| {
            plot.series
                .into_iter()
                .map(|series| {
                    assert_eq!(series.points.len(), 3, "{}", series.name);
                    assert!(series.points.iter().all(|(_, value)| *value == series.points[0].1));
                    (series.name, series.points[0].1)
                })
                .collect::<Vec<_>>()
        });
        let named = |expected: &[(&str, f64)]| -> Vec<(String, f64)> {
            expected.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
        };
        assert_eq!(values[0], named(&[("audio period", 1333.333)]));
        assert_eq!(values[1], named(&[("driver end time", 9.0)]));
        assert_eq!(
            values[2],
            named(&[("audio period", 1333.333), ("synth", 112.0), ("reverb", 320.0)])
        );
        assert_eq!(values[3], named(&[("synth", 10.0), ("reverb", 8.0)]));
        assert_eq!(values[4], named(&[("synth", 100.0), ("reverb", 200.0)]));
    }

    #[test]
    fn a_recording_without_cycles_has_no_plots() {
        assert_eq!(plots(&Timeline::new(Origin::default())), Err(Empty));
        assert_eq!(plots(&sample(1)), Err(Empty));
    }
}
