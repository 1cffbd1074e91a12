//! Tied ports: an output carries what an input receives, without any action of the program.

use harness::{Program, Server, Sound, Stretch, c_program, eventually, noise};

/// Starts the program that ties its ports, and waits until it has.
fn start(server: &Server) -> Program {
    let program = c_program("effects/tie.c");
    let untie = server.directory().join("untie");
    let mut tied = server.spawn(&program, &["tied", &untie.to_string_lossy()]);
    eventually("the ports are tied", || {
        assert!(tied.is_running(), "{}", tied.stderr());
        tied.stdout().ends_with("tied\n").then_some(())
    });
    assert_eq!(tied.stdout(), "-1 -1 -1 -1 -1 -1 -1\ntied\n", "what cannot be tied is refused");
    tied
}

#[test]
fn a_tied_output_carries_every_frame_of_its_input() {
    let sent = Sound::of(48_000, &[noise(1, 100_077)]);
    let server = Server::playing(&sent, &["--quantum", "256", "--fast"]);
    let _tied = start(&server);
    server.run("jack_connect", &["tied:out", "system:playback_1"]).expect_success();
    // The server begins now.
    server.run("jack_connect", &["system:capture_1", "tied:in"]).expect_success();
    let recorded = server.played();
    let stretch = Stretch::longest(&sent.channels[0], &recorded.channels[0]);
    assert!(recorded.channels[0] == sent.channels[0], "{stretch:?}");
}

#[test]
fn a_tied_output_carries_events_until_it_is_untied() {
    let server = Server::timer(256);
    let mut tied = start(&server);
    let mut dump = server.spawn("jack_midi_dump", &["dump"]);
    server.await_active("dump");
    server.run("jack_connect", &["tied:events out", "dump:input"]).expect_success();
    let _sequencer = server.spawn("jack_midiseq", &["sequencer", "4800", "0", "61", "2400"]);
    server.await_active("sequencer");
    server.run("jack_connect", &["sequencer:out", "tied:events in"]).expect_success();
    eventually("notes pass", || (dump.stdout().matches("90 3d 40").count() > 2).then_some(()));
    std::fs::write(server.directory().join("untie"), "").expect("a file");
    eventually("the ports are untied", || tied.stdout().contains("untied 0 0").then_some(()));
}
