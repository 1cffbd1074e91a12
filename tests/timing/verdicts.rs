//! Xruns and late clients are explained: each kind is caused, in random order, and the verdicts are
//! counted.

use std::fmt::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use harness::{Program, Server, binary, c_program, copy_program, eventually};
use rustix::process::Signal;
use serde_json::Value;

/// What is done to the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// The second client computes for longer than a cycle.
    Busy,
    /// The second client sleeps in its process callback.
    Blocked,
    /// Other threads take the CPUs from the clients, not from the driver.
    NotRunning,
    /// The first client takes most of the cycle, so that the second one has too little of it.
    SignaledLate,
    /// The second client's process is stopped.
    Stopped,
    /// Other threads take the CPUs from the driver, too.
    Driver,
}

const FAULTS: [Fault; 6] = [
    Fault::Busy,
    Fault::Blocked,
    Fault::NotRunning,
    Fault::SignaledLate,
    Fault::Stopped,
    Fault::Driver,
];
/// How often each is caused.
const ROUNDS: usize = 3;

impl Fault {
    /// The client that is late, and the right verdict. `None`: any client.
    fn answer(self) -> (Option<&'static str>, &'static str) {
        match self {
            Self::Busy => (Some("second"), "busy"),
            Self::Blocked => (Some("second"), "blocked"),
            Self::NotRunning => (None, "not-running"),
            Self::SignaledLate => (Some("second"), "signaled-late"),
            Self::Stopped => (Some("second"), "stopped"),
            Self::Driver => (Some("driver"), "not-running"),
        }
    }
}

struct Scenario {
    server: Server,
    first: Program,
    second: Program,
}

fn culprit(server: &Server, arguments: &[&str]) -> Program {
    let mut command = server.command(&c_program("victims/culprit.c"));
    command.args(arguments);
    Program::start(command)
}

impl Scenario {
    /// Cycles of 21 ms: the disturbances of a busy machine are shorter.
    fn new() -> Self {
        let server = Server::start(&["--quantum", "1024", "--client-timeout", "3000"]);
        let client = |name: &str, load: &str, from: &str| {
            let mut program = culprit(&server, &["client", name, "--from", from, "--load", load]);
            eventually("the client is ready", || {
                assert!(program.is_running(), "{name}: {}", program.stderr());
                program.stdout().contains("ready").then_some(())
            });
            program
        };
        let first = client("first", "2", "system:capture_1");
        let second = client("second", "30", "first:out");
        Self { server, first, second }
    }

    fn xruns(&self) -> Vec<Value> {
        let listed = self.server.consort(&["xruns", "--json"]).expect_success().stdout;
        listed.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    /// A program that is notified of xruns as they come.
    fn follower(&self) -> Program {
        let mut command = self.server.command(&binary("consort").to_string_lossy());
        command.args(["xruns", "--follow", "--json"]);
        Program::start(command)
    }

    /// Checks that it was notified of each one once, in order, with its verdict.
    fn expect_followed(&self, follower: &mut Program) {
        let last = self.xruns().last().expect("some")["number"].as_u64();
        let xruns = eventually("the newest one is reported", || {
            let lines =
                follower.stdout().lines().map(|line| serde_json::from_str(line).expect("JSON"));
            let xruns: Vec<Value> = lines.collect();
            (xruns.last()?["number"].as_u64() >= last).then_some(xruns)
        });
        assert!(xruns.iter().all(|xrun| xrun["verdict"].is_string()), "{xruns:?}");
        let numbers: Vec<u64> = xruns.iter().filter_map(|xrun| xrun["number"].as_u64()).collect();
        assert_eq!(numbers, (1..=xruns.len() as u64).collect::<Vec<_>>());
    }

    /// Waits until no client has been late for some cycles, so that typical durations are known.
    fn settle(&self) {
        eventually("10 cycles without an xrun", || {
            let xruns = self.server.status().xruns;
            self.server.await_cycles(10);
            (self.server.status().xruns == xruns).then_some(())
        });
    }

    fn signal(&self, to: &Program, number: u32) {
        let mut shell = self.server.command("sh");
        shell.args(["-c", &format!("kill -{} {}", 34 + number, to.id())]);
        Program::start(shell).finish().expect_success();
    }

    /// Takes all CPUs.
    fn hog(&self, priority: &str, ms: &str) {
        culprit(&self.server, &["hog", priority, ms]).finish().expect_success();
    }

    fn cause(&self, fault: Fault, is_noticed: impl Fn() -> bool) {
        match fault {
            Fault::Busy => self.signal(&self.second, 1),
            Fault::Blocked => self.signal(&self.second, 2),
            Fault::SignaledLate => self.signal(&self.first, 3),
            // Between the clients' priority, 5, and the driver's, 10; then above both.
            Fault::NotRunning => self.hog("7", "50"),
            Fault::Driver => self.hog("40", "70"),
            Fault::Stopped => {
                self.second.signal(Signal::STOP);
                eventually("it is missed", || is_noticed().then_some(()));
                self.second.signal(Signal::CONT);
            }
        }
    }

    /// The server's verdict on the client that must be late.
    fn verdict_on(&self, fault: Fault) -> (String, Value) {
        let last = self.xruns().last().map_or(0, |xrun| xrun["number"].as_u64().expect("a number"));
        let (who, _) = fault.answer();
        let about = || {
            self.xruns().into_iter().find(|xrun| {
                let client = xrun["client"].as_str();
                let is_meant = match who {
                    Some("driver") => client.is_none(),
                    Some(name) => client == Some(name),
                    None => client.is_some(),
                };
                xrun["number"].as_u64().expect("a number") > last && is_meant
            })
        };
        let is_judged = || about().filter(|xrun| !xrun["verdict"].is_null());
        // Once, unless it missed its cycle: then again.
        let mut triggered_at = None;
        let xrun = eventually(&format!("{fault:?} is noticed and judged"), || {
            let cycles = self.server.cycles();
            if triggered_at.is_none_or(|triggered_at| cycles > triggered_at + 60) {
                triggered_at = Some(cycles);
                self.cause(fault, || is_judged().is_some());
            }
            is_judged()
        });
        (xrun["verdict"].as_str().expect("a word").to_owned(), xrun)
    }
}

/// Shuffles as by Fisher and Yates, with any generator.
fn shuffle(faults: &mut [Fault], mut seed: u64) {
    for at in (1..faults.len()).rev() {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        faults.swap(at, (seed >> 33) as usize % (at + 1));
    }
}

#[test]
fn faults_in_random_order_get_the_right_verdicts() {
    let scenario = Scenario::new();
    if scenario.server.status().realtime_priority.is_none() {
        harness::not_run("no right to real-time priorities here");
        return;
    }
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    let seed = since.as_nanos() as u64;
    let mut follower = scenario.follower();
    let mut faults = FAULTS.repeat(ROUNDS);
    shuffle(&mut faults, seed);
    let (mut confusions, mut table) = (0, format!("seed {seed}\n"));
    for fault in faults {
        scenario.settle();
        let (verdict, xrun) = scenario.verdict_on(fault);
        let right = verdict == fault.answer().1;
        confusions += usize::from(!right);
        let mark = if right { "" } else { "   <- wrong" };
        let _ = writeln!(
            table,
            "{fault:?}: {verdict}{mark} {}",
            if right { Value::Null } else { xrun }
        );
    }
    println!("{table}{confusions} of {} confused", FAULTS.len() * ROUNDS);
    // A busy machine adds causes of its own.
    assert!(confusions <= FAULTS.len() * ROUNDS / 4, "{confusions} confusions:\n{table}");
    let printed = scenario.server.consort(&["xruns"]).expect_success().stdout;
    scenario.expect_followed(&mut follower);
    assert!(
        printed.contains("second, ") && printed.contains("before it: first signaled"),
        "{printed}"
    );
}

#[test]
fn following_xruns_ends_with_its_reader_without_an_xrun() {
    let server = Server::timer(1024);
    let mut shell = server.command("sh");
    shell.args(["-c", "\"$1\" xruns --follow | true", "sh"]).arg(binary("consort"));
    Program::start(shell).finish().expect_success();
}

#[test]
fn who_had_the_cpu_is_named_where_switches_are_traced() {
    let options = ["--quantum", "1024", "--client-timeout", "3000", "--trace-switches"];
    let Some(server) = Server::tracing(&options) else {
        harness::not_run("no tracefs here");
        return;
    };
    if server.status().realtime_priority.is_none() {
        harness::not_run("no right to real-time priorities here");
        return;
    }
    let mut client = culprit(&server, &["client", "victim", "--load", "20"]);
    eventually("the client is ready", || client.stdout().contains("ready").then_some(()));
    // The same program by another name, by which the kernel knows its threads.
    let hog = server.directory().join("hog-of-the-test");
    copy_program(c_program("victims/culprit.c"), &hog);
    let named = eventually("a late client, and who had its CPU", || {
        let mut command = server.command(&hog.to_string_lossy());
        // Between the clients' priority, 5, and the driver's, 10.
        command.args(["hog", "7", "60"]);
        Program::start(command).finish().expect_success();
        let listed = server.consort(&["xruns", "--json"]).expect_success().stdout;
        let xruns = listed.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        xruns.into_iter().find(|xrun| xrun["had_cpu"][0]["name"] == "hog-of-the-test")
    });
    assert_eq!(
        (&named["client"], &named["verdict"]),
        (&"victim".into(), &"not-running".into()),
        "{named}"
    );
    assert_eq!(named["had_cpu"][0]["realtime_priority"], 7, "{named}");
    let ran_ns = named["had_cpu"][0]["ran_ns"].as_u64().expect("a time");
    assert!(
        ran_ns > 0 && ran_ns <= named["evidence"]["lost_ns"].as_u64().expect("a time"),
        "{named}"
    );
    let printed = server.consort(&["xruns"]).expect_success().stdout;
    assert!(printed.contains("its CPU had: hog-of-the-test ("), "{printed}");
}
