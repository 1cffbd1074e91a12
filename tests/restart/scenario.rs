//! A server with clients in all positions, and what they report about themselves.

use harness::{Counts, Program, Server, c_program, eventually};
use rustix::process::Signal;

/// A client of `witness.c`.
pub(crate) struct Witness {
    pub(crate) program: Program,
    states: usize,
}

/// What a witness has counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WitnessCounts {
    /// Cycles that it ran.
    pub(crate) ran: u64,
    /// Backward steps of the frame time at the start of cycles.
    pub(crate) backwards: u64,
    /// Backward steps of the estimate of the current frame.
    pub(crate) estimates: u64,
    /// Threads that its process callback was called on.
    pub(crate) threads: u64,
    /// Cycles of a length that its buffer-size callback was not called with.
    pub(crate) unknown: u64,
    /// Xruns that it was notified of.
    pub(crate) xruns: u64,
}

impl Witness {
    /// Starts one and waits until it is connected.
    pub(crate) fn start(server: &Server, arguments: &[&str]) -> Self {
        Self::start_with(server, arguments, &[])
    }

    /// Starts one with more in its environment, and waits until it is connected.
    pub(crate) fn start_with(
        server: &Server,
        arguments: &[&str],
        environment: &[(&str, &str)],
    ) -> Self {
        let mut command = server.command(&c_program("restart/witness.c"));
        command.args(arguments).envs(environment.iter().copied());
        let mut witness = Self { program: Program::start(command), states: 0 };
        witness.await_line("ready");
        witness
    }

    /// Waits for a line with this prefix; returns the rest of it.
    pub(crate) fn await_line(&mut self, begin: &str) -> String {
        eventually(&format!("a witness says '{begin}'"), || {
            if let Some(line) = self.lines(begin).pop() {
                return Some(line);
            }
            assert!(self.program.is_running(), "a witness has ended: {}", self.program.stderr());
            None
        })
    }

    /// The rest of each complete line with this prefix.
    pub(crate) fn lines(&mut self, begin: &str) -> Vec<String> {
        let printed = self.program.stdout();
        let whole = printed.rfind('\n').map_or("", |end| &printed[..end]);
        whole.lines().filter_map(|line| line.strip_prefix(begin)).map(str::to_owned).collect()
    }

    /// Its own state: name, ids, ports, aliases, latencies, process thread.
    pub(crate) fn state(&mut self) -> String {
        self.program.signal(Signal::USR1);
        self.states += 1;
        eventually("a witness says what it is", || {
            self.lines("state ").get(self.states - 1).cloned()
        })
    }

    /// Like [`state`](Self::state), once the latency of a connection to a capture port of 256
    /// frames is known.
    pub(crate) fn settled_state(&mut self) -> String {
        eventually("latencies are known", || {
            Some(self.state()).filter(|state| state.contains(" latency 256-256 "))
        })
    }

    /// Ends it; returns what it has counted.
    pub(crate) fn seen(self) -> WitnessCounts {
        let printed = self.program.terminate().expect_success().stdout;
        let line = printed.lines().find(|line| line.starts_with("ran ")).expect("a line of counts");
        let numbers: Vec<u64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
        let [ran, backwards, estimates, threads, unknown, xruns] = numbers[..] else {
            panic!("not counts: {line}")
        };
        WitnessCounts { ran, backwards, estimates, threads, unknown, xruns }
    }
}

/// `source -> before -> within -> check`, `source -> bystander`, and a client that is not active.
pub(crate) struct Scenario {
    pub(crate) server: Server,
    _source: Program,
    pub(crate) witnesses: Vec<Witness>,
    check: Program,
    bystander: Program,
    /// Cycles that the server had run before there were checkers.
    began: u64,
}

/// What a user sees: ports by id, connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Picture {
    ports: serde_json::Value,
    states: Vec<String>,
}

impl Scenario {
    /// Starts the scenario. When this returns, every checker hears its source.
    pub(crate) fn new(options: &[&str]) -> Self {
        let server = Server::start(options);
        let source = server.probe(&["source", "source"]);
        let within = Witness::start(&server, &["within", "source:out"]);
        let after = Witness::start(&server, &["after", "within:out"]);
        let idle = Witness::start(&server, &["+idle"]);
        let began = server.cycles();
        let check = server.probe(&["check", "check", "--from", "after:out"]);
        let bystander = server.probe(&["check", "bystander", "--from", "source:out"]);
        let scenario = Self {
            server,
            _source: source,
            witnesses: vec![within, after, idle],
            check,
            bystander,
            began,
        };
        scenario.await_cycles(100);
        scenario
    }

    fn cycles(&self) -> u64 {
        self.server.cycles()
    }

    /// The most cycles that checkers can have counted so far, in the first server's lifetime.
    pub(crate) fn counted(&self) -> u64 {
        self.cycles() - self.began
    }

    /// Lets the server run this many cycles.
    pub(crate) fn await_cycles(&self, cycles: u64) {
        self.server.await_cycles(cycles);
    }

    /// What a user sees now.
    pub(crate) fn picture(&mut self) -> Picture {
        let mut ports = self.server.consort_json(&["ls"]);
        sort_peers(&mut ports);
        Picture { ports, states: self.witnesses.iter_mut().map(Witness::state).collect() }
    }

    /// Waits until everything is as it was.
    pub(crate) fn await_picture(&mut self, before: &Picture) {
        let end = std::time::Instant::now() + harness::PATIENCE;
        let mut now = self.picture();
        while now != *before {
            assert!(std::time::Instant::now() < end, "it was {before:#?}\nand is {now:#?}");
            std::thread::sleep(std::time::Duration::from_millis(50));
            now = self.picture();
        }
    }

    /// Asserts that no client has noticed more than missing cycles, and that more than `before`
    /// cycles had sound.
    pub(crate) fn expect_sound_after(self, before: u64) {
        let mut all = Vec::new();
        for mut witness in self.witnesses {
            assert_eq!(witness.lines("shutdown"), [""; 0]);
            let seen = witness.seen();
            assert_eq!((seen.backwards, seen.unknown), (0, 0), "{seen:?}");
            assert!(seen.threads <= 1, "one process thread all the time: {seen:?}");
            all.push(seen);
        }
        for checker in [self.check, self.bystander] {
            let counts = Counts::of(checker);
            // On a busy machine, a late client reads what its source writes for the next cycle.
            assert!(counts.wrong <= counts.cycles / 100, "{counts:?}");
            assert!(counts.good > before + 50, "it sounds again after {before} cycles: {counts:?}");
        }
        // After an xrun, the estimate of the current frame starts again, as in JACK.
        let xruns = all.iter().map(|seen| seen.xruns).max().expect("witnesses");
        assert!(all.iter().all(|seen| seen.estimates <= xruns), "{all:?}");
    }
}

/// Connections of a port are listed in the order in which both ends were back.
fn sort_peers(ports: &mut serde_json::Value) {
    for port in ports.as_array_mut().into_iter().flatten() {
        if let Some(peers) = port.get_mut("connections").and_then(serde_json::Value::as_array_mut) {
            peers.sort_by_key(ToString::to_string);
        }
    }
}
