//! Programs in sandboxes that are given the socket: they play, and do nothing else, unless a rule
//! allows it.

use std::io::Write;
use std::process::Command;

use harness::{Finished, Program, eventually, not_run};

use crate::bad_input::{auth, connect, packet};
use crate::{RATE_HZ, Scene, path, ramps};

/// As a sandbox for applications has them.
const NAMESPACES: [&str; 7] =
    ["unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--kill-child"];
const TIMER: [&str; 4] = ["--driver", "timer", "--quantum", "1024"];
/// Sends bytes by a socket, and prints the second of two packets that are received, without its
/// frame.
const SEND_AND_RECEIVE_TWO: &str = "
import socket, sys
program = socket.socket(socket.AF_UNIX)
program.settimeout(60)
program.connect(sys.argv[1])
program.sendall(bytes.fromhex(sys.argv[2]))
def received(count):
    return program.recv(count, socket.MSG_WAITALL)
for packet in range(2):
    content = received(int.from_bytes(received(20)[:4], 'big'))
print(content.hex())
";
/// An error's command, the request's number, and that access is denied.
const DENIED: &str = "4c000000004c000000074c00000001";
/// The number of the command that loads a module.
const LOAD_MODULE: u32 = 51;
const RECORDING: [&str; 3] = ["--device=consort.monitor", "--raw", "--latency-msec=20"];

fn is_possible() -> bool {
    let mut command = Command::new(NAMESPACES[0]);
    command.args(&NAMESPACES[1..]).arg("true");
    let is_possible = command.output().is_ok_and(|output| output.status.success());
    if !is_possible {
        not_run("'unshare --user --mount --pid' is not permitted here");
    }
    is_possible
}

fn boxed(scene: &Scene, program: &str, arguments: &[&str]) -> Program {
    scene.spawn(NAMESPACES[0], &[&NAMESPACES[1..], &[program], arguments].concat())
}

fn pactl(scene: &Scene, arguments: &[&str]) -> Finished {
    boxed(scene, "pactl", arguments).finish()
}

/// The index of the only stream that plays.
fn stream(scene: &Scene) -> String {
    eventually("it plays", || {
        let list = scene.pactl(&["list", "short", "sink-inputs"]);
        list.split('\t').next().filter(|index| !index.is_empty()).map(str::to_owned)
    })
}

/// Programs that `confined` starts in a sandbox change nothing of a player outside, which is the
/// only one, of devices or of modules, and record nothing.
pub(crate) fn expect_refusals(scene: &Scene, confined: impl Fn(&str, &[&str]) -> Program) {
    let stream = stream(scene);
    for request in [
        &["set-sink-volume", "consort", "10%"][..],
        &["set-sink-mute", "consort", "1"],
        &["set-sink-input-volume", &stream, "10%"],
        &["set-sink-input-mute", &stream, "1"],
        &["move-sink-input", &stream, "consort"],
        &["set-default-source", "consort.monitor"],
        &["suspend-sink", "consort", "1"],
        &["load-module", "module-null-sink"],
        &["unload-module", "0"],
    ] {
        let refused = confined("pactl", request).finish();
        assert_eq!(refused.code, Some(1), "{request:?}");
        assert!(refused.stderr.contains("Access denied"), "{request:?}: {refused:?}");
    }
    let refused = confined("parec", &RECORDING).finish();
    assert!(refused.stderr.contains("Access denied"), "{refused:?}");
    let sinks = scene.pactl(&["list", "sinks"]);
    assert!(sinks.contains("Mute: no") && sinks.contains("/ 100% /"), "{sinks}");
    let inputs = scene.pactl(&["list", "sink-inputs"]);
    assert!(inputs.contains("Mute: no") && inputs.contains("/ 100% /"), "{inputs}");
}

#[test]
fn a_confined_program_plays_and_changes_and_records_nothing_else() {
    if !is_possible() {
        return;
    }
    let scene = Scene::with(&TIMER);
    let short = scene.file("short.wav", &ramps(RATE_HZ as usize / 2));
    let finished = boxed(&scene, "paplay", &["--volume=32768", path(&short)]).finish();
    finished.expect_success();
    let long = scene.file("long.wav", &ramps(60 * RATE_HZ as usize));
    let player = scene.spawn("paplay", &[path(&long)]);
    expect_refusals(&scene, |program, arguments| boxed(&scene, program, arguments));
    // Users see why.
    let mut listener = boxed(&scene, "pactl", &["subscribe"]);
    eventually("it is shown as confined", || {
        let clients = scene.pactl(&["list", "clients"]);
        clients.contains("consort.confined = \"it has other mounts").then_some(())
    });
    assert!(listener.is_running() && { player }.is_running());
}

#[test]
fn a_confined_program_that_only_plays_is_shown_as_one() {
    if !is_possible() {
        return;
    }
    let scene = Scene::with(&TIMER);
    let long = scene.file("long.wav", &ramps(60 * RATE_HZ as usize));
    let player = boxed(&scene, "paplay", &[path(&long)]);
    eventually("it is shown as confined", || {
        scene.pactl(&["list", "clients"]).contains("consort.confined").then_some(())
    });
    assert!({ player }.is_running());
}

#[test]
fn requests_that_come_with_the_first_are_answered_by_the_programs_rights() {
    let scene = Scene::with(&TIMER);
    let load = |sink: &str| {
        let arguments = format!("tmodule-null-sink\0tsink_name={sink}\0");
        packet(LOAD_MODULE, arguments.as_bytes())
    };
    let mut free = connect(&scene);
    free.write_all(&[auth(), load("free"), load("second")].concat()).expect("sent");
    eventually("it may load modules", || {
        let sinks = scene.pactl(&["list", "short", "sinks"]);
        ["free", "second"].iter().all(|sink| sinks.contains(sink)).then_some(())
    });
    if !is_possible() {
        return;
    }
    let bytes: String =
        [auth(), load("boxed")].concat().iter().map(|byte| format!("{byte:02x}")).collect();
    let socket = scene.socket();
    let arguments = ["-c", SEND_AND_RECEIVE_TWO, path(&socket), &bytes];
    let finished = boxed(&scene, "/usr/bin/python3", &arguments).finish().expect_success();
    assert_eq!(finished.stdout.trim(), DENIED);
    assert!(!scene.pactl(&["list", "short", "sinks"]).contains("boxed"));
}

#[test]
fn a_rule_lets_the_programs_of_a_control_group_record() {
    if !is_possible() {
        return;
    }
    let scene = Scene::with(&TIMER);
    let refused = boxed(&scene, "parec", &RECORDING).finish();
    assert!(refused.stderr.contains("Access denied"), "{refused:?}");
    let rules = scene.server.directory().join(".config/consort/desktop-under-test.rules");
    std::fs::create_dir_all(rules.parent().expect("a directory")).expect("room");
    std::fs::write(&rules, "allow=record cgroup=*\n").expect("room");
    let mut recorder = boxed(&scene, "parec", &RECORDING);
    eventually("it records", || {
        assert!(recorder.is_running(), "{}", recorder.stderr());
        scene.pactl(&["list", "short", "sources"]).contains("RUNNING").then_some(())
    });
    let refused = pactl(&scene, &["set-sink-mute", "consort", "1"]);
    assert!(refused.stderr.contains("Access denied"), "{refused:?}");
}
