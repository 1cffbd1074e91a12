//! Measures how PulseAudio mixes the channels of a stream into those of a sink.
//!
//! `cargo run -p consort-convert --example measure_pulseaudio` prints what
//! `crates/convert/measured/matrices.txt` holds. It needs `pulseaudio`, `pacat`, `parec` and
//! `pactl`, and takes four minutes. It runs a server of its own, in a directory that it removes
//! again. Every channel is played by itself through a null sink, whose monitor is recorded: a
//! steady level on one channel of the stream appears on each channel of the sink, multiplied by
//! what is printed.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

/// The maps that are measured against each other.
const MAPS: [&str; 32] = [
    "mono",
    "front-left,front-right",
    "front-left,front-right,rear-left,rear-right",
    "front-left,front-right,rear-left,rear-right,front-center,lfe",
    "front-left,front-right,front-center,lfe,side-left,side-right",
    "front-left,front-right,rear-left,rear-right,front-center,lfe,side-left,side-right",
    "front-left,front-right,lfe",
    "front-left,front-right,front-center",
    "front-left,front-center,front-right,rear-center",
    "front-left,front-right,front-center,lfe",
    "front-left,front-right,rear-left,rear-right,lfe",
    "front-left,front-right,rear-left,rear-right,front-center",
    "front-left,front-right,front-center,lfe,rear-center,side-left,side-right",
    "front-left,front-right,front-center,lfe,rear-left,rear-right,front-left-of-center,\
     front-right-of-center",
    "front-left,front-right,top-front-left,top-front-right",
    "front-left,front-right,front-center,top-center,top-rear-left,top-rear-right,\
     top-rear-center,top-front-center",
    "front-left,front-right,side-left,side-right",
    "front-left,front-right,rear-left,rear-right,side-left,side-right",
    "front-left-of-center,front-right-of-center,top-rear-left,top-rear-right",
    "side-left,side-right,top-front-left,top-rear-right",
    "rear-left,rear-right",
    "side-left,side-right",
    "rear-center,top-center",
    "front-left",
    "rear-right",
    "front-center",
    "rear-center",
    "lfe",
    "aux0,aux1",
    "front-left,front-right,aux0,aux1",
    "mono,lfe",
    "front-left,rear-left,side-right,mono",
];
/// How many of them are measured in the modes without remixing.
const MAPS_UNMIXED: usize = 10;
/// What `pacat` is told about mixing.
const MODES: [&str; 3] = ["remix", "no-remix", "no-remap"];

const RATE_HZ: &str = "48000";
/// Frames of a steady level, and of the silence after it.
const LEVEL_FRAMES: usize = 2400;
const GAP_FRAMES: usize = 1200;
const LEVEL: f32 = 0.5;
/// A busy machine may interrupt the recording.
const ATTEMPTS: usize = 10;

fn main() {
    let directory = std::env::temp_dir().join(format!("measure-pulseaudio-{}", std::process::id()));
    std::fs::create_dir(&directory).expect("a directory for the server");
    let server = start(&directory);
    let version = Command::new("pulseaudio").arg("--version").output().expect("pulseaudio runs");
    println!("# {}", String::from_utf8_lossy(&version.stdout).trim());
    println!("# made by: cargo run -p consort-convert --example measure_pulseaudio");
    println!("# mode: source map -> sink map, then a row of factors for each channel of the sink");
    let next = AtomicUsize::new(0);
    let results = Mutex::new(vec![String::new(); MAPS.len()]);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let sink = next.fetch_add(1, Ordering::Relaxed)
                    && sink < MAPS.len()
                {
                    let table = table(&directory, sink);
                    results.lock().expect("no thread panicked")[sink] = table;
                }
            });
        }
    });
    print!("{}", results.into_inner().expect("no thread panicked").concat());
    drop(server);
    std::fs::remove_dir_all(&directory).expect("the directory can be removed");
}

/// Returns a command for the server in `directory`.
fn command(program: &str, directory: &Path) -> Command {
    let mut command = Command::new(program);
    for variable in ["HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "PULSE_RUNTIME_PATH"] {
        command.env(variable, directory);
    }
    command.env("PULSE_SERVER", format!("unix:{}", directory.join("native").display()));
    command.env_remove("DBUS_SESSION_BUS_ADDRESS").stderr(Stdio::null());
    command
}

/// Starts a server with a null sink for each map.
fn start(directory: &Path) -> Server {
    let mut script = format!(
        "load-module module-native-protocol-unix auth-anonymous=1 socket={}\n",
        directory.join("native").display()
    );
    for (sink, map) in MAPS.iter().enumerate() {
        script += &format!(
            "load-module module-null-sink sink_name=sink{sink} format=float32le rate={RATE_HZ} \
             channels={} channel_map={map}\n",
            channels(map)
        );
    }
    let path = directory.join("script");
    std::fs::write(&path, script).expect("the script can be written");
    let server = command("pulseaudio", directory)
        .args(["-n", "--daemonize=no", "--exit-idle-time=-1", "--use-pid-file=no", "-F"])
        .arg(&path)
        .spawn()
        .expect("pulseaudio runs");
    let server = Server(server);
    let is_ready = || {
        let list = command("pactl", directory).args(["list", "short", "sinks"]).output();
        let list = list.expect("pactl runs").stdout;
        String::from_utf8_lossy(&list).lines().count() == MAPS.len()
    };
    for _ in 0..100 {
        if is_ready() {
            return server;
        }
        thread::sleep(Duration::from_millis(100));
    }
    panic!("the server does not list its {} sinks", MAPS.len());
}

/// Measures all that one sink is measured for.
fn table(directory: &Path, sink: usize) -> String {
    let mut table = String::new();
    for mode in MODES {
        let maps = if mode == MODES[0] { MAPS.len() } else { MAPS_UNMIXED };
        if sink < maps {
            table.extend(MAPS[..maps].iter().map(|source| measured(directory, mode, source, sink)));
        }
    }
    table
}

fn channels(map: &str) -> usize {
    map.split(',').count()
}

/// Returns the factors from the channels of `source` to those of a sink, as text.
fn measured(directory: &Path, mode: &str, source: &str, sink: usize) -> String {
    let file = directory.join(format!("levels{sink}"));
    std::fs::write(&file, levels(channels(source))).expect("the samples can be written");
    let rows = (0..ATTEMPTS).find_map(|_| attempt(directory, mode, source, sink, &file));
    let rows = rows.unwrap_or_else(|| panic!("no clean recording of {source} -> {}", MAPS[sink]));
    let mut text = format!("{mode}: {source} -> {}\n", MAPS[sink]);
    for row in rows {
        // Seven digits tell all factors apart; most of them are exactly 0 or 1.
        let rounded = |factor: &f32| ((f64::from(*factor) * 1e7).round() / 1e7).to_string();
        let factors: Vec<String> = row.iter().map(rounded).collect();
        text += &format!("  {}\n", factors.join(" "));
    }
    text
}

/// Returns the bytes to be played: a level on all channels at once, then, after a gap each, on one
/// channel after the other. A gap is last.
fn levels(channels: usize) -> Vec<u8> {
    let mut samples = vec![LEVEL; LEVEL_FRAMES * channels];
    for step in 0..channels {
        samples.extend(std::iter::repeat_n(0.0, GAP_FRAMES * channels));
        let frame: Vec<f32> =
            (0..channels).map(|channel| if channel == step { LEVEL } else { 0.0 }).collect();
        samples.extend(frame.repeat(LEVEL_FRAMES));
    }
    samples.extend(std::iter::repeat_n(0.0, GAP_FRAMES * channels));
    samples.into_iter().flat_map(f32::to_le_bytes).collect()
}

/// Plays and records once; `None` if the recording has an interruption.
fn attempt(
    directory: &Path,
    mode: &str,
    source: &str,
    sink: usize,
    file: &PathBuf,
) -> Option<Vec<Vec<f32>>> {
    let (sources, sinks) = (channels(source), channels(MAPS[sink]));
    let format = |command: &mut Command, map: &str| {
        command.args(["--raw", "--format=float32le", "--latency-msec=50"]);
        command.args([format!("--rate={RATE_HZ}"), format!("--channels={}", channels(map))]);
        command.arg(format!("--channel-map={map}"));
    };
    let mut recorder = command("parec", directory);
    format(&mut recorder, MAPS[sink]);
    let mut recorder = recorder
        .arg(format!("--device=sink{sink}.monitor"))
        .stdout(Stdio::piped())
        .spawn()
        .expect("parec runs");
    let (samples, received) = channel();
    let mut output = recorder.stdout.take().expect("a pipe");
    let reader = thread::spawn(move || {
        let mut block = [0; 4096];
        while let Ok(length @ 1..) = output.read(&mut block) {
            let _ = samples.send(block[..length].to_vec());
        }
    });
    let mut recording = received.recv().expect("the recording begins");
    let mut player = command("pacat", directory);
    format(&mut player, source);
    if mode != MODES[0] {
        player.arg(format!("--{mode}"));
    }
    player.arg(format!("--device=sink{sink}")).arg(file);
    assert!(player.status().expect("pacat runs").success(), "pacat cannot play {source}");
    let rows = collect(&received, &mut recording, sources, sinks);
    recorder.kill().expect("parec runs");
    recorder.wait().expect("parec ends");
    reader.join().expect("the reader ends");
    rows
}

/// Receives the recording until all of it is there, and reads the factors from it.
fn collect(
    received: &Receiver<Vec<u8>>,
    recording: &mut Vec<u8>,
    sources: usize,
    sinks: usize,
) -> Option<Vec<Vec<f32>>> {
    // What is recorded after the program has ended, until it is certain that nothing came.
    let mut patience = 100;
    loop {
        let samples: Vec<f32> =
            recording.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        let mut frames = samples.chunks_exact(sinks);
        let start = frames.position(|frame| frame.iter().any(|x| *x != 0.0));
        // The sink may have lost the first frames of the stream, so the first level's end counts.
        let gap = frames.position(|frame| frame.iter().all(|x| *x == 0.0));
        if let Some((start, gap)) = start.zip(gap)
            && let Some(played) = samples.get((start + 1 + gap) * sinks..)
            && played.len() >= sources * (LEVEL_FRAMES + GAP_FRAMES) * sinks
        {
            return factors(played, sources, sinks);
        }
        if patience == 0 {
            // A stream of which the sink plays no channel.
            return start.is_none().then(|| vec![vec![0.0; sources]; sinks]);
        }
        patience -= usize::from(start.is_none());
        recording.extend(received.recv_timeout(Duration::from_secs(2)).ok()?);
    }
}

/// Reads the factors from a recording that starts with the first gap.
fn factors(played: &[f32], sources: usize, sinks: usize) -> Option<Vec<Vec<f32>>> {
    let mut rows = vec![vec![0.0; sources]; sinks];
    let steps = played.chunks_exact((LEVEL_FRAMES + GAP_FRAMES) * sinks).take(sources);
    for (step, frames) in steps.enumerate() {
        let (gap, level) = frames.split_at(GAP_FRAMES * sinks);
        let first = &level[..sinks];
        let is_steady = level.chunks_exact(sinks).all(|frame| frame == first);
        if !is_steady || gap.iter().any(|sample| *sample != 0.0) {
            return None;
        }
        for (row, sample) in rows.iter_mut().zip(first) {
            row[step] = sample / LEVEL;
        }
    }
    Some(rows)
}

/// A server that ends with this program.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
