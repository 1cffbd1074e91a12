//! What else happens to the device while a program plays.

use std::time::{Duration, Instant};

use harness::{Program, Server, Sound, eventually, in_three_attempts, not_run};
use rustix::process::Signal;

use crate::{RATE_HZ, await_no_stream, await_playing, file, play, server, streams};

/// Halves from 0 to 3, so that what `probe source` adds can be told from them: that is below a half
/// and a multiple of 2^-21.
fn halves(frames: usize) -> Sound {
    let channel = |factor: usize| (0..frames).map(move |at| (at * factor / 5 % 7) as f32 / 2.0);
    Sound::of(RATE_HZ, &[channel(3).collect(), channel(4).collect()])
}

/// A program of the graph plays on the left for a while.
fn join_and_leave(server: &Server) {
    let source = server.probe(&["source", "joins"]);
    server.consort(&["connect", "joins:out", "system:playback_1"]).expect_success();
    server.await_cycles(5);
    source.terminate();
    eventually("it has left", || server.status().clients.is_empty().then_some(()));
}

#[test]
fn programs_of_the_graph_that_come_and_go_change_no_frame_of_a_player() {
    in_three_attempts(|| come_and_go(1024, 8, 3));
}

/// At a quantum of musicians, and for long: the server changes between cycles and what it renders
/// ahead a hundred times.
#[test]
#[ignore = "minutes, on a machine without other work: cargo xtask soak --joins"]
fn a_thousand_programs_that_come_and_go_change_no_frame_of_a_player() {
    if let Err(reason) = come_and_go(64, 1000, 10) {
        not_run(&reason);
    }
}

/// Programs join and leave beside a player, this many one after the other; before each
/// `deep_each`th, the device has come to play far ahead again.
///
/// # Errors
/// If the machine kept the driver from its CPU.
fn come_and_go(quantum: u32, times: usize, deep_each: usize) -> Result<(), String> {
    let server = server(quantum);
    let played = halves((40 + times / 2) * RATE_HZ as usize);
    let path = file(&server, "played.wav", &played);
    let player = play(&server, &path, &[]);
    await_playing(&server);
    for time in 0..times {
        if time % deep_each == 0 {
            eventually("the device is deep", || {
                (server.consort_json(&["status"])["device"] == "deep").then_some(())
            });
        }
        join_and_leave(&server);
    }
    // Until what is queued of the last one is heard.
    server.await_cycles(5);
    let xruns = server.status().xruns;
    server.check_in_time()?;
    player.terminate();
    await_no_stream(&server);
    let recorded = server.recorded();
    if xruns > 0 {
        return Err(format!("the machine took the driver's CPU for a cycle: {xruns} xruns"));
    }
    check(&recorded, &played, quantum, times);
    Ok(())
}

/// The right side is the file alone; the left has the program's cycles in it, whole and in a row
/// for each time that it came.
fn check(recorded: &Sound, played: &Sound, quantum: u32, times: usize) {
    let begin = recorded.channels[1].iter().position(|sample| *sample != 0.0).expect("sound");
    let first = played.channels[1].iter().position(|sample| *sample != 0.0).expect("sound");
    let offset = begin - first;
    let frames = recorded.channels[1][offset..].iter().zip(&played.channels[1]);
    let same = frames.take_while(|(recorded, played)| recorded == played).count();
    // It was ended somewhere, in a fade of 5 ms.
    let rest = &recorded.channels[1][offset + same..];
    let fade = rest.iter().rposition(|sample| *sample != 0.0).map_or(0, |last| last + 1);
    assert!(fade <= 240, "{same} frames are right, and {fade} more are heard");
    // A fade can begin at samples of silence.
    let added: Vec<f32> = recorded.channels[0][offset..][..same - 16]
        .iter()
        .zip(&played.channels[0])
        .map(|(recorded, played)| recorded - played)
        .collect();
    let mut runs = Vec::new();
    let mut at = 0;
    while at < added.len() {
        let run = added[at..].iter().take_while(|sample| **sample != 0.0).count();
        if run > 0 {
            runs.push(&added[at..at + run]);
        }
        at += run.max(1);
    }
    assert_eq!(runs.len(), times, "once for each time");
    for run in runs {
        assert_eq!(run.len() % quantum as usize, 0, "whole cycles");
        let number = |sample: f32| (sample * 2_097_152.0) as u32;
        let counts = run.windows(2).all(|pair| number(pair[1]) == number(pair[0]) % (1 << 20) + 1);
        assert!(counts, "each frame after the other");
    }
}

#[test]
fn a_player_that_is_killed_fades_out() {
    let level = Sound::of(RATE_HZ, &[vec![0.5; 10 * RATE_HZ as usize], vec![-0.5; 480_000]]);
    let faded = |end: fn(Program)| {
        in_three_attempts(|| {
            let server = server(256);
            let path = file(&server, "level.wav", &level);
            let player = play(&server, &path, &[]);
            await_playing(&server);
            end(player);
            await_no_stream(&server);
            server.check_rendered()?;
            let recorded = server.recorded();
            for channel in &recorded.channels {
                let sounding = channel.iter().skip_while(|sample| **sample == 0.0);
                let levels: Vec<f32> = sounding.map(|sample| sample.abs()).collect();
                let full = levels.iter().take_while(|level| **level == 0.5).count();
                let steps = levels.windows(2).map(|pair| pair[0] - pair[1]);
                assert!(full > 0 && levels.len() < 400_000, "it was ended");
                // A fade has 240 frames.
                let steep = steps.fold(0.0, |steepest: f32, step| steepest.max(step.abs()));
                assert!(steep <= 0.5 / 240.0, "a step of {steep} after {full} frames");
                assert_eq!(levels.last(), Some(&0.0), "and then silence");
            }
            Ok(())
        });
    };
    faded(|player| {
        player.signal(Signal::KILL);
        drop(player.finish());
    });
    faded(|player| drop(player.terminate()));
}

#[test]
fn a_muted_player_stays_muted_with_another_driver() {
    let server = server(256);
    let path = file(&server, "long.wav", &halves(30 * RATE_HZ as usize));
    let player = play(&server, &path, &[]);
    await_playing(&server);
    server.consort(&["volume", "consort play", "0.5"]).expect_success();
    server.consort(&["mute", "consort play"]).expect_success();
    for channels in ["5", "2"] {
        let before = streams(&server)[0]["number"].clone();
        server.consort(&["driver", "timer", "--playback", channels]).expect_success();
        let stream = eventually("it plays on the other driver", || {
            streams(&server).into_iter().find(|stream| stream["number"] != before)
        });
        assert_eq!((&stream["volume"], &stream["muted"]), (&0.5.into(), &true.into()));
    }
    player.terminate();
}

#[test]
fn a_player_goes_on_with_another_driver_where_it_was_heard_last() {
    let server = server(256);
    let path = file(&server, "long.wav", &halves(10 * RATE_HZ as usize));
    let begun = Instant::now();
    let player = play(&server, &path, &[]);
    await_playing(&server);
    std::thread::sleep(Duration::from_secs(5));
    server.consort(&["driver", "timer", "--playback", "5"]).expect_success();
    await_playing(&server);
    server.consort(&["driver", "timer", "--playback", "2"]).expect_success();
    await_playing(&server);
    assert_eq!(streams(&server).len(), 1, "it is one stream");
    player.finish().expect_success();
    // From the beginning, it would have taken five seconds more.
    let took = begun.elapsed().as_secs_f64();
    assert!((10.0..14.5).contains(&took), "{took} s for ten seconds of sound");
    await_no_stream(&server);
}
