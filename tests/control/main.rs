//! `libjackserver.so.0` and `libjacknet.so.0`: programs that control a server, and the refusals of
//! network audio.
#![forbid(unsafe_code)]

use std::path::Path;
use std::process::Command;

use harness::{Program, c_program_with, command_in, eventually, library_directory};
use rustix::process::Signal;
use tempfile::TempDir;

fn place() -> TempDir {
    TempDir::with_prefix("consort-test-").expect("a temporary directory")
}

/// Servers that run for a program in `place`, which is their runtime directory.
fn servers_in(place: &Path) -> usize {
    let sockets = std::fs::read_dir("/proc").expect("processes").filter_map(Result::ok);
    let runs = |process: &std::fs::DirEntry| {
        let read = |file: &str| std::fs::read(process.path().join(file)).unwrap_or_default();
        let (words, variables) = (read("cmdline"), read("environ"));
        let wanted = format!("XDG_RUNTIME_DIR={}", place.display());
        words.starts_with(b"jackd\0")
            && variables.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
    };
    sockets.filter(runs).count()
}

#[test]
fn a_c_program_controls_a_server_through_control_h() {
    let place = place();
    let session = place.path().join("session");
    let lines = "# what to load\nl meter profiler -c\n\nc meter:cpu_load \"guest:in\"\n";
    std::fs::write(&session, lines).expect("a file");
    let program = c_program_with("jackserver", "control/conduct.c");
    let mut command = command_in(place.path(), Path::new(&program));
    command.arg(&session);
    let ended = Program::start(command).finish();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(servers_in(place.path()), 0);
}

#[test]
fn messages_of_plug_ins_have_all_of_their_arguments() {
    let (place, program) = (place(), c_program_with("jackserver", "control/messages.c"));
    let printed = Program::start(command_in(place.path(), Path::new(&program)));
    let expected = "error: one 2 3 4 5 6 7\ninfo: 0.5 1.5 2.5 3.5 4.5 5.5 6.5 7.5 8.5 nine\n";
    assert_eq!(printed.finish().expect_success().stdout, expected);
}

#[test]
fn debians_jack_server_control_starts_and_ends_a_server() {
    let place = place();
    let mut command = command_in(place.path(), Path::new("jack_server_control"));
    command.args(["-d", "dummy", "-c", "profiler"]);
    let mut program = Program::start(command);
    eventually("the plug-in is a client", || {
        assert!(program.is_running(), "{}", program.stderr());
        let mut lsp = command_in(place.path(), Path::new("jack_lsp"));
        lsp.arg("-c");
        let listed = Program::start(lsp).finish().stdout;
        let mut internal = command_in(place.path(), Path::new("jack_unload"));
        internal.arg("profiler");
        (listed.contains("system:playback_2") && Program::start(internal).finish().code == Some(0))
            .then_some(())
    });
    let ended = program.terminate().expect_success();
    for printed in
        ["List of server parameters", "driver = alsa", "driver = dummy", "internal = profiler"]
    {
        assert!(ended.stdout.contains(printed), "no '{printed}' in {}", ended.stdout);
    }
    assert_eq!(servers_in(place.path()), 0);
}

#[test]
fn a_server_ends_with_the_program_that_controls_it_however_that_ends() {
    for signal in [Signal::KILL, Signal::TERM] {
        let place = place();
        let mut command = command_in(place.path(), Path::new("jack_server_control"));
        command.args(["-d", "dummy"]);
        let mut program = Program::start(command);
        eventually("the server runs", || program.stderr().contains("runs:").then_some(()));
        assert_eq!(servers_in(place.path()), 1);
        program.signal(signal);
        drop(program.finish());
        eventually("the server has ended", || (servers_in(place.path()) == 0).then_some(()));
    }
}

#[test]
fn every_function_of_net_h_reports_that_there_is_no_network_audio() {
    let place = place();
    let program = c_program_with("jacknet", "control/net.c");
    let ended = Program::start(command_in(place.path(), Path::new(&program))).finish();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("jack_net_slave_open: consort has no network audio of its own"),
        "{ended:?}"
    );
}

/// What a shared object exports.
fn exported(library: &Path) -> Vec<String> {
    let output =
        Command::new("nm").args(["-D", "--defined-only", "--format=posix"]).arg(library).output();
    let output = output.expect("nm runs; 'cargo xtask setup' installs it");
    assert!(output.status.success(), "{}: 'cargo xtask setup' installs it", library.display());
    let text = String::from_utf8(output.stdout).expect("symbols are ASCII");
    text.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

/// Prefixes of the functions that Debian's headers declare.
const DECLARED: [&str; 3] = ["jack_", "jackctl_", "JACK_METADATA_"];
/// What Debian's libraries export although no header declares it (except control.h, for
/// libjackserver): JACK2's internals.
const INSIDE: [&str; 6] = [
    "jack_constraint_",
    "jack_driver_descriptor_",
    "jack_get_microseconds",
    "jack_port_set_default_metadata",
    "jack_client_name_to_uuid",
    "jack_tools_",
];

#[test]
fn the_libraries_export_all_that_debians_do() {
    let ours = |name: &str| exported(&library_directory().join(name));
    let libjack = ours("libjack.so.0");
    let messages = ["jack_error", "jack_info", "jack_log"];
    for (name, without) in [("libjackserver.so.0", &[][..]), ("libjacknet.so.0", &messages)] {
        let ours = ours(name);
        let debians = exported(&Path::new("/usr/lib/x86_64-linux-gnu").join(name));
        let wanted = debians.into_iter().filter(|symbol| {
            DECLARED.iter().any(|begin| symbol.starts_with(begin))
                && !INSIDE.iter().any(|inside| symbol.starts_with(inside))
                && !without.contains(&symbol.as_str())
        });
        let missing: Vec<String> =
            wanted.chain(libjack.iter().cloned()).filter(|symbol| !ours.contains(symbol)).collect();
        assert!(missing.is_empty(), "{name}: {missing:?}");
        let known = |symbol: &&String| {
            DECLARED.iter().any(|begin| symbol.starts_with(begin)) || *symbol == "consort_host"
        };
        let strange: Vec<&String> = ours.iter().filter(|symbol| !known(symbol)).collect();
        assert!(strange.is_empty(), "{name}: {strange:?}");
    }
}
