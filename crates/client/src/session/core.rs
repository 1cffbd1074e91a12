//! The state that a client's threads share.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use proto::event::{Answer, Event};
use proto::hello::TransportSnapshot;
use proto::request::{Activation, Request, RequestError, ReturningConnection, ReturningPort};
use rt::shm::SignalPage;
use sys::clock::now_ns;
use sys::futex::Futex;
use sys::memory::{Access, PeerSlab, Shared};
use sys::poll::Waker;
use sys::runtime_directory::ControlSockets;

use super::attachment::{Attachment, Sockets};
use super::port_allocator::PortAllocator;
use super::server_memory::{LastCycle, ServerMemories, ServerMemory, receive};
use crate::callbacks::{Callback, Shutdown};
use crate::joinable_thread::JoinableThread;
use crate::locked::{locked, try_locked};
use crate::notice_queue::{Notice, NoticeSender};
use crate::process::{self, OwnSlabs, PortTable, ProcessThread, TablesSender};
use crate::requests::Requests;
use crate::{Callbacks, Error};

/// Time limit for an acknowledgement: the server reads it at once, unless it is stopped.
const ANSWER_PATIENCE_NS: u64 = 1_000_000_000;

/// One client, as all its threads know it. Memory stays mapped as long as it lives.
///
/// It fills exactly one page, because cycles read fields all over it and each page costs a TLB miss
/// after a context switch. The reference counts of its `Arc` lie on the page before; therefore no
/// cycle clones it.
#[derive(Debug)]
#[repr(align(4096))]
pub(crate) struct Core {
    pub(crate) id: u32,
    pub(crate) name: String,
    pub(crate) server_name: String,
    /// Where a replacement server will be.
    pub(crate) control_sockets: Box<ControlSockets>,
    pub(crate) started_server: bool,
    /// Fork generation of the process that opened it; see [`sys::fork::generation`].
    pub(crate) generation: u32,
    pub(crate) attachment: Attachment,
    pub(crate) memories: ServerMemories,
    pub(crate) ports: PortTable,
    pub(crate) own_slabs: OwnSlabs,
    pub(crate) allocator: Mutex<PortAllocator>,
    pub(crate) tables: Mutex<TablesSender>,
    pub(crate) callbacks: Mutex<Callbacks>,
    pub(crate) activations: Mutex<Activations>,
    /// Grace set by the user instead of the server's; see [`grace`](Self::grace).
    pub(crate) own_grace: Option<Duration>,
    /// The state that a replacement server receives.
    pub(crate) return_state: Mutex<Option<ReturnState>>,
    /// The activation announced to the server, and to each replacement server.
    pub(crate) announced_activation: Mutex<Option<Activation>>,
    pub(crate) active: AtomicBool,
    /// The kernel's thread id; 0: none.
    pub(crate) process_thread: AtomicU32,
    pub(crate) notices: NoticeSender,
    pub(crate) notification_thread: Mutex<Option<JoinableThread<()>>>,
    pub(crate) last_cycle: LastCycle,
    /// Wakes the service thread.
    pub(crate) service: OnceLock<Arc<Waker>>,
    /// Token of the pending question from the session manager; 0: none.
    pub(crate) session_question: AtomicU64,
    pub(crate) shutdown_told: AtomicBool,
    /// The program has closed the client within a cycle: none of its code is called anymore.
    pub(crate) muted: AtomicBool,
    pub(crate) closing: AtomicBool,
    pub(crate) closed: AtomicBool,
}

const _: () = assert!(size_of::<Core>() == 4096, "one page");

impl Core {
    #[inline]
    pub(crate) fn check_fork(&self) -> Result<(), Error> {
        if self.is_forked() { Err(Error::Forked) } else { Ok(()) }
    }

    /// Returns whether this process is a child of the one that opened the client. Thread: cycle.
    #[inline]
    pub(crate) fn is_forked(&self) -> bool {
        !sys::fork::is_generation(self.generation)
    }

    /// Fails if the calling thread may not make a request.
    pub(crate) fn check_request(&self) -> Result<(), Error> {
        self.check_fork()?;
        if self.closed.load(Ordering::Acquire) {
            Err(Error::Closed)
        } else if process::in_cycle() {
            Err(Error::InCycle)
        } else {
            Ok(())
        }
    }

    /// Returns whether the server is gone for good. Thread: cycle.
    pub(crate) fn is_over(&self) -> bool {
        self.attachment.is_over()
    }

    /// Returns the memory shared with the newest server. Thread: cycle.
    #[inline]
    pub(crate) fn memory(&self) -> &ServerMemory {
        self.memories.current()
    }

    /// Runs `ask` with the current server. If that server dies meanwhile, runs it once more with
    /// its replacement.
    pub(crate) fn with_server<R>(
        &self,
        mut ask: impl FnMut(&Requests) -> Result<R, Error>,
    ) -> Result<R, Error> {
        self.check_request()?;
        match ask(&*self.attachment.requests()?) {
            Err(Error::ServerGone) => ask(&*self.attachment.requests()?),
            decided => decided,
        }
    }

    /// Sends a request whose reply is `Done`.
    pub(crate) fn request(&self, request: &Request) -> Result<(), Error> {
        let mut again = false;
        self.with_server(|requests| match requests.request(request.clone()) {
            // The dead server had already carried it out, and its replacement knows.
            Err(Error::Refused(
                RequestError::AlreadyConnected { .. } | RequestError::NotConnected { .. },
            )) if again => Ok(()),
            decided => {
                again = true;
                decided
            }
        })
    }

    pub(crate) fn is_active(&self) -> bool {
        self.active.load(Ordering::Acquire)
    }

    pub(crate) fn process_thread(&self) -> Option<u32> {
        Some(self.process_thread.load(Ordering::Acquire)).filter(|id| *id != 0)
    }

    /// Changes the callbacks of an inactive client.
    pub(crate) fn configure(&self, change: impl FnOnce(&mut Callbacks)) -> Result<(), Error> {
        self.check_fork()?;
        if self.is_active() {
            return Err(Error::Active);
        }
        change(&mut locked(&self.callbacks));
        Ok(())
    }

    /// Returns one of the callbacks, unless the client is muted.
    fn callback<F: ?Sized>(
        &self,
        which: impl FnOnce(&Callbacks) -> &Option<Callback<F>>,
    ) -> Option<Callback<F>> {
        if self.is_muted() { None } else { which(&locked(&self.callbacks)).clone() }
    }

    /// Calls one of the callbacks. The callback may use the session: of the session's locks, only
    /// its own is held. Returns false if it is not set. Notification thread.
    pub(crate) fn call<F: ?Sized>(
        &self,
        which: impl FnOnce(&Callbacks) -> &Option<Callback<F>>,
        body: impl FnOnce(&mut F),
    ) -> bool {
        let callback = self.callback(which);
        callback.map(|callback| body(&mut *locked(&callback))).is_some()
    }

    /// Runs the program's thread initialization on a thread of this library.
    pub(crate) fn initialize_thread(&self) {
        let initialize = locked(&self.callbacks).thread_init.clone();
        if let Some(initialize) = initialize {
            initialize();
        }
    }

    /// Runs the program's part in the start of the process thread, on that thread.
    pub(crate) fn initialize_process_thread(&self) {
        let quantum = self.callback(|callbacks| &callbacks.quantum);
        // Skipped if it is running: it may be running on the activating thread, where it gets a
        // quantum anyway.
        if let Some(mut quantum) = quantum.as_deref().and_then(try_locked)
            && let Some(info) = self.newest_cycle()
        {
            quantum(info.quantum);
        }
        self.initialize_thread();
    }

    /// Sends `notice` to the notification thread.
    pub(crate) fn notify(&self, notice: Notice) {
        self.notices.send(notice);
    }

    /// Sends an acknowledgement to the server, in bounded time.
    pub(crate) fn answer(&self, answer: Answer) {
        let deadline_ns = Some(now_ns() + ANSWER_PATIENCE_NS);
        // If this fails, the server continues without: an unacknowledged mapping counts as silence.
        if let Some(sockets) = self.attachment.sockets() {
            let _ = sockets.events.send_until(&proto::encode(&answer), &[], deadline_ns);
        }
    }

    /// Handles an event that came with `descriptors`, or passes it to the notification thread.
    /// Service thread, without code of the program.
    pub(crate) fn take(&self, event: Event, descriptors: Vec<OwnedFd>) {
        let mut descriptors = descriptors.into_iter();
        match event {
            Event::MapSignals { page, token } => {
                let mapped = descriptors.next().and_then(receive_signals);
                self.store_mapping(token, mapped, |tables, mapped| {
                    tables.set_page(page, Some(mapped))
                });
            }
            Event::MapOwnSignals { place, token } => {
                let mapped = descriptors.next().and_then(receive_signals);
                // Events always come from the newest server: the sockets of earlier ones are not
                // read anymore.
                let server = self.memories.newest();
                self.store_mapping(token, mapped, |tables, mapped| {
                    tables.set_own_page(server, place, mapped)
                });
            }
            Event::MapSlab { slab, token } => {
                let mapped =
                    descriptors.next().and_then(|memfd| PeerSlab::receive_present(memfd).ok());
                let mapped = mapped.map(Arc::new);
                self.store_mapping(token, mapped, |tables, mapped| {
                    tables.set_slab(slab, Some(mapped))
                });
            }
            Event::UnmapSignals { page } => {
                locked(&self.tables).change(None, |tables| tables.set_page(page, None));
            }
            Event::UnmapSlab { slab } => {
                locked(&self.tables).change(None, |tables| tables.set_slab(slab, None));
            }
            // The service thread handles it.
            Event::Shutdown { .. } => {}
            event => self.notify(Notice::Event(event)),
        }
    }

    fn store_mapping<T>(
        &self,
        token: u64,
        mapped: Option<T>,
        store: impl FnOnce(&mut process::Tables, T) -> bool,
    ) {
        let stored = mapped.is_some_and(|mapped| {
            locked(&self.tables).change(Some(token), |tables| store(tables, mapped))
        });
        if !stored {
            self.answer(Answer::NotMapped { token });
        }
    }

    /// Sends changed tables to the process thread and acknowledges them to the server. Returns true
    /// if some are still pending.
    pub(crate) fn settle_tables(&self) -> bool {
        let (tokens, unsettled) = {
            let mut tables = locked(&self.tables);
            (tables.settle(), tables.is_unsettled())
        };
        for token in tokens {
            self.answer(Answer::Mapped { token });
        }
        unsettled
    }

    /// Ends the attachment for good, notifies the program once, and returns the sockets of the last
    /// server.
    pub(crate) fn server_ended(&self, shutdown: Shutdown) -> Option<Sockets> {
        let left = self.attachment.end(&shutdown.reason);
        self.wake_process_thread();
        if !self.closed.load(Ordering::Acquire) && !self.shutdown_told.swap(true, Ordering::AcqRel)
        {
            self.notify(Notice::Shutdown(shutdown));
        }
        left
    }

    /// Wakes the process thread wherever it sleeps, so that it checks its state.
    pub(crate) fn wake_process_thread(&self) {
        self.memory().wake();
        locked(&self.tables)
            .current()
            .own_pages()
            .for_each(|page| page.wake_unconditionally(&Futex));
    }

    /// The server is gone: the process thread sleeps until there is another. Service thread.
    pub(crate) fn detach_memory(&self) {
        self.memories.mark_detached(self.newest_cycle());
        self.wake_process_thread();
    }

    /// Returns whether the program has closed the client within a cycle. Its cycles go on without
    /// code of the program. Thread: cycle.
    pub(crate) fn is_muted(&self) -> bool {
        self.muted.load(Ordering::Relaxed)
    }
}

/// State that lives from an activation to its end.
#[derive(Debug, Default)]
pub(crate) struct Activations {
    /// Number of the activation, which tells the end of one from that of another.
    pub(super) count: u32,
    pub(super) thread: Option<ProcessThread>,
}

/// What a client tells a server that replaces a dead one.
#[derive(Debug, Default)]
pub(crate) struct ReturnState {
    pub(super) ports: Vec<ReturningPort>,
    pub(super) connections: Vec<ReturningConnection>,
    pub(super) uuid: u64,
    pub(super) last_client: u32,
    pub(super) last_port: u32,
    pub(super) transport: Option<TransportSnapshot>,
    /// It was the timebase master.
    pub(super) is_master: bool,
    /// When the replacement server received this state.
    pub(super) announced_at: Option<Instant>,
}

fn receive_signals(memfd: OwnedFd) -> Option<Arc<Shared<SignalPage>>> {
    receive(memfd, Access::Writable).ok().map(Arc::new)
}
