//! Modules that connect with other servers, and with sockets of raw samples.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;

use harness::{PATIENCE, Program, Sound, eventually, in_three_attempts, tone};
use rustix::process::Signal;

use crate::conformance::PulseAudio;
use crate::modules::{has_levels, recorded};
use crate::{RATE_HZ, Scene, compare, is_installed, path, ramps};

/// An address at which another front end listens.
fn server_of(scene: &Scene) -> String {
    format!("server=unix:{}", path(&scene.socket()))
}

/// A port of this machine at which nothing listens.
pub(crate) fn free_port() -> u16 {
    let socket = TcpListener::bind("127.0.0.1:0").expect("a free port");
    socket.local_addr().expect("its address").port()
}

impl Scene {
    /// What is said when a module is refused.
    pub(crate) fn refused(&mut self, arguments: &[&str], reason: &str) {
        let refused = self.run("pactl", &[&["load-module"], arguments].concat());
        assert_eq!(refused.stderr, "Failure: Module initialization failed\n", "{arguments:?}");
        self.says(reason);
    }

    /// Waits for a line of the front end.
    pub(crate) fn says(&mut self, what: &str) {
        eventually(what, || self.front_end.stderr().contains(what).then_some(()));
    }

    /// Waits until a sink or a source sleeps.
    pub(crate) fn await_asleep(&self, what: &str, name: &str) {
        eventually(&format!("{name} sleeps"), || {
            let list = self.pactl(&["list", "short", what]);
            let line = list.lines().find(|line| line.split('\t').nth(1) == Some(name))?;
            line.ends_with("SUSPENDED").then_some(())
        });
    }
}

/// A clock that is being steered is off by this part at most.
const STEERED_PART: f64 = 500e-6;

/// By how much less than a tone the rest of a recording is heard, dB: the median of pieces of a
/// hundredth of a second, in each of which the tone has the same phase. How fast a clock runs that
/// is being steered is found out for each piece, and is no distortion: a part of 40 ppm would
/// already be a rest of -57 dB at 2 kHz.
pub(crate) fn distortion_db(samples: &[f32], frequency_hz: f64) -> f64 {
    let step = std::f64::consts::TAU * frequency_hz / f64::from(RATE_HZ);
    let mut all: Vec<f64> = samples
        .chunks_exact(RATE_HZ as usize / 100)
        .map(|piece| {
            let rest = |off: f64| rest_db(piece, step * (1.0 + off));
            let (mut low, mut high) = (-STEERED_PART, STEERED_PART);
            while high - low > STEERED_PART / 100_000.0 {
                let third = (high - low) / 3.0;
                if rest(low + third) < rest(high - third) {
                    high -= third;
                } else {
                    low += third;
                }
            }
            rest((low + high) / 2.0)
        })
        .collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(0.0)
}

/// By how much less than a tone of `step` radians a frame the rest of a piece is, dB. The tone is
/// fitted by least squares, also where its piece has no whole number of periods.
fn rest_db(piece: &[f32], step: f64) -> f64 {
    let all = || {
        piece.iter().enumerate().map(|(at, sample)| {
            let (sine, cosine) = (step * at as f64).sin_cos();
            [sine, cosine, f64::from(*sample)]
        })
    };
    let product = |one: usize, other: usize| all().map(|of| of[one] * of[other]).sum::<f64>();
    let [ss, cc, sc] = [product(0, 0), product(1, 1), product(0, 1)];
    let [xs, xc] = [product(2, 0), product(2, 1)];
    let determinant = ss * cc - sc * sc;
    let (sine, cosine) = ((xs * cc - xc * sc) / determinant, (xc * ss - xs * sc) / determinant);
    let tone = |of: [f64; 3]| sine * of[0] + cosine * of[1];
    let rest = all().map(|of| (of[2] - tone(of)).powi(2)).sum::<f64>();
    10.0 * (rest / all().map(|of| tone(of).powi(2)).sum::<f64>()).log10()
}

#[test]
fn a_steered_clock_is_no_distortion_and_a_second_tone_is() {
    let tone = |hz: f64, level: f64| {
        move |at: u32| (level * (std::f64::consts::TAU * hz * f64::from(at) / 48e3).sin()) as f32
    };
    let steered = tone(2000.0 * (1.0 + 200e-6), 0.5);
    let clean: Vec<f32> = (0..48_000).map(&steered).collect();
    assert!(distortion_db(&clean, 2000.0) < -100.0);
    let second = tone(5000.0, 0.0005);
    let rest: Vec<f32> = (0..48_000).map(|at| steered(at) + second(at)).collect();
    assert!((-61.0..-59.0).contains(&distortion_db(&rest, 2000.0)));
    let too_fast: Vec<f32> = (0..48_000).map(tone(2000.0 * 1.001, 0.5)).collect();
    assert!(distortion_db(&too_fast, 2000.0) > -60.0);
}

/// Starts to record a source of Debian's PulseAudio.
pub(crate) fn record_there(there: &PulseAudio, source: &str) -> (Program, std::path::PathBuf) {
    let file = there.directory().join("heard.wav");
    let device = format!("--device={source}");
    let format = ["--format=float32le", "--rate=48000", "--channels=2", "--file-format=wav"];
    let words = [&[&*device, "--latency-msec=50"], &format[..], &[path(&file)]].concat();
    let recorder = Program::start(there.command("parecord", &words));
    // Its null sink renders two seconds ahead, and what it renders again is not recorded.
    eventually("it records", || {
        std::fs::metadata(&file).is_ok_and(|file| file.len() > 40_000).then_some(())
    });
    (recorder, file)
}

#[test]
fn what_is_played_on_a_tunnel_sink_is_heard_at_another_consort_without_distortion() {
    in_three_attempts(|| {
        let (here, there) = (Scene::new(), Scene::new());
        here.load(&["module-tunnel-sink", "sink_name=far", &server_of(&there)]);
        let heard = there.record_all("consort.monitor", 2);
        let planes = [1_000.0, 2_000.0].map(|hz| tone(hz, RATE_HZ, 4 * RATE_HZ as usize));
        let file = here.file("tones.wav", &Sound::of(RATE_HZ, &planes));
        here.run("paplay", &["--device=far", path(&file)]).expect_success();
        let sound = recorded(heard);
        for (channel, hz) in [(0, 1_000.0), (1, 2_000.0)] {
            let sounding = &sound.sounding(channel).channels[0];
            let frames = sounding.len();
            let distortion = distortion_db(sounding, hz);
            let is_whole = frames.abs_diff(4 * RATE_HZ as usize) < 2_000;
            if !is_whole || distortion > -80.0 {
                return Err(format!("{hz} Hz: {distortion} dB in {frames} frames"));
            }
        }
        Ok(())
    });
}

#[test]
fn channels_of_a_tunnel_sink_are_heard_at_debians_pulseaudio() {
    if !is_installed("pulseaudio") {
        return;
    }
    in_three_attempts(|| {
        let (here, there) = (Scene::new(), PulseAudio::start());
        let server = format!("server={}", path(&there.directory().join("pulse/native")));
        here.load(&["module-tunnel-sink", "sink_name=far", "sink=consort", &server]);
        let heard = record_there(&there, "consort.monitor");
        here.play_levels("far", &[0.5, -0.25]);
        let sound = recorded(heard);
        there.stop();
        has_levels(&sound, &[0.5, -0.25])
    });
}

#[test]
fn what_is_heard_at_another_consort_is_recorded_from_a_tunnel_source() {
    in_three_attempts(|| {
        let (here, there) = (Scene::new(), Scene::new());
        let source = ["source_name=far", "source=consort.monitor"];
        here.load(&[&["module-tunnel-source", &server_of(&there)][..], &source].concat());
        let sinks = here.pactl(&["list", "short", "sinks"]);
        assert!(!sinks.contains("far"), "{sinks}");
        let heard = here.record_all("far", 2);
        there.play_levels("consort", &[0.5, -0.25]);
        has_levels(&recorded(heard), &[0.5, -0.25])
    });
}

#[test]
fn what_is_heard_at_debians_pulseaudio_is_recorded_from_a_tunnel_source() {
    if !is_installed("pulseaudio") {
        return;
    }
    in_three_attempts(|| {
        let (here, there) = (Scene::new(), PulseAudio::start());
        let server = format!("server={}", path(&there.directory().join("pulse/native")));
        let source = ["source_name=far", "source=consort.monitor", "format=s16le"];
        here.load(&[&["module-tunnel-source", &server][..], &source].concat());
        let heard = here.record_all("far", 2);
        let planes = [0.5, -0.25].map(|level| vec![level; 2 * RATE_HZ as usize]);
        let file = here.file("levels.wav", &Sound::of(RATE_HZ, &planes));
        Program::start(there.command("paplay", &[path(&file)])).finish().expect_success();
        let sound = recorded(heard);
        there.stop();
        has_levels(&sound, &[0.5, -0.25])
    });
}

#[test]
fn both_ends_of_a_tunnel_sleep_while_nothing_plays_and_play_again() {
    in_three_attempts(|| {
        let (here, there) = (Scene::new(), Scene::new());
        here.load(&["module-tunnel-sink", "sink_name=far", &server_of(&there)]);
        for _ in 0..2 {
            here.await_asleep("sinks", "far");
            there.await_asleep("sinks", "consort");
            let heard = there.record_all("consort.monitor", 2);
            here.play_levels("far", &[0.5, 0.25]);
            has_levels(&recorded(heard), &[0.5, 0.25])?;
        }
        Ok(())
    });
}

#[test]
fn a_tunnel_shows_the_cookie_that_it_is_given() {
    let (mut here, mut there) =
        (Scene::new(), Scene::with_front_end(&["--driver", "timer"], &["--tcp", "127.0.0.1:0"]));
    let address = eventually("it says where it listens", || {
        let said = there.front_end.stderr();
        let (_, rest) = said.split_once("programs of PulseAudio over TCP: ")?;
        Some(format!("server=tcp:{}", rest.split_once(", ")?.0))
    });
    let cookie = there.server.directory().join(".config/pulse/cookie");
    let (other, song) = (here.server.directory().join("other"), here.file("song", &ramps(480)));
    std::fs::write(&other, [7; 256]).expect("written");
    let cookie_of = |file: &Path| format!("cookie={}", path(file));
    let module = ["module-tunnel-sink", "sink_name=far", &*address];
    here.refused(&[&module[..], &[&*cookie_of(&other)]].concat(), "access denied");
    here.refused(&[&module[..], &[&*cookie_of(&song)]].concat(), "is not a cookie");
    let missing = here.server.directory().join("missing");
    here.refused(&[&module[..], &[&*cookie_of(&missing)]].concat(), "there is no cookie");
    assert_eq!(here.pactl(&["list", "short", "modules"]), "");
    here.load(&[&module[..], &[&*cookie_of(&cookie)]].concat());
}

#[test]
fn a_tunnel_that_cannot_be_is_refused_and_the_reason_is_left() {
    let (mut here, there) = (Scene::new(), Scene::new());
    let server = server_of(&there);
    let nobody = format!("server=tcp:127.0.0.1:{}", free_port());
    for (arguments, reason) in [
        (&["module-tunnel-sink"][..], "server is needed"),
        (&["module-tunnel-sink", "server=tcp:"], "is not a server"),
        (&["module-tunnel-source", &nobody], "Connection refused"),
        (&["module-tunnel-sink", &server, "sink=none"], "cannot play on none there"),
        (&["module-tunnel-source", &server, "source=none"], "cannot record none there"),
        (&["module-tunnel-sink", &server, "latency_msec=401"], "400 is the most"),
        (&["module-tunnel-sink", &server, "auto=yes"], "name the server"),
    ] {
        here.refused(arguments, reason);
    }
    assert_eq!(here.pactl(&["list", "short", "modules"]), "");
}

#[test]
fn a_server_that_talks_nonsense_or_nothing_is_refused_and_keeps_nobody_waiting() {
    let mut here = Scene::new();
    for nonsense in [&b"HTTP/1.1 400 Bad Request\r\nServer: other\r\n\r\n"[..], &[0xff; 4096], b""]
    {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("its address").port();
        let answering = std::thread::spawn(move || {
            let (mut socket, _) = listener.accept().expect("a tunnel");
            socket.write_all(nonsense).expect("sent");
            let _ = socket.read_to_end(&mut Vec::new());
        });
        let server = format!("server=tcp:127.0.0.1:{port}");
        let loading = here.spawn("pactl", &["load-module", "module-tunnel-sink", &server]);
        // Meanwhile, others are answered.
        assert!(here.pactl(&["info"]).contains("consort"));
        let refused = loading.finish();
        assert_eq!(refused.stderr, "Failure: Module initialization failed\n");
        answering.join().expect("it has ended");
    }
    here.says("cannot be understood");
    here.says("it does not answer");
}

#[test]
fn a_module_whose_other_server_ends_is_unloaded_and_the_reason_is_left() {
    let mut here = Scene::new();
    for module in ["module-tunnel-sink", "module-tunnel-source"] {
        let mut there = Scene::new();
        here.load(&[module, &server_of(&there)]);
        there.front_end.signal(Signal::KILL);
        eventually("it has ended", || (!there.front_end.is_running()).then_some(()));
        eventually("nothing is left", || {
            let modules = here.pactl(&["list", "short", "modules"]);
            (modules.is_empty() && here.links().is_empty()).then_some(())
        });
        here.says(&format!("unloads '{module} "));
    }
    here.says("the other server has closed the connection");
}

#[test]
fn a_tunnel_that_is_to_reconnect_is_heard_at_the_next_server() {
    in_three_attempts(|| {
        let (here, mut there) = (Scene::new(), Scene::new());
        let reconnect = ["sink_name=far", "reconnect_interval_ms=100"];
        let nowhere = format!("server=tcp:127.0.0.1:{}", free_port());
        here.load(&["module-tunnel-sink", &nowhere, "reconnect_interval_ms=100"]);
        here.load(&[&["module-tunnel-sink", &server_of(&there)][..], &reconnect].concat());
        there.front_end.signal(Signal::KILL);
        eventually("it has ended", || (!there.front_end.is_running()).then_some(()));
        there.front_end = there.server.spawn_consort(&["pulse"]);
        eventually("it is connected again", || {
            let inputs = there.run("pactl", &["list", "short", "sink-inputs"]);
            (inputs.stdout.lines().count() == 1).then_some(())
        });
        let heard = there.record_all("consort.monitor", 2);
        here.play_levels("far", &[0.5, 0.25]);
        has_levels(&recorded(heard), &[0.5, 0.25])
    });
}

/// The samples of two channels as 16-bit integers, frame after frame.
fn bytes(sound: &Sound) -> Vec<u8> {
    let frames = sound.channels[0].iter().zip(&sound.channels[1]);
    let samples = frames.flat_map(|(left, right)| [*left, *right]);
    samples.flat_map(|sample| ((sample * 32_768.0) as i16).to_le_bytes()).collect()
}

/// Has a front end listen for raw samples; returns where.
fn simple(scene: &Scene, arguments: &[&str]) -> (String, u16) {
    let port = free_port();
    let at = [&*format!("port={port}"), "listen=127.0.0.1", "rate=48000", "channels=2"];
    let index = scene.load(&[&["module-simple-protocol-tcp"], &at[..], arguments].concat());
    (index, port)
}

fn connect(port: u16) -> TcpStream {
    let socket = TcpStream::connect(("127.0.0.1", port)).expect("connected");
    socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    socket
}

#[test]
fn raw_samples_of_a_socket_are_played_sample_for_sample_to_the_last() {
    in_three_attempts(|| {
        let scene = Scene::new();
        let (_, port) = simple(&scene, &[]);
        let sound = ramps(2 * RATE_HZ as usize);
        let mut socket = connect(port);
        // In pieces that end anywhere.
        for piece in bytes(&sound).chunks(4_321) {
            socket.write_all(piece).expect("sent");
        }
        eventually("its stream is shown", || {
            let inputs = scene.pactl(&["list", "sink-inputs"]);
            inputs.contains("application.name = \"Simple client (127.0.0.1:").then_some(())
        });
        socket.shutdown(Shutdown::Write).expect("a socket");
        assert_eq!(socket.read(&mut [0]).expect("its end"), 0);
        compare(&scene.recorded(), &sound.channels)
    });
}

#[test]
fn what_is_recorded_is_sent_to_a_socket_as_raw_samples() {
    in_three_attempts(|| {
        let scene = Scene::new();
        let recorded = ["playback=0", "record=1", "source=consort.monitor"];
        let (_, port) = simple(&scene, &recorded);
        let mut socket = connect(port);
        eventually("it records", || {
            let list = scene.pactl(&["list", "short", "source-outputs"]);
            (list.lines().count() == 1).then_some(())
        });
        let reading = {
            let mut socket = socket.try_clone().expect("a descriptor");
            std::thread::spawn(move || {
                let mut all = Vec::new();
                socket.read_to_end(&mut all).map(|_| all)
            })
        };
        let sound = ramps(RATE_HZ as usize);
        let file = scene.file("played.wav", &sound);
        scene.run("paplay", &[path(&file)]).expect_success();
        std::thread::sleep(Duration::from_secs(1));
        // Nothing is played of what it sends.
        socket.write_all(&[1; 4096]).expect("sent");
        socket.shutdown(Shutdown::Write).expect("a socket");
        let read = reading.join().expect("it read").expect("bytes");
        let samples = read.as_chunks::<2>().0.iter();
        let samples = samples.map(|bytes| f32::from(i16::from_le_bytes(*bytes)) / 32_768.0);
        let samples: Vec<f32> = samples.collect();
        let channel = |number| samples.iter().skip(number).step_by(2).copied().collect();
        compare(&Sound::of(RATE_HZ, &[channel(0), channel(1)]), &sound.channels)
    });
}

#[test]
fn sockets_of_raw_samples_are_few_and_end_with_their_module() {
    let scene = Scene::new();
    let (index, port) = simple(&scene, &[]);
    let mut sockets: Vec<TcpStream> = (0..11).map(|_| connect(port)).collect();
    let mut last = sockets.pop().expect("a socket");
    assert!(!matches!(last.read(&mut [0]), Ok(1..)), "ten are the most");
    eventually("ten of them play", || {
        let inputs = scene.pactl(&["list", "short", "sink-inputs"]);
        (inputs.lines().count() == 10).then_some(())
    });
    let taken = format!("port={port}");
    let again = ["load-module", "module-simple-protocol-tcp", "listen=127.0.0.1", &taken];
    let refused = scene.run("pactl", &again);
    assert_eq!(refused.stderr, "Failure: Module initialization failed\n");
    scene.pactl(&["unload-module", &index]);
    for socket in &mut sockets {
        assert!(!matches!(socket.read(&mut [0]), Ok(1..)));
    }
    eventually("nothing listens there", || {
        TcpStream::connect(("127.0.0.1", port)).err().map(|_| ())
    });
    eventually("no stream is left", || {
        scene.pactl(&["list", "short", "sink-inputs"]).is_empty().then_some(())
    });
}
