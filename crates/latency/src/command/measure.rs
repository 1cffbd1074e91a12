//! Options common to all measurements, and the evaluation of the recording.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::analysis::{Recording, Signal};
use anyhow::Context;
use clap::{Args, ValueEnum};
use cli::output;
use soundfile::Writer;

use super::findings;
use super::probe::Plan;
use super::subject::Subject;
use super::systems::System;
use super::table::{self, Row};

/// Returns the parser of a duration in seconds.
pub(crate) fn seconds() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=3600)
}

/// A single measurement of one subject.
#[derive(Debug, Args)]
pub(crate) struct Single<S: Args> {
    #[command(flatten)]
    subject: S,
    #[command(flatten)]
    measure: Measure,
}

impl<S: Args + Subject> Single<S> {
    pub(crate) fn run(self, server: &str) -> anyhow::Result<ExitCode> {
        let plan = |sample_rate_hz| self.measure.plan(sample_rate_hz);
        let (system, channels) = self.subject.record(server, None, &plan)?;
        self.measure.show(system, channels)
    }
}

/// Options of the signal and of the output.
#[derive(Debug, Args)]
struct Measure {
    #[command(flatten)]
    sending: Sending,
    /// Duration of the signal in seconds
    #[arg(long, value_name = "S", default_value_t = 5, value_parser = seconds())]
    seconds: u32,
    /// Write the recording to a file: the direct sound left, the sound through the system right
    #[arg(long, value_name = "FILE.wav")]
    save: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Options of the signal.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Sending {
    /// The signal
    #[arg(long, value_enum, default_value = "marked")]
    signal: SignalName,
    /// The longest latency that can be measured, in ms
    #[arg(long, value_name = "MS", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=12_000))]
    longest: u32,
}

impl Sending {
    /// Returns the plan for a signal of `seconds` at this rate.
    pub(crate) fn plan(self, seconds: u32, sample_rate_hz: u32) -> Plan {
        Plan {
            signal: self.signal.into(),
            frames: seconds as usize * sample_rate_hz as usize,
            tail_frames: self.longest as usize * sample_rate_hz as usize / 1000,
            sample_rate_hz,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SignalName {
    /// Impulses above a quiet maximum-length sequence: onsets are measured and every sample is
    /// compared
    Marked,
    /// Impulses in silence, as in the paper
    Impulses,
    /// A maximum-length sequence, for noisy paths
    Sequence,
    /// Logarithmic sweeps, for paths that distort
    Sweeps,
}

impl From<SignalName> for Signal {
    fn from(name: SignalName) -> Self {
        match name {
            SignalName::Marked => Self::Marked,
            SignalName::Impulses => Self::Impulses,
            SignalName::Sequence => Self::Sequence,
            SignalName::Sweeps => Self::Sweeps,
        }
    }
}

impl Measure {
    fn plan(&self, sample_rate_hz: u32) -> Plan {
        self.sending.plan(self.seconds, sample_rate_hz)
    }

    /// Analyses a recording of `system` and shows the result.
    fn show(&self, system: System, channels: [Vec<f32>; 2]) -> anyhow::Result<ExitCode> {
        if let Some(path) = &self.save {
            let mut writer = Writer::create(path, 2, system.sample_rate_hz)?;
            writer.write(&channels)?;
            writer.finish()?;
        }
        let row = analysed(system, &channels)?;
        if self.json {
            output::print_json(&row.as_json())?;
        } else {
            let details = findings::as_text(&row.found);
            output::print(&format!("{}\n{details}", table::as_text(&[row])))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Analyses a recording of `system`.
pub(crate) fn analysed(system: System, channels: &[Vec<f32>; 2]) -> anyhow::Result<Row> {
    let recording = Recording::new(channels, system.sample_rate_hz);
    let found = recording.and_then(|recording| crate::analysis::analyse(&recording));
    let found = found.with_context(|| format!("cannot measure {}", system.interface))?;
    Ok(Row { system, found })
}
