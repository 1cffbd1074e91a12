//! The constant attributes of a port, also after it is gone: programs ask when they are notified of
//! its removal.

use std::sync::atomic::Ordering::Relaxed;

use proto::request::PortType;

use crate::Session;

/// The attributes that do not change while a port exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortKind {
    /// `JackPortFlags`.
    pub flags: u32,
    /// Audio or MIDI.
    pub port_type: PortType,
}

impl Session {
    /// Returns the kind of port `port` or, if it is gone, of the last port with that id. `None` if
    /// there never was one, and in a forked child. Thread: any.
    pub fn port_kind(&self, port: u32) -> Option<PortKind> {
        self.core().check_fork().ok()?;
        let entry = self.core().memory().registry.port(port)?;
        let is_audio = entry.port_type.load(Relaxed) == 0;
        let port_type = if is_audio { PortType::Audio } else { PortType::Midi };
        (!entry.name().is_empty()).then(|| PortKind { flags: entry.flags.load(Relaxed), port_type })
    }
}
