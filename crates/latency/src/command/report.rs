//! `consort latency report`: the paper's tables for this machine.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::analysis::Continuity;
use anyhow::{Context, bail, ensure};
use clap::Args;
use cli::{UsageError, in_range, output};
use proto::limits::QUANTUM_FRAMES;

use super::load::{Load, Running};
use super::measure::{self, Sending};
use super::search;
use super::subject::{Subject, Words};
use super::table::Row;
use entry::Entry;

mod entry;
mod files;
mod machine;
mod plots;

/// Measure several systems, idle and under load: the paper's tables for this machine
///
/// A system is written like the other commands but without options about the signal, such as 'alsa
/// --playback hw:0 --capture hw:0'. A system that is not installed or does not run has a row that
/// says so. Each load runs only during the measurements in whose rows it is named.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  consort latency report --out latency
  consort latency report --system \"run --start --loop\" --system pulse --load idle,cpu --buffers 64,256
  consort latency report --system \"alsa --playback hw:1,0 --capture hw:1,1\" --search --seconds 300")]
pub(super) struct Report {
    /// A system; repeatable [default: all that this machine may have]
    #[arg(long = "system", value_name = "WORDS", value_parser = Named::parse)]
    systems: Vec<Named>,
    /// The system in the first row
    #[arg(long, value_name = "WORDS", value_parser = Named::parse, default_value = "memory")]
    baseline: Named,
    /// Loads, in this order
    #[arg(
        long = "load",
        value_name = "LOADS",
        value_enum,
        value_delimiter = ',',
        default_value = "idle,cpu,disk,memory,network,interrupt"
    )]
    loads: Vec<Load>,
    /// Frames of a buffer: a quantum, a period
    #[arg(long, value_name = "FRAMES", value_delimiter = ',', default_value = "256", value_parser = frames())]
    buffers: Vec<u32>,
    /// Find the smallest buffer that runs without a dropout, and measure with it
    #[arg(long, conflicts_with = "buffers")]
    search: bool,
    /// The smallest buffer to try
    #[arg(long, value_name = "FRAMES", default_value_t = 16, requires = "search", value_parser = frames())]
    from: u32,
    /// The largest buffer to try
    #[arg(long, value_name = "FRAMES", default_value_t = 8192, requires = "search", value_parser = frames())]
    to: u32,
    /// How many more times the buffer found must run without a dropout
    #[arg(long, value_name = "N", default_value_t = 1, requires = "search", value_parser = clap::value_parser!(u32).range(1..=100))]
    confirmations: u32,
    /// Duration of the signal of each measurement in seconds
    #[arg(long, value_name = "S", default_value_t = 5, value_parser = measure::seconds())]
    seconds: u32,
    #[command(flatten)]
    sending: Sending,
    /// Write tables as text, CSV, JSON and Markdown, and plots as SVG and PNG, into this directory
    #[arg(long, value_name = "DIRECTORY")]
    out: Option<PathBuf>,
}

/// Returns the parser of a buffer's length in frames.
pub(super) fn frames() -> clap::builder::RangedI64ValueParser<u32> {
    in_range(16..=*QUANTUM_FRAMES.end())
}

/// A system, and its words on the command line.
#[derive(Debug, Clone)]
struct Named {
    words: String,
    subject: Words,
}

impl Named {
    fn parse(words: &str) -> Result<Self, String> {
        let subject = Words::parse_text(words).map_err(|error| error.to_string())?;
        Ok(Self { words: words.into(), subject })
    }
}

/// Debian's paths of the libraries of other JACK servers, and the options to measure them without a
/// device. PipeWire would take another server name for another PipeWire.
const LIBRARIES: [(&str, &str); 2] = [
    ("/usr/lib/x86_64-linux-gnu/libjack.so.0", "run --graph"),
    (
        "/usr/lib/x86_64-linux-gnu/pipewire-0.3/jack/libjack.so.0",
        "run -n default --playback 'null Audio/Sink sink:playback_FL' --capture 'null Audio/Sink sink:monitor_FL'",
    ),
];
/// Other systems that the machine may have.
const USUAL: [&str; 5] =
    ["run --start --loop", "run --start '--loop --sync'", "pulse", "portaudio", "sdl"];

impl Report {
    pub(super) fn run(mut self, server: &str) -> anyhow::Result<ExitCode> {
        ensure!(self.from <= self.to, UsageError("--from is larger than --to".into()));
        if self.systems.is_empty() {
            self.systems = usual(Path::new("/proc/asound/cards"))?;
        }
        if let Some(directory) = &self.out {
            std::fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
        }
        let mut entries = Vec::new();
        for &load in &self.loads {
            self.measure_under(load, server, &mut entries)?;
        }
        let report = entry::Report::new(entries, &self.loads, &self.method());
        if let Some(directory) = &self.out {
            files::write(&report, directory)?;
        }
        output::print(&report.as_text())?;
        Ok(ExitCode::SUCCESS)
    }

    fn method(&self) -> String {
        let buffers = if self.search {
            let times = self.confirmations + 1;
            format!(
                "the smallest buffer of {} to {} frames that ran {times} times without a dropout",
                self.from, self.to
            )
        } else {
            format!("buffers of {:?} frames", self.buffers)
        };
        format!("{} s each, {buffers}", self.seconds)
    }

    /// Measures all systems under one load.
    fn measure_under(
        &self,
        load: Load,
        server: &str,
        entries: &mut Vec<Entry>,
    ) -> anyhow::Result<()> {
        // The load writes to the report's disk, since a directory for temporary files may be in
        // memory.
        let directory = std::path::absolute(self.out.as_deref().unwrap_or_else(|| Path::new(".")))?;
        let mut running = match Running::start(load, &directory) {
            Ok(running) => running,
            Err(error) => {
                let outcome = Err(format!("{error:#}"));
                entries.push(Entry {
                    words: "every system".into(),
                    load,
                    is_baseline: false,
                    outcome,
                });
                return Ok(());
            }
        };
        let baseline = std::iter::once((&self.baseline, true));
        for (named, is_baseline) in baseline.chain(self.systems.iter().map(|named| (named, false)))
        {
            let mut add = |outcome: anyhow::Result<Row>| {
                let outcome = outcome.map_err(|error| format!("{error:#}"));
                let entry = Entry { words: named.words.clone(), load, is_baseline, outcome };
                // A system that is missing is missing with any buffer, so one entry is enough.
                if !entries.last().is_some_and(|last| last.is_missing_as(&entry)) {
                    entries.push(entry);
                }
            };
            if self.search {
                add(self.search(named, load, server, &mut running));
            } else {
                for &frames in &self.buffers {
                    add(self.measure(named, load, server, frames, &mut running));
                }
            }
        }
        Ok(())
    }

    fn measure(
        &self,
        named: &Named,
        load: Load,
        server: &str,
        frames: u32,
        running: &mut Running,
    ) -> anyhow::Result<Row> {
        eprintln!("consort: {}, {frames} frames, {}", named.words, load.name());
        let plan = |sample_rate_hz| self.sending.plan(self.seconds, sample_rate_hz);
        let (system, channels) = named.subject.record(server, Some(frames), &plan)?;
        running.check()?;
        measure::analysed(system, &channels)
    }

    /// Returns the last measurement of the smallest buffer without a dropout.
    fn search(
        &self,
        named: &Named,
        load: Load,
        server: &str,
        running: &mut Running,
    ) -> anyhow::Result<Row> {
        let settings: Vec<u32> = (4..=13)
            .map(|power| 1 << power)
            .filter(|frames| (self.from..=self.to).contains(frames))
            .collect();
        let (mut last_good, mut failure) = (None, None);
        let found = search::smallest(settings.len(), self.confirmations, |index| {
            match self.measure(named, load, server, settings[index], running) {
                Ok(row) => {
                    ensure!(
                        matches!(row.found.continuity, Continuity::Compared { .. }),
                        "dropouts cannot be seen: the sound that comes back is not a sample-exact copy"
                    );
                    let is_unbroken = row.found.is_unbroken();
                    if is_unbroken {
                        last_good = Some((index, row));
                    }
                    Ok(is_unbroken)
                }
                // A length that the system refuses counts as one that does not work.
                Err(error) => {
                    running.check()?;
                    failure = Some(error);
                    Ok(false)
                }
            }
        })?;
        match (found, last_good, failure) {
            (Some(found), Some((index, row)), _) if found == index => Ok(row),
            (_, None, Some(failure)) => Err(failure),
            _ => bail!("no buffer of {} to {} frames runs without a dropout", self.from, self.to),
        }
    }
}

/// The systems that a machine with these sound cards may have.
fn usual(cards: &Path) -> anyhow::Result<Vec<Named>> {
    let libraries = LIBRARIES.iter().filter(|(library, _)| Path::new(library).exists());
    let mut words: Vec<String> = USUAL.map(String::from).into();
    words.extend(libraries.map(|(library, words)| format!("{words} --libjack {library}")));
    let cards = std::fs::read_to_string(cards).unwrap_or_default();
    if cards.contains("[Loopback") {
        let devices = "alsa --playback hw:Loopback,0 --capture hw:Loopback,1";
        words.extend(["rw", "mmap"].map(|access| format!("{devices} --access {access}")));
    }
    words.iter().map(|words| Named::parse(words).map_err(anyhow::Error::msg)).collect()
}
