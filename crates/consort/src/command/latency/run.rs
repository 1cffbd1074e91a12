//! `consort latency run`: a running server, measured through a client of it.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, ValueEnum};
use latency::{Recording, Signal};
use soundfile::Writer;

use super::findings;
use super::systems::{self, Way};
use super::table::{self, Row};
use super::tape::Plan;
use crate::output;

/// Measure a running server through a client of it
///
/// The client sends a signal from an output port, records what comes back at an input port beside what it sent in the
/// same frames, and counts the frames between them. What it sends goes where --playback says, and what it hears
/// comes from where --capture says: a cable, a snd-aloop card or `consort run --loop` has to close the way.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  consort run -n loop --loop --quantum 64 &
  consort latency run -n loop
  consort latency run -n loop --graph --json
  consort latency run --libjack /usr/lib/x86_64-linux-gnu/libjack.so.0 --graph")]
pub(crate) struct Run {
    /// The port that plays the signal
    #[arg(long, value_name = "PORT", default_value = "system:playback_1")]
    playback: String,
    /// The port at which it is heard
    #[arg(long, value_name = "PORT", default_value = "system:capture_1")]
    capture: String,
    /// From the client's output to its own input, through nothing but the graph
    #[arg(long, conflicts_with_all = ["playback", "capture"])]
    graph: bool,
    /// The libjack.so.0 of another server, such as JACK2
    #[arg(long, value_name = "FILE")]
    libjack: Option<PathBuf>,
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

impl Run {
    pub(crate) fn run(self, server: &str) -> anyhow::Result<ExitCode> {
        let way = if self.graph {
            Way::Graph
        } else {
            Way::Device { playback: self.playback.clone(), capture: self.capture.clone() }
        };
        let plan = |sample_rate_hz: u32| Plan {
            signal: self.signal.into(),
            frames: self.seconds as usize * sample_rate_hz as usize,
            tail_frames: self.longest as usize * sample_rate_hz as usize / 1000,
            sample_rate_hz,
        };
        let (system, [direct, delayed]) = match &self.libjack {
            Some(library) => systems::through_library(library, server, &way, plan)?,
            None => systems::through_consort(server, &way, plan)?,
        };
        if let Some(path) = &self.save {
            let mut writer = Writer::create(path, 2, system.sample_rate_hz)?;
            writer.write(&[&direct, &delayed])?;
            writer.finish()?;
        }
        let recording = Recording::new(&[direct, delayed], system.sample_rate_hz);
        let found = recording.and_then(|recording| latency::analyse(&recording));
        let found = found.with_context(|| format!("nothing measured through {}", system.interface))?;
        self.print(&Row { system, found })
    }

    fn print(&self, row: &Row) -> anyhow::Result<ExitCode> {
        if self.json {
            let Row { system, found } = row;
            output::print_json(&table::as_json(system, findings::as_json(found)))?;
        } else {
            output::print(&table::as_text(std::slice::from_ref(row)))?;
            output::print(&format!("\n{}", findings::as_text(&row.found)))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
