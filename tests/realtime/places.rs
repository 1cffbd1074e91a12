//! Where clients run, on a machine with more than one CPU.

use harness::{Program, Server, eventually, not_run};
use proto::status::{ClientStatus, Place};
use rustix::process::Signal;

/// A probe that pins itself to a CPU, in parallel with others, and takes a fifth of each cycle, so
/// that two of them belong on two CPUs.
fn busy_probe_on(cpu: u32, server: &Server, name: &str) -> Program {
    let probe = server.probe_command(&["thru", name, "--fault", "fifth"]);
    let mut command = server.command("taskset");
    command.args(["-c", &cpu.to_string()]).arg(probe.get_program()).args(probe.get_args());
    let mut probe = Program::start(command);
    eventually("the probe is ready", || probe.stdout().contains("ready\n").then_some(()));
    probe.signal(Signal::USR1);
    probe
}

/// The CPUs that clients are placed on, the driver's first; `None` if there is only one, and the
/// calling test is reported as not run.
fn cpus(server: &Server) -> Option<(u32, u32)> {
    let placement = server.status().placement.expect("a real-time server places clients");
    let other = placement.cpus.get(1);
    if other.is_none() {
        not_run("clients are placed on one CPU only");
    }
    Some((placement.cpus[0], *other?))
}

#[test]
fn a_client_whose_own_mask_refuses_its_cpu_is_left_to_the_kernel() {
    let server = Server::start(&["--quantum", "1024"]);
    let Some((driver, _)) = cpus(&server) else { return };
    let _probes = ["one", "two"].map(|name| busy_probe_on(driver, &server, name));
    let is_refused = |client: &&ClientStatus| matches!(client.place, Some(Place::Refused { .. }));
    let is_after = |client: &&ClientStatus| matches!(client.place, Some(Place::After { .. }));
    let (refused, placed) = eventually("one of them is assigned to the other CPU", || {
        let clients = server.status().clients;
        clients.iter().find(is_refused).cloned().zip(clients.iter().find(is_after).cloned())
    });
    assert!(!matches!(refused.place, Some(Place::Refused { cpu, .. }) if cpu == driver));
    assert_eq!((refused.cpu, refused.active), (Some(driver), true));
    assert!(matches!(placed.place, Some(Place::After { cpu, .. }) if cpu == driver));
    assert_eq!(placed.cpu, Some(driver));
}

#[test]
fn a_client_that_may_not_use_its_cpus_is_reported_once() {
    let (driver, other) = match cpus(&Server::start(&[])) {
        Some(cpus) => cpus,
        None => return,
    };
    let mut server = Server::start(&["--quantum", "256", "--cpus", &other.to_string()]);
    let _probe = busy_probe_on(driver, &server, "elsewhere");
    let expected =
        format!("client 'elsewhere' does not run on CPU {other}, which --cpus assigns to it");
    eventually("it is reported", || server.program().stderr().contains(&expected).then_some(()));
    server.await_cycles(500);
    assert_eq!(server.program().stderr().matches("which --cpus assigns to it").count(), 1);
    let place = server.status().clients[0].place.clone();
    let Some(Place::After { cpu, .. } | Place::Beside { cpu }) = place else {
        panic!("it is not placed: {place:?}")
    };
    assert_eq!(cpu, other, "it is still reported");
}
