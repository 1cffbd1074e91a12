//! A card on the session bus, where other sound servers are asked to release it.

use std::process::Command;

use harness::{Program, Server, binary, command_in, eventually};
use tempfile::TempDir;

use crate::guest::{awaited, driver};

/// Starts a bus in a directory; returns its address.
pub(in crate::guest) fn start_bus(directory: &TempDir) -> (Program, String) {
    let address = format!("unix:path={}", directory.path().join("bus").display());
    let mut daemon = Command::new("dbus-daemon");
    daemon.args(["--session", "--nofork", "--nopidfile", "--address", &address]);
    let daemon = Program::start(daemon);
    eventually("the bus is there", || directory.path().join("bus").exists().then_some(()));
    (daemon, address)
}

#[test]
#[ignore = "in the virtual machine"]
fn a_card_is_reserved_exactly_while_a_driver_has_it() {
    let place = TempDir::new().expect("a temporary directory");
    let (_daemon, address) = start_bus(&place);
    let directory = TempDir::with_prefix("consort-test-").expect("a temporary directory");
    let on_bus = |command: &mut Command| {
        command.env("DBUS_SESSION_BUS_ADDRESS", &address);
    };
    let server = Server::start_with(directory, &["--quantum", "512"], on_bus);
    let owns = || {
        let mut ask = command_in(server.directory(), "gdbus".as_ref());
        ask.env("DBUS_SESSION_BUS_ADDRESS", &address);
        ask.args(["call", "--session", "--dest", "org.freedesktop.DBus", "--object-path", "/"]);
        ask.args([
            "--method",
            "org.freedesktop.DBus.NameHasOwner",
            "org.freedesktop.ReserveDevice1.Audio1",
        ]);
        Program::start(ask).finish().expect_success().stdout.contains("true")
    };
    assert!(!owns(), "of a timer");
    server.consort(&["driver", "alsa", "--device", "hw:1,0"]).expect_success();
    assert!(owns(), "of the card");
    server.consort(&["driver", "timer"]).expect_success();
    eventually("it is given back", || (!owns()).then_some(()));
}

#[test]
#[ignore = "in the virtual machine"]
fn a_card_is_given_up_to_a_program_that_asks_and_comes_back() {
    let place = TempDir::new().expect("a temporary directory");
    let (_daemon, address) = start_bus(&place);
    let directory = TempDir::with_prefix("consort-test-").expect("a temporary directory");
    let on_bus = |command: &mut Command| {
        command.env("DBUS_SESSION_BUS_ADDRESS", &address);
    };
    let options = ["--driver", "alsa", "--device", "hw:1,0,0", "--quantum", "512"];
    let options = [&options[..], &["--reserve-priority", "0"]].concat();
    let server = Server::start_with(directory, &options, on_bus);
    let play = || {
        let sound =
            ["-q", "-D", "hw:1,0,0", "-f", "S16_LE", "-r", "48000", "-c", "2", "-s", "4800"];
        super::super::run("aplay", &[&sound[..], &["/dev/zero"]].concat()).code == Some(0)
    };
    let is_away = || driver(&server).contains("not there");
    // While it is parked, without programs, and while it runs, with one.
    let mut program = None;
    for _ in 0..2 {
        awaited("the card is there", || (!is_away()).then_some(()));
        assert!(!play(), "the server has it");
        // Its standard input does not end.
        let mut asking = Command::new("sh");
        on_bus(&mut asking);
        let script = "test -p \"$0\" || mkfifo \"$0\"; exec \"$1\" reserve 1 <>\"$0\"";
        asking.args(["-c", script]).args([&place.path().join("pipe"), &binary("consort")]);
        let mut asking = Program::start(asking);
        awaited("it is given up", || asking.stdout().contains("ours").then_some(()));
        assert!(play(), "another program has it");
        program.get_or_insert_with(|| server.spawn("jack_metro", &["-b", "120"]));
        awaited("it is away", || is_away().then_some(()));
        server.await_cycles(20);
        asking.terminate();
    }
    awaited("the card is there", || (!is_away()).then_some(()));
    assert!(!play(), "the server has it again");
}
