//! `consort latency run`: a running server, measured through a client of it.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::measure::Measure;
use super::systems::{self, Way};

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
    #[command(flatten)]
    measure: Measure,
}

impl Run {
    pub(crate) fn run(self, server: &str) -> anyhow::Result<ExitCode> {
        let way = if self.graph {
            Way::Graph
        } else {
            Way::Device { playback: self.playback.clone(), capture: self.capture.clone() }
        };
        let plan = |sample_rate_hz| self.measure.plan(sample_rate_hz);
        let (system, channels) = match &self.libjack {
            Some(library) => systems::through_library(library, server, &way, plan)?,
            None => systems::through_consort(server, &way, plan)?,
        };
        self.measure.report(system, channels)
    }
}
