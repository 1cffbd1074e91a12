//! The threads of a client's process, as far as its real-time priorities go.

use std::sync::Arc;

use rt::shm::OwnPage;
use sys::thread::{DemotedThread, PeerThread, PeerThreads};

/// The threads of a client's process. Thread: control.
#[derive(Debug, Default)]
pub struct ClientThreads {
    /// `None`: the process is not visible from here.
    all: Option<PeerThreads>,
    /// The one that runs cycles, shared with the plans: the driver thread demotes it.
    process_thread: Option<Arc<PeerThread>>,
    /// Its other threads that kept a CPU busy while the client was suspended.
    demoted: Vec<DemotedThread>,
}

/// Threads that get their priority back when a client is reinstated.
const MOST_RESTORED: usize = 64;

impl ClientThreads {
    /// Notes which thread runs cycles, by the id that it has in the client's own pid namespace.
    /// `open` finds the process.
    pub fn activate(&mut self, named: Option<u32>, open: impl FnOnce() -> Option<PeerThreads>) {
        self.restore();
        if self.all.is_none() {
            self.all = open();
        }
        let thread = self.all.as_ref().zip(named).and_then(|(all, named)| all.find(named));
        self.process_thread = thread.map(Arc::new);
    }

    /// The thread that runs cycles; `None`: unknown.
    pub fn process_thread(&self) -> Option<&Arc<PeerThread>> {
        self.process_thread.as_ref()
    }

    /// Takes the priority of the thread that runs cycles, until it has finished its cycle.
    pub fn demote(&self, own: &OwnPage) {
        // Not through the handle that the driver reads.
        let threads = self.all.as_ref().zip(self.process_thread.as_ref());
        if threads.is_some_and(|(all, thread)| all.demote(thread.id())) {
            own.note_demoted();
        }
    }

    /// Takes the priority of all real-time threads of the process that keep a CPU now; threads that
    /// sleep keep theirs. `is_process_thread`: the thread with this id runs a client's cycles, and
    /// takes its priority back by itself.
    pub fn demote_running(&mut self, mut is_process_thread: impl FnMut(u32) -> bool) {
        let Some(all) = &self.all else { return };
        for thread in all.demote_running() {
            self.demoted.retain(|before| before.id() != thread.id());
            if !is_process_thread(thread.id()) {
                self.demoted.push(thread);
            }
        }
        self.demoted.truncate(MOST_RESTORED);
    }

    /// Gives the threads their priorities back that were taken while the client was suspended.
    pub fn restore(&mut self) {
        let demoted = std::mem::take(&mut self.demoted);
        let Some(all) = &self.all else { return };
        demoted.iter().for_each(|thread| all.restore(thread));
    }
}
