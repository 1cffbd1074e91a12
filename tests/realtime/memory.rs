//! Memory that is present when a cycle needs it: touched before the first cycle, and locked.

use std::ops::Range;
use std::path::Path;

use harness::{Program, Server, binary, c_program, command_in, eventually, in_three_attempts};

/// The first output of a server that is started by `prlimit` with these arguments, and how many KiB
/// it has locked.
fn started_by_prlimit(arguments: &[&str]) -> (String, u64) {
    let directory = tempfile::TempDir::with_prefix("consort-test-").expect("a temporary directory");
    let mut command = command_in(directory.path(), Path::new("prlimit"));
    command.args(arguments).arg(binary("consort")).args(["run", "--quantum", "1024"]);
    let mut server = Program::start(command);
    eventually("the server runs", || server.stderr().contains("runs: timer").then_some(()));
    let status =
        std::fs::read_to_string(format!("/proc/{}/status", server.id())).expect("a process");
    let locked = status.lines().find_map(|line| line.strip_prefix("VmLck:")).expect("a line of it");
    let locked_kib =
        locked.split_whitespace().next().and_then(|kib| kib.parse().ok()).expect("a number");
    (server.stderr().to_owned(), locked_kib)
}

#[test]
fn a_real_time_server_locks_its_memory_or_says_why_not() {
    // Root may exceed its limit.
    let (said, locked_kib) = started_by_prlimit(&["--memlock=1048576"]);
    assert!(locked_kib > 1024 && !said.contains("paged out"), "{locked_kib} KiB: {said}");
    let without_the_right = ["--memlock=1048576", "setpriv", "--bounding-set", "-ipc_lock"];
    let (said, locked_kib) = started_by_prlimit(&without_the_right);
    // The recording does not fit, the engine segment does.
    assert!(
        (1..1024).contains(&locked_kib) && said.contains("this process may lock 1024 KiB"),
        "{locked_kib} KiB: {said}"
    );
}

/// The mappings of a process, each with its name and whether it is locked.
fn mappings(process: u32) -> Vec<(Range<u64>, String, bool)> {
    let maps = std::fs::read_to_string(format!("/proc/{process}/smaps")).expect("a process");
    let mut mappings = Vec::new();
    for line in maps.lines() {
        let address = |text: &str| u64::from_str_radix(text, 16).ok();
        let words: Vec<&str> = line.split_whitespace().collect();
        let range =
            words[0].split_once('-').and_then(|(start, end)| Some(address(start)?..address(end)?));
        if let Some(range) = range {
            mappings.push((range, words[5..].join(" "), false));
        } else if let (["VmFlags:", flags @ ..], Some((.., locked))) =
            (&words[..], mappings.last_mut())
        {
            *locked = flags.contains(&"lo");
        }
    }
    mappings
}

/// Where the thread's stack ends, once the thread is asleep (proc_pid_syscall(5)).
fn stack_end(process: u32, thread: &str) -> u64 {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).expect("a process");
    let named = |task: &std::path::PathBuf| {
        std::fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim_end() == thread)
    };
    let task = tasks.flatten().map(|task| task.path()).find(named).expect("the process thread");
    eventually("it sleeps", || {
        let call = std::fs::read_to_string(task.join("syscall")).ok()?;
        let end = call.split_whitespace().rev().nth(1)?.strip_prefix("0x")?;
        u64::from_str_radix(end, 16).ok()
    })
}

#[test]
fn memory_of_a_real_time_clients_cycles_stays_locked() {
    for (options, kept) in
        [(&["--quantum", "1024"][..], true), (&["--quantum", "1024", "--no-realtime"], false)]
    {
        let server = Server::start(options);
        let client = server.probe(&["source", "source"]);
        let mappings = mappings(client.id());
        for part in ["engine", "assignments", "own", "signals", "slab"] {
            let name = format!("/memfd:consort-{part} (deleted)");
            let found: Vec<bool> = mappings
                .iter()
                .filter(|(_, of, _)| *of == name)
                .map(|(.., locked)| *locked)
                .collect();
            assert!(
                !found.is_empty() && found.iter().all(|locked| *locked == kept),
                "{name}: {found:?}"
            );
        }
        let end = stack_end(client.id(), "source");
        let stack = mappings.iter().find(|(range, ..)| range.contains(&end)).expect("its stack");
        assert_eq!(stack.2, kept, "{stack:?}");
    }
}

/// Pages that a thread of this name has faulted in so far.
fn faults(process: u32, thread: &str) -> u64 {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).expect("a process");
    let stat = tasks.flatten().find_map(|task| {
        let name = std::fs::read_to_string(task.path().join("comm")).ok()?;
        (name.trim_end() == thread)
            .then(|| std::fs::read_to_string(task.path().join("stat")).ok())?
    });
    let stat = stat.unwrap_or_else(|| panic!("process {process} has no thread '{thread}'"));
    // proc_pid_stat(5): from the third field on, which follows the name; minor faults are the
    // tenth, major the twelfth.
    let fields: Vec<&str> = stat.rsplit_once(") ").expect("a name").1.split(' ').collect();
    [7, 9].iter().map(|field| fields[*field].parse::<u64>().expect("a count")).sum()
}

#[test]
fn playing_a_new_client_costs_the_driver_no_fault() {
    for options in [&["--quantum", "64"][..], &["--quantum", "1024", "--sync"]] {
        in_three_attempts(|| expect_no_fault_of_the_driver(options));
    }
}

fn expect_no_fault_of_the_driver(options: &[&str]) -> Result<(), String> {
    let mut server = Server::start(options);
    let mut command = server.command(&c_program("realtime/untouched.c"));
    command.arg("untouched");
    let mut client = Program::start(command);
    eventually("the client is active", || client.stdout().contains("ready\n").then_some(()));
    server.await_cycles(50);
    let process = server.program().id();
    let before = faults(process, "consort-driver");
    for port in 1..=16 {
        let (output, input) = (format!("untouched:out_{port}"), port % 2 + 1);
        server.consort(&["connect", &output, &format!("system:playback_{input}")]).expect_success();
    }
    server.await_cycles(50);
    match faults(process, "consort-driver") - before {
        0 => Ok(()),
        faults => Err(format!("{options:?}: {faults} faults")),
    }
}

#[test]
fn passing_a_stream_to_a_client_costs_the_driver_no_fault() {
    in_three_attempts(|| {
        let mut server = Server::start(&["--driver", "timer", "--quantum", "1024"]);
        let song = server.directory().join("song.wav");
        harness::Sound::of(48_000, &[vec![0.5; 1_440_000], vec![0.25; 1_440_000]]).write(&song);
        let _listener = server.probe(&["thru", "listener"]);
        let _player = server.spawn_consort(&["play", &song.to_string_lossy()]);
        server.await_port("consort play:output_FR");
        server.await_cycles(50);
        let process = server.program().id();
        let before = faults(process, "consort-driver");
        for channel in ["FL", "FR"] {
            let port = format!("consort play:output_{channel}");
            server.run("jack_connect", &[&port, "listener:in"]).expect_success();
        }
        server.await_cycles(50);
        match faults(process, "consort-driver") - before {
            0 => Ok(()),
            faults => Err(format!("{faults} faults")),
        }
    });
}

#[test]
fn threads_in_the_graph_fault_no_page_in_once_they_run() {
    for options in [&["--quantum", "64"][..], &["--quantum", "1024", "--sync"]] {
        // A machine that reclaims idle pages takes some from any process at times.
        in_three_attempts(|| expect_no_faults(options));
    }
}

fn expect_no_faults(options: &[&str]) -> Result<(), String> {
    let mut server = Server::start(options);
    let source = server.probe(&["source", "source"]);
    let thru = server.probe(&["thru", "thru", "--from", "source:out"]);
    let check = server.probe(&["check", "check", "--from", "thru:out"]);
    server.run("jack_connect", &["thru:out", "system:playback_1"]).expect_success();
    let threads = [
        (server.program().id(), "consort-driver"),
        (source.id(), "source"),
        (thru.id(), "thru"),
        (check.id(), "check"),
    ];
    let so_far = || threads.map(|(process, thread)| faults(process, thread));
    server.await_cycles(200);
    let before = so_far();
    server.await_cycles(500);
    let none_since = |before: [u64; 4], when: &str| {
        let now = so_far();
        if now == before {
            Ok(())
        } else {
            Err(format!("{options:?}, {when}: {before:?}, {now:?}"))
        }
    };
    none_since(before, "in cycles that repeat themselves")?;
    // The first time counts as well.
    for _ in 0..20 {
        server.run("jack_connect", &["source:out", "system:playback_2"]).expect_success();
        server.run("jack_disconnect", &["source:out", "system:playback_2"]).expect_success();
    }
    server.await_cycles(50);
    none_since(before, "while the graph changes")
}
