//! Ports of the typed client, and their buffers in a cycle.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Weak};

use proto::names;
use proto::request::{PortType, SlabSlot};
use sys::buffers::BorrowedSamples;

use crate::process::PortCell;
use crate::session::{Core, Session};
use crate::{CycleScope, Error};

/// What both kinds of port know.
#[derive(Debug)]
pub(super) struct Port {
    id: u32,
    number: u32,
    name: String,
    core: Weak<Core>,
}

impl Port {
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
        Ok(Self { id, number, name, core: Arc::downgrade(core) })
    }

    pub(super) fn id(&self) -> u32 {
        self.id
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn short_name(&self) -> &str {
        names::short(&self.name)
    }

    /// Where the port's samples are in `cycle`; `None` in a cycle of another client. Thread: cycle.
    pub(super) fn cell<'a>(&self, cycle: &CycleScope<'a>) -> Option<(&'a Core, &'a PortCell)> {
        let core = cycle.core();
        let cell = core.ports.cell(self.number)?;
        std::ptr::eq(self.core.as_ptr(), core).then_some((core, cell))
    }

    pub(super) fn unregister(&self) -> Result<(), Error> {
        self.core.upgrade().ok_or(Error::Closed)?.unregister_port(self.id)
    }
}

/// An audio input of this client. Dropping it leaves the port registered: it ends with the client, or by
/// [`unregister`](Self::unregister).
#[derive(Debug)]
pub struct InputPort(pub(super) Port);

/// An audio output of this client. Dropping it leaves the port registered: it ends with the client, or by
/// [`unregister`](Self::unregister).
#[derive(Debug)]
pub struct OutputPort(pub(super) Port);

/// What an input hears in a cycle: as many samples as the cycle has frames.
#[derive(Debug)]
pub struct InputBuffer<'a>(Option<BorrowedSamples<'a>>);

/// What an output says in a cycle: as many samples as the cycle has frames, those of an earlier cycle until they are
/// written.
#[derive(Debug)]
pub struct OutputBuffer<'a>(Option<BorrowedSamples<'a>>);

impl InputPort {
    /// The port's samples in this cycle: silence where nothing is connected. Empty in another client's cycle. Thread: cycle.
    pub fn buffer<'a>(&'a mut self, cycle: &'a CycleScope<'_>) -> InputBuffer<'a> {
        let samples = self.0.cell(cycle).and_then(|(_, cell)| {
            let mut samples = cell.private()?.borrow(cycle.frames() as usize)?;
            if cell.source().is_null() {
                samples.fill(0.0);
            }
            Some(samples)
        });
        InputBuffer(samples)
    }

    /// Id in the registry.
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Its name when it was registered, `client:port`.
    pub fn name(&self) -> &str {
        self.0.name()
    }

    /// What follows the client's name.
    pub fn short_name(&self) -> &str {
        self.0.short_name()
    }

    /// Removes the port from the graph.
    ///
    /// # Errors
    /// Those of [`Session::unregister_port`].
    pub fn unregister(self) -> Result<(), Error> {
        self.0.unregister()
    }
}

impl OutputPort {
    /// The port's samples in this cycle, to be written. Empty in another client's cycle. Thread: cycle.
    pub fn buffer<'a>(&'a mut self, cycle: &'a CycleScope<'_>) -> OutputBuffer<'a> {
        let samples = self.0.cell(cycle).and_then(|(core, cell)| {
            let SlabSlot { slab, slot } = cell.slab_slot()?;
            core.own_slabs.get(slab)?.borrow(slot, cycle.frames() as usize)
        });
        OutputBuffer(samples)
    }

    /// Id in the registry.
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Its name when it was registered, `client:port`.
    pub fn name(&self) -> &str {
        self.0.name()
    }

    /// What follows the client's name.
    pub fn short_name(&self) -> &str {
        self.0.short_name()
    }

    /// Removes the port from the graph.
    ///
    /// # Errors
    /// Those of [`Session::unregister_port`].
    pub fn unregister(self) -> Result<(), Error> {
        self.0.unregister()
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
