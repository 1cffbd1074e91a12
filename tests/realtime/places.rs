//! Where clients run, on a machine with more than one CPU.

use harness::{Program, Server, eventually};
use rustix::process::Signal;
use serde_json::Value;

/// A probe that pins itself to a CPU, in parallel with others, and takes a fifth of each cycle, so
/// that two of them belong on two CPUs.
fn busy_probe_on(cpu: u64, server: &Server, name: &str) -> Program {
    let probe = server.probe_command(&["thru", name, "--fault", "fifth"]);
    let mut command = server.command("taskset");
    command.args(["-c", &cpu.to_string()]).arg(probe.get_program()).args(probe.get_args());
    let mut probe = Program::start(command);
    eventually("the probe is ready", || probe.stdout().contains("ready\n").then_some(()));
    probe.signal(Signal::USR1);
    probe
}

fn status(server: &Server) -> Value {
    server.consort_json(&["status"])
}

/// The CPUs that clients are placed on, the driver's first; `None` if there is only one.
fn cpus(server: &Server) -> Option<(u64, u64)> {
    let status = status(server);
    let cpus = status["placement"]["cpus"].as_array().expect("a real-time server places clients");
    Some((cpus[0].as_u64()?, cpus.get(1)?.as_u64()?))
}

#[test]
fn a_client_whose_own_mask_refuses_its_cpu_is_left_to_the_kernel() {
    let server = Server::start(&["--quantum", "1024"]);
    let Some((driver, _)) = cpus(&server) else { return };
    let _probes = ["one", "two"].map(|name| busy_probe_on(driver, &server, name));
    let (refused, placed) = eventually("one of them is assigned to the other CPU", || {
        let clients = status(&server)["clients"].clone();
        let why = |client: &&Value, why: &str| client["place"]["why"] == why;
        let find =
            |word: &str| clients.as_array()?.iter().find(|client| why(client, word)).cloned();
        find("refused").zip(find("after"))
    });
    assert_ne!(refused["place"]["refused_cpu"], driver);
    assert!(refused["place"]["left_ms"].is_u64(), "{refused}");
    assert_eq!((&refused["cpu"], &refused["active"]), (&driver.into(), &true.into()));
    assert_eq!((&placed["place"]["cpu"], &placed["cpu"]), (&driver.into(), &driver.into()));
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
    assert_eq!(status(&server)["clients"][0]["place"]["cpu"], other, "it is still reported");
}
