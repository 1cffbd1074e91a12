//! The sound card that drives, as programs see it. It is as it was opened: one profile, and no port
//! that anybody knows of.

use std::ffi::{CStr, CString};

use pulseaudio::protocol::{
    CardInfo, CardProfileInfo, Command, Prop, PulseError, SubscriptionEventFacility as Facility,
    SubscriptionEventType as EventType,
};

use super::introspection::device_props;
use super::sinks::{DRIVER, name_like};
use super::{Answer, Answered, Client, FrontEnd, properties};
use crate::output::Devices;
use crate::wire;

/// The index of the card.
pub(super) const CARD: u32 = 0;

impl<D: Devices> FrontEnd<D> {
    /// Answers requests about cards; `None` if it is none of these.
    pub(super) fn answer_about_cards(
        &mut self,
        client: u32,
        tag: u32,
        command: &Command,
        now_ns: u64,
    ) -> Option<Answered> {
        let version = self.clients.get(&client).map_or(0, Client::version);
        let packet = |bytes| Ok(Answer::Packet(bytes));
        Some(match command {
            Command::GetCardInfoList => {
                self.refresh(now_ns);
                let all: Vec<CardInfo> = self.card_info().into_iter().collect();
                packet(wire::reply(tag, &all, version))
            }
            Command::GetCardInfo(asked) => {
                self.refresh(now_ns);
                let found = self.find_card(asked.index, asked.name.as_deref());
                found.and_then(|info| packet(wire::reply(tag, &info, version)))
            }
            Command::SetCardProfile(asked) => {
                let found = self.find_card(asked.card_index, asked.card_name.as_deref());
                // It has the only one already.
                let has_it =
                    |info: CardInfo| info.active_profile == Some(asked.profile_name.clone());
                found.and_then(|info| {
                    has_it(info).then_some(Answer::Done).ok_or(PulseError::NoEntity)
                })
            }
            // No card has ports.
            Command::SetPortLatencyOffset(_) => Err(PulseError::NoEntity),
            _ => return None,
        })
    }

    fn find_card(&self, index: Option<u32>, name: Option<&CStr>) -> Result<CardInfo, PulseError> {
        let is_it = |info: &CardInfo| match (index, name) {
            (Some(index), _) => index == CARD,
            (None, Some(name)) => *info.name == *name || name == c"0",
            (None, None) => false,
        };
        self.card_info().filter(is_it).ok_or(PulseError::NoEntity)
    }

    fn card_info(&self) -> Option<CardInfo> {
        let card = self.card.as_deref()?;
        let format = self.sinks.get(DRIVER)?.format;
        let mut props = device_props(&CString::new(card).ok()?, c"sound", c"audio-card");
        properties::set(&mut props, c"device.string", card);
        properties::set(&mut props, c"device.api", "alsa");
        props.set(Prop::DeviceIconName, c"audio-card");
        let (name, description) = match (format.channels, format.captured) {
            (plays, 0) => (c"output", format!("Output of {plays} channels")),
            (plays, captures) => {
                (c"output+input", format!("Output of {plays} channels, input of {captures}"))
            }
        };
        let profile = CardProfileInfo {
            name: name.into(),
            description: CString::new(description).ok(),
            priority: 1,
            available: 1,
            num_sinks: 1,
            num_sources: u32::from(format.captured > 0),
        };
        Some(CardInfo {
            index: CARD,
            name: name_like(&format!("alsa_card.{card}")),
            props,
            owner_module_index: None,
            driver: Some(c"consort".into()),
            ports: Vec::new(),
            profiles: vec![profile],
            active_profile: Some(name.into()),
        })
    }

    /// Looks which card drives, and notifies programs of another one.
    pub(super) fn refresh_card(&mut self) {
        let card = self.devices.card();
        let event = match (&self.card, &card) {
            (before, now) if before == now => return,
            (None, _) => EventType::New,
            (_, None) => EventType::Removed,
            _ => EventType::Changed,
        };
        self.card = card;
        self.notify(Facility::Card, event, CARD);
    }
}
