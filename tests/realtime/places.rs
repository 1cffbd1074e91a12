//! Where clients run, on a machine with more than one CPU.

use std::process::Command;

use harness::{Program, Server, eventually};
use rustix::process::Signal;
use serde_json::Value;

/// A probe in parallel with others that takes a fifth of each cycle: so much that two of them belong on two CPUs.
fn busy_probe(server: &Server, name: &str) -> Program {
    busy(server.probe_command(&["thru", name, "--fault", "fifth"]))
}

/// One that is kept on a CPU of its own choice.
fn busy_probe_on(cpu: u64, server: &Server, name: &str) -> Program {
    let probe = server.probe_command(&["thru", name, "--fault", "fifth"]);
    let mut command = server.command("taskset");
    command.args(["-c", &cpu.to_string()]).arg(probe.get_program()).args(probe.get_args());
    busy(command)
}

fn busy(probe: Command) -> Program {
    let mut probe = Program::start(probe);
    eventually("the probe is ready", || probe.stdout().contains("ready\n").then_some(()));
    probe.signal(Signal::USR1);
    probe
}

fn status(server: &Server) -> Value {
    serde_json::from_str(&server.consort(&["status", "--json"]).expect_success().stdout).expect("JSON")
}

/// The CPUs that clients are placed on, the driver's first; `None` if there is one only.
fn cpus(server: &Server) -> Option<(u64, u64)> {
    let status = status(server);
    let cpus = status["placement"]["cpus"].as_array().expect("a real-time server places clients");
    Some((cpus[0].as_u64()?, cpus.get(1)?.as_u64()?))
}

#[test]
fn a_client_whose_own_mask_refuses_its_place_is_left_to_the_kernel_and_the_status_says_why() {
    let server = Server::start(&["--quantum", "1024"]);
    let Some((driver, _)) = cpus(&server) else { return };
    let _probes = ["one", "two"].map(|name| busy_probe_on(driver, &server, name));
    let (refused, placed) = eventually("one of them is told to go to the other CPU", || {
        let clients = status(&server)["clients"].clone();
        let why = |client: &&Value, why: &str| client["place"]["why"] == why;
        let find = |word: &str| clients.as_array()?.iter().find(|client| why(client, word)).cloned();
        find("refused").zip(find("after"))
    });
    assert_ne!(refused["place"]["refused_cpu"], driver);
    assert!(refused["place"]["left_ms"].is_u64(), "{refused}");
    assert_eq!((&refused["cpu"], &refused["active"]), (&driver.into(), &true.into()));
    assert_eq!((&placed["place"]["cpu"], &placed["cpu"]), (&driver.into(), &driver.into()));
}

#[test]
fn of_cpus_that_were_asked_for_the_server_says_once_who_may_not_use_them() {
    let (driver, other) = match cpus(&Server::start(&[])) {
        Some(cpus) => cpus,
        None => return,
    };
    let mut server = Server::start(&["--quantum", "256", "--cpus", &other.to_string()]);
    let _probe = busy_probe_on(driver, &server, "elsewhere");
    let expected = format!("client 'elsewhere' does not run on CPU {other}, where it is told to");
    eventually("it is said", || server.program().stderr().contains(&expected).then_some(()));
    server.await_cycles(500);
    assert_eq!(server.program().stderr().matches("where it is told to").count(), 1);
    assert_eq!(status(&server)["clients"][0]["place"]["cpu"], other, "it is still told");
}

/// What the kernel says of the thread that wakes clients on another CPU than the driver's.
fn rouser_status(server: &mut Server) -> Option<String> {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", server.program().id())).ok()?;
    let statuses =
        tasks.flatten().filter_map(|task| std::fs::read_to_string(task.path().join("status")).ok());
    statuses.into_iter().find(|status| status.starts_with("Name:\tconsort-rouser\n"))
}

#[test]
fn three_clients_on_the_other_cpu_are_woken_by_a_thread_there() {
    let Some((driver, other)) = cpus(&Server::start(&[])) else { return };
    let mut server = Server::start(&["--quantum", "2048", "--cpus", &format!("{driver},{other}")]);
    let _probes: Vec<Program> =
        (1..=6).map(|number| busy_probe(&server, &format!("probe-{number}"))).collect();
    eventually("three of six are placed on it", || {
        let places = status(&server)["clients"].clone();
        let there = places.as_array()?.iter().filter(|client| client["place"]["cpu"] == other);
        (there.count() == 3).then_some(())
    });
    let status = eventually("there is such a thread", || rouser_status(&mut server));
    assert!(status.contains(&format!("\nCpus_allowed_list:\t{other}\n")), "{status}");
    let calls = |status: String| {
        let calls = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        calls.and_then(|calls| calls.trim().parse::<u64>().ok())
    };
    let before = calls(status).expect("a count");
    eventually("it is called in each cycle", || {
        (calls(rouser_status(&mut server)?)? >= before + 20).then_some(())
    });
}
