//! What was found out about an xrun or a late client.

use serde::{Deserialize, Serialize};

/// An xrun, or a client that was late for one or more cycles in a row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Xrun {
    /// Counts them, from 1.
    pub number: u64,
    /// The first cycle of it.
    pub cycle: u32,
    /// Milliseconds since 1970 when it was noticed.
    pub unix_ms: u64,
    /// Who: a client's id and name. `None`: the driver itself woke so late that cycles were lost.
    pub client: Option<(u32, String)>,
    /// For how many cycles in a row, so far.
    pub cycles: u32,
    /// Length of a cycle, ns.
    pub period_ns: u64,
    /// How long after its ideal date the driver woke for the cycle, ns.
    pub driver_late_ns: u64,
    /// The client's dates in the cycle.
    pub dates: Dates,
    /// What they usually are: medians over the last minute. `None`: not known yet.
    pub usual: Option<Usual>,
    /// Why. `None`: not known yet; the kernel's counters are read when the cycle's grace is over.
    pub verdict: Option<Verdict>,
    /// On what the verdict rests.
    pub evidence: Option<Evidence>,
    /// Who had its CPU in the time that was lost, the longest first; empty if it was not kept from running, or if the
    /// server does not trace switches.
    pub had_cpu: Vec<CpuUser>,
    /// Who came before it in the cycle, in the order of the graph; the nearest ones, if they are many.
    pub chain: Vec<Link>,
}

/// Dates of a client in a cycle, ns after the driver woke; `None`: not before the next cycle. What the client itself
/// wrote: hints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Dates {
    /// It could run.
    pub signaled_ns: Option<u64>,
    /// It ran.
    pub awake_ns: Option<u64>,
    /// It had finished.
    pub finished_ns: Option<u64>,
}

/// How long it usually takes, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usual {
    /// From signaled to awake.
    pub scheduling_ns: u64,
    /// From awake to finished.
    pub duration_ns: u64,
}

/// A thread that ran where another one was ready to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuUser {
    /// Its id; 0: nobody ran.
    pub thread: u32,
    /// Its name.
    pub name: String,
    /// Of `SCHED_FIFO` or `SCHED_RR`; `None`: an ordinary thread.
    pub realtime_priority: Option<u32>,
    /// How long it ran, ns.
    pub ran_ns: u64,
}

/// A client in the chain before the late one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// Its name.
    pub name: String,
    /// Its dates.
    pub dates: Dates,
    /// CPU that it ran on.
    pub cpu: u32,
}

/// Why somebody was late.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// The driver woke so late that there was no time left.
    DriverLate,
    /// Those before it took so long that there was no time left; the one that took longest beyond its usual time.
    SignaledLate {
        /// Its name, if one of them stands out.
        by: Option<String>,
    },
    /// It was ready to run, but others had the CPU.
    NotRunning,
    /// It ran all the time: long in its own code.
    Busy,
    /// It slept, though it had begun: it blocks in its own code.
    Blocked,
    /// It slept, and by its own word had not begun: nobody woke it, or the whole machine stood still (a virtual one
    /// without a CPU of its host).
    NotWoken,
    /// Its process was stopped (SIGSTOP, a debugger).
    Stopped,
    /// Its thread has ended.
    Gone,
    /// The kernel's counters could not be read, or were not read before it began.
    Unknown,
}

/// The kernel's counters over the time that was lost: from when it could run until its grace was over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Evidence {
    /// How long that was, ns.
    pub lost_ns: u64,
    /// It ran so long, ns.
    pub running_ns: u64,
    /// It was ready to run, and did not, so long, ns.
    pub runnable_ns: u64,
    /// It slept so long, ns.
    pub asleep_ns: u64,
    /// What it was doing when it was looked at, as in proc_pid_stat(5); `?`: unknown.
    pub state: char,
    /// CPU that it was on.
    pub cpu: u32,
    /// Page faults since it was looked at last, some hundred milliseconds before.
    pub minor_faults: u64,
    /// Those that needed the disk.
    pub major_faults: u64,
    /// Times that it went to sleep by itself, meanwhile; once per cycle is usual.
    pub voluntary_switches: u64,
    /// Times that it was preempted, meanwhile.
    pub involuntary_switches: u64,
    /// Cycles that the driver began meanwhile.
    pub cycles: u64,
}

impl Verdict {
    /// For people.
    pub fn describe(&self) -> String {
        let text = match self {
            Self::DriverLate => "the driver woke late",
            Self::SignaledLate { by: Some(by) } => return format!("signaled late, because of {by}"),
            Self::SignaledLate { by: None } => "signaled late",
            Self::NotRunning => "ready, but not running: others had the CPU",
            Self::Busy => "long in its own code",
            Self::Blocked => "blocked in its own code: it slept though it was its turn",
            Self::NotWoken => "not woken: the timer, the device or the machine was late",
            Self::Stopped => "its process was stopped",
            Self::Gone => "its thread has ended",
            Self::Unknown => "unknown",
        };
        text.into()
    }

    /// For programs.
    pub fn word(&self) -> &'static str {
        match self {
            Self::DriverLate => "driver-late",
            Self::SignaledLate { .. } => "signaled-late",
            Self::NotRunning => "not-running",
            Self::Busy => "busy",
            Self::Blocked => "blocked",
            Self::NotWoken => "not-woken",
            Self::Stopped => "stopped",
            Self::Gone => "gone",
            Self::Unknown => "unknown",
        }
    }
}
