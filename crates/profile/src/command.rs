//! `consort profile`: timing of every cycle, live or from a recording.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, anyhow};
use clap::{Args, Subcommand};
use cli::output::{self, is_standard};
use observe::{Recorded, RecordingFollower};
use proto::timing::Quantiles;
use rt::record::Record;
use sys::poll::{Interest, Poller};
use sys::signals::TerminationSignals;

use crate::file::{self, Writer};
use crate::ports::{Profiler, ServerPorts};
use crate::timeline::{Origin, Timeline};
use crate::{draw, jack_log, plots, trace};

/// Interval of the polls of the recording.
const POLL_NS: u64 = RecordingFollower::POLL.as_nanos() as u64;

/// Record, plot and export the timing of every cycle
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  consort profile show
  consort profile record --seconds 30 --output run.rec
  consort profile plot run.rec --output plots
  consort profile plot run.rec --output plots --jack-log
  consort profile ports -c -p -e
  consort profile trace run.rec --output run.json   # opens in ui.perfetto.dev")]
pub struct Profile {
    #[command(subcommand)]
    what: ProfileCommand,
}

#[derive(Debug, Subcommand)]
enum ProfileCommand {
    /// Show the times of each client over the last second, the last minute, and since it opened
    Show,
    /// Record the cycles of a running server into a file. SIGINT and SIGTERM end the recording
    /// earlier; the file is complete then
    Record {
        /// Duration in seconds
        #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=86_400))]
        seconds: u64,
        /// The recording; "-" is standard output
        #[arg(long, value_name = "REC")]
        output: PathBuf,
    },
    /// Draw the plots of a recording, or of the running server
    Plot {
        #[command(flatten)]
        source: Source,
        /// Directory for the PNG and SVG files; created if it does not exist
        #[arg(long, value_name = "DIR")]
        output: PathBuf,
        /// End of the time axis in µs, so that plots of several runs can be compared; longer times
        /// are drawn at the end [default: a fifth above the longest time]
        #[arg(long, value_name = "US", value_parser = clap::value_parser!(u32).range(1..))]
        y_max: Option<u32>,
        /// Also write JACK2's JackEngineProfiling.log and its Gnuplot scripts
        #[arg(long)]
        jack_log: bool,
    },
    /// Run a client whose ports send the measurements as signals, one value per cycle, until the
    /// server ends
    Ports {
        /// Send the DSP load, 0 to 1, as cpu_load
        #[arg(short = 'c', long = "load")]
        cpu_load: bool,
        /// Send by how much each cycle is longer or shorter than its nominal length, -1 to 1, as
        /// driver_period
        #[arg(short = 'p', long = "period")]
        driver_period: bool,
        /// Send when the driver finished its part of the cycle, 0 to 1, as driver_end_time
        #[arg(short = 'e', long = "end")]
        driver_end_time: bool,
        /// The client's name
        #[arg(long, value_name = "NAME", default_value = "profiler")]
        client_name: String,
    },
    /// Write a recording as a trace that Chrome and Perfetto show
    Trace {
        #[command(flatten)]
        source: Source,
        /// The JSON file; "-" is standard output
        #[arg(long, value_name = "FILE")]
        output: PathBuf,
    },
}

#[derive(Debug, Args)]
struct Source {
    /// A recording [default: record the running server for --seconds]
    #[arg(value_name = "REC")]
    recording: Option<PathBuf>,
    /// Seconds to record the running server; SIGINT and SIGTERM end the recording earlier
    #[arg(long, value_name = "N", default_value_t = 10, conflicts_with = "recording", value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
}

impl Profile {
    /// Runs the subcommand on the server `server`, or on a recording.
    ///
    /// # Errors
    /// There is no such server or recording, or a file cannot be written.
    pub fn run(self, server: &str) -> anyhow::Result<ExitCode> {
        match self.what {
            ProfileCommand::Show => show(server)?,
            ProfileCommand::Record { seconds, output } => record(server, seconds, &output)?,
            ProfileCommand::Plot { source, output, y_max, jack_log } => {
                let timeline = source.timeline(server)?;
                let plots = plots::plots(&timeline)?;
                std::fs::create_dir_all(&output)
                    .with_context(|| format!("cannot create the directory {}", output.display()))?;
                plots
                    .iter()
                    .try_for_each(|plot| draw::draw(plot, y_max.map(f64::from), &output))?;
                if jack_log {
                    jack_log::write(&timeline, &output)?;
                }
                warn_about_lost_records(timeline.lost);
            }
            ProfileCommand::Ports { cpu_load, driver_period, driver_end_time, client_name } => {
                let ports = ServerPorts { cpu_load, driver_period, driver_end_time };
                Profiler::start(server, &client_name, false, ports)?.run_until(|| false)?;
            }
            ProfileCommand::Trace { source, output } => {
                let timeline = source.timeline(server)?;
                let mut to = create(&output)?;
                let written = trace::write(&timeline, &mut to).and_then(|()| to.flush());
                written.with_context(|| format!("cannot write {}", output.display()))?;
                warn_about_lost_records(timeline.lost);
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Source {
    fn timeline(&self, server: &str) -> anyhow::Result<Timeline> {
        let Some(path) = &self.recording else { return recorded(server, self.seconds) };
        let bytes =
            std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        file::read(&bytes).map_err(|error| anyhow!("cannot read {}: {error}", path.display()))
    }
}

fn create(path: &Path) -> anyhow::Result<BufWriter<Box<dyn Write>>> {
    if is_standard(path) {
        return Ok(BufWriter::new(Box::new(std::io::stdout())));
    }
    let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(BufWriter::new(Box::new(file)))
}

fn warn_about_lost_records(lost: u64) {
    if lost > 0 {
        eprintln!(
            "consort: {lost} records were overwritten before they were read: those cycles are missing"
        );
    }
}

/// Passes everything recorded to `consume` for `seconds`, or until a signal ends the recording.
fn follow(
    follower: &mut RecordingFollower,
    seconds: u64,
    mut consume: impl FnMut(Recorded<'_>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let signals = TerminationSignals::block().context("cannot block signals")?;
    let (poller, mut events) = (Poller::new()?, Vec::new());
    poller.add(&signals, 0, Interest::Readable)?;
    let end_ns = sys::clock::now_ns() + seconds * 1_000_000_000;
    let mut has_signal = false;
    while sys::clock::now_ns() < end_ns && !has_signal {
        follower.catch_up(&mut consume)?;
        poller.wait(&mut events, Some(sys::clock::now_ns() + POLL_NS))?;
        has_signal = signals.read()?.is_some();
    }
    follower.catch_up(&mut consume)
}

fn record(server: &str, seconds: u64, output: &Path) -> anyhow::Result<()> {
    let mut follower = RecordingFollower::open(server)?;
    let mut writer = Writer::new(create(output)?, &Origin::of(&follower)?)?;
    let mut lost = 0;
    let failed = || format!("cannot write {}", output.display());
    follow(&mut follower, seconds, |entry| {
        let written = match entry {
            Recorded::Name(id, name) => writer.name(id, name),
            Recorded::Record(words) => writer.record(words),
            Recorded::Lost(records) => {
                lost += records;
                writer.lost(records)
            }
        };
        written.with_context(failed)
    })?;
    let records = writer.end().with_context(failed)?;
    warn_about_lost_records(lost);
    if !is_standard(output) {
        output::print(&format!("{records} records in {}\n", output.display()))?;
    }
    Ok(())
}

/// Records the running server for `seconds`.
fn recorded(server: &str, seconds: u64) -> anyhow::Result<Timeline> {
    let mut follower = RecordingFollower::open(server)?;
    let mut timeline = Timeline::new(Origin::of(&follower)?);
    follow(&mut follower, seconds, |entry| {
        match entry {
            Recorded::Name(id, name) => timeline.name(id, name),
            Recorded::Record(words) => {
                Record::from_words(words).into_iter().for_each(|record| timeline.add(record))
            }
            Recorded::Lost(records) => timeline.lost += records,
        }
        Ok(())
    })?;
    Ok(timeline)
}

fn show(server: &str) -> anyhow::Result<()> {
    let follower = RecordingFollower::open(server)?;
    let observer = follower.observer();
    let mut text = format!(
        "{:<24} {:<10} {:<7} {:>8} {:>9} {:>9} {:>9} {:>9}\n",
        "client", "", "", "cycles", "p50", "p99", "p99.9", "max"
    );
    for client in observer.registry().clients() {
        // A client that has left meanwhile has no times, and neither has the server's own.
        let Ok(timing) = observer.timing(client.id) else { continue };
        let name: String = client.name.chars().take(24).collect();
        for (what, windows) in [("scheduling", timing.scheduling), ("duration", timing.duration)] {
            let windows =
                [("second", windows.second), ("minute", windows.minute), ("start", windows.start)];
            for (window, quantiles) in windows {
                text.push_str(&line(&name, what, window, &quantiles));
            }
        }
    }
    text.push_str("\nTimes in µs: scheduling is signaled to awake, duration awake to finished.\n");
    Ok(output::print(&text)?)
}

fn line(name: &str, what: &str, window: &str, quantiles: &Quantiles) -> String {
    let Quantiles { count, p50_ns, p99_ns, p999_ns, max_ns } = *quantiles;
    let [p50, p99, p999, max] = [p50_ns, p99_ns, p999_ns, max_ns].map(|ns| ns as f64 / 1000.0);
    format!(
        "{name:<24} {what:<10} {window:<7} {count:>8} {p50:>9.1} {p99:>9.1} {p999:>9.1} {max:>9.1}\n"
    )
}

/// Reads bytes as a recording and exports it in every way, for the fuzz target.
#[cfg(fuzzing)]
pub fn read_recording(bytes: &[u8]) {
    let timeline = match file::read(bytes) {
        Ok(timeline) => timeline,
        Err(error) => return assert!(!error.to_string().is_empty(), "a refusal has a reason"),
    };
    let _ = plots::plots(&timeline);
    jack_log::lines(&timeline);
    trace::write(&timeline, &mut std::io::sink())
        .unwrap_or_else(|error: std::io::Error| panic!("{error}"));
}
