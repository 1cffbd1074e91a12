//! A second server of the same name, and what a killed server leaves behind.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::Stdio;

use harness::{Program, Server, binary, command_in, eventually};
use rustix::fs::OFlags;
use rustix::process::Signal;
use tempfile::TempDir;

use crate::wire::{assert_says, server, socket_path, with_bystanders};

#[test]
fn a_second_server_of_the_same_name_is_refused() {
    with_bystanders(server, |server| {
        for _ in 0..3 {
            let second = server.consort(&["run", "-n", "under-test", "--quantum", "64"]);
            assert_eq!((second.code, second.signal), (Some(1), None), "{second:?}");
            let words = [
                "a server named 'under-test' runs already",
                "consort stop -n under-test",
                "with -n",
            ];
            assert_says("a second server", &second.stderr, &words);
        }
    });
}

#[test]
fn a_server_of_another_name_runs_next_to_it() {
    with_bystanders(server, |server| {
        let mut command = server.command(&harness::binary("consort").to_string_lossy());
        command.args(["run", "-n", "another"]);
        let mut another = Program::start(command);
        harness::eventually("the other server runs", || {
            another.stderr().contains("runs:").then_some(())
        });
        server.consort(&["stop", "-n", "another"]).expect_success();
        another.finish().expect_success();
    });
}

#[test]
fn after_a_killed_server_the_next_one_of_its_name_starts_at_once() {
    let mut server = server();
    for _ in 0..3 {
        let command = || {
            let mut command = server_command(&server);
            command.args(["run", "-n", "again"]);
            command
        };
        let mut killed = Program::start(command());
        harness::eventually("it runs", || killed.stderr().contains("runs:").then_some(()));
        killed.signal(Signal::KILL);
        assert_eq!(killed.finish().signal, Some(9));
        let socket = server.directory().join("consort/again/control");
        assert!(socket.exists(), "a killed server leaves its socket behind");
        let gone = server.consort(&["status", "-n", "again"]);
        assert_eq!(gone.code, Some(3), "no server: {gone:?}");
        let mut next = Program::start(command());
        harness::eventually("the next one runs", || {
            assert!(next.is_running(), "{}", next.stderr());
            next.stderr().contains("runs:").then_some(())
        });
        server.consort(&["status", "-n", "again"]).expect_success();
        next.terminate().expect_success();
        assert!(!socket.exists(), "a server that ends in order removes its socket");
    }
    assert!(
        socket_path(&server).exists() && server.program().is_running(),
        "the one next to them was left alone"
    );
}

fn server_command(server: &Server) -> std::process::Command {
    server.command(&harness::binary("consort").to_string_lossy())
}

/// The processes that a process has started, and those that these have started.
fn descendants(process: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).expect("it runs");
    let children =
        tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("children")).ok());
    let children: Vec<u32> = children
        .flat_map(|line| line.split(' ').map(str::to_owned).collect::<Vec<_>>())
        .filter_map(|child| child.parse().ok())
        .collect();
    children.iter().flat_map(|child| [vec![*child], descendants(*child)].concat()).collect()
}

/// Waits until a server has a process for each of these commands, and returns all that it has.
fn companions(server: u32, commands: &[&str]) -> Vec<u32> {
    eventually("the server's processes run", || {
        let found = descendants(server);
        let words: String = found
            .iter()
            .filter_map(|process| std::fs::read_to_string(format!("/proc/{process}/cmdline")).ok())
            .collect();
        commands.iter().all(|command| words.contains(&format!("\0{command}\0"))).then_some(found)
    })
}

const SYS_NICE_AND_IPC_LOCK: u64 = 1 << 23 | 1 << 14;
const SYS_PTRACE: u64 = 1 << 19;

/// Checks that no thread of a process has more capabilities of root's than these, or can gain any;
/// returns the threads' names.
fn has_no_more_than(allowed: u64, process: u32) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).expect("it runs");
    let check = |path: PathBuf| {
        let status = std::fs::read_to_string(path.join("status")).ok()?;
        let value = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a value");
            line.trim().to_owned()
        };
        let name = value("Name:");
        for set in ["CapEff:", "CapPrm:", "CapInh:"] {
            let rights = u64::from_str_radix(&value(set), 16).expect("a number");
            assert_eq!(rights & !allowed, 0, "{name}: {set} {rights:x}");
        }
        assert_eq!(value("NoNewPrivs:"), "1", "{name}");
        Some(name)
    };
    // A thread may have ended meanwhile.
    tasks.filter_map(|task| check(task.expect("a thread").path())).collect()
}

#[test]
fn a_running_server_drops_most_of_roots_capabilities() {
    let mut server = Server::recording(&[
        "--quantum",
        "256",
        "--web",
        "127.0.0.1:0",
        "-I",
        "profiler",
        "--pulse",
        "--add-device",
        "null",
    ]);
    let _source = server.probe(&["source", "source"]);
    server.await_active("profiler");
    let server = server.program().id();
    let companions = companions(server, &["web", "host", "pulse"]);
    eventually("threads of a driver and of a device run", || {
        let threads = has_no_more_than(SYS_NICE_AND_IPC_LOCK, server);
        let has = |name: &str| threads.iter().any(|thread| thread == name);
        (has("file-writer") && has("consort-device")).then_some(())
    });
    for process in companions {
        has_no_more_than(SYS_NICE_AND_IPC_LOCK, process);
    }
}

#[test]
fn page_and_plug_ins_of_a_server_that_looks_at_processes_look_at_none() {
    let directory = TempDir::with_prefix("consort-policy-").expect("room");
    let file = |name: &str, content: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, content).expect("room");
        path.to_string_lossy().into_owned()
    };
    let (policy, token) = (file("policy", "everything exe=*\n"), file("token", &"t".repeat(16)));
    let mut server = Server::start(&[
        "--quantum",
        "256",
        "--policy",
        &policy,
        "--web",
        "127.0.0.1:0",
        "--web-token-file",
        &token,
        "-I",
        "profiler",
    ]);
    server.await_active("profiler");
    let server = server.program().id();
    let companions = companions(server, &["web", "host"]);
    has_no_more_than(SYS_NICE_AND_IPC_LOCK | SYS_PTRACE, server);
    for process in companions {
        has_no_more_than(SYS_NICE_AND_IPC_LOCK, process);
    }
}

/// Starts a server whose standard error is a pipe that no process reads, and checks that it
/// answers, also after it had something to report, and that it ends in order.
fn runs_without_a_reader(prepare: impl FnOnce(&mut io::PipeReader, &mut io::PipeWriter)) {
    let place = TempDir::with_prefix("consort-test-").expect("room");
    let (mut reader, mut writer) = io::pipe().expect("a pipe");
    prepare(&mut reader, &mut writer);
    let mut command = command_in(place.path(), &binary("consort"));
    let words = ["run", "-n", "under-test", "--no-realtime", "--web", "127.0.0.1:0"];
    command.args(words).stderr(writer).stdout(Stdio::null());
    let mut server = command.spawn().expect("a process");
    let consort = |words: &[&str]| {
        let mut command = command_in(place.path(), &binary("consort"));
        command.args(words);
        Program::start(command).finish()
    };
    eventually("it answers", || (consort(&["status"]).code == Some(0)).then_some(()));
    for playback in ["1", "2"] {
        consort(&["driver", "timer", "--playback", playback]).expect_success();
    }
    // The ALSA library has something to say to that as well.
    let refused = consort(&["driver", "alsa", "--device", "missing"]);
    assert_says("a missing device", &refused.stderr, &["neither plays nor records"]);
    consort(&["status"]).expect_success();
    consort(&["stop"]).expect_success();
    assert!(server.wait().expect("its child").success());
    drop(reader);
}

#[test]
fn a_server_whose_standard_error_is_full_continues() {
    runs_without_a_reader(|_reader, writer| {
        let fd = &*writer;
        let flags = rustix::fs::fcntl_getfl(fd).expect("a pipe");
        rustix::fs::fcntl_setfl(fd, flags | OFlags::NONBLOCK).expect("a pipe");
        let mut whole = &*writer;
        while whole.write(&[b'.'; 4096]).is_ok() {}
        rustix::fs::fcntl_setfl(fd, flags).expect("a pipe");
    });
}

#[test]
fn a_server_whose_standard_error_is_closed_continues() {
    runs_without_a_reader(|reader, _writer| {
        *reader = io::pipe().expect("another pipe").0;
    });
}

#[test]
fn a_missing_port_is_reported_with_how_to_list_the_ports() {
    let server = server();
    for command in [
        &["connect", "nobody:out", "system:playback_1"][..],
        &["disconnect", "--all", "nobody:out"],
    ] {
        let refused = server.consort(command);
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert_says("a port", &refused.stderr, &["there is no port 'nobody:out'", "consort ls"]);
    }
}
