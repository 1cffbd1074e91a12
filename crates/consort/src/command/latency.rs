//! `consort latency`: how many samples later a sound comes out of a system than it went in.

use std::process::ExitCode;

use clap::{Args, Subcommand};

mod alsa;
mod analyse;
mod findings;
mod measure;
mod run;
mod systems;
mod table;
mod tape;

/// Measure latency in recorded samples
///
/// As in "Audio Latency Measurements of Desktop Operating Systems" (MacMillan, Droettboom, Fujinaga, 2001): a sound is
/// recorded directly on one channel and through the system under test on another, and the samples between the two
/// are counted. Only recorded samples enter the result.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  consort latency run
  consort latency alsa --playback hw:0 --capture hw:0
  consort latency analyse recording.wav")]
pub(crate) struct Latency {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    Run(run::Run),
    Alsa(alsa::Alsa),
    Analyse(analyse::Analyse),
}

impl Latency {
    pub(crate) fn run(self, server: &str) -> anyhow::Result<ExitCode> {
        match self.task {
            Task::Alsa(task) => task.run(),
            Task::Run(task) => task.run(server),
            Task::Analyse(task) => task.run(),
        }
    }
}
