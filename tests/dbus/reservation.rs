//! Sound cards are reserved on the session bus, as by other sound servers.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use harness::{Program, binary, eventually};

use crate::bus::Bus;

/// A card that no machine here has: only its name on the bus matters.
const CARD: &str = "77";
const NAME: &str = "org.freedesktop.ReserveDevice1.Audio77";
const OBJECT: &str = "/org/freedesktop/ReserveDevice1/Audio77";

/// Another sound server, which releases its card on request if it is configured to, and prints when
/// it is asked.
const OWNER: &str = r#"
import sys, dbus, dbus.service, dbus.mainloop.glib
from gi.repository import GLib
dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
bus = dbus.SessionBus()
name = dbus.service.BusName(sys.argv[1], bus, allow_replacement=True, do_not_queue=True)
class Device(dbus.service.Object):
    @dbus.service.method("org.freedesktop.ReserveDevice1", in_signature="i", out_signature="b")
    def RequestRelease(self, priority):
        print("asked", priority, flush=True)
        return sys.argv[3] == "lets-go"
    @dbus.service.method("org.freedesktop.DBus.Properties", in_signature="ss", out_signature="v")
    def Get(self, interface, name):
        return "another server" if name == "ApplicationName" else 0
Device(bus, sys.argv[2])
print("owns", flush=True)
GLib.MainLoop().run()
"#;

/// Starts to reserve the card. Also returns the pipe that is its standard input, which does not
/// end.
fn start(bus: &Bus, options: &[&str]) -> (Program, PathBuf) {
    static PIPES: AtomicU32 = AtomicU32::new(0);
    let name = format!("pipe-{}", PIPES.fetch_add(1, Ordering::Relaxed));
    let pipe = bus.directory().join(name);
    let script = "mkfifo \"$0\"; exec \"$@\" <>\"$0\"";
    let mut command = bus.command("sh");
    command.args(["-c", script]).args([&pipe, &binary("consort")]);
    command.args(["reserve", CARD]).args(options);
    (Program::start(command), pipe)
}

/// Same as [`start`], and waits for the answer.
fn reserve_with(bus: &Bus, options: &[&str]) -> (Program, PathBuf) {
    let (mut reserving, pipe) = start(bus, options);
    eventually("there is an answer", || reserving.stdout().contains('\n').then_some(()));
    (reserving, pipe)
}

fn reserve(bus: &Bus) -> Program {
    reserve_with(bus, &[]).0
}

fn await_line(program: &mut Program, line: &str) {
    eventually(line, || {
        assert!(program.is_running(), "{}", program.stderr());
        program.stdout().lines().any(|printed| printed == line).then_some(())
    });
}

/// Tells the process behind `pipe` that the card is closed.
fn say_closed(pipe: &Path, request: u32) {
    let mut pipe = std::fs::OpenOptions::new().write(true).open(pipe).expect("the pipe");
    writeln!(pipe, "closed {request}").expect("there is room");
}

fn owner(bus: &Bus, manner: &str) -> Program {
    let mut command = bus.command("/usr/bin/python3");
    command.args(["-c", OWNER, NAME, OBJECT, manner]);
    let mut owner = Program::start(command);
    eventually("another server owns the card", || {
        assert!(owner.is_running(), "{}", owner.stderr());
        owner.stdout().contains("owns").then_some(())
    });
    owner
}

fn ask(bus: &Bus, method: &str, arguments: &[&str]) -> String {
    let call = ["call", "--session", "--dest", NAME, "--object-path", OBJECT, "--method", method];
    bus.run("gdbus", &[&call, arguments].concat()).expect_success().stdout
}

#[test]
fn a_card_is_reserved_as_long_as_it_is_needed() {
    let bus = Bus::start();
    let mut first = reserve(&bus);
    assert_eq!(first.stdout(), "ours\n");
    assert!(
        ask(&bus, "org.freedesktop.ReserveDevice1.RequestRelease", &["1000"]).contains("false")
    );
    let properties = "org.freedesktop.DBus.Properties.Get";
    let interface = "org.freedesktop.ReserveDevice1";
    for (property, value) in [("ApplicationName", "consort"), ("Priority", "2147483647")] {
        let said = ask(&bus, properties, &[interface, property]);
        assert!(said.contains(value), "{property}: {said}");
    }
    assert_eq!(reserve(&bus).stdout(), "refused consort\n");
    first.terminate();
    eventually("the next one has it", || (reserve(&bus).stdout() == "ours\n").then_some(()));
}

#[test]
fn a_server_that_has_the_card_is_asked_to_let_it_go() {
    let bus = Bus::start();
    let mut owner = owner(&bus, "lets-go");
    assert_eq!(reserve(&bus).stdout(), "ours\n");
    eventually("it was asked", || owner.stdout().contains("asked 2147483647").then_some(()));
}

#[test]
fn a_server_that_keeps_its_card_is_named() {
    let bus = Bus::start();
    let mut owner = owner(&bus, "keeps");
    assert_eq!(reserve(&bus).stdout(), "refused another server\n");
    eventually("it was asked", || owner.stdout().contains("asked").then_some(()));
}

#[test]
fn a_card_is_given_up_to_a_higher_priority_and_taken_back() {
    let bus = Bus::start();
    let (mut first, pipe) = reserve_with(&bus, &["--priority=-5"]);
    for (request, back) in [(0, 1), (1, 2)] {
        let (mut second, _) = start(&bus, &[]);
        await_line(&mut first, &format!("asked {request} consort"));
        say_closed(&pipe, request);
        await_line(&mut second, "ours");
        assert_eq!(first.stdout().matches("ours").count(), back, "it has not got it back");
        second.terminate();
        eventually("it is taken back", || {
            (first.stdout().matches("ours").count() == back + 1).then_some(())
        });
    }
    assert_eq!(reserve(&bus).stdout(), "refused consort\n", "it is not closed in time");
}

#[test]
fn a_card_that_is_not_closed_in_time_is_kept() {
    let bus = Bus::start();
    let (mut first, pipe) = reserve_with(&bus, &["--priority=10"]);
    let method = "org.freedesktop.ReserveDevice1.RequestRelease";
    assert!(ask(&bus, method, &["10"]).contains("false"), "not higher");
    assert_eq!(first.stdout(), "ours\n");
    assert!(ask(&bus, method, &["11"]).contains("false"), "no answer");
    await_line(&mut first, "asked 0 gdbus");
    eventually("it is kept", || first.stdout().ends_with("gdbus\nours\n").then_some(()));
    // An answer that comes too late does not count for the next request.
    say_closed(&pipe, 0);
    assert!(ask(&bus, method, &["11"]).contains("false"), "no answer");
    assert!(ask(&bus, "org.freedesktop.DBus.Peer.Ping", &[]).contains("()"), "and its name");
}

#[test]
fn a_card_is_taken_back_if_the_program_that_asked_leaves_it() {
    let bus = Bus::start();
    let (mut first, pipe) = reserve_with(&bus, &["--priority=10"]);
    say_closed(&pipe, 0);
    let method = "org.freedesktop.ReserveDevice1.RequestRelease";
    assert!(ask(&bus, method, &["11"]).contains("true"));
    eventually("it is taken back", || first.stdout().ends_with("gdbus\nours\n").then_some(()));
    assert!(ask(&bus, method, &["10"]).contains("false"), "it is its name again");
}
