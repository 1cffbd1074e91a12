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
    let Parts { card, device, .. } = parts(name)?;
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

/// The subdevice that a name asks for; `None`: any.
#[must_use]
pub fn subdevice(name: &str) -> Option<u32> {
    parts(name)?.subdevice
}

/// A device as it is written.
#[derive(Debug, PartialEq, Eq)]
struct Parts<'a> {
    card: &'a str,
    device: u32,
    /// `None`: whichever is free.
    subdevice: Option<u32>,
}

/// What ALSA calls the parts of a name, in the order in which they mean the same without that.
const KEYS: [&str; 3] = ["CARD=", "DEV=", "SUBDEV="];
/// The subdevice of who does not mind.
const ANY: &str = "-1";

fn parts(name: &str) -> Option<Parts<'_>> {
    let arguments = name.strip_prefix("plughw:").or_else(|| name.strip_prefix("hw:"))?;
    let mut values = [None; KEYS.len()];
    for (position, word) in arguments.split(',').enumerate() {
        let keyed = KEYS.iter().enumerate().find_map(|(index, key)| Some((index, word.strip_prefix(key)?)));
        let (index, value) = keyed.unwrap_or((position, word));
        // What is beyond these is the library's to refuse.
        values.get_mut(index).into_iter().for_each(|place| *place = Some(value));
    }
    let [card, device, subdevice] = values;
    Some(Parts {
        card: card?,
        device: device.unwrap_or("0").parse().ok()?,
        subdevice: subdevice.filter(|word| *word != ANY).map(str::parse).transpose().ok()?,
    })
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
    /// The name under which a device, or this one of its subdevices, is found again whatever the card's number becomes.
    #[must_use]
    pub fn device_name(&self, device: u32, subdevice: Option<u32>) -> String {
        let subdevice = subdevice.map(|subdevice| format!(",SUBDEV={subdevice}")).unwrap_or_default();
        format!("hw:CARD={},DEV={device}{subdevice}", self.id)
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
        let is = |name, card, device, subdevice| {
            assert_eq!(parts(name), Some(Parts { card, device, subdevice }), "{name}");
        };
        for name in ["hw:PCH", "hw:PCH,0", "hw:CARD=PCH", "hw:CARD=PCH,DEV=0", "plughw:PCH", "hw:PCH,0,-1"] {
            is(name, "PCH", 0, None);
        }
        is("hw:2,3", "2", 3, None);
        for name in ["default", "null", "hw:0,x", "pulse", "hw:0,0,x", "hw:DEV=0"] {
            assert_eq!(parts(name), None, "{name}");
        }
    }

    #[test]
    fn parts_that_are_called_by_name_come_in_any_order() {
        let expected = || Some(Parts { card: "PCH", device: 3, subdevice: Some(1) });
        for name in [
            "hw:PCH,3,1",
            "hw:CARD=PCH,DEV=3,SUBDEV=1",
            "hw:DEV=3,CARD=PCH,SUBDEV=1",
            "plughw:SUBDEV=1,DEV=3,CARD=PCH",
            "hw:PCH,SUBDEV=1,DEV=3",
            "hw:CARD=PCH,3,1",
        ] {
            assert_eq!(parts(name), expected(), "{name}");
        }
    }

    #[test]
    fn the_name_that_lasts_has_the_subdevice_that_was_asked_for_and_no_other() {
        let (name, driver) = ("Loopback".to_owned(), "Loopback".to_owned());
        let card = Card { index: 1, id: "Loopback".into(), name, driver, devices: Vec::new() };
        let again = |asked| card.device_name(0, subdevice(asked));
        assert_eq!(again("hw:1,0,1"), "hw:CARD=Loopback,DEV=0,SUBDEV=1");
        assert_eq!(again("hw:SUBDEV=0,CARD=Loopback"), "hw:CARD=Loopback,DEV=0,SUBDEV=0");
        assert_eq!(again("hw:1"), "hw:CARD=Loopback,DEV=0");
        assert_eq!(subdevice(&again("hw:1,0,1")), Some(1), "and it is read again");
    }
}
