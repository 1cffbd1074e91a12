//! `consort latency analyse`, on recordings of a delay that the test made.

use std::path::Path;

use harness::{Finished, Program, Sound, binary, command_in};
use latency::Signal;

/// What was sent, and a delayed copy of it.
fn recording(signal: Signal, delay: usize, rate_hz: u32) -> Sound {
    let mut direct = vec![0.0; 777];
    direct.extend(signal.samples(rate_hz as usize, rate_hz));
    direct.resize(direct.len() + delay + 1000, 0.0);
    let mut delayed = vec![0.0; delay];
    delayed.extend(&direct[..direct.len() - delay]);
    Sound::of(rate_hz, &[direct, delayed])
}

fn analyse(directory: &Path, sound: &Sound, options: &[&str]) -> Finished {
    sound.write(&directory.join("recording.wav"));
    analyse_file(directory, "recording.wav", options)
}

fn analyse_file(directory: &Path, name: &str, options: &[&str]) -> Finished {
    let mut command = command_in(directory, &binary("consort"));
    command.args(["latency", "analyse", name]).args(options);
    Program::start(command).finish()
}

#[test]
fn the_delay_of_a_recording_made_elsewhere_is_counted_to_the_frame() {
    let directory = tempfile::tempdir().expect("a directory");
    for (signal, delay, rate_hz) in [
        (Signal::Impulses, 119, 44_100),
        (Signal::Marked, 0, 48_000),
        (Signal::Sequence, 96_001, 96_000),
    ] {
        let sound = recording(signal, delay, rate_hz);
        let text = analyse(directory.path(), &sound, &[]).expect_success().stdout;
        assert!(text.starts_with(&format!("latency   {delay} frames")), "{text}");
        let json = analyse(directory.path(), &sound, &["--json"]).expect_success().stdout;
        let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(json["latency"]["minimum_frames"], delay as f64);
        assert_eq!(json["latency"]["maximum_frames"], delay as f64);
        assert_eq!(json["copied"], true);
    }
}

#[test]
fn an_unusable_recording_is_reported_without_a_figure() {
    let directory = tempfile::tempdir().expect("a directory");
    let good = recording(Signal::Sequence, 500, 48_000);
    let silent = vec![0.0; good.channels[0].len()];
    let loud: Vec<f32> =
        good.channels[1].iter().map(|sample| (sample * 4.0).clamp(-1.0, 1.0)).collect();
    let of = |channels: &[Vec<f32>]| Sound::of(48_000, channels);
    let backwards: Vec<f32> = good.channels[0].iter().rev().copied().collect();
    let never_back = [vec![0.001, -0.001], vec![0.0; good.channels[0].len() - 2]].concat();
    for (sound, part) in [
        (of(&good.channels[..1]), "1 channels"),
        (of(&[good.channels[0].clone(), silent]), "the right channel is silent"),
        (of(&[good.channels[0].clone(), loud]), "the right channel is clipped at frame"),
        (of(&[good.channels[1].clone(), good.channels[0].clone()]), "500 frames ahead"),
        (of(&[good.channels[0].clone(), backwards]), "unrelated channels"),
        (of(&[good.channels[0].clone(), never_back]), "a delay longer than the recording"),
        (
            of(&[good.channels[0][..100].to_vec(), good.channels[1][..100].to_vec()]),
            "has 100 frames",
        ),
    ] {
        let finished = analyse(directory.path(), &sound, &[]);
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(1), ""), "{part}");
        let line = finished.stderr.trim_end();
        assert!(line.starts_with("consort: recording.wav: ") && line.contains(part), "{line}");
        assert!(!line.contains('\n'), "{line}");
    }
    std::fs::write(directory.path().join("text.wav"), "no sound").expect("a file");
    assert!(analyse_file(directory.path(), "text.wav", &[]).stderr.contains("is not a sound file"));
    assert!(
        analyse_file(directory.path(), "absent.wav", &[]).stderr.contains("there is no sound file")
    );
}
