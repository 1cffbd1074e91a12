//! What a client's threads share.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use proto::event::{Answer, Event};
use proto::request::{Activation, Request, RequestError};
use rt::shm::SignalPage;
use sys::clock::now_ns;
use sys::futex::Futex;
use sys::memory::{Access, PeerSlab, Shared};
use sys::poll::Waker;

use super::activation::Activations;
use super::attachment::{Attachment, Sockets};
use super::link::{Link, Links};
use super::ports::PortBook;
use super::receive;
use super::returning::Remembered;
use crate::callbacks::{Callback, Shutdown};
use crate::joinable::Joinable;
use crate::locked::{locked, try_locked};
use crate::notification::Notice;
use crate::process::{self, OwnSlabs, PortTable, TablesSender};
use crate::requests::Requests;
use crate::time::LastCycle;
use crate::{Callbacks, Error, service};

/// For an answer on the event socket: the server reads it at once, unless it is stopped.
const ANSWER_PATIENCE_NS: u64 = 1_000_000_000;
/// For the notification thread, which may be in the program's code.
const PATIENCE: Duration = Duration::from_secs(5);
/// Of the thread that closes a client for a cycle.
const STACK_BYTES: usize = 256 * 1024;

/// One client, as all its threads know it. Memory stays mapped as long as it lives.
///
/// All of it on one page, since cycles need fields all over it and each page is looked up anew after a switch. The counters of
/// its `Arc` lie on the page before, so that no cycle clones that.
#[derive(Debug)]
#[repr(align(4096))]
pub(crate) struct Core {
    pub(crate) id: u32,
    pub(crate) name: String,
    pub(crate) server_name: String,
    pub(crate) started_server: bool,
    /// Of the process that opened it: see [`sys::fork::generation`].
    pub(crate) generation: u32,
    pub(crate) attachment: Attachment,
    pub(crate) links: Links,
    pub(crate) ports: PortTable,
    pub(crate) own_slabs: OwnSlabs,
    pub(crate) book: Mutex<PortBook>,
    pub(crate) tables: Mutex<TablesSender>,
    pub(crate) callbacks: Mutex<Callbacks>,
    pub(crate) activations: Mutex<Activations>,
    /// The program's user has another grace in mind than the server's: see [`grace`](Self::grace).
    pub(crate) own_grace: Option<Duration>,
    /// What is told to servers that take the place of one that died.
    pub(crate) remembered: Mutex<Option<Remembered>>,
    /// What the server was told at activation; a server that takes its place is told the same.
    pub(crate) stated: Mutex<Option<Activation>>,
    pub(crate) active: AtomicBool,
    /// 0: none.
    pub(crate) process_thread: AtomicU32,
    pub(crate) notices: Sender<Notice>,
    pub(crate) notification_thread: Mutex<Option<Joinable<()>>>,
    pub(crate) last_cycle: LastCycle,
    pub(crate) copies_inputs: AtomicBool,
    /// ... because it has written into them, and was not told yet.
    pub(crate) inputs_written: AtomicBool,
    /// Wakes the service thread.
    pub(crate) service: OnceLock<Arc<Waker>>,
    /// The token of the session manager's question that is not answered; 0: none.
    pub(crate) session_question: AtomicU64,
    pub(crate) shutdown_told: AtomicBool,
    /// The program has closed it within a cycle: none of its code is called any more.
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

    /// Whether this process is a child of the one that opened the client. Thread: cycle.
    #[inline]
    pub(crate) fn is_forked(&self) -> bool {
        !sys::fork::is_generation(self.generation)
    }

    /// Whether a request may be made here and now.
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

    /// Whether there is no server any more and none will come. Thread: cycle.
    pub(crate) fn is_over(&self) -> bool {
        self.attachment.is_over()
    }

    /// What is shared with the newest server. Thread: cycle.
    #[inline]
    pub(crate) fn link(&self) -> &Link {
        self.links.current()
    }

    /// Does what asks the server, which may die meanwhile: then again, once, with the one that takes its place.
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

    /// Sends a request that is answered by `Done`.
    pub(crate) fn order(&self, request: &Request) -> Result<(), Error> {
        let mut again = false;
        self.with_server(|requests| match requests.order(request.clone()) {
            // Done by the server that died, and known to the one after it.
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

    pub(crate) fn copies_inputs(&self) -> bool {
        self.copies_inputs.load(Ordering::Relaxed)
    }

    pub(crate) fn set_copies_inputs(&self, copies: bool) {
        self.copies_inputs.store(copies, Ordering::Relaxed);
    }

    /// The program has written into its inputs: it gets copies from now on, and is told by another thread.
    /// Thread: cycle.
    pub(crate) fn note_written_inputs(&self) {
        if !self.copies_inputs.swap(true, Ordering::Relaxed) {
            self.inputs_written.store(true, Ordering::Relaxed);
            if let Some(waker) = self.service.get() {
                waker.wake();
            }
        }
    }

    /// Has the program told, if it has written into its inputs. Service thread.
    pub(crate) fn tell_of_written_inputs(&self) {
        if self.inputs_written.swap(false, Ordering::Relaxed) {
            self.notify(Notice::InputsWritten);
        }
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

    /// One of the callbacks, unless none of the program's code is called any more.
    fn callback<F: ?Sized>(
        &self,
        which: impl FnOnce(&Callbacks) -> &Option<Callback<F>>,
    ) -> Option<Callback<F>> {
        if self.is_muted() { None } else { which(&locked(&self.callbacks)).clone() }
    }

    /// Calls one of the callbacks, which stays set meanwhile and may use the session: of what that locks, only the callback
    /// itself is. False if there is none. Notification thread.
    pub(crate) fn call<F: ?Sized>(
        &self,
        which: impl FnOnce(&Callbacks) -> &Option<Callback<F>>,
        body: impl FnOnce(&mut F),
    ) -> bool {
        let callback = self.callback(which);
        callback.map(|callback| body(&mut *locked(&callback))).is_some()
    }

    /// The program's own initialization of a thread of ours.
    pub(crate) fn initialize_thread(&self) {
        let initialize = locked(&self.callbacks).thread_init.clone();
        if let Some(initialize) = initialize {
            initialize();
        }
    }

    /// The program's part in the start of the process thread, on that.
    pub(crate) fn initialize_process_thread(&self) {
        let quantum = self.callback(|callbacks| &callbacks.quantum);
        // Not waited for where it runs: that may be on the thread that activates, and it is told a quantum there.
        if let Some(mut quantum) = quantum.as_deref().and_then(try_locked)
            && let Some(info) = self.newest_cycle()
        {
            quantum(info.quantum);
        }
        self.initialize_thread();
    }

    /// Gives `notice` to the notification thread.
    pub(crate) fn notify(&self, notice: Notice) {
        // Fails once the client is closed: nobody is interested then.
        let _ = self.notices.send(notice);
    }

    /// Tells the server that `answer`, waiting for it in bounded time.
    pub(crate) fn answer(&self, answer: Answer) {
        let deadline_ns = Some(now_ns() + ANSWER_PATIENCE_NS);
        // If it fails, the server does without: what it did not hear is mapped counts as silence.
        if let Some(sockets) = self.attachment.sockets() {
            let _ = sockets.events.send_until(&proto::encode(&answer), &[], deadline_ns);
        }
    }

    /// Obeys an event that came with `descriptors`, or passes it on. Service thread: no code of the program.
    pub(crate) fn take(&self, event: Event, descriptors: Vec<OwnedFd>) {
        let mut descriptors = descriptors.into_iter();
        match event {
            Event::MapSignals { page, token } => {
                let mapped = descriptors.next().and_then(receive_signals);
                self.keep(token, mapped, |tables, mapped| tables.set_page(page, Some(mapped)));
            }
            Event::MapOwnSignals { place, token } => {
                let mapped = descriptors.next().and_then(receive_signals);
                // An event of the newest server: what one before it has sent is not read any more.
                let link = self.links.newest();
                self.keep(token, mapped, |tables, mapped| tables.set_own_page(link, place, mapped));
            }
            Event::MapSlab { slab, token } => {
                let mapped = descriptors.next().and_then(|memfd| PeerSlab::receive_for_program(memfd).ok());
                if !sys::write_faults::is_served() {
                    // The program has a handler of its own now, which would take a write for a crash.
                    self.set_copies_inputs(true);
                }
                let mapped = mapped.map(Arc::new);
                self.keep(token, mapped, |tables, mapped| tables.set_slab(slab, Some(mapped)));
            }
            Event::UnmapSignals { page } => {
                locked(&self.tables).change(None, |tables| tables.set_page(page, None));
            }
            Event::UnmapSlab { slab } => {
                locked(&self.tables).change(None, |tables| tables.set_slab(slab, None));
            }
            // The service thread has taken it.
            Event::Shutdown { .. } => {}
            event => self.notify(Notice::Event(event)),
        }
    }

    fn keep<T>(&self, token: u64, mapped: Option<T>, keep: impl FnOnce(&mut process::Tables, T) -> bool) {
        let kept = mapped
            .is_some_and(|mapped| locked(&self.tables).change(Some(token), |tables| keep(tables, mapped)));
        if !kept {
            self.answer(Answer::NotMapped { token });
        }
    }

    /// Hands changed tables to the process thread as far as it takes them, and says so. True if some are left.
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

    /// There is no server any more and none will come. The program is told once. Gives the sockets that it left.
    pub(crate) fn server_ended(&self, shutdown: Shutdown) -> Option<Sockets> {
        let left = self.attachment.end();
        self.wake_process_thread();
        if !self.closed.load(Ordering::Acquire) && !self.shutdown_told.swap(true, Ordering::AcqRel) {
            self.notify(Notice::Shutdown(shutdown));
        }
        left
    }

    /// Makes the process thread look what it is to do, wherever it sleeps.
    pub(crate) fn wake_process_thread(&self) {
        self.link().wake();
        locked(&self.tables).current().own_pages().for_each(|page| page.wake_surely(&Futex));
    }

    /// The server is gone: the process thread sleeps until another has taken its place. Service thread.
    pub(crate) fn cut(&self) {
        self.links.cut(self.newest_cycle());
        self.wake_process_thread();
    }

    /// Whether the program has closed the client within a cycle, and its cycles go on without it. Thread: cycle.
    pub(crate) fn is_muted(&self) -> bool {
        self.muted.load(Ordering::Relaxed)
    }

    /// See `Session::close`.
    pub(crate) fn close(self: &Arc<Self>) {
        if self.is_forked() || self.closing.swap(true, Ordering::AcqRel) {
            return;
        }
        if !process::in_cycle() && !process::is_beginning(self) {
            return self.leave_server();
        }
        // The cycle must be finished before the server can let go of the client, and an activation before it can be
        // deactivated: neither is waited for here.
        self.muted.store(true, Ordering::Relaxed);
        let core = Arc::clone(self);
        let left =
            sys::thread::spawn_without_signals("consort-close", STACK_BYTES, move || core.leave_server());
        if left.is_err() {
            // No memory for a thread: the client stays, silent, as long as the process.
            self.closing.store(false, Ordering::Release);
        }
    }

    fn leave_server(self: &Arc<Self>) {
        // Whether or not the server agrees: the socket's end says the same.
        let _ = self.deactivate();
        self.attachment.in_between(|| self.closed.store(true, Ordering::Release));
        if let Some(sockets) = self.attachment.sockets() {
            let _ = sockets.requests.order(Request::Close);
        }
        service::remove(self);
        self.attachment.end();
        self.notify(Notice::Quit);
        let thread = locked(&self.notification_thread).take();
        if let Some(thread) = thread {
            thread.join(PATIENCE, || {});
        }
    }
}

fn receive_signals(memfd: OwnedFd) -> Option<Arc<Shared<SignalPage>>> {
    receive(memfd, Access::Writable).ok().map(Arc::new)
}
