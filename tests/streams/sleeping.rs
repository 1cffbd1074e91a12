//! How rarely anything wakes while a program plays.

use std::time::Duration;

use harness::{Server, eventually, not_run};

use crate::{RATE_HZ, await_playing, file, play, ramps};

/// How often threads of this process have gone to sleep, and so how often they woke. A busy machine
/// takes their CPU besides, which says nothing about them.
pub fn wake_ups(process: u32) -> u64 {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).expect("a process");
    let status = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("status")).ok();
    let counts = tasks.flatten().filter_map(status).flat_map(|status| {
        let counts = status.lines().filter(|line| line.starts_with("voluntary_ctxt_switches:"));
        let number = |line: &str| line.split_whitespace().nth(1)?.parse::<u64>().ok();
        counts.filter_map(number).collect::<Vec<_>>()
    });
    counts.sum()
}

#[test]
fn a_player_and_its_server_wake_three_times_a_second_at_most() {
    // Nothing is recorded here: that would wake a thread that writes.
    let mut server = Server::start(&["--driver", "timer", "--quantum", "256"]);
    let path = file(&server, "song.wav", &ramps(120 * RATE_HZ as usize));
    let player = play(&server, &path, &[]);
    await_playing(&server);
    let processes = [server.program().id(), player.id()];
    let all = || processes.map(wake_ups).iter().sum::<u64>();
    const SECONDS: u64 = 5;
    let mut least = u64::MAX;
    // The server's control thread polls for some seconds after each request.
    let attempts = std::iter::repeat_with(|| {
        let before = all();
        std::thread::sleep(Duration::from_secs(SECONDS));
        all() - before
    });
    let rare = attempts.take(12).any(|count| {
        least = least.min(count);
        count <= 3 * SECONDS
    });
    assert!(rare, "{least} wake-ups in {SECONDS} s");
    let [stream] = &crate::streams(&server)[..] else { panic!("it plays no longer") };
    if stream["missed_frames"] != 0 {
        return not_run("the machine took the driver's CPU for longer than is queued");
    }
    player.terminate();
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
