//! A client without types: everything `libjack` needs, usable from any thread.

mod activation;
mod attachment;
mod core;
mod link;
mod open;
mod ports;
mod registry;
mod returning;

use std::ptr::NonNull;
use std::sync::Arc;

use proto::request::{PortType, Reply, Request};
use rt::shm::EngineSegment;

pub(crate) use self::core::Core;
pub(crate) use self::link::Link;
pub use self::open::OpenOptions;
pub(crate) use self::open::receive;
pub(crate) use self::returning::Attempt;
use crate::registry_view::RegistryView;
use crate::{Callbacks, Error, process};

/// A client of a server. Dropping it closes it.
///
/// Requests wait for the server in bounded time and are refused within a cycle ([`Error::InCycle`]); getters and
/// buffers are lock-free and legal anywhere. While a server that died is being replaced, requests wait for the next
/// one, at most for the server's grace (`consort run --grace`), and getters answer what was. In a child made by `fork`, every call fails with [`Error::Forked`], or
/// answers nothing, and the parent's client is left alone.
#[derive(Debug)]
pub struct Session {
    core: Arc<Core>,
}

impl Session {
    /// Becomes a client by the name `name` (or one much like it) and starts nothing yet.
    ///
    /// # Errors
    /// [`Error::NoServer`] and the others of connecting; [`Error::Refused`] if the server does not want it.
    pub fn open(name: &str, options: &OpenOptions) -> Result<Self, Error> {
        open::open(name, options).map(|core| Self { core })
    }

    /// Ends the client: out of all cycles, its ports gone, its threads ended. In bounded time, from any thread; what
    /// hangs in the program's own code is left to itself. A second call does nothing.
    pub fn close(&self) {
        self.core.close();
    }

    /// The client's name, as the server gave it.
    pub fn name(&self) -> &str {
        &self.core.name
    }

    /// The client's id in the registry.
    pub fn id(&self) -> u32 {
        self.core.id
    }

    /// The client's uuid; 0 in a forked child, and without a server.
    pub fn uuid(&self) -> u64 {
        self.registry().client(self.id()).map_or(0, |client| client.uuid)
    }

    /// The server's name.
    pub fn server_name(&self) -> &str {
        &self.core.server_name
    }

    /// Whether the server was started for this client.
    pub fn started_server(&self) -> bool {
        self.core.started_server
    }

    /// Whether there is no server any more, and none took its place in time. The client can only be closed then.
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

    /// Gives every audio input a copy of its own in each cycle, for programs that write to their inputs. Done by itself as
    /// soon as one does.
    pub fn copy_inputs(&self, copy: bool) {
        self.core.set_copies_inputs(copy);
    }

    /// Joins the cycles, with a process thread if there is a callback for it. Does nothing on an active client.
    ///
    /// # Errors
    /// [`Error::ProcessThread`], [`Error::ProcessRuns`], [`Error::Beginning`], and those of requests.
    pub fn activate(&self) -> Result<(), Error> {
        self.core.activate()
    }

    /// Leaves the cycles and all connections. Does nothing on an inactive client.
    ///
    /// # Errors
    /// Those of requests; the client is inactive all the same. [`Error::Beginning`]; then it is not.
    pub fn deactivate(&self) -> Result<(), Error> {
        self.core.deactivate()
    }

    /// Whether the client is active.
    pub fn is_active(&self) -> bool {
        self.core.is_active()
    }

    /// The kernel's id of the process thread.
    pub fn process_thread(&self) -> Option<u32> {
        self.core.process_thread()
    }

    /// In the program's own loop on the process thread: sleeps until it is the client's turn and answers the quantum
    /// in frames; `None` if the loop is to end. Thread: cycle.
    pub fn cycle_wait(&self) -> Option<u32> {
        process::cycle_wait(&self.core).map(|info| info.quantum)
    }

    /// In the program's own loop: its outputs are written. A `status` other than 0 ends the loop. Thread: cycle.
    pub fn cycle_signal(&self, status: i32) {
        process::cycle_signal(&self.core, status);
    }

    /// Registers a port: `name` without the client's, `flags` as in `JackPortFlags`. Answers its id.
    ///
    /// # Errors
    /// Those of requests; [`Error::Memory`].
    pub fn register_port(&self, name: &str, port_type: PortType, flags: u32) -> Result<u32, Error> {
        self.core.register_port(name, port_type, flags)
    }

    /// Unregisters a port of this client.
    ///
    /// # Errors
    /// [`Error::NotOwnPort`], and those of requests.
    pub fn unregister_port(&self, port: u32) -> Result<(), Error> {
        self.core.unregister_port(port)
    }

    /// Has `output` say in each cycle what `input` hears, both being ports of this client and of one type. The copy is
    /// made before the program's part, which may still write into it.
    ///
    /// # Errors
    /// [`Error::NotOwnPort`], [`Error::NotTied`], [`Error::InCycle`], [`Error::Forked`].
    pub fn tie_ports(&self, input: u32, output: u32) -> Result<(), Error> {
        self.core.tie_ports(input, output)
    }

    /// Ends the ties of a port of this client, if it has any.
    ///
    /// # Errors
    /// [`Error::NotOwnPort`], [`Error::InCycle`], [`Error::Forked`].
    pub fn untie_port(&self, port: u32) -> Result<(), Error> {
        self.core.untie_port(port)
    }

    /// Whether `port` is one of this client's.
    pub fn is_own_port(&self, port: u32) -> bool {
        self.core.ports.number(port).is_some()
    }

    /// The address of a port's samples in this cycle: `frames` samples, or a MIDI buffer of 32 KiB. To be called from
    /// the process thread or the program's helper threads, in each cycle anew; `None` if the port is not this
    /// client's. Inputs may be another client's memory: to be read only. Thread: cycle.
    ///
    /// An output's samples, or events, are those of the cycle before. An input hears silence where nothing is connected,
    /// and where a source was late; an input that is not connected is silenced again at each call. A MIDI input's
    /// events are copies, in this process's own memory. What is written to a MIDI output may lie anywhere in the cycle,
    /// whatever `frames` are: programs that divide their cycles ask for a part and write to any.
    #[inline]
    pub fn port_buffer(&self, port: u32, frames: u32) -> Option<NonNull<f32>> {
        if self.core.is_forked() {
            return None;
        }
        let quantum = || Some(self.core.newest_cycle()?.quantum);
        self.core.ports.buffer(&self.core.own_slabs, port, frames, quantum)
    }

    /// Sends a request that is answered by `Done`: all that need no memory here. What was changed is in the registry
    /// when it returns.
    ///
    /// # Errors
    /// [`Error::InCycle`], [`Error::Refused`], [`Error::Timeout`], [`Error::ServerGone`], [`Error::Forked`].
    pub fn order(&self, request: Request) -> Result<(), Error> {
        self.core.order(&request)
    }

    /// Connects an output port to an input port, by names or aliases.
    ///
    /// # Errors
    /// Those of [`order`](Self::order).
    pub fn connect(&self, source: &str, destination: &str) -> Result<(), Error> {
        self.order(Request::Connect { source: source.to_owned(), destination: destination.to_owned() })
    }

    /// Removes a connection.
    ///
    /// # Errors
    /// Those of [`order`](Self::order).
    pub fn disconnect(&self, source: &str, destination: &str) -> Result<(), Error> {
        self.order(Request::Disconnect { source: source.to_owned(), destination: destination.to_owned() })
    }

    /// Clients, ports and connections, as they are now. Empty in a forked child. Thread: any.
    pub fn registry(&self) -> RegistryView<'_> {
        match self.core.check_fork() {
            Ok(()) => RegistryView::new(&self.core.link().registry),
            Err(_) => RegistryView::empty(),
        }
    }

    /// The server's segment: flags, xruns, load. `None` in a forked child. Thread: any.
    pub fn engine(&self) -> Option<&EngineSegment> {
        (!self.core.is_forked()).then(|| &*self.core.link().engine)
    }

    pub(crate) fn exchange(&self, request: Request) -> Result<Reply, Error> {
        self.core.with_server(|requests| requests.ask(request.clone(), &[]))
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.core.close();
        if self.core.is_forked() {
            // The mappings are absent in the child, where something else may lie in their place by now.
            std::mem::forget(Arc::clone(&self.core));
        }
    }
}
