//! The devices that play streams: the one that drives the graph, and further ones by name.

use std::collections::{BTreeMap, BTreeSet};

use proto::limits::{
    CARD_BYTES, DEVICE_CHANNELS, DEVICE_NAME_BYTES, SAMPLE_RATE_HZ, STREAM_DEVICES,
};
use proto::request::RequestError;
use proto::stream::{FurtherDevice, NewDevice, NewHardware};
use sys::clock::now_ns;

use super::adding::Opening;
use super::device_end::{DeviceEnd, DeviceFacts};
use super::{OpenStream, State, Streams, refused};
use crate::device_shared::is_missing;
use crate::opening::DriverFacts;
use crate::opening::hardware::CardFacts;
use crate::server::DRIVER_NAME;

/// The number of the device that drives.
pub(super) const DRIVER: u32 = 0;

/// A device beside the one that drives.
#[derive(Debug)]
struct Further {
    name: String,
    facts: DeviceFacts,
    end: DeviceEnd,
    /// The connection with which it ends.
    owner: Option<u64>,
    /// `None`: it has no hardware.
    card: Option<CardFacts>,
    /// How often its card was pulled out or plugged in, as far as programs know.
    pluggings: u32,
    /// It was removed, and its thread has not ended.
    leaves: bool,
}

impl Further {
    fn leave(&mut self) {
        self.leaves = true;
        self.end.shared.ask_to_leave();
    }
}

impl Drop for Further {
    fn drop(&mut self) {
        self.end.shared.ask_to_leave();
    }
}

/// All devices that play streams, by number.
#[derive(Debug)]
pub(super) struct Devices {
    pub(super) driver: DeviceEnd,
    further: BTreeMap<u32, Further>,
    last: u32,
    /// Devices whose cards are being opened.
    pub(super) opening: Vec<Opening>,
}

impl Devices {
    pub(super) fn new(driver: DeviceEnd) -> Self {
        Self { driver, further: BTreeMap::new(), last: DRIVER, opening: Vec::new() }
    }

    /// Returns the numbers of all devices.
    pub(super) fn numbers(&self) -> Vec<u32> {
        std::iter::once(DRIVER).chain(self.further.keys().copied()).collect()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &DeviceEnd> {
        std::iter::once(&self.driver).chain(self.further.values().map(|further| &further.end))
    }

    pub(super) fn get(&self, number: u32) -> Option<&DeviceEnd> {
        if number == DRIVER {
            return Some(&self.driver);
        }
        self.further.get(&number).map(|further| &further.end)
    }

    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut DeviceEnd> {
        if number == DRIVER {
            return Some(&mut self.driver);
        }
        self.further.get_mut(&number).map(|further| &mut further.end)
    }

    /// Returns the name of a further device.
    pub(super) fn name(&self, number: u32) -> Option<&str> {
        self.further.get(&number).map(|further| &*further.name)
    }

    /// Returns the name of a device that streams can be moved to.
    pub(super) fn any_name(&self, number: u32) -> Option<&str> {
        if number == DRIVER { Some(DRIVER_NAME) } else { self.name(number) }
    }

    /// Returns what streams on a device are converted to.
    pub(super) fn facts(&self, number: u32, driver: &DriverFacts) -> DeviceFacts {
        self.further.get(&number).map_or_else(|| driver.into(), |further| further.facts)
    }

    /// Returns those that programs can use.
    fn present(&self) -> impl Iterator<Item = (u32, &Further)> {
        let is_there = |further: &Further| !further.leaves && !is_missing(further.pluggings);
        let present = self.further.iter().filter(move |(_, further)| is_there(further));
        present.map(|(number, further)| (*number, further))
    }

    /// Returns the number of the device of this name; without one, of the one that drives.
    pub(super) fn find(&self, name: Option<&str>) -> Result<u32, RequestError> {
        let Some(name) = name.filter(|name| *name != DRIVER_NAME) else { return Ok(DRIVER) };
        let mut present = self.present();
        let found = present.find(|(_, further)| further.name == name).map(|(number, _)| number);
        found.ok_or_else(|| {
            let names = self.present().map(|(_, further)| format!(", '{}'", further.name));
            let names: String = names.collect();
            refused(format!("there is no device '{name}': there are '{DRIVER_NAME}'{names}"))
        })
    }

    /// Checks whether a further device plays anything: a card may only capture.
    pub(super) fn check_plays(&self, number: u32) -> Result<(), RequestError> {
        let further = self.further.get(&number);
        further.filter(|further| further.facts.playback == 0).map_or(Ok(()), |further| {
            Err(refused(format!(
                "the device '{}' plays nothing, it only captures: choose one that plays (consort \
                 status)",
                further.name
            )))
        })
    }

    /// Returns all further devices, by name.
    pub(super) fn statuses(&self) -> Vec<FurtherDevice> {
        let status = |(number, further): (u32, &Further)| FurtherDevice {
            name: further.name.clone(),
            number,
            sample_rate_hz: further.facts.sample_rate_hz,
            channels: further.facts.playback,
            captured: further.facts.capture,
            card: further.card.as_ref().map(|card| cut(&card.description)),
            why_away: further
                .card
                .as_ref()
                .and_then(|card| card.why_away.now())
                .map(|why| cut(&why)),
            wake_ups: further.end.shared.wake_ups.count(),
            wake_up_rate: further.end.shared.wake_ups.rate(now_ns()),
            lost_frames: further.end.shared.lost_frames(),
            state: further.end.shared.state(),
            volume: further.end.volume,
        };
        let mut all: Vec<_> = self.present().map(status).collect();
        all.sort_by(|one, other| one.name.cmp(&other.name));
        all
    }

    /// Checks whether a device can be added.
    pub(super) fn check_new(
        &self,
        new: &NewDevice,
        sample_rate_hz: u32,
    ) -> Result<(), RequestError> {
        let name = &new.name;
        let is_name = !name.is_empty()
            && name.len() <= DEVICE_NAME_BYTES
            && !name.chars().any(|character| character.is_control() || character == ':');
        if !is_name {
            return Err(refused(format!(
                "a device's name must have 1 to {DEVICE_NAME_BYTES} bytes, no colon and no control \
                 characters"
            )));
        }
        // One whose card was pulled out keeps its name.
        let others = self.further.values().filter(|further| !further.leaves);
        let others = others.map(|further| &further.name);
        let mut others = others.chain(self.opening.iter().map(|opening| &opening.new.name));
        if name == DRIVER_NAME || others.any(|other| other == name) {
            return Err(refused(format!(
                "there is a device '{name}' already: choose another name with --name, or remove it"
            )));
        }
        let channels = match new.hardware {
            NewHardware::Nothing { channels } => Some(channels),
            NewHardware::Card { .. } => None,
        };
        for (what, value, range) in [
            ("the number of channels", channels, DEVICE_CHANNELS),
            ("the sample rate in Hz", Some(sample_rate_hz), SAMPLE_RATE_HZ),
        ] {
            if let Some(value) = value.filter(|value| !range.contains(value)) {
                let (least, most) = range.into_inner();
                return Err(refused(format!("{what} cannot be {value}: use {least} to {most}")));
            }
        }
        // Those that leave count as long as they have a thread.
        if self.further.len() + self.opening.len() >= STREAM_DEVICES {
            let limit = u32::try_from(STREAM_DEVICES).unwrap_or(u32::MAX);
            let advice = "remove one (consort device remove NAME)".into();
            return Err(RequestError::Full { what: "further device".into(), limit, advice });
        }
        Ok(())
    }

    /// Adds a device whose thread has the other ends; returns its number.
    pub(super) fn insert(
        &mut self,
        name: String,
        facts: DeviceFacts,
        end: DeviceEnd,
        owner: Option<u64>,
        card: Option<CardFacts>,
    ) -> u32 {
        self.last += 1;
        let (pluggings, leaves) = (0, false);
        let further = Further { name, facts, end, owner, card, pluggings, leaves };
        self.further.insert(self.last, further);
        self.last
    }

    /// Returns the name of a device with a card whose devices, by ALSA's names, are these.
    pub(super) fn with_card(&self, is_it: impl Fn(&[String]) -> bool) -> Option<&str> {
        let has_it = |further: &&Further| {
            further.card.as_ref().is_some_and(|card| !further.leaves && is_it(&card.devices))
        };
        self.further.values().find(has_it).map(|further| &*further.name)
    }

    /// Notes which cards were pulled out or plugged in; returns whether there are some. A device
    /// that is back has another number: programs may not have seen that it was away.
    pub(super) fn follow_pluggings(&mut self) -> bool {
        let is_changed = |further: &Further| further.pluggings != further.end.shared.pluggings();
        let changed = self.further.iter().filter(|(_, further)| is_changed(further));
        let changed: Vec<u32> = changed.map(|(number, _)| *number).collect();
        for number in &changed {
            let Some(mut further) = self.further.remove(number) else { continue };
            further.pluggings = further.end.shared.pluggings();
            let number = match is_missing(further.pluggings) {
                true => *number,
                false => {
                    self.last += 1;
                    self.last
                }
            };
            self.further.insert(number, further);
        }
        !changed.is_empty()
    }

    /// Has the devices leave that end with the connection of a peer. Returns whether there are
    /// some.
    pub(super) fn remove_of(&mut self, peer: u64) -> bool {
        let own = self.further.values_mut();
        let own = own.filter(|further| further.owner == Some(peer) && !further.leaves);
        let removed = own.map(Further::leave).count();
        removed > 0
    }

    /// Has a further device leave. Its streams come back from its thread.
    pub(super) fn remove(&mut self, name: &str) -> Result<(), RequestError> {
        let number = self.find(Some(name))?;
        let Some(further) = self.further.get_mut(&number) else {
            return Err(refused(format!(
                "'{name}' drives the graph: `consort driver` changes it, and it cannot be removed"
            )));
        };
        further.leave();
        Ok(())
    }
}

/// Returns the beginning of a text that fits into a packet.
fn cut(text: &str) -> String {
    let mut length = 0;
    let fits = |character: &char| {
        length += character.len_utf8();
        length <= CARD_BYTES
    };
    text.chars().take_while(fits).collect()
}

impl Streams {
    /// Returns whether the device of a stream is the one that drives.
    pub(super) fn drives(&self, number: u32) -> bool {
        self.streams.get(&number).is_some_and(|stream| stream.device == DRIVER)
    }

    /// Calls the devices for which that is due at `now_ns`.
    pub(super) fn call_if_due(&mut self, now_ns: u64) {
        for number in self.devices.numbers() {
            let is_due =
                self.devices.get_mut(number).is_some_and(|device| device.calls.take_due(now_ns));
            if !is_due {
                continue;
            }
            if number == DRIVER {
                self.order_routes();
            }
            if let Some(device) = self.devices.get_mut(number) {
                device.shared.call();
                device.calls.note_call(device.shared.call.count());
            }
        }
    }

    /// Calls every device at once.
    pub(in crate::control) fn call_all(&self) {
        self.devices.all().for_each(|device| device.shared.call());
    }

    /// A further device's thread has ended: what it did not give back was on its way there.
    pub(super) fn device_left(&mut self, number: u32) {
        let has_moved =
            |number: u32| self.arrivals.iter().any(|arrival| arrival.number() == number);
        let own = self.streams.iter().filter(|(_, stream)| stream.device == number);
        let own = own.map(|(number, _)| *number).filter(|number| !has_moved(*number));
        let own: Vec<u32> = own.collect();
        own.into_iter().for_each(|stream| self.forget(stream));
        self.devices.further.remove(&number);
    }

    /// Ends the loops of devices without streams.
    pub(super) fn end_unneeded_loops(&mut self) {
        let has_begun = |stream: &&OpenStream| !matches!(stream.state, State::Granted(_));
        let begun = self.streams.values().filter(has_begun);
        let needed: BTreeSet<u32> = begun.map(|stream| stream.device).collect();
        for number in self.devices.numbers() {
            if !needed.contains(&number)
                && let Some(device) = self.devices.get_mut(number)
            {
                device.end_loop();
            }
        }
    }
}
