//! What the processes of a desktop use while something plays.

use std::time::{Duration, Instant};

use anyhow::Result;

use crate::measure::desktop::system::{Desktop, Role};
use crate::proc::{self, Usage};

/// Whose use it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Who {
    /// A process of the desktop.
    Desktop(Role),
    /// The programs that play.
    Program,
    /// A program of JACK beside them.
    Neighbour,
}

impl Who {
    /// All of them, in the order of the table.
    pub const ALL: [Self; 5] = [
        Self::Desktop(Role::Server),
        Self::Desktop(Role::FrontEnd),
        Self::Desktop(Role::SessionManager),
        Self::Program,
        Self::Neighbour,
    ];

    /// Its name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Desktop(Role::Server) => "server",
            Self::Desktop(Role::FrontEnd) => "front end",
            Self::Desktop(Role::SessionManager) => "session manager",
            Self::Program => "program",
            Self::Neighbour => "neighbour",
        }
    }
}

/// What each used during an interval.
#[derive(Debug)]
pub struct Spent {
    uses: Vec<(Who, Usage)>,
    length: Duration,
}

impl Spent {
    /// Measures for this long. Nothing of it wakes one of the processes.
    pub fn during(
        length: Duration,
        desktop: &Desktop,
        programs: &[u32],
        neighbours: &[u32],
    ) -> Result<Self> {
        let pids_of = |who: Who| match who {
            Who::Desktop(role) => desktop.pids(role),
            Who::Program => programs.to_vec(),
            Who::Neighbour => neighbours.to_vec(),
        };
        let there: Vec<(Who, Vec<u32>)> = Who::ALL
            .map(|who| (who, pids_of(who)))
            .into_iter()
            .filter(|(_, pids)| !pids.is_empty())
            .collect();
        let all =
            || -> Result<Vec<Usage>> { there.iter().map(|(_, pids)| Usage::of(pids)).collect() };
        let (before, begun) = (all()?, Instant::now());
        std::thread::sleep(length);
        let (after, length) = (all()?, begun.elapsed());
        let uses = there.iter().zip(before.iter().zip(after));
        let uses = uses.map(|((who, _), (before, after))| (*who, after.since(*before)));
        Ok(Self { uses: uses.collect(), length })
    }

    /// Who was there.
    pub fn parties(&self) -> impl Iterator<Item = Who> {
        self.uses.iter().map(|(who, _)| *who)
    }

    /// Context switches a second of those for whom `counts` is true.
    pub fn switches_per_second(&self, counts: impl Fn(Who) -> bool) -> f64 {
        let counted = self.uses.iter().filter(|(who, _)| counts(*who));
        let switches: u64 = counted.map(|(_, usage)| usage.switches).sum();
        switches as f64 / self.length.as_secs_f64()
    }

    /// Their CPU time, in percent of one CPU.
    pub fn cpu_percent(&self, counts: impl Fn(Who) -> bool) -> f64 {
        let counted = self.uses.iter().filter(|(who, _)| counts(*who));
        let cpu_ns: u64 = counted.map(|(_, usage)| usage.cpu_ns).sum();
        cpu_ns as f64 / self.length.as_nanos() as f64 * 100.0
    }
}

/// The memory of a desktop's own processes, each shared page divided among all that map it, in MB.
pub fn memory_mb(desktop: &Desktop) -> Result<f64> {
    Ok(megabytes(own_pids(desktop).map(proc::pss_kib).sum::<Result<u64>>()?))
}

/// The part of it that is rings of streams, in MB. Only consort has them apart from the rest.
pub fn rings_mb(desktop: &Desktop) -> Result<f64> {
    let kib = own_pids(desktop).map(|pid| proc::pss_of_kib(pid, "memfd:consort-ring"));
    Ok(megabytes(kib.sum::<Result<u64>>()?))
}

fn own_pids(desktop: &Desktop) -> impl Iterator<Item = u32> {
    let roles = [Role::Server, Role::FrontEnd, Role::SessionManager];
    roles.into_iter().flat_map(|role| desktop.pids(role))
}

fn megabytes(kib: u64) -> f64 {
    kib as f64 * 1024.0 / 1_000_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_added_and_divided_by_the_length_of_the_interval() {
        let usage = |cpu_ms: u64, switches| Usage { cpu_ns: cpu_ms * 1_000_000, switches };
        let spent = Spent {
            uses: vec![(Who::Desktop(Role::Server), usage(30, 8)), (Who::Program, usage(10, 4))],
            length: Duration::from_secs(4),
        };
        assert_eq!(spent.switches_per_second(|_| true), 3.0);
        assert_eq!(spent.switches_per_second(|who| who == Who::Program), 1.0);
        assert_eq!(spent.cpu_percent(|_| true), 1.0);
        assert_eq!(spent.switches_per_second(|who| who == Who::Neighbour), 0.0);
        assert_eq!(spent.parties().count(), 2);
    }
}
