//! A card on the session bus, where other sound servers are asked to release it.

use std::process::Command;

use harness::{Program, Server, command_in, eventually};
use tempfile::TempDir;

/// Starts a bus in a directory; returns its address.
pub(super) fn start_bus(directory: &TempDir) -> (Program, String) {
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
