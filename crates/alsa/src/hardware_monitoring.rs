//! Hardware monitoring: paths from a card's inputs to its outputs that do not lead through the
//! computer. Thread: not the cycle's.
//!
//! Every kind of card has different controls for this. They are recognized by the names, types and
//! ranges of their elements, as the kernel's drivers document them.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use crate::controls::{Controls, Element, Elements, Interface, Key, Kind};

/// A card whose inputs can be played at its outputs. On drop, all settings are restored.
#[derive(Debug)]
pub struct HardwareMonitoring(Paths<Controls>);

/// Why a card does not monitor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MonitoringError {
    /// The card is gone.
    #[error("it is not there")]
    Gone,
    /// The card has no such controls.
    #[error(
        "it has no path from its inputs to its outputs that is known here (Hammerfall, HDSP and ICE1712 cards have them)"
    )]
    None,
    /// The card's channels have other numbers at this rate.
    #[error("above 48000 Hz its driver numbers the channels differently")]
    Rate,
    /// The error of its driver: an `errno`.
    #[error("{}", std::io::Error::from_raw_os_error(*.0))]
    Refused(i32),
}

impl MonitoringError {
    fn from_errno(errno: i32) -> Self {
        match errno {
            libc::ENODEV | libc::ENXIO | libc::ENOENT => Self::Gone,
            errno => Self::Refused(errno),
        }
    }
}

impl HardwareMonitoring {
    /// Opens the card of this number, which runs at `rate_hz`, without changing anything.
    ///
    /// # Errors
    /// [`MonitoringError`].
    pub fn open(card: u32, rate_hz: u32) -> Result<Self, MonitoringError> {
        let controls = Controls::open(card).map_err(MonitoringError::from_errno)?;
        let index = i32::try_from(card).unwrap_or(-1);
        let long_name = alsa_rs::Card::new(index).get_longname().unwrap_or_default();
        Paths::of(controls, &long_name, rate_hz).map(Self)
    }

    /// Returns how many of the first `channels` inputs can be monitored.
    #[must_use]
    pub fn inputs(&self, channels: u32) -> u32 {
        self.0.inputs(channels)
    }

    /// Plays these inputs, numbered from 0, at the outputs of the same numbers, and restores the
    /// settings of all others. Inputs that cannot be monitored are ignored.
    ///
    /// # Errors
    /// The first error; the other inputs are set all the same.
    pub fn set(&mut self, wanted: &BTreeSet<u32>) -> Result<(), MonitoringError> {
        self.0.set(wanted)
    }

    /// Writes the settings again: some drivers forget them when their device is opened.
    ///
    /// # Errors
    /// [`MonitoringError`].
    pub fn renew(&mut self) -> Result<(), MonitoringError> {
        self.0.renew()
    }

    /// Returns whether the card is there.
    #[must_use]
    pub fn is_there(&self) -> bool {
        self.0.is_there()
    }
}

/// Hammerfall (rme9652): a switch for each input.
const THRU: Key = Key { interface: Interface::Mixer, name: c"Channels Thru", index: 0 };
/// Hammerfall DSP (hdsp): source, destination, gain.
const MATRIX: Key = Key { interface: Interface::Hardware, name: c"Mixer", index: 0 };
/// ICE1712 and ICE1724: the source of each output.
const ROUTE: Key = Key { interface: Interface::Mixer, name: c"H/W Playback Route", index: 0 };

/// Largest value of the Hammerfall DSP's mixer, by which it is recognized.
const MATRIX_MOST: i64 = 65_536;
/// Its value for a gain of 1.
const MATRIX_UNITY: i64 = 32_768;
/// No ICE1712 has more outputs.
const MOST_ROUTES: u32 = 32;
/// Up to this rate, the channels of a Hammerfall's devices have the same numbers in its controls.
const SINGLE_SPEED_HZ: u32 = 48_000;

/// The controls of a card.
#[derive(Debug)]
enum MonitorControls {
    /// A switch for each input.
    Thru(Element),
    /// A gain for each input at each output; the channels' numbers in the mixer.
    Matrix(Element, Vec<i64>),
    /// For each output, its element and the choice that is the input of the same number.
    Routes(BTreeMap<u32, (Element, i64)>),
}

/// The paths of a card, and what was changed.
#[derive(Debug)]
struct Paths<E: Elements> {
    elements: E,
    controlled: MonitorControls,
    /// For each monitored input, the previous setting of its path.
    before: BTreeMap<u32, i64>,
}

impl<E: Elements> Paths<E> {
    /// Finds the controls of a card.
    fn of(elements: E, long_name: &str, rate_hz: u32) -> Result<Self, MonitoringError> {
        let is_matrix =
            |found: &Element| found.kind == Kind::Numbers { most: MATRIX_MOST } && found.count == 3;
        let controlled = if let Some(thru) =
            elements.find(THRU).filter(|found| found.kind == Kind::Switches)
        {
            MonitorControls::Thru(thru)
        } else if let Some(matrix) = elements.find(MATRIX).filter(is_matrix) {
            MonitorControls::Matrix(matrix, matrix_channels(long_name))
        } else {
            let found = (0..MOST_ROUTES).map_while(|index| elements.find(Key { index, ..ROUTE }));
            MonitorControls::Routes(found.filter_map(own_input).collect())
        };
        match &controlled {
            MonitorControls::Routes(routes) if routes.is_empty() => {
                return Err(MonitoringError::None);
            }
            MonitorControls::Thru(_) | MonitorControls::Matrix(..) if rate_hz > SINGLE_SPEED_HZ => {
                return Err(MonitoringError::Rate);
            }
            _ => {}
        }
        Ok(Self { elements, controlled, before: BTreeMap::new() })
    }

    fn has(&self, input: u32) -> bool {
        match &self.controlled {
            MonitorControls::Thru(thru) => input < thru_inputs(thru.count),
            MonitorControls::Matrix(_, channels) => (input as usize) < channels.len(),
            MonitorControls::Routes(routes) => routes.contains_key(&input),
        }
    }

    fn inputs(&self, channels: u32) -> u32 {
        (0..channels).map(|input| u32::from(self.has(input))).sum()
    }

    fn set(&mut self, wanted: &BTreeSet<u32>) -> Result<(), MonitoringError> {
        let unwanted: Vec<u32> =
            self.before.keys().copied().filter(|input| !wanted.contains(input)).collect();
        let mut outcomes: Vec<_> = unwanted.into_iter().map(|input| self.set_back(input)).collect();
        outcomes.extend(wanted.iter().map(|input| self.hear(*input)));
        outcomes.into_iter().collect()
    }

    /// Monitors an input.
    fn hear(&mut self, input: u32) -> Result<(), MonitoringError> {
        if self.before.contains_key(&input) || !self.has(input) {
            return Ok(());
        }
        let before = self.read(input)?;
        self.write(input, self.heard(input))?;
        self.before.insert(input, before);
        Ok(())
    }

    /// Restores the previous setting of an input's path. After an error, it is tried again the next
    /// time.
    fn set_back(&mut self, input: u32) -> Result<(), MonitoringError> {
        if let Some(before) = self.before.get(&input) {
            self.write(input, *before)?;
            self.before.remove(&input);
        }
        Ok(())
    }

    fn renew(&self) -> Result<(), MonitoringError> {
        self.before.keys().try_for_each(|input| self.write(*input, self.heard(*input)))
    }

    fn is_there(&self) -> bool {
        let first = match &self.controlled {
            MonitorControls::Thru(_) | MonitorControls::Matrix(..) => 0,
            MonitorControls::Routes(routes) => routes.keys().next().copied().unwrap_or_default(),
        };
        self.read(first) != Err(MonitoringError::Gone)
    }

    /// Returns the setting of an input's path while it is monitored.
    fn heard(&self, input: u32) -> i64 {
        match &self.controlled {
            MonitorControls::Thru(_) => 1,
            MonitorControls::Matrix(..) => MATRIX_UNITY,
            MonitorControls::Routes(routes) => routes.get(&input).map_or(0, |(_, choice)| *choice),
        }
    }

    /// Reads the setting of an input's path.
    fn read(&self, input: u32) -> Result<i64, MonitoringError> {
        let none = MonitoringError::None;
        match &self.controlled {
            MonitorControls::Thru(thru) => {
                self.switches(thru)?.get(input as usize).copied().ok_or(none)
            }
            MonitorControls::Matrix(matrix, channels) => {
                let channel = *channels.get(input as usize).ok_or(none)?;
                let mut cell = [channel, channel, 0];
                self.elements.read(matrix, &mut cell).map_err(MonitoringError::from_errno)?;
                // An answer for another cell means that the element is not the mixer it was taken
                // for.
                if cell[..2] == [channel, channel] { Ok(cell[2]) } else { Err(none) }
            }
            MonitorControls::Routes(routes) => {
                let (route, _) = routes.get(&input).ok_or(none)?;
                let mut choice = [0];
                self.elements.read(route, &mut choice).map_err(MonitoringError::from_errno)?;
                Ok(choice[0])
            }
        }
    }

    fn write(&self, input: u32, value: i64) -> Result<(), MonitoringError> {
        let none = MonitoringError::None;
        let written = match &self.controlled {
            MonitorControls::Thru(thru) => {
                // The switches of other inputs stay as they are, even if another program has set
                // them.
                let mut switches = self.switches(thru)?;
                *switches.get_mut(input as usize).ok_or(none)? = value;
                self.elements.write(thru, &switches)
            }
            MonitorControls::Matrix(matrix, channels) => {
                let channel = *channels.get(input as usize).ok_or(none)?;
                self.elements.write(matrix, &[channel, channel, value])
            }
            MonitorControls::Routes(routes) => {
                let (route, _) = routes.get(&input).ok_or(none)?;
                self.elements.write(route, &[value])
            }
        };
        written.map_err(MonitoringError::from_errno)
    }

    fn switches(&self, thru: &Element) -> Result<Vec<i64>, MonitoringError> {
        let mut switches = vec![0; thru.count as usize];
        self.elements.read(thru, &mut switches).map_err(MonitoringError::from_errno)?;
        Ok(switches)
    }
}

impl<E: Elements> Drop for Paths<E> {
    fn drop(&mut self) {
        // A card that is gone has forgotten its settings.
        let _ = self.set(&BTreeSet::new());
    }
}

/// Returns how many of a Hammerfall's switches are reliable.
fn thru_inputs(switches: u32) -> u32 {
    // The Light's last two are S/PDIF, which its driver switches on and never off.
    if switches == 18 { 16 } else { switches }
}

/// Returns the numbers of a Hammerfall DSP's channels in its mixer.
fn matrix_channels(long_name: &str) -> Vec<i64> {
    // These leave out the second eight, which only the others' first two optical connectors have.
    if long_name.contains("Multiface") || long_name.contains("RPM") {
        (0..8).chain(16..26).collect()
    } else {
        (0..26).collect()
    }
}

/// Returns the element of an output, and which of its choices is the input of the same number.
fn own_input(route: Element) -> Option<(u32, (Element, i64))> {
    let Kind::Choices(choices) = &route.kind else { return None };
    let output = route.key.index;
    // The second is the name that the driver of the Maya44 uses.
    let names = [format!("H/W In {output}"), format!("Input {}", output + 1)];
    let choice = choices.iter().position(|choice| names.contains(choice))?;
    Some((output, (route, i64::try_from(choice).ok()?)))
}
