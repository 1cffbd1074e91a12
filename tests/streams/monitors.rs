//! Recordings of what leaves a device that go on with another one.

use std::path::PathBuf;
use std::time::Duration;

use harness::{Program, Server, Sound, eventually, in_three_attempts, tone};
use rustix::process::Signal;

use crate::programs::level;
use crate::{RATE_HZ, end_recorder, file, play, play_to_end, recorded_all, server, streams};

/// Starts a recorder of what leaves the device that drives.
fn monitoring(server: &Server) -> (Program, PathBuf) {
    let path = server.directory().join("take.wav");
    let recorder = server.spawn_consort(&["record", "--monitor", &path.to_string_lossy()]);
    let records =
        |stream: &serde_json::Value| stream["direction"] == "monitor" && stream["plays"] == true;
    eventually("it records", || streams(server).iter().any(records).then_some(()));
    (recorder, path)
}

fn await_players(server: &Server, number: usize) {
    eventually("all play", || {
        let plays = |stream: &&serde_json::Value| {
            stream["direction"] == "playback" && stream["plays"] == true
        };
        (streams(server).iter().filter(plays).count() == number).then_some(())
    });
}

fn move_to(server: &Server, device: &str) {
    server.consort(&["move", "consort record", device]).expect_success();
    eventually("it is there", || {
        let all = streams(server);
        let own = all.iter().find(|stream| stream["direction"] == "monitor")?;
        (own["device"].as_str().unwrap_or("system") == device && own["plays"] == true).then_some(())
    });
    std::thread::sleep(Duration::from_secs(1));
}

#[test]
fn a_recorder_of_the_device_goes_on_with_another_driver() {
    in_three_attempts(|| {
        let server = server(1024);
        let (mut recorder, path) = monitoring(&server);
        for channels in ["4", "2"] {
            let before = streams(&server)[0]["number"].clone();
            server.consort(&["driver", "timer", "--playback", channels]).expect_success();
            eventually("it records what leaves the other driver", || {
                let all = streams(&server);
                let is_next = |stream: &serde_json::Value| stream["number"] != before;
                all.iter().any(|stream| is_next(stream) && stream["plays"] == true).then_some(())
            });
            assert!(recorder.is_running(), "{}", recorder.stderr());
        }
        let second = RATE_HZ as usize;
        play_to_end(&server, &file(&server, "half.wav", &level(0.5, second)), &[])?;
        end_recorder(&server, recorder)?;
        let recorded = Sound::read(&path);
        let heard = recorded.channels[0].iter().filter(|sample| **sample == 0.5).count();
        assert_eq!(heard, second, "of {} frames", recorded.channels[0].len());
        Ok(())
    });
}

#[test]
fn a_monitor_that_is_moved_has_one_devices_sound_and_then_the_others() {
    in_three_attempts(|| {
        let server = server(1024);
        server.consort(&["device", "add", "null", "--name", "other"]).expect_success();
        let frames = 60 * RATE_HZ as usize;
        let paths = [("quarter.wav", 0.25), ("half.wav", 0.5)]
            .map(|(name, volume)| file(&server, name, &level(volume, frames)));
        let _players =
            [play(&server, &paths[0], &[]), play(&server, &paths[1], &["--device", "other"])];
        await_players(&server, 2);
        // Until the first frames of both are heard.
        std::thread::sleep(Duration::from_millis(500));
        let (recorder, path) = monitoring(&server);
        std::thread::sleep(Duration::from_secs(1));
        move_to(&server, "other");
        move_to(&server, "system");
        end_recorder(&server, recorder)?;
        let recorded = Sound::read(&path);
        for (channel, sign) in recorded.channels.iter().zip([1.0, -1.0]) {
            let runs: Vec<(f32, usize)> = channel
                .chunk_by(|one, other| one == other)
                .map(|run| (sign * run[0], run.len()))
                .collect();
            let levels: Vec<f32> = runs.iter().map(|(level, _)| *level).collect();
            assert_eq!(levels, [0.25, 0.5, 0.25], "{runs:?}");
            assert!(runs.iter().all(|(_, frames)| *frames > RATE_HZ as usize / 2), "{runs:?}");
        }
        Ok(())
    });
}

#[test]
fn a_recorder_of_a_device_goes_on_at_another_rate_with_other_channels() {
    in_three_attempts(|| {
        let server = server(1024);
        let add = ["device", "add", "null", "--name", "fast", "--rate", "96000", "--playback", "1"];
        server.consort(&add).expect_success();
        let sound = tone(1000.0, 96_000, 60 * 96_000);
        let loud = sound.iter().fold(0.0_f32, |loud, sample| loud.max(sample.abs()));
        let path = file(&server, "tone.wav", &Sound::of(96_000, &[sound]));
        let _player = play(&server, &path, &["--device", "fast"]);
        await_players(&server, 1);
        let (recorder, path) = monitoring(&server);
        move_to(&server, "fast");
        recorder.signal(Signal::INT);
        recorded_all(recorder.finish())?;
        let recorded = Sound::read(&path);
        assert_eq!((recorded.sample_rate_hz, recorded.channels.len()), (RATE_HZ, 2));
        for channel in 0..2 {
            let heard = recorded.sounding(channel);
            let frames = heard.channels[0].len();
            let hz = heard.frequency_hz(0);
            let level = heard.rms(0) * std::f64::consts::SQRT_2 / f64::from(loud);
            if frames < RATE_HZ as usize / 2
                || (hz - 1000.0).abs() > 1.0
                || (level - 1.0).abs() > 0.02
            {
                return Err(format!("{frames} frames of {hz} Hz, {level} as loud"));
            }
        }
        Ok(())
    });
}

#[test]
fn a_recorder_in_the_graph_is_moved_by_its_connections() {
    let server = server(1024);
    server.consort(&["device", "add", "null", "--name", "other"]).expect_success();
    let path = server.directory().join("take.wav");
    let recorder = server.spawn_consort(&["record", &path.to_string_lossy()]);
    server.await_connection("system:capture_1", "consort record:input_FL");
    let refused = server.consort(&["move", "consort record", "other"]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("connect them with others instead"), "{refused:?}");
    recorder.signal(Signal::INT);
    recorder.finish().expect_success();
}
