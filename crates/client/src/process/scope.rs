//! One cycle, as the program sees it.

use std::marker::PhantomData;

use rt::shm::CycleInfo;
use rt::transport::Transport;

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
        self.core.server.engine.transport_in(self.info.cycle).unwrap_or_default()
    }

    /// Everything the server says of the cycle: its number, its dates, the frame count at its begin.
    pub fn info(&self) -> &CycleInfo {
        &self.info
    }
}
