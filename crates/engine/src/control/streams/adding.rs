//! How devices are added, beside the one that drives, and removed.
//!
//! A card is opened on a thread, because that takes its time: the request is answered when it is
//! open.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};

use proto::driver::{AlsaOptions, DriverChoice};
use proto::limits::QUANTUM_FRAMES;
use proto::request::{Reply, RequestError};
use proto::stream::{DeviceState, NewDevice, NewHardware, StreamReply};
use sys::clock::now_ns;

use super::device_end::{DeviceEnd, DeviceFacts};
use super::devices::{DRIVER, Devices};
use super::{refused, stream_rings};
use crate::control::Control;
use crate::control::ticket::Ticket;
use crate::device_shared::DeviceShared;
use crate::device_thread::DeviceThread;
use crate::opening::{self, hardware::Hardware};
use crate::policy::refusal;
use crate::server::{DRIVER_NAME, device_priority};
use crate::stream_part::StreamPart;

/// A device whose card is being opened.
#[derive(Debug)]
pub(super) struct Opening {
    ticket: Ticket,
    pub(super) new: NewDevice,
    opened: Receiver<Result<Hardware, String>>,
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
            lost_frames: end.shared.lost_frames(),
            state: end.shared.state(),
            volume: end.volume,
        })
    }

    /// Adds a device: a thread of the server's, so it takes the permission that its driver does.
    pub(super) fn add_device(&mut self, ticket: Ticket, new: NewDevice) {
        match self.check_new_device(ticket.peer, &new) {
            Err(error) => self.refuse(ticket, error),
            Ok(()) => match new.hardware.clone() {
                NewHardware::Nothing { channels } => {
                    let hardware = Hardware::nothing(channels, self.rate_of(&new));
                    let added = self.begin_device(ticket.peer, new, hardware);
                    self.answer_added(ticket, added);
                }
                NewHardware::Card { options, quantum } => {
                    let rate = Some(self.rate_of(&new));
                    let options = AlsaOptions { sample_rate_hz: rate, ..*options };
                    self.open_card(ticket, new, (options, quantum));
                }
            },
        }
    }

    fn rate_of(&self, new: &NewDevice) -> u32 {
        new.sample_rate_hz.unwrap_or(self.settings.driver.sample_rate_hz)
    }

    fn check_new_device(&self, peer: u64, new: &NewDevice) -> Result<(), RequestError> {
        let permissions = self.peers.permissions(peer);
        // MUTATION: check_new_device.by_anyone
        if !permissions.control {
            return Err(refusal("add a device"));
        }
        // As for a driver: it is opened as the server's user, and ALSA's names can say what is to
        // be run.
        // MUTATION: check_new_device.opens_any_card
        if matches!(new.hardware, NewHardware::Card { .. }) {
            permissions.check_load("have the server open a card")?;
        }
        self.streams.devices.check_new(new, self.rate_of(new))?;
        let NewHardware::Card { options, quantum } = &new.hardware else { return Ok(()) };
        if !QUANTUM_FRAMES.contains(quantum) {
            return Err(RequestError::Quantum(*quantum));
        }
        let choice = DriverChoice::Alsa(options.clone());
        opening::check(&choice, self.config.port_max)
            .map_err(|error| refused(error.to_string()))?;
        if opening::must_close_first(&self.settings.driver.devices, &choice) {
            return Err(refused(format!(
                "this card drives the graph: it is the device '{DRIVER_NAME}' already"
            )));
        }
        self.check_card_is_free(&choice).map_err(refused)
    }

    /// Checks whether a driver needs a card that a further device has.
    pub(in crate::control) fn check_card_is_free(
        &self,
        choice: &DriverChoice,
    ) -> Result<(), String> {
        let has_it = |devices: &[String]| opening::must_close_first(devices, choice);
        self.streams.devices.with_card(has_it).map_or(Ok(()), |name| {
            Err(format!(
                "the device '{name}' has this card: remove that first (consort device remove {name})"
            ))
        })
    }

    /// Lets a thread open a card.
    fn open_card(&mut self, ticket: Ticket, new: NewDevice, card: (AlsaOptions, u32)) {
        let (sender, opened) = channel();
        let (shared, cards) = (Arc::clone(&self.shared), Arc::clone(&self.platform.cards));
        let body = move || {
            // Fails if the server has ended: then the card is closed here.
            let _ = sender.send(Hardware::open(card.0, card.1, &*cards));
            shared.waker.wake();
        };
        // Without a thread, the channel is closed at once, which counts as a refusal.
        let _ = std::thread::Builder::new().name("consort-opener".into()).spawn(body);
        self.streams.devices.opening.push(Opening { ticket, new, opened });
    }

    /// Begins with the devices whose cards are open by now.
    pub(super) fn begin_opened_devices(&mut self) {
        for (Opening { ticket, new, .. }, opened) in self.streams.devices.take_opened() {
            let peer = ticket.peer;
            let added = match (opened, self.check_new_device(peer, &new)) {
                (Ok(hardware), Ok(())) => self.begin_device(peer, new, hardware),
                (Ok(hardware), Err(error)) => {
                    close_elsewhere(hardware);
                    Err(error)
                }
                (Err(reason), _) => Err(refused(reason)),
            };
            if self.peers.state(peer).is_some() {
                self.answer_added(ticket, added);
            } else if self.streams.devices.remove_of(peer) {
                self.streams.watches.note_change();
            }
        }
    }

    fn answer_added(&mut self, ticket: Ticket, added: Result<(), RequestError>) {
        match added {
            Ok(()) => self.reply(ticket, Reply::Stream(StreamReply::Added)),
            Err(error) => self.refuse(ticket, error),
        }
    }

    /// Starts the thread of a device.
    fn begin_device(
        &mut self,
        peer: u64,
        new: NewDevice,
        hardware: Hardware,
    ) -> Result<(), RequestError> {
        let (own, (orders, returns)) = stream_rings();
        let shared = Arc::new(DeviceShared::new(DeviceState::Parked));
        let called = Arc::clone(&shared);
        hardware.is_called_by(move || called.call());
        let (channels, rate) = (hardware.driver.channels(), hardware.driver.sample_rate_hz());
        let facts = DeviceFacts::of_further(rate, &channels, hardware.quantum);
        let captured = hardware.captured();
        let Hardware { driver, card, .. } = hardware;
        let thread = DeviceThread {
            driver,
            captured,
            suspend_ns: self.config.suspend_ns(),
            streams: StreamPart::new(orders, returns),
            shared: Arc::clone(&shared),
            control: Arc::clone(&self.shared),
        };
        let spawned = thread.spawn(self.config.realtime_priority.map(device_priority));
        spawned.map_err(|error| refused(format!("no thread for the device: {error}")))?;
        let owner = new.ends_with_connection.then_some(peer);
        let end = DeviceEnd::new(own, shared);
        let number = self.streams.devices.insert(new.name, facts, end, owner, card);
        self.streams.restore_device(number);
        self.streams.watches.note_change();
        Ok(())
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

impl Devices {
    /// Takes the devices whose cards are open by now, or cannot be opened.
    fn take_opened(&mut self) -> Vec<(Opening, Result<Hardware, String>)> {
        let (mut opened, mut left) = (Vec::new(), Vec::new());
        for opening in self.opening.drain(..) {
            match opening.opened.try_recv() {
                Ok(result) => opened.push((opening, result)),
                Err(TryRecvError::Empty) => left.push(opening),
                Err(TryRecvError::Disconnected) => {
                    opened.push((opening, Err("no thread was left to open the card".into())));
                }
            }
        }
        self.opening = left;
        opened
    }
}

/// Closes a card on a thread: its own may have to end first.
fn close_elsewhere(hardware: Hardware) {
    let body = move || drop(hardware);
    // Without a thread, it is closed here.
    let _ = std::thread::Builder::new().name("consort-closer".into()).spawn(body);
}
