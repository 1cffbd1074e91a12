//! Programs of PulseAudio, unmodified, on `consort pulse`: what they are answered, and every frame
//! that would leave the device.
#![forbid(unsafe_code)]

mod alsa;
mod audacity;
mod autospawn;
mod bad_input;
mod beside_server;
mod browsers;
mod confined;
mod conformance;
mod crowds;
mod desktop;
mod device_manager;
mod devices;
mod drivers;
mod flatpak;
mod greedy;
mod headset;
mod information;
mod limits;
mod memory;
mod modules;
mod mpv;
mod mumble;
mod network;
mod networks;
mod obs;
mod one_stream;
mod other_release;
mod pactl;
mod pages;
mod players;
mod playing;
mod policies;
mod processing;
mod programs;
mod pulsemixer;
mod recording;
mod refused;
mod resident;
mod rings;
mod rtp;
mod samples;
mod screen;
mod server_gone;
mod sink_inputs;
mod suspended;
mod tunnels;
mod versions;
mod x11_bell;
mod zeroconf;

use std::path::{Path, PathBuf};
use std::process::Command;

use harness::{Finished, Program, Server, Sound, eventually, not_run};
use tempfile::TempDir;

const RATE_HZ: u32 = 48_000;

/// A server that records what its null device plays, and the front end beside it.
struct Scene {
    // Before the server: its streams end with it.
    front_end: Program,
    server: Server,
}

impl Scene {
    fn new() -> Self {
        Self::with(&["--driver", "timer", "--quantum", "1024"])
    }

    fn with(options: &[&str]) -> Self {
        Self::with_front_end(options, &[])
    }

    /// With further options of the front end.
    fn with_front_end(options: &[&str], further: &[&str]) -> Self {
        let directory = TempDir::with_prefix("consort-test-").expect("a temporary directory");
        Self::in_directory(directory, options, further)
    }

    fn in_directory(directory: TempDir, options: &[&str], further: &[&str]) -> Self {
        let recorded = directory.path().join("recorded.wav");
        let server = Server::start_with(directory, options, |command| {
            command.env("CONSORT_RECORD_NULL_DEVICE", recorded);
        });
        let front_end = server.spawn_consort(&[&["pulse"], further].concat());
        let scene = Self { front_end, server };
        eventually("the front end listens", || listens_at(&scene.socket()).then_some(()));
        scene
    }

    /// Where programs look for their server.
    fn socket(&self) -> PathBuf {
        self.server.directory().join("pulse/native")
    }

    /// A program that finds the front end as it would find PulseAudio.
    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = self.server.command(program);
        for variable in ["PULSE_SERVER", "PULSE_SINK", "PULSE_LATENCY_MSEC", "PULSE_COOKIE"] {
            command.env_remove(variable);
        }
        command.args(arguments);
        command
    }

    /// Starts such a program.
    fn spawn(&self, program: &str, arguments: &[&str]) -> Program {
        Program::start(self.command(program, arguments))
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Finished {
        self.spawn(program, arguments).finish()
    }

    /// What `pactl` prints.
    fn pactl(&self, arguments: &[&str]) -> String {
        self.run("pactl", arguments).expect_success().stdout
    }

    /// Writes a sound into the directory of the test.
    fn file(&self, name: &str, sound: &Sound) -> PathBuf {
        let path = self.server.directory().join(name);
        sound.write(&path);
        path
    }

    fn await_no_stream(&self) {
        eventually("no stream is left", || {
            let status = self.server.consort_json(&["status"]);
            status["streams"].as_array().expect("a list").is_empty().then_some(())
        });
    }

    /// Ends both; returns what was played.
    fn recorded(self) -> Sound {
        self.await_no_stream();
        let Self { front_end, server } = self;
        front_end.terminate().expect_success();
        server.recorded()
    }
}

/// Returns whether a process listens on a socket: it has its name a moment before.
fn listens_at(socket: &Path) -> bool {
    // What the kernel's header calls `__SO_ACCEPTCON`.
    const LISTENS: &str = " 00010000 ";
    let sockets = std::fs::read_to_string("/proc/net/unix").expect("readable");
    sockets.lines().any(|line| line.ends_with(path(socket)) && line.contains(LISTENS))
}

/// Returns whether Debian's package of a program is installed; else the test is not run.
fn is_installed(program: &str) -> bool {
    let is_there = Path::new("/usr/bin").join(program).exists();
    if !is_there {
        not_run(&format!("{program} is not installed; 'cargo xtask setup' installs it"));
    }
    is_there
}

fn path(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

/// Frames of two channels that never repeat within some seconds, exact in 16 bits.
fn ramps(frames: usize) -> Sound {
    let left = (0..frames).map(|frame| (1 + frame * 7 % 30_011) as f32 / 32_768.0);
    let right = (0..frames).map(|frame| -((1 + frame * 5 % 29_989) as f32) / 32_768.0);
    Sound::of(RATE_HZ, &[left.collect(), right.collect()])
}

/// The frames of a recording that are as expected, from the first that sounds on.
fn same_frames(recorded: &Sound, expected: &[Vec<f32>]) -> Result<usize, String> {
    let begin = recorded.channels[0].iter().position(|sample| *sample != 0.0);
    let begin = begin.ok_or("nothing was heard")?;
    let same = recorded.channels.iter().zip(expected).map(|(recorded, expected)| {
        let pairs = recorded[begin..].iter().zip(expected);
        pairs.take_while(|(recorded, expected)| recorded == expected).count()
    });
    Ok(same.min().unwrap_or(0))
}

/// Compares a recording with what should be heard somewhere in it, and nothing else.
fn compare(recorded: &Sound, expected: &[Vec<f32>]) -> Result<(), String> {
    let same = same_frames(recorded, expected)?;
    let frames = expected[0].len();
    if same < frames {
        return Err(format!("it differs after {same} of {frames} frames"));
    }
    let sounding = recorded.sounding(0).channels[0].len();
    if sounding > frames {
        return Err(format!("{sounding} frames sound instead of {frames}"));
    }
    Ok(())
}
