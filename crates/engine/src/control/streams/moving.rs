//! Streams that move to another device.
//!
//! The stream fades out on its device and comes back from there like one that ends; then it begins
//! again on the other device, at the position at which the fade began. Its memory, its number and
//! its volume stay, so its program needs to know nothing of it. A monitor likewise: it ends with
//! the last frame that was heard on its device, and goes on with what is heard on the other one.
//!
//! A stream that records in the graph stays in the graph when the driver changes: it keeps its
//! ports and their connections, and goes on with the cycles of the next driver.

use std::sync::Arc;

use mix::{Recorder, Routes, Stream};
use proto::request::RequestError;
use proto::stream::{Direction, StreamReply};
use sys::clock::now_ns;

use super::admission::routes_of;
use super::device_end::check_driver;
use super::feeds::Feed;
use super::{DRIVER, State, Streams, refused, unknown};
use crate::control::Control;
use crate::device_stream::{DeviceRecorder, DeviceStream};
use crate::opening::DriverFacts;
use crate::policy::{Permissions, refusal};
use crate::stream_part::{StreamOrder, fade_frames};

/// A stream on its way to a device: a new one, or one that is back from another.
#[derive(Debug)]
pub(in crate::control) enum Arrival {
    Plays(Box<Stream<DeviceStream>>),
    Records(Box<Recorder<DeviceRecorder>>),
}

impl Arrival {
    pub(super) fn number(&self) -> u32 {
        match self {
            Self::Plays(stream) => stream.memory().stream,
            Self::Records(recorder) => recorder.memory().stream,
        }
    }
}

impl Streams {
    /// Has a stream leave its device for another one. A program may move its own streams, and with
    /// the permission to patch, all.
    pub(super) fn begin_move(
        &mut self,
        (peer, process): (u64, u32),
        permissions: Permissions,
        number: u32,
        name: Option<&str>,
        driver: &DriverFacts,
    ) -> Result<(), RequestError> {
        let to = self.devices.find(name)?;
        let stream = self.streams.get(&number).ok_or_else(|| unknown(number))?;
        // MUTATION: begin_move.of_others
        if !permissions.patch && !stream.is_of(peer, process) {
            return Err(refusal("move another program's stream"));
        }
        if to == DRIVER {
            check_driver(driver)?;
        }
        let (from, there) =
            (self.devices.facts(stream.home(), driver), self.devices.facts(to, driver));
        if stream.direction == Direction::Record {
            return Err(refused(match stream.home() {
                DRIVER => format!(
                    "stream {number} records what its ports are connected with: connect them with \
                     others instead"
                ),
                _ => format!(
                    "stream {number} records what its device captures: end it, and record the other \
                     device"
                ),
            }));
        }
        self.devices.check_plays(to)?;
        let has_channels = stream.channels.iter().all(|channel| *channel < there.playback);
        let fits = from.sample_rate_hz == there.sample_rate_hz && has_channels;
        if stream.reopens && !fits {
            return self.ask_to_reopen(number, to);
        }
        if from.sample_rate_hz != there.sample_rate_hz {
            return Err(refused(format!(
                "the stream has {} Hz and the device {} Hz: end it and begin it there",
                from.sample_rate_hz, there.sample_rate_hz
            )));
        }
        if let Some(channel) = stream.channels.iter().find(|channel| **channel >= there.playback) {
            return Err(refused(format!(
                "the stream has channel {channel} of its device, counted from 0, and the other \
                 device has {}",
                there.playback
            )));
        }
        self.check_kept(stream.direction, to, there)?;
        let Some(stream) = self.streams.get_mut(&number) else { return Err(unknown(number)) };
        stream.wanted = None;
        match &stream.state {
            _ if stream.home() == to => {}
            State::Moving { page, .. } => {
                stream.state = State::Moving { page: Arc::clone(page), to };
            }
            State::Begun(page) => {
                stream.state = State::Moving { page: Arc::clone(page), to };
                self.unplugged.extend(stream.ports.take());
                self.rerouted.remove(&number);
                if let Some(device) = self.devices.get_mut(stream.device) {
                    device.order(StreamOrder::Close(number));
                    device.shared.call();
                }
            }
            State::Granted(_) => return Err(refused(format!("stream {number} has not begun yet"))),
            State::Closing(_) => return Err(unknown(number)),
        }
        self.watches.note_change();
        self.show_state(number);
        Ok(())
    }

    /// Has a program open its stream again on a device for which it converts its samples otherwise.
    /// Until it does, the stream plays on where it is.
    fn ask_to_reopen(&mut self, number: u32, to: u32) -> Result<(), RequestError> {
        let Some(stream) = self.streams.get_mut(&number) else { return Err(unknown(number)) };
        match stream.state {
            State::Begun(_) | State::Moving { .. } => stream.wanted = Some(to),
            State::Granted(_) => return Err(refused(format!("stream {number} has not begun yet"))),
            State::Closing(_) => return Err(unknown(number)),
        }
        self.watches.note_change();
        Ok(())
    }

    /// A device's thread has given a stream back: it has ended, or goes to another device.
    pub(super) fn stream_returned(&mut self, stream: Arrival) {
        let number = stream.number();
        let Some(open) = self.streams.get_mut(&number) else { return };
        match &open.state {
            State::Moving { .. } => self.arrivals.push(stream),
            State::Begun(page) if open.is_in_graph() => {
                open.state = State::Moving { page: Arc::clone(page), to: DRIVER };
                self.arrivals.push(stream);
            }
            _ => self.forget(number),
        }
    }

    /// Begins a stream on the device that it has moved to. Returns whether a plan has to bring it.
    pub(super) fn arrive(&mut self, arrival: Arrival, driver: &DriverFacts) -> bool {
        let number = arrival.number();
        let Some(open) = self.streams.get(&number) else { return false };
        let State::Moving { page, to } = &open.state else {
            self.forget(number);
            return false;
        };
        let (page, to) = (Arc::clone(page), *to);
        let facts = self.devices.facts(to, driver);
        let is_played = to != DRIVER || driver.plays_streams;
        let fits = is_played && self.check_kept(open.direction, to, facts).is_ok();
        let device = self.devices.get_mut(to).filter(|end| fits && end.check_loop().is_ok());
        let (Some(device), Some(open)) = (device, self.streams.get_mut(&number)) else {
            self.forget(number);
            return false;
        };
        (open.device, open.state, open.ordered) = (to, State::Begun(page), open.routes);
        let fade_frames = fade_frames(facts.sample_rate_hz);
        let stream = match arrival {
            Arrival::Plays(mut stream) => {
                stream.memory_mut().feed = open.feed.begin();
                Arrival::Plays(Box::new(stream.moved(open.routes, fade_frames)))
            }
            Arrival::Records(recorder) => Arrival::Records(Box::new(recorder.moved(fade_frames))),
        };
        device.take_in(stream, open.direction, facts);
        // Wishes that were called for on the way were not obeyed.
        device.calls.add(number, now_ns());
        device.shared.call();
        self.show_state(number);
        to == DRIVER
    }
}

impl Control {
    pub(super) fn move_stream(
        &mut self,
        peer: u64,
        stream: u32,
        device: Option<&str>,
    ) -> Result<StreamReply, RequestError> {
        let permissions = self.peers.permissions(peer);
        let process = self.peers.watch(peer, &self.poller).unwrap_or(0);
        let driver = &self.settings.driver;
        self.streams.begin_move((peer, process), permissions, stream, device, driver)?;
        self.unplug_ended();
        Ok(StreamReply::Moved)
    }

    /// Begins the streams that are back from one device on the one that they move to.
    pub(super) fn begin_arrivals(&mut self) {
        for arrival in std::mem::take(&mut self.streams.arrivals) {
            let is_refused =
                matches!(arrival, Arrival::Plays(_)) && self.make_way(arrival.number()).is_err();
            if !is_refused && self.streams.arrive(arrival, &self.settings.driver) {
                self.publisher.need(now_ns());
            }
        }
    }

    /// Gives a stream that plays the ports and routes that it has on the device where it arrives.
    /// Refused, it has ended: its program may have no more ports.
    fn make_way(&mut self, number: u32) -> Result<(), RequestError> {
        let streams = &mut self.streams;
        let Some(open) = streams.streams.get_mut(&number) else { return Ok(()) };
        // The slabs of ports that are not there any more go with the stream's old part of them.
        open.feed = Feed::default();
        open.routes = routes_of(&open.channels);
        let drives = open.home() == DRIVER;
        streams.budget.retract(&mut open.grant);
        if drives {
            open.routes = Routes::default();
            self.plug_in(number)?;
        }
        Ok(())
    }
}
