//! The control thread's end of a device that plays streams.

use std::sync::Arc;

use device::Channels;
use mix::FrameHistory;
use proto::limits::QUANTUM_FRAMES;
use proto::request::RequestError;
use proto::stream::{DeviceState, DeviceVolume, Direction};
use rt::stream::Gains;
use rtrb::{Consumer, Producer};

use super::beginning::{kept_bytes, kept_frames};
use super::calls::Calls;
use super::moving::Arrival;
use super::{LOOPS, refused};
use crate::device_shared::DeviceShared;
use crate::opening::DriverFacts;
use crate::stream_part::{StreamDevice, StreamOrder, StreamReturn};

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
    /// Returns those of a device beside the one that drives, which captures in cycles of `quantum`
    /// frames, if it does.
    pub(super) fn of_further(sample_rate_hz: u32, channels: &Channels, quantum: u32) -> Self {
        let captures = channels.capture > 0;
        Self {
            sample_rate_hz,
            playback: channels.playback,
            capture: channels.capture,
            captures,
            longest_cycle: if captures { quantum } else { 0 },
        }
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

/// Checks whether the device that drives plays streams.
pub(super) fn check_driver(driver: &DriverFacts) -> Result<(), RequestError> {
    if driver.plays_streams {
        return Ok(());
    }
    Err(refused(format!(
        "the driver '{}' plays no streams yet: start the server with a hw: device ('--driver \
         alsa') or with '--driver timer', without --loop and monitors",
        driver.description
    )))
}

/// The control thread's end of a device.
#[derive(Debug)]
pub(super) struct DeviceEnd {
    pub(super) orders: Producer<StreamOrder>,
    pub(super) returns: Consumer<StreamReturn>,
    pub(super) shared: Arc<DeviceShared>,
    /// The device's thread has a loop, or will.
    has_loop: bool,
    /// How much of what leaves the device the loop keeps for streams that record that, bytes.
    kept_bytes: usize,
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
            kept_bytes: 0,
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

    /// Has the device's thread take a stream in. Returns whether a loop begins with it.
    pub(super) fn take_in(
        &mut self,
        stream: Arrival,
        direction: Direction,
        facts: DeviceFacts,
    ) -> bool {
        let begins = self.begin_loop(facts);
        if direction == Direction::Monitor {
            self.keep(facts);
        }
        self.order(match stream {
            Arrival::Plays(stream) => StreamOrder::Add(stream),
            Arrival::Records(recorder) => StreamOrder::Record(recorder),
        });
        begins
    }

    /// Orders a loop unless there is one; returns whether it did.
    fn begin_loop(&mut self, facts: DeviceFacts) -> bool {
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
        (self.has_loop, self.kept_bytes) = (true, 0);
        self.loops += 1;
        true
    }

    /// Has the loop keep what leaves the device.
    fn keep(&mut self, facts: DeviceFacts) {
        if std::mem::replace(&mut self.kept_bytes, kept_bytes(facts)) == 0 {
            let room = FrameHistory::new(facts.playback as usize, kept_frames(facts));
            self.order(StreamOrder::Keep(Box::new(room)));
        }
    }

    /// Returns how much of what leaves the device is kept, bytes.
    pub(super) fn kept_bytes(&self) -> usize {
        if self.has_loop { self.kept_bytes } else { 0 }
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
