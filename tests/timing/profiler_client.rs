//! The profiler client: measures as signals, and ports that come and go as clients do.

use harness::{Program, Server, Sound, binary, eventually};

fn profiler(server: &Server, options: &[&str]) -> Program {
    let mut command = server.command(&binary("consort").to_string_lossy());
    command.args(["profile", "ports"]).args(options);
    let mut profiler = Program::start(command);
    eventually("the profiler is a client", || {
        assert!(profiler.is_running(), "{}", profiler.stderr());
        server.has_ports("profiler").then_some(())
    });
    profiler
}

fn ports(server: &Server) -> Vec<String> {
    let mut ports: Vec<String> = server
        .lsp(&[])
        .lines()
        .filter_map(|line| line.strip_prefix("profiler:"))
        .map(str::to_owned)
        .collect();
    ports.sort();
    ports
}

#[test]
fn the_profilers_ports_follow_the_clients() {
    let server = Server::timer(256);
    let first = server.probe(&["source", "first"]);
    let mut profiler = profiler(&server, &["-c", "-p", "-e"]);
    let general = ["cpu_load", "driver_end_time", "driver_period"];
    let of = |client: &str| [format!("{client}:duration"), format!("{client}:scheduling")];
    let await_ports = |clients: &[&str]| {
        let mut expected: Vec<String> = general.map(str::to_owned).to_vec();
        expected.extend(clients.iter().flat_map(|client| of(client)));
        expected.sort();
        eventually(&format!("ports of {clients:?}"), || (ports(&server) == expected).then_some(()));
    };
    await_ports(&["first"]);
    let second = server.probe(&["check", "second", "--from", "first:out"]);
    await_ports(&["first", "second"]);
    drop(first);
    await_ports(&["second"]);
    drop(second);
    await_ports(&[]);
    let _again = server.probe(&["source", "first"]);
    await_ports(&["first"]);
    assert!(profiler.is_running(), "{}", profiler.stderr());
}

#[test]
fn a_measure_is_one_value_for_a_whole_cycle() {
    const QUANTUM: usize = 256;
    let server = Server::recording(&["--quantum", "256"]);
    let _first = server.probe(&["source", "first"]);
    let _profiler = profiler(&server, &["--end"]);
    server.await_port("profiler:first:duration");
    for (port, channel) in [("profiler:first:duration", "1"), ("profiler:driver_end_time", "2")] {
        server.run("jack_connect", &[port, &format!("system:playback_{channel}")]).expect_success();
    }
    // A second is recorded.
    server.await_cycles(200);
    let Sound { channels, .. } = server.recorded();
    for channel in &channels {
        let sounding = channel.iter().filter(|sample| **sample > 0.0).count();
        assert!(sounding >= QUANTUM, "a cycle is heard at least");
        assert!(channel.iter().all(|sample| (0.0..=1.0).contains(sample)));
        // The recording begins with a cycle: a value changes only where another begins.
        let changes = channel.windows(2).enumerate().filter(|(_, pair)| pair[0] != pair[1]);
        assert!(changes.into_iter().all(|(at, _)| (at + 1) % QUANTUM == 0));
    }
}
