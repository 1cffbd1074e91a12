//! Where a card takes its clock from: its own, or a signal at one of its connectors. Thread: not
//! the cycle's.
//!
//! The kernel's drivers call the controls for it by different names, which are listed here. A card
//! may have two: whether it follows a signal, and which one.

#[cfg(test)]
mod tests;

use crate::controls::{Controls, Element, Elements, Interface, Key, Kind};

const fn mixer(name: &'static std::ffi::CStr) -> Key {
    Key { interface: Interface::Mixer, name, index: 0 }
}

/// The controls that are known, and the kernel's drivers that have them.
const KNOWN: [Key; 10] = [
    // hdsp, hdspm, rme32, rme96, usb-audio (Scarlett, Babyface Pro).
    mixer(c"Sample Clock Source"),
    // echoaudio.
    Key { interface: Interface::Pcm, name: c"Sample Clock Source", index: 0 },
    // hdspm; hdsp only shows the first.
    mixer(c"System Clock Mode"),
    mixer(c"Preferred Sync Reference"),
    // rme9652.
    mixer(c"Sync Mode"),
    mixer(c"Preferred Sync Source"),
    // ice1712, ice1724.
    mixer(c"Multi Track Internal Clock"),
    // emu10k1 (E-MU), usb-audio (Mbox 1).
    mixer(c"Clock Source"),
    // pcxhr.
    mixer(c"Clock Mode"),
    // korg1212.
    mixer(c"Sync Source"),
];

/// A control of a card's clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClockControl {
    /// ALSA's name of the control.
    pub name: String,
    /// The names of its choices.
    pub choices: Vec<String>,
    /// Index of the present choice; `None`: the card does not say.
    pub chosen: Option<usize>,
}

/// Why a card's clock cannot be chosen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClockError {
    /// The card's control interface cannot be opened, an `errno`.
    #[error("its controls cannot be opened: {}", std::io::Error::from_raw_os_error(*.0))]
    NotOpened(i32),
    /// The card has no such control.
    #[error("it has no control of its clock that is known here: leave out --clock-source")]
    None,
    /// No control has this choice.
    #[error("it has no clock source '{wanted}'; it has {choices}")]
    Unknown {
        /// What was asked for.
        wanted: String,
        /// What there is, for users.
        choices: String,
    },
    /// The card refused a choice, with an `errno`.
    #[error("it refuses the clock source '{wanted}': {}", std::io::Error::from_raw_os_error(*.errno))]
    Refused {
        /// What was asked for.
        wanted: String,
        /// The error.
        errno: i32,
    },
}

/// The clock controls of an open card.
#[derive(Debug)]
struct ClockSources<E: Elements> {
    elements: E,
    found: Vec<Element>,
}

impl<E: Elements> ClockSources<E> {
    fn of(elements: E) -> Self {
        let is_choice =
            |found: &Element| matches!(found.kind, Kind::Choices(_)) && elements.is_writable(found);
        let found = KNOWN.iter().filter_map(|key| elements.find(*key)).filter(is_choice).collect();
        Self { elements, found }
    }

    fn controls(&self) -> Vec<ClockControl> {
        let control = |element: &Element| {
            let Kind::Choices(choices) = &element.kind else { return None };
            let name = element.key.name.to_string_lossy().into_owned();
            Some(ClockControl { name, choices: choices.clone(), chosen: self.chosen(element) })
        };
        self.found.iter().filter_map(control).collect()
    }

    fn chosen(&self, element: &Element) -> Option<usize> {
        let mut values = vec![0; element.count as usize];
        self.elements.read(element, &mut values).ok()?;
        usize::try_from(*values.first()?).ok()
    }

    /// Makes all choices that are not made yet: some cards interrupt their sound for each.
    fn choose(&self, wanted: &[String]) -> Result<(), ClockError> {
        if self.found.is_empty() {
            return Err(ClockError::None);
        }
        let choices = wanted.iter().map(|wanted| self.find(wanted)).collect::<Result<Vec<_>, _>>();
        for ((element, choice), wanted) in choices?.into_iter().zip(wanted) {
            if self.chosen(element) == Some(choice) {
                continue;
            }
            let values = vec![i64::try_from(choice).unwrap_or(0); element.count as usize];
            self.elements
                .write(element, &values)
                .map_err(|errno| ClockError::Refused { wanted: wanted.clone(), errno })?;
        }
        Ok(())
    }

    /// Returns the control that has a choice of this name, in any case, and which choice it is.
    fn find(&self, wanted: &str) -> Result<(&Element, usize), ClockError> {
        let position = |element: &Element| match &element.kind {
            Kind::Choices(choices) => {
                choices.iter().position(|choice| choice.eq_ignore_ascii_case(wanted))
            }
            _ => None,
        };
        let found = self.found.iter().find_map(|element| Some((element, position(element)?)));
        found.ok_or_else(|| ClockError::Unknown {
            wanted: wanted.to_owned(),
            choices: self.controls().iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
        })
    }
}

impl std::fmt::Display for ClockControl {
    /// Writes `Sync Mode: [AutoSync], Master, Word Clock`, with the present choice in brackets.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let choice = |(index, name): (usize, &String)| {
            if self.chosen == Some(index) { format!("[{name}]") } else { name.clone() }
        };
        let choices: Vec<String> = self.choices.iter().enumerate().map(choice).collect();
        write!(formatter, "{}: {}", self.name, choices.join(", "))
    }
}

fn open(card: u32) -> Result<ClockSources<Controls>, ClockError> {
    Controls::open(card).map(ClockSources::of).map_err(ClockError::NotOpened)
}

/// Returns the clock controls of the card of this number; empty if it has none, or cannot be
/// opened.
#[must_use]
pub fn clock_controls(card: u32) -> Vec<ClockControl> {
    open(card).map(|sources| sources.controls()).unwrap_or_default()
}

/// Makes these choices of the clock controls of the card of this number. They stay when the program
/// ends. If one of them is not known, none is made.
///
/// # Errors
/// [`ClockError`]
pub fn choose_clock(card: u32, wanted: &[String]) -> Result<(), ClockError> {
    open(card)?.choose(wanted)
}
