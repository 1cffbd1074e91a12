//! The kernel's counters of another thread (proc_pid_schedstat, proc_pid_stat(5),
//! proc_pid_status(5)).

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// CPU time of a thread since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CpuTime {
    /// On a CPU, ns. While the thread runs, as of the last tick.
    pub running_ns: u64,
    /// Ready to run, but on no CPU, ns. Without a wait that is under way.
    pub runnable_ns: u64,
}

/// Other facts that the kernel knows of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadFacts {
    /// `R`, `S`, `D`, `T` and so on, as in proc_pid_stat(5).
    pub state: char,
    /// The CPU that it ran on last.
    pub cpu: u32,
    /// Page faults without disk access.
    pub minor_faults: u64,
    /// Page faults with disk access.
    pub major_faults: u64,
    /// Times that it went to sleep by itself.
    pub voluntary_switches: u64,
    /// Times that it was preempted.
    pub involuntary_switches: u64,
}

/// One thread of any process, even if its id is reused.
#[derive(Debug)]
pub struct ThreadCounters {
    directory: String,
    schedstat: File,
}

const LONGEST: usize = 4096;

impl ThreadCounters {
    /// Opens the counters of a thread.
    ///
    /// # Errors
    /// `NotFound` if there is no such thread, or the kernel hides it.
    pub fn open(process_id: u32, thread_id: u32) -> io::Result<Self> {
        let directory = format!("/proc/{process_id}/task/{thread_id}");
        let schedstat = File::open(format!("{directory}/schedstat"))?;
        Ok(Self { directory, schedstat })
    }

    /// Reads the times. Takes some microseconds: not for a cycle.
    ///
    /// # Errors
    /// `ESRCH` if the thread has ended; `InvalidData` if the kernel does not count.
    pub fn cpu_time(&self) -> io::Result<CpuTime> {
        let mut buffer = [0; 128];
        let length = self.schedstat.read_at(&mut buffer, 0)?;
        let text =
            std::str::from_utf8(buffer.get(..length).unwrap_or_default()).unwrap_or_default();
        parse_schedstat(text).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Reads everything else. Takes some tens of microseconds.
    ///
    /// # Errors
    /// `NotFound` or `ESRCH` if the thread has ended.
    pub fn facts(&self) -> io::Result<ThreadFacts> {
        let read = |name: &str| -> io::Result<String> {
            let mut buffer = vec![0; LONGEST];
            let length =
                File::open(format!("{}/{name}", self.directory))?.read_at(&mut buffer, 0)?;
            buffer.truncate(length);
            Ok(String::from_utf8_lossy(&buffer).into_owned())
        };
        parse_facts(&read("stat")?, &read("status")?)
            .ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

fn parse_schedstat(text: &str) -> Option<CpuTime> {
    let mut numbers = text.split_ascii_whitespace().map(str::parse);
    Some(CpuTime { running_ns: numbers.next()?.ok()?, runnable_ns: numbers.next()?.ok()? })
}

fn parse_facts(stat: &str, status: &str) -> Option<ThreadFacts> {
    // The name, in parentheses, may contain anything; the fields from the state (field 3) on are
    // numbers.
    let (_, fields) = stat.rsplit_once(") ")?;
    let field = |number: usize| fields.split_ascii_whitespace().nth(number - 3);
    let number = |number: usize| field(number)?.parse().ok();
    let switches =
        |key: &str| status.lines().find_map(|line| line.strip_prefix(key))?.trim().parse().ok();
    Some(ThreadFacts {
        state: field(3)?.chars().next()?,
        cpu: u32::try_from(number(39)?).ok()?,
        minor_faults: number(10)?,
        major_faults: number(12)?,
        voluntary_switches: switches("voluntary_ctxt_switches:")?,
        involuntary_switches: switches("nonvoluntary_ctxt_switches:")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::process_id;
    use crate::thread::thread_id;

    #[test]
    fn a_threads_work_and_sleep_are_counted() {
        let (say, hear) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            let cpu_time_ns = || crate::clock::read_ns(libc::CLOCK_THREAD_CPUTIME_ID);
            let before_ns = cpu_time_ns();
            while cpu_time_ns() < before_ns + 20_000_000 {}
            say.send(thread_id()).unwrap();
            let _ = ended.recv();
        });
        let counters = ThreadCounters::open(process_id(), hear.recv().unwrap()).unwrap();
        let asleep = || counters.facts().is_ok_and(|facts| facts.state == 'S');
        while !asleep() {
            std::thread::yield_now();
        }
        assert!(counters.cpu_time().unwrap().running_ns >= 20_000_000);
        assert!(counters.facts().unwrap().voluntary_switches > 0);
        drop(end);
        thread.join().unwrap();
        while counters.cpu_time().is_ok() {
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_thread_that_does_not_exist_has_no_counters() {
        assert!(ThreadCounters::open(process_id(), u32::MAX).is_err());
    }

    #[test]
    fn a_thread_name_like_a_record_is_parsed_correctly() {
        let stat = "7 (a) R 1 ) S 1 2 3 4 5 6 10 0 12 0 1 2 0 0 20 0 1 0 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 17 3 0";
        let status =
            "Name:\ta) R 1 \nvoluntary_ctxt_switches:\t257\nnonvoluntary_ctxt_switches:\t106\n";
        let facts = parse_facts(stat, status).unwrap();
        assert_eq!((facts.state, facts.minor_faults, facts.major_faults), ('S', 10, 12));
        assert_eq!((facts.voluntary_switches, facts.involuntary_switches), (257, 106));
        assert_eq!(parse_facts("", status), None);
        assert_eq!(parse_schedstat("5 6 7\n"), Some(CpuTime { running_ns: 5, runnable_ns: 6 }));
        assert_eq!(parse_schedstat("5"), None);
    }
}
