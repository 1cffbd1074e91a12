//! What the kernel says about processes, from /proc (proc(5)).

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result};

/// CPU time and context switches of all threads of some processes, since they started.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// Time on a CPU.
    pub cpu_ns: u64,
    /// Context switches, voluntary and not.
    pub switches: u64,
}

impl Usage {
    /// What was added since `earlier`. What a thread used that has ended meanwhile is not known.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            cpu_ns: self.cpu_ns.saturating_sub(earlier.cpu_ns),
            switches: self.switches.saturating_sub(earlier.switches),
        }
    }

    /// The sum over `pids`. A thread that ends meanwhile is left out.
    pub fn of(pids: &[u32]) -> Result<Self> {
        let mut usage = Self::default();
        for pid in pids {
            for thread in threads(*pid)? {
                // "on-CPU ns, waiting ns, timeslices"; Documentation/scheduler/sched-stats.rst.
                let Ok(schedstat) = fs::read_to_string(format!("{thread}/schedstat")) else {
                    continue;
                };
                let Ok(status) = fs::read_to_string(format!("{thread}/status")) else { continue };
                usage.cpu_ns += schedstat
                    .split(' ')
                    .next()
                    .and_then(|text| text.parse::<u64>().ok())
                    .unwrap_or(0);
                usage.switches += field_sum(&status, "ctxt_switches:");
            }
        }
        Ok(usage)
    }
}

fn threads(pid: u32) -> Result<Vec<String>> {
    let directory = format!("/proc/{pid}/task");
    let entries = fs::read_dir(&directory).with_context(|| format!("process {pid} has ended"))?;
    Ok(entries.flatten().map(|entry| entry.path().to_string_lossy().into_owned()).collect())
}

/// The sum of the numbers in all lines whose key has this ending.
fn field_sum(text: &str, key_end: &str) -> u64 {
    text.lines()
        .filter_map(|line| line.split_once(key_end))
        .filter_map(|(_, value)| value.split_ascii_whitespace().next()?.parse::<u64>().ok())
        .sum()
}

/// The proportional set size of a process, in KiB: its private memory, and its share of what it
/// shares.
pub fn pss_kib(pid: u32) -> Result<u64> {
    let path = format!("/proc/{pid}/smaps_rollup");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    text.lines()
        .find_map(|line| line.strip_prefix("Pss:")?.split_ascii_whitespace().next()?.parse().ok())
        .with_context(|| format!("{path} has no Pss"))
}

/// The proportional set size of a process's mappings of files with this in their names, in KiB.
pub fn pss_of_kib(pid: u32, file: &str) -> Result<u64> {
    let path = format!("/proc/{pid}/smaps");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    Ok(pss_of(&text, file))
}

/// The same of the text of `smaps`: a head for each mapping, with its range and file, and fields.
fn pss_of(text: &str, file: &str) -> u64 {
    let mut is_counted = false;
    let mut kib = 0;
    for line in text.lines() {
        match line.split_once(':').filter(|(key, _)| !key.contains(' ')) {
            None => is_counted = line.contains(file),
            Some(("Pss", value)) if is_counted => {
                kib += value.split_ascii_whitespace().next().map_or(0, |n| n.parse().unwrap_or(0));
            }
            Some(_) => {}
        }
    }
    kib
}

/// Resident memory of a process, in KiB.
pub fn rss_kib(pid: u32) -> Result<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    Ok(field_sum(&text, "Rss:"))
}

/// Policy and priority of the threads of a process, as "FIFO 10 ×1, OTHER ×3".
pub fn scheduling(pid: u32) -> Result<String> {
    let mut counts = BTreeMap::new();
    for thread in threads(pid)? {
        if let Some(policy) =
            fs::read_to_string(format!("{thread}/stat")).ok().and_then(|text| policy_in(&text))
        {
            *counts.entry(policy).or_insert(0u32) += 1;
        }
    }
    let texts: Vec<String> =
        counts.iter().map(|(policy, count)| format!("{policy} ×{count}")).collect();
    Ok(texts.join(", "))
}

/// The highest SCHED_FIFO or SCHED_RR priority among the threads of a process; 0 if there is none.
pub fn highest_priority(pid: u32) -> Result<u32> {
    Ok(foremost_thread(pid)?.map_or(0, |(priority, _)| priority))
}

/// The real-time thread of a process with the highest priority, with its priority before it; of
/// several, the oldest: other threads may help it.
pub fn foremost_thread(pid: u32) -> Result<Option<(u32, u32)>> {
    let found = threads(pid)?.into_iter().filter_map(|thread| {
        let text = fs::read_to_string(format!("{thread}/stat")).ok()?;
        let priority = stat_fields(&text).get(PRIORITY_FIELD)?.parse().ok()?;
        Some((priority, thread.rsplit('/').next()?.parse().ok()?))
    });
    let foremost =
        found.min_by_key(|(priority, thread): &(u32, u32)| (Reverse(*priority), *thread));
    Ok(foremost.filter(|(priority, _)| *priority > 0))
}

/// Fields 40 and 41 of proc_pid_stat(5), counted from the third, which follows the command's name.
const PRIORITY_FIELD: usize = 40 - 3;
const POLICY_FIELD: usize = 41 - 3;

/// The fields from the third on; the second is the name, which may hold blanks and brackets of its
/// own.
fn stat_fields(stat: &str) -> Vec<&str> {
    stat.rsplit_once(')').map_or(Vec::new(), |(_, rest)| rest.split_ascii_whitespace().collect())
}

fn policy_in(stat: &str) -> Option<String> {
    let fields = stat_fields(stat);
    let priority = *fields.get(PRIORITY_FIELD)?;
    // sched(7): SCHED_OTHER 0, SCHED_FIFO 1, SCHED_RR 2, SCHED_BATCH 3, SCHED_IDLE 5,
    // SCHED_DEADLINE 6.
    Some(match *fields.get(POLICY_FIELD)? {
        "0" => String::from("OTHER"),
        "1" => format!("FIFO {priority}"),
        "2" => format!("RR {priority}"),
        "6" => String::from("DEADLINE"),
        other => format!("policy {other}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(policy: &str, priority: &str) -> String {
        let mut fields = vec!["0"; 50];
        fields[PRIORITY_FIELD] = priority;
        fields[POLICY_FIELD] = policy;
        format!("123 (a ) name) {}", fields.join(" "))
    }

    #[test]
    fn the_policy_is_read_past_any_command_name() {
        assert_eq!(policy_in(&stat("1", "10")).as_deref(), Some("FIFO 10"));
        assert_eq!(policy_in(&stat("0", "0")).as_deref(), Some("OTHER"));
        assert_eq!(policy_in("123 (short) S 1"), None);
    }

    #[test]
    fn switches_of_both_kinds_are_added() {
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t40\nnonvoluntary_ctxt_switches:\t2\n";
        assert_eq!(field_sum(status, "ctxt_switches:"), 42);
    }

    #[test]
    fn a_files_share_of_memory_is_that_of_all_its_mappings() {
        let smaps = "7f00-7f20 rw-s 00000000 00:01 5    /memfd:ring (deleted)\nPss:      10 kB\n\
                     Pss_Dirty:   9 kB\n7f20-7f30 r-xp 00000000 00:01 6    /usr/lib/a:b\n\
                     Pss:   500 kB\n7f30-7f40 r--s 00001000 00:01 5    /memfd:ring (deleted)\n\
                     Pss:       2 kB\nVmFlags: rd mr\n";
        assert_eq!(pss_of(smaps, "memfd:ring"), 12);
        assert_eq!(pss_of(smaps, "a:b"), 500);
        assert_eq!(pss_of(smaps, "other"), 0);
    }

    #[test]
    fn the_figures_of_this_process_are_not_zero() {
        let pid = std::process::id();
        assert!(pss_kib(pid).unwrap() > 0 && rss_kib(pid).unwrap() >= pss_kib(pid).unwrap());
        assert!(Usage::of(&[pid]).unwrap().cpu_ns > 0);
        assert!(!scheduling(pid).unwrap().is_empty());
    }
}
