//! Slabs, as the server holds them: the memory of 16 output ports of one client.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use sys::memory::PeerSlab;

/// A slab of output ports: the buffers of 16 of them.
#[derive(Debug, Clone)]
pub struct Slab {
    /// For its readers.
    pub memory: Arc<OwnedFd>,
    /// For the server itself.
    pub peer: Arc<PeerSlab>,
}
