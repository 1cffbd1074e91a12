//! Devices that were seen, with the names that users have given them, and which of them comes first
//! for streams of a role.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::identity::{Direction, Identity};
use crate::table::Table;

/// Most devices of both kinds. A list of all is one packet, and may be sent for each that comes.
const MAX_DEVICES: usize = 256;
/// Longest name that users see, bytes.
pub const MAX_DESCRIPTION_BYTES: usize = 512;
/// PulseAudio's roles for which devices have an order of their own; the first is that of streams
/// without a role.
const ROLES: [&str; 9] =
    ["none", "video", "music", "game", "event", "phone", "animation", "production", "a11y"];

/// A role for which devices have an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Role(usize);

impl Role {
    /// Returns all, in PulseAudio's order.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..ROLES.len()).map(Self)
    }

    /// Returns the role of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        ROLES.iter().position(|known| *known == name).map(Self)
    }

    /// Returns the role by which a stream gets its device; `None`: it states one for which devices
    /// have no order.
    #[must_use]
    pub fn of(stream: &Identity) -> Option<Self> {
        Self::named(stream.role.as_deref().unwrap_or(ROLES[0]))
    }

    /// Returns its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        ROLES[self.0]
    }
}

impl fmt::Display for Role {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => to.write_str("streams without a role"),
            _ => write!(to, "the role '{}'", self.name()),
        }
    }
}

/// The place of a device among all of its kind, from 1 on, for each role.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Ranks([u32; ROLES.len()]);

impl Serialize for Ranks {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(ROLES.iter().zip(self.0))
    }
}

impl<'de> Deserialize<'de> for Ranks {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let by_name = BTreeMap::<String, u32>::deserialize(from)?;
        Ok(Self(ROLES.map(|role| by_name.get(role).copied().unwrap_or(0))))
    }
}

/// A device that was seen, whether or not it is there now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownDevice {
    /// The name that users see.
    pub description: String,
    /// A user has given it that name.
    #[serde(default, rename = "renamed", skip_serializing_if = "std::ops::Not::not")]
    pub is_renamed: bool,
    /// The name of its icon.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub icon: String,
    #[serde(default)]
    ranks: Ranks,
}

impl KnownDevice {
    /// Returns its place among all of its kind, from 1 on.
    #[must_use]
    pub fn rank(&self, role: Role) -> u32 {
        self.ranks.0[role.0]
    }
}

/// A device that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceThere {
    /// Whether streams play or record there.
    pub direction: Direction,
    /// Its name.
    pub name: String,
    /// The name that it has for users.
    pub description: String,
    /// The name of its icon; empty: it has none.
    pub icon: String,
}

/// A request names a device that is not known, or sinks together with sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotKnown;

/// All devices that were seen, by PulseAudio's names of them: `sink:NAME` and `source:NAME`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnownDevices(Table<KnownDevice, MAX_DEVICES>);

impl KnownDevices {
    /// Returns the name under which a device is known.
    #[must_use]
    pub fn key(direction: Direction, name: &str) -> String {
        format!("{}{name}", prefix(direction))
    }

    /// Returns the device that is known under a name.
    #[must_use]
    pub fn device_of(key: &str) -> Option<(Direction, &str)> {
        let of = |direction| Some((direction, key.strip_prefix(prefix(direction))?));
        of(Direction::Playback).or_else(|| of(Direction::Recording))
    }

    /// Takes what was remembered. A place that is missing there is the last one.
    pub(crate) fn insert(&mut self, key: &str, mut device: KnownDevice) {
        let Some((direction, _)) = Self::device_of(key) else { return };
        let last = self.last(direction);
        for (rank, last) in device.ranks.0.iter_mut().zip(last.0) {
            if *rank == 0 {
                *rank = last;
            }
        }
        device.is_renamed &= !device.description.is_empty();
        device.description = limited(&device.description);
        device.icon = limited(&device.icon);
        self.0.set(key, device);
    }

    /// These are the devices that are there. Of too many, one that is not there makes room, and one
    /// to which a user has given a name last. Returns whether anything has changed.
    pub fn see_all(&mut self, there: &[DeviceThere]) -> bool {
        let key = |device: &DeviceThere| Self::key(device.direction, &device.name);
        let keys: BTreeSet<String> = there.iter().map(key).collect();
        let mut has_changed = false;
        for device in there {
            let is_new = self.0.get(&key(device)).is_none();
            if is_new && self.0.iter().count() >= MAX_DEVICES {
                let Some(spare) = self.spare(&keys) else { continue };
                self.0.remove(&spare);
            }
            let DeviceThere { direction, name, description, icon } = device;
            has_changed |= self.see(*direction, name, description, icon);
        }
        has_changed
    }

    /// Returns the device that makes room for another one.
    fn spare(&self, there: &BTreeSet<String>) -> Option<String> {
        let absent = self.0.iter().filter(|(key, _)| !there.contains(*key));
        absent.min_by_key(|(_, device)| device.is_renamed).map(|(key, _)| key.to_owned())
    }

    /// A device is there, and is called so unless a user has given it a name; a new one comes after
    /// all others of its kind. Returns whether anything has changed.
    pub(crate) fn see(
        &mut self,
        direction: Direction,
        name: &str,
        description: &str,
        icon: &str,
    ) -> bool {
        let key = Self::key(direction, name);
        let known = self.0.get(&key);
        let renamed = known.filter(|known| known.is_renamed);
        let device = KnownDevice {
            description: renamed
                .map_or_else(|| limited(description), |known| known.description.clone()),
            is_renamed: renamed.is_some(),
            icon: limited(icon),
            ranks: known.map_or_else(|| self.last(direction), |known| known.ranks),
        };
        self.0.set(&key, device)
    }

    /// Returns what is known of a device.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&KnownDevice> {
        self.0.get(key)
    }

    /// Returns all, with the names under which they are known.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &KnownDevice)> {
        self.0.iter()
    }

    /// A user gives a device a name; returns whether that is something new. A name that is empty or
    /// longer than any is none.
    pub fn rename(&mut self, key: &str, description: &str) -> bool {
        let is_name = !description.is_empty() && description.len() <= MAX_DESCRIPTION_BYTES;
        let Some(known) = self.0.get(key).filter(|_| is_name) else { return false };
        let renamed =
            KnownDevice { description: description.to_owned(), is_renamed: true, ..known.clone() };
        self.0.set(key, renamed)
    }

    /// Forgets a device until it is seen again; returns whether it was known.
    pub fn forget(&mut self, key: &str) -> bool {
        self.0.remove(key)
    }

    /// Has these devices come first for a role, in this order, and all others of their kind after
    /// them, in the order that they had. Returns whether anything has changed.
    ///
    /// # Errors
    /// [`NotKnown`]; then nothing has changed.
    pub fn reorder(&mut self, role: Role, first: &[String]) -> Result<bool, NotKnown> {
        let kind = first.first().and_then(|key| Self::device_of(key)).ok_or(NotKnown)?.0;
        let is_of_kind = |key: &str| Self::device_of(key).is_some_and(|(of, _)| of == kind);
        if !first.iter().all(|key| is_of_kind(key) && self.0.get(key).is_some()) {
            return Err(NotKnown);
        }
        let mut order: Vec<String> = Vec::new();
        for key in first {
            if !order.contains(key) {
                order.push(key.clone());
            }
        }
        let others = self.0.iter().filter(|(key, _)| is_of_kind(key));
        let mut others: Vec<(u32, String)> = others
            .filter(|(key, _)| !order.iter().any(|known| known == key))
            .map(|(key, device)| (device.rank(role), key.to_owned()))
            .collect();
        others.sort_unstable();
        order.extend(others.into_iter().map(|(_, key)| key));
        let mut has_changed = false;
        for (rank, key) in (1..).zip(&order) {
            let Some(mut device) = self.0.get(key).cloned() else { continue };
            device.ranks.0[role.0] = rank;
            has_changed |= self.0.set(key, device);
        }
        Ok(has_changed)
    }

    /// Returns where streams go that have one of these devices to go to.
    pub fn routes<'a>(
        &self,
        direction: Direction,
        there: impl IntoIterator<Item = &'a str>,
    ) -> Routes {
        let mut first = [const { None }; ROLES.len()];
        for name in there {
            let Some(device) = self.get(&Self::key(direction, name)) else { continue };
            for (first, rank) in first.iter_mut().zip(device.ranks.0) {
                let this = (rank, name);
                *first = Some(first.map_or(this, |other| this.min(other)));
            }
        }
        Routes(first.map(|first| first.map(|(_, name)| name.to_owned())))
    }

    fn of_kind(&self, direction: Direction) -> impl Iterator<Item = (&str, &KnownDevice)> {
        self.0.iter().filter_map(move |(key, device)| match Self::device_of(key)? {
            (of, name) if of == direction => Some((name, device)),
            _ => None,
        })
    }

    /// Returns the places of a device that comes after all others.
    fn last(&self, direction: Direction) -> Ranks {
        let after = |role: usize| {
            let ranks = self.of_kind(direction).map(|(_, device)| device.ranks.0[role]);
            ranks.max().unwrap_or(0).saturating_add(1)
        };
        Ranks(std::array::from_fn(after))
    }
}

/// The device that comes first for each role, of the devices of one kind that are there; by default
/// none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Routes([Option<String>; ROLES.len()]);

impl Routes {
    /// Returns the device that a stream of this kind gets if nothing else was chosen for it, and
    /// the role for which that comes first.
    #[must_use]
    pub fn of(&self, stream: &Identity) -> Option<(&str, Role)> {
        let role = Role::of(stream)?;
        Some((self.0[role.0].as_deref()?, role))
    }
}

fn prefix(direction: Direction) -> &'static str {
    match direction {
        Direction::Playback => "sink:",
        Direction::Recording => "source:",
    }
}

/// Returns as many of the first letters as are remembered.
fn limited(text: &str) -> String {
    text[..text.floor_char_boundary(MAX_DESCRIPTION_BYTES)].to_owned()
}

#[cfg(test)]
mod tests;
