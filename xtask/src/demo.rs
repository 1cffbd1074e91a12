//! `cargo xtask demo`: a recording through a chain of programs, and what came out.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use realfft::RealFftPlanner;

use crate::command::cargo;

/// A person speaking, from Debian's alsa-utils.
const RECORDING: &str = "/usr/share/sounds/alsa/Front_Center.wav";
/// Each program of the chain makes it softer by this.
const FACTOR: f32 = 0.8;
const CHAIN: usize = 3;
const PATIENCE: Duration = Duration::from_secs(30);

/// Ends a program that the demonstration started.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Builds, plays, listens. Says what it does as it goes.
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
    let directory = tempfile::tempdir()?;
    let played = directory.path().join("out.wav");
    let stage = Stage { directory: directory.path().to_owned(), target };

    println!(
        "server   plays {RECORDING} on its capture port, records its playback port, 128 frames a cycle"
    );
    let mut server = stage.server(Path::new(RECORDING), &played)?;
    let mut heard_by = "system:playback_1".to_owned();
    let mut programs = Vec::new();
    for number in 0..CHAIN {
        let name = if number == 0 { "gain".into() } else { format!("gain-{number:02}") };
        programs.push(stage.gain(&heard_by)?);
        stage.await_connection(&format!("{name}:out"))?;
        println!("program  {name} (process {}) → {heard_by}, × {FACTOR}", programs[number].0.id());
        heard_by = format!("{name}:in");
    }
    println!("connect  system:capture_1 → {heard_by}: the recording begins\n");
    stage.consort(&["connect", "system:capture_1", &heard_by])?;
    std::thread::sleep(Duration::from_millis(700));
    println!("{}", stage.consort(&["status"])?);

    let end = Instant::now() + PATIENCE;
    while server.0.try_wait()?.is_none() {
        ensure!(Instant::now() < end, "the server does not end with the recording");
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(programs);
    report(Path::new(RECORDING), &played)
}

struct Stage {
    directory: PathBuf,
    target: PathBuf,
}

impl Stage {
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env("XDG_RUNTIME_DIR", &self.directory)
            .env("JACK_DEFAULT_SERVER", "demo")
            .stdin(Stdio::null());
        command
    }

    fn server(&self, input: &Path, output: &Path) -> Result<Running> {
        let mut command = self.command(&self.target.join("consort"));
        command.args(["run", "--driver", "file", "--quantum", "128", "--input"]).arg(input);
        let server = Running(
            command.arg("--output").arg(output).spawn().context("the server does not start")?,
        );
        self.await_that("the server runs", || self.consort(&["status"]).is_ok())?;
        Ok(server)
    }

    fn gain(&self, to: &str) -> Result<Running> {
        let mut command = self.command(&self.target.join("examples/gain"));
        command.args(["--factor", &FACTOR.to_string(), "--seconds", "60", "--to", to]);
        Ok(Running(command.spawn().context("the example does not start")?))
    }

    fn consort(&self, arguments: &[&str]) -> Result<String> {
        let output = self.command(&self.target.join("consort")).args(arguments).output()?;
        ensure!(
            output.status.success(),
            "consort {arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn await_connection(&self, port: &str) -> Result<()> {
        let connected = || {
            let listed = self.consort(&["ls", "--json", "--connections"]).unwrap_or_default();
            let ports: serde_json::Value = serde_json::from_str(&listed).unwrap_or_default();
            let ports = ports.as_array().cloned().unwrap_or_default();
            ports.iter().any(|entry| {
                entry["name"] == port
                    && entry["connections"].as_array().is_some_and(|others| !others.is_empty())
            })
        };
        self.await_that(&format!("{port} is connected"), connected)
    }

    fn await_that(&self, what: &str, mut holds: impl FnMut() -> bool) -> Result<()> {
        let end = Instant::now() + PATIENCE;
        while !holds() {
            if Instant::now() > end {
                bail!("it never happened that {what}");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

fn samples(path: &Path) -> Result<(Vec<f32>, u32)> {
    let mut reader = soundfile::Reader::open(path)?;
    let mut block = vec![vec![0.0; 4096]; reader.channels()];
    let mut samples = Vec::new();
    while let frames @ 1.. = reader.read(&mut block)? {
        samples.extend_from_slice(&block[0][..frames]);
    }
    Ok((samples, reader.sample_rate_hz()))
}

/// Compares what came out with what went in.
fn report(input: &Path, output: &Path) -> Result<()> {
    let ((sent, rate), (heard, _)) = (samples(input)?, samples(output)?);
    let factor = (0..CHAIN).fold(1.0, |product, _| product * FACTOR);
    println!("             peak dBFS   RMS dBFS   spectrum peak");
    for (name, samples) in [("went in", &sent), ("came out", &heard)] {
        let (peak, rms) = levels(samples);
        println!("{name:<12}{:>10.1}{:>11.1}{:>12.1} Hz", peak, rms, loudest_hz(samples, rate));
    }
    let chained: Vec<f32> =
        sent.iter().map(|sample| (0..CHAIN).fold(*sample, |sample, _| sample * FACTOR)).collect();
    let loudest =
        chained.iter().enumerate().max_by(|left, right| left.1.abs().total_cmp(&right.1.abs()));
    let (at, _) = loudest.context("the recording is empty")?;
    let window = &chained[at.saturating_sub(2000)..(at + 2000).min(chained.len())];
    let found = heard.windows(window.len()).position(|part| part == window);
    let found = found.context("what came out is not what went in")?;
    let delay = found as i64 - at.saturating_sub(2000) as i64;
    let pairs = chained.iter().zip(heard.iter().skip(usize::try_from(delay)?));
    let same = pairs.filter(|(left, right)| left == right).count();
    println!(
        "\n{same} of {} frames came out exactly as sent × {factor:.3}, {delay} frames later",
        sent.len()
    );
    if same < chained.len() {
        println!(
            "the others fell into cycles that this machine, busy as it is now, did not finish in time"
        );
    }
    Ok(())
}

/// (Peak, RMS) in dB below full scale.
fn levels(samples: &[f32]) -> (f32, f32) {
    let peak = samples.iter().fold(0.0_f32, |peak, sample| sample.abs().max(peak));
    let power =
        samples.iter().map(|sample| sample * sample).sum::<f32>() / samples.len().max(1) as f32;
    (20.0 * peak.log10(), 10.0 * power.log10())
}

/// The frequency with the most energy.
fn loudest_hz(samples: &[f32], sample_rate_hz: u32) -> f64 {
    let transform = RealFftPlanner::<f32>::new().plan_fft_forward(samples.len());
    let (mut time, mut spectrum) = (samples.to_vec(), transform.make_output_vec());
    if transform.process(&mut time, &mut spectrum).is_err() {
        return 0.0;
    }
    let energies = spectrum.iter().map(|bin| bin.norm_sqr()).enumerate();
    let (bin, _) = energies.max_by(|left, right| left.1.total_cmp(&right.1)).unwrap_or_default();
    bin as f64 * f64::from(sample_rate_hz) / samples.len() as f64
}
