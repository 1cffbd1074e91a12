//! Plug-ins that a server loads at its start: `-I` and `-C`, of jackd and of `consort run`.

use std::path::Path;
use std::process::Command;

use harness::{Counts, Program, Server, binary, command_in, eventually};
use tempfile::TempDir;

use crate::plug_ins::{await_end, has_ports, hosts, let_cycles_pass, load};

#[test]
fn the_plug_ins_of_the_command_line_run_as_long_as_the_server() {
    let mut server =
        Server::start(&["--quantum", "256", "-I", "in:inprocess", "-I", "profiler/-c"]);
    server.await_connection("in:output", "system:playback_1");
    server.await_port("profiler:cpu_load");
    assert!(!server.lsp(&[]).contains("driver_period"), "parameters hold");
    server.run("jack_disconnect", &["system:capture_1", "in:input"]).expect_success();
    let _source = server.probe(&["source", "source"]);
    server.run("jack_connect", &["source:out", "in:input"]).expect_success();
    let checker = server.probe(&["check", "checker", "--from", "in:output"]);
    let_cycles_pass(&server);
    let counts = Counts::of(checker);
    assert!(counts.good > 0 && counts.wrong == 0, "{counts:?}");
    let processes = hosts(&mut server);
    assert_eq!(processes.len(), 2);
    server.stop().expect_success();
    await_end(&processes);
}

#[test]
fn plug_ins_end_with_a_server_that_is_killed() {
    let mut server = Server::start(&["--quantum", "256", "-I", "in:inprocess"]);
    server.await_connection("in:output", "system:playback_1");
    load(&server, "profiler", "profiler", "-c").expect_success();
    let processes = hosts(&mut server);
    assert_eq!(processes.len(), 2);
    server.kill();
    await_end(&processes);
    server.start_again();
    server.await_connection("in:output", "system:playback_1");
    assert!(!has_ports(&server, "profiler"), "{}", server.lsp(&[]));
    assert!(!has_ports(&server, "in-01"), "the previous one has not come back next to it");
}

/// `jackd` in a directory, with these arguments.
fn jackd(directory: &Path, words: &[&str]) -> Command {
    let link = directory.join("jackd");
    if !link.exists() {
        std::os::unix::fs::symlink(binary("consort"), &link).expect("a link");
    }
    let mut command = command_in(directory, &link);
    command.args(words);
    command
}

#[test]
fn jackd_loads_the_plug_ins_of_its_options_and_files() {
    let place = TempDir::with_prefix("consort-test-").expect("a temporary directory");
    let session = place.path().join("session");
    let lines = "# what to load\nl meter profiler -c\nc in:output \"system:playback_2\"\n";
    std::fs::write(&session, lines).expect("a file");
    let session = session.to_string_lossy();
    let words = ["-I", "in:inprocess", "-C", &session, "-d", "dummy", "-p", "256"];
    let mut server = Program::start(jackd(place.path(), &words));
    eventually("all of it is there", || {
        assert!(server.is_running(), "{}", server.stderr());
        let mut lsp = command_in(place.path(), Path::new("jack_lsp"));
        lsp.arg("-c");
        let listed = Program::start(lsp).finish().stdout;
        let is_connected = listed.contains("system:playback_2\n   in:output\n");
        (listed.contains("meter:cpu_load") && is_connected).then_some(())
    });
    server.terminate().expect_success();
}

#[test]
fn a_server_whose_plug_in_cannot_be_loaded_does_not_start() {
    let place = TempDir::with_prefix("consort-test-").expect("a temporary directory");
    let file = |name: &str, text: &str| {
        let path = place.path().join(name);
        std::fs::write(&path, text).expect("a file");
        path.to_string_lossy().into_owned()
    };
    let nonsense = file("nonsense", "l profiler\nload\n");
    let nowhere = file("nowhere", "c system:capture_1 nobody:in\n");
    for (option, value, reason) in [
        ("-I", "no_such_plug_in", "there is no plug-in no_such_plug_in.so"),
        ("-I", "netmanager", "consort has no 'netmanager'"),
        ("-C", &nonsense, "line 2: not understood"),
        ("-C", &nowhere, "nobody:in"),
        ("-C", "/no/such/file", "cannot read /no/such/file"),
    ] {
        let ended = Program::start(jackd(place.path(), &[option, value, "-d", "dummy"])).finish();
        assert_eq!(ended.code, Some(1), "{option} {value}: {ended:?}");
        let (before, after) = ended.stderr.split_once("stopped:").expect("the server ran");
        assert!(
            before.contains(reason) && !after.contains(reason),
            "{option} {value}: {}",
            ended.stderr
        );
    }
    let ended = Program::start(jackd(place.path(), &["-I", "/x", "-d", "dummy"])).finish();
    assert!(ended.code == Some(2) && ended.stderr.contains("is not a plug-in"), "{ended:?}");
}
