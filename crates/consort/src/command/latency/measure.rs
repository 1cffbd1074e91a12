//! What is sent, and what is done with the recording: the same for every system.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, ValueEnum};
use latency::{Recording, Signal};
use soundfile::Writer;

use super::findings;
use super::systems::System;
use super::table::{self, Row};
use super::tape::Plan;
use crate::output;

/// What is sent and how it is shown.
#[derive(Debug, Args)]
pub(crate) struct Measure {
    /// What is sent
    #[arg(long, value_enum, default_value = "marked")]
    signal: SignalName,
    /// How long it is sent
    #[arg(long, value_name = "S", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=3600))]
    seconds: u32,
    /// The longest latency that is waited for
    #[arg(long, value_name = "MS", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=12_000))]
    longest: u32,
    /// Keep the recording, left direct, right through the system
    #[arg(long, value_name = "FILE.wav")]
    save: Option<PathBuf>,
    /// Print everything as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SignalName {
    /// Impulses above a quiet maximum-length sequence: onsets, and every sample compared
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
    /// The plan at this rate.
    pub(crate) fn plan(&self, sample_rate_hz: u32) -> Plan {
        Plan {
            signal: self.signal.into(),
            frames: self.seconds as usize * sample_rate_hz as usize,
            tail_frames: self.longest as usize * sample_rate_hz as usize / 1000,
            sample_rate_hz,
        }
    }

    /// Analyses what was recorded of `system`, and shows it.
    pub(crate) fn report(&self, system: System, channels: [Vec<f32>; 2]) -> anyhow::Result<ExitCode> {
        if let Some(path) = &self.save {
            let mut writer = Writer::create(path, 2, system.sample_rate_hz)?;
            writer.write(&channels)?;
            writer.finish()?;
        }
        let recording = Recording::new(&channels, system.sample_rate_hz);
        let found = recording.and_then(|recording| latency::analyse(&recording));
        let found = found.with_context(|| format!("nothing measured through {}", system.interface))?;
        if self.json {
            output::print_json(&table::as_json(&system, findings::as_json(&found)))?;
        } else {
            let details = findings::as_text(&found);
            output::print(&format!("{}\n{details}", table::as_text(&[Row { system, found }])))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
