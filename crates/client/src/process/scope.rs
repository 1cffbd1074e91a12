//! One cycle, as the program sees it.

use std::marker::PhantomData;

use rt::shm::CycleInfo;
use rt::transport::{Position, Transport};

use crate::session::Core;

/// A cycle in which the program's callback runs, and proof of it: buffers are reached through it, and it cannot
/// leave the callback, nor the process thread.
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

    /// The quantum: the length of every audio buffer in this cycle.
    pub fn frames(&self) -> u32 {
        self.info.quantum
    }

    /// In Hz.
    pub fn sample_rate_hz(&self) -> u32 {
        self.info.sample_rate_hz
    }

    /// Where the piece stands in this cycle, and whether it rolls: the same for every client of the cycle.
    pub fn transport(&self) -> Transport {
        self.core.link().engine.transport_in(self.info.cycle).unwrap_or_default()
    }

    /// Has the piece roll, once all clients that need time are ready: from the next cycle on.
    pub fn start_transport(&self) {
        self.core.link().own.transport().ask_to_roll(true);
    }

    /// Has the piece stand still, from the next cycle on.
    pub fn stop_transport(&self) {
        self.core.link().own.transport().ask_to_roll(false);
    }

    /// Goes to a place in the piece with the next cycle; false if too many of the client's threads are about to do the
    /// same.
    pub fn locate_transport(&self, position: &Position) -> bool {
        self.core.link().own.transport().ask_position(position)
    }

    /// Everything the server says of the cycle: its number, its dates, the frame count at its begin.
    pub fn info(&self) -> &CycleInfo {
        &self.info
    }
}
