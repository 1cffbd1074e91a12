//! `consort move`: a stream continues on another device.

use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use client::Observer;
use client::stream::{Direction, StreamStatus};

use super::volume::target::{Target, find};

/// Move a stream to another device
///
/// It is heard there from where it was heard before, in a fade of some milliseconds; its program
/// needs to know nothing of it. What records a device's sound (`consort record --monitor`) goes on
/// with the sound of the other. For a device of another rate, or with fewer channels, the program
/// has to convert again, as `consort play` and `consort record` do. `system` is the server's own
/// device, and `consort device list` shows the others.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  consort move 3 headphones
  consort move firefox system")]
pub(crate) struct Move {
    /// Number of a stream, or name of a program or how it begins: then all of what it plays, or if
    /// it plays nothing, records
    stream: String,
    /// Name of the device
    device: String,
}

impl Move {
    pub(crate) fn run(self, server: &str) -> anyhow::Result<ExitCode> {
        let observer = Observer::open(Some(server))?;
        let streams = observer.streams()?;
        let Target::Streams(mut named) = find(&streams, &[], &self.stream)? else {
            bail!("a device cannot be moved: name a stream or a program")
        };
        // What a program hears of a device does not follow what it plays.
        let plays = |stream: &&StreamStatus| stream.direction == Direction::Playback;
        if named.iter().any(plays) {
            named.retain(plays);
        }
        for stream in named {
            observer.move_stream(stream.stream, Some(&self.device))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
