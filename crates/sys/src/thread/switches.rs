//! The threads that ran on a CPU, from the kernel's trace of context switches (`sched_switch` in
//! tracefs).
//!
//! The trace is a separate instance: traces of other programs are not touched. While it is on, each
//! context switch costs some tenths of a microsecond.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::process::process_id;

/// Buffer for each CPU, KiB: some thousand switches.
const BUFFER_KIB: &str = "128";
const MOUNTED_AT: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
const INSTANCE: &str = "consort-";
/// The kernel's priority number of the lowest real-time priority, less 1; higher priorities have
/// lower numbers.
const REALTIME: u32 = 99;

/// A context switch: from this time on, this thread ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Switch {
    /// `CLOCK_MONOTONIC`, ns, in steps of a microsecond.
    pub time_ns: u64,
    /// Thread id; 0: the CPU was idle.
    pub thread: u32,
    /// The thread's name, as far as the kernel keeps it.
    pub name: String,
    /// Priority of `SCHED_FIFO` or `SCHED_RR`; `None`: an ordinary thread.
    pub realtime_priority: Option<u32>,
}

/// A trace of all CPUs, which ends with this value.
#[derive(Debug)]
pub struct SwitchTrace {
    instance: PathBuf,
}

impl SwitchTrace {
    /// Starts to trace. Instances left behind by dead processes are removed.
    ///
    /// # Errors
    /// `NotFound` if tracefs is not mounted, `PermissionDenied` if this process may not use it.
    pub fn begin() -> io::Result<Self> {
        let instances = instances(MOUNTED_AT)?;
        remove_left_behind(&instances);
        let trace = Self { instance: instances.join(format!("{INSTANCE}{}", process_id())) };
        fs::create_dir(&trace.instance)?;
        trace.set("trace_clock", "mono")?;
        trace.set("buffer_size_kb", BUFFER_KIB)?;
        trace.set("events/sched/sched_switch/enable", "1")?;
        Ok(trace)
    }

    fn set(&self, file: &str, value: &str) -> io::Result<()> {
        fs::write(self.instance.join(file), value)
    }

    /// Returns the latest switches on a CPU, oldest first. Takes some milliseconds: not for a
    /// cycle.
    ///
    /// # Errors
    /// The errors of reading.
    pub fn switches(&self, cpu: u32) -> io::Result<Vec<Switch>> {
        let text = fs::read(self.instance.join(format!("per_cpu/cpu{cpu}/trace")))?;
        Ok(String::from_utf8_lossy(&text).lines().filter_map(parse).collect())
    }
}

impl Drop for SwitchTrace {
    fn drop(&mut self) {
        // An instance cannot be removed while it is read; the next server removes it then.
        let _ = self.set("events/sched/sched_switch/enable", "0");
        let _ = fs::remove_dir(&self.instance);
    }
}

/// Returns where instances are created: in the first mount point of tracefs.
fn instances(mounted_at: [&str; 2]) -> io::Result<PathBuf> {
    let places = mounted_at.map(|place| Path::new(place).join("instances"));
    if let Some(found) = places.iter().find(|place| place.is_dir()) {
        return Ok(found.clone());
    }
    // The first one decides: only root may read the second one's directory, even if nothing is
    // mounted there.
    let first = mounted_at[0];
    match places[0].metadata() {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Err(io::Error::new(
            io::ErrorKind::NotFound,
            format!(
                "tracefs is not mounted at {first}: mount it with 'mount -t tracefs tracefs {first}'"
            ),
        )),
    }
}

fn remove_left_behind(instances: &Path) {
    for entry in fs::read_dir(instances).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process =
            name.to_str().and_then(|name| name.strip_prefix(INSTANCE)?.parse::<u32>().ok());
        if process.is_some_and(|process| !Path::new(&format!("/proc/{process}")).exists()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// Parses a line of the trace. Names may contain anything but a line break.
fn parse(line: &str) -> Option<Switch> {
    let (before, after) = line.split_once(": sched_switch: prev_comm=")?;
    let (seconds, micros) = before.rsplit_once(' ')?.1.split_once('.')?;
    let time_us =
        seconds.parse::<u64>().ok()?.checked_mul(1_000_000)?.checked_add(micros.parse().ok()?)?;
    let (_, next) = after.rsplit_once(" ==> next_comm=")?;
    let (next, priority) = next.rsplit_once(" next_prio=")?;
    let (name, thread) = next.rsplit_once(" next_pid=")?;
    let priority: u32 = priority.trim_end().parse().ok()?;
    Some(Switch {
        time_ns: time_us.checked_mul(1000)?,
        thread: thread.parse().ok()?,
        name: name.to_owned(),
        realtime_priority: REALTIME.checked_sub(priority).filter(|priority| *priority > 0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unmounted_tracefs_is_reported_with_the_mount_command() {
        let empty = std::env::temp_dir().join(format!("consort-tracefs-{}", process_id()));
        fs::create_dir_all(empty.join("debug")).unwrap();
        let (first, second) =
            (empty.to_string_lossy(), empty.join("debug").to_string_lossy().into_owned());
        let refusal = instances([&first, &second]).unwrap_err();
        assert_eq!(refusal.kind(), io::ErrorKind::NotFound);
        let said = format!("mount -t tracefs tracefs {first}");
        assert!(refusal.to_string().contains(&said), "{refusal}");
        fs::create_dir(empty.join("debug/instances")).unwrap();
        assert_eq!(instances([&first, &second]).unwrap(), empty.join("debug/instances"));
        fs::remove_dir_all(&empty).unwrap();
    }

    #[test]
    fn lines_of_the_trace_are_read_whatever_threads_are_called() {
        let line = " a: b-16634   [000] d..2. 14771.789145: sched_switch: prev_comm=a: b prev_pid=16634 prev_prio=120 \
                    prev_state=R ==> next_comm=x next_pid=1 next_pid=26196 next_prio=89";
        let expected = Switch {
            time_ns: 14_771_789_145_000,
            thread: 26_196,
            name: "x next_pid=1".into(),
            realtime_priority: Some(10),
        };
        assert_eq!(parse(line), Some(expected));
        let idle = line.replace(
            "next_comm=x next_pid=1 next_pid=26196 next_prio=89",
            "next_comm=swapper/0 next_pid=0 next_prio=120",
        );
        let idle = parse(&idle).unwrap();
        assert_eq!((idle.thread, idle.realtime_priority), (0, None));
        for other in [
            "# tracer: nop",
            "",
            "CPU:1 [LOST 17 EVENTS]",
            "x-1 [000] d..2. 1.5: sched_switch: prev_comm=a",
        ] {
            assert_eq!(parse(other), None, "{other}");
        }
    }
}
