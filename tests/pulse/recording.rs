//! What programs record is what leaves the device.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::time::Duration;

use harness::{Program, Sound, eventually, in_three_attempts};
use rustix::process::Signal;

use crate::bad_input::{connect, packet};
use crate::{RATE_HZ, Scene, compare, path, ramps, same_frames};

/// Waits until as many streams record.
fn await_recorders(scene: &Scene, count: usize) {
    eventually("streams record", || {
        let list = scene.pactl(&["list", "short", "source-outputs"]);
        let state = scene.pactl(&["list", "short", "sources"]);
        (list.lines().count() == count && state.contains("RUNNING")).then_some(())
    });
}

/// Records with a program while a sound is played; returns what is in its file. `FILE` among the
/// arguments stands for the file.
fn recorded(program: &str, arguments: &[&str], sound: &Sound, latency: Duration) -> Sound {
    let scene = Scene::new();
    let file = scene.server.directory().join("taken.wav");
    let location = format!("location={}", path(&file));
    let arguments: Vec<&str> = arguments
        .iter()
        .map(|argument| match *argument {
            "FILE" => path(&file),
            "location=FILE" => &location,
            other => other,
        })
        .collect();
    let recorder = scene.spawn(program, &arguments);
    await_recorders(&scene, 1);
    let played = scene.file("played.wav", sound);
    scene.run("paplay", &[path(&played)]).expect_success();
    std::thread::sleep(latency + Duration::from_millis(500));
    recorder.signal(Signal::INT);
    recorder.finish();
    Sound::read(&file)
}

const SHORT: Duration = Duration::from_millis(100);

/// A sound without the softest parts before and after it, such as the ringing of a filter.
pub(crate) fn loud(sound: &Sound) -> Sound {
    let least = sound.peak(0) / 10.0;
    let samples = &sound.channels[0];
    let is_loud = |sample: &f32| sample.abs() > least;
    let first = samples.iter().position(is_loud).unwrap_or(0);
    let last = samples.iter().rposition(is_loud).map_or(0, |last| last + 1);
    Sound::of(sound.sample_rate_hz, &[samples[first..last].to_vec()])
}

#[test]
fn parecord_takes_what_is_played_sample_for_sample() {
    let sound = ramps(3 * RATE_HZ as usize);
    let arguments = [
        "--device=consort.monitor",
        "--format=float32le",
        "--rate=48000",
        "--channels=2",
        "--latency-msec=50",
        "FILE",
    ];
    in_three_attempts(|| {
        compare(&recorded("parecord", &arguments, &sound, SHORT), &sound.channels)
    });
}

#[test]
fn a_recorder_that_asks_for_no_latency_takes_every_sample_two_seconds_later() {
    let sound = ramps(2 * RATE_HZ as usize);
    let arguments = [
        "--record",
        "--device=@DEFAULT_MONITOR@",
        "--file-format=wav",
        "--format=s16le",
        "--rate=48000",
        "FILE",
    ];
    let latency = Duration::from_secs(3);
    in_three_attempts(|| compare(&recorded("pacat", &arguments, &sound, latency), &sound.channels));
}

#[test]
fn ffmpeg_takes_what_is_played_sample_for_sample() {
    let sound = ramps(3 * RATE_HZ as usize);
    let arguments = [
        "-loglevel",
        "error",
        "-nostdin",
        "-f",
        "pulse",
        "-i",
        "consort.monitor",
        "-c:a",
        "pcm_s16le",
        "FILE",
    ];
    let latency = Duration::from_secs(1);
    in_three_attempts(|| {
        compare(&recorded("ffmpeg", &arguments, &sound, latency), &sound.channels)
    });
}

#[test]
fn gstreamer_takes_what_is_played_sample_for_sample() {
    let sound = ramps(3 * RATE_HZ as usize);
    let arguments = [
        "-q",
        "-e",
        "pulsesrc",
        "device=consort.monitor",
        "!",
        "audio/x-raw,format=F32LE,rate=48000,channels=2",
        "!",
        "wavenc",
        "!",
        "filesink",
        "location=FILE",
    ];
    in_three_attempts(|| {
        compare(&recorded("gst-launch-1.0", &arguments, &sound, SHORT), &sound.channels)
    });
}

#[test]
fn sox_takes_what_is_played_sample_for_sample() {
    let sound = ramps(3 * RATE_HZ as usize);
    let arguments =
        ["-q", "-D", "-r", "48000", "-c", "2", "-t", "pulseaudio", "default", "-b", "16", "FILE"];
    let latency = Duration::from_secs(1);
    in_three_attempts(|| compare(&recorded("sox", &arguments, &sound, latency), &sound.channels));
}

#[test]
fn a_tone_is_recorded_at_another_rate_in_another_format_on_one_channel() {
    let tone = harness::tone(997.0, RATE_HZ, 2 * RATE_HZ as usize);
    let sound = Sound::of(RATE_HZ, &[tone.clone(), tone]);
    let arguments = [
        "--device=consort.monitor",
        "--format=s24le",
        "--rate=16000",
        "--channels=1",
        "--latency-msec=50",
        "FILE",
    ];
    in_three_attempts(|| {
        let taken = recorded("parecord", &arguments, &sound, SHORT);
        assert_eq!((taken.sample_rate_hz, taken.channels.len()), (16_000, 1));
        let taken = loud(&taken);
        let (frequency_hz, frames) = (taken.frequency_hz(0), taken.channels[0].len());
        let level = taken.rms(0) / sound.rms(0);
        if (frequency_hz - 997.0).abs() < 0.5
            && frames.abs_diff(32_000) < 32
            && (level - 1.0).abs() < 0.01
        {
            Ok(())
        } else {
            Err(format!("{frequency_hz} Hz for {frames} frames at {level}"))
        }
    });
}

#[test]
fn a_recorder_is_shown_with_its_program_and_its_volume_is_heard() {
    in_three_attempts(|| {
        let scene = Scene::new();
        let file = scene.server.directory().join("taken.wav");
        let mut events = scene.spawn("pactl", &["subscribe"]);
        eventually("it has subscribed", || {
            scene.pactl(&["info"]);
            events.stdout().contains("client").then_some(())
        });
        let recorder = scene.spawn(
            "parecord",
            &[
                "--device=consort.monitor",
                "--client-name=a recorder",
                "--format=float32le",
                "--rate=48000",
                "--latency-msec=20",
                path(&file),
            ],
        );
        await_recorders(&scene, 1);
        let list = scene.pactl(&["list", "source-outputs"]);
        for line in [
            "application.name = \"a recorder\"",
            "Source: 0",
            "Sample Specification: float32le 2ch 48000Hz",
            "Corked: no",
            "Mute: no",
            "65536 / 100% / 0.00 dB",
        ] {
            assert!(list.contains(line), "{line}: {list}");
        }
        let short = scene.pactl(&["list", "short", "source-outputs"]);
        let index = short.split_whitespace().next().expect("an index").to_owned();
        let level = Sound::of(RATE_HZ, &[vec![0.5; 480_000], vec![0.5; 480_000]]);
        let played = scene.file("level.wav", &level);
        let player = scene.spawn("paplay", &[path(&played)]);
        eventually("it plays", || {
            scene.pactl(&["list", "short", "sinks"]).contains("RUNNING").then_some(())
        });
        let wait = || std::thread::sleep(Duration::from_millis(300));
        wait();
        scene.pactl(&["set-source-output-volume", &index, "50%"]);
        assert!(scene.pactl(&["list", "source-outputs"]).contains("32768 /  50% / -18.06 dB"));
        wait();
        scene.pactl(&["set-source-volume", "consort.monitor", "50%"]);
        let shown = scene.pactl(&["get-source-volume", "consort.monitor"]);
        assert!(shown.contains("32768 /  50% / -18.06 dB"), "{shown}");
        wait();
        scene.pactl(&["set-source-mute", "consort.monitor", "1"]);
        assert_eq!(scene.pactl(&["get-source-mute", "consort.monitor"]), "Mute: yes\n");
        wait();
        recorder.signal(Signal::INT);
        recorder.finish();
        player.terminate();
        let line = format!("Event 'remove' on source-output #{index}\n");
        eventually(&line, || events.stdout().contains(&line).then_some(()));
        let taken = Sound::read(&file);
        for level in [0.5, 0.0625, 0.007_812_5, 0.0] {
            let frames = taken.channels[0].iter().filter(|sample| **sample == level).count();
            if frames < 4800 {
                return Err(format!("{level} was recorded for {frames} frames"));
            }
        }
        // The first frame that sounds is no change of the volume.
        let steps = taken.channels[0].windows(2).map(|pair| (pair[0] - pair[1]).abs());
        let large = steps.filter(|step| *step > 0.5 / 240.0).count();
        if large <= 1 { Ok(()) } else { Err(format!("{large} steps")) }
    });
}

/// Starts the meter.
fn meter(scene: &Scene) -> Program {
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("pulse/meter.py");
    scene.spawn("/usr/bin/python3", &[path(&script), "consort.monitor"])
}

fn device(scene: &Scene) -> String {
    scene.server.consort_json(&["status"])["device"].as_str().expect("a state").to_owned()
}

#[test]
fn a_meter_moves_while_something_plays_and_lets_the_device_sleep() {
    let scene = Scene::new();
    let mut meter = meter(&scene);
    eventually("the meter is there", || {
        let list = scene.pactl(&["list", "short", "source-outputs"]);
        (list.lines().count() == 1).then_some(())
    });
    eventually("the device sleeps", || (device(&scene) == "parked").then_some(()));
    eventually("its source sleeps", || {
        scene.pactl(&["list", "short", "sources"]).contains("SUSPENDED").then_some(())
    });
    let level = Sound::of(RATE_HZ, &[vec![0.5; 96_000], vec![0.5; 96_000]]);
    let played = scene.file("level.wav", &level);
    for _ in 0..2 {
        let before = meter.stdout().lines().filter(|peak| *peak == "0.500000").count();
        scene.run("paplay", &[path(&played)]).expect_success();
        eventually("the meter moves", || {
            let peaks = meter.stdout().lines().filter(|peak| *peak == "0.500000").count();
            // Two seconds have 50 of them.
            (peaks >= before + 45).then_some(())
        });
        eventually("the device sleeps again", || (device(&scene) == "parked").then_some(()));
        let wake_ups = || scene.server.stream_connection().device().expect("a device").wake_ups;
        let (peaks, before) = (meter.stdout().lines().count(), wake_ups());
        std::thread::sleep(Duration::from_secs(2));
        // Those that count them wake the server, not the device's thread.
        let (more, woken) = (meter.stdout().lines().count() - peaks, wake_ups() - before);
        assert!(more <= 5 && woken <= 5, "{more} peaks, {woken} wake-ups");
    }
    meter.terminate();
}

/// A packet that creates a stream of 16-bit stereo at 48 kHz on a source, as version 13 has it.
fn record_from(source: u32, most: u32, fragment: u32) -> Vec<u8> {
    let word = |value: u32| [&b"L"[..], &value.to_be_bytes()].concat();
    let values = [
        &b"a\x03\x02\0\0\xbb\x80"[..],
        b"m\x02\x01\x02",
        &word(source),
        b"N",
        &word(most),
        b"0",
        &word(fragment),
        b"000000000",
        b"PN",
        &word(u32::MAX),
    ];
    packet(5, &values.concat())
}

fn auth_13() -> Vec<u8> {
    packet(8, &[&b"L\0\0\0\x0dx\0\0\x01\0"[..], &[0; 256]].concat())
}

#[test]
fn lengths_and_sources_of_nonsense_harm_only_their_own_stream() {
    let scene = Scene::new();
    let mut socket = connect(&scene);
    socket.write_all(&auth_13()).expect("sent");
    let mut from = socket.try_clone().expect("a socket");
    let mut answer = || {
        loop {
            let mut head = [0; 20];
            from.read_exact(&mut head).expect("an answer");
            let word = |at: usize| u32::from_be_bytes(head[at..at + 4].try_into().expect("four"));
            let mut content = vec![0; word(0) as usize];
            from.read_exact(&mut content).expect("an answer");
            if word(4) == u32::MAX {
                return content;
            }
            assert_eq!(content.len() % 4, 0, "whole frames");
        }
    };
    answer();
    for (most, fragment) in [(u32::MAX, 0), (0, 0), (0, u32::MAX), (4_294_967_290, 4_294_967_290)] {
        socket.write_all(&record_from(0, most, fragment)).expect("sent");
        let answer = answer();
        // A reply, with what was granted behind the two numbers of the stream.
        assert_eq!(answer[4], 2, "{most} {fragment}: {answer:?}");
        let word = |at: usize| u32::from_be_bytes(answer[at..at + 4].try_into().expect("four"));
        let (most, fragment) = (word(21), word(26));
        assert!(most <= 4 << 20 && 0 < fragment && fragment <= most, "{most} {fragment}");
    }
    for source in [1, 7, 4_294_967_294] {
        socket.write_all(&record_from(source, u32::MAX, u32::MAX)).expect("sent");
        let answer = answer();
        assert_eq!((answer[4], *answer.last().expect("a code")), (0, 5), "{source}: {answer:?}");
    }
}

#[test]
fn recorders_that_never_read_cost_bounded_memory_and_no_other_a_sample() {
    in_three_attempts(|| {
        let scene = Scene::new();
        let stuck: Vec<_> = (0..10)
            .map(|_| {
                let mut socket = connect(&scene);
                socket.write_all(&auth_13()).expect("sent");
                for _ in 0..3 {
                    let create = record_from(0, 1 << 18, 19_200);
                    socket.write_all(&create).expect("sent");
                }
                socket
            })
            .collect();
        await_recorders(&scene, 30);
        let sound = ramps(3 * RATE_HZ as usize);
        let file = scene.file("played.wav", &sound);
        // Longer than sockets and queues hold.
        for _ in 0..3 {
            scene.run("paplay", &[path(&file)]).expect_success();
        }
        let memory = std::fs::read_to_string(format!("/proc/{}/status", scene.front_end.id()));
        let memory = memory.expect("a process");
        let resident = memory.lines().find_map(|line| line.strip_prefix("RssAnon:"));
        let kib: u64 = resident
            .and_then(|line| line.trim().strip_suffix(" kB"))
            .and_then(|kib| kib.parse().ok())
            .expect("a size");
        assert!(kib < 24 << 10, "{kib} KiB for 30 streams of 256 KiB");
        drop(stuck);
        scene.run("paplay", &[path(&file)]).expect_success();
        let same = same_frames(&scene.recorded(), &sound.channels)?;
        let frames = sound.channels[0].len();
        if same == frames { Ok(()) } else { Err(format!("it differs after {same} of {frames}")) }
    });
}
