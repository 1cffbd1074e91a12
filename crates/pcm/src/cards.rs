//! The cards of this machine.

use alsa::card::Iter;
use alsa::ctl::{Ctl, DeviceIter};

use crate::Direction;

/// A sound card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Card {
    /// Its number, which another card may have after it was plugged in again.
    pub index: u32,
    /// Its name in `hw:CARD=…`, which stays.
    pub id: String,
    /// For people.
    pub name: String,
    /// The kernel's driver: `USB-Audio`, `HDA-Intel`, `Loopback`.
    pub driver: String,
    /// What it plays and records with.
    pub devices: Vec<CardDevice>,
}

/// A PCM device of a card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CardDevice {
    /// Its number in `hw:CARD,N`.
    pub index: u32,
    /// For people.
    pub name: String,
    /// It records.
    pub captures: bool,
    /// It plays.
    pub plays: bool,
}

/// All cards that answer, by index.
#[must_use]
pub fn cards() -> Vec<Card> {
    Iter::new().flatten().filter_map(|card| describe(&card).ok()).collect()
}

/// As many cards as a kernel has.
const CARDS: u32 = 32;

/// The numbers of the card and the device that a name such as `hw:0`, `plughw:USB,1` or `hw:CARD=PCH,DEV=0` means;
/// `None`: it is no such name, or there is no such card.
#[must_use]
pub fn locate(name: &str) -> Option<(u32, u32)> {
    let (card, device) = parts(name)?;
    // From what everybody may read: who may not open a card is to be told so, and not that there is none.
    let is_it = |index: &u32| {
        let id = std::fs::read_to_string(format!("/proc/asound/card{index}/id"));
        id.is_ok_and(|id| id.trim() == card || index.to_string() == card)
    };
    (0..CARDS).find(is_it).map(|index| (index, device))
}

/// Whether there is the card that `name` means, and this user may not open it.
#[must_use]
pub fn is_forbidden(name: &str) -> bool {
    let control = locate(name).map(|(card, _)| std::fs::File::open(format!("/dev/snd/controlC{card}")));
    control
        .is_some_and(|opened| opened.is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied))
}

/// The first card that this user may not open, as `hw:N`; `None`: there is none.
#[must_use]
pub fn first_forbidden() -> Option<String> {
    (0..CARDS).map(|index| format!("hw:{index}")).find(|name| is_forbidden(name))
}

/// Card and device as they are written.
fn parts(name: &str) -> Option<(&str, u32)> {
    let arguments = name.strip_prefix("plughw:").or_else(|| name.strip_prefix("hw:"))?;
    let mut words = arguments.split(',');
    let card = words.next()?;
    let device = words.next().unwrap_or("0");
    let device = device.strip_prefix("DEV=").unwrap_or(device).parse().ok()?;
    Some((card.strip_prefix("CARD=").unwrap_or(card), device))
}

fn describe(card: &alsa::Card) -> alsa::Result<Card> {
    let control = Ctl::from_card(card, true)?;
    let info = control.card_info()?;
    let devices = DeviceIter::new(&control).filter_map(|index| device(&control, index)).collect();
    Ok(Card {
        index: u32::try_from(card.get_index()).unwrap_or_default(),
        id: info.get_id()?.to_owned(),
        name: info.get_name()?.to_owned(),
        driver: info.get_driver()?.to_owned(),
        devices,
    })
}

fn device(control: &Ctl, index: i32) -> Option<CardDevice> {
    let index = u32::try_from(index).ok()?;
    let capture = control.pcm_info(index, 0, alsa::Direction::Capture);
    let playback = control.pcm_info(index, 0, alsa::Direction::Playback);
    let (captures, plays) = (capture.is_ok(), playback.is_ok());
    let info = playback.or(capture).ok()?;
    Some(CardDevice { index, name: info.get_name().unwrap_or_default().to_owned(), captures, plays })
}

impl Card {
    /// The name under which a device is found again whatever the card's number becomes.
    #[must_use]
    pub fn device_name(&self, device: u32) -> String {
        format!("hw:CARD={},DEV={device}", self.id)
    }

    /// Whether one of its devices runs in this direction.
    #[must_use]
    pub fn has(&self, direction: Direction) -> bool {
        self.devices.iter().any(|device| device.has(direction))
    }
}

impl CardDevice {
    /// Whether it runs in this direction.
    #[must_use]
    pub fn has(&self, direction: Direction) -> bool {
        match direction {
            Direction::Capture => self.captures,
            Direction::Playback => self.plays,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_ways_to_write_a_device_mean_the_same() {
        for name in ["hw:PCH", "hw:PCH,0", "hw:CARD=PCH", "hw:CARD=PCH,DEV=0", "plughw:PCH", "hw:PCH,0,0"] {
            assert_eq!(parts(name), Some(("PCH", 0)), "{name}");
        }
        assert_eq!(parts("hw:2,3"), Some(("2", 3)));
        for name in ["default", "null", "hw:0,x", "pulse"] {
            assert_eq!(parts(name), None, "{name}");
        }
    }
}
