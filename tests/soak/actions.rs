//! What happens to the server, chosen by a seed: the same seed gives the same actions in the same
//! order.

use std::collections::BTreeMap;

use harness::{Program, Server};
use rustix::process::Signal;

/// What victims do when their fault is triggered; the last does nothing.
const FAULTS: [&str; 14] = [
    "kill",
    "crash",
    "exit",
    "hang",
    "sleep",
    "slow",
    "slow-once",
    "stop",
    "end-thread",
    "scribble",
    "flood",
    "block-notice",
    "no-descriptors",
    "none",
];
/// Maximum number of victims at once.
const VICTIMS: usize = 6;
/// Maximum number of actions for which a faulty victim lives on.
const AFTERLIFE: u64 = 6;

/// Numbers that follow from a seed. Marsaglia, "Xorshift RNGs", 2003.
#[derive(Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    /// `seed`: not 0.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.max(1))
    }

    /// Below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end.max(1)
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[usize::try_from(self.below(all.len() as u64)).unwrap_or(0)]
    }
}

#[derive(Debug)]
struct Victim {
    number: u64,
    fault: &'static str,
    /// After how many more actions it is killed; `None`: its fault was not triggered.
    lives_for: Option<u64>,
    is_stopped: bool,
    program: Program,
}

/// The clients that come, fault and go next to the monitored stream.
#[derive(Debug)]
pub(crate) struct Crowd {
    chance: Chance,
    victims: Vec<Victim>,
    /// Connections other than those with which victims are opened.
    connections: Vec<[String; 2]>,
    opened: u64,
    /// The actions with their times, `CLOCK_MONOTONIC` ns.
    pub(crate) history: Vec<(u64, String)>,
}

impl Crowd {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            chance: Chance::new(seed),
            victims: Vec::new(),
            connections: Vec::new(),
            opened: 0,
            history: Vec::new(),
        }
    }

    /// Takes one action; returns how long to wait before the next, in ms.
    pub(crate) fn act(&mut self, server: &Server) -> u64 {
        self.bury();
        match self.chance.below(10) {
            _ if self.victims.is_empty() => self.open(server),
            0..3 if self.victims.len() < VICTIMS => self.open(server),
            0..6 => self.trigger_fault(),
            6 => self.connect(server),
            7 => self.disconnect(server),
            8 => self.stop_or_continue(),
            _ => self.end(),
        }
        20 + self.chance.below(400)
    }

    /// Kills those that are left.
    pub(crate) fn leave(&mut self) {
        self.victims.clear();
    }

    fn note(&mut self, what: &str) {
        self.history.push((sys::clock::now_ns(), what.to_owned()));
    }

    /// How often each action was taken.
    pub(crate) fn counts(&self) -> BTreeMap<&str, u64> {
        let mut counts = BTreeMap::new();
        self.history.iter().for_each(|(_, what)| *counts.entry(what.as_str()).or_default() += 1);
        counts
    }

    /// The actions in the second before `time_ns`.
    pub(crate) fn done_before(&self, time_ns: u64) -> Vec<&str> {
        let second = time_ns.saturating_sub(1_000_000_000)..=time_ns;
        self.history
            .iter()
            .filter(|(at, _)| second.contains(at))
            .map(|(_, what)| what.as_str())
            .collect()
    }

    /// Kills the victims whose time is over, whatever they do.
    fn bury(&mut self) {
        for victim in &mut self.victims {
            victim.lives_for = victim.lives_for.map(|actions| actions.saturating_sub(1));
        }
        self.victims.retain(|victim| victim.lives_for != Some(0));
    }

    fn open(&mut self, server: &Server) {
        self.opened += 1;
        let name = format!("victim{}", self.opened);
        let fault = *self.chance.of(&FAULTS);
        // Connects it to a survivor's sound, or to another victim's.
        let fed_by = match self.chance.below(2) {
            0 => "source:out".to_owned(),
            _ => "last:out".to_owned(),
        };
        let arguments = ["thru", &name, "--from", &fed_by, "--fault", fault];
        let program = server.probe(&arguments);
        let number = self.opened;
        self.victims.push(Victim { number, fault, lives_for: None, is_stopped: false, program });
        self.note("open and connect");
    }

    fn trigger_fault(&mut self) {
        let unharmed: Vec<usize> =
            (0..self.victims.len()).filter(|at| self.victims[*at].lives_for.is_none()).collect();
        if unharmed.is_empty() {
            return;
        }
        let lives_for = 1 + self.chance.below(AFTERLIFE);
        let victim = &mut self.victims[*self.chance.of(&unharmed)];
        victim.lives_for = Some(lives_for);
        victim.program.signal(Signal::USR1);
        let fault = victim.fault;
        self.note(&format!("fault: {fault}"));
    }

    fn connect(&mut self, server: &Server) {
        let from = self.chance.of(&self.victims).number;
        let to = self.chance.of(&self.victims).number;
        let to = match self.chance.below(2) {
            0 => format!("victim{to}:in"),
            _ => "system:playback_1".to_owned(),
        };
        self.connections.push([format!("victim{from}:out"), to]);
        if let Some([from, to]) = self.connections.last() {
            // One of them may be dead: then the server refuses, as it should.
            server.consort(&["connect", from, to]);
        }
        self.note("connect");
    }

    fn disconnect(&mut self, server: &Server) {
        if self.connections.is_empty() {
            return self.connect(server);
        }
        let at = usize::try_from(self.chance.below(self.connections.len() as u64)).unwrap_or(0);
        let [from, to] = self.connections.swap_remove(at);
        server.consort(&["disconnect", &from, &to]);
        self.note("disconnect");
    }

    fn stop_or_continue(&mut self) {
        let any = usize::try_from(self.chance.below(self.victims.len() as u64)).unwrap_or(0);
        let at = self.victims.iter().position(|victim| victim.is_stopped).unwrap_or(any);
        let victim = &mut self.victims[at];
        let (signal, what) =
            if victim.is_stopped { (Signal::CONT, "continue") } else { (Signal::STOP, "stop") };
        victim.program.signal(signal);
        victim.is_stopped = !victim.is_stopped;
        self.note(what);
    }

    fn end(&mut self) {
        let at = usize::try_from(self.chance.below(self.victims.len() as u64)).unwrap_or(0);
        let victim = self.victims.swap_remove(at);
        let closes = victim.lives_for.is_none() && !victim.is_stopped && self.chance.below(2) == 0;
        if closes {
            victim.program.terminate();
            return self.note("close");
        }
        victim.program.signal(Signal::KILL);
        self.note("kill -9");
    }
}
