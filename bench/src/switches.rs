//! When the kernel switched from thread to thread, as perf(1) records it: the same timestamps
//! for every server, independent of what it reports about itself.

use std::collections::HashSet;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::workplace::Workplace;

/// A thread got a CPU, or left it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Switch {
    /// The time, on a monotonic clock.
    pub at_ns: u64,
    /// The thread.
    pub thread: u32,
    /// What happened to it.
    pub kind: Kind,
}

/// What happened to the thread.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// It runs.
    Runs,
    /// It sleeps.
    Sleeps,
    /// Another one took the CPU from it.
    Yields,
}

/// Records all switches of this machine for this length of time, in the order of their timestamps.
pub fn record(workplace: &Workplace, length: Duration) -> Result<Vec<Switch>> {
    let file = workplace.file("switches");
    let seconds = length.as_secs_f64().to_string();
    let mut command = Command::new("perf");
    command.args([
        "record",
        "--quiet",
        "--all-cpus",
        "--event",
        "dummy",
        "--switch-events",
        "--output",
    ]);
    command.arg(&file).args(["--", "sleep", &seconds]);
    run(&mut command)?;
    let text = listed(&file)?;
    let mut switches: Vec<Switch> = text.lines().filter_map(switch_in).collect();
    switches.sort_by_key(|switch| switch.at_ns);
    Ok(switches)
}

fn run(command: &mut Command) -> Result<String> {
    let output =
        command.stdin(Stdio::null()).output().context("perf cannot be run; is it installed?")?;
    let words = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "perf was refused: {}",
        words.lines().next().unwrap_or("no reason given")
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn listed(file: &PathBuf) -> Result<String> {
    let mut command = Command::new("perf");
    run(command
        .args([
            "script",
            "--show-switch-events",
            "--ns",
            "--fields",
            "comm,tid,cpu,time",
            "--input",
        ])
        .arg(file))
}

/// The switch in a line such as `name 123 [000] 17.000000001: PERF_RECORD_SWITCH_CPU_WIDE OUT
/// preempt next pid/tid: 0/0`. The name may have blanks.
fn switch_in(line: &str) -> Option<Switch> {
    let (who, what) = line.split_once("PERF_RECORD_SWITCH")?;
    let mut who = who.split_ascii_whitespace().rev();
    let (seconds, nanoseconds) = who.next()?.strip_suffix(':')?.split_once('.')?;
    let at_ns = seconds.parse::<u64>().ok()? * 1_000_000_000 + nanoseconds.parse::<u64>().ok()?;
    let thread = who.nth(1)?.parse().ok()?;
    let mut what = what.split_ascii_whitespace().skip(1);
    let kind = match (what.next()?, what.next()) {
        ("IN", _) => Kind::Runs,
        (_, Some("preempt")) => Kind::Yields,
        _ => Kind::Sleeps,
    };
    Some(Switch { at_ns, thread, kind })
}

/// A cycle that all clients ran, from the driver's wake-up on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Span {
    /// Until the first of them ran.
    pub first_ns: u64,
    /// Until the last of them slept.
    pub last_ns: u64,
}

/// The span of each cycle that all `clients` ran. A cycle begins when `driver` runs, half a period
/// after the last began or later: some drivers wake again when the graph has ended. And some
/// clients wake again for the next cycle before its driver does.
pub fn spans(
    switches: &[Switch],
    driver: u32,
    clients: &HashSet<u32>,
    period_ns: u64,
) -> Vec<Span> {
    let mut spans = Vec::new();
    let mut begun_ns: Option<u64> = None;
    let (mut slept, mut first_ns, mut last_ns) = (HashSet::new(), None, 0);
    for switch in switches {
        let begins = switch.thread == driver
            && switch.kind == Kind::Runs
            && begun_ns.is_none_or(|begun_ns| switch.at_ns >= begun_ns + period_ns / 2);
        if begins {
            if let Some((begun_ns, first_ns)) = begun_ns.zip(first_ns)
                && slept.len() == clients.len()
            {
                spans.push(Span { first_ns: first_ns - begun_ns, last_ns: last_ns - begun_ns });
            }
            (begun_ns, first_ns) = (Some(switch.at_ns), None);
            slept.clear();
        }
        if !clients.contains(&switch.thread) {
            continue;
        }
        match switch.kind {
            Kind::Runs => first_ns = first_ns.or(Some(switch.at_ns)),
            Kind::Sleeps => {
                let is_half_over =
                    begun_ns.is_some_and(|begun_ns| switch.at_ns >= begun_ns + period_ns / 2);
                if !is_half_over || slept.len() < clients.len() {
                    slept.insert(switch.thread);
                    last_ns = switch.at_ns;
                }
            }
            Kind::Yields => {}
        }
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_is_read_past_any_name() {
        let line = |what| {
            format!("  my ) name  321 [001]  12.000000345: PERF_RECORD_SWITCH_CPU_WIDE {what}")
        };
        let switch = |kind| Some(Switch { at_ns: 12_000_000_345, thread: 321, kind });
        assert_eq!(switch_in(&line("IN           prev pid/tid:     0/0    ")), switch(Kind::Runs));
        assert_eq!(
            switch_in(&line("OUT          next pid/tid:     0/0    ")),
            switch(Kind::Sleeps)
        );
        assert_eq!(
            switch_in(&line("OUT preempt  next pid/tid:  5544/5544 ")),
            switch(Kind::Yields)
        );
        assert_eq!(switch_in("nothing of the kind"), None);
    }

    #[test]
    fn spans_cover_only_cycles_that_all_clients_ran() {
        let at = |at_ns, thread, kind| Switch { at_ns, thread, kind };
        let switches = [
            at(1000, 1, Kind::Runs),
            at(1005, 7, Kind::Runs),
            at(1010, 7, Kind::Sleeps),
            at(1012, 8, Kind::Runs),
            at(1020, 8, Kind::Yields),
            at(1025, 1, Kind::Runs),
            at(1026, 8, Kind::Runs),
            at(1030, 8, Kind::Sleeps),
            at(1990, 7, Kind::Runs),
            at(1995, 7, Kind::Sleeps),
            at(2000, 1, Kind::Runs),
            at(2005, 7, Kind::Runs),
            at(2010, 7, Kind::Sleeps),
            at(3000, 1, Kind::Runs),
            at(3020, 8, Kind::Runs),
            at(3050, 8, Kind::Sleeps),
            at(3055, 7, Kind::Runs),
            at(3060, 7, Kind::Sleeps),
            at(4000, 1, Kind::Runs),
        ];
        let expected = [Span { first_ns: 5, last_ns: 30 }, Span { first_ns: 20, last_ns: 60 }];
        assert_eq!(spans(&switches, 1, &HashSet::from([7, 8]), 1000), expected);
    }
}
