//! The service thread: one per process, which receives events for all clients. It runs no code of
//! the program, so that changes of the graph never wait for the program.

use std::collections::HashMap;
use std::ptr;
use std::sync::{Arc, Mutex};

use proto::MAX_PACKET_BYTES;
use proto::event::Event;
use sys::clock::now_ns;
use sys::poll::{Interest, Poller, Waker};
use sys::socket::{Connection, SocketError};

use crate::Error;
use crate::callbacks::Shutdown;
use crate::locked::locked;
use crate::session::{Core, ReturnAttempt};

const STACK_BYTES: usize = 256 * 1024;
/// Token of the waker; clients count from 1.
const WAKER: u64 = 0;
/// Interval of checks whether process threads have taken changed tables.
const POLL_NS: u64 = 100_000_000;
/// Interval of attempts to find another server.
pub(crate) const RETRY_NS: u64 = 50_000_000;
/// Maximum number of events handled for one client before the next client's.
const BATCH: usize = 64;

static SERVICE: Mutex<Option<Arc<Service>>> = Mutex::new(None);

#[derive(Debug)]
struct Service {
    poller: Poller,
    waker: Arc<Waker>,
    clients: Mutex<Clients>,
    /// Fork generation of the process that the thread belongs to.
    generation: u32,
}

#[derive(Debug, Default)]
struct Clients {
    by_token: HashMap<u64, Member>,
    last_token: u64,
}

#[derive(Debug)]
struct Member {
    core: Arc<Core>,
    /// The socket in the poller. `None`: the server is gone, and another is being looked for.
    events: Option<Arc<Connection>>,
    /// When to give up looking for another server.
    retry_until_ns: u64,
}

/// Starts to receive the events of `core`.
pub(crate) fn add(core: &Arc<Core>) -> Result<(), Error> {
    let mut slot = locked(&SERVICE);
    let generation = sys::fork::generation();
    if slot.as_ref().is_some_and(|service| service.generation != generation) {
        // It belongs to the parent: its thread does not exist here, and its epoll is shared with
        // the parent.
        std::mem::forget(slot.take());
    }
    let service = match &*slot {
        Some(service) => Arc::clone(service),
        None => Arc::clone(slot.insert(Service::start(generation)?)),
    };
    let mut clients = locked(&service.clients);
    clients.last_token += 1;
    let token = clients.last_token;
    let events = core.attachment.sockets().ok_or(Error::ServerGone)?.events;
    service.poller.add(&*events, token, Interest::Readable)?;
    core.service.get_or_init(|| Arc::clone(&service.waker));
    let member = Member { core: Arc::clone(core), events: Some(events), retry_until_ns: 0 };
    clients.by_token.insert(token, member);
    Ok(())
}

/// Stops receiving the events of `core`.
pub(crate) fn remove(core: &Core) {
    let service = locked(&SERVICE).clone();
    if let Some(service) = service.filter(|service| service.generation == sys::fork::generation()) {
        service.forget(|other| ptr::eq(&raw const **other, core));
        service.waker.wake();
    }
}

impl Service {
    fn start(generation: u32) -> Result<Arc<Self>, Error> {
        let (poller, waker) = (Poller::new()?, Arc::new(Waker::new()?));
        poller.add(&*waker, WAKER, Interest::Readable)?;
        let service = Arc::new(Self { poller, waker, clients: Mutex::default(), generation });
        let of_thread = Arc::clone(&service);
        // Not joined: it ends with the last client.
        sys::thread::spawn_without_signals("consort-service", STACK_BYTES, move || {
            of_thread.run()
        })?;
        Ok(service)
    }

    fn run(&self) {
        sys::thread::favour();
        let mut events = Vec::new();
        let mut buffer = vec![0; MAX_PACKET_BYTES];
        let mut unsettled = false;
        let mut retry_at_ns = None;
        loop {
            let settles_ns = unsettled.then(|| now_ns() + POLL_NS);
            let deadline_ns = settles_ns.into_iter().chain(retry_at_ns).min();
            if let Err(error) = self.poller.wait(&mut events, deadline_ns) {
                crate::log::warn(&format!("cannot listen to the server any longer: {error}"));
                return;
            }
            for event in &events {
                if event.token == WAKER {
                    self.waker.reset();
                    continue;
                }
                self.listen(event.token, &mut buffer);
            }
            if retry_at_ns.is_none_or(|retry_at_ns| retry_at_ns <= now_ns()) {
                self.try_all_servers();
            }
            let cores = self.cores(|_| true);
            // `count` visits every client, `any` would stop at the first.
            unsettled = cores.iter().filter(|(_, core)| core.settle_tables()).count() > 0;
            let is_detached = !self.cores(|member| member.events.is_none()).is_empty();
            retry_at_ns = is_detached.then(|| {
                retry_at_ns.filter(|at| *at > now_ns()).unwrap_or_else(|| now_ns() + RETRY_NS)
            });
            drop(cores);
            if self.is_over() {
                return;
            }
        }
    }

    /// Returns clones, so that the lock is not held while they are used.
    fn cores(&self, which: impl Fn(&Member) -> bool) -> Vec<(u64, Arc<Core>)> {
        let clients = locked(&self.clients);
        let members = clients.by_token.iter().filter(|(_, member)| which(member));
        members.map(|(token, member)| (*token, Arc::clone(&member.core))).collect()
    }

    /// Handles pending events of the client `token`, or the end of its server.
    fn listen(&self, token: u64, buffer: &mut [u8]) {
        let member = locked(&self.clients).by_token.get(&token).and_then(|member| {
            Some((Arc::clone(&member.core), Arc::clone(member.events.as_ref()?)))
        });
        let Some((core, events)) = member else { return };
        let Err(end) = take_events(&core, &events, buffer) else { return };
        match end {
            End::Silent if !core.grace().is_zero() && !core.memory().engine.has_stopped() => {
                let _ = self.poller.remove(&*events);
                core.detach();
                self.wait_for_server(token, &core);
                self.try_server(token, &core);
            }
            End::Silent => {
                let orderly = core.memory().engine.has_stopped();
                let reason = "the server has closed the connection".to_owned();
                self.end(&core, Shutdown { orderly, reason });
            }
            End::Announced(shutdown) => self.end(&core, shutdown),
        }
    }

    /// Starts looking for another server.
    fn wait_for_server(&self, token: u64, core: &Core) {
        let grace_ns = u64::try_from(core.grace().as_nanos()).unwrap_or(u64::MAX);
        if let Some(member) = locked(&self.clients).by_token.get_mut(&token) {
            member.events = None;
            member.retry_until_ns = now_ns().saturating_add(grace_ns);
        }
    }

    fn end(&self, core: &Arc<Core>, shutdown: Shutdown) {
        self.forget(|other| Arc::ptr_eq(other, core));
        core.server_ended(shutdown);
    }

    fn try_all_servers(&self) {
        for (token, core) in self.cores(|member| member.events.is_none()) {
            self.try_server(token, &core);
        }
    }

    /// Attempts once to return to a server, or ends the client's attachment.
    fn try_server(&self, token: u64, core: &Arc<Core>) {
        match core.attempt_return() {
            ReturnAttempt::Returned(sockets) => self.listen_again(token, sockets.events),
            ReturnAttempt::Never(shutdown) => self.end(core, shutdown),
            ReturnAttempt::Closed => {}
            ReturnAttempt::Lost => self.wait_for_server(token, core),
            ReturnAttempt::NotYet => {
                let until_ns =
                    locked(&self.clients).by_token.get(&token).map(|member| member.retry_until_ns);
                // MUTATION: try_server.without_end
                if until_ns.is_some_and(|until_ns| until_ns <= now_ns()) {
                    let seconds = core.grace().as_secs_f32();
                    let reason =
                        format!("the server is gone, and no other replaced it within {seconds} s");
                    self.end(core, Shutdown { orderly: false, reason });
                }
            }
        }
    }

    fn listen_again(&self, token: u64, events: Arc<Connection>) {
        // `None` if the client was closed meanwhile.
        if let Some(member) = locked(&self.clients).by_token.get_mut(&token)
            && self.poller.add(&*events, token, Interest::Readable).is_ok()
        {
            member.events = Some(events);
        }
    }

    /// Returns whether there are no clients left. The next client then starts another service
    /// thread.
    fn is_over(&self) -> bool {
        let mut slot = locked(&SERVICE);
        let over = locked(&self.clients).by_token.is_empty();
        if over {
            slot.take_if(|service| ptr::eq(&raw const **service, self));
        }
        over
    }

    fn forget(&self, which: impl Fn(&Arc<Core>) -> bool) {
        let mut clients = locked(&self.clients);
        let token = clients
            .by_token
            .iter()
            .find(|(_, member)| which(&member.core))
            .map(|(token, _)| *token);
        let member = token.and_then(|token| clients.by_token.remove(&token));
        if let Some(events) = member.and_then(|member| member.events) {
            // Fails only if it is not registered.
            let _ = self.poller.remove(&*events);
        }
    }
}

/// How a server ended.
enum End {
    /// The socket was closed without a shutdown notice.
    Silent,
    /// With a shutdown notice, or with an error to report.
    Announced(Shutdown),
}

/// Handles pending events. An error means the end of the server.
fn take_events(core: &Core, events: &Connection, buffer: &mut [u8]) -> Result<(), End> {
    for _ in 0..BATCH {
        let (bytes, descriptors) = match events.try_receive(buffer) {
            Ok(received) => (received.bytes, received.descriptors),
            Err(SocketError::NotReady) => return Ok(()),
            // The server is answered that the memory cannot be mapped.
            Err(SocketError::NoDescriptor { bytes }) => {
                crate::log::warn(&format!(
                    "'{}' gets no memory of another client, and one of its connections stays \
                     silent: this process can open no more descriptors; raise its limit \
                     (ulimit -n), then disconnect the ports and connect them again",
                    core.name
                ));
                (bytes, Vec::new())
            }
            // No server sends that.
            Err(SocketError::TooManyDescriptors | SocketError::TooLong) => continue,
            Err(_) => return Err(End::Silent),
        };
        let packet = buffer.get(..bytes).unwrap_or_default();
        match proto::decode::<Event>(packet) {
            Ok(Event::Shutdown { reason }) => {
                return Err(End::Announced(Shutdown { orderly: true, reason }));
            }
            Ok(event) => core.take(event, descriptors),
            Err(_) => {
                let reason = "the server and this program are not of one release".to_owned();
                return Err(End::Announced(Shutdown { orderly: false, reason }));
            }
        }
    }
    Ok(())
}
