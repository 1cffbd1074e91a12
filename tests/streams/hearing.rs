//! Programs of the graph that hear streams.

use std::path::Path;

use harness::{Program, Server, Sound, Stretch, eventually, in_three_attempts, noise};

use crate::patching::{LEFT, RIGHT, heard, playing};
use crate::{RATE_HZ, await_no_stream, await_playing, file, play, server, streams};

/// Records two seconds of a player with `jack_rec`, and everything that the device plays.
fn expect_exact_recordings() -> Result<(), String> {
    let server = server(256);
    let played = [1, 2].map(|seed| noise(seed, 30 * RATE_HZ as usize));
    let path = file(&server, "noise.wav", &Sound::of(RATE_HZ, &played));
    let player = play(&server, &path, &[]);
    await_playing(&server);
    let recording = server.directory().join("heard.wav").to_string_lossy().into_owned();
    let arguments = ["-f", &recording, "-d", "2", "-b", "16", LEFT, RIGHT];
    server.run("jack_rec", &arguments).expect_success();
    eventually("the device sleeps again", || {
        (server.consort_json(&["status"])["device"] == "deep").then_some(())
    });
    let recorded = Sound::read(Path::new(&recording));
    let xruns = server.status().xruns;
    let device = heard(server, player)?;
    let mut begins = Vec::new();
    for (played, recorded) in played.iter().zip(&recorded.channels) {
        let stretch = Stretch::longest(played, recorded);
        if stretch.frames < RATE_HZ as usize {
            return Err(format!("{stretch:?} of {}", recorded.len()));
        }
        begins.push(stretch.sent_at - stretch.recorded_at);
    }
    assert_eq!(begins[0], begins[1], "both channels of the same frames");
    for (played, heard) in played.iter().zip(&device.channels) {
        let same = heard.iter().zip(played).take_while(|(heard, played)| heard == played).count();
        if same < 2 * RATE_HZ as usize {
            return Err(format!("the device plays {same} frames, with {xruns} xruns"));
        }
    }
    Ok(())
}

#[test]
fn a_client_records_a_stream_frame_by_frame_while_the_device_plays_it() {
    in_three_attempts(expect_exact_recordings);
}

/// Slabs that a process has mapped.
fn slabs(program: &Program) -> usize {
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", program.id())).expect("a process");
    maps.lines().filter(|line| line.contains("memfd:consort-slab")).count()
}

fn descriptors(process: u32) -> usize {
    std::fs::read_dir(format!("/proc/{process}/fd")).expect("a process").count()
}

#[test]
fn a_stream_that_has_ended_leaves_its_listener_and_the_server_no_memory() {
    let mut server = Server::start(&["--driver", "timer", "--quantum", "256"]);
    let listener = server.probe(&["thru", "listener"]);
    let round = |server: &Server| {
        let (player, _) = playing(server);
        server.run("jack_connect", &[LEFT, "listener:in"]).expect_success();
        let before = slabs(&listener);
        eventually("it hears the stream", || (slabs(&listener) > 1).then_some(()));
        assert!(before <= 2, "{before}");
        player.terminate();
        await_no_stream(server);
        eventually("it is unmapped", || (slabs(&listener) == 1).then_some(()));
    };
    round(&server);
    let process = server.program().id();
    let open = descriptors(process);
    (0..4).for_each(|_| round(&server));
    eventually("nothing is left", || (descriptors(process) <= open).then_some(()));
}

#[test]
fn ports_of_streams_have_the_latency_of_what_hears_them() {
    let server = server(256);
    let (player, _) = playing(&server);
    let _listener = server.probe(&["thru", "listener"]);
    let latency = |frames: u32| {
        let line = format!("\tport playback latency = [ {frames} {frames} ] frames\n");
        eventually(&line, || server.lsp(&["-l", LEFT]).contains(&line).then_some(()));
    };
    // Two cycles, as from any port in async mode.
    latency(512);
    server.run("jack_disconnect", &[LEFT, "system:playback_1"]).expect_success();
    latency(0);
    server.run("jack_connect", &[LEFT, "listener:in"]).expect_success();
    server.run("jack_connect", &["listener:out", "system:playback_1"]).expect_success();
    latency(512);
    player.terminate();
}

#[test]
fn a_stream_that_no_client_hears_lets_the_device_sleep() {
    let server = server(256);
    let (player, _) = playing(&server);
    let listener = server.probe(&["thru", "listener"]);
    server.run("jack_connect", &[LEFT, "listener:in"]).expect_success();
    let state = || server.consort_json(&["status"])["device"].clone();
    eventually("cycles are run", || (state() == "cycling").then_some(()));
    listener.terminate();
    eventually("and end", || (state() == "deep").then_some(()));
    assert_eq!(streams(&server).len(), 1);
    player.terminate();
}
