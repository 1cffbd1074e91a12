//! A player of PulseAudio, whose left side goes through a program of JACK and whose right side goes
//! to the device.

use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::listening::{Comparison, Take};
use super::stage::{Running, Stage};

const PLAYER: &str = "paplay";
/// The program of JACK makes the left side softer by this.
const LEFT_FACTOR: f32 = 0.8;
/// The right side is sent softer by this, so that the two cannot be confused.
const RIGHT_FACTOR: f32 = 0.5;

/// Plays the recording on both sides, and compares each with what went in.
pub(super) fn run(stage: &Stage, recording: &Path) -> Result<()> {
    let sent = Take::read(recording)?;
    let left = sent.channel(0)?.to_vec();
    let right: Vec<f32> = left.iter().map(|sample| sample * RIGHT_FACTOR).collect();
    let played = stage.path("played.wav");
    println!("server   a timer, 128 frames a cycle; what its device plays is recorded");
    let server = stage.server(|command| {
        command.args(["--driver", "timer"]).env("CONSORT_RECORD_NULL_DEVICE", &played);
    })?;
    let mut front_end = stage.built("consort");
    front_end.arg("pulse");
    let front_end = Running::start(front_end, "consort pulse")?;
    stage.await_that("consort pulse listens", || stage.path("pulse/native").exists())?;
    println!("pulse    consort pulse listens where programs look for PulseAudio");
    let program = stage.gain(LEFT_FACTOR, "system:playback_1")?;
    stage.await_connection("gain:out")?;
    println!("program  gain (process {}) → system:playback_1, × {LEFT_FACTOR}", program.0.id());
    let Some(mut player) = start_player(stage, sent.rate_hz)? else { return Ok(()) };
    stage.await_connection("paplay:output_FR")?;
    println!("player   paplay (process {}) → system:playback_1 and _2", player.0.id());
    println!("connect  paplay:output_FL → gain:in instead: the recording begins\n");
    stage.consort(&["disconnect", "paplay:output_FL", "system:playback_1"])?;
    stage.consort(&["connect", "paplay:output_FL", "gain:in"])?;

    let mut samples = player.0.stdin.take().context("paplay has a standard input")?;
    let frames = left.iter().zip(&right);
    let bytes = frames.flat_map(|(left, right)| [left.to_le_bytes(), right.to_le_bytes()]);
    samples.write_all(&bytes.flatten().collect::<Vec<u8>>()).context("paplay reads no more")?;
    std::thread::sleep(Duration::from_millis(500));
    println!("{}", stage.consort(&["status"])?);
    drop(samples);
    player.finish(PLAYER)?;
    drop(program);
    stage.consort(&["stop"])?;
    server.finish("the server")?;
    drop(front_end);
    report(&sent, &right, &Take::read(&played)?)
}

/// Starts it without a sample to play yet. `None` if it is missing, which is said.
fn start_player(stage: &Stage, rate_hz: u32) -> Result<Option<Running>> {
    let mut command = stage.command(PLAYER);
    command.args(["--raw", "--format=float32le", "--channels=2", &format!("--rate={rate_hz}")]);
    match command.stdin(Stdio::piped()).spawn() {
        Ok(child) => Ok(Some(Running(child))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            println!(
                "\nnot shown: {PLAYER} is missing, a player of PulseAudio; it is in Debian's \
                 package pulseaudio-utils (apt install pulseaudio-utils)"
            );
            Ok(None)
        }
        Err(error) => Err(error).context("paplay does not start"),
    }
}

fn report(sent: &Take, right: &[f32], heard: &Take) -> Result<()> {
    let sounds = [("went in", sent.channel(0)?), ("left", heard.channel(0)?)];
    Take::print_levels(&[&sounds[..], &[("right", heard.channel(1)?)]].concat(), sent.rate_hz);
    let through = Comparison::of(sent.channel(0)?, &[LEFT_FACTOR], heard.channel(0)?)?;
    let direct = Comparison::of(right, &[1.0], heard.channel(1)?)?;
    println!("\nleft, through gain:  {through}");
    println!("right, as it is:     {direct}");
    if through.is_on_time() && direct.is_on_time() {
        ensure!(
            through.delay == direct.delay,
            "the sides begin {} frames apart",
            through.delay.abs_diff(direct.delay)
        );
        println!("both begin at the same frame: the program's cycle costs the player no delay");
    }
    through.print_losses();
    Ok(())
}
