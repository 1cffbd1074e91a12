//! `jack_transport`, `jack_showtime`: the transport at a prompt. `jack_test`,
//! `jack_multiple_metro`, `jack_cpu`: programs made to find what a server does wrong.

use std::path::Path;
use std::time::{Duration, Instant};

use harness::{Counts, Program, Server, binary, command_in, eventually};
use rustix::process::Signal;

/// Runs `jack_transport` with these commands, one per line; returns what it printed.
fn ordered(server: &Server, orders: &str) -> String {
    let script = format!("printf '{orders}\\nquit\\n' | jack_transport");
    server.run("sh", &["-c", &script]).expect_success().stdout
}

fn transport(server: &Server) -> serde_json::Value {
    let printed = server.consort(&["transport", "show", "--json"]).expect_success().stdout;
    serde_json::from_str(&printed).expect("JSON")
}

fn await_transport(server: &Server, pointer: &str, expected: &serde_json::Value) {
    eventually(&format!("{pointer} is {expected}"), || {
        (transport(server).pointer(pointer) == Some(expected)).then_some(())
    });
}

#[test]
fn jack_transport_starts_moves_and_stops_the_transport() {
    let server = Server::timer(256);
    ordered(&server, "locate 48000");
    await_transport(&server, "/frame", &48_000.into());
    ordered(&server, "play");
    await_transport(&server, "/state", &"rolling".into());
    ordered(&server, "stop");
    await_transport(&server, "/state", &"stopped".into());
    assert!(transport(&server)["frame"].as_u64() > Some(48_000), "it has rolled on from there");
}

/// `jack_transport` at a prompt that a test writes to.
struct Prompt<'a> {
    server: &'a Server,
    pipe: String,
    program: Program,
}

impl<'a> Prompt<'a> {
    fn of(server: &'a Server) -> Self {
        let pipe = server.directory().join("orders").to_string_lossy().into_owned();
        let script = format!("mkfifo {pipe}; exec jack_transport <>{pipe}");
        let program = server.spawn("sh", &["-c", &script]);
        eventually("the prompt's pipe", || Path::new(&pipe).exists().then_some(()));
        Self { server, pipe, program }
    }

    fn order(&self, text: &str) {
        self.server.run("sh", &["-c", &format!("echo '{text}' >{}", self.pipe)]).expect_success();
    }

    /// Makes it the timebase master of a rolling transport.
    fn leads(&self) {
        self.order("tempo 90");
        // It is active already, without a process callback.
        self.order("master");
        self.order("play");
        await_transport(self.server, "/bbt/beats_per_minute", &90.0.into());
    }
}

#[test]
fn jack_showtime_shows_the_bar_and_beat_of_jack_transport() {
    let server = Server::timer(256);
    let prompt = Prompt::of(&server);
    prompt.leads();
    let timebase = transport(&server)["timebase"].as_str().expect("a name").to_owned();
    let mut showtime = server.spawn("jack_showtime", &[]);
    eventually("it shows bars", || {
        assert!(showtime.is_running(), "it ended: {}", showtime.stderr());
        let shown = showtime.stdout();
        (shown.contains("Rolling") && shown.contains("BBT: ")).then_some(())
    });
    drop(showtime);
    prompt.order("release");
    await_transport(&server, "/timebase", &serde_json::Value::Null);
    prompt.order("master");
    await_transport(&server, "/timebase", &timebase.into());
    prompt.order("quit");
    await_transport(&server, "/timebase", &serde_json::Value::Null);
    await_transport(&server, "/bbt", &serde_json::Value::Null);
    await_transport(&server, "/state", &"rolling".into());
}

#[test]
fn a_stopped_jack_transport_is_the_master_again_when_continued() {
    let server = Server::timer(256);
    let prompt = Prompt::of(&server);
    prompt.leads();
    prompt.program.signal(Signal::STOP);
    await_transport(&server, "/bbt", &serde_json::Value::Null);
    prompt.program.signal(Signal::CONT);
    await_transport(&server, "/bbt/beats_per_minute", &90.0.into());
}

/// Complaints of `jack_test` that mean nothing about a server.
const NOT_OURS: [&str; 2] = [
    // It expects one for each of two connections that it makes with each port, at most one in each
    // cycle comes.
    "graph reorder callback have been received",
    // It measures when its own callback was woken: a machine that is busy wakes it late. And it
    // takes the time between two calls in a row, in its first cycle, for a cycle.
    "jack_frame_time seems to return incorrect values",
];

/// Whether it was notified of one port more than it has created. It unregisters one right before it
/// resets its count to zero, and also counts that one if the notification comes afterwards.
fn is_one_more(line: &str) -> bool {
    let numbers: Vec<u64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
    let is_count = line.contains("ports have been created") && line.contains("callback reg ports");
    is_count && matches!(numbers[..], [created, heard_of] if created > 1 && heard_of == created + 1)
}

#[test]
fn jack_test_finds_no_error_but_its_own() {
    let server = Server::start(&["--quantum", "1024"]);
    // It writes its files into the directory that it is started in.
    let mut program = server.spawn("jack_test", &["-R"]);
    // It sleeps for more than a minute of its own.
    let end = Instant::now() + Duration::from_secs(600);
    while program.is_running() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(100));
    }
    let printed = program.finish().expect_success().stdout;
    // What it says last but for the time that its callback was woken at.
    assert!(printed.contains("Name of unregistered port"), "it came to its end");
    let errors = printed.lines().filter(|line| line.contains("!!! ERROR !!!"));
    // A cycle that it misses is one that it does not hear, and its sound is to be without a gap for
    // two seconds.
    let was_late = server.status().xruns > 0;
    let is_its_own = |line: &&str| {
        is_one_more(line)
            || NOT_OURS.iter().any(|known| line.contains(known))
            || was_late && line.contains("data transmission seems not to be valid")
    };
    let ours: Vec<&str> = errors.filter(|line| !is_its_own(line)).collect();
    assert!(ours.is_empty(), "{ours:#?}");
}

#[test]
fn jack_cpu_takes_half_of_each_cycle() {
    let server = Server::timer(1024);
    let ended = server.run("jack_cpu", &["-c", "50", "-t", "3"]).expect_success();
    assert!(ended.stdout.contains("Exiting after a 3 seconds run"), "{ended:?}");
    assert!(!ended.stderr.contains("shutdown"), "{ended:?}");
}

#[test]
fn jack_cpu_that_takes_more_than_a_cycle_is_late_alone() {
    let server = Server::timer(1024);
    let _source = server.probe(&["source", "source"]);
    let check = server.probe(&["check", "check", "--from", "source:out"]);
    let mut burning = server.spawn("jack_cpu", &["-c", "120"]);
    eventually("it is late, and the server has counted that", || {
        let status = server.status();
        let burning = status.clients.iter().find(|client| client.name == "jack-cpu");
        let is_late = burning.is_some_and(|client| client.late_cycles > 3);
        (is_late && status.xruns > 0).then_some(())
    });
    server.await_cycles(100);
    assert!(burning.is_running() && !burning.stderr().contains("shutdown"), "{}", burning.stderr());
    let counts = Counts::of(check);
    assert_eq!(counts.wrong, 0, "{counts:?}");
    assert!(counts.good > 50, "{counts:?}");
}

/// Starts `consort run` in `place`, where another server was before.
fn run_server(place: &Path) -> Program {
    let mut command = command_in(place, &binary("consort"));
    command.args(["run", "--quantum", "256"]);
    let mut server = Program::start(command);
    eventually("the server runs", || server.stderr().contains("runs:").then_some(()));
    server
}

fn ports(place: &Path) -> String {
    Program::start(command_in(place, Path::new("jack_lsp"))).finish().stdout
}

#[test]
fn jack_multiple_metro_outlives_two_servers() {
    let directory = tempfile::TempDir::with_prefix("consort-test-").expect("a temporary directory");
    let place = directory.path();
    let pipe = place.join("keys");
    let server = run_server(place);
    let mut command = command_in(place, Path::new("stdbuf"));
    let script = format!("mkfifo {0}; exec jack_multiple_metro <>{0}", pipe.display());
    command.args(["-o0", "sh", "-c", &script]);
    let mut metro = Program::start(command);
    let press = |key: &str| std::fs::write(&pipe, key).expect("a program that reads");
    let mut await_line = |line: &str, count: usize| {
        eventually(line, || (metro.stdout().matches(line).count() >= count).then_some(()));
    };
    await_line("Type 'c' to close all clients", 1);
    for client in 1..=5 {
        assert!(
            ports(place).contains(&format!("t{client}:bpm\n")),
            "client {client} of one process"
        );
    }
    press("c");
    await_line("Now quit the server", 1);
    assert!(
        ports(place).contains("t1:bpm\n") && !ports(place).contains("t2:bpm\n"),
        "closed and opened again"
    );
    drop(server.terminate().expect_success());
    await_line("shutdown called", 1);
    press("c");
    await_line("Now start the server again", 1);
    let server = run_server(place);
    press("c");
    await_line("Now quit the server", 2);
    assert!(ports(place).contains("t1:bpm\n"), "a client of the new server");
    drop(server.terminate().expect_success());
    await_line("shutdown called", 2);
    press("c");
    await_line("Cannot open a new client", 1);
    press("q");
    metro.finish().expect_success();
}
