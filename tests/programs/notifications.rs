//! `jack_evmon`: what a program is notified of.

use harness::{Program, Server, eventually};
use rustix::process::Signal;

/// The events of clients, ports and connections, without changes of the order: connections that are
/// made together share one.
fn events(monitor: &mut Program) -> Vec<String> {
    monitor.stdout().lines().filter(|line| *line != "Graph reordered").map(str::to_owned).collect()
}

/// The events of a new client that connects two ports of its own to the playback ports, the 3rd and
/// 4th of the server.
const COMES: [&str; 5] = [
    "Client simple registered",
    "Port 5 registered",
    "Port 6 registered",
    "Ports 5 and 3 connected",
    "Ports 6 and 4 connected",
];
const GOES: [&str; 5] = [
    "Ports 5 and 3 disconnected",
    "Ports 6 and 4 disconnected",
    "Port 5 unregistered",
    "Port 6 unregistered",
    "Client simple unregistered",
];

/// Waits until the monitor has been notified of a new order since it printed `line`.
fn await_new_order(monitor: &mut Program, line: &str) {
    eventually(&format!("a new order after '{line}'"), || {
        let lines = monitor.stdout().lines();
        lines
            .skip_while(|found| *found != line)
            .any(|found| found == "Graph reordered")
            .then_some(())
    });
}

#[test]
fn jack_evmon_reports_each_event_of_a_client_once_in_order() {
    for (what, signal) in [("it closes", Signal::TERM), ("it is killed", Signal::KILL)] {
        let server = Server::timer(256);
        let mut monitor = server.spawn("jack_evmon", &[]);
        server.await_active("event-monitor");
        let mut command = server.command("jack_simple_client");
        command.arg("simple");
        let client = Program::start(command);
        eventually(what, || (events(&mut monitor).len() >= COMES.len()).then_some(()));
        assert_eq!(events(&mut monitor), COMES, "{what}");
        await_new_order(&mut monitor, COMES[4]);

        client.signal(signal);
        client.finish();
        await_new_order(&mut monitor, GOES[1]);
        eventually(what, || (events(&mut monitor).len() >= COMES.len() + GOES.len()).then_some(()));
        // A repeated event would come before the next one.
        const NEXT: &str = "Ports 1 and 3 connected";
        server.consort(&["connect", "system:capture_1", "system:playback_1"]).expect_success();
        await_new_order(&mut monitor, NEXT);
        let all = [&COMES[..], &GOES, &[NEXT]].concat();
        assert_eq!(events(&mut monitor), all, "{what}");
    }
}
