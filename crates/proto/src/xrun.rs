//! The diagnosis of an xrun or of a late client.

use serde::{Deserialize, Serialize};

/// An xrun, or a client that was late for one or more cycles in a row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Xrun {
    /// Number of the xrun, counted from 1.
    pub number: u64,
    /// The first affected cycle.
    pub cycle: u32,
    /// When it was noticed, in milliseconds since 1970.
    pub unix_ms: u64,
    /// The late client's id and name. `None`: the driver itself woke so late that cycles were lost.
    pub client: Option<(u32, String)>,
    /// For how many cycles in a row it has lasted so far.
    pub cycles: u32,
    /// Length of a cycle, ns.
    pub period_ns: u64,
    /// How long after the ideal time the driver woke for the cycle, ns.
    pub driver_late_ns: u64,
    /// The client's timestamps in the cycle.
    pub timestamps: Timestamps,
    /// The client's usual durations: medians over the last minute. `None`: not known yet.
    pub usual: Option<TypicalTimes>,
    /// The cause. `None`: not known yet; the kernel's counters are read when the cycle's grace is
    /// over.
    pub verdict: Option<Verdict>,
    /// The counters on which the verdict is based.
    pub evidence: Option<Evidence>,
    /// Threads that ran on its CPU in the lost time, the longest first. Empty if nothing kept it
    /// from running, or if the server does not trace switches.
    pub had_cpu: Vec<CpuUser>,
    /// The clients upstream in the cycle, in the order of the graph. If there are many, the nearest
    /// ones.
    pub chain: Vec<UpstreamClient>,
}

/// A client's timestamps in a cycle, ns after the driver woke; `None`: not before the next cycle.
/// The client writes them itself, so they are hints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Timestamps {
    /// When it was ready to run.
    pub signaled_ns: Option<u64>,
    /// When it began to run.
    pub awake_ns: Option<u64>,
    /// When it had finished.
    pub finished_ns: Option<u64>,
}

/// A client's usual durations, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TypicalTimes {
    /// From signaled to awake.
    pub scheduling_ns: u64,
    /// From awake to finished.
    pub duration_ns: u64,
}

/// A thread that ran while another one was ready to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuUser {
    /// Thread id; 0 if the CPU was idle.
    pub thread: u32,
    /// Its name.
    pub name: String,
    /// Priority under `SCHED_FIFO` or `SCHED_RR`; `None` for an ordinary thread.
    pub realtime_priority: Option<u32>,
    /// How long it ran, ns.
    pub ran_ns: u64,
}

/// A client upstream of the late one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpstreamClient {
    /// Its name.
    pub name: String,
    /// Its timestamps.
    pub timestamps: Timestamps,
    /// CPU on which it ran.
    pub cpu: u32,
}

/// Why a client or the driver was late.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// The driver woke so late that no time was left.
    DriverLate,
    /// The clients upstream took so long that no time was left.
    SignaledLate {
        /// Name of the client that exceeded its usual time most, if one stands out.
        by: Option<String>,
    },
    /// It was ready to run, but other threads had the CPU.
    NotRunning,
    /// It ran all the time: its own code took long.
    Busy,
    /// It slept after it had begun: it blocks in its own code.
    Blocked,
    /// It slept, and says that it had not begun: no thread woke it, or the whole machine was
    /// stopped (a virtual machine without a CPU of its host).
    NotWoken,
    /// Its process was stopped (SIGSTOP, a debugger).
    Stopped,
    /// Its thread has ended.
    Gone,
    /// The kernel's counters could not be read, or had not been read before the cycle.
    Unknown,
}

/// The kernel's counters over the lost time: from when the client could run until its grace was
/// over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Evidence {
    /// Length of the lost time, ns.
    pub lost_ns: u64,
    /// How long it ran, ns.
    pub running_ns: u64,
    /// How long it was ready but did not run, ns.
    pub runnable_ns: u64,
    /// How long it slept, ns.
    pub asleep_ns: u64,
    /// Its state at the end, as in proc_pid_stat(5); `?`: unknown.
    pub state: char,
    /// CPU on which it was.
    pub cpu: u32,
    /// Page faults since the previous reading, some hundred milliseconds before.
    pub minor_faults: u64,
    /// Page faults that needed the disk.
    pub major_faults: u64,
    /// How often it went to sleep by itself in this time; once per cycle is usual.
    pub voluntary_switches: u64,
    /// How often it was preempted in this time.
    pub involuntary_switches: u64,
    /// Cycles that the driver began in this time.
    pub cycles: u64,
}

impl Verdict {
    /// Describes the verdict in a sentence.
    pub fn describe(&self) -> String {
        let text = match self {
            Self::DriverLate => "the driver woke late",
            Self::SignaledLate { by: Some(by) } => {
                return format!("signaled late, because of {by}");
            }
            Self::SignaledLate { by: None } => "signaled late",
            Self::NotRunning => "ready, but not running: other threads had the CPU",
            Self::Busy => "long in its own code",
            Self::Blocked => "blocked in its own code: it slept though it was its turn",
            Self::NotWoken => "not woken: the timer, the device or the machine was late",
            Self::Stopped => "its process was stopped",
            Self::Gone => "its thread has ended",
            Self::Unknown => "unknown",
        };
        text.into()
    }

    /// Returns a fixed word for programs.
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
