//! A server that no program needs runs no cycles, and sleeps until it is called.
#![forbid(unsafe_code)]

use std::time::Duration;

use harness::{Server, c_program, eventually, not_run};

/// How often the kernel has switched to a thread of this process.
fn switches(process: u32) -> u64 {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).expect("a process");
    let status = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("status")).ok();
    let counts = tasks.flatten().filter_map(status).flat_map(|status| {
        let counts = status.lines().filter(|line| line.contains("ctxt_switches:"));
        let number = |line: &str| line.split_whitespace().nth(1)?.parse::<u64>().ok();
        counts.filter_map(number).collect::<Vec<_>>()
    });
    counts.sum()
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
        return not_run("the timer missed a cycle, whose frames the clock does not count");
    }
    let is_digit = |character: char| character.is_ascii_digit();
    let numbers = printed.split(|character| !is_digit(character)).filter(|word| !word.is_empty());
    let numbers: Vec<u32> = numbers.map(|word| word.parse().expect("a number")).collect();
    let [backwards, ahead, behind] = numbers[..] else { panic!("{printed}") };
    assert_eq!(backwards, 0, "{printed}");
    assert!(ahead < QUANTUM && behind < QUANTUM, "{printed}");
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
