//! The sound cards that are devices of the server, as programs see them. Each is as it was opened:
//! one profile, and no port that anybody knows of.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, CString};

use pulseaudio::protocol::{
    CardInfo, CardProfileInfo, Command, Props, PulseError, SubscriptionEventFacility as Facility,
    SubscriptionEventType as EventType,
};

use super::introspection::device_props;
use super::sinks::name_like;
use super::{Answer, Answered, Client, FrontEnd, properties};
use crate::output::{Card, Devices};
use crate::wire;

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
                let indices = self.sinks.devices().into_iter();
                let all = indices.filter_map(|index| self.card_info(index));
                packet(wire::reply(tag, &all.collect::<Vec<CardInfo>>(), version))
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
            Command::SetPortLatencyOffset(asked) => {
                let found = self.find_card(asked.index, asked.name.as_deref());
                // No card has ports.
                found.and(Err(PulseError::NoEntity))
            }
            _ => return None,
        })
    }

    /// Returns the card that a program names, by index or name; a number is a name as well. The
    /// index of a card is that of its device.
    fn find_card(&self, index: Option<u32>, name: Option<&CStr>) -> Result<CardInfo, PulseError> {
        let all = || self.sinks.devices().into_iter().filter_map(|index| self.card_info(index));
        let named = |name: &CStr| all().find(|info| *info.name == *name);
        let numbered = |name: &CStr| self.card_info(name.to_str().ok()?.parse().ok()?);
        let found = match (index, name) {
            (Some(_), Some(_)) => return Err(PulseError::Invalid),
            (Some(index), None) => self.card_info(index),
            (None, Some(name)) => named(name).or_else(|| numbered(name)),
            (None, None) => None,
        };
        found.ok_or(PulseError::NoEntity)
    }

    fn card_info(&self, index: u32) -> Option<CardInfo> {
        let sink = self.sinks.get(index)?;
        let card = sink.card.as_ref()?;
        let of_name = || CString::new(card.name.as_str()).ok();
        let description = card.description().or_else(of_name)?;
        let mut props = device_props(&description, c"sound", c"audio-card");
        set_card_props(&mut props, card);
        let (plays, captures) = (sink.format.channels, sink.format.captured);
        let (name, description) = match (plays, captures) {
            (0, _) => (c"input", format!("Input of {captures} channels")),
            (_, 0) => (c"output", format!("Output of {plays} channels")),
            _ => (c"output+input", format!("Output of {plays} channels, input of {captures}")),
        };
        let profile = CardProfileInfo {
            name: name.into(),
            description: CString::new(description).ok(),
            priority: 1,
            available: 1,
            num_sinks: u32::from(plays > 0),
            num_sources: u32::from(captures > 0),
        };
        Some(CardInfo {
            index,
            name: name_like(&format!("alsa_card.{}", card.name)),
            props,
            owner_module_index: None,
            driver: Some(c"consort".into()),
            ports: Vec::new(),
            profiles: vec![profile],
            active_profile: Some(name.into()),
        })
    }

    /// Notifies programs of cards that are new, or others than before. Those of devices that have
    /// gone follow with them.
    pub(super) fn announce_cards(&mut self, before: &BTreeMap<u32, Card>) {
        let now = self.sinks.cards();
        let all: BTreeSet<u32> = before.keys().chain(now.keys()).copied().collect();
        for index in all {
            let event = match (before.get(&index), now.get(&index)) {
                (None, _) => EventType::New,
                (_, None) => EventType::Removed,
                (before, now) if before != now => EventType::Changed,
                _ => continue,
            };
            self.notify(Facility::Card, event, index);
        }
    }
}

/// Says of a card, or of what it plays or captures, which card that is.
pub(super) fn set_card_props(props: &mut Props, card: &Card) {
    properties::set(props, c"device.string", &card.name);
    properties::set(props, c"device.api", "alsa");
    for (key, value) in &card.properties {
        if let Ok(key) = CString::new(*key) {
            properties::set(props, &key, value);
        }
        if *key == "device.bus" {
            properties::set(props, c"device.icon_name", &format!("audio-card-{value}"));
        }
    }
}
