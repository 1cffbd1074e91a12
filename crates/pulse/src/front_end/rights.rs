//! What a program may ask beyond what is its own: less, if it is confined.
//!
//! A sandbox is given the socket so that its program can be heard. What PulseAudio's protocol
//! allows besides would be a way out of it: modules run as the user, and what others play and say
//! can be recorded.

use confinement::Confinement;
use policy::Rights;
use pulseaudio::protocol::{Command, PulseError};

use super::FrontEnd;
use super::client::Client;
use super::sources::Source;
use crate::output::Devices;

/// What the kernel says about a confined program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Confined {
    /// Why it is taken for one.
    pub why: Confinement,
    /// Its path in the hierarchy of control groups; `None`: unknown.
    pub cgroup: Option<String>,
}

impl<D: Devices> FrontEnd<D> {
    /// Gives a program its rights: all of them, or, if it is confined, those that a rule gives it.
    /// Before, it has none.
    pub fn examined(&mut self, client: u32, confined: Option<&Confined>) {
        let rule = |confined: &Confined| self.desktop.rules.allowed(confined.cgroup.as_deref());
        // MUTATION: examined.has_all_rights
        let rights = confined.map_or(Rights::ALL, rule);
        if let Some(known) = self.clients.get_mut(&client) {
            known.rights = Some(rights);
            known.confinement = confined.map(|confined| confined.why);
        }
    }

    /// Returns whether it is known what a program may do.
    pub fn has_rights(&self, client: u32) -> bool {
        self.clients.get(&client).is_some_and(|known| known.rights.is_some())
    }

    /// Checks whether a program may ask this. Recordings, samples and extensions are checked where
    /// it is known what they are about.
    pub(super) fn check_rights(&self, client: u32, command: &Command) -> Result<(), PulseError> {
        let Rights { patch, control, load, .. } = self.rights_of(client);
        let plays = |index: u32| {
            let owner = self.inputs.get(index).and_then(|input| input.owner);
            owner.is_some_and(|owner| owner.client == client)
        };
        let records =
            |index: u32| self.outputs.get(&index).is_some_and(|output| output.client == client);
        let is_allowed = match command {
            Command::LoadModule(_) | Command::UnloadModule(_) => load,
            Command::SetSinkVolume(_)
            | Command::SetSinkMute(_)
            | Command::SetSourceVolume(_)
            | Command::SetSourceMute(_)
            | Command::SetDefaultSink(_)
            | Command::SetDefaultSource(_)
            | Command::SuspendSink(_)
            | Command::SuspendSource(_)
            | Command::SetCardProfile(_) => control,
            Command::SetSinkInputVolume(asked) => patch || plays(asked.index),
            Command::SetSinkInputMute(asked) => patch || plays(asked.index),
            Command::MoveSinkInput(asked) => patch || asked.index.is_some_and(plays),
            Command::KillSinkInput(index) => patch || plays(*index),
            Command::SetSourceOutputVolume(asked) => patch || records(asked.index),
            Command::SetSourceOutputMute(asked) => patch || records(asked.index),
            Command::MoveSourceOutput(asked) => patch || asked.index.is_some_and(records),
            Command::KillSourceOutput(index) => patch || records(*index),
            Command::KillClient(index) => patch || *index == client,
            _ => true,
        };
        if is_allowed { Ok(()) } else { Err(PulseError::AccessDenied) }
    }

    /// Checks whether a program may record a source.
    pub(super) fn check_hears(&self, client: u32, source: Source) -> Result<(), PulseError> {
        let rights = self.rights_of(client);
        // MUTATION: check_hears.anything
        let is_allowed = match source {
            Source::Monitor(_) => rights.record,
            Source::Capture(_) => rights.capture,
        };
        if is_allowed { Ok(()) } else { Err(PulseError::AccessDenied) }
    }

    /// Returns what a program may do.
    pub(super) fn rights_of(&self, client: u32) -> Rights {
        self.clients.get(&client).map_or(Rights::NONE, Client::rights)
    }
}
