//! MIDI hardware. Card 3 is virtual: what is written into one of its raw devices comes out of the
//! sequencer's port of that name, and the other way.

use std::process::Command;

use harness::{Program, Server};

use super::{awaited, count, device_state};

/// Ports of the graph that are the sequencer's. What goes into a device's comes out of its raw
/// input, and what goes into its raw output comes out of it.
const MIDI_IN: &str = "midi:Virtual Raw MIDI 3-0 (capture): VirMIDI 3-0";
const MIDI_OUT: &str = "midi:Virtual Raw MIDI 3-1 (playback): VirMIDI 3-1";
/// Ports of the graph that are raw devices'.
const RAW_IN: &str = "raw:VirMIDI (capture): Virtual Raw MIDI 0";
const RAW_OUT: &str = "raw:VirMIDI (playback): Virtual Raw MIDI 1";

const NOTE: [u8; 6] = [0x90, 0x3c, 0x40, 0x80, 0x3c, 0x00];

/// A System Exclusive message of this many data bytes.
fn exclusive(bytes: u32) -> Vec<u8> {
    let data = (0..bytes).map(|index| (index % 128) as u8);
    [0xf0].into_iter().chain(data).chain([0xf7]).collect()
}

/// Two programs at raw devices, of which one receives what the other sends through the connections
/// in between.
struct FarEnds<'a> {
    server: &'a Server,
    from: &'a str,
    dump: Program,
}

impl<'a> FarEnds<'a> {
    fn new(server: &'a Server, from: &'a str, to: &str) -> Self {
        let mut dump = Command::new("amidi");
        dump.args(["-p", to, "-d"]);
        let mut dump = Program::start(dump);
        // Nothing arrives until the program reads.
        awaited("a message gets through", || {
            super::run("amidi", &["-p", from, "-S", "FA"]).expect_success();
            dump.stdout().contains("FA").then_some(())
        });
        Self { server, from, dump }
    }

    /// Waits until all of it has arrived, byte for byte.
    fn carry(&mut self, message: &[u8]) {
        let file = self.server.directory().join("message.syx");
        std::fs::write(&file, message).expect("a file");
        let expected: String = message.iter().map(|byte| format!("{byte:02X}")).collect();
        super::run("amidi", &["-p", self.from, "-s", &file.to_string_lossy()]).expect_success();
        awaited("all of it gets through", || {
            let heard: String = self.dump.stdout().split_whitespace().collect();
            heard.contains(&expected).then_some(())
        });
    }
}

fn has_lost_none(server: &Server, device: &str) -> String {
    let state = device_state(server, device).expect("a device");
    assert_eq!(count(&state, "lost"), 0, "{state}");
    state
}

/// Messages are read within a millisecond of the kernel's timestamp, and leave within one of their
/// frame. Not so long ones: the kernel splits and joins them for longer than that, without
/// releasing this machine's only processor.
fn is_in_time(server: &Server, device: &str) {
    let state = has_lost_none(server, device);
    for what in ["read within ", "sent within "] {
        let (_, rest) = state.split_once(what).unwrap_or_else(|| panic!("not {what}: {state}"));
        let us: u64 = rest
            .split_whitespace()
            .next()
            .and_then(|number| number.parse().ok())
            .expect("a number");
        assert!((1..1_000).contains(&us), "{what}: {state}");
    }
}

/// The card is pulled out, and put back on drop.
struct PulledOut;

impl PulledOut {
    fn new() -> Self {
        // This returns once all programs have closed it.
        Self::order("unbind");
        Self
    }

    fn order(order: &str) {
        let path = format!("/sys/bus/platform/drivers/snd_virmidi/{order}");
        std::fs::write(path, "snd_virmidi.0").expect("the driver of virtual MIDI");
    }
}

impl Drop for PulledOut {
    fn drop(&mut self) {
        Self::order("bind");
    }
}

fn add_raw(server: &Server) {
    server.consort(&["device", "add", "raw", "--name", "raw"]).expect_success();
}

#[test]
#[ignore = "in the virtual machine"]
fn sequencer_ports_carry_messages_of_any_length() {
    let server = Server::start(&["--quantum", "256", "--add-device", "seq"]);
    awaited("the ports are there", || server.lsp(&[]).contains(MIDI_OUT).then_some(()));
    server.run("jack_connect", &[MIDI_IN, MIDI_OUT]).expect_success();
    let mut ends = FarEnds::new(&server, "hw:3,0", "hw:3,1");
    ends.carry(&NOTE);
    is_in_time(&server, "midi");
    ends.carry(&exclusive(5_000));
    has_lost_none(&server, "midi");
}

#[test]
#[ignore = "in the virtual machine"]
fn a_sequencer_port_is_in_the_graph_as_long_as_it_exists() {
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
    server.await_cycles(10);
}

#[test]
#[ignore = "in the virtual machine"]
fn raw_devices_carry_messages_of_any_length_both_ways() {
    let server = Server::start(&["--quantum", "256", "--add-device", "seq"]);
    awaited("the sequencer's ports are there", || server.lsp(&[]).contains(MIDI_OUT).then_some(()));
    add_raw(&server);
    awaited("the raw ports are there", || {
        let ports = server.lsp(&[]);
        (ports.contains(RAW_IN) && ports.contains(RAW_OUT)).then_some(())
    });
    let sequencers = |way: &str, device: u32| {
        format!("midi:Virtual Raw MIDI 3-{device} ({way}): VirMIDI 3-{device}")
    };
    // The far ends are programs at devices 2 and 3; 0 and 1 have the raw ports.
    for (from, to) in [
        (&*sequencers("capture", 2), &*sequencers("playback", 0)),
        (RAW_IN, RAW_OUT),
        (&*sequencers("capture", 1), &*sequencers("playback", 3)),
    ] {
        server.run("jack_connect", &[from, to]).expect_success();
    }
    let mut ends = FarEnds::new(&server, "hw:3,2", "hw:3,3");
    ends.carry(&NOTE);
    is_in_time(&server, "raw");
    is_in_time(&server, "midi");
    ends.carry(&exclusive(40_000));
    has_lost_none(&server, "raw");
    has_lost_none(&server, "midi");
}

#[test]
#[ignore = "in the virtual machine"]
fn a_raw_device_that_another_program_has_is_left_out_until_it_is_free() {
    const PORT: &str = "raw:VirMIDI (capture): Virtual Raw MIDI 2";
    let server = Server::timer(256);
    let mut program = Command::new("amidi");
    program.args(["-p", "hw:3,2,0", "-d"]);
    let program = Program::start(program);
    awaited("it has the device", || {
        std::fs::read_to_string("/proc/asound/card3/midi2")
            .expect("a list")
            .contains("Owner PID")
            .then_some(())
    });
    add_raw(&server);
    let state = || device_state(&server, "raw").expect("a device");
    awaited("it is named", || {
        state().contains("; hw:3,2,0 (input) is in use by amidi (process ").then_some(())
    });
    let ports = server.lsp(&[]);
    assert!(!ports.contains(PORT) && ports.contains(RAW_IN), "{ports}");
    assert!(
        ports.contains("raw:VirMIDI (playback): Virtual Raw MIDI 2"),
        "the output is free: {ports}"
    );
    program.terminate();
    awaited("its port is there", || server.lsp(&[]).contains(PORT).then_some(()));
    awaited("nothing is left out", || (!state().contains("in use")).then_some(()));
}

#[test]
#[ignore = "in the virtual machine"]
fn a_replugged_raw_device_has_its_ports_again() {
    let server = Server::timer(256);
    add_raw(&server);
    let ports = || server.lsp(&[]).lines().filter(|line| line.starts_with("raw:")).count();
    awaited("the ports are there", || (ports() == 8).then_some(()));
    let pulled = PulledOut::new();
    awaited("the ports are gone", || (ports() == 0).then_some(()));
    awaited("which is reported", || {
        device_state(&server, "raw")?.contains(" 0 ports").then_some(())
    });
    drop(pulled);
    awaited("the ports are there again", || {
        (ports() == 8 && server.lsp(&[]).contains(RAW_IN)).then_some(())
    });
    server.await_cycles(10);
}
