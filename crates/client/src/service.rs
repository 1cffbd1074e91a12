//! The service thread: one per process, listening for all its clients. It runs no code of the program, so that the
//! server's changes never wait for it.

use std::collections::HashMap;
use std::io;
use std::ptr;
use std::sync::{Arc, Mutex};

use proto::MAX_PACKET_BYTES;
use proto::event::Event;
use sys::clock::now_ns;
use sys::poll::{Interest, Poller, Waker};
use sys::socket::SocketError;

use crate::Error;
use crate::callbacks::Shutdown;
use crate::locked::locked;
use crate::session::Core;

const STACK_BYTES: usize = 256 * 1024;
/// The waker's token; clients count from 1.
const WAKER: u64 = 0;
/// How soon the thread looks again for tables that a process thread has not taken yet.
const LOOK_NS: u64 = 100_000_000;
/// Events taken from one client before it is the others' turn.
const BATCH: usize = 64;

static SERVICE: Mutex<Option<Arc<Service>>> = Mutex::new(None);

#[derive(Debug)]
struct Service {
    poller: Poller,
    waker: Arc<Waker>,
    clients: Mutex<Clients>,
    /// Of the process that it belongs to.
    generation: u32,
}

#[derive(Debug, Default)]
struct Clients {
    by_token: HashMap<u64, Arc<Core>>,
    last_token: u64,
}

/// Listens to what the server tells `core` from now on.
pub(crate) fn add(core: &Arc<Core>) -> Result<(), Error> {
    let mut slot = locked(&SERVICE);
    let generation = sys::fork::generation();
    if slot.as_ref().is_some_and(|service| service.generation != generation) {
        // The parent's: its thread is not here, and its epoll is the parent's too.
        std::mem::forget(slot.take());
    }
    let service = match &*slot {
        Some(service) => Arc::clone(service),
        None => Arc::clone(slot.insert(Service::start(generation)?)),
    };
    let mut clients = locked(&service.clients);
    clients.last_token += 1;
    let token = clients.last_token;
    service.poller.add(&core.events, token, Interest::Readable)?;
    core.service.get_or_init(|| Arc::clone(&service.waker));
    clients.by_token.insert(token, Arc::clone(core));
    Ok(())
}

/// Listens to `core` no more.
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
        // Not waited for: it ends with the last client.
        sys::thread::spawn_without_signals("consort-service", STACK_BYTES, move || of_thread.run())?;
        Ok(service)
    }

    fn run(&self) {
        sys::thread::favour();
        let mut events = Vec::new();
        let mut buffer = vec![0; MAX_PACKET_BYTES];
        let mut unsettled = false;
        loop {
            let deadline_ns = unsettled.then(|| now_ns() + LOOK_NS);
            if let Err(error) = self.poller.wait(&mut events, deadline_ns) {
                crate::log::warn(&format!("cannot listen to the server any more: {error}"));
                return;
            }
            for event in &events {
                if event.token == WAKER {
                    self.waker.reset();
                    continue;
                }
                // Cloned, so that nothing is locked meanwhile.
                let core = locked(&self.clients).by_token.get(&event.token).cloned();
                if let Some(core) = core
                    && let Err(shutdown) = take_events(&core, &mut buffer)
                {
                    self.forget(|other| Arc::ptr_eq(other, &core));
                    core.server_ended(shutdown);
                }
            }
            let cores: Vec<_> = locked(&self.clients).by_token.values().cloned().collect();
            // Each of them, whatever the others say.
            unsettled = cores.iter().filter(|core| core.settle_tables()).count() > 0;
            cores.iter().for_each(|core| core.tell_of_written_inputs());
            drop(cores);
            if self.is_over() {
                return;
            }
        }
    }

    /// Whether there are no clients left; the next one then starts a service of its own.
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
        let token = clients.by_token.iter().find(|(_, core)| which(core)).map(|(token, _)| *token);
        if let Some(core) = token.and_then(|token| clients.by_token.remove(&token)) {
            // Fails only if it is not there.
            let _ = self.poller.remove(&core.events);
        }
    }
}

/// Takes the events that have come; an error is the server's end.
fn take_events(core: &Core, buffer: &mut [u8]) -> Result<(), Shutdown> {
    let ended = |reason: &str| Shutdown { orderly: false, reason: reason.to_owned() };
    for _ in 0..BATCH {
        let received = match core.events.try_receive(buffer) {
            Ok(received) => received,
            Err(SocketError::NotReady) => return Ok(()),
            Err(SocketError::Closed) => return Err(ended("the server has closed the connection")),
            // Lost with its descriptors, as when the process has no descriptor left: the server will miss the answer.
            Err(SocketError::TooManyDescriptors | SocketError::TooLong) => continue,
            Err(error) => return Err(ended(&io::Error::from(error).to_string())),
        };
        let packet = buffer.get(..received.bytes).unwrap_or_default();
        match proto::decode::<Event>(packet) {
            Ok(event) => core.take(event, received.descriptors),
            Err(_) => return Err(ended("the server and this program are not of one release")),
        }
    }
    Ok(())
}
