//! The client as a Rust program sees it: what is possible in a state is what its type offers.

mod midi_port;
mod notifications;
mod port;
mod transport;

use std::sync::Arc;

use proto::port_flags::{INPUT, OUTPUT, PHYSICAL, TERMINAL};
use proto::request::PortType;

pub use midi_port::{MidiInputBuffer, MidiInputPort, MidiOutputBuffer, MidiOutputPort};
pub use notifications::Notifications;
pub use port::{InputBuffer, InputPort, OutputBuffer, OutputPort};

use port::Port;

use crate::callbacks::callback;
use crate::registry_view::RegistryView;
use crate::session::{OpenOptions, Session};
use crate::{CycleScope, Error};

const DEVICE: u32 = PHYSICAL | TERMINAL;

/// What a process callback wants next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// To be called in the next cycle, too.
    Continue,
    /// The client to leave the cycles, after this one.
    Quit,
}

/// The program's part in a cycle. Also any `FnMut(&CycleScope) -> Control`.
pub trait Process: Send + 'static {
    /// Reads inputs and writes outputs, on the process thread. Thread: cycle.: no heap, no lock, no waiting; in time well below
    /// the quantum's.
    fn process(&mut self, cycle: &CycleScope<'_>) -> Control;
}

impl<F: FnMut(&CycleScope<'_>) -> Control + Send + 'static> Process for F {
    fn process(&mut self, cycle: &CycleScope<'_>) -> Control {
        self(cycle)
    }
}

/// A client that takes no part in cycles (yet).
#[derive(Debug)]
pub struct Inactive(());

/// A client that takes part in cycles.
#[derive(Debug)]
pub struct Active(());

/// A client of a server, closed on drop.
///
/// ```no_run
/// use client::{Client, Control, CycleScope};
///
/// let client = Client::open("gain")?;
/// let mut input = client.input_port("in")?;
/// let mut output = client.output_port("out")?;
/// let client = client.activate(move |cycle: &CycleScope<'_>| {
///     let mut louder = output.buffer(cycle);
///     louder.copy_from_slice(&input.buffer(cycle));
///     louder.iter_mut().for_each(|sample| *sample *= 2.0);
///     Control::Continue
/// })?;
/// client.connect("system:capture_1", "gain:in")?;
/// # Ok::<(), client::Error>(())
/// ```
#[derive(Debug)]
pub struct Client<State> {
    session: Arc<Session>,
    state: std::marker::PhantomData<State>,
}

impl Client<Inactive> {
    /// Becomes a client of the server that `JACK_DEFAULT_SERVER` names, or of `default`.
    ///
    /// # Errors
    /// Those of [`Session::open`].
    pub fn open(name: &str) -> Result<Self, Error> {
        Self::open_with(name, &OpenOptions::default())
    }

    /// As [`open`](Self::open), with options.
    ///
    /// # Errors
    /// Those of [`Session::open`].
    pub fn open_with(name: &str, options: &OpenOptions) -> Result<Self, Error> {
        let session = Arc::new(Session::open(name, options)?);
        // So that inputs are this process's own memory, which a slice may borrow.
        session.copy_inputs(true);
        Ok(Self::of(session))
    }

    /// Has `listener` told of changes, on the notification thread, while the client is active.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn notify(&self, listener: impl Notifications) -> Result<(), Error> {
        self.session.configure(|callbacks| notifications::install(listener, callbacks))
    }

    /// Joins the cycles: `process` is called in each of them.
    ///
    /// # Errors
    /// Those of [`Session::activate`]; the client is closed.
    pub fn activate(self, mut process: impl Process) -> Result<Client<Active>, Error> {
        self.session.configure(|callbacks| {
            callbacks.process = Some(callback(move |cycle: &CycleScope<'_>| {
                i32::from(process.process(cycle) == Control::Quit)
            }));
        })?;
        self.session.activate()?;
        Ok(Client::of(self.session))
    }
}

impl Client<Active> {
    /// Leaves the cycles and all connections. The process callback is dropped.
    ///
    /// # Errors
    /// Those of requests; the client is closed.
    pub fn deactivate(self) -> Result<Client<Inactive>, Error> {
        self.session.deactivate()?;
        self.session.configure(|callbacks| callbacks.process = None)?;
        Ok(Client::of(self.session))
    }

    /// Whether the process callback is still called: it was not if it has quit, or the server is gone.
    pub fn is_running(&self) -> bool {
        self.session.is_active() && !self.session.is_server_gone()
    }
}

impl<State> Client<State> {
    fn of(session: Arc<Session>) -> Self {
        Self { session, state: std::marker::PhantomData }
    }

    /// The client's name, as the server gave it.
    pub fn name(&self) -> &str {
        self.session.name()
    }

    /// The sample rate in Hz.
    pub fn sample_rate_hz(&self) -> u32 {
        self.session.info().map_or(0, |info| info.sample_rate_hz)
    }

    /// The quantum in frames. It may be another one in the next cycle: see [`CycleScope::frames`].
    pub fn quantum(&self) -> u32 {
        self.session.info().map_or(0, |info| info.quantum)
    }

    /// Registers an audio input.
    ///
    /// # Errors
    /// Those of [`Session::register_port`].
    pub fn input_port(&self, name: &str) -> Result<InputPort, Error> {
        Port::register(&self.session, name, PortType::Audio, INPUT).map(InputPort)
    }

    /// Registers an audio output.
    ///
    /// # Errors
    /// Those of [`Session::register_port`].
    pub fn output_port(&self, name: &str) -> Result<OutputPort, Error> {
        Port::register(&self.session, name, PortType::Audio, OUTPUT).map(OutputPort)
    }

    /// Registers an audio input that leads to a device: physical, and the end of a signal's way.
    ///
    /// # Errors
    /// Those of [`Session::register_port`].
    pub fn device_input_port(&self, name: &str) -> Result<InputPort, Error> {
        Port::register(&self.session, name, PortType::Audio, INPUT | DEVICE).map(InputPort)
    }

    /// Registers an audio output that comes from a device: physical, and the begin of a signal's way.
    ///
    /// # Errors
    /// Those of [`Session::register_port`].
    pub fn device_output_port(&self, name: &str) -> Result<OutputPort, Error> {
        Port::register(&self.session, name, PortType::Audio, OUTPUT | DEVICE).map(OutputPort)
    }

    /// Registers a MIDI input that leads to a device.
    ///
    /// # Errors
    /// Those of [`Session::register_port`].
    pub fn device_midi_input_port(&self, name: &str) -> Result<MidiInputPort, Error> {
        Port::register(&self.session, name, PortType::Midi, INPUT | DEVICE).map(MidiInputPort)
    }

    /// Registers a MIDI output that comes from a device.
    ///
    /// # Errors
    /// Those of [`Session::register_port`].
    pub fn device_midi_output_port(&self, name: &str) -> Result<MidiOutputPort, Error> {
        Port::register(&self.session, name, PortType::Midi, OUTPUT | DEVICE).map(MidiOutputPort)
    }

    /// Registers a MIDI input.
    ///
    /// # Errors
    /// Those of [`Session::register_port`].
    pub fn midi_input_port(&self, name: &str) -> Result<MidiInputPort, Error> {
        Port::register(&self.session, name, PortType::Midi, INPUT).map(MidiInputPort)
    }

    /// Registers a MIDI output.
    ///
    /// # Errors
    /// Those of [`Session::register_port`].
    pub fn midi_output_port(&self, name: &str) -> Result<MidiOutputPort, Error> {
        Port::register(&self.session, name, PortType::Midi, OUTPUT).map(MidiOutputPort)
    }

    /// Connects an output port to an input port, by full names or aliases.
    ///
    /// # Errors
    /// Those of [`Session::order`].
    pub fn connect(&self, source: &str, destination: &str) -> Result<(), Error> {
        self.session.connect(source, destination)
    }

    /// Removes a connection.
    ///
    /// # Errors
    /// Those of [`Session::order`].
    pub fn disconnect(&self, source: &str, destination: &str) -> Result<(), Error> {
        self.session.disconnect(source, destination)
    }

    /// Clients, ports and connections, as they are now.
    pub fn registry(&self) -> RegistryView<'_> {
        self.session.registry()
    }

    /// The layer below: everything else that a client can do.
    pub fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// Ends the client. Dropping it does the same.
    pub fn close(self) {
        self.session.close();
    }
}
