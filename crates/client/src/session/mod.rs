//! The untyped client: everything `libjack` needs, usable from any thread.

mod activation;
mod admission;
mod attachment;
mod closing;
mod core;
mod open;
mod port_allocator;
mod ports;
mod registry;
mod returning;
mod server_memory;

use std::ptr::NonNull;
use std::sync::Arc;

use proto::request::{PortType, Reply, Request};
use rt::shm::EngineSegment;

pub(crate) use self::core::Core;
pub use self::open::OpenOptions;
pub(crate) use self::open::own_grace;
pub(crate) use self::returning::ReturnAttempt;
pub(crate) use self::server_memory::{ServerMemory, receive};
use crate::registry_view::RegistryView;
use crate::{Callbacks, Error, Requester, process};

/// A client of a server. Dropping it closes it.
///
/// Requests wait for the server in bounded time and are refused within a cycle
/// ([`Error::InCycle`]); getters and buffers are lock-free and allowed anywhere. While a server
/// that died is being replaced, requests wait for the next one, at most for the server's grace
/// (`consort run --grace`), and getters return the last known values. In a child made by `fork`,
/// every call fails with [`Error::Forked`] or returns nothing, and the parent's client is not
/// affected.
#[derive(Debug)]
pub struct Session {
    core: Arc<Core>,
}

impl Session {
    /// Opens a client with the name `name`, or a similar one if it is taken. Does not activate it.
    ///
    /// # Errors
    /// [`Error::NoServer`] and the other errors of connecting; [`Error::Refused`] if the server
    /// refuses the client.
    pub fn open(name: &str, options: &OpenOptions) -> Result<Self, Error> {
        open::open(name, options).map(|core| Self { core })
    }

    /// Closes the client: it leaves the cycles, its ports are removed and its threads end. Takes
    /// bounded time, from any thread; a thread that hangs in the program's code is left running. A
    /// second call does nothing.
    pub fn close(&self) {
        self.core.close();
    }

    /// Returns the client's name, as the server assigned it.
    pub fn name(&self) -> &str {
        &self.core.name
    }

    /// Returns the client's id in the registry.
    pub fn id(&self) -> u32 {
        self.core.id
    }

    /// Returns the client's uuid; 0 in a forked child, and without a server.
    pub fn uuid(&self) -> u64 {
        self.registry().client(self.id()).map_or(0, |client| client.uuid)
    }

    /// Returns the server's name.
    pub fn server_name(&self) -> &str {
        &self.core.server_name
    }

    /// Returns whether the server was started for this client.
    pub fn started_server(&self) -> bool {
        self.core.started_server
    }

    /// Returns whether the server is gone and none has replaced it in time. The client can then
    /// only be closed.
    pub fn is_server_gone(&self) -> bool {
        self.core.is_over()
    }

    /// Changes the callbacks.
    ///
    /// # Errors
    /// [`Error::Active`] while the client is active.
    pub fn configure(&self, change: impl FnOnce(&mut Callbacks)) -> Result<(), Error> {
        self.core.configure(change)
    }

    /// Joins the cycles, with a process thread if a callback needs it. Does nothing on an active
    /// client.
    ///
    /// # Errors
    /// [`Error::ProcessThread`], [`Error::ProcessCallbackRunning`], [`Error::ThreadInit`], and
    /// those of [`Requester`].
    pub fn activate(&self) -> Result<(), Error> {
        self.core.activate()
    }

    /// Leaves the cycles and removes all connections. Does nothing on an inactive client.
    ///
    /// # Errors
    /// See [`Requester`]; the client is inactive nevertheless. [`Error::ThreadInit`]; the
    /// client then stays active.
    pub fn deactivate(&self) -> Result<(), Error> {
        self.core.deactivate()
    }

    /// Returns whether the client is active.
    pub fn is_active(&self) -> bool {
        self.core.is_active()
    }

    /// Returns the kernel's id of the process thread.
    pub fn process_thread(&self) -> Option<u32> {
        self.core.process_thread()
    }

    /// In the program's own loop: sleeps until it is the client's turn and returns the quantum in
    /// frames. `None` if the loop must end. Thread: cycle.
    pub fn cycle_wait(&self) -> Option<u32> {
        process::cycle_wait(&self.core).map(|info| info.quantum)
    }

    /// In the program's own loop: ends the client's part in the cycle, after its outputs are
    /// written. A `status` other than 0 ends the loop. Thread: cycle.
    pub fn cycle_signal(&self, status: i32) {
        process::cycle_signal(&self.core, status);
    }

    /// Registers a port and returns its id. `name` is without the client's name, `flags` are
    /// `JackPortFlags`.
    ///
    /// # Errors
    /// See [`Requester`]; [`Error::Memory`].
    pub fn register_port(&self, name: &str, port_type: PortType, flags: u32) -> Result<u32, Error> {
        self.core.register_port(name, port_type, flags)
    }

    /// Unregisters a port of this client.
    ///
    /// # Errors
    /// [`Error::NotOwnPort`], and those of [`Requester`].
    pub fn unregister_port(&self, port: u32) -> Result<(), Error> {
        self.core.unregister_port(port)
    }

    /// Makes `output` repeat in each cycle what `input` receives. Both must be ports of this client
    /// and of the same type. The copy is made before the process callback, which may still write
    /// into it.
    ///
    /// # Errors
    /// [`Error::NotOwnPort`], [`Error::CannotTie`], [`Error::InCycle`], [`Error::Forked`].
    pub fn tie_ports(&self, input: u32, output: u32) -> Result<(), Error> {
        self.core.tie_ports(input, output)
    }

    /// Removes the ties of a port of this client, if it has any.
    ///
    /// # Errors
    /// [`Error::NotOwnPort`], [`Error::InCycle`], [`Error::Forked`].
    pub fn untie_port(&self, port: u32) -> Result<(), Error> {
        self.core.untie_port(port)
    }

    /// Returns whether `port` belongs to this client.
    pub fn is_own_port(&self, port: u32) -> bool {
        self.core.ports.number(port).is_some()
    }

    /// Returns the address of a port's samples in this cycle: `frames` samples, or a MIDI buffer of
    /// 32 KiB. Call it in each cycle, from the process thread or the program's helper threads.
    /// `None` if the port is not this client's. Inputs may be another client's memory and must only
    /// be read. Thread: cycle.
    ///
    /// An output holds the samples or events of the previous cycle until they are overwritten. An
    /// input is silent where nothing is connected and where a source was late; an input without a
    /// connection is silenced again at each call. A MIDI input's events are copies in this
    /// process's own memory. Events written to a MIDI output may lie anywhere in the cycle,
    /// whatever `frames` is: programs that split their cycles ask for a part and write to any part.
    #[inline]
    pub fn port_buffer(&self, port: u32, frames: u32) -> Option<NonNull<f32>> {
        if self.core.is_forked() {
            return None;
        }
        let quantum = || Some(self.core.newest_cycle()?.quantum);
        self.core.ports.buffer(&self.core.own_slabs, port, frames, quantum)
    }

    /// Returns the current clients, ports and connections. Empty in a forked child. Thread: any.
    pub fn registry(&self) -> RegistryView<'_> {
        match self.core.check_fork() {
            Ok(()) => RegistryView::new(&self.core.memory().registry),
            Err(_) => RegistryView::empty(),
        }
    }

    /// Returns the server's segment: flags, xruns, load. `None` in a forked child. Thread: any.
    pub fn engine(&self) -> Option<&EngineSegment> {
        (!self.core.is_forked()).then(|| &*self.core.memory().engine)
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }
}

impl Requester for Session {
    fn ask(&self, request: Request) -> Result<Reply, Error> {
        self.core.with_server(|requests| requests.ask(request.clone(), &[]))
    }

    fn request(&self, request: Request) -> Result<(), Error> {
        self.core.request(&request)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.core.close();
        if self.core.is_forked() {
            // The mappings do not exist in the child, where something else may lie at their
            // addresses by now.
            std::mem::forget(Arc::clone(&self.core));
        }
    }
}
