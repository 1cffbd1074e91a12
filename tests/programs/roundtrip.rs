//! `jack_iodelay`: the latency of a loop, measured by the sound's phase.

use harness::{Program, Server, eventually};

/// The frames of each measurement that `jack_iodelay` has printed.
fn measured(program: &mut Program) -> Vec<String> {
    let lines = program.stdout().lines().filter(|line| line.contains("total roundtrip latency"));
    lines.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

/// Loops `jack_iodelay` back to itself and asserts that it measures the quantum, to a thousandth of
/// a frame.
fn demand_one_quantum(quantum: u32, options: &[&str]) {
    let text = quantum.to_string();
    let server = Server::start(&[&["--quantum", &text], options].concat());
    let mut program = server.spawn("jack_iodelay", &[]);
    server.await_active("jack_delay");
    server.run("jack_connect", &["jack_delay:out", "jack_delay:in"]).expect_success();
    // The first measurement may span the connection, and any that spans a lost cycle is wrong: two
    // in a row count.
    let expected = format!("{quantum}.000");
    eventually(&format!("{quantum} frames, {options:?}"), || {
        let measured = measured(&mut program);
        measured.windows(2).any(|pair| pair.iter().all(|frames| *frames == expected)).then_some(())
    });
}

#[test]
fn a_loop_takes_exactly_one_quantum() {
    for quantum in [128, 480, 1024] {
        demand_one_quantum(quantum, &[]);
    }
}

#[test]
fn a_loop_takes_exactly_one_quantum_where_the_driver_waits_for_the_graph() {
    for quantum in [128, 480, 1024] {
        demand_one_quantum(quantum, &["--sync"]);
    }
}
