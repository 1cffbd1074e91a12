//! A recording through a chain of programs, from a file to a file.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;

use super::listening::{Comparison, Take};
use super::stage::Stage;

/// Each program of the chain makes it softer by this.
const FACTOR: f32 = 0.8;
const CHAIN: usize = 3;

/// Plays it, and compares what came out with what went in.
pub(super) fn run(stage: &Stage, recording: &Path) -> Result<()> {
    let played = stage.path("out.wav");
    println!(
        "server   plays {} on its capture port, records its playback port, 128 frames a cycle",
        recording.display()
    );
    let server = stage.server(|command| {
        command.args(["--driver", "file", "--input"]).arg(recording).arg("--output").arg(&played);
    })?;
    let mut heard_by = "system:playback_1".to_owned();
    let mut programs = Vec::new();
    for number in 0..CHAIN {
        let name = if number == 0 { "gain".into() } else { format!("gain-{number:02}") };
        programs.push(stage.gain(FACTOR, &heard_by)?);
        stage.await_connection(&format!("{name}:out"))?;
        println!("program  {name} (process {}) → {heard_by}, × {FACTOR}", programs[number].0.id());
        heard_by = format!("{name}:in");
    }
    println!("connect  system:capture_1 → {heard_by}: the recording begins\n");
    stage.consort(&["connect", "system:capture_1", &heard_by])?;
    std::thread::sleep(Duration::from_millis(700));
    println!("{}", stage.consort(&["status"])?);
    server.finish("the server, which ends with the recording,")?;
    drop(programs);

    let (sent, heard) = (Take::read(recording)?, Take::read(&played)?);
    Take::print_levels(
        &[("went in", sent.channel(0)?), ("came out", heard.channel(0)?)],
        sent.rate_hz,
    );
    let factors = [FACTOR; CHAIN];
    let compared = Comparison::of(sent.channel(0)?, &factors, heard.channel(0)?)?;
    println!("\n{compared}");
    compared.print_losses();
    Ok(())
}
