//! The streams of all programs: who has which, how much memory they take, and what the thread of
//! their device has of them.
//!
//! A stream is *granted* until its program has sent its memory, then *begun*: its device's thread
//! has it, or gets it when its program is answered. It is *closing* until it is back. Its memory
//! counts until then. One that is *moving* is begun again on another device when it is back.

mod adding;
mod admission;
mod beginning;
mod calls;
mod device_end;
mod devices;
mod feeds;
mod kept_volumes;
mod moving;
mod populating;
mod ports;
mod requests;
mod roles;
mod spare_page;
#[cfg(test)]
mod tests;
mod volumes;
mod waiting;
mod watches;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mix::Routes;
use proto::limits::{STREAMS, STREAMS_AT_ONCE};
use proto::request::RequestError;
use proto::stream::{Direction, StreamStatus, Volume, VolumeSources};
use rt::shm::{RingShape, StreamPage};
use rtrb::{Consumer, Producer};
use sys::futex::Futex;
use sys::memory::Shared;

use self::device_end::DeviceEnd;
use self::devices::{DRIVER, Devices};
use self::feeds::Feed;
pub(super) use self::kept_volumes::KeptVolumes;
use self::moving::Arrival;
use self::populating::Populating;
use self::ports::StreamPorts;
use self::spare_page::SparePage;
use self::waiting::WaitingStreams;
use self::watches::Watches;
use super::ticket::Ticket;
use crate::device_shared::DeviceShared;
use crate::device_stream::SharedGain;
use crate::stream_budget::{Account, StreamBudget, StreamGrant, StreamLimits};
use crate::stream_part::{StreamOrder, StreamReturn};

/// Loops that may be on their way to a device's thread, there, or on their way back.
const LOOPS: usize = 8;

/// Orders for which there is always room: each stream is added, fed and closed, and each loop
/// begun, given room to keep what leaves the device, and ended.
const LASTING_ORDERS: usize = 3 * STREAMS + 3 * LOOPS;

/// Room for other orders, which wait if there is none.
const ROUTE_ORDERS: usize = 128;

/// The two rings between the control thread and a device's thread: orders, and what comes back.
pub type StreamRings = (
    (Producer<StreamOrder>, Consumer<StreamReturn>),
    (Consumer<StreamOrder>, Producer<StreamReturn>),
);

/// Returns the rings. There is room for everything that [`Streams`] lets exist at once.
#[must_use]
pub fn stream_rings() -> StreamRings {
    let (orders, orders_out) = rtrb::RingBuffer::new(LASTING_ORDERS + ROUTE_ORDERS);
    let most = 2 * STREAMS + 3 * LOOPS + 1;
    let (mut returns_in, mut returns) = rtrb::RingBuffer::new(most);
    // A device's thread must not be the first to touch this memory.
    for _ in 0..most {
        let _ = returns_in.push(StreamReturn::Slabs(Vec::new())).is_ok() && returns.pop().is_ok();
    }
    ((orders, returns), (orders_out, returns_in))
}

/// The streams, and the control thread's part of their devices.
#[derive(Debug)]
pub(super) struct Streams {
    budget: StreamBudget,
    spare_page: SparePage,
    streams: BTreeMap<u32, OpenStream>,
    last: u32,
    devices: Devices,
    /// Begun streams whose connections to the device have changed.
    rerouted: BTreeSet<u32>,
    /// Ports of streams that have ended, or moved.
    unplugged: Vec<StreamPorts>,
    /// Streams that are back from one device, for another.
    arrivals: Vec<Arrival>,
    populating: Populating,
    /// Requests for streams that wait for clients which return from another server.
    waiting: WaitingStreams,
    /// Programs that wait for a change of the devices, or of streams.
    watches: Watches,
    /// Volumes for devices and streams that come again.
    pub(super) kept_volumes: KeptVolumes,
}

#[derive(Debug)]
struct OpenStream {
    peer: u64,
    process: u32,
    account: Account,
    program: String,
    name: String,
    /// The number of its device.
    device: u32,
    /// The rate of its devices, Hz.
    sample_rate_hz: u32,
    direction: Direction,
    /// The device's channels that it was opened for.
    channels: Vec<u32>,
    /// `None`: not yet, or no longer.
    ports: Option<StreamPorts>,
    /// Its connections to the device, and what the device's thread has of them.
    routes: Routes,
    ordered: Routes,
    /// Where programs of the graph hear it.
    feed: Feed,
    depth_frames: u32,
    /// It records, and the device may sleep.
    lets_sleep: bool,
    /// Its program opens it again where it does not fit as it is.
    reopens: bool,
    /// The number of the device on which its program is to do that.
    wanted: Option<u32>,
    grant: StreamGrant,
    volume: Volume,
    volume_sources: VolumeSources,
    /// The volume's factor, for the device's thread.
    gain: Arc<SharedGain>,
    /// The server ends it, and not its program.
    is_cut: bool,
    state: State,
}

#[derive(Debug)]
enum State {
    /// It has a page, and no memory yet.
    Granted(Arc<Shared<StreamPage>>),
    Begun(Arc<Shared<StreamPage>>),
    /// Its device's thread gives it back for another device.
    Moving {
        page: Arc<Shared<StreamPage>>,
        to: u32,
    },
    Closing(Arc<Shared<StreamPage>>),
}

impl OpenStream {
    /// Returns whether it belongs to the program of a peer. A process may have several connections;
    /// 0 is any process of another pid namespace.
    fn is_of(&self, peer: u64, process: u32) -> bool {
        self.peer == peer || (process != 0 && self.process == process)
    }

    fn page(&self) -> &StreamPage {
        match &self.state {
            State::Granted(page)
            | State::Begun(page)
            | State::Moving { page, .. }
            | State::Closing(page) => page,
        }
    }

    /// Returns the ids of its ports, by channel.
    fn ports(&self) -> &[u32] {
        self.ports.as_ref().map_or(&[], |ports| &ports.ports)
    }

    /// Returns whether it records what its ports are connected with, whatever drives the graph.
    fn is_in_graph(&self) -> bool {
        self.direction == Direction::Record && self.home() == DRIVER
    }

    /// Returns the number of the device that it is on, or will be.
    fn home(&self) -> u32 {
        match self.state {
            State::Moving { to, .. } => to,
            _ => self.device,
        }
    }

    fn status(
        &self,
        stream: u32,
        (device, wanted): (Option<&str>, Option<&str>),
        now_ns: u64,
    ) -> StreamStatus {
        let timing = self.page().timing().unwrap_or_default();
        let passed_ns = now_ns.saturating_sub(timing.at_ns);
        let plays = timing.until > timing.position_at(now_ns);
        let rendered_ns = if plays { timing.latency_ns.saturating_sub(passed_ns) } else { 0 };
        StreamStatus {
            stream,
            program: self.program.clone(),
            name: self.name.clone(),
            process: self.process,
            device: device.map(Into::into),
            wanted: wanted.map(Into::into),
            direction: self.direction,
            plays,
            rendered_us: rendered_ns / 1000,
            depth_frames: self.depth_frames,
            missed_frames: self.page().missed_frames(),
            volume: self.volume,
            volume_sources: self.volume_sources,
        }
    }
}

fn refused(reason: impl Into<String>) -> RequestError {
    RequestError::Failed(reason.into())
}

fn unknown(stream: u32) -> RequestError {
    RequestError::Failed(format!("there is no stream {stream}: it has ended; open another"))
}

impl Streams {
    /// Starts without streams and further devices.
    pub(super) fn new(
        rings: (Producer<StreamOrder>, Consumer<StreamReturn>),
        driver: Arc<DeviceShared>,
        limits: StreamLimits,
    ) -> Self {
        Self {
            budget: StreamBudget::new(limits),
            spare_page: SparePage::new(),
            streams: BTreeMap::new(),
            last: 0,
            devices: Devices::new(DeviceEnd::new(rings, driver)),
            rerouted: BTreeSet::new(),
            unplugged: Vec::new(),
            arrivals: Vec::new(),
            populating: Populating::default(),
            waiting: WaitingStreams::default(),
            watches: Watches::default(),
            kept_volumes: KeptVolumes::default(),
        }
    }

    /// Returns whether no program has a stream, and none fades out.
    pub(super) fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    /// Returns the streams with greater numbers, as many as one answer holds.
    pub(super) fn statuses_after(&self, after: u32, now_ns: u64) -> Vec<StreamStatus> {
        let streams = self.streams.range(after.saturating_add(1)..).take(STREAMS_AT_ONCE);
        let names = |stream: &OpenStream| {
            let wanted = stream.wanted.and_then(|device| self.devices.any_name(device));
            (self.devices.name(stream.home()), wanted)
        };
        streams.map(|(number, stream)| stream.status(*number, names(stream), now_ns)).collect()
    }

    /// Returns the shape of the ring that a peer is to send for a stream.
    fn awaited_shape(&self, peer: u64, number: u32) -> Result<RingShape, RequestError> {
        self.awaited(peer, number).map(|(shape, _)| shape)
    }

    /// Returns the same, and the page of the stream.
    fn awaited(
        &self,
        peer: u64,
        number: u32,
    ) -> Result<(RingShape, Arc<Shared<StreamPage>>), RequestError> {
        let stream = self.of_peer(peer, number)?;
        match &stream.state {
            State::Granted(page) => Ok((stream.grant.shape(), Arc::clone(page))),
            _ => Err(refused(format!("stream {number} has begun: its memory was sent before"))),
        }
    }

    fn of_peer(&self, peer: u64, number: u32) -> Result<&OpenStream, RequestError> {
        let own = self.streams.get(&number).filter(|stream| stream.peer == peer);
        own.filter(|stream| !matches!(stream.state, State::Closing(_)))
            .ok_or_else(|| unknown(number))
    }

    /// Ends a peer's stream.
    fn close(&mut self, peer: u64, number: u32) -> Result<(), RequestError> {
        self.of_peer(peer, number)?;
        self.end(number);
        Ok(())
    }

    /// Ends all streams of a peer that has gone, and the devices that end with it.
    pub(super) fn peer_gone(&mut self, peer: u64) {
        let own = self.streams.iter().filter(|(_, stream)| stream.peer == peer);
        let own: Vec<u32> = own.map(|(number, _)| *number).collect();
        own.into_iter().for_each(|number| self.end(number));
        self.watches.forget(peer);
        self.waiting.forget(peer);
        if self.devices.remove_of(peer) {
            self.watches.note_change();
        }
    }

    fn end(&mut self, number: u32) {
        let Some(stream) = self.streams.get_mut(&number) else { return };
        self.unplugged.extend(stream.ports.take());
        // What fades out is populated.
        self.populating.forget(number);
        match &stream.state {
            State::Granted(_) => self.forget(number),
            State::Begun(page) => {
                stream.state = State::Closing(Arc::clone(page));
                if let Some(device) = self.devices.get_mut(stream.device) {
                    device.order(StreamOrder::Close(number));
                    device.shared.call();
                }
            }
            State::Moving { page, .. } => stream.state = State::Closing(Arc::clone(page)),
            State::Closing(_) => {}
        }
    }

    fn forget(&mut self, number: u32) {
        let Some(mut stream) = self.streams.remove(&number) else { return };
        match stream.state {
            State::Granted(_) | State::Closing(_) if !stream.is_cut => {
                self.watches.note_stream_change();
            }
            // Its program has not ended it, and may sleep as long as it has frames queued.
            _ => self.watches.note_change(),
        }
        self.unplugged.extend(stream.ports.take());
        self.rerouted.remove(&number);
        self.populating.forget(number);
        stream.page().note_ended();
        stream.page().kick(&Futex);
        if let Some(device) = self.devices.get_mut(stream.device) {
            device.calls.forget(number);
        }
        self.budget.release(stream.grant);
        self.spare_page.renew();
    }

    /// Takes back what the devices' threads have given back.
    pub(super) fn take_returns(&mut self) {
        for device in self.devices.numbers() {
            while let Some(returned) =
                self.devices.get_mut(device).and_then(|end| end.returns.pop().ok())
            {
                self.take_return(device, returned);
            }
        }
        self.end_unneeded_loops();
    }

    fn take_return(&mut self, device: u32, returned: StreamReturn) {
        match returned {
            StreamReturn::Stream(stream) => self.stream_returned(Arrival::Plays(stream)),
            StreamReturn::Slabs(slabs) => drop(slabs),
            StreamReturn::Recorder(recorder) => {
                self.stream_returned(Arrival::Records(recorder));
            }
            StreamReturn::Kept(room) => drop(room),
            StreamReturn::Device { device: all, is_cut } => {
                drop(all);
                if let Some(end) = self.devices.get_mut(device) {
                    end.loop_returned(is_cut);
                }
            }
            StreamReturn::Left => self.device_left(device),
        }
    }

    /// A device's thread has called: kicks the programs whose wishes are obeyed, and all of a
    /// device that wakes by other rules from now on.
    pub(super) fn devices_called(&mut self) {
        if self.devices.follow_pluggings() {
            self.watches.note_change();
        }
        let mut changed = BTreeSet::new();
        for number in self.devices.numbers() {
            let Some(device) = self.devices.get_mut(number) else { continue };
            let state = device.shared.state();
            if std::mem::replace(&mut device.state, state) != state {
                changed.insert(number);
            }
        }
        let mut is_shown = !changed.is_empty();
        for (number, stream) in &self.streams {
            let Some(device) = self.devices.get_mut(stream.device) else { continue };
            let is_served = device.calls.take_served(*number, device.shared.answered_calls());
            is_shown |= is_served;
            if is_served || changed.contains(&stream.device) {
                stream.page().kick(&Futex);
            }
        }
        if is_shown {
            self.watches.note_stream_change();
        }
    }
}
