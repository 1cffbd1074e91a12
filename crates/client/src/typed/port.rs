//! Ports of the typed client, and their audio buffers in a cycle.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Weak};

use proto::names;
use proto::request::{PortType, SlabSlot};
use sys::buffers::BorrowedSamples;

use crate::process::PortCell;
use crate::session::{Core, Session};
use crate::{CycleScope, Error};

/// Type of a port: audio samples.
#[derive(Debug)]
pub struct Audio;

/// Type of a port: MIDI events.
#[derive(Debug)]
pub struct Midi;

/// Direction of a port: receives from other ports.
#[derive(Debug)]
pub struct Input;

/// Direction of a port: sends to other ports.
#[derive(Debug)]
pub struct Output;

/// A port of this client. Dropping it leaves it registered: the port ends with the client, or with
/// [`unregister`](Self::unregister).
#[derive(Debug)]
pub struct Port<Type, Direction> {
    id: u32,
    number: u32,
    name: String,
    core: Weak<Core>,
    kind: PhantomData<(Type, Direction)>,
}

/// An audio input.
pub type InputPort = Port<Audio, Input>;
/// An audio output.
pub type OutputPort = Port<Audio, Output>;
/// A MIDI input.
pub type MidiInputPort = Port<Midi, Input>;
/// A MIDI output.
pub type MidiOutputPort = Port<Midi, Output>;

impl<Type, Direction> Port<Type, Direction> {
    pub(super) fn register(
        session: &Session,
        name: &str,
        port_type: PortType,
        flags: u32,
    ) -> Result<Self, Error> {
        let id = session.register_port(name, port_type, flags)?;
        let core = session.core();
        let number = core.ports.number(id).ok_or(Error::NotOwnPort(id))?;
        let name = session.registry().port(id).map(|port| port.name).unwrap_or_default();
        Ok(Self { id, number, name, core: Arc::downgrade(core), kind: PhantomData })
    }

    /// Returns the port's id in the registry.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Returns the full name that the port was registered with, `client:port`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the port's name without the client's.
    pub fn short_name(&self) -> &str {
        names::short(&self.name)
    }

    /// Removes the port from the graph.
    ///
    /// # Errors
    /// See [`Session::unregister_port`].
    pub fn unregister(self) -> Result<(), Error> {
        self.core.upgrade().ok_or(Error::Closed)?.unregister_port(self.id)
    }

    /// Returns the port's entry in the table of `cycle`'s client; `None` if the port belongs to
    /// another client. Thread: cycle.
    pub(super) fn cell<'a>(&self, cycle: &CycleScope<'a>) -> Option<(&'a Core, &'a PortCell)> {
        let core = cycle.core();
        let cell = core.ports.cell(self.number)?;
        std::ptr::eq(self.core.as_ptr(), core).then_some((core, cell))
    }
}

/// The samples of an input in one cycle, one for each frame.
#[derive(Debug)]
pub struct InputBuffer<'a>(Option<BorrowedSamples<'a>>);

/// The samples of an output in one cycle, one for each frame. They hold those of an earlier cycle
/// until they are written.
#[derive(Debug)]
pub struct OutputBuffer<'a>(Option<BorrowedSamples<'a>>);

impl Port<Audio, Input> {
    /// Returns the port's samples in this cycle: silence where nothing is connected. Empty in
    /// another client's cycle. Thread: cycle.
    pub fn buffer<'a>(&'a mut self, cycle: &'a CycleScope<'_>) -> InputBuffer<'a> {
        let samples = self.cell(cycle).and_then(|(_, cell)| {
            let mut samples = cell.private()?.borrow(cycle.frames() as usize)?;
            if cell.source().is_null() {
                samples.fill(0.0);
            }
            Some(samples)
        });
        InputBuffer(samples)
    }
}

impl Port<Audio, Output> {
    /// Returns the port's samples in this cycle, to be written. Empty in another client's cycle.
    /// Thread: cycle.
    pub fn buffer<'a>(&'a mut self, cycle: &'a CycleScope<'_>) -> OutputBuffer<'a> {
        let samples = self.cell(cycle).and_then(|(core, cell)| {
            let SlabSlot { slab, slot } = cell.slab_slot()?;
            core.own_slabs.get(slab)?.borrow(slot, cycle.frames() as usize)
        });
        OutputBuffer(samples)
    }
}

impl Deref for InputBuffer<'_> {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        self.0.as_deref().unwrap_or_default()
    }
}

impl Deref for OutputBuffer<'_> {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        self.0.as_deref().unwrap_or_default()
    }
}

impl DerefMut for OutputBuffer<'_> {
    fn deref_mut(&mut self) -> &mut [f32] {
        self.0.as_deref_mut().unwrap_or_default()
    }
}
