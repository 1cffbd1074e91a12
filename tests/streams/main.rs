//! Programs that play as streams on the timer's null device: real processes, and every frame that
//! would leave the device.
#![forbid(unsafe_code)]

mod devices;
mod drivers;
mod frame_clock;
mod granted;
mod heard;
mod hearing;
mod hostile;
mod links;
mod meters;
mod monitors;
mod patching;
mod pipes;
mod playing;
mod programs;
mod recorders;
mod recording;
mod refused;
mod returning;
mod sleeping;
mod sliders;
mod volume;
mod wishes;

use std::path::{Path, PathBuf};

use harness::{Finished, Program, Server, Sound, eventually};
use rustix::process::Signal;
use tempfile::TempDir;

const RATE_HZ: u32 = 48_000;

/// A server that records what its null device plays from the first stream on.
fn server(quantum: u32) -> Server {
    let directory = TempDir::with_prefix("consort-test-").expect("a temporary directory");
    let recorded = directory.path().join("recorded.wav");
    let quantum = quantum.to_string();
    Server::start_with(directory, &["--driver", "timer", "--quantum", &quantum], |command| {
        command.env("CONSORT_RECORD_NULL_DEVICE", recorded);
    })
}

/// Writes a sound into the server's directory.
fn file(server: &Server, name: &str, sound: &Sound) -> PathBuf {
    let path = server.directory().join(name);
    sound.write(&path);
    path
}

fn play(server: &Server, file: &Path, options: &[&str]) -> Program {
    let file = file.to_string_lossy();
    server.spawn_consort(&[&["play", &file], options].concat())
}

/// Plays a file to its end. `Err` if the machine took the player's CPU for too long.
fn play_to_end(server: &Server, file: &Path, options: &[&str]) -> Result<Finished, String> {
    to_end(play(server, file, options))
}

/// Waits for the end of a player. `Err` if the machine took its CPU for too long.
fn to_end(player: Program) -> Result<Finished, String> {
    let finished = player.finish();
    // It reports a thread that a busy machine made late.
    if finished.stderr.contains("the sound stopped") {
        return Err(finished.stderr);
    }
    Ok(finished.expect_success())
}

/// Ends a recorder; returns what it printed. `Err` if the machine took a CPU for longer than is
/// queued, so that what was heard or what was recorded of it has holes.
fn end_recorder(server: &Server, recorder: Program) -> Result<Finished, String> {
    server.check_in_time()?;
    recorder.signal(Signal::INT);
    recorded_all(recorder.finish())
}

/// What a recorder printed that has ended. `Err` if frames are missing because the machine took its
/// CPU.
fn recorded_all(finished: Finished) -> Result<Finished, String> {
    if finished.stderr.contains("the file could not be written in time") {
        return Err(finished.stderr);
    }
    Ok(finished.expect_success())
}

/// The streams that `consort status` shows.
fn streams(server: &Server) -> Vec<serde_json::Value> {
    let status = server.consort_json(&["status"]);
    status["streams"].as_array().expect("a list").clone()
}

fn await_playing(server: &Server) {
    eventually("a stream plays", || {
        streams(server).iter().any(|stream| stream["plays"] == true).then_some(())
    });
}

fn await_no_stream(server: &Server) {
    eventually("no stream is left", || streams(server).is_empty().then_some(()));
}

/// Frames of two channels that never repeat within some seconds, exact in 16 bits.
fn ramps(frames: usize) -> Sound {
    let left = (0..frames).map(|frame| (1 + frame * 7 % 30_011) as f32 / 32_768.0);
    let right = (0..frames).map(|frame| -((1 + frame * 5 % 29_989) as f32) / 32_768.0);
    Sound::of(RATE_HZ, &[left.collect(), right.collect()])
}
