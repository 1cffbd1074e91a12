//! What users see of players and recorders, and what they ask of the device.

use harness::{Program, Sound, binary, eventually, tone};

use crate::{RATE_HZ, await_no_stream, file, server, streams};

#[test]
fn a_player_on_a_terminal_shows_the_level_of_what_is_heard() {
    let server = server(1024);
    let second = RATE_HZ as usize;
    let tone = tone(1000.0, RATE_HZ, second);
    let peak = tone.iter().fold(0.0_f32, |peak, sample| peak.max(sample.abs()));
    let half = tone.iter().map(|sample| sample * 0.5 / peak);
    let sound: Vec<f32> = vec![0.0; second].into_iter().chain(half).collect();
    let path = file(&server, "tone.wav", &Sound::of(RATE_HZ, &[sound]));
    let played = format!("'{}' play '{}'", binary("consort").display(), path.display());
    // A terminal of its own.
    let mut command = server.command("script");
    command.args(["--quiet", "--return", "--command", &played, "/dev/null"]);
    let shown = Program::start(command).finish().expect_success().stdout;
    let lines: Vec<&str> = shown.split('\r').collect();
    let first = |words: &str| lines.iter().position(|line| line.contains(words));
    let (loud, silent) = (first(" -6.0 dB"), first(" silence"));
    // Both are written before the first of them is heard.
    assert!(silent.is_some() && loud > silent, "{shown}");
    let elsewhere = server.consort(&["play", &path.to_string_lossy()]).expect_success().stdout;
    assert!(!elsewhere.contains("dB"), "one line elsewhere: {elsewhere}");
}

#[test]
fn a_recorder_says_how_long_the_device_may_keep_its_frames() {
    let server = server(1024);
    let path = server.directory().join("heard.wav");
    let name = path.to_string_lossy().into_owned();
    for (words, frames) in [(&[][..], RATE_HZ / 4), (&["--latency", "20"], RATE_HZ / 50)] {
        let record = [&["record", "--monitor", &name], words].concat();
        let recorder = server.spawn_consort(&record);
        let stream = eventually("it records", || {
            streams(&server).into_iter().find(|stream| stream["plays"] == true)
        });
        assert_eq!(stream["depth_frames"], frames, "{words:?}");
        eventually("it is in the file while it is heard", || {
            let bytes = std::fs::metadata(&path).map_or(0, |file| file.len());
            (bytes > 8 * u64::from(RATE_HZ / 2)).then_some(())
        });
        recorder.terminate();
        await_no_stream(&server);
    }
    let refused = server.consort(&["record", "--latency", "4", &name]);
    assert!(refused.stderr.contains("4 is not in 5..=2000"), "{refused:?}");
}
