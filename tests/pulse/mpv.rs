//! Picture and sound in mpv: how far apart they are, and whether the sound keeps time, over all
//! that happens to a stream.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use harness::{PATIENCE, Program, Sound, eventually, in_three_attempts, tone};
use serde_json::{Value, json};

use crate::modules::recorded;
use crate::{RATE_HZ, Scene, path};

const PICTURES_HZ: u32 = 200;
/// By how much picture and sound may be apart.
const APART_S: f64 = 0.010;
/// By how much a move may delay the sound: its fade, and as much again.
const DELAY_S: f64 = 0.020;
/// The longest time in which an answer says when it was true, with enough precision.
const PROMPT: Duration = Duration::from_millis(2);
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);
const LOOKS: usize = 40;

/// mpv, which takes commands and answers them.
struct Mpv {
    program: Program,
    socket: BufReader<UnixStream>,
    events: Vec<String>,
    start: Instant,
}

/// What mpv states at one time, s.
#[derive(Debug, Clone, Copy)]
struct Look {
    /// Since the player started.
    at: f64,
    /// The position in the file that is heard.
    sound: f64,
    /// The position that is seen, in the middle of the time for which it is.
    picture: f64,
    /// By how much the latest picture was too late or too early by mpv's own account.
    difference: f64,
}

impl Mpv {
    /// Starts to play a file, with all pictures shown at their times on no screen.
    fn start(scene: &Scene, file: &std::path::Path, options: &[&str]) -> Self {
        let socket = scene.server.directory().join("mpv");
        let server = format!("--input-ipc-server={}", path(&socket));
        let shown = ["--vo=null", "--video-timing-offset=0", "--hr-seek=yes"];
        let quiet = ["--no-config", "--no-terminal", "--ao=pulse", &server, path(file)];
        let program = scene.spawn("mpv", &[&quiet[..], &shown, options].concat());
        let socket = eventually("mpv listens", || UnixStream::connect(&socket).ok());
        socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let socket = BufReader::new(socket);
        Self { program, socket, events: Vec::new(), start: Instant::now() }
    }

    /// The next line that it sends.
    fn line(&mut self) -> Value {
        let mut line = String::new();
        self.socket.read_line(&mut line).expect("mpv answers");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: '{line}'"))
    }

    /// What a command is answered; events on the way are kept.
    fn ask(&mut self, command: &Value) -> Value {
        let line = format!("{}\n", json!({ "command": command }));
        self.socket.get_mut().write_all(line.as_bytes()).expect("sent");
        loop {
            let line = self.line();
            match line["event"].as_str() {
                Some(event) => self.events.push(event.to_owned()),
                None => {
                    assert_eq!(line["error"], "success", "{command}: {line}");
                    return line["data"].clone();
                }
            }
        }
    }

    /// Waits until it plays from where it was sent.
    fn await_restart(&mut self) {
        while !self.events.iter().any(|event| event == "playback-restart") {
            let line = self.line();
            self.events.extend(line["event"].as_str().map(str::to_owned));
        }
        self.events.clear();
    }

    /// What it states, if it answers promptly and plays.
    fn look(&mut self) -> Option<Look> {
        let asked = Instant::now();
        let text = self.ask(&json!(["expand-text", "${=audio-pts} ${=time-pos} ${=avsync}"]));
        let took = asked.elapsed();
        let mut numbers = text.as_str().expect("a text").split(' ').map(str::parse);
        let mut next = || numbers.next()?.ok();
        let (sound, picture, difference): (f64, f64, f64) = (next()?, next()?, next()?);
        let at = (asked - self.start + took / 2).as_secs_f64();
        let picture = picture + 0.5 / f64::from(PICTURES_HZ);
        (took < PROMPT).then_some(Look { at, sound, picture, difference })
    }

    /// Looks again and again for that long, and until there are enough looks. One counts if the one
    /// before it was in time as well: on a busy machine, what is late once is late for a while.
    fn looks(&mut self, time: Duration) -> Vec<Look> {
        let start = Instant::now();
        let mut looks = Vec::new();
        let mut was_prompt = false;
        while start.elapsed() < time || looks.len() < LOOKS && start.elapsed() < PATIENCE {
            let slept = Instant::now();
            std::thread::sleep(BETWEEN_LOOKS);
            let is_in_time = slept.elapsed() < BETWEEN_LOOKS + PROMPT;
            let look = self.look();
            looks.extend(look.filter(|_| is_in_time && was_prompt));
            was_prompt = look.is_some();
        }
        looks
    }
}

/// Checks that a value is not above `bound` in nine of ten looks: one thread of mpv decodes, one
/// shows and one answers, and each may have to wait for a CPU.
fn check(
    what: &str,
    looks: &[Look],
    bound: f64,
    value: impl Fn(&Look) -> f64,
) -> Result<(), String> {
    let mut values: Vec<f64> = looks.iter().map(value).collect();
    if values.len() < LOOKS {
        return Err(format!("{what}: mpv answers promptly {} times only", values.len()));
    }
    let apart = values.iter().filter(|value| value.abs() > bound).count();
    values.sort_by(f64::total_cmp);
    let [least, median, most] = [0, values.len() / 2, values.len() - 1].map(|at| values[at]);
    let range = format!("{least:.4} s to {most:.4} s, median {median:.4} s");
    if apart * 10 > values.len() || median.abs() > bound {
        return Err(format!("{what}: {range}, more than {bound} s {apart} of {}", values.len()));
    }
    Ok(())
}

/// Checks that picture and sound are together.
fn check_together(when: &str, looks: &[Look]) -> Result<(), String> {
    check(&format!("{when}, sound before picture"), looks, APART_S, |look| {
        look.sound - look.picture
    })?;
    check(&format!("{when}, mpv's difference"), looks, APART_S, |look| look.difference)
}

/// By how much the sound is ahead of the clock: the median, s.
fn lead(looks: &[Look]) -> f64 {
    let mut leads: Vec<f64> = looks.iter().map(|look| look.sound - look.at).collect();
    leads.sort_by(f64::total_cmp);
    leads.get(leads.len() / 2).copied().unwrap_or(0.0)
}

/// A film of a picture that counts, and a tone.
fn film(scene: &Scene, seconds: u32) -> PathBuf {
    let frames = (seconds * RATE_HZ) as usize;
    let channel = tone(1000.0, RATE_HZ, frames);
    let sound = scene.file("tone.wav", &Sound::of(RATE_HZ, &[channel.clone(), channel]));
    let film = scene.server.directory().join("film.mkv");
    let picture = format!("testsrc=size=64x48:rate={PICTURES_HZ}:duration={seconds}");
    let input = ["-loglevel", "error", "-nostdin", "-f", "lavfi", "-i", &picture];
    let output = ["-i", path(&sound), "-c:v", "mjpeg", "-c:a", "copy", path(&film)];
    scene.run("ffmpeg", &[&input[..], &output].concat()).expect_success();
    film
}

/// Checks that picture and sound are together in a film that is moved, paused and searched.
fn check_film(options: &[&str]) -> Result<(), String> {
    let second = Duration::from_secs(1);
    let scene = Scene::new();
    scene.load(&["module-null-sink", "sink_name=other"]);
    let heard = scene.record_all("other.monitor", 2);
    let mut mpv = Mpv::start(&scene, &film(&scene, 60), options);
    mpv.await_restart();
    mpv.looks(second);
    let before = mpv.looks(2 * second);
    check_together("before", &before)?;

    let move_to = |sink: &str| {
        let list = scene.pactl(&["list", "short", "sink-inputs"]);
        let input = list.split_whitespace().next().expect("a stream").to_owned();
        scene.spawn("pactl", &["move-sink-input", &input, sink])
    };
    let moving = move_to("other");
    let meanwhile = mpv.looks(2 * second);
    moving.finish().expect_success();
    let lead_before = lead(&before);
    check("over a move, the sound's lead", &meanwhile, DELAY_S, |look| {
        look.sound - look.at - lead_before
    })?;
    check_together("over a move", &meanwhile)?;
    check_together("after a move", &mpv.looks(2 * second))?;

    mpv.ask(&json!(["seek", 30, "absolute+exact"]));
    mpv.await_restart();
    check_together("after seeking", &mpv.looks(2 * second))?;

    mpv.ask(&json!(["set_property", "pause", true]));
    mpv.looks(second / 2);
    let paused = mpv.looks(second);
    let stands = paused.first().map_or(0.0, |look| look.sound);
    check("paused, the sound goes on", &paused, APART_S, |look| look.sound - stands)?;
    move_to("consort").finish().expect_success();
    mpv.ask(&json!(["set_property", "pause", false]));
    check_together("after a pause in which it was moved", &mpv.looks(2 * second))?;

    mpv.ask(&json!(["quit"]));
    mpv.program.finish().expect_success();
    for sound in [recorded(heard), scene.recorded()] {
        let sounding = sound.sounding(0);
        let (hz, frames) = (sounding.frequency_hz(0), sounding.channels[0].len());
        if (hz - 1000.0).abs() > 1.0 || frames < 2 * RATE_HZ as usize {
            return Err(format!("{hz} Hz in {frames} frames is heard"));
        }
    }
    Ok(())
}

#[test]
fn mpv_keeps_picture_and_sound_together_over_moves_pauses_and_seeking() {
    in_three_attempts(|| check_film(&[]));
}

#[test]
fn mpv_keeps_them_together_by_timing_that_it_asks_for_itself() {
    in_three_attempts(|| check_film(&["--pulse-latency-hacks=yes"]));
}
