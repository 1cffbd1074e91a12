//! The front end that a server starts: `consort run --pulse`.

use std::os::unix::net::UnixListener;
use std::path::Path;

use harness::{Counts, Finished, Program, Server, Stretch, command_in, eventually};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tempfile::TempDir;

use crate::server_gone::{FADE, TAKE, await_taken, compare_halves, noises, taken};
use crate::{RATE_HZ, compare, path, ramps};

pub(crate) fn options<'a>(further: &[&'a str]) -> Vec<&'a str> {
    [&["--driver", "timer", "--quantum", "1024"], further].concat()
}

fn directory() -> TempDir {
    TempDir::with_prefix("consort-test-").expect("a temporary directory")
}

/// The front end's process, which the server of this process has started.
fn front_end(server: u32) -> Option<u32> {
    let processes = std::fs::read_dir("/proc").expect("/proc").flatten();
    let mut found = processes.filter_map(|process| process.file_name().to_str()?.parse().ok());
    found.find(|process: &u32| {
        let read = |file: &str| std::fs::read_to_string(format!("/proc/{process}/{file}"));
        let is_child =
            read("status").is_ok_and(|status| status.contains(&format!("PPid:\t{server}\n")));
        is_child && read("cmdline").is_ok_and(|words| words.starts_with("consort\0pulse\0"))
    })
}

pub(crate) fn await_front_end(server: &mut Server) -> u32 {
    let server = server.program().id();
    eventually("the front end runs", || front_end(server))
}

/// Runs a program that finds the front end where it would find PulseAudio.
pub(crate) fn run(directory: &Path, program: &str, arguments: &[&str]) -> Finished {
    let mut command = command_in(directory, Path::new(program));
    for variable in ["PULSE_SERVER", "PULSE_SINK", "PULSE_LATENCY_MSEC", "PULSE_COOKIE"] {
        command.env_remove(variable);
    }
    command.args(arguments);
    Program::start(command).finish()
}

pub(crate) fn await_socket(server: &Server) {
    eventually("the socket is there", || {
        server.directory().join("pulse/native").exists().then_some(())
    });
}

#[test]
fn programs_play_on_a_server_that_was_started_for_them() {
    harness::in_three_attempts(|| {
        let directory = directory();
        let recorded = directory.path().join("recorded.wav");
        let server = Server::start_with(directory, &options(&["--pulse"]), |command| {
            command.env("CONSORT_RECORD_NULL_DEVICE", recorded);
        });
        await_socket(&server);
        let sound = ramps(RATE_HZ as usize);
        let file = server.directory().join("played.wav");
        sound.write(&file);
        run(server.directory(), "paplay", &[path(&file)]).expect_success();
        compare(&server.recorded(), &sound.channels)
    });
}

#[test]
fn a_front_end_that_is_killed_is_replaced_and_no_program_is_refused() {
    let mut server = Server::start(&options(&["--pulse"]));
    await_socket(&server);
    let mut earlier = Vec::new();
    for _ in 0..3 {
        let process = await_front_end(&mut server);
        assert!(!earlier.contains(&process), "it is another one");
        run(server.directory(), "pactl", &["info"]).expect_success();
        let pid = Pid::from_raw(process as i32).expect("a process");
        kill_process(pid, Signal::KILL).expect("it runs");
        // At once: it waits for the next one.
        run(server.directory(), "pactl", &["info"]).expect_success();
        earlier.push(process);
    }
    let said = server.program().stderr();
    assert!(said.contains("has ended (signal: 9 (SIGKILL)); it is started again in"), "{said}");
    server.consort(&["status"]).expect_success();
}

/// A program that stays connected until it is ended.
pub(crate) fn listener(server: &Server) -> Program {
    let mut command = command_in(server.directory(), Path::new("pactl"));
    command.arg("subscribe").env_remove("PULSE_SERVER");
    let mut listener = Program::start(command);
    eventually("it has subscribed", || {
        run(server.directory(), "pactl", &["info"]);
        listener.stdout().contains("client").then_some(())
    });
    listener
}

fn runs(process: u32) -> bool {
    Path::new(&format!("/proc/{process}")).exists()
}

pub(crate) fn await_no_process(process: u32) {
    eventually("it has ended", || (!runs(process)).then_some(()));
}

/// Has the server end, after which nobody else must end it.
fn stop(server: &mut Server) {
    server.program().signal(Signal::TERM);
    eventually("the server has ended", || (!server.program().is_running()).then_some(()));
}

pub(crate) const LONG: [&str; 3] = ["--pulse", "--grace", "600000"];

#[test]
fn the_front_end_comes_before_ordinary_programs_as_the_server_does() {
    let mut server = Server::start(&options(&["--pulse"]));
    await_socket(&server);
    let front_end = await_front_end(&mut server);
    run(server.directory(), "pactl", &["info"]).expect_success();
    let nice = |process: u32| {
        let process = Pid::from_raw(process as i32).expect("a process");
        rustix::process::getpriority_process(Some(process)).expect("it runs")
    };
    // Both are ordinary where that is not permitted.
    assert_eq!(nice(front_end), nice(server.program().id()));
}

#[test]
fn a_front_end_without_programs_ends_with_its_server_and_leaves_the_next_one_its_socket() {
    let mut server = Server::start(&options(&LONG));
    for end in [Server::kill, stop] {
        let process = await_front_end(&mut server);
        run(server.directory(), "pactl", &["info"]).expect_success();
        end(&mut server);
        await_no_process(process);
        assert!(!server.directory().join("pulse/native").exists());
        server.start_again();
        eventually("the next one serves", || {
            (run(server.directory(), "pactl", &["info"]).code == Some(0)).then_some(())
        });
    }
}

#[test]
fn a_player_and_a_recorder_stay_connected_when_their_server_is_killed_or_stopped() {
    for end in [Server::kill, stop] {
        harness::in_three_attempts(|| {
            let mut server = Server::start(&options(&LONG));
            await_socket(&server);
            let process = await_front_end(&mut server);
            let sound = noises(8 * RATE_HZ as usize);
            let song = server.directory().join("song.wav");
            sound.write(&song);
            let file = server.directory().join("taken.raw");
            let spawn = |program: &str, arguments: &[&str]| {
                let mut command = command_in(server.directory(), Path::new(program));
                command.args(arguments).env_remove("PULSE_SERVER");
                Program::start(command)
            };
            let recorder = spawn("parec", &[&TAKE[..], &[path(&file)]].concat());
            eventually("it records", || {
                let sources = run(server.directory(), "pactl", &["list", "short", "sources"]);
                sources.stdout.contains("RUNNING").then_some(())
            });
            let player = spawn("paplay", &[path(&song)]);
            await_taken(&file, 2 * RATE_HZ as usize);
            end(&mut server);
            server.start_again();
            player.finish().expect_success();
            std::thread::sleep(std::time::Duration::from_millis(500));
            recorder.signal(Signal::INT);
            recorder.finish();
            let id = server.program().id();
            assert!(runs(process), "it serves the next server");
            assert_eq!(front_end(id), None, "which has started none");
            compare_halves(&taken(&file), &sound, (RATE_HZ as usize / 10, 0))
        });
    }
}

#[test]
fn a_front_end_that_was_adopted_is_replaced_when_it_dies_and_ends_with_its_programs() {
    let mut server = Server::start(&options(&LONG));
    await_socket(&server);
    let first = await_front_end(&mut server);
    let listens = listener(&server);
    for _ in 0..2 {
        server.kill();
        server.start_again();
        eventually("it serves the next server", || {
            let sinks = run(server.directory(), "pactl", &["list", "short", "sinks"]);
            sinks.stdout.contains("consort").then_some(())
        });
    }
    let id = server.program().id();
    assert!(runs(first) && front_end(id).is_none());
    kill_process(Pid::from_raw(first as i32).expect("a process"), Signal::KILL).expect("it runs");
    assert_ne!(listens.finish().code, Some(0), "its connection has ended");
    let second = await_front_end(&mut server);
    let listens = listener(&server);
    server.kill();
    assert!(runs(second));
    drop(listens);
    await_no_process(second);
}

#[test]
fn a_front_end_whose_programs_wait_in_vain_ends_with_the_grace_period() {
    // Longer than a program takes to start on a busy machine.
    let mut server = Server::start(&options(&["--pulse", "--grace", "8000"]));
    await_socket(&server);
    let process = await_front_end(&mut server);
    let listens = listener(&server);
    server.kill();
    run(server.directory(), "pactl", &["info"]).expect_success();
    await_no_process(process);
    assert_ne!(listens.finish().code, Some(0), "its connection has ended");
    assert!(!server.directory().join("pulse/native").exists());
}

#[test]
fn an_interrupt_from_the_terminal_ends_the_front_end_with_its_programs_connected() {
    let mut server = Server::start(&options(&LONG));
    await_socket(&server);
    let process = await_front_end(&mut server);
    let listens = listener(&server);
    let group = Pid::from_raw(server.program().id() as i32).expect("a process");
    kill_process_group(group, Signal::INT).expect("they run");
    eventually("the server has ended", || (!server.program().is_running()).then_some(()));
    await_no_process(process);
    listens.finish();
    eventually("no socket is left", || {
        (!server.directory().join("pulse/native").exists()).then_some(())
    });
    let said = server.program().stderr();
    assert!(!said.contains("has ended ("), "nothing to complain about: {said}");
}

#[test]
fn a_socket_of_another_sound_server_is_left_to_it_and_the_server_runs_without() {
    let directory = directory();
    std::fs::create_dir(directory.path().join("pulse")).expect("room");
    let socket = directory.path().join("pulse/native");
    let other = UnixListener::bind(&socket).expect("a socket");
    let mut server = Server::start_in(directory, &options(&["--pulse"]));
    eventually("it is reported", || {
        let said = server.program().stderr();
        let line =
            said.lines().find(|line| line.contains("no programs of PulseAudio are served"))?;
        assert!(line.contains("another sound server listens on"), "{line}");
        assert!(line.contains(path(&socket)), "{line}");
        Some(())
    });
    server.consort(&["status"]).expect_success();
    let id = server.program().id();
    assert_eq!(front_end(id), None);
    server.stop().expect_success();
    drop(other);
}

#[test]
fn a_socket_that_an_option_names_is_served() {
    let directory = directory();
    let socket = directory.path().join("elsewhere");
    let named = path(&socket).to_owned();
    let server = Server::start_in(directory, &options(&["--pulse-socket", &named]));
    eventually("it listens", || socket.exists().then_some(()));
    let mut command = server.command("pactl");
    command.arg("info").env("PULSE_SERVER", format!("unix:{named}"));
    Program::start(command).finish().expect_success();
    assert!(!server.directory().join("pulse/native").exists());
}

/// Kills the front end, and waits for the next one.
fn kill_front_end(server: &mut Server) {
    let process = await_front_end(server);
    let pid = Pid::from_raw(process as i32).expect("a process");
    kill_process(pid, Signal::KILL).expect("it runs");
    eventually("it is another one", || (await_front_end(server) != process).then_some(()));
}

#[test]
fn the_default_sink_is_kept_when_the_front_end_is_killed_and_when_the_server_ends() {
    let mut server = Server::start(&options(&["--pulse"]));
    await_socket(&server);
    let add = |server: &Server| {
        server.consort(&["device", "add", "null", "--name", "other"]).expect_success();
    };
    let pactl = |server: &Server, arguments: &[&str]| {
        run(server.directory(), "pactl", arguments).expect_success().stdout
    };
    add(&server);
    pactl(&server, &["set-default-sink", "other"]);
    pactl(&server, &["set-default-source", "consort.monitor"]);
    let file = server.directory().join(".local/state/consort/desktop-under-test.json");
    eventually("it is kept", || {
        let kept = serde_json::from_slice::<serde_json::Value>(&std::fs::read(&file).ok()?).ok()?;
        let are_both =
            kept["default_sinks"][0] == "other" && kept["default_source"] == "consort.monitor";
        are_both.then_some(())
    });
    kill_front_end(&mut server);
    assert_eq!(pactl(&server, &["get-default-sink"]), "other\n");
    assert_eq!(pactl(&server, &["get-default-source"]), "consort.monitor\n");
    server.kill();
    server.start_again();
    // As long as there is no such sink, it is another one.
    eventually("the next one serves", || {
        let finished = run(server.directory(), "pactl", &["get-default-sink"]);
        (finished.stdout == "consort\n").then_some(())
    });
    add(&server);
    eventually("it is back", || (pactl(&server, &["get-default-sink"]) == "other\n").then_some(()));
}

#[test]
fn a_default_sink_that_cannot_be_kept_is_chosen_all_the_same() {
    let directory = directory();
    std::fs::write(directory.path().join(".local"), "no directory").expect("written");
    let mut server = Server::start_in(directory, &options(&["--pulse"]));
    await_socket(&server);
    server.consort(&["device", "add", "null", "--name", "other"]).expect_success();
    let pactl =
        |arguments: &[&str]| run(server.directory(), "pactl", arguments).expect_success().stdout;
    pactl(&["set-default-sink", "other"]);
    assert_eq!(pactl(&["get-default-sink"]), "other\n");
    eventually("it is reported", || {
        let said = server.program().stderr();
        said.contains("desktop-under-test.json: ").then_some(())
    });
}

#[test]
fn a_program_of_jack_misses_nothing_when_the_front_end_is_killed() {
    harness::in_three_attempts(|| {
        let mut server = Server::start(&options(&["--pulse"]));
        await_socket(&server);
        let _source = server.probe(&["source", "source"]);
        let check = server.probe(&["check", "check", "--from", "source:out"]);
        let file = server.directory().join("played.wav");
        noises(20 * RATE_HZ as usize).write(&file);
        for _ in 0..3 {
            let mut command = command_in(server.directory(), Path::new("paplay"));
            command.arg(&file).env_remove("PULSE_SERVER");
            let player = Program::start(command);
            let has_stream = || {
                server.consort_json(&["status"])["streams"]
                    .as_array()
                    .is_some_and(|all| !all.is_empty())
            };
            eventually("it plays", || has_stream().then_some(()));
            kill_front_end(&mut server);
            assert_ne!(player.finish().code, Some(0), "its connection has ended");
            await_front_end(&mut server);
        }
        let counts = Counts::of(check);
        assert!(counts.good > 10, "{counts:?}");
        if counts.wrong + counts.missed > 0 {
            return Err(format!("{counts:?}"));
        }
        Ok(())
    });
}

#[test]
fn the_streams_of_a_front_end_that_is_killed_fade_out_at_once() {
    harness::in_three_attempts(|| {
        let directory = directory();
        let recorded = directory.path().join("recorded.wav");
        let mut server = Server::start_with(directory, &options(&["--pulse"]), |command| {
            command.env("CONSORT_RECORD_NULL_DEVICE", recorded);
        });
        await_socket(&server);
        let sound = noises(20 * RATE_HZ as usize);
        let file = server.directory().join("played.wav");
        sound.write(&file);
        let mut command = command_in(server.directory(), Path::new("paplay"));
        command.arg(&file).env_remove("PULSE_SERVER");
        let player = Program::start(command);
        let streams = |server: &Server| {
            let status = server.consort_json(&["status"]);
            status["streams"].as_array().expect("a list").len()
        };
        eventually("it plays", || (streams(&server) == 1).then_some(()));
        std::thread::sleep(std::time::Duration::from_secs(1));
        kill_front_end(&mut server);
        assert_ne!(player.finish().code, Some(0), "its connection has ended");
        eventually("its stream has ended", || (streams(&server) == 0).then_some(()));
        let recorded = server.recorded();
        let heard = Stretch::longest(&sound.channels[0], &recorded.channels[0]);
        if heard.sent_at > 0 {
            return Err(format!("the machine kept it from playing: {heard:?}"));
        }
        // Two seconds were queued.
        let rest = &recorded.channels[0][heard.recorded_at + heard.frames..];
        let fade = rest.iter().rposition(|sample| *sample != 0.0).map_or(0, |last| last + 1);
        assert!(fade <= FADE, "{fade} frames of a fade");
        assert!(heard.frames < 19 * RATE_HZ as usize);
        Ok(())
    });
}
