//! What the graph promises: order, mixes, loops, and no gap when it changes. All of it in the file
//! driver's `--fast` mode, where no cycle depends on how fast the machine is.
#![forbid(unsafe_code)]

use harness::{Counts, Program, Server, Sound};

const QUANTUM: usize = 64;

/// A sound with one impulse in it, and silence behind.
fn impulse(at: usize, frames: usize) -> Sound {
    let mut samples = vec![0.0; frames];
    samples[at] = 0.5;
    Sound { sample_rate_hz: 48_000, channels: vec![samples] }
}

/// A noise in which no part occurs twice.
fn noise(frames: usize) -> Sound {
    Sound::of(48_000, &[harness::noise(1, frames)])
}

fn fast(sound: &Sound) -> Server {
    Server::playing(sound, &["--quantum", "64", "--fast"])
}

fn thru(server: &Server, name: &str) -> Program {
    server.probe(&["thru", name])
}

fn connect(server: &Server, source: &str, destination: &str) {
    server.consort(&["connect", source, destination]).expect_success();
}

#[test]
fn a_chain_of_programs_passes_every_sample_in_the_same_cycle() {
    let sent = noise(48_000);
    let server = fast(&sent);
    let _chain: Vec<Program> = ["a", "b", "c", "d"].map(|name| thru(&server, name)).into();
    connect(&server, "d:out", "system:playback_1");
    for (source, destination) in [("c:out", "d:in"), ("b:out", "c:in"), ("a:out", "b:in")] {
        connect(&server, source, destination);
    }
    connect(&server, "system:capture_1", "a:in");
    assert_eq!(server.played(), sent);
}

#[test]
fn an_input_with_several_sources_hears_their_sum() {
    let sent = noise(24_000);
    let server = fast(&sent);
    let _programs: Vec<Program> = ["a", "b", "sum"].map(|name| thru(&server, name)).into();
    connect(&server, "sum:out", "system:playback_1");
    connect(&server, "a:out", "sum:in");
    connect(&server, "b:out", "sum:in");
    connect(&server, "a:out", "b:in");
    connect(&server, "system:capture_1", "a:in");
    let heard = server.played();
    let doubled: Vec<f32> = sent.channels[0].iter().map(|sample| sample + sample).collect();
    assert_eq!(heard.channels[0], doubled);
}

#[test]
fn a_loop_is_heard_one_cycle_later_at_the_connection_that_closed_it() {
    let server = fast(&impulse(1000, 2000));
    let _programs: Vec<Program> = ["a", "b"].map(|name| thru(&server, name)).into();
    connect(&server, "a:out", "system:playback_1");
    connect(&server, "a:out", "b:in");
    connect(&server, "b:out", "a:in");
    connect(&server, "system:capture_1", "a:in");
    assert_eq!(
        impulses(&server.played()),
        (0..16).map(|turn| 1000 + turn * QUANTUM).collect::<Vec<_>>()
    );
}

#[test]
fn a_loop_sounds_on_across_the_wrap_of_the_counters() {
    const FRAMES: usize = 20 * 48_000;
    let options = ["--quantum", "64", "--fast"];
    let server = Server::playing_with(&impulse(1000, FRAMES), &options, |command| {
        command.env("CONSORT_COUNTERS_NEAR_END", "10");
    });
    let _programs: Vec<Program> = ["a", "b"].map(|name| thru(&server, name)).into();
    connect(&server, "a:out", "system:playback_1");
    connect(&server, "a:out", "b:in");
    connect(&server, "b:out", "a:in");
    connect(&server, "system:capture_1", "a:in");
    let heard = impulses(&server.played());
    let turns = heard.iter().enumerate();
    let lost = turns.map(|(turn, at)| at - turn * QUANTUM).find(|first| *first != 1000);
    assert_eq!((lost, heard.len()), (None, (FRAMES - 1000).div_ceil(QUANTUM)));
}

#[test]
fn a_client_connected_with_itself_hears_its_own_last_cycle() {
    let server = fast(&impulse(500, 1500));
    let _program = thru(&server, "a");
    connect(&server, "a:out", "system:playback_1");
    connect(&server, "a:out", "a:in");
    connect(&server, "system:capture_1", "a:in");
    assert_eq!(
        impulses(&server.played()),
        (0..16).map(|turn| 500 + turn * QUANTUM).collect::<Vec<_>>()
    );
}

#[test]
fn a_monitor_port_carries_its_playback_port_a_cycle_later() {
    let sent = noise(24_000);
    let options = ["--quantum", "64", "--fast", "--playback", "2", "--monitors"];
    let server = Server::playing(&sent, &options);
    let _program = thru(&server, "a");
    connect(&server, "system:monitor_1", "system:playback_2");
    connect(&server, "a:out", "system:playback_1");
    let physical = server.run("jack_lsp", &["-p"]).expect_success().stdout;
    let of_monitor = physical.lines().skip_while(|line| *line != "system:monitor_2").nth(1);
    assert_eq!(of_monitor.map(str::trim), Some("properties: output,"), "{physical}");
    // It begins, and ends with the file.
    connect(&server, "system:capture_1", "a:in");
    let heard = server.played();
    assert_eq!(heard.channels[0], sent.channels[0]);
    let (before, after) = heard.channels[1].split_at(QUANTUM);
    assert!(before.iter().all(|sample| *sample == 0.0));
    assert_eq!(after, &sent.channels[0][..sent.channels[0].len() - QUANTUM]);
}

fn impulses(sound: &Sound) -> Vec<usize> {
    let samples = sound.channels[0].iter().enumerate();
    samples.filter(|(_, sample)| **sample != 0.0).map(|(frame, _)| frame).collect()
}

#[test]
fn a_stream_has_no_gap_while_the_graph_around_it_changes() {
    let server = Server::recording(&["--quantum", "64", "--fast"]);
    let _source = server.probe(&["source", "source"]);
    let check = server.probe(&["check", "check", "--from", "source:out"]);
    connect(&server, "source:out", "system:playback_1");
    for round in 0..10 {
        let other = thru(&server, "other");
        for _ in 0..10 {
            connect(&server, "source:out", "other:in");
            connect(&server, "other:out", "system:playback_2");
            server.consort(&["disconnect", "source:out", "other:in"]).expect_success();
            server.consort(&["disconnect", "other:out", "system:playback_2"]).expect_success();
        }
        if round % 2 == 0 {
            other.terminate().expect_success();
        }
    }
    let counts = Counts::of(check);
    assert!(counts.cycles > 100, "{counts:?}");
    assert_eq!((counts.silent, counts.wrong, counts.missed), (0, 0, 0), "{counts:?}");
}
