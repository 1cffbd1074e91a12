//! What a program may ask beyond what is its own: less, if it is confined.
//!
//! A sandbox is given the socket so that its program can be heard. What PulseAudio's protocol
//! allows besides would be a way out of it: modules run as the user, and what others play and say
//! can be recorded.

use confinement::Confinement;
use policy::Rights;
use pulseaudio::protocol::{
    Command, PulseError, SubscriptionEventFacility as Facility, SubscriptionEventType as EventType,
};

use super::FrontEnd;
use super::client::Client;
use super::sources::Source;
use crate::output::Devices;
use crate::wire::{Frame, Request};

/// What the kernel says about a confined program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Confined {
    /// Why it is taken for one.
    pub why: Confinement,
    /// Its path in the hierarchy of control groups; `None`: unknown.
    pub cgroup: Option<String>,
}

/// Returns whether a request is one of those by which a program comes and plays. Every program may
/// ask them, about itself and its own streams.
fn only_plays(request: &Request) -> bool {
    let Request::Command(command) = request else { return false };
    matches!(
        **command,
        Command::Auth(_)
            | Command::SetClientName(_)
            | Command::CreatePlaybackStream(_)
            | Command::CorkPlaybackStream(_)
            | Command::FlushPlaybackStream(_)
            | Command::TriggerPlaybackStream(_)
            | Command::PrebufPlaybackStream(_)
            | Command::GetPlaybackLatency(_)
            | Command::DrainPlaybackStream(_)
            | Command::DeletePlaybackStream(_)
    )
}

impl<D: Devices> FrontEnd<D> {
    /// Gives a program its rights: all of them, or, if it is confined, those that a rule gives it.
    /// Before, it has none. Answers the request that [has waited for
    /// this](Self::has_unanswered_request).
    pub fn examined(&mut self, client: u32, confined: Option<&Confined>, now_ns: u64) {
        let rule = |confined: &Confined| self.desktop.rules.allowed(confined.cgroup.as_deref());
        // MUTATION: examined.has_all_rights
        let rights = confined.map_or(Rights::ALL, rule);
        let Some(known) = self.clients.get_mut(&client) else { return };
        known.rights = Some(rights);
        known.confinement = confined.map(|confined| confined.why);
        let (is_shown, unanswered) = (known.admitted.is_some(), known.unanswered.take());
        if is_shown && confined.is_some() {
            self.notify(Facility::Client, EventType::Changed, client);
        }
        if let Some(bytes) = unanswered {
            self.frame(client, Frame::Packet(&bytes), now_ns);
        }
    }

    /// Returns whether it is known what a program may do.
    pub fn has_rights(&self, client: u32) -> bool {
        self.clients.get(&client).is_some_and(|known| known.rights.is_some())
    }

    /// Returns whether a request of a program waits until it is known what that may do. It is
    /// answered before all that comes after it.
    pub fn has_unanswered_request(&self, client: u32) -> bool {
        self.clients.get(&client).is_some_and(|known| known.unanswered.is_some())
    }

    /// Has a request wait if its answer may depend on what its program may do, and that is not
    /// known. Returns whether it waits.
    pub(super) fn awaits_examination(
        &mut self,
        client: u32,
        request: &Request,
        bytes: &[u8],
    ) -> bool {
        let Some(known) = self.clients.get_mut(&client) else { return false };
        // MUTATION: awaits_examination.never
        let waits = known.admitted.is_some() && known.rights.is_none() && !only_plays(request);
        if waits {
            known.unanswered = Some(bytes.to_vec());
        }
        waits
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
