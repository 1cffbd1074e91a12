//! One cycle, as the program sees it.

use std::marker::PhantomData;

use rt::shm::CycleInfo;
use rt::transport::{Position, Transport};

use crate::session::Core;

/// Proof that the calling code runs in a cycle. Buffers are reached through it. It can leave
/// neither the callback nor the process thread.
#[derive(Debug)]
pub struct CycleScope<'a> {
    core: &'a Core,
    info: CycleInfo,
    not_send: PhantomData<*const ()>,
}

impl<'a> CycleScope<'a> {
    pub(crate) fn new(core: &'a Core, info: CycleInfo) -> Self {
        Self { core, info, not_send: PhantomData }
    }

    pub(crate) fn core(&self) -> &'a Core {
        self.core
    }

    /// Returns the quantum: the length of every audio buffer in this cycle.
    pub fn frames(&self) -> u32 {
        self.info.quantum
    }

    /// Returns the sample rate in Hz.
    pub fn sample_rate_hz(&self) -> u32 {
        self.info.sample_rate_hz
    }

    /// Returns the transport's state and position, the same for every client of the cycle.
    pub fn transport(&self) -> Transport {
        self.core.memory().engine.transport_in(self.info.cycle).unwrap_or_default()
    }

    /// Starts the transport with the next cycle, or when all slow-sync clients are ready.
    pub fn start_transport(&self) {
        self.core.memory().own.transport().request_roll(true);
    }

    /// Stops the transport with the next cycle.
    pub fn stop_transport(&self) {
        self.core.memory().own.transport().request_roll(false);
    }

    /// Moves the transport with the next cycle. Returns false if too many threads of the client are
    /// doing so at this moment.
    pub fn locate_transport(&self, position: &Position) -> bool {
        self.core.memory().own.transport().request_position(position)
    }

    /// Returns the cycle's number, timestamps and frame count.
    pub fn info(&self) -> &CycleInfo {
        &self.info
    }
}
