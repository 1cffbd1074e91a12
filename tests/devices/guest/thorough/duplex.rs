//! On a machine whose chip plays and records silence.

use harness::{Program, Server};

use crate::guest::{awaited, driver, server_on, xruns_and_cycles};

/// The frames of each measurement that `jack_iodelay` has printed.
fn measured(program: &mut Program) -> Vec<String> {
    let lines = program.stdout().lines().filter(|line| line.contains("total roundtrip latency"));
    lines.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

/// The latency in one direction that a client reads from a port.
pub(super) fn latency(server: &Server, port: &str, direction: &str) -> u32 {
    let listed = server.lsp(&["-l"]);
    let mut lines = listed.lines().skip_while(|line| *line != port).skip(1).take(2);
    let line = lines.find(|line| line.contains(direction)).expect("a line for each direction");
    let numbers: Vec<u32> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [least, most] = numbers[..] else { panic!("no range: {line}") };
    assert_eq!(least, most, "{line}");
    least
}

/// A program for which cycles run: without one, they end after a second.
fn cycling(server: &Server) -> Program {
    let metro = server.spawn("jack_metro", &["-b", "120"]);
    server.await_active("metro");
    metro
}

/// This many readings of `jack_iodelay` between the server's first two ports, frames with three
/// decimal places.
pub(super) fn readings_of_iodelay(server: &Server, count: usize) -> Vec<String> {
    let mut program = server.spawn("jack_iodelay", &[]);
    server.await_active("jack_delay");
    server.run("jack_connect", &["jack_delay:out", "system:playback_1"]).expect_success();
    server.run("jack_connect", &["system:capture_1", "jack_delay:in"]).expect_success();
    // The first measurement may span the connection.
    awaited("readings", || {
        let measured = measured(&mut program);
        (measured.len() > count).then(|| measured[1..=count].to_vec())
    })
}

/// Sends a measurement through the loopback card to a second server, which sends all its channels
/// back.
pub(super) fn demand_reported_latency(count: u32, options: &[&str]) {
    let words = count.to_string();
    let channels = ["--capture", &words, "--playback", &words];
    let far = server_on("hw:1,1", &[&channels[..], options].concat());
    let near = server_on("hw:1,0", &[&channels[..], options].concat());
    for channel in 1..=count {
        let ports = [format!("system:capture_{channel}"), format!("system:playback_{channel}")];
        far.run("jack_connect", &ports.each_ref().map(String::as_str)).expect_success();
    }
    let reported: u32 = [&near, &far]
        .map(|server| {
            latency(server, "system:capture_1", "capture")
                + latency(server, "system:playback_1", "playback")
        })
        .iter()
        .sum();
    let expected = format!("{reported}.000");
    let readings = readings_of_iodelay(&near, 20);
    assert!(
        readings.iter().all(|frames| *frames == expected),
        "{options:?}: {expected}: {readings:?}"
    );
}

#[test]
#[ignore = "in the virtual machine"]
fn twenty_readings_are_the_reported_latency_to_the_frame() {
    demand_reported_latency(2, &["--quantum", "256", "--periods", "3"]);
    demand_reported_latency(2, &["--quantum", "512", "--periods", "3", "--sync"]);
    demand_reported_latency(2, &["--quantum", "512", "--periods", "4", "--wake", "timer"]);
}

#[test]
#[ignore = "in the virtual machine"]
fn a_new_quantum_brings_new_latencies_and_the_same_ports() {
    let server = server_on("hw:0", &["--quantum", "1024", "--periods", "3"]);
    let reported = || {
        (
            latency(&server, "system:capture_1", "capture"),
            latency(&server, "system:playback_1", "playback"),
        )
    };
    assert_eq!(reported(), (1024, 3072));
    let _metro = cycling(&server);
    server.run("jack_bufsize", &["2048"]).expect_success();
    server.await_cycles(50);
    awaited("latencies of the new quantum", || (reported() == (2048, 6144)).then_some(()));
}

#[test]
#[ignore = "in the virtual machine"]
fn a_quantum_beyond_the_cards_memory_is_refused() {
    let server = server_on("hw:2", &["--quantum", "512", "--periods", "3"]);
    server.await_cycles(20);
    let refused = server.run("jack_bufsize", &["8192"]);
    assert_ne!(refused.code, Some(0), "{refused:?}");
    server.await_cycles(20);
    assert!(!driver(&server).contains("not there"));
    server.run("jack_bufsize", &["1024"]).expect_success();
}

#[test]
#[ignore = "in the virtual machine"]
fn the_latency_options_are_added_to_the_reported_latency() {
    let options = ["--quantum", "256", "--input-latency", "11", "--output-latency", "22"];
    let server = server_on("hw:2", &options);
    assert_eq!(latency(&server, "system:capture_1", "capture"), 256 + 11);
    assert_eq!(latency(&server, "system:playback_1", "playback"), 512 + 22);
}

/// How often the driver thread has slept so far.
fn sleeps(server: &mut Server) -> u64 {
    let tasks =
        std::fs::read_dir(format!("/proc/{}/task", server.program().id())).expect("a process");
    let status = tasks
        .flatten()
        .filter_map(|task| std::fs::read_to_string(task.path().join("status")).ok())
        .find(|status| status.starts_with("Name:\tconsort-driver\n"))
        .expect("a driver thread");
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    line.and_then(|number| number.trim().parse().ok()).expect("a number")
}

#[test]
#[ignore = "in the virtual machine"]
fn the_timer_rule_wakes_once_a_cycle() {
    let options = ["--quantum", "1024", "--periods", "3", "--wake", "timer"];
    let mut server = server_on("hw:2", &options);
    let _metro = cycling(&server);
    server.await_cycles(100);
    let begin = (sleeps(&mut server), xruns_and_cycles(&server).1);
    server.await_cycles(300);
    let (wakes, cycles) = (sleeps(&mut server) - begin.0, xruns_and_cycles(&server).1 - begin.1);
    // The two are not read at the same moment: a few cycles between them are allowed for.
    assert!(wakes <= cycles + cycles / 20 + 5, "{wakes} wake-ups for {cycles} cycles");
    assert_eq!(xruns_and_cycles(&server).0, 0);
}
