//! All clients roll from the same frame, in the same cycle, wherever the request comes
//! from.

use harness::{Guard, Program, Server, Sound};

const QUANTUM: usize = 256;
const CYCLES: usize = 160;

/// What the conductor hears: a mark in the middle of each of these cycles.
const MARKS: [(usize, f32); 4] = [(20, 1.0), (60, 0.5), (100, 0.25), (120, 1.0)];
/// The frame to which the second mark moves the transport.
const PLACE: usize = 100_000;

/// A sample that encodes its frame, as the probe's.
fn sample_of(frame: usize) -> f32 {
    ((frame & 0xf_ffff) + 1) as f32 / 2_097_152.0
}

/// What followers play if clients are ready in the `asked`th cycle in which they are asked.
fn expected(asked: usize) -> Vec<f32> {
    let mut sound = vec![0.0; CYCLES * QUANTUM];
    let mut frame = 0;
    // The cycle after the mark starts, and `asked` cycles after it the piece rolls.
    for (begin, end, place) in [(20, 60, 0), (60, 100, PLACE), (120, CYCLES - 1, usize::MAX)] {
        frame = if place == usize::MAX { frame } else { place };
        for sample in &mut sound[(begin + 1 + asked) * QUANTUM..(end + 1) * QUANTUM] {
            *sample = sample_of(frame);
            frame += 1;
        }
    }
    sound
}

/// What two followers play to a conductor's marks; the second is ready when asked for the `asked`th
/// time.
fn played(asked: usize, options: &[&str]) -> [Vec<f32>; 2] {
    let mut marks = vec![0.0; CYCLES * QUANTUM];
    for (cycle, mark) in MARKS {
        marks[cycle * QUANTUM + cycle] = mark;
    }
    let silence = vec![0.0; CYCLES * QUANTUM];
    let server = Server::playing(&Sound::of(48_000, &[marks, silence]), options);
    let asked = asked.to_string();
    let followers: [Program; 2] =
        [server.probe(&["follow", "quick"]), server.probe(&["follow", "slow", "--slow", &asked])];
    server.run("jack_connect", &["quick:out", "system:playback_1"]).expect_success();
    server.run("jack_connect", &["slow:out", "system:playback_2"]).expect_success();
    let _conductor = server.probe(&["conduct", "conductor", "--from", "system:capture_1"]);
    let recorded = server.played();
    drop(followers);
    recorded.channels.try_into().expect("two channels")
}

const FAST: [&str; 3] = ["--quantum", "256", "--fast"];

#[test]
fn every_client_rolls_from_the_same_frame_in_the_same_cycle() {
    let expected = expected(1);
    for (channel, recorded) in played(1, &FAST).iter().enumerate() {
        let wrong = recorded.iter().zip(&expected).position(|(found, wanted)| found != wanted);
        assert_eq!((recorded.len(), wrong), (expected.len(), None), "follower {channel}");
    }
}

#[test]
fn all_clients_start_to_roll_with_the_slowest() {
    let expected = expected(5);
    for (channel, recorded) in played(5, &FAST).iter().enumerate() {
        let wrong = recorded.iter().zip(&expected).position(|(found, wanted)| found != wanted);
        assert_eq!((recorded.len(), wrong), (expected.len(), None), "follower {channel}");
    }
}

#[test]
fn transport_calls_in_a_cycle_touch_no_heap_lock_or_stream() {
    let (server, guard) = Guard::server(&["--quantum", "128"]);
    let _followers = [
        guard.probe(&server, &["follow", "slow", "--slow", "3"]),
        guard.probe(&server, &["lead", "leader"]),
        guard.probe(&server, &["conduct", "conductor", "--from", "system:capture_1"]),
    ];
    for frame in ["0", "1000", "2000"] {
        for action in [&["start"][..], &["locate", frame], &["stop"]] {
            server.consort(&[&["transport"], action].concat()).expect_success();
            harness::eventually("a cycle with it", || {
                let state = crate::transport(&server)["state"].clone();
                let wanted = if action == ["stop"] { "stopped" } else { "rolling" };
                (state == wanted).then_some(())
            });
        }
    }
    for on in ["y", "n"] {
        server.run("jack_freewheel", &[on]).expect_success();
    }
    assert_eq!(guard.guarded_processes(), 4, "the server and three probes");
}
