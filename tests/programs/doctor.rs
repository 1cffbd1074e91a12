//! `consort doctor` on a machine with a server, another project's server, and two libraries.

use std::process::Command;

use harness::{Program, Server, binary, command_in, copy_program, eventually};
use serde_json::Value;

/// Verdict and text about a subject, in what `consort doctor --json` prints.
fn about(document: &Value, subject: &str) -> (String, String) {
    let list = document.as_array().expect("a list");
    let found = list.iter().find(|finding| finding["subject"] == subject);
    let text = |key: &str| found.and_then(|found| found[key].as_str()).expect(key).to_owned();
    (text("verdict"), text("found"))
}

/// What it finds, with these libraries first for the loader.
fn examine(server: &Server, libraries: Option<&str>) -> Value {
    let mut command = server.command(&binary("consort").to_string_lossy());
    command.args(["doctor", "--json"]);
    if let Some(libraries) = libraries {
        command.env("LD_LIBRARY_PATH", libraries);
    }
    let printed = Program::start(command).finish().stdout;
    serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{error}: {printed}"))
}

#[test]
fn the_doctor_names_the_server_and_whose_library_programs_get() {
    let server = Server::start(&[]);
    let found = examine(&server, None);
    let (verdict, text) = about(&found, "libjack");
    assert_eq!(verdict, "good", "{text}");
    let (_, text) = about(&found, "server");
    assert!(text.contains(&format!("process {}", server.status().process)), "{text}");
    let (verdict, text) = about(&examine(&server, Some("/usr/lib/x86_64-linux-gnu")), "libjack");
    assert_eq!(verdict, "wrong", "{text}");
}

/// Listens in a server's place, and says when somebody connects.
const LISTENER: &str = "
import socket, sys
listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listener.bind(sys.argv[1])
listener.listen()
print('listens', flush=True)
listener.accept()
print('connected', flush=True)
";

#[test]
fn the_doctor_starts_no_server_that_waits_for_its_first_program() {
    let directory = tempfile::TempDir::with_prefix("consort-doctor-").expect("a directory");
    let place = directory.path().join("consort/studio");
    std::fs::create_dir_all(&place).expect("a directory");
    // A service manager is recognized by its name.
    let manager = directory.path().join("systemd");
    copy_program("/usr/bin/python3", &manager);
    let mut command = Command::new(&manager);
    command.args(["-c", LISTENER]).arg(place.join("control"));
    let mut manager = Program::start(command);
    eventually("it listens", || manager.stdout().contains("listens").then_some(()));
    let mut command = command_in(directory.path(), &binary("consort"));
    command.args(["-n", "studio", "doctor", "--json"]);
    let printed = Program::start(command).finish().stdout;
    let found: Value = serde_json::from_str(&printed).expect("JSON");
    let expected = ("good".to_owned(), "the first program starts it".to_owned());
    assert_eq!(about(&found, "server"), expected);
    assert!(!manager.stdout().contains("connected"), "nothing is started");
}

#[test]
fn the_doctor_names_another_projects_server() {
    let server = Server::start(&[]);
    let program = server.directory().join("pulseaudio");
    copy_program("/bin/sleep", &program);
    let mut command = server.command(&program.to_string_lossy());
    command.arg("600");
    let other = Program::start(command);
    let expected = format!("pulseaudio (process {})", other.id());
    let (verdict, text) = about(&examine(&server, None), "servers");
    assert_eq!(verdict, "note");
    assert!(text.contains(&expected), "{text}");
}

#[test]
fn the_doctor_says_who_listens_for_programs_of_pulseaudio() {
    let server = Server::start(&[]);
    let pulse = || about(&examine(&server, None), "pulse");
    assert_eq!(pulse().0, "note");
    let front_end = server.spawn_consort(&["pulse"]);
    let expected = format!("here, through process {}", front_end.id());
    eventually("it listens", || pulse().1.contains(&expected).then_some(()));
    front_end.terminate().expect_success();
    let settings = server.directory().join(".config/pulse");
    std::fs::create_dir_all(&settings).expect("a directory");
    let settings = settings.join("client.conf");
    std::fs::write(&settings, "default-server = tcp:studio\n").expect("written");
    let (verdict, text) = pulse();
    assert!(verdict == "note" && text.ends_with("programs of PulseAudio to tcp:studio"), "{text}");
    std::fs::remove_file(&settings).expect("removed");
    let path = server.directory().join("pulse/native");
    let _ = std::fs::remove_file(&path);
    let _listener = std::os::unix::net::UnixListener::bind(&path).expect("nobody listens there");
    let (verdict, text) = pulse();
    assert_eq!(verdict, "note");
    assert!(text.contains(&format!("(process {})", std::process::id())), "{text}");
}

/// Takes two names on the session bus and keeps them.
const NAMES: &str = "
import dbus, sys
from dbus.mainloop.glib import DBusGMainLoop
from gi.repository import GLib
bus = dbus.SessionBus(mainloop=DBusGMainLoop())
for name in sys.argv[1:]:
    bus.request_name(name)
print('taken', flush=True)
GLib.MainLoop().run()
";

#[test]
fn the_doctor_says_who_has_a_sound_servers_name_on_the_bus() {
    let server = Server::start(&[]);
    let mut daemon = Command::new("dbus-daemon");
    let address = format!("unix:path={}", server.directory().join("bus").display());
    daemon.args(["--session", "--nofork", "--nopidfile", "--address", &address]);
    let _daemon = Program::start(daemon);
    eventually("the bus is there", || server.directory().join("bus").exists().then_some(()));
    let mut taker = Command::new("/usr/bin/python3");
    let names = ["org.pulseaudio.Server", "org.freedesktop.ReserveDevice1.Audio3", "org.example"];
    taker.args(["-c", NAMES]).args(names).env("DBUS_SESSION_BUS_ADDRESS", &address);
    let mut taker = Program::start(taker);
    eventually("the names are taken", || taker.stdout().contains("taken").then_some(()));

    let mut command = server.command(&binary("consort").to_string_lossy());
    command.args(["doctor", "--json"]).env("DBUS_SESSION_BUS_ADDRESS", &address);
    let printed = Program::start(command).finish().stdout;
    let document: Value = serde_json::from_str(&printed).expect("JSON");
    let list = document.as_array().expect("a list").iter();
    let found: Vec<&Value> = list.filter(|finding| finding["subject"] == "d-bus").collect();
    let process = format!("(process {})", taker.id());
    let text = |finding: &Value| finding["found"].as_str().expect("text").to_owned();
    assert_eq!(found.len(), 2, "{printed}");
    assert!(text(found[0]).starts_with(names[1]) && text(found[0]).ends_with(&process));
    assert!(text(found[1]).starts_with(names[0]) && text(found[1]).ends_with(&process));
    for finding in found {
        assert_eq!(finding["verdict"], "note");
        assert!(finding["advice"].as_str().is_some_and(|advice| advice.contains("kill ")));
    }
}

#[test]
fn the_doctor_says_which_sound_pipewire_offers() {
    let server = Server::start(&[]);
    let program = |name: &str, arguments: &[&str]| {
        let mut command = server.command(name);
        command.args(arguments).env_remove("LD_LIBRARY_PATH");
        Program::start(command)
    };
    let pipewire = || about(&examine(&server, None), "pipewire");
    let daemon = program("pipewire", &[]);
    let socket = server.directory().join("pipewire-0");
    eventually("PipeWire listens", || socket.exists().then_some(()));
    let (verdict, text) = pipewire();
    assert_eq!(verdict, "good", "{text}");
    assert!(text.contains(&format!("(process {})", daemon.id())), "{text}");
    let speaker = "{ factory.name=support.null-audio-sink node.name=speaker \
                   media.class=Audio/Sink object.linger=true }";
    program("pw-cli", &["create-node", "adapter", speaker]).finish().expect_success();
    let (verdict, text) = pipewire();
    assert_eq!(verdict, "note", "{text}");
    assert!(text.ends_with(": speaker"), "{text}");
}

#[test]
fn the_doctor_says_that_a_headset_of_bluetooth_is_silent() {
    let server = Server::start(&[]);
    let mut daemon = Command::new("dbus-daemon");
    daemon.args(["--session", "--nofork", "--print-address"]);
    let mut daemon = Program::start(daemon);
    let address = eventually("there is a bus", || {
        let printed = daemon.stdout();
        printed.ends_with('\n').then(|| printed.trim().to_owned())
    });
    let mut bluez = Command::new("/usr/bin/python3");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/programs/bluez.py");
    bluez.arg(script).env("DBUS_SYSTEM_BUS_ADDRESS", &address);
    let mut bluez = Program::start(bluez);
    eventually("BlueZ is there", || bluez.stdout().starts_with("begun\n").then_some(()));
    let mut command = server.command(&binary("consort").to_string_lossy());
    command.args(["doctor", "--json"]).env("DBUS_SYSTEM_BUS_ADDRESS", &address);
    let found = Program::start(command).finish().stdout;
    let found: Value = serde_json::from_str(&found).expect("JSON");
    let (verdict, text) = about(&found, "bluetooth");
    assert_eq!(verdict, "note");
    assert!(text.starts_with("Headset is connected, and nothing plays there"), "{text}");
}
