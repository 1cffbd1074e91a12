//! `consort latency run`: a running server, measured through a client of it.

use std::path::PathBuf;

use clap::Args;
use cli::{TemporaryServer, UsageError, in_range};
use proto::limits::QUANTUM_FRAMES;

use super::subject::{Planner, Recorded, Subject};
use super::systems::{self, Way};

/// A server, reached through a client of it.
#[derive(Debug, Clone, Args)]
pub(crate) struct Run {
    /// The port that plays the signal
    #[arg(long, value_name = "PORT", default_value = "system:playback_1")]
    playback: String,
    /// The port that records it
    #[arg(long, value_name = "PORT", default_value = "system:capture_1")]
    capture: String,
    /// Connect the client's output to its own input: measures the graph alone
    #[arg(long, conflicts_with_all = ["playback", "capture"])]
    graph: bool,
    /// The libjack.so.0 of another server, such as JACK2's
    #[arg(long, value_name = "FILE")]
    libjack: Option<PathBuf>,
    /// Start a temporary server with these options of `consort run`
    #[arg(long, value_name = "OPTIONS", allow_hyphen_values = true, conflicts_with = "libjack")]
    start: Option<String>,
    /// Length of a cycle in frames [default: the server's]
    #[arg(long, value_name = "FRAMES", value_parser = in_range(QUANTUM_FRAMES))]
    quantum: Option<u32>,
}

impl Subject for Run {
    fn record(
        &self,
        server: &str,
        frames: Option<u32>,
        plan: Planner<'_>,
    ) -> anyhow::Result<Recorded> {
        let way = if self.graph {
            Way::Graph
        } else {
            Way::Device { playback: self.playback.clone(), capture: self.capture.clone() }
        };
        let quantum = frames.or(self.quantum);
        if let Some(options) = &self.start {
            let mut options = shlex::split(options)
                .ok_or_else(|| UsageError("--start: a quote is not closed".into()))?;
            if let Some(frames) = quantum {
                options.extend(["--quantum".into(), frames.to_string()]);
            }
            let own = format!("latency-{}", sys::process::process_id());
            let _server = TemporaryServer::start(&own, &options)?;
            return systems::through_consort(&own, &way, quantum, plan);
        }
        match &self.libjack {
            Some(library) => systems::through_library(library, server, &way, quantum, plan),
            None => systems::through_consort(server, &way, quantum, plan),
        }
    }
}
