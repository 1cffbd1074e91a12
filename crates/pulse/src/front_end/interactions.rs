//! Streams that hold others while they are heard, or turn them down.

use policy::{Interaction, Playing, interactions};
use pulseaudio::protocol::{Command, GenericStreamEvent, Props};

use super::sink_inputs::Owner;
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
        let playing = self.inputs.iter().map(|(index, input)| Playing {
            number: index,
            device: input.sink,
            identity: &input.treatment.identity,
            is_heard: !input.is_muted && !input.playback.is_corked(),
        });
        let mut all = interactions(&playing.collect::<Vec<_>>(), &self.desktop.rules);
        let indices: Vec<u32> = self.inputs.indices();
        for index in indices {
            self.interact_with(index, all.remove(&index));
        }
    }

    fn interact_with(&mut self, index: u32, interaction: Option<Interaction>) {
        let Some(input) = self.inputs.get_mut(index) else { return };
        let treatment = &mut input.treatment;
        let by = interaction.map(|interaction| interaction.by());
        if treatment.released_from != by {
            treatment.released_from = None;
        }
        let interaction = interaction.filter(|_| treatment.released_from.is_none());
        let has_changed = treatment.interaction != interaction;
        treatment.interaction = interaction;
        let is_held = treatment.is_held();
        let asks_to_cork = is_held && !treatment.owes_uncork && !input.playback.is_corked();
        let asks_to_uncork = !is_held && treatment.owes_uncork;
        treatment.owes_uncork = is_held && (treatment.owes_uncork || asks_to_cork);
        let owner = input.owner;
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
