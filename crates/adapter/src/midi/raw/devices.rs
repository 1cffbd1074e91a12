//! Which raw devices there are, and who has them: the kernel's list is read once a second, and what is in it opened.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use alsa::Rawmidi;
use alsa::poll::Descriptors;
use alsa::rawmidi::{Clock, ReadMode};
use pcm::{Direction, RawMidi};

use crate::midi::manager::{Finder, Found};
use crate::midi::{Place, Shared};

const LOOK_NS: u64 = 1_000_000_000;
/// What the kernel keeps of what an input hears. With dates, three bytes of a USB device take 32.
const INPUT_BYTES: usize = 64 * 1024;
/// Numbers of devices and of their inputs and outputs are smaller.
const MOST: u32 = 1 << 15;

/// What opens devices, and closes them.
pub(super) struct Devices {
    shared: Arc<Shared>,
    /// Those that the carrier has done with.
    closed: Receiver<Rawmidi>,
    looked_ns: u64,
    /// Cards and devices whose inputs and outputs have no names of their own.
    nameless: HashSet<(u32, u32)>,
}

/// Where in a graph a device's end is.
fn place(end: &RawMidi) -> Place {
    let is_input = u32::from(end.direction == Direction::Capture);
    Place { owner: end.card, end: (end.device * MOST + end.subdevice) * 2 + is_input }
}

/// Card, device and subdevice, as ALSA writes them behind `hw:`.
pub(super) fn number(place: Place) -> String {
    let end = place.end / 2;
    format!("{},{},{}", place.owner, end / MOST, end % MOST)
}

/// Whether what an input hears comes with the kernel's dates.
pub(super) fn is_dated(device: &Rawmidi) -> bool {
    let mode = device.params_current().and_then(|parameters| parameters.get_read_mode());
    mode.is_ok_and(|mode| mode == ReadMode::Timestamp)
}

/// Opens a device. Does not wait for one that is in use.
fn open(name: &str, direction: Direction) -> alsa::Result<Rawmidi> {
    if direction == Direction::Playback {
        return Rawmidi::new(name, alsa::Direction::Playback, true);
    }
    let mut device = Rawmidi::new(name, alsa::Direction::Capture, true)?;
    // Linux has dates since 5.14; without them, it is dated when it is read.
    let _ = ask_for_dates(&mut device);
    for descriptor in &device.get()? {
        // It works with less, too.
        let _ = sys::midi::set_raw_input_bytes(descriptor.fd, INPUT_BYTES, is_dated(&device));
    }
    Ok(device)
}

fn ask_for_dates(device: &mut Rawmidi) -> alsa::Result<()> {
    let mut parameters = device.params_current()?;
    parameters.set_read_mode(device, ReadMode::Timestamp)?;
    parameters.set_clock_type(device, Clock::Monotonic)?;
    device.params(&parameters)
}

impl Devices {
    pub(super) fn new(shared: Arc<Shared>, closed: Receiver<Rawmidi>) -> Self {
        Self { shared, closed, looked_ns: 0, nameless: HashSet::new() }
    }

    /// Opens an end of a device; `None`: it is one too many, an error is a sentence.
    ///
    /// Inputs and outputs without names are the same thing several times, as virtual MIDI has sixteen of each, for as many
    /// programs: the first is enough, and the others stay free.
    fn open(&mut self, end: &RawMidi) -> Result<Option<Found>, String> {
        let (place, card_and_device) = (place(end), (end.card, end.device));
        if end.subdevice > 0 && self.nameless.contains(&card_and_device) {
            return Ok(None);
        }
        let number = number(place);
        let says = end.direction == Direction::Capture;
        let (name, way) = (format!("hw:{number}"), if says { "input" } else { "output" });
        if let Some(holder) = &end.holder {
            return Err(format!("{name} ({way}) is in use by {holder}"));
        }
        if pcm::is_forbidden(&name) {
            return Err(format!("{name} ({way}) may not be opened by this user: add it to the group audio"));
        }
        let device = open(&name, end.direction)
            .map_err(|error| format!("{name} ({way}) cannot be opened: {error}"))?;
        let mut port = device.info().and_then(|info| info.get_subdevice_name()).unwrap_or_default();
        if port.trim().is_empty() {
            self.nameless.insert(card_and_device);
            if end.subdevice > 0 {
                return Ok(None);
            }
            port = format!("{} {}", end.device_name, end.device);
        }
        let card = alsa::Card::new(end.card.cast_signed()).get_name();
        Ok(Some(Found {
            place,
            owner: card.unwrap_or_else(|_| end.device_name.clone()),
            port,
            number,
            says,
            hears: !says,
            device: Some(device),
        }))
    }
}

impl Finder for Devices {
    fn look(&mut self, known: &HashSet<Place>) -> Vec<Found> {
        self.looked_ns = sys::clock::now_ns();
        // Without sound there is nothing.
        let listed = pcm::raw_midi().unwrap_or_default();
        self.nameless.retain(|device| listed.iter().any(|end| (end.card, end.device) == *device));
        let (mut found, mut refusals) = (Vec::new(), BTreeMap::new());
        for end in listed.iter().filter(|end| !known.contains(&place(end))) {
            match self.open(end) {
                Ok(new) => found.extend(new),
                Err(refusal) => {
                    refusals.insert(place(end), refusal);
                }
            }
        }
        *self.shared.refusals() = refusals;
        found
    }

    fn is_due(&mut self) -> bool {
        for device in self.closed.try_iter() {
            // To close one that has still something to say would take as long as that.
            let _ = device.drop();
            // Its port is to be gone before it is looked for again, and has the same name then.
            self.looked_ns = sys::clock::now_ns();
        }
        sys::clock::now_ns() >= self.looked_ns + LOOK_NS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_of_a_device_has_a_place_of_its_own_and_its_number() {
        let end = |card, device, subdevice, direction| RawMidi {
            card,
            device,
            subdevice,
            direction,
            device_name: String::new(),
            holder: None,
        };
        let ends: Vec<RawMidi> = [Direction::Capture, Direction::Playback]
            .into_iter()
            .flat_map(|way| [end(0, 0, 0, way), end(0, 0, 1, way), end(0, 1, 0, way), end(31, 255, 63, way)])
            .collect();
        let places: HashSet<Place> = ends.iter().map(place).collect();
        assert_eq!(places.len(), ends.len());
        assert_eq!(number(place(&end(31, 255, 63, Direction::Capture))), "31,255,63");
        assert_eq!(number(place(&end(3, 0, 1, Direction::Playback))), "3,0,1");
    }
}
