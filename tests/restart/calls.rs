//! What libjack answers while there is no server: every call returns.

use harness::{Program, Server, c_program, eventually};
use rustix::process::Signal;

fn caller(server: &Server, what: &str, grace_ms: &str) -> Program {
    let mut command = server.command(&c_program("restart/caller.c"));
    command.args(["caller", what]).env("CONSORT_GRACE_MS", grace_ms);
    let mut caller = Program::start(command);
    await_line(&mut caller, "ready");
    caller
}

fn await_line(program: &mut Program, begin: &str) -> String {
    eventually(&format!("a line '{begin}'"), || {
        assert!(program.is_running(), "it has ended: {}", program.stderr());
        let printed = program.stdout();
        let whole = printed.rfind('\n').map_or("", |end| &printed[..end]);
        whole.lines().find(|line| line.starts_with(begin)).map(str::to_owned)
    })
}

/// The results of a call: if no server comes, and with the next one.
const CALLS: [(&str, &str, &str); 22] = [
    ("jack_get_sample_rate", "48000", "48000"),
    ("jack_get_buffer_size", "256", "256"),
    ("jack_frame_time", "1", "1"),
    ("jack_last_frame_time", "1", "1"),
    ("jack_cpu_load", "1", "1"),
    ("jack_port_name", "0", "0"),
    ("jack_port_connected", "1", "1"),
    ("jack_get_ports", "1", "1"),
    ("jack_port_by_name", "1", "1"),
    ("jack_transport_query", "1", "1"),
    ("jack_deactivate", "0", "0"),
    ("jack_port_set_latency_range", "0", "0"),
    ("jack_port_register", "0", "1"),
    // An inactive client's port.
    ("jack_connect", "-1", "-1"),
    ("jack_disconnect", "-1", "-1"),
    ("jack_port_rename", "-1", "0"),
    ("jack_port_unregister", "-1", "0"),
    ("jack_set_buffer_size", "-1", "0"),
    ("jack_recompute_total_latencies", "-1", "0"),
    ("jack_activate", "-1", "0"),
    ("jack_client_open", "0", "1"),
    ("jack_client_close", "0", "0"),
];

fn answers(caller: &mut Program) -> Vec<(String, String)> {
    let lines = caller.stdout().lines().filter_map(|line| line.strip_prefix("call "));
    lines
        .filter_map(|line| line.split_once(' '))
        .map(|(call, answer)| (call.into(), answer.into()))
        .collect()
}

#[test]
fn every_call_returns_while_there_is_no_server() {
    let mut server = Server::timer(256);
    let mut caller = caller(&server, "once", "1500");
    server.kill();
    caller.signal(Signal::USR1);
    await_line(&mut caller, "all called");
    let expected = CALLS.map(|(call, answer, _)| (call.to_owned(), answer.to_owned()));
    assert_eq!(answers(&mut caller), expected);
    caller.terminate().expect_success();
}

#[test]
fn calls_that_need_a_server_are_answered_by_the_next_one() {
    let mut server = Server::timer(256);
    let mut caller = caller(&server, "once", "60000");
    server.kill();
    caller.signal(Signal::USR1);
    // The last of those that need no server.
    await_line(&mut caller, "call jack_deactivate");
    server.start_again();
    await_line(&mut caller, "all called");
    let expected = CALLS.map(|(call, _, answer)| (call.to_owned(), answer.to_owned()));
    assert_eq!(answers(&mut caller), expected);
    caller.terminate().expect_success();
}

#[test]
fn a_client_is_closed_at_once_while_there_is_no_server() {
    let mut server = Server::timer(256);
    let caller = caller(&server, "once", "60000");
    server.kill();
    // The end of its process closes it.
    caller.terminate().expect_success();
    server.start_again();
    eventually("newcomers are let in", || server.lsp(&[]).contains("system:").then_some(()));
    assert!(!server.lsp(&[]).contains("caller:"));
}

#[test]
fn a_request_at_the_moment_of_the_servers_death_is_answered() {
    for what in ["activate", "connect"] {
        for _ in 0..5 {
            let mut server = Server::timer(64);
            let mut caller = caller(&server, what, "60000");
            caller.signal(Signal::USR1);
            // In the middle of one of very many calls.
            server.kill();
            server.start_again();
            eventually("the client is back", || {
                server.lsp(&[]).contains("caller:out").then_some(())
            });
            caller.signal(Signal::USR2);
            let line = await_line(&mut caller, "loop ");
            assert!(line.ends_with(" 0 failed"), "{what}: {line}");
            caller.terminate().expect_success();
        }
    }
}
