//! The cards of this machine.

use alsa_rs::card::Iter;
use alsa_rs::ctl::{Ctl, DeviceIter};

use crate::Direction;

/// A sound card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Card {
    /// Its number, which another card may have after the card was plugged in again.
    pub index: u32,
    /// Its name in `hw:CARD=…`, which stays the same.
    pub id: String,
    /// Name for users.
    pub name: String,
    /// The kernel's driver: `USB-Audio`, `HDA-Intel`, `Loopback`.
    pub driver: String,
    /// Its PCM devices.
    pub devices: Vec<CardDevice>,
}

/// A PCM device of a card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CardDevice {
    /// Its number in `hw:CARD,N`.
    pub index: u32,
    /// Name for users.
    pub name: String,
    /// It records.
    pub captures: bool,
    /// It plays.
    pub plays: bool,
}

/// Returns all cards that answer, by index.
#[must_use]
pub fn cards() -> Vec<Card> {
    crate::messages::report();
    Iter::new().flatten().filter_map(|card| describe(&card).ok()).collect()
}

/// Most cards that a kernel has.
const CARDS: u32 = 32;

/// Returns the numbers of the card and the device that a name such as `hw:0`, `plughw:USB,1` or
/// `hw:CARD=PCH,DEV=0` means; `None` if it is no such name, or there is no such card.
#[must_use]
pub fn locate(name: &str) -> Option<(u32, u32)> {
    let NameParts { card, device, .. } = name_parts(name)?;
    // From files that every user may read: a user who may not open the card gets that error, and
    // not that there is no card.
    let is_it = |index: &u32| {
        let id = std::fs::read_to_string(format!("/proc/asound/card{index}/id"));
        id.is_ok_and(|id| id.trim() == card || index.to_string() == card)
    };
    (0..CARDS).find(is_it).map(|index| (index, device))
}

/// Returns whether `name` means a card that this user may not open.
#[must_use]
pub fn is_forbidden(name: &str) -> bool {
    let control =
        locate(name).map(|(card, _)| std::fs::File::open(format!("/dev/snd/controlC{card}")));
    control.is_some_and(|opened| {
        opened.is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied)
    })
}

/// Returns the first card that this user may not open, as `hw:N`, if there is one.
#[must_use]
pub fn first_forbidden() -> Option<String> {
    (0..CARDS).map(|index| format!("hw:{index}")).find(|name| is_forbidden(name))
}

/// Returns the subdevice that a name asks for; `None` means any.
#[must_use]
pub fn subdevice(name: &str) -> Option<u32> {
    name_parts(name)?.subdevice
}

/// The parts of a device's name.
#[derive(Debug, PartialEq, Eq)]
struct NameParts<'a> {
    card: &'a str,
    device: u32,
    /// `None`: any free one.
    subdevice: Option<u32>,
}

/// ALSA's keys for the parts of a name, in the order that applies without keys.
const KEYS: [&str; 3] = ["CARD=", "DEV=", "SUBDEV="];
/// The subdevice number that means any.
const ANY: &str = "-1";

fn name_parts(name: &str) -> Option<NameParts<'_>> {
    let arguments = name.strip_prefix("plughw:").or_else(|| name.strip_prefix("hw:"))?;
    let mut values = [None; KEYS.len()];
    for (position, word) in arguments.split(',').enumerate() {
        let keyed =
            KEYS.iter().enumerate().find_map(|(index, key)| Some((index, word.strip_prefix(key)?)));
        let (index, value) = keyed.unwrap_or((position, word));
        // Surplus values are ignored here: the library refuses them.
        values.get_mut(index).into_iter().for_each(|slot| *slot = Some(value));
    }
    let [card, device, subdevice] = values;
    Some(NameParts {
        card: card?,
        device: device.unwrap_or("0").parse().ok()?,
        subdevice: subdevice.filter(|word| *word != ANY).map(str::parse).transpose().ok()?,
    })
}

fn describe(card: &alsa_rs::Card) -> alsa_rs::Result<Card> {
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
    let capture = control.pcm_info(index, 0, alsa_rs::Direction::Capture);
    let playback = control.pcm_info(index, 0, alsa_rs::Direction::Playback);
    let (captures, plays) = (capture.is_ok(), playback.is_ok());
    let info = playback.or(capture).ok()?;
    Some(CardDevice {
        index,
        name: info.get_name().unwrap_or_default().to_owned(),
        captures,
        plays,
    })
}

impl Card {
    /// Returns a name by which a device, or one of its subdevices, is found again after the card's
    /// number has changed.
    #[must_use]
    pub fn device_name(&self, device: u32, subdevice: Option<u32>) -> String {
        let subdevice =
            subdevice.map(|subdevice| format!(",SUBDEV={subdevice}")).unwrap_or_default();
        format!("hw:CARD={},DEV={device}{subdevice}", self.id)
    }

    /// Returns whether one of its devices runs in this direction.
    #[must_use]
    pub fn has(&self, direction: Direction) -> bool {
        self.devices.iter().any(|device| device.has(direction))
    }
}

impl CardDevice {
    /// Returns whether it runs in this direction.
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
        let is = |name, card, device, subdevice| {
            assert_eq!(name_parts(name), Some(NameParts { card, device, subdevice }), "{name}");
        };
        for name in
            ["hw:PCH", "hw:PCH,0", "hw:CARD=PCH", "hw:CARD=PCH,DEV=0", "plughw:PCH", "hw:PCH,0,-1"]
        {
            is(name, "PCH", 0, None);
        }
        is("hw:2,3", "2", 3, None);
        for name in ["default", "null", "hw:0,x", "pulse", "hw:0,0,x", "hw:DEV=0"] {
            assert_eq!(name_parts(name), None, "{name}");
        }
    }

    #[test]
    fn parts_that_are_called_by_name_come_in_any_order() {
        let expected = || Some(NameParts { card: "PCH", device: 3, subdevice: Some(1) });
        for name in [
            "hw:PCH,3,1",
            "hw:CARD=PCH,DEV=3,SUBDEV=1",
            "hw:DEV=3,CARD=PCH,SUBDEV=1",
            "plughw:SUBDEV=1,DEV=3,CARD=PCH",
            "hw:PCH,SUBDEV=1,DEV=3",
            "hw:CARD=PCH,3,1",
        ] {
            assert_eq!(name_parts(name), expected(), "{name}");
        }
    }

    #[test]
    fn a_lasting_name_keeps_only_the_requested_subdevice() {
        let (name, driver) = ("Loopback".to_owned(), "Loopback".to_owned());
        let card = Card { index: 1, id: "Loopback".into(), name, driver, devices: Vec::new() };
        let again = |asked| card.device_name(0, subdevice(asked));
        assert_eq!(again("hw:1,0,1"), "hw:CARD=Loopback,DEV=0,SUBDEV=1");
        assert_eq!(again("hw:SUBDEV=0,CARD=Loopback"), "hw:CARD=Loopback,DEV=0,SUBDEV=0");
        assert_eq!(again("hw:1"), "hw:CARD=Loopback,DEV=0");
        assert_eq!(subdevice(&again("hw:1,0,1")), Some(1), "and it is read again");
    }
}
