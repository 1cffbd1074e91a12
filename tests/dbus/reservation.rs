//! Sound cards are reserved on the session bus, as by other sound servers.

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

fn reserve(bus: &Bus) -> Program {
    // Its standard input does not end.
    let pipe = bus.directory().join("pipe");
    let script = "test -p \"$0\" || mkfifo \"$0\"; exec \"$1\" reserve \"$2\" <>\"$0\"";
    let mut command = bus.command("sh");
    command.args(["-c", script]).args([&pipe, &binary("consort")]).arg(CARD);
    let mut reserving = Program::start(command);
    eventually("there is an answer", || reserving.stdout().contains('\n').then_some(()));
    reserving
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
    assert!(owner.stdout().contains("asked"));
}
