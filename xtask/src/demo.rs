//! `cargo xtask demo`: recordings through programs of JACK and of PulseAudio in one graph, and what
//! came out.

mod chain;
mod listening;
mod player;
mod stage;

use std::path::Path;

use anyhow::{Context, Result};

use crate::command::cargo;
use stage::Stage;

/// A person speaking, from Debian's alsa-utils: one channel.
const RECORDING: &str = "/usr/share/sounds/alsa/Front_Center.wav";

/// Builds, plays, listens. Says what it does as it goes.
///
/// # Errors
/// If a program does not start, or what came out is not what went in.
pub fn run() -> Result<()> {
    cargo(&[
        "build",
        "--release",
        "--quiet",
        "--package",
        "consort",
        "--package",
        "consort-client",
        "--examples",
        "--bins",
    ])?;
    // Next to this program, wherever cargo builds: target/debug/xtask.
    let itself = std::env::current_exe().context("cannot find where cargo builds")?;
    let target = itself.ancestors().nth(2).context("xtask was not built by cargo")?.join("release");
    println!("## A chain of programs of JACK\n");
    chain::run(&Stage::new(&target)?, Path::new(RECORDING))?;
    println!("\n## A player of PulseAudio in the same graph\n");
    player::run(&Stage::new(&target)?, Path::new(RECORDING))
}
