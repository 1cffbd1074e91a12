//! The raw MIDI devices of this machine, as `/proc/asound` lists them for every user, without
//! opening any.

use std::path::Path;
use std::{fs, io};

use crate::Direction;
use crate::holder::Holder;

const LISTED: &str = "/proc/asound";

/// An input or an output of a raw MIDI device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawMidi {
    /// The card's number.
    pub card: u32,
    /// The device's number in `hw:CARD,N`.
    pub device: u32,
    /// Its own number in `hw:CARD,DEVICE,N`.
    pub subdevice: u32,
    /// Capture: it is an input.
    pub direction: Direction,
    /// Name of the device for users.
    pub device_name: String,
    /// The process that has it open.
    pub holder: Option<Holder>,
}

/// Returns all inputs and outputs, in the order of their numbers.
///
/// # Errors
/// The errors of reading the list: `NotFound` if this kernel has no sound.
pub fn raw_midi() -> io::Result<Vec<RawMidi>> {
    let mut found = Vec::new();
    for card in fs::read_dir(LISTED)?.flatten() {
        let Some(number) = number_after(&card.file_name().to_string_lossy(), "card") else {
            continue;
        };
        // A card that was just unplugged has no devices.
        for device in fs::read_dir(card.path()).into_iter().flatten().flatten() {
            let index = number_after(&device.file_name().to_string_lossy(), "midi");
            found.extend(index.into_iter().flat_map(|index| read(&device.path(), number, index)));
        }
    }
    found.sort_by_key(|end| {
        (end.card, end.device, end.direction == Direction::Playback, end.subdevice)
    });
    Ok(found)
}

fn number_after(name: &str, begin: &str) -> Option<u32> {
    name.strip_prefix(begin)?.parse().ok()
}

fn read(path: &Path, card: u32, device: u32) -> Vec<RawMidi> {
    fs::read_to_string(path).map_or_else(|_| Vec::new(), |text| ends(&text, card, device))
}

/// Parses the kernel's description of one device: its name, and a few lines for each output and
/// each input.
fn ends(text: &str, card: u32, device: u32) -> Vec<RawMidi> {
    let mut lines = text.lines();
    let device_name = lines.next().unwrap_or_default().trim();
    let mut ends: Vec<RawMidi> = Vec::new();
    for line in lines {
        let end = |subdevice, direction| RawMidi {
            card,
            device,
            subdevice,
            direction,
            device_name: device_name.to_owned(),
            holder: None,
        };
        if let Some(subdevice) = number_after(line, "Input ") {
            ends.push(end(subdevice, Direction::Capture));
        } else if let Some(subdevice) = number_after(line, "Output ") {
            ends.push(end(subdevice, Direction::Playback));
        } else if let Some((name, value)) = line.split_once(':') {
            match (name.trim(), value.trim()) {
                // A device with packets of MIDI 2.0, which cannot be read in this way.
                ("Type", "UMP") => return Vec::new(),
                ("Owner PID", thread) => {
                    if let (Some(end), Ok(thread)) = (ends.last_mut(), thread.parse()) {
                        end.holder = Some(Holder::of_thread(thread));
                    }
                }
                _ => {}
            }
        }
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_output_and_input_is_listed_with_its_holder() {
        let text = "Keystation\n\nType: Legacy\nOutput 0\n  Tx bytes     : 0\nInput 0\n  Rx bytes     : 17\n  Owner PID    : \
                    4294967\n  Mode         : native\n  Buffer size  : 4096\n  Avail        : 0\n  Overruns     : 0\nInput 1\n";
        let found = ends(text, 3, 1);
        let kinds: Vec<_> = found.iter().map(|end| (end.direction, end.subdevice)).collect();
        assert_eq!(
            kinds,
            [(Direction::Playback, 0), (Direction::Capture, 0), (Direction::Capture, 1)]
        );
        let holders: Vec<_> =
            found.iter().map(|end| end.holder.as_ref().map(|held| held.process)).collect();
        assert_eq!(holders, [None, Some(4_294_967), None]);
        assert!(
            found
                .iter()
                .all(|end| (end.card, end.device, &*end.device_name) == (3, 1, "Keystation"))
        );
        assert_eq!(ends("Synth\n\nType: UMP\nInput 0\n", 0, 0), []);
        assert_eq!(ends("", 0, 0), []);
    }
}
