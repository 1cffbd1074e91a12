//! Streams that record, as clients: what patchbays show of them, and what they record then.

use std::path::PathBuf;
use std::time::Duration;

use harness::{Program, Server, Sound, Stretch, eventually, in_three_attempts, noise};
use rustix::process::Signal;

use crate::patching::{LEFT, heard, pair, playing};
use crate::{RATE_HZ, await_no_stream, await_playing, end_recorder, file, play, server, streams};

const INPUT_LEFT: &str = "consort record:input_FL";
const INPUT_RIGHT: &str = "consort record:input_FR";

/// Starts a recorder of what the device captures.
fn recording(server: &Server) -> (Program, PathBuf) {
    let path = server.directory().join("take.wav");
    let recorder = server.spawn_consort(&["record", &path.to_string_lossy()]);
    let records =
        |stream: &serde_json::Value| stream["direction"] == "record" && stream["plays"] == true;
    eventually("it records", || streams(server).iter().any(records).then_some(()));
    (recorder, path)
}

/// The connections of the recorder's ports: output, input.
fn sources(server: &Server) -> Vec<(String, String)> {
    let listed = server.lsp(&["-c", "consort record"]);
    let mut port = "";
    let mut all = Vec::new();
    for line in listed.lines() {
        match line.strip_prefix("   ") {
            Some(other) => all.push(pair(other, port)),
            None => port = line,
        }
    }
    all
}

fn captured() -> Vec<(String, String)> {
    vec![pair("system:capture_1", INPUT_LEFT), pair("system:capture_2", INPUT_RIGHT)]
}

#[test]
fn a_program_that_records_is_a_client_while_it_does() {
    let server = server(256);
    let (recorder, _) = recording(&server);
    assert_eq!(sources(&server), captured());
    let listed = server.lsp(&["-p", "consort record"]);
    assert!(listed.contains("properties: input,terminal,"), "{listed}");
    let listed = server.consort(&["ls"]).expect_success().stdout;
    assert!(listed.contains(INPUT_LEFT) && listed.contains(INPUT_RIGHT), "{listed}");
    let state = || server.consort_json(&["status"])["device"].clone();
    eventually("silence needs no cycles", || (state() == "deep").then_some(()));
    let monitor = server.spawn_consort(&["record", "--monitor", "/dev/null"]);
    eventually("it is not a client", || (streams(&server).len() == 2).then_some(()));
    assert!(!server.lsp(&[]).contains("consort record-01"));
    monitor.terminate();
    recorder.terminate();
    eventually("it is gone", || (!server.lsp(&[]).contains("consort record")).then_some(()));
}

/// Records a player directly, and through a client of the graph.
fn expect_exact_recordings() -> Result<(), String> {
    let server = server(256);
    let played = noise(1, 30 * RATE_HZ as usize);
    let path = file(&server, "noise.wav", &Sound::of(RATE_HZ, &[played.clone(), played.clone()]));
    let player = play(&server, &path, &[]);
    await_playing(&server);
    let (recorder, recorded) = recording(&server);
    for (source, port) in captured() {
        server.run("jack_disconnect", &[&*source, &*port]).expect_success();
    }
    server.run("jack_connect", &[LEFT, INPUT_LEFT]).expect_success();
    let state = || server.consort_json(&["status"])["device"].clone();
    eventually("cycles are run for it", || (state() == "cycling").then_some(()));
    let client = server.probe(&["thru", "client"]);
    server.run("jack_connect", &[LEFT, "client:in"]).expect_success();
    server.run("jack_connect", &["client:out", INPUT_RIGHT]).expect_success();
    std::thread::sleep(Duration::from_secs(2));
    end_recorder(&server, recorder)?;
    client.terminate();
    eventually("cycles end", || (state() == "deep").then_some(()));
    let recorded = Sound::read(&recorded);
    let xruns = server.status().xruns;
    let device = heard(server, player)?;
    let mut begins = Vec::new();
    for recorded in &recorded.channels {
        let stretch = Stretch::longest(&played, recorded);
        if stretch.frames < RATE_HZ as usize {
            return Err(format!("{stretch:?} of {}, with {xruns} xruns", recorded.len()));
        }
        begins.push(stretch.sent_at - stretch.recorded_at);
    }
    assert_eq!(begins[0], begins[1], "in step, directly and through a client");
    let same = device.channels[0].iter().zip(&played).take_while(|(one, other)| one == other);
    let same = same.count();
    if same < 2 * RATE_HZ as usize {
        return Err(format!("the device plays {same} frames, with {xruns} xruns"));
    }
    Ok(())
}

#[test]
fn a_recorder_has_every_frame_of_the_programs_that_it_is_connected_with() {
    in_three_attempts(expect_exact_recordings);
}

#[test]
fn a_recorder_that_stands_still_costs_no_program_a_frame() {
    in_three_attempts(|| {
        let server = server(256);
        let (player, played) = playing(&server);
        let (recorder, _) = recording(&server);
        server.run("jack_connect", &[LEFT, INPUT_LEFT]).expect_success();
        recorder.signal(Signal::STOP);
        std::thread::sleep(Duration::from_secs(3));
        recorder.signal(Signal::KILL);
        drop(recorder.finish());
        eventually("it is gone", || (!server.lsp(&[]).contains("consort record")).then_some(()));
        let xruns = server.status().xruns;
        let device = heard(server, player)?;
        let pairs = device.channels[0].iter().zip(&played.channels[0]);
        let same = pairs.take_while(|(heard, played)| heard == played).count();
        if same < 3 * RATE_HZ as usize {
            return Err(format!("the device plays {same} frames, with {xruns} xruns"));
        }
        Ok(())
    });
}

/// Records a program of the graph while the driver changes.
fn expect_recording_of_both_drivers() -> Result<(), String> {
    let server = server(256);
    let _source = server.probe(&["source", "client"]);
    let (mut recorder, path) = recording(&server);
    for (source, port) in captured() {
        server.run("jack_disconnect", &[&*source, &*port]).expect_success();
    }
    server.run("jack_connect", &["client:out", INPUT_LEFT]).expect_success();
    server.run("jack_connect", &["system:capture_2", INPUT_RIGHT]).expect_success();
    let (connected, before) = (sources(&server), streams(&server)[0]["number"].clone());
    let second = Duration::from_secs(1);
    for channels in ["3", "2"] {
        std::thread::sleep(second);
        server.consort(&["driver", "timer", "--capture", channels]).expect_success();
    }
    std::thread::sleep(second);
    assert!(recorder.is_running(), "{}", recorder.stderr());
    assert_eq!((streams(&server)[0]["number"].clone(), sources(&server)), (before, connected));
    end_recorder(&server, recorder)?;
    let recorded = Sound::read(&path);
    let heard: Vec<f32> =
        recorded.channels[0].iter().copied().skip_while(|sample| *sample == 0.0).collect();
    // The source's samples count its frames.
    let follows = |one: &f32, other: &f32| (other - one) * 2_097_152.0 == 1.0;
    let runs = heard.chunk_by(follows).map(<[f32]>::len);
    let (long, short): (Vec<_>, Vec<_>) = runs.partition(|frames| *frames > RATE_HZ as usize / 2);
    // At each change the source has a cycle or two that no driver brings.
    if long.len() != 3 || short.iter().sum::<usize>() > RATE_HZ as usize / 10 {
        return Err(format!("runs of {long:?} frames, and {} short ones", short.len()));
    }
    Ok(())
}

#[test]
fn a_recorder_of_the_graph_goes_on_with_another_driver_and_keeps_its_connections() {
    in_three_attempts(expect_recording_of_both_drivers);
}

#[test]
fn connections_of_a_recorder_are_kept_by_name() {
    let directory = tempfile::tempdir().expect("a directory");
    let state = directory.path().join("state.json").to_string_lossy().into_owned();
    let server = Server::start(&["--driver", "timer", "--quantum", "256", "--state", &state]);
    let _client = server.probe(&["thru", "client"]);
    let (recorder, _) = recording(&server);
    server.run("jack_disconnect", &["system:capture_1", INPUT_LEFT]).expect_success();
    server.run("jack_connect", &["client:out", INPUT_LEFT]).expect_success();
    let changed = [pair("client:out", INPUT_LEFT), pair("system:capture_2", INPUT_RIGHT)];
    assert_eq!(sources(&server), changed);
    recorder.terminate();
    await_no_stream(&server);
    let (recorder, _) = recording(&server);
    assert_eq!(sources(&server), changed, "as they were when it ended");
    recorder.terminate();
}

#[test]
fn a_recorder_has_the_latency_of_what_it_records() {
    let server = server(256);
    let (recorder, _) = recording(&server);
    let line = "\tport capture latency = [ 256 256 ] frames\n";
    eventually(line, || server.lsp(&["-l", INPUT_LEFT]).contains(line).then_some(()));
    recorder.terminate();
}
