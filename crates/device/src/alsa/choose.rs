//! Chooses a card if none was named, and names devices so that they are found again.

use alsa::{Card, Direction, Pcm};

/// Kernel drivers of cards without a connector.
const NOT_HEARD: [&str; 2] = ["Loopback", "Dummy"];

/// Returns how likely a card is the one to use; 0 excludes it.
fn rank(card: &Card) -> u32 {
    let plays: Vec<&str> = card
        .devices
        .iter()
        .filter(|device| device.plays)
        .map(|device| device.name.as_str())
        .collect();
    let only_a_screen =
        plays.iter().all(|name| name.contains("HDMI") || name.contains("DisplayPort"));
    match card.driver.as_str() {
        driver if NOT_HEARD.contains(&driver) || plays.is_empty() => 0,
        _ if only_a_screen => 1,
        // An interface was plugged in to be used.
        "USB-Audio" => 3,
        _ => 2,
    }
}

/// Returns the card with the highest rank, the first of several equals.
pub(super) fn sensible(cards: &[Card]) -> Option<&Card> {
    cards.iter().rev().filter(|card| rank(card) > 0).max_by_key(|card| rank(card))
}

/// Returns whether this machine has a card to be used if none was named, which this user may open.
#[must_use]
pub fn has_card() -> bool {
    sensible(&alsa::cards()).is_some()
}

/// Returns the cards with a connector, by their names in `hw:CARD=…`, each with the name of its
/// first device that plays, or if none does, of the first that captures.
#[must_use]
pub fn stream_cards() -> Vec<(String, String)> {
    let cards = alsa::cards();
    cards.iter().filter_map(|card| Some((card.id.clone(), stream_device_of(card)?))).collect()
}

fn stream_device_of(card: &Card) -> Option<String> {
    if NOT_HEARD.contains(&card.driver.as_str()) {
        return None;
    }
    let first = |direction| device_of(card, direction);
    first(Direction::Playback).or_else(|| first(Direction::Capture))
}

/// Returns the name of a card's first device in this direction.
pub(super) fn device_of(card: &Card, direction: Direction) -> Option<String> {
    let mut devices = card.devices.iter().filter(|device| device.has(direction));
    devices.next().map(|device| card.device_name(device.index, None))
}

/// Returns a name under which an open device is found again, wherever its card is plugged in.
pub(super) fn lasting_name(pcm: &Pcm, asked: &str) -> String {
    let located = pcm.card_and_device().filter(|_| asked.starts_with("hw:"));
    let named = located.and_then(|(index, device)| {
        let card = alsa::cards().into_iter().find(|card| card.index == index)?;
        Some(card.device_name(device, alsa::subdevice(asked)))
    });
    named.unwrap_or_else(|| asked.to_owned())
}

/// Returns whether opening a device can succeed. The library prints an error about a card that is
/// not there.
pub(super) fn may_exist(name: &str) -> bool {
    !(name.starts_with("hw:") || name.starts_with("plughw:")) || alsa::locate(name).is_some()
}

#[cfg(test)]
mod tests {
    use alsa::CardDevice;

    use super::*;

    const PLAYS: CardDevice =
        CardDevice { index: 0, name: String::new(), captures: false, plays: true };

    fn card(index: u32, driver: &str, name: &str, captures: bool, plays: bool) -> Card {
        let device = CardDevice { index: 0, name: name.into(), captures, plays };
        Card {
            index,
            id: format!("C{index}"),
            name: name.into(),
            driver: driver.into(),
            devices: vec![device],
        }
    }

    #[test]
    fn interfaces_are_preferred_to_chips_and_screens() {
        let screen = card(0, "HDA-Intel", "HDMI 0", false, true);
        let chip = card(1, "HDA-Intel", "ALC887 Analog", true, true);
        let interface = card(2, "USB-Audio", "Scarlett", true, true);
        let camera = card(3, "USB-Audio", "Webcam", true, false);
        let loopback = card(4, "Loopback", "Loopback PCM", true, true);
        let all =
            [screen.clone(), chip.clone(), interface.clone(), camera.clone(), loopback.clone()];
        assert_eq!(sensible(&all), Some(&interface));
        assert_eq!(sensible(&all[..2]), Some(&chip));
        assert_eq!(sensible(&[screen.clone(), loopback.clone()]), Some(&screen));
        assert_eq!(sensible(&[camera, loopback]), None, "nothing that can be heard");
        assert_eq!(sensible(&[chip.clone(), card(7, "ICE1712", "Delta", true, true)]), Some(&chip));
    }

    #[test]
    fn a_device_is_named_by_its_card_instead_of_its_number() {
        let interface = card(2, "USB-Audio", "Scarlett", false, true);
        assert_eq!(device_of(&interface, Direction::Playback).as_deref(), Some("hw:CARD=C2,DEV=0"));
        assert_eq!(device_of(&interface, Direction::Capture), None);
    }

    #[test]
    fn a_card_that_only_captures_is_a_device_of_streams() {
        let device = |card: &Card| stream_device_of(card);
        let mut camera = card(3, "USB-Audio", "Webcam", true, false);
        assert_eq!(device(&camera).as_deref(), Some("hw:CARD=C3,DEV=0"));
        camera.devices.push(CardDevice { index: 1, name: "Bell".into(), ..PLAYS });
        assert_eq!(device(&camera).as_deref(), Some("hw:CARD=C3,DEV=1"), "what plays comes first");
        assert_eq!(device(&card(4, "Loopback", "Loopback PCM", true, true)), None);
        camera.devices.clear();
        assert_eq!(device(&camera), None);
    }
}
