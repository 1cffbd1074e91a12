//! The typed client: each state offers only the operations that are possible in it.

mod midi_port;
mod notifications;
mod port;
mod transport;

use std::sync::Arc;

use proto::port_flags::{INPUT, OUTPUT, PHYSICAL, TERMINAL};
use proto::request::PortType;

pub use midi_port::{MidiInputBuffer, MidiOutputBuffer};
pub use notifications::Notifications;
pub use port::{
    Audio, Input, InputBuffer, InputPort, Midi, MidiInputPort, MidiOutputPort, Output,
    OutputBuffer, OutputPort, Port,
};

use crate::callbacks::callback;
use crate::registry_view::RegistryView;
use crate::session::{OpenOptions, Session};
use crate::{CycleScope, Error, Requester};

const DEVICE: u32 = PHYSICAL | TERMINAL;

/// What a process callback wants to happen next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// Call it again in the next cycle.
    Continue,
    /// Leave the cycles after this one.
    Quit,
}

/// The program's part in a cycle. Implemented for every `FnMut(&CycleScope) -> Control`.
pub trait Process: Send + 'static {
    /// Reads inputs and writes outputs, on the process thread. It must not allocate, lock or wait,
    /// and should take well below the duration of a quantum. Thread: cycle.
    fn process(&mut self, cycle: &CycleScope<'_>) -> Control;
}

impl<F: FnMut(&CycleScope<'_>) -> Control + Send + 'static> Process for F {
    fn process(&mut self, cycle: &CycleScope<'_>) -> Control {
        self(cycle)
    }
}

/// State of a client that takes no part in cycles.
#[derive(Debug)]
pub struct Inactive(());

/// State of a client that takes part in cycles.
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
    /// Opens a client of the server named by `JACK_DEFAULT_SERVER`, or else of `default`.
    ///
    /// # Errors
    /// See [`Session::open`].
    pub fn open(name: &str) -> Result<Self, Error> {
        Self::open_with(name, &OpenOptions::default())
    }

    /// Opens a client with options.
    ///
    /// # Errors
    /// See [`Session::open`].
    pub fn open_with(name: &str, options: &OpenOptions) -> Result<Self, Error> {
        Ok(Self::of(Arc::new(Session::open(name, options)?)))
    }

    /// Sets the listener that is notified of changes while the client is active, on the
    /// notification thread.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn notify(&self, listener: impl Notifications) -> Result<(), Error> {
        self.session.configure(|callbacks| notifications::install(listener, callbacks))
    }

    /// Joins the cycles and calls `process` in each of them.
    ///
    /// # Errors
    /// See [`Session::activate`]; the client is closed.
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
    /// Leaves the cycles, removes all connections and drops the process callback.
    ///
    /// # Errors
    /// See [`Session::deactivate`]; the client is closed.
    pub fn deactivate(self) -> Result<Client<Inactive>, Error> {
        self.session.deactivate()?;
        self.session.configure(|callbacks| callbacks.process = None)?;
        Ok(Client::of(self.session))
    }

    /// Returns whether the process callback is still called. It is not after it has quit or the
    /// server is gone.
    pub fn is_running(&self) -> bool {
        self.session.is_active() && !self.session.is_server_gone()
    }
}

impl<State> Client<State> {
    fn of(session: Arc<Session>) -> Self {
        Self { session, state: std::marker::PhantomData }
    }

    /// Returns the client's name, as the server assigned it.
    pub fn name(&self) -> &str {
        self.session.name()
    }

    /// Returns the sample rate in Hz.
    pub fn sample_rate_hz(&self) -> u32 {
        self.session.info().map_or(0, |info| info.sample_rate_hz)
    }

    /// Returns the quantum in frames. The next cycle may have another one; see
    /// [`CycleScope::frames`].
    pub fn quantum(&self) -> u32 {
        self.session.info().map_or(0, |info| info.quantum)
    }

    /// Registers an audio input.
    ///
    /// # Errors
    /// See [`Session::register_port`].
    pub fn input_port(&self, name: &str) -> Result<InputPort, Error> {
        Port::register(&self.session, name, PortType::Audio, INPUT)
    }

    /// Registers an audio output.
    ///
    /// # Errors
    /// See [`Session::register_port`].
    pub fn output_port(&self, name: &str) -> Result<OutputPort, Error> {
        Port::register(&self.session, name, PortType::Audio, OUTPUT)
    }

    /// Registers an audio input that leads to a device: flagged as physical and terminal.
    ///
    /// # Errors
    /// See [`Session::register_port`].
    pub fn device_input_port(&self, name: &str) -> Result<InputPort, Error> {
        Port::register(&self.session, name, PortType::Audio, INPUT | DEVICE)
    }

    /// Registers an audio output that comes from a device: flagged as physical and terminal.
    ///
    /// # Errors
    /// See [`Session::register_port`].
    pub fn device_output_port(&self, name: &str) -> Result<OutputPort, Error> {
        Port::register(&self.session, name, PortType::Audio, OUTPUT | DEVICE)
    }

    /// Registers a MIDI input that leads to a device.
    ///
    /// # Errors
    /// See [`Session::register_port`].
    pub fn device_midi_input_port(&self, name: &str) -> Result<MidiInputPort, Error> {
        Port::register(&self.session, name, PortType::Midi, INPUT | DEVICE)
    }

    /// Registers a MIDI output that comes from a device.
    ///
    /// # Errors
    /// See [`Session::register_port`].
    pub fn device_midi_output_port(&self, name: &str) -> Result<MidiOutputPort, Error> {
        Port::register(&self.session, name, PortType::Midi, OUTPUT | DEVICE)
    }

    /// Registers a MIDI input.
    ///
    /// # Errors
    /// See [`Session::register_port`].
    pub fn midi_input_port(&self, name: &str) -> Result<MidiInputPort, Error> {
        Port::register(&self.session, name, PortType::Midi, INPUT)
    }

    /// Registers a MIDI output.
    ///
    /// # Errors
    /// See [`Session::register_port`].
    pub fn midi_output_port(&self, name: &str) -> Result<MidiOutputPort, Error> {
        Port::register(&self.session, name, PortType::Midi, OUTPUT)
    }

    /// Connects an output port to an input port, by full names or aliases.
    ///
    /// # Errors
    /// See [`Requester`].
    pub fn connect(&self, source: &str, destination: &str) -> Result<(), Error> {
        self.session.connect(source, destination)
    }

    /// Removes a connection.
    ///
    /// # Errors
    /// See [`Requester`].
    pub fn disconnect(&self, source: &str, destination: &str) -> Result<(), Error> {
        self.session.disconnect(source, destination)
    }

    /// Returns the current clients, ports and connections.
    pub fn registry(&self) -> RegistryView<'_> {
        self.session.registry()
    }

    /// Returns the untyped layer below, with all other operations of a client.
    pub fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// Closes the client. Dropping it does the same.
    pub fn close(self) {
        self.session.close();
    }
}
