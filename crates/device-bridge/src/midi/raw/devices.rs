//! Finds raw devices: reads the kernel's list once a second and opens what is in it.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use alsa::{Direction, RawMidi};
use alsa_rs::Rawmidi;
use alsa_rs::poll::Descriptors;
use alsa_rs::rawmidi::{Clock, ReadMode};

use crate::midi::hotplug::{EndpointFinder, FoundEndpoint};
use crate::midi::{Endpoint, Shared};

const SEARCH_NS: u64 = 1_000_000_000;
/// Kernel buffer of an input, bytes. With timestamps, three bytes of a USB device take 32.
const INPUT_BYTES: usize = 64 * 1024;
/// Numbers of devices, and of their inputs and outputs, are smaller.
const MOST: u32 = 1 << 15;

/// Opens devices and closes them.
pub(super) struct Devices {
    shared: Arc<Shared>,
    /// Devices that the carrier no longer uses.
    closed: Receiver<Rawmidi>,
    searched_ns: u64,
    /// Cards and devices whose inputs and outputs have no names.
    nameless: HashSet<(u32, u32)>,
}

/// Returns the endpoint of a device's input or output.
fn endpoint(end: &RawMidi) -> Endpoint {
    let is_input = u32::from(end.direction == Direction::Capture);
    Endpoint { owner: end.card, end: (end.device * MOST + end.subdevice) * 2 + is_input }
}

/// Returns card, device and subdevice as ALSA writes them after `hw:`.
pub(super) fn number(endpoint: Endpoint) -> String {
    let end = endpoint.end / 2;
    format!("{},{},{}", endpoint.owner, end / MOST, end % MOST)
}

/// Whether the kernel timestamps an input.
pub(super) fn has_kernel_timestamps(device: &Rawmidi) -> bool {
    let mode = device.params_current().and_then(|parameters| parameters.get_read_mode());
    mode.is_ok_and(|mode| mode == ReadMode::Timestamp)
}

/// Opens a device, without waiting for one that is in use.
fn open(name: &str, direction: Direction) -> alsa_rs::Result<Rawmidi> {
    if direction == Direction::Playback {
        return Rawmidi::new(name, alsa_rs::Direction::Playback, true);
    }
    let mut device = Rawmidi::new(name, alsa_rs::Direction::Capture, true)?;
    // Linux has timestamps since 5.14; without them, a message gets the time at which it is read.
    let _ = enable_timestamps(&mut device);
    for descriptor in &device.get()? {
        // A smaller buffer works, too.
        let _ = sys::midi::set_raw_input_bytes(
            descriptor.fd,
            INPUT_BYTES,
            has_kernel_timestamps(&device),
        );
    }
    Ok(device)
}

fn enable_timestamps(device: &mut Rawmidi) -> alsa_rs::Result<()> {
    let mut parameters = device.params_current()?;
    parameters.set_read_mode(device, ReadMode::Timestamp)?;
    parameters.set_clock_type(device, Clock::Monotonic)?;
    device.params(&parameters)
}

impl Devices {
    pub(super) fn new(shared: Arc<Shared>, closed: Receiver<Rawmidi>) -> Self {
        Self { shared, closed, searched_ns: 0, nameless: HashSet::new() }
    }

    /// Opens an input or output; `None` if it is redundant; an error is a sentence.
    ///
    /// Several inputs or outputs without names are interchangeable, as virtual MIDI has sixteen of
    /// each, for as many programs: the first is enough, and the others stay free.
    fn open(&mut self, end: &RawMidi) -> Result<Option<FoundEndpoint>, String> {
        let (endpoint, card_and_device) = (endpoint(end), (end.card, end.device));
        if end.subdevice > 0 && self.nameless.contains(&card_and_device) {
            return Ok(None);
        }
        let number = number(endpoint);
        let is_source = end.direction == Direction::Capture;
        let (name, way) = (format!("hw:{number}"), if is_source { "input" } else { "output" });
        if let Some(holder) = &end.holder {
            return Err(format!("{name} ({way}) is in use by {holder}"));
        }
        if alsa::is_forbidden(&name) {
            return Err(format!(
                "{name} ({way}) may not be opened by this user: add it to the group audio"
            ));
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
        let card = alsa_rs::Card::new(end.card.cast_signed()).get_name();
        Ok(Some(FoundEndpoint {
            endpoint,
            owner: card.unwrap_or_else(|_| end.device_name.clone()),
            port,
            number,
            is_source,
            is_sink: !is_source,
            device: Some(device),
        }))
    }
}

impl EndpointFinder for Devices {
    fn find_new(&mut self, known: &HashSet<Endpoint>) -> Vec<FoundEndpoint> {
        self.searched_ns = sys::clock::now_ns();
        // A kernel without sound has none.
        let listed = alsa::raw_midi().unwrap_or_default();
        self.nameless.retain(|device| listed.iter().any(|end| (end.card, end.device) == *device));
        let (mut found, mut refusals) = (Vec::new(), BTreeMap::new());
        for end in listed.iter().filter(|end| !known.contains(&endpoint(end))) {
            match self.open(end) {
                Ok(new) => found.extend(new),
                Err(refusal) => {
                    refusals.insert(endpoint(end), refusal);
                }
            }
        }
        *self.shared.refusals() = refusals;
        found
    }

    fn is_due(&mut self) -> bool {
        for device in self.closed.try_iter() {
            // Closing a device that still has bytes to send would wait for them.
            let _ = device.drop();
            // Its port must be gone before the device is found again, and then has the same name.
            self.searched_ns = sys::clock::now_ns();
        }
        sys::clock::now_ns() >= self.searched_ns + SEARCH_NS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_of_a_device_is_a_separate_endpoint() {
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
            .flat_map(|way| {
                [end(0, 0, 0, way), end(0, 0, 1, way), end(0, 1, 0, way), end(31, 255, 63, way)]
            })
            .collect();
        let endpoints: HashSet<Endpoint> = ends.iter().map(endpoint).collect();
        assert_eq!(endpoints.len(), ends.len());
        assert_eq!(number(endpoint(&end(31, 255, 63, Direction::Capture))), "31,255,63");
        assert_eq!(number(endpoint(&end(3, 0, 1, Direction::Playback))), "3,0,1");
    }
}
