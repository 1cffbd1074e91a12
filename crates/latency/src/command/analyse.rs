//! `consort latency analyse`: analyses an existing recording.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::analysis::{LatencyError, Recording};
use anyhow::Context;
use clap::Args;
use cli::output;
use soundfile::Reader;

use super::findings;

/// Analyse a stereo recording: left direct, right through the system under test
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  consort latency analyse recording.wav
  consort latency analyse --json recording.flac | jq .latency.median_frames")]
pub(crate) struct Analyse {
    /// WAV, FLAC or another sound file with two channels, at any rate
    file: PathBuf,
    /// Print everything as JSON, including each delay and each break
    #[arg(long)]
    json: bool,
}

impl Analyse {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let found = crate::analysis::analyse(&read(&self.file)?)
            .with_context(|| self.file.display().to_string())?;
        if self.json {
            output::print_json(&findings::as_json(&found))?;
        } else {
            output::print(&findings::as_text(&found))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Frames read at a time.
const BLOCK_FRAMES: usize = 65_536;

fn read(path: &Path) -> anyhow::Result<Recording> {
    let mut reader = Reader::open(path)?;
    if reader.channels() != 2 {
        let error = LatencyError::NotStereo { channels: reader.channels() };
        return Err(error).with_context(|| path.display().to_string());
    }
    let mut channels = [Vec::new(), Vec::new()];
    let mut block = [vec![0.0; BLOCK_FRAMES], vec![0.0; BLOCK_FRAMES]];
    while let frames @ 1.. = reader.read(&mut block)? {
        for (channel, block) in channels.iter_mut().zip(&block) {
            channel.extend_from_slice(&block[..frames]);
        }
    }
    Recording::new(&channels, reader.sample_rate_hz()).with_context(|| path.display().to_string())
}
