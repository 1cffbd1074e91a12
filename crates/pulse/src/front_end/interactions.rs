//! Streams that hold others while they are heard, or turn them down.

use client::stream::ClientRole;
use policy::{Direction, Identity, Interaction, Player, Playing, interactions};
use pulseaudio::protocol::{Command, GenericStreamEvent, Props};

use super::sink_inputs::Owner;
use super::sinks::DRIVER;
use super::{Client, FrontEnd};
use crate::output::Devices;

/// The first version of the protocol whose programs can be asked something about a stream.
const EVENTS_SINCE: u16 = 15;

impl<D: Devices> FrontEnd<D> {
    /// Derives what streams do to each other, if something has changed by which they do.
    pub(super) fn interact(&mut self) {
        if !std::mem::take(&mut self.desktop.is_stale) {
            return;
        }
        let streams = self.inputs.iter().map(|(index, input)| Playing {
            player: Player::Stream(index),
            device: input.sink,
            identity: &input.treatment.identity,
            is_heard: !input.is_muted && !input.playback.is_corked(),
        });
        let clients = self.desktop.clients.iter().map(|identity| Playing {
            player: Player::Client(identity.name.clone().unwrap_or_default()),
            // The graph is heard there.
            device: DRIVER,
            identity,
            is_heard: true,
        });
        let playing: Vec<Playing<'_>> = streams.chain(clients).collect();
        let mut all = interactions(&playing, &self.desktop.rules, &self.modules.roles());
        let indices: Vec<u32> = self.inputs.indices();
        for index in indices {
            self.interact_with(index, all.remove(&index));
        }
    }

    /// Asks the server which clients of the graph state a role.
    pub(super) fn refresh_client_roles(&mut self) {
        let Some(roles) = self.devices.client_roles() else { return };
        let clients = roles.into_iter().map(|ClientRole { client, role }| Identity {
            role: Some(role),
            name: Some(client),
            ..Identity::unknown(Direction::Playback)
        });
        self.set_clients_with_roles(clients.collect());
    }

    /// These clients of the graph state a role.
    pub(super) fn set_clients_with_roles(&mut self, clients: Vec<Identity>) {
        self.desktop.is_stale |= self.desktop.clients != clients;
        self.desktop.clients = clients;
    }

    fn interact_with(&mut self, index: u32, interaction: Option<Interaction>) {
        let Some(input) = self.inputs.get_mut(index) else { return };
        // A program that has not taken what was sent is asked later.
        let owner = input
            .owner
            .filter(|owner| self.clients.get(&owner.client).is_some_and(|known| !known.is_behind));
        let treatment = &mut input.treatment;
        let by = interaction.as_ref().map(|interaction| interaction.by().clone());
        if treatment.released_from != by {
            treatment.released_from = None;
        }
        let interaction = interaction.filter(|_| treatment.released_from.is_none());
        let has_changed = treatment.interaction != interaction;
        treatment.interaction = interaction;
        let is_held = treatment.is_held();
        let is_asked = owner.is_some();
        let asks_to_cork =
            is_held && !treatment.owes_uncork && !input.playback.is_corked() && is_asked;
        let asks_to_uncork = !is_held && treatment.owes_uncork && is_asked;
        treatment.owes_uncork = (treatment.owes_uncork || asks_to_cork) && !asks_to_uncork;
        if has_changed {
            let _ = self.apply_gains(index);
        }
        let Some(owner) = owner else { return };
        if asks_to_cork {
            self.ask_of_program(owner, "request-cork");
        }
        if asks_to_uncork {
            self.ask_of_program(owner, "request-uncork");
        }
    }

    fn ask_of_program(&mut self, owner: Owner, what: &str) {
        let Owner { client, channel } = owner;
        let version = self.clients.get(&client).map_or(0, Client::version);
        let Ok(event_name) = std::ffi::CString::new(what) else { return };
        if version >= EVENTS_SINCE {
            let event_properties = Props::new();
            let event = GenericStreamEvent { stream_index: channel, event_name, event_properties };
            self.send_event(client, &Command::PlaybackStreamEvent(event));
        }
    }
}
