//! The number of clients and ports that a large session has, at once. JACK2's limits are 64 or 256
//! clients and 4096 ports.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;

use harness::{Program, Server, c_program, eventually};
use rustix::process::Signal;

const PROGRAMS: usize = 5;
const CLIENTS_OF_EACH: usize = 50;
const PORTS_OF_EACH: usize = 16;

/// The full names of one program's ports.
fn ports_of(program: &str) -> impl Iterator<Item = String> {
    let of_client = move |client: String| {
        (1..=PORTS_OF_EACH / 2).flat_map(move |port| {
            ["in", "out"].map(|direction| format!("{client}:{direction}-{port}"))
        })
    };
    (1..=CLIENTS_OF_EACH).map(move |number| format!("{program}-{number}")).flat_map(of_client)
}

/// Waits until each program has printed this many lines; the patience is for each line.
fn await_lines(programs: &mut [Program], count: usize, what: &str) {
    for program in programs {
        for count in 1..=count {
            eventually(what, || {
                let printed = program.stdout().lines().count();
                assert!(
                    printed >= count || program.is_running(),
                    "a program ended: {}",
                    program.stderr()
                );
                (printed >= count).then_some(())
            });
        }
    }
}

#[test]
fn callbacks_of_250_clients_with_4000_ports_run_at_once() {
    // A quantum of 85 ms, in which a busy machine too has time for every client.
    let server = Server::start(&["--quantum", "4096", "--port-max", "4096"]);
    let crowd = c_program("crowd/crowd.c");
    let (clients, ports) = (CLIENTS_OF_EACH.to_string(), PORTS_OF_EACH.to_string());
    let names: Vec<String> = (1..=PROGRAMS).map(|number| format!("crowd{number}")).collect();
    let start = |name: &String| server.spawn(&crowd, &[name, &clients, &ports]);
    let mut programs: Vec<Program> = names.iter().map(start).collect();
    await_lines(&mut programs, CLIENTS_OF_EACH, "one more client is open and active");
    // From here on no client comes or goes.
    programs.iter().for_each(|program| program.signal(Signal::USR1));
    await_lines(
        &mut programs,
        CLIENTS_OF_EACH + 1,
        "the callback of each client runs while all are there",
    );

    let listed = server.lsp(&[]);
    let listed: BTreeSet<&str> =
        listed.lines().filter(|port| !port.starts_with("system:")).collect();
    let expected: BTreeSet<String> = names.iter().flat_map(|name| ports_of(name)).collect();
    assert_eq!(expected.len(), 4000);
    assert!(
        listed.iter().copied().eq(expected.iter().map(String::as_str)),
        "{} ports are listed",
        listed.len()
    );

    let active = server.status().clients.iter().filter(|client| client.active).count();
    assert_eq!(active, PROGRAMS * CLIENTS_OF_EACH);

    // The ports can be connected: the first with the last.
    server.run("jack_connect", &["crowd1-1:out-1", "crowd5-50:in-8"]).expect_success();
    assert_eq!(server.status().connections, 1);
    for program in programs {
        program.signal(Signal::TERM);
        program.finish().expect_success();
    }
    eventually("their ports go", || (server.status().ports.0 == 4).then_some(()));
}
