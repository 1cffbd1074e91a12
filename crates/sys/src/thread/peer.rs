//! The threads of another process, by a handle to its directory in /proc: a process or thread that
//! gets the id of one that has ended is never taken for it.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use super::scheduling::{Scheduling, scheduling, set_other, set_real_time};
use crate::process::PidFd;

/// The threads of one process. Thread: any, but not in a cycle.
#[derive(Debug)]
pub struct PeerThreads {
    /// Nothing is found in it once the process has ended, even if another one has its id.
    directory: File,
}

/// One thread of another process.
#[derive(Debug)]
pub struct PeerThread {
    id: u32,
    /// Can be read as long as the thread lives.
    name: File,
}

/// A real-time thread that was demoted, and how it was scheduled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DemotedThread {
    id: u32,
    scheduling: Scheduling,
}

/// Threads of a process that are looked at: it may have tens of thousands, and the caller has other
/// programs to serve.
const MOST_THREADS: usize = 256;

impl PeerThreads {
    /// Opens the directory of a process.
    ///
    /// # Errors
    /// `NotFound` if it has ended, or is not visible in /proc.
    pub fn of(process: &PidFd) -> io::Result<Self> {
        let id = process.process_id()?.ok_or(io::ErrorKind::NotFound)?;
        let directory = File::open(format!("/proc/{id}"))?;
        if process.has_ended()? {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(Self { directory })
    }

    /// Finds the thread that has the id `named` in its own pid namespace.
    #[must_use]
    pub fn find(&self, named: u32) -> Option<PeerThread> {
        let is_named = |id: &u32| self.id_in_own_namespace(*id) == Some(named);
        // Without a namespace of its own, it is the same id here.
        let here = Some(named).filter(is_named);
        let id = here.or_else(|| self.ids().take(MOST_THREADS).find(is_named))?;
        let name = File::open(self.path(&format!("{id}/comm"))).ok()?;
        let thread = PeerThread { id, name };
        // The first read makes the kernel's buffer, which those of the driver find then.
        thread.lives().then_some(thread)
    }

    /// Takes the real-time priority of one thread; see [`PeerThread::demote`].
    #[must_use]
    pub fn demote(&self, id: u32) -> bool {
        self.id_in_own_namespace(id).is_some() && set_other(id).is_ok()
    }

    /// Takes the priority of the process's real-time threads that run now, or wait for a CPU.
    /// Threads that sleep keep theirs.
    #[must_use]
    pub fn demote_running(&self) -> Vec<DemotedThread> {
        let threads = self.ids().take(MOST_THREADS);
        let real_time = threads.filter_map(|id| match scheduling(id) {
            Ok(Scheduling::Other) | Err(_) => None,
            Ok(scheduling) => Some(DemotedThread { id, scheduling }),
        });
        // The last look shows that the id is still one of the process.
        let running = real_time.filter(|thread| self.is_running(thread.id));
        running.filter(|thread| set_other(thread.id).is_ok()).collect()
    }

    /// Gives a thread its priority back.
    pub fn restore(&self, thread: &DemotedThread) {
        if self.id_in_own_namespace(thread.id).is_some() {
            // Without the right to it any more, it stays an ordinary thread.
            let _ = set_real_time(thread.id, thread.scheduling);
        }
    }

    fn path(&self, of_thread: &str) -> String {
        format!("/proc/self/fd/{}/task/{of_thread}", self.directory.as_raw_fd())
    }

    fn ids(&self) -> impl Iterator<Item = u32> {
        let entries = std::fs::read_dir(self.path("")).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
    }

    fn id_in_own_namespace(&self, id: u32) -> Option<u32> {
        let status = std::fs::read(self.path(&format!("{id}/status"))).ok()?;
        let status = String::from_utf8_lossy(&status).into_owned();
        let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
        // A kernel without namespaces reports none.
        // MUTATION: peer.id_in_servers_namespace
        ids.map_or(Some(id), |ids| ids.split_whitespace().last()?.parse().ok())
    }

    fn is_running(&self, id: u32) -> bool {
        let stat = std::fs::read(self.path(&format!("{id}/stat"))).unwrap_or_default();
        // The name before may contain anything.
        let after_name = stat.iter().rposition(|byte| *byte == b')').unwrap_or(stat.len());
        stat.get(after_name + 2) == Some(&b'R')
    }
}

impl DemotedThread {
    /// Its id in the pid namespace that /proc shows.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.id
    }
}

impl PeerThread {
    /// Its id in the pid namespace that /proc shows.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Takes its real-time priority. Returns false if it has ended, or may not be demoted: without
    /// the right to it, it was not real-time before. Thread: one alone, which may be the driver;
    /// three system calls.
    #[must_use]
    pub fn demote(&self) -> bool {
        self.lives() && set_other(self.id).is_ok()
    }

    fn lives(&self) -> bool {
        self.name.read_at(&mut [0], 0).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::sync::mpsc::channel;

    use not_run::not_run;

    use super::*;
    use crate::process::process_id;
    use crate::thread::thread_id;

    fn own() -> PeerThreads {
        PeerThreads::of(&PidFd::open(process_id()).unwrap()).unwrap()
    }

    #[test]
    fn a_thread_that_has_ended_is_not_demoted() {
        let (say, hear) = channel();
        let (end, ends) = channel::<()>();
        let thread = std::thread::spawn(move || {
            say.send(thread_id()).unwrap();
            let _ = ends.recv();
        });
        let found = own().find(hear.recv().unwrap()).unwrap();
        assert!(found.lives() && found.demote());
        drop(end);
        thread.join().unwrap();
        // The kernel is done with it a moment after it is joined.
        while found.lives() {
            std::thread::yield_now();
        }
        assert!(!found.demote());
        assert!(own().find(found.id()).is_none());
    }

    #[test]
    fn another_processs_thread_is_not_found() {
        let child = Command::new("sleep").arg("1000").spawn().unwrap();
        let found = own().find(child.id());
        let (mut child, process) = (child, PidFd::open(process_id()).unwrap());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(found.is_none());
        assert!(PeerThreads::of(&process).unwrap().find(thread_id()).is_some());
    }

    #[test]
    fn nothing_is_found_in_a_process_that_has_ended() {
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let process = PidFd::open(child.id()).unwrap();
        let threads = PeerThreads::of(&process).unwrap();
        assert!(threads.find(child.id()).is_some());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(threads.find(child.id()).is_none() && threads.demote_running().is_empty());
        assert!(PeerThreads::of(&process).is_err());
    }

    #[test]
    fn a_thread_of_a_pid_namespace_is_found_by_the_id_that_it_has_there() {
        let unshared = ["--user", "--pid", "--fork", "--kill-child", "cat"];
        let command = Command::new("unshare").args(unshared).stdin(Stdio::piped()).spawn();
        let Ok(mut outer) = command else { return not_run("no unshare here") };
        let children = format!("/proc/{0}/task/{0}/children", outer.id());
        let inner = (0..1000).find_map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(2));
            std::fs::read_to_string(&children).ok()?.trim().parse::<u32>().ok()
        });
        let Some(inner) = inner else { return not_run("no namespaces here") };
        let threads = PeerThreads::of(&PidFd::open(inner).unwrap()).unwrap();
        assert_eq!(threads.find(1).map(|thread| thread.id()), Some(inner));
        assert!(threads.find(inner).is_none(), "the id that it has here");
        drop(outer.stdin.take());
        outer.wait().unwrap();
    }

    #[test]
    fn real_time_threads_that_run_are_demoted_and_get_their_priority_back() {
        let (say, hear) = channel();
        let (end, ends) = channel::<()>();
        let spinning = std::thread::spawn(move || {
            let is_permitted = crate::thread::set_fifo(0, 1).is_ok();
            say.send(is_permitted.then(thread_id)).unwrap();
            while is_permitted
                && ends.try_recv() != Err(std::sync::mpsc::TryRecvError::Disconnected)
            {}
        });
        let Some(id) = hear.recv().unwrap() else {
            return not_run("no right to real-time priorities here");
        };
        let threads = own();
        let demoted = loop {
            let demoted = threads.demote_running().into_iter().find(|thread| thread.id == id);
            if let Some(demoted) = demoted {
                break demoted;
            }
        };
        assert_eq!(demoted, DemotedThread { id, scheduling: Scheduling::Fifo(1) });
        assert_eq!(scheduling(id).unwrap(), Scheduling::Other);
        threads.restore(&demoted);
        assert_eq!(scheduling(id).unwrap(), Scheduling::Fifo(1));
        drop(end);
        spinning.join().unwrap();
    }
}
