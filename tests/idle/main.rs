//! A server that no program needs runs no cycles, and sleeps until it is called. One whose cycles
//! run well wakes for nothing else.
#![forbid(unsafe_code)]

use std::time::Duration;

use harness::{
    MachineWatch, Program, Server, c_program, eventually, eventually_within, in_three_attempts,
};
use rustix::process::Signal;

/// How often the kernel has switched to a thread of this process.
fn switches(process: u32) -> u64 {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).expect("a process");
    let status = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("status")).ok();
    let of_thread = |status: String| counts(&status, "ctxt_switches:").sum::<u64>();
    tasks.flatten().filter_map(status).map(of_thread).sum()
}

/// How often the main thread of this process has slept.
fn main_sleeps(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/task/{process}/status"));
    let status = status.expect("a process");
    counts(&status, "voluntary_ctxt_switches:").next().expect("a count")
}

/// The counts in the kernel's status of a thread that have this in their names.
fn counts(status: &str, name: &str) -> impl Iterator<Item = u64> {
    let lines = status.lines().filter(move |line| line.contains(name));
    lines.filter_map(|line| line.split_whitespace().nth(1)?.parse().ok())
}

fn is_parked(server: &Server) -> bool {
    server.status().driver.contains("parked")
}

fn await_parked(server: &Server) {
    eventually("the driver is parked", || is_parked(server).then_some(()));
}

#[test]
fn an_idle_server_and_a_connected_program_never_wake() {
    let mut server = Server::timer(64);
    let mut resting = server.spawn(&c_program("idle/resting.c"), &[]);
    eventually("it rests", || resting.stdout().contains("rests").then_some(()));
    await_parked(&server);
    let processes = [server.program().id(), resting.id()];
    let all = || processes.map(switches);
    eventually("the timeouts of the last events have passed", || {
        let before = all();
        std::thread::sleep(Duration::from_secs(2));
        (all() == before).then_some(())
    });
    let before = all();
    std::thread::sleep(Duration::from_secs(10));
    assert_eq!(all(), before, "context switches of all threads");
}

#[test]
fn programs_come_to_a_parked_server_and_leave_it_as_ever() {
    let mut server = Server::timer(64);
    for _ in 0..3 {
        await_parked(&server);
        let cycles = server.cycles();
        let metronome = server.spawn("jack_metro", &["-b", "120"]);
        server.await_active("metro");
        server.await_cycles(cycles + 100);
        assert!(!is_parked(&server), "a program is active");
        metronome.terminate();
    }
    await_parked(&server);
    assert!(server.program().is_running());
    assert_eq!(server.status().load, 0.0);
}

#[test]
fn the_frame_clock_goes_on_without_cycles() {
    in_three_attempts(|| {
        const QUANTUM: u32 = 1024;
        let server = Server::timer(QUANTUM);
        await_parked(&server);
        let clock = server.spawn(&c_program("idle/clock.c"), &["8"]);
        for _ in 0..2 {
            let cycles = server.cycles();
            let metronome = server.spawn("jack_metro", &["-b", "120"]);
            server.await_cycles(cycles + 10);
            metronome.terminate();
            await_parked(&server);
        }
        let printed = clock.finish().expect_success().stdout;
        if server.status().xruns > 0 {
            return Err(
                "the timer missed a cycle, whose frames the clock does not count".to_owned()
            );
        }
        let is_digit = |character: char| character.is_ascii_digit();
        let numbers =
            printed.split(|character| !is_digit(character)).filter(|word| !word.is_empty());
        let numbers: Vec<u32> = numbers.map(|word| word.parse().expect("a number")).collect();
        let [backwards, ahead, behind] = numbers[..] else { panic!("{printed}") };
        assert_eq!(backwards, 0, "{printed}");
        assert!(ahead < QUANTUM && behind < QUANTUM, "{printed}");
        Ok(())
    });
}

#[test]
fn a_transport_that_rolls_needs_cycles() {
    let server = Server::timer(256);
    await_parked(&server);
    server.consort(&["transport", "start"]).expect_success();
    let cycles = server.cycles();
    // More than a parked server would run before it rests again.
    server.await_cycles(cycles + 400);
    assert!(!is_parked(&server));
    server.consort(&["transport", "stop"]).expect_success();
    await_parked(&server);
    server.consort(&["transport", "locate", "12345"]).expect_success();
    eventually("the transport stands there", || {
        (server.consort_json(&["transport", "show"])["frame"] == 12345).then_some(())
    });
    await_parked(&server);
}

#[test]
fn a_parked_server_takes_another_quantum_and_driver() {
    let server = Server::timer(64);
    await_parked(&server);
    server.run("jack_bufsize", &["512"]).expect_success();
    assert_eq!(server.status().quantum, 512);
    server.consort(&["driver", "timer", "--playback", "5"]).expect_success();
    server.await_port("system:playback_5");
    await_parked(&server);
    let metronome = server.spawn("jack_metro", &["-b", "120"]);
    let cycles = server.cycles();
    server.await_cycles(cycles + 20);
    metronome.terminate();
}

/// A server with cycles of a program.
fn cycling_server(options: &[&str]) -> (Server, Program) {
    let server = Server::start(&[&["--driver", "timer", "--quantum", "1024"], options].concat());
    let program = server.probe(&["source", "source"]);
    (server, program)
}

/// Waits until there was no event for longer than all timeouts.
fn await_calm(server: &mut Server) {
    let process = server.program().id();
    eventually_within(Duration::from_secs(90), "the control thread rests", || {
        let before = main_sleeps(process);
        std::thread::sleep(Duration::from_secs(4));
        (main_sleeps(process) - before <= 8).then_some(())
    });
}

#[test]
fn the_control_thread_rests_while_cycles_run_well() {
    let (mut server, _program) = cycling_server(&[]);
    await_calm(&mut server);
    let process = server.program().id();
    let before = switches(process);
    std::thread::sleep(Duration::from_secs(4));
    assert!(switches(process) - before > 150, "187 cycles run meanwhile");
}

#[test]
fn a_client_that_hangs_after_a_calm_time_is_suspended_as_soon_as_any() {
    // A quarter of a cycle: such a stall may make a client late that does not hang.
    const STALL_NS: u64 = 5_300_000;
    in_three_attempts(|| {
        let machine = MachineWatch::start(STALL_NS);
        // Ten cycles of 1,024 frames.
        let (mut server, program) = cycling_server(&["--client-timeout", "213"]);
        let client = |server: &Server| server.client("source").expect("it is a client still");
        // Asked for later, it would be the end of the calm.
        let before = client(&server).late_cycles;
        await_calm(&mut server);
        program.signal(Signal::STOP);
        std::thread::sleep(Duration::from_secs(2));
        let stopped = client(&server);
        let late = stopped.late_cycles - before;
        // Of what was recorded later, the first look would have found more.
        let is_in_time = stopped.bypassed && (10..=14).contains(&late);
        let stalls = machine.stalls().len();
        program.signal(Signal::CONT);
        if !is_in_time && stalls > 0 {
            return Err(format!("{late} cycles late, with {stalls} stalls: {stopped:?}"));
        }
        assert!(is_in_time, "{late} cycles late: {stopped:?}");
        Ok(())
    });
}
