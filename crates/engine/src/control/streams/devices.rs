//! The devices that play streams: the one that drives the graph, and further ones by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use device::NullCard;
use mix::FrameHistory;
use proto::limits::{
    DEVICE_CHANNELS, DEVICE_NAME_BYTES, QUANTUM_FRAMES, SAMPLE_RATE_HZ, STREAM_DEVICES,
};
use proto::request::RequestError;
use proto::stream::{DeviceState, DeviceVolume, FurtherDevice, NewDevice, StreamReply};
use rt::stream::Gains;
use rtrb::{Consumer, Producer};
use sys::clock::now_ns;

use super::beginning::kept_frames;
use super::calls::Calls;
use super::{LOOPS, OpenStream, State, Streams, refused, stream_rings};
use crate::control::Control;
use crate::device_shared::DeviceShared;
use crate::device_thread::DeviceThread;
use crate::opening::DriverFacts;
use crate::policy::refusal;
use crate::server::{DRIVER_NAME, device_priority};
use crate::stream_part::{StreamDevice, StreamOrder, StreamPart, StreamReturn};

/// The number of the device that drives.
pub(super) const DRIVER: u32 = 0;
/// What streams on a device are converted to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DeviceFacts {
    pub(super) sample_rate_hz: u32,
    /// Channels that it plays.
    pub(super) playback: u32,
    /// Channels that it captures.
    pub(super) capture: u32,
    /// They are more than silence, in cycles.
    pub(super) captures: bool,
    /// Frames of the longest cycle that it plays; 0: it plays none.
    longest_cycle: u32,
}

impl DeviceFacts {
    /// Returns those of a device without hardware.
    pub(super) fn of_null_device(sample_rate_hz: u32, channels: u32) -> Self {
        Self { sample_rate_hz, playback: channels, capture: 0, captures: false, longest_cycle: 0 }
    }
}

impl From<&DriverFacts> for DeviceFacts {
    fn from(driver: &DriverFacts) -> Self {
        Self {
            sample_rate_hz: driver.sample_rate_hz,
            playback: driver.channels.playback,
            capture: driver.channels.capture,
            captures: driver.captures,
            longest_cycle: *QUANTUM_FRAMES.end(),
        }
    }
}

/// The control thread's end of a device.
#[derive(Debug)]
pub(super) struct DeviceEnd {
    pub(super) orders: Producer<StreamOrder>,
    pub(super) returns: Consumer<StreamReturn>,
    pub(super) shared: Arc<DeviceShared>,
    /// The device's thread has a loop, or will.
    has_loop: bool,
    /// The loop keeps what leaves the device for streams that record that.
    keeps: bool,
    /// Loops that have not come back.
    loops: usize,
    pub(super) calls: Calls,
    pub(super) volume: DeviceVolume,
    /// What the device did when the programs were last kicked for it.
    pub(super) state: DeviceState,
}

impl DeviceEnd {
    pub(super) fn new(
        (orders, returns): (Producer<StreamOrder>, Consumer<StreamReturn>),
        shared: Arc<DeviceShared>,
    ) -> Self {
        Self {
            orders,
            returns,
            state: shared.state(),
            shared,
            has_loop: false,
            keeps: false,
            loops: 0,
            calls: Calls::default(),
            volume: DeviceVolume::default(),
        }
    }

    /// Leaves an order for the device's thread, which is to be called.
    pub(super) fn order(&mut self, order: StreamOrder) {
        // There is room: see `stream_rings`.
        let _ = self.orders.push(order);
    }

    pub(super) fn check_loop(&self) -> Result<(), RequestError> {
        if !self.has_loop && self.loops >= LOOPS {
            return Err(refused("the device is busy with streams that end: try again"));
        }
        Ok(())
    }

    /// Orders a loop unless there is one; returns whether it did.
    pub(super) fn begin_loop(&mut self, facts: DeviceFacts) -> bool {
        if self.has_loop {
            return false;
        }
        let DeviceFacts { sample_rate_hz, playback, longest_cycle, .. } = facts;
        let volume = Gains::new(self.volume.heard().factors()).unwrap_or_default();
        self.order(StreamOrder::Begin(StreamDevice::new(
            sample_rate_hz,
            playback,
            volume,
            longest_cycle,
        )));
        (self.has_loop, self.keeps) = (true, false);
        self.loops += 1;
        true
    }

    /// Has the loop keep what leaves the device.
    pub(super) fn keep(&mut self, facts: DeviceFacts) {
        if !std::mem::replace(&mut self.keeps, true) {
            let room = FrameHistory::new(facts.playback as usize, kept_frames(facts));
            self.order(StreamOrder::Keep(Box::new(room)));
        }
    }

    pub(super) fn loop_returned(&mut self, is_cut: bool) {
        self.loops -= 1;
        self.has_loop &= !is_cut;
    }

    /// Ends the loop: no stream needs it.
    pub(super) fn end_loop(&mut self) {
        if std::mem::take(&mut self.has_loop) {
            self.order(StreamOrder::End);
            self.shared.call();
        }
    }

    pub(super) fn set_volume(&mut self, volume: DeviceVolume) {
        self.volume = volume;
        self.shared.gains.set(&volume.heard().factors());
    }
}

/// A device beside the one that drives.
#[derive(Debug)]
struct Further {
    name: String,
    facts: DeviceFacts,
    end: DeviceEnd,
    /// The connection with which it ends.
    owner: Option<u64>,
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
}

impl Devices {
    pub(super) fn new(driver: DeviceEnd) -> Self {
        Self { driver, further: BTreeMap::new(), last: DRIVER }
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

    fn present(&self) -> impl Iterator<Item = (u32, &Further)> {
        let present = self.further.iter().filter(|(_, further)| !further.leaves);
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

    /// Returns all further devices, by name.
    pub(super) fn statuses(&self) -> Vec<FurtherDevice> {
        let status = |(number, further): (u32, &Further)| FurtherDevice {
            name: further.name.clone(),
            number,
            sample_rate_hz: further.facts.sample_rate_hz,
            channels: further.facts.playback,
            wake_ups: further.end.shared.wake_ups.count(),
            wake_up_rate: further.end.shared.wake_ups.rate(now_ns()),
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
        if self.find(Some(name)).is_ok() {
            return Err(refused(format!(
                "there is a device '{name}' already: choose another name with --name, or remove it"
            )));
        }
        for (what, value, range) in [
            ("the number of channels", new.channels, DEVICE_CHANNELS),
            ("the sample rate in Hz", sample_rate_hz, SAMPLE_RATE_HZ),
        ] {
            if !range.contains(&value) {
                let (least, most) = range.into_inner();
                return Err(refused(format!("{what} cannot be {value}: use {least} to {most}")));
            }
        }
        // Those that leave count as long as they have a thread.
        if self.further.len() >= STREAM_DEVICES {
            let limit = u32::try_from(STREAM_DEVICES).unwrap_or(u32::MAX);
            let advice = "remove one (consort device remove NAME)".into();
            return Err(RequestError::Full { what: "further device".into(), limit, advice });
        }
        Ok(())
    }

    /// Adds a device whose thread has the other ends.
    pub(super) fn insert(
        &mut self,
        name: String,
        facts: DeviceFacts,
        end: DeviceEnd,
        owner: Option<u64>,
    ) {
        self.last += 1;
        self.further.insert(self.last, Further { name, facts, end, owner, leaves: false });
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
            if let Some(device) = self.devices.get(number) {
                device.shared.call();
            }
        }
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

    /// Ends the loop of a device without streams.
    pub(super) fn end_unneeded_loop(&mut self, number: u32) {
        let needs = |stream: &OpenStream| {
            stream.device == number && !matches!(stream.state, State::Granted)
        };
        if !self.streams.values().any(needs)
            && let Some(device) = self.devices.get_mut(number)
        {
            device.end_loop();
        }
    }
}

impl Control {
    /// Returns what a device does, and what streams there are converted to.
    pub(super) fn stream_device(&self, name: Option<&str>) -> Result<StreamReply, RequestError> {
        let (devices, driver) = (&self.streams.devices, &self.settings.driver);
        let number = devices.find(name)?;
        let facts = devices.facts(number, driver);
        let plays_streams = number != DRIVER || driver.plays_streams;
        let end = devices.get(number).unwrap_or(&devices.driver);
        Ok(StreamReply::Device {
            sample_rate_hz: facts.sample_rate_hz,
            channels: if plays_streams { facts.playback } else { 0 },
            captured: if plays_streams { facts.capture } else { 0 },
            captures: facts.captures,
            wake_ups: end.shared.wake_ups.count(),
            wake_up_rate: end.shared.wake_ups.rate(now_ns()),
            state: end.shared.state(),
            volume: end.volume,
        })
    }

    /// Adds a device: a thread of the server's, so it takes the permission that its driver does.
    pub(super) fn add_device(
        &mut self,
        peer: u64,
        new: NewDevice,
    ) -> Result<StreamReply, RequestError> {
        // MUTATION: add_device.by_anyone
        if !self.peers.permissions(peer).control {
            return Err(refusal("add a device"));
        }
        let sample_rate_hz = new.sample_rate_hz.unwrap_or(self.settings.driver.sample_rate_hz);
        self.streams.devices.check_new(&new, sample_rate_hz)?;
        let (own, (orders, returns)) = stream_rings();
        let shared = Arc::new(DeviceShared::new(DeviceState::Parked));
        let thread = DeviceThread {
            card: Box::new(NullCard::new(sample_rate_hz)),
            streams: StreamPart::new(orders, returns),
            shared: Arc::clone(&shared),
            control: Arc::clone(&self.shared),
        };
        let spawned = thread.spawn(self.config.realtime_priority.map(device_priority));
        spawned.map_err(|error| refused(format!("no thread for the device: {error}")))?;
        let facts = DeviceFacts::of_null_device(sample_rate_hz, new.channels);
        let owner = new.ends_with_connection.then_some(peer);
        self.streams.devices.insert(new.name, facts, DeviceEnd::new(own, shared), owner);
        self.streams.watches.note_change();
        Ok(StreamReply::Added)
    }

    pub(super) fn remove_device(
        &mut self,
        peer: u64,
        name: &str,
    ) -> Result<StreamReply, RequestError> {
        // MUTATION: remove_device.by_anyone
        if !self.peers.permissions(peer).control {
            return Err(refusal("remove a device"));
        }
        self.streams.devices.remove(name)?;
        self.streams.watches.note_change();
        Ok(StreamReply::Removed)
    }
}
