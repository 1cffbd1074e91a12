//! Monitoring in the card: paths from its inputs to its outputs that do not lead through the computer. Thread: not the
//! cycle's.
//!
//! No two kinds of cards have the same controls for it. Which ones there are is what the kernel's drivers document by
//! their elements' names, types and ranges.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use crate::controls::{Controls, Element, Elements, Interface, Key, Kind};

/// A card whose inputs can be heard at its outputs. On drop, everything is set back to what it was before.
#[derive(Debug)]
pub struct Monitoring(Paths<Controls>);

/// Why a card does not monitor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MonitoringError {
    /// It is not there, or not any more.
    #[error("it is not there")]
    Gone,
    /// It has no such controls.
    #[error(
        "it has no path from its inputs to its outputs that is known here (Hammerfall, HDSP and ICE1712 cards have them)"
    )]
    None,
    /// Its channels have other numbers at this rate.
    #[error("above 48000 Hz its driver numbers the channels otherwise")]
    Rate,
    /// Its driver's own words: an `errno`.
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

impl Monitoring {
    /// Opens the card of this number, which runs at `rate_hz`. Changes nothing.
    ///
    /// # Errors
    /// [`MonitoringError`].
    pub fn open(card: u32, rate_hz: u32) -> Result<Self, MonitoringError> {
        let controls = Controls::open(card).map_err(MonitoringError::from_errno)?;
        let index = i32::try_from(card).unwrap_or(-1);
        let long_name = alsa::Card::new(index).get_longname().unwrap_or_default();
        Paths::of(controls, &long_name, rate_hz).map(Self)
    }

    /// How many of the first `channels` inputs can be heard.
    #[must_use]
    pub fn inputs(&self, channels: u32) -> u32 {
        self.0.inputs(channels)
    }

    /// Has these inputs, numbered from 0, be heard at the outputs of the same numbers, and of the others what was heard
    /// before. Inputs that cannot be heard are left out.
    ///
    /// # Errors
    /// The first that there is; the others are set all the same.
    pub fn set(&mut self, wanted: &BTreeSet<u32>) -> Result<(), MonitoringError> {
        self.0.set(wanted)
    }

    /// Says again what is to be heard: there are drivers that forget it when their device is opened.
    ///
    /// # Errors
    /// [`MonitoringError`].
    pub fn renew(&mut self) -> Result<(), MonitoringError> {
        self.0.renew()
    }

    /// Whether the card is there.
    #[must_use]
    pub fn is_there(&self) -> bool {
        self.0.is_there()
    }
}

/// Hammerfall (rme9652): a switch for each input.
const THRU: Key = Key { interface: Interface::Mixer, name: c"Channels Thru", index: 0 };
/// Hammerfall DSP (hdsp): source, destination, gain.
const MATRIX: Key = Key { interface: Interface::Hardware, name: c"Mixer", index: 0 };
/// ICE1712 and ICE1724: for each output, what it plays.
const ROUTE: Key = Key { interface: Interface::Mixer, name: c"H/W Playback Route", index: 0 };

/// Largest value of the Hammerfall DSP's mixer, by which it is known.
const MATRIX_MOST: i64 = 65_536;
/// Gain in it that changes nothing.
const MATRIX_UNITY: i64 = 32_768;
/// More outputs no ICE1712 has.
const MOST_ROUTES: u32 = 32;
/// Up to here, a channel of the Hammerfalls' devices is the one of the same number in their controls.
const SINGLE_SPEED_HZ: u32 = 48_000;

/// What a card has.
#[derive(Debug)]
enum Controlled {
    /// A switch for each input.
    Thru(Element),
    /// A gain for each input at each output, whose channels have these numbers there.
    Matrix(Element, Vec<i64>),
    /// By output, what it plays, and the choice that is the input of its number.
    Routes(BTreeMap<u32, (Element, i64)>),
}

/// The paths of a card, and what was changed.
#[derive(Debug)]
struct Paths<E: Elements> {
    elements: E,
    controlled: Controlled,
    /// By input that is heard, what its path was set to before.
    before: BTreeMap<u32, i64>,
}

impl<E: Elements> Paths<E> {
    /// Looks for what the card has.
    fn of(elements: E, long_name: &str, rate_hz: u32) -> Result<Self, MonitoringError> {
        let is_matrix =
            |found: &Element| found.kind == Kind::Numbers { most: MATRIX_MOST } && found.count == 3;
        let controlled = if let Some(thru) = elements.find(THRU).filter(|found| found.kind == Kind::Switches)
        {
            Controlled::Thru(thru)
        } else if let Some(matrix) = elements.find(MATRIX).filter(is_matrix) {
            Controlled::Matrix(matrix, matrix_channels(long_name))
        } else {
            let found = (0..MOST_ROUTES).map_while(|index| elements.find(Key { index, ..ROUTE }));
            Controlled::Routes(found.filter_map(own_input).collect())
        };
        match &controlled {
            Controlled::Routes(routes) if routes.is_empty() => return Err(MonitoringError::None),
            Controlled::Thru(_) | Controlled::Matrix(..) if rate_hz > SINGLE_SPEED_HZ => {
                return Err(MonitoringError::Rate);
            }
            _ => {}
        }
        Ok(Self { elements, controlled, before: BTreeMap::new() })
    }

    fn has(&self, input: u32) -> bool {
        match &self.controlled {
            Controlled::Thru(thru) => input < thru_inputs(thru.count),
            Controlled::Matrix(_, channels) => (input as usize) < channels.len(),
            Controlled::Routes(routes) => routes.contains_key(&input),
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

    /// Has an input be heard.
    fn hear(&mut self, input: u32) -> Result<(), MonitoringError> {
        if self.before.contains_key(&input) || !self.has(input) {
            return Ok(());
        }
        let before = self.read(input)?;
        self.write(input, self.heard(input))?;
        self.before.insert(input, before);
        Ok(())
    }

    /// Sets an input's path back to what it was. One that could not be is tried again the next time.
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
            Controlled::Thru(_) | Controlled::Matrix(..) => 0,
            Controlled::Routes(routes) => routes.keys().next().copied().unwrap_or_default(),
        };
        self.read(first) != Err(MonitoringError::Gone)
    }

    /// What an input's path is set to while it is heard.
    fn heard(&self, input: u32) -> i64 {
        match &self.controlled {
            Controlled::Thru(_) => 1,
            Controlled::Matrix(..) => MATRIX_UNITY,
            Controlled::Routes(routes) => routes.get(&input).map_or(0, |(_, choice)| *choice),
        }
    }

    /// What an input's path is set to now.
    fn read(&self, input: u32) -> Result<i64, MonitoringError> {
        let none = MonitoringError::None;
        match &self.controlled {
            Controlled::Thru(thru) => self.switches(thru)?.get(input as usize).copied().ok_or(none),
            Controlled::Matrix(matrix, channels) => {
                let channel = *channels.get(input as usize).ok_or(none)?;
                let mut cell = [channel, channel, 0];
                self.elements.read(matrix, &mut cell).map_err(MonitoringError::from_errno)?;
                // One that answers for another cell is not what it was taken for.
                if cell[..2] == [channel, channel] { Ok(cell[2]) } else { Err(none) }
            }
            Controlled::Routes(routes) => {
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
            Controlled::Thru(thru) => {
                // The other inputs' switches stay as they are, whoever has set them.
                let mut switches = self.switches(thru)?;
                *switches.get_mut(input as usize).ok_or(none)? = value;
                self.elements.write(thru, &switches)
            }
            Controlled::Matrix(matrix, channels) => {
                let channel = *channels.get(input as usize).ok_or(none)?;
                self.elements.write(matrix, &[channel, channel, value])
            }
            Controlled::Routes(routes) => {
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
        // A card that is gone has forgotten it.
        let _ = self.set(&BTreeSet::new());
    }
}

/// How many of a Hammerfall's switches can be relied on.
fn thru_inputs(switches: u32) -> u32 {
    // The Light's last two are S/PDIF, which its driver switches on and never off.
    if switches == 18 { 16 } else { switches }
}

/// The numbers that a Hammerfall DSP's channels have in its mixer.
fn matrix_channels(long_name: &str) -> Vec<i64> {
    // These leave out the second eight, which only the others' first two optical connectors have.
    if long_name.contains("Multiface") || long_name.contains("RPM") {
        (0..8).chain(16..26).collect()
    } else {
        (0..26).collect()
    }
}

/// An output, and which of its choices is the input of its own number.
fn own_input(route: Element) -> Option<(u32, (Element, i64))> {
    let Kind::Choices(choices) = &route.kind else { return None };
    let output = route.key.index;
    // The second is what the driver of the Maya44 calls it.
    let names = [format!("H/W In {output}"), format!("Input {}", output + 1)];
    let choice = choices.iter().position(|choice| names.contains(choice))?;
    Some((output, (route, i64::try_from(choice).ok()?)))
}
