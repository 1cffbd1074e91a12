//! The benchmark's own clients, each a process in plain C.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::child::LineChild;

/// How long one client may take to start, and to close: a server that takes longer hangs.
const START_LIMIT: Duration = Duration::from_secs(30);
const CLOSE_LIMIT: Duration = Duration::from_secs(30);

/// A client of the graph (`clients/node.c`).
pub struct Node {
    child: LineChild,
}

/// How long the three steps of a start took, in nanoseconds, without the start of the process.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// `jack_client_open`.
    pub open_ns: u64,
    /// Every `jack_port_register` together.
    pub ports_ns: u64,
    /// `jack_activate`.
    pub activate_ns: u64,
}

/// What a node has counted since it started.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counts {
    /// Process callbacks.
    pub cycles: u64,
    /// Cycles missing between two callbacks.
    pub lost: u64,
    /// Cycles whose input was not the one expected (checker only).
    pub wrong: u64,
    /// Xrun callbacks.
    pub xruns: u64,
}

impl Counts {
    /// What was added since `earlier`.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            cycles: self.cycles - earlier.cycles,
            lost: self.lost - earlier.lost,
            wrong: self.wrong - earlier.wrong,
            xruns: self.xruns - earlier.xruns,
        }
    }
}

impl Node {
    /// Starts the process.
    pub fn spawn(name: &str, command: &mut Command) -> Result<Self> {
        Ok(Self { child: LineChild::spawn(name, command)? })
    }

    /// Waits until it is active. To be called once.
    pub fn ready(&self) -> Result<Start> {
        self.ready_by(Instant::now() + START_LIMIT)
    }

    /// Like [`ready`](Self::ready), for nodes that share a deadline.
    pub fn ready_by(&self, deadline: Instant) -> Result<Start> {
        match self.child.numbers_by("ready", deadline)?[..] {
            [open_ns, ports_ns, activate_ns] => Ok(Start { open_ns, ports_ns, activate_ns }),
            ref other => anyhow::bail!("a node was ready with {other:?}"),
        }
    }

    /// What it has counted until now.
    pub fn counts(&mut self) -> Result<Counts> {
        self.child.tell("stats")?;
        match self.child.numbers("stats")?[..] {
            [cycles, lost, wrong, xruns] => Ok(Counts { cycles, lost, wrong, xruns }),
            ref other => anyhow::bail!("a node counted {other:?}"),
        }
    }

    /// Triggers the node's fault. It cannot close afterwards: it is killed when it is dropped.
    pub fn trigger_fault(&mut self) -> Result<()> {
        self.child.tell("trigger")?;
        self.child.answer("triggered").map(drop)
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.pid()
    }

    /// Asks it to deactivate, close and end, without waiting.
    pub fn begin_to_close(&mut self) {
        self.child.close_input();
    }

    /// Waits until it has closed. Returns how long `jack_deactivate` and `jack_client_close` took,
    /// in nanoseconds.
    pub fn close(self) -> Result<u64> {
        self.close_by(Instant::now() + CLOSE_LIMIT)
    }

    /// Like [`close`](Self::close), for nodes that share a deadline. One that exceeds it is killed.
    pub fn close_by(mut self, deadline: Instant) -> Result<u64> {
        self.child.close_input();
        let closed = self.child.numbers_by("closed", deadline)?;
        let closed_ns = *closed.first().context("a node closed without a time")?;
        ensure!(self.child.end(), "a node did not end in order");
        Ok(closed_ns)
    }
}

/// A client without ports that connects and watches (`clients/patcher.c`).
pub struct Patcher {
    child: LineChild,
}

/// When a request was made and when it returned, CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Just before the call.
    pub called_ns: u64,
    /// Just after it.
    pub returned_ns: u64,
}

impl Patcher {
    /// Starts the process and waits until a server has taken it.
    pub fn spawn(name: &str, command: &mut Command) -> Result<Self> {
        let patcher = Self { child: LineChild::spawn(name, command.arg(name))? };
        patcher.child.answer("ready")?;
        Ok(patcher)
    }

    /// `jack_connect`.
    pub fn connect(&mut self, source: &str, target: &str) -> Result<Request> {
        self.request("connect", source, target)
    }

    /// `jack_disconnect`.
    pub fn disconnect(&mut self, source: &str, target: &str) -> Result<Request> {
        self.request("disconnect", source, target)
    }

    fn request(&mut self, verb: &str, source: &str, target: &str) -> Result<Request> {
        self.child.tell(&format!("{verb} {source} {target}"))?;
        let words = self.child.answer("done")?;
        ensure!(
            words.len() == 3 && words[0] == "0",
            "{verb} {source} {target} failed: {}",
            words.join(" ")
        );
        Ok(Request { called_ns: words[1].parse()?, returned_ns: words[2].parse()? })
    }

    /// Starts polling for this connection; [`seen`](Self::seen) takes the result.
    pub fn watch(&mut self, source: &str, target: &str) -> Result<()> {
        self.child.tell(&format!("watch {source} {target}"))?;
        self.child.answer("watching").map(drop)
    }

    /// Ends it.
    pub fn close(mut self) -> Result<()> {
        ensure!(self.child.end(), "a patcher did not end in order");
        Ok(())
    }

    /// When the connection was seen, CLOCK_MONOTONIC.
    pub fn seen(&self) -> Result<u64> {
        self.child.numbers("seen")?.first().copied().context("seen without a time")
    }
}
