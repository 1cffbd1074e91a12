//! What a port is, or was: programs ask when they are told that it is gone.

use std::sync::atomic::Ordering::Relaxed;

use proto::request::PortType;

use crate::Session;

/// What does not change while a port lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortKind {
    /// `JackPortFlags`.
    pub flags: u32,
    /// What travels through it.
    pub port_type: PortType,
}

impl Session {
    /// The kind of the port with that id or, if there is none, of the last one that had it. `None` if there never was
    /// one, and in a forked child. Thread: any.
    pub fn port_kind(&self, port: u32) -> Option<PortKind> {
        self.core().check_fork().ok()?;
        let entry = self.core().link().registry.port(port)?;
        let is_audio = entry.port_type.load(Relaxed) == 0;
        let port_type = if is_audio { PortType::Audio } else { PortType::Midi };
        (!entry.name().is_empty()).then(|| PortKind { flags: entry.flags.load(Relaxed), port_type })
    }
}
