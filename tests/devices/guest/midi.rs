//! MIDI hardware. Card 3 is virtual: what is written into one of its raw devices comes out of the sequencer's port of
//! that name, and the other way.

use std::process::Command;

use harness::{Program, Server};

use super::{await_cycles, awaited, count, device_state};

/// Ports of the graph.
const MIDI_IN: &str = "midi:Virtual Raw MIDI 3-0 (capture): VirMIDI 3-0";
const MIDI_OUT: &str = "midi:Virtual Raw MIDI 3-1 (playback): VirMIDI 3-1";

#[test]
#[ignore = "in the virtual machine"]
fn the_sequencers_ports_are_midi_ports_and_carry_messages_of_any_length() {
    let server = Server::start(&["--quantum", "256", "--add-device", "seq"]);
    awaited("the ports are there", || server.lsp(&[]).contains(MIDI_OUT).then_some(()));
    server.run("jack_connect", &[MIDI_IN, MIDI_OUT]).expect_success();
    let mut dump = Command::new("amidi");
    dump.args(["-p", "hw:3,1", "-d"]);
    let mut dump = Program::start(dump);
    let long: Vec<u8> = (0..5_000_u32).map(|index| (index % 128) as u8).collect();
    let long = [&[0xf0], &long[..], &[0xf7]].concat();
    let file = server.directory().join("long.syx");
    std::fs::write(&file, &long).expect("a file");
    let in_hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02X}")).collect::<String>();
    let short = [0x90, 0x3c, 0x40, 0x80, 0x3c, 0x00];
    let expected = in_hex(&short) + &in_hex(&long);
    // Until the program listens, nothing is heard.
    awaited("a message gets through", || {
        super::run("amidi", &["-p", "hw:3,0", "-S", "FA"]).expect_success();
        dump.stdout().contains("FA").then_some(())
    });
    super::run("amidi", &["-p", "hw:3,0", "-S", &in_hex(&short)]).expect_success();
    super::run("amidi", &["-p", "hw:3,0", "-s", &file.to_string_lossy()]).expect_success();
    awaited("all of it gets through", || {
        let heard: String = dump.stdout().split_whitespace().collect();
        heard.contains(&expected).then_some(())
    });
    let state = device_state(&server, "midi").expect("a device");
    assert_eq!(count(&state, "lost"), 0, "{state}");
    assert!(count(&state, "µs") < 1_000, "messages leave within a millisecond of their frame: {state}");
}

#[test]
#[ignore = "in the virtual machine"]
fn a_sequencer_port_that_comes_and_goes_is_a_port_of_the_graph_meanwhile() {
    const PORT: &str = "midi:aseqdump (playback): aseqdump";
    let server = Server::start(&["--quantum", "256", "--add-device", "seq"]);
    awaited("the ports are there", || server.lsp(&[]).contains(MIDI_OUT).then_some(()));
    let mut program = Program::start(Command::new("aseqdump"));
    awaited("its port is there", || server.lsp(&[]).contains(PORT).then_some(()));
    server.run("jack_connect", &[MIDI_IN, PORT]).expect_success();
    super::run("amidi", &["-p", "hw:3,0", "-S", "93 3c 40"]).expect_success();
    awaited("it hears the note", || program.stdout().contains("Note on").then_some(()));
    program.terminate();
    awaited("its port is gone", || (!server.lsp(&[]).contains(PORT)).then_some(()));
    await_cycles(&server, 10);
}
