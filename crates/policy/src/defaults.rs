//! Which device is the default, and which were before.

use std::fmt;

/// Most devices that are remembered.
const MAX_CHOSEN: usize = 16;

/// The devices that a user has made the default, the latest first. One that is not there is passed
/// over, and is the default again when it is back: nothing has to be remembered of its absence.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Defaults {
    chosen: Vec<String>,
}

/// Why a device is the default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DefaultReason {
    /// A user has made it that.
    Chosen,
    /// It was that before, and the one that a user has chosen since is not there.
    ChosenBefore {
        /// The one that is not there.
        missing: String,
    },
    /// Nobody has chosen one that is there.
    First,
}

impl Defaults {
    /// Takes what was remembered, the latest first.
    pub fn of(chosen: impl IntoIterator<Item = String>) -> Self {
        let mut defaults = Self::default();
        for name in chosen {
            if !defaults.chosen.contains(&name) && defaults.chosen.len() < MAX_CHOSEN {
                defaults.chosen.push(name);
            }
        }
        defaults
    }

    /// A user makes a device the default, or a new one becomes it; returns whether that is new.
    pub fn choose(&mut self, name: &str) -> bool {
        if self.chosen.first().is_some_and(|latest| latest == name) {
            return false;
        }
        self.chosen.retain(|known| known != name);
        self.chosen.insert(0, name.to_owned());
        self.chosen.truncate(MAX_CHOSEN);
        true
    }

    /// Returns what is to be remembered, the latest first.
    #[must_use]
    pub fn chosen(&self) -> &[String] {
        &self.chosen
    }

    /// Returns the default among the devices that are there, which are listed with the first that
    /// is to be it by itself; `None`: there is none.
    #[must_use]
    pub fn among<'a>(&self, there: &[&'a str]) -> Option<(&'a str, DefaultReason)> {
        let found = self.chosen.iter().find_map(|name| there.iter().find(|known| *known == name));
        let Some(found) = found else { return Some((there.first()?, DefaultReason::First)) };
        let latest = self.chosen.first().filter(|latest| latest != found);
        let reason = latest.map_or(DefaultReason::Chosen, |missing| DefaultReason::ChosenBefore {
            missing: missing.clone(),
        });
        Some((found, reason))
    }
}

impl fmt::Display for DefaultReason {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Chosen => to.write_str("it was chosen"),
            Self::ChosenBefore { missing } => {
                write!(to, "it was chosen before '{missing}', which is not there")
            }
            Self::First => to.write_str("nobody has chosen another that is there"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_default_returns_with_its_device() {
        let mut defaults = Defaults::default();
        assert_eq!(defaults.among(&["consort", "usb"]), Some(("consort", DefaultReason::First)));
        assert!(
            defaults.choose("usb") && defaults.choose("headset") && !defaults.choose("headset")
        );
        let all = ["consort", "usb", "headset"];
        assert_eq!(defaults.among(&all), Some(("headset", DefaultReason::Chosen)));
        let before = DefaultReason::ChosenBefore { missing: "headset".into() };
        assert_eq!(defaults.among(&all[..2]), Some(("usb", before)));
        assert_eq!(defaults.among(&all[..1]), Some(("consort", DefaultReason::First)));
        assert_eq!(defaults.among(&all), Some(("headset", DefaultReason::Chosen)));
        assert_eq!(defaults.among(&[]), None);
    }

    proptest! {
        #[test]
        fn the_default_is_there_and_nothing_that_is_there_was_chosen_later(
            chosen in prop::collection::vec("[a-e]", 0..40),
            there in prop::sample::subsequence(vec!["a", "b", "c", "d", "e"], 0..=5),
        ) {
            let mut defaults = Defaults::default();
            for name in &chosen {
                defaults.choose(name);
            }
            prop_assert_eq!(&Defaults::of(defaults.chosen().to_vec()), &defaults);
            let default = defaults.among(&there).map(|(name, _)| name);
            prop_assert_eq!(default.is_some(), !there.is_empty());
            let last = chosen.iter().rev().map(String::as_str).find(|name| there.contains(name));
            prop_assert_eq!(default, last.or_else(|| there.first().copied()));
        }
    }
}
