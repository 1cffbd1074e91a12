//! How rarely anything wakes while a program plays.

use std::time::Duration;

use harness::{Server, eventually, in_three_attempts, wake_ups};

use crate::{RATE_HZ, await_playing, file, play, ramps};

/// The fewest wake-ups of these processes in five seconds, of some attempts that end with `most`.
fn fewest_wake_ups(processes: &[u32], most: u64) -> u64 {
    let all = || processes.iter().copied().map(wake_ups).sum::<u64>();
    let mut fewest = u64::MAX;
    for _ in 0..12 {
        let before = all();
        std::thread::sleep(Duration::from_secs(SECONDS));
        fewest = fewest.min(all() - before);
        if fewest <= most {
            break;
        }
    }
    fewest
}

const SECONDS: u64 = 5;

#[test]
fn a_player_beside_a_program_with_64_frames_wakes_three_times_a_second_at_most() {
    let mut server = Server::start(&["--driver", "timer", "--quantum", "64"]);
    let path = file(&server, "song.wav", &ramps(120 * RATE_HZ as usize));
    let player = play(&server, &path, &[]);
    await_playing(&server);
    let source = server.probe(&["source", "short"]);
    server.consort(&["connect", "short:out", "system:playback_1"]).expect_success();
    server.await_cycles(5);
    let fewest = fewest_wake_ups(&[player.id()], 3 * SECONDS);
    assert_eq!(server.consort_json(&["status"])["device"], "cycling");
    assert!(fewest <= 3 * SECONDS, "{fewest} wake-ups in {SECONDS} s");
    assert!(wake_ups(server.program().id()) > 750, "the server runs cycles meanwhile");
    source.terminate();
    player.terminate();
}

#[test]
fn a_player_and_its_server_wake_three_times_a_second_at_most() {
    in_three_attempts(|| {
        // Nothing is recorded here: that would wake a thread that writes.
        let mut server = Server::start(&["--driver", "timer", "--quantum", "256"]);
        let path = file(&server, "song.wav", &ramps(120 * RATE_HZ as usize));
        let player = play(&server, &path, &[]);
        await_playing(&server);
        // The server's control thread polls for some seconds after each request.
        let fewest = fewest_wake_ups(&[server.program().id(), player.id()], 3 * SECONDS);
        assert!(fewest <= 3 * SECONDS, "{fewest} wake-ups in {SECONDS} s");
        assert_eq!(crate::streams(&server).len(), 1, "it plays on");
        server.check_in_time()?;
        player.terminate();
        Ok(())
    });
}

#[test]
fn a_server_whose_streams_hold_or_have_ended_is_parked() {
    let server = Server::start(&["--driver", "timer", "--quantum", "256"]);
    let path = file(&server, "short.wav", &ramps(RATE_HZ as usize / 2));
    play(&server, &path, &[]).finish().expect_success();
    eventually("the device is parked", || {
        (server.consort_json(&["status"])["device"] == "parked").then_some(())
    });
    assert!(server.status().driver.contains("parked"));
}

#[test]
fn status_names_what_keeps_the_device_awake() {
    let mut server = Server::start(&["--driver", "timer", "--quantum", "256"]);
    let shown = |server: &Server| server.consort_json(&["status"]);
    let path = file(&server, "song.wav", &ramps(120 * RATE_HZ as usize));
    let patient = play(&server, &path, &[]);
    await_playing(&server);
    let line = |server: &Server| {
        let text = server.consort(&["status"]).expect_success().stdout;
        text.lines().find(|line| line.starts_with("device ")).expect("a line").to_owned()
    };
    eventually("the device is deep", || (shown(&server)["device"] == "deep").then_some(()));
    assert!(line(&server).contains("deep, as far ahead as consort play allows (2000 ms), "));
    let hasty = play(&server, &path, &["--latency", "50"]);
    eventually("the other player counts", || line(&server).contains("(38 ms), ").then_some(()));
    // Forty times a second on a machine that is idle; ten and more on any.
    let often = |status: &serde_json::Value| status["wake_ups_per_second"].as_f64() > Some(10.0);
    eventually("it wakes for that", || often(&shown(&server)).then_some(()));
    hasty.terminate();
    eventually("it is forgotten", || (!often(&shown(&server))).then_some(()));
    patient.terminate();
    eventually("nothing wakes", || {
        let status = shown(&server);
        (status["device"] == "parked" && status["wake_ups_per_second"] == 0.0).then_some(())
    });
    assert!(line(&server).contains("parked, 0.0 wake-ups a second"));
    assert!(server.program().is_running());
}
