//! A port of the model.

use proto::port_flags;
use proto::request::{PortType, SlabSlot};
use rt::shm::LatencyRange;

/// A connection as one of its ports sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// The port at the other end.
    pub other: u32,
    /// Number of the connection since the server started: the younger of two closes a loop.
    pub age: u64,
}

/// A port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// Its id.
    pub id: u32,
    /// Id of its client.
    pub owner: u32,
    /// `client:port`.
    pub name: String,
    /// At most two full names.
    pub aliases: Vec<String>,
    /// Requests to monitor it.
    pub monitors: u32,
    /// What it carries.
    pub port_type: PortType,
    /// See [`flags`].
    pub flags: u32,
    /// Its client's own number for it.
    pub number: u32,
    /// Where an output's buffer lies.
    pub slot: Option<SlabSlot>,
    /// Its connections, oldest first.
    pub links: Vec<Link>,
    /// From the capture side.
    pub capture_latency: LatencyRange,
    /// To the playback side.
    pub playback_latency: LatencyRange,
}

impl Port {
    /// Whether it receives.
    pub fn is_input(&self) -> bool {
        self.flags & port_flags::INPUT != 0
    }

    /// Whether it sends.
    pub fn is_output(&self) -> bool {
        self.flags & port_flags::OUTPUT != 0
    }

    /// Its latency in one direction.
    pub fn latency(&self, capture: bool) -> LatencyRange {
        if capture { self.capture_latency } else { self.playback_latency }
    }

    pub(crate) fn latency_mut(&mut self, capture: bool) -> &mut LatencyRange {
        if capture { &mut self.capture_latency } else { &mut self.playback_latency }
    }
}
