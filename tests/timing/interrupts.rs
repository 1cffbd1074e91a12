//! CPUs reserved for the server: the processor set of the timing paper.

use std::collections::BTreeMap;
use std::path::PathBuf;

use harness::{Program, Server, binary, eventually};

/// The CPUs of each interrupt.
fn interrupts() -> BTreeMap<PathBuf, String> {
    let entries = std::fs::read_dir("/proc/irq").into_iter().flatten().flatten();
    let lists = entries.map(|entry| entry.path().join("smp_affinity_list"));
    lists
        .filter_map(|list| {
            Some((list.clone(), std::fs::read_to_string(list).ok()?.trim().to_owned()))
        })
        .collect()
}

#[test]
fn interrupts_avoid_the_servers_cpus_as_long_as_it_runs() {
    if std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() < 2) {
        harness::not_run("one CPU");
        return;
    }
    // For its directory.
    let other = Server::timer(1024);
    let before = interrupts();
    let mut command = other.command(&binary("consort").to_string_lossy());
    command.args(["run", "-n", "apart", "--cpus", "1", "--move-interrupts"]);
    let mut server = Program::start(command);
    let runs = eventually("the server runs, or may not move interrupts", || {
        let runs = server.stderr().contains("runs:");
        (runs || !server.is_running()).then_some(runs)
    });
    if !runs {
        assert!(
            server.stderr().contains("cannot move interrupts away from the CPUs 1"),
            "{}",
            server.stderr()
        );
        harness::not_run("no right to move interrupts here");
        return;
    }
    let line = server
        .stderr()
        .lines()
        .find(|line| line.contains("interrupts moved"))
        .expect("a line")
        .to_owned();
    let counts: Vec<usize> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
    let now = interrupts();
    let left = now.iter().filter(|(list, cpus)| before.get(*list) != Some(*cpus)).count();
    assert_eq!(Some(&left), counts.first(), "{line}");
    server.terminate().expect_success();
    assert_eq!(interrupts(), before);
}
