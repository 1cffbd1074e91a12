//! The names of devices that users see.

use std::ffi::{CStr, CString};

use pulseaudio::protocol::Prop;

use super::{Sink, Sinks};
use crate::front_end::properties;
use crate::output::Card;

impl Sinks {
    /// Returns the names that users see of all cards.
    pub fn descriptions(&self) -> Vec<(u32, CString)> {
        let cards = self.all.iter().filter(|(_, sink)| sink.card.is_some());
        cards.map(|(index, _)| (*index, self.description(*index))).collect()
    }

    /// Returns the name that users see of a device: two cards that would have the same are told
    /// apart by the names of their sinks.
    pub fn description(&self, index: u32) -> CString {
        let Some(sink) = self.all.get(&index) else { return CString::default() };
        let own = sink.own_description();
        let is_other =
            |(other, sink): (&u32, &Sink)| *other != index && sink.own_description() == own;
        let is_like_another = || self.all.iter().any(is_other);
        if sink.stated_description().is_some() || sink.card.is_none() || !is_like_another() {
            return own;
        }
        let text = [own.to_bytes(), b" (", sink.name.to_bytes(), b")"].concat();
        CString::new(text).unwrap_or(own)
    }
}

impl Sink {
    /// Returns the name that users see, as far as this device alone decides it.
    fn own_description(&self) -> CString {
        let stated = self.stated_description().map(CStr::to_owned);
        let of_card = || self.card.as_ref().and_then(description_of);
        stated.or_else(of_card).unwrap_or_else(|| self.name.clone())
    }

    /// Returns the name that the module states which made it.
    fn stated_description(&self) -> Option<&CStr> {
        properties::text(&self.described.as_ref()?.shown.props, Prop::DeviceDescription)
    }
}

/// Returns the name that users see of a card's device, if the kernel has one. Of a card with
/// several, such as an HDMI output of each screen, all but the first have names of their own as
/// well.
fn description_of(card: &Card) -> Option<CString> {
    let of_card = card.description()?;
    let property = |wanted: &str| {
        let mut all = card.properties.iter().filter(|(key, _)| *key == wanted);
        all.next().map(|(_, value)| value.as_str())
    };
    let is_first = property("alsa.device").is_none_or(|device| device == "0");
    let Some(name) = property("alsa.name").filter(|_| !is_first) else { return Some(of_card) };
    CString::new([of_card.to_bytes(), b", ", name.as_bytes()].concat()).ok()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{device, update};
    use super::*;
    use crate::output::DeviceStatus;

    /// A device of a card.
    fn of_card(name: &str, number: u32, properties: &[(&'static str, &str)]) -> DeviceStatus {
        let properties = properties.iter().map(|(key, value)| (*key, (*value).to_owned()));
        let card = Card { name: format!("hw:{name}"), properties: properties.collect() };
        DeviceStatus { card: Some(card), ..device(Some(name), number) }
    }

    #[test]
    fn devices_of_one_card_and_cards_of_one_name_are_told_apart_for_users() {
        let mut sinks = Sinks::default();
        let card = |device, name| {
            [("alsa.card_name", "HDA"), ("alsa.device", device), ("alsa.name", name)]
        };
        let headset = [("alsa.card_name", "Headset"), ("alsa.device", "0")];
        let all = vec![
            device(None, 0),
            of_card("Analog", 1, &card("0", "ALC897")),
            of_card("Screen", 2, &card("3", "HDMI 0")),
            of_card("Ears", 3, &headset),
            of_card("Ears 2", 4, &headset),
        ];
        update(&mut sinks, all.clone());
        let shown = |sinks: &Sinks| {
            let all = sinks.devices().into_iter().map(|index| sinks.description(index));
            all.map(|text| text.into_string().expect("text")).collect::<Vec<_>>()
        };
        let expected = ["consort", "HDA", "HDA, HDMI 0", "Headset (Ears)", "Headset (Ears_2)"];
        assert_eq!(shown(&sinks), expected);
        update(&mut sinks, all[..4].to_vec());
        sinks.remove(4);
        assert_eq!(shown(&sinks), ["consort", "HDA", "HDA, HDMI 0", "Headset"]);
    }
}
