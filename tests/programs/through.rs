//! Programs that copy their input: the server records what it played, sample for sample.

use std::path::Path;

use harness::{
    Program, Server, Sound, Stretch, c_program, example, in_three_attempts, noise, python,
};

const FRAMES: usize = 5 * 48_000 + 77;

/// Plays noise through a program, as fast as it can, and asserts that every frame is at its place.
fn demand_every_frame(options: &[&str], ports: [&str; 2], start: impl Fn(&Server) -> Program) {
    let [input, output] = ports;
    for timing in [&["--quantum", "256"][..], &["--quantum", "333", "--sync"]] {
        let sent = Sound::of(48_000, &[noise(1, FRAMES)]);
        let server = Server::playing(&sent, &[timing, options, &["--fast"]].concat());
        let mut program = start(&server);
        let client = output.split(':').next().expect("a client's name");
        server.await_active(client);
        server.run("jack_connect", &[output, "system:playback_1"]).expect_success();
        // The server begins now.
        server.run("jack_connect", &["system:capture_1", input]).expect_success();
        let recorded = server.played();
        let stretch = Stretch::longest(&sent.channels[0], &recorded.channels[0]);
        assert!(
            recorded.channels[0] == sent.channels[0],
            "{timing:?}: {stretch:?}, {}",
            program.stderr()
        );
    }
}

#[test]
fn every_frame_passes_through_jack_thru() {
    // It would connect itself, to the capture ports first. An option makes it believe that it has,
    // and the test connects it.
    let options = ["--self-connect", "ignore-all", "--playback", "2"];
    demand_every_frame(&options, ["jack_thru:input_1", "jack_thru:output_1"], |server| {
        server.spawn("jack_thru", &[])
    });
}

#[test]
fn both_channels_pass_through_jack_thru() {
    let sent = Sound::of(48_000, &[noise(1, 3 * 48_000), noise(2, 3 * 48_000)]);
    in_three_attempts(|| {
        let server = Server::playing(&sent, &["--quantum", "256"]);
        let _program = server.spawn("jack_thru", &[]);
        let recorded = server.played();
        for (channel, (sent, recorded)) in sent.channels.iter().zip(&recorded.channels).enumerate()
        {
            let stretch = Stretch::longest(sent, recorded);
            if stretch.frames < 48_000 || stretch.sent_at != stretch.recorded_at {
                return Err(format!("channel {channel}: {stretch:?}"));
            }
        }
        Ok(())
    });
}

const PORTS: [&str; 2] = ["through:in", "through:out"];

#[test]
fn every_frame_passes_through_a_program_of_pythons_jack_client() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/clients/through.py");
    demand_every_frame(&[], PORTS, |server| {
        let mut command = server.command(&python().to_string_lossy());
        command.arg(&script);
        Program::start(command)
    });
}

#[test]
fn every_frame_passes_through_a_program_of_rusts_jack_crate() {
    demand_every_frame(&[], PORTS, |server| {
        server.spawn(env!("CARGO_BIN_EXE_jack-crate-through"), &[])
    });
}

#[test]
fn every_frame_passes_through_a_program_in_c() {
    demand_every_frame(&[], PORTS, |server| {
        server.spawn(&c_program("programs/clients/through.c"), &[])
    });
}

#[test]
fn every_frame_passes_through_the_gain_example_at_a_factor_of_one() {
    demand_every_frame(&[], ["gain:in", "gain:out"], |server| {
        server.spawn(&example("gain").to_string_lossy(), &["--factor", "1", "--seconds", "60"])
    });
}
