//! The programs that play: the benchmark's own on PulseAudio's protocol, and `consort play`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::child::LineChild;
use crate::leashed::Leashed;
use crate::measure::desktop::system::Desktop;
use crate::server::RATE_HZ;

/// How long a program may take until all of its streams are taken or refused.
const READY_LIMIT: Duration = Duration::from_secs(60);
/// How long a program may take to write as often as its latency is wanted.
const LATENCIES_LIMIT: Duration = Duration::from_secs(15);

/// What a player plays (`clients/player.c`).
#[derive(Clone, Copy, Debug)]
pub struct Song {
    /// `music`, `ramp` or `level`.
    pub sound: &'static str,
    /// Its frames per second.
    pub rate_hz: u32,
    /// The latency that it asks for; 0: the server's default, 2 s.
    pub latency_ms: u32,
    /// How many streams play it.
    pub streams: u32,
}

impl Song {
    /// Music with two seconds queued.
    pub const PATIENT: Self = Self { sound: "music", rate_hz: RATE_HZ, latency_ms: 0, streams: 1 };
}

/// What has happened to the streams of a player in an interval.
#[derive(Clone, Copy, Debug)]
pub struct Events {
    /// How often one of them ran empty.
    pub underflows: u64,
    /// How many of them were asked for more.
    pub asked: u64,
}

/// A program of PulseAudio that plays.
pub struct Player {
    child: LineChild,
    /// How many of its streams the server took.
    pub streams: u64,
}

impl Player {
    /// Starts it and waits until it plays.
    pub fn start(desktop: &Desktop, song: &Song) -> Result<Self> {
        let player = Self::start_some(desktop, song)?;
        ensure!(player.streams > 0, "the server refused the player's stream");
        Ok(player)
    }

    /// Starts it and waits until the server has taken or refused each of its streams.
    pub fn start_some(desktop: &Desktop, song: &Song) -> Result<Self> {
        let (sink, _) = desktop.installed.system.sink_and_monitor();
        let program = desktop.programs.player.as_ref().context("the player is not compiled")?;
        let mut command = Command::new(program);
        desktop.set_environment(&mut command);
        let numbers = [song.rate_hz, song.latency_ms, song.streams].map(|it| it.to_string());
        command.args([sink, song.sound]).args(numbers);
        let child = LineChild::spawn("a player", &mut command)?;
        let ready = child.numbers_by("ready", Instant::now() + READY_LIMIT)?;
        let streams = *ready.first().context("a player is ready without a number")?;
        Ok(Self { child, streams })
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.pid()
    }

    /// Makes a change. Returns when it was asked for, CLOCK_MONOTONIC.
    pub fn change(&mut self, change: &str) -> Result<u64> {
        self.child.tell(change)?;
        self.child.numbers("asked")?.first().copied().context("asked without a time")
    }

    /// A frame of the first stream, and when it is heard, as the server states it.
    pub fn clock(&mut self) -> Result<(u64, u64)> {
        self.child.tell("clock")?;
        match self.child.numbers("clock")?[..] {
            [frame, time_ns] => Ok((frame, time_ns)),
            ref other => anyhow::bail!("a player's clock says {other:?}"),
        }
    }

    /// Records what leaves the null device.
    pub fn record(&mut self, monitor: &str, file: &Path) -> Result<()> {
        self.child.tell(&format!("record {monitor} {}", file.display()))?;
        self.child.answer("recording").map(drop)
    }

    /// How long the frame that was written last takes until it is heard, in ms, after each of some
    /// writings.
    pub fn latencies_ms(&mut self, count: usize) -> Result<Vec<f64>> {
        self.child.tell(&format!("latencies {count}"))?;
        let deadline = Instant::now() + LATENCIES_LIMIT;
        let one = |_| -> Result<f64> {
            let us = self.child.numbers_by("latency", deadline)?;
            Ok(*us.first().context("a latency without a number")? as f64 / 1000.0)
        };
        (0..count).map(one).collect()
    }

    /// What has happened to its streams since the last call.
    pub fn events(&mut self) -> Result<Events> {
        self.child.tell("stats")?;
        let numbers = self.child.numbers("stats")?;
        let [underflows, asked] = numbers[..] else { bail!("stats without two numbers") };
        Ok(Events { underflows, asked })
    }

    /// Ends it.
    pub fn stop(mut self) -> Result<()> {
        ensure!(self.child.end(), "a player did not end in order");
        Ok(())
    }
}

/// Starts `consort play` with this latency on a file.
pub fn consort_play(desktop: &Desktop, file: &Path, latency_ms: u32) -> Result<Leashed> {
    let (latency, file) = (latency_ms.to_string(), file.display().to_string());
    let words = ["play", "--latency", &latency, "--report", &file];
    desktop.leashed("consort-play", &desktop.consort_line(&words))
}

/// The longest time from writing to hearing that `consort play --report` has printed, in ms.
pub fn reported_latency_ms(said: &str) -> Option<f64> {
    let line = said.lines().find_map(|line| line.strip_prefix("latency: "))?;
    line.split_once(" to ")?.1.split(' ').next()?.parse().ok()
}

/// For how long `consort play` was not heard because it had not written in time, in ms.
pub fn missed_ms(said: &str) -> f64 {
    let missed = said
        .lines()
        .find_map(|line| line.split_once("the sound stopped for ")?.1.split(' ').next());
    missed.and_then(|ms| ms.parse().ok()).unwrap_or(0.0)
}

/// Starts Debian's player on a file.
pub fn paplay(desktop: &Desktop, file: &Path) -> Result<Leashed> {
    let (sink, _) = desktop.installed.system.sink_and_monitor();
    let mut line = vec![String::from("/usr/bin/paplay")];
    if sink != "-" {
        line.push(format!("--device={sink}"));
    }
    line.push(file.display().to_string());
    desktop.leashed("paplay", &line)
}

/// Writes a sound file of two channels in 16 bits.
pub fn write_wav(
    directory: &Path,
    name: &str,
    seconds: u32,
    sample: impl Fn(u32) -> [i16; 2],
) -> Result<PathBuf> {
    let path = directory.join(name);
    let data: Vec<u8> =
        (0..seconds * RATE_HZ).flat_map(sample).flat_map(i16::to_le_bytes).collect();
    let bytes = u32::try_from(data.len())?;
    let mut file = Vec::with_capacity(data.len() + 44);
    file.extend(b"RIFF");
    file.extend((36 + bytes).to_le_bytes());
    file.extend(b"WAVEfmt ");
    file.extend(16u32.to_le_bytes());
    // Plain samples, two channels.
    file.extend([1u16, 2].map(u16::to_le_bytes).as_flattened());
    file.extend([RATE_HZ, RATE_HZ * 4].map(u32::to_le_bytes).as_flattened());
    file.extend([4u16, 16].map(u16::to_le_bytes).as_flattened());
    file.extend(b"data");
    file.extend(bytes.to_le_bytes());
    file.extend(data);
    std::fs::write(&path, file).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_time_is_read_from_the_report_of_consort_play() {
        let said =
            "playing a.wav: 48000 Hz\nlatency: 14.0 to 20.5 ms from when a frame was heard\n";
        assert_eq!(reported_latency_ms(said), Some(20.5));
        assert_eq!(reported_latency_ms("latency: nothing was written while it played"), None);
        assert_eq!(reported_latency_ms(""), None);
    }

    #[test]
    fn what_consort_play_missed_is_read_from_its_error() {
        let said = "consort: the sound stopped for 31 ms: the file could not be read in time\n";
        assert_eq!(missed_ms(said), 31.0);
        assert_eq!(missed_ms("playing a.wav: 48000 Hz\n"), 0.0);
    }
}
