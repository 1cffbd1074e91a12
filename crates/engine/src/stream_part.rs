//! The streams of a device on its thread: what the control thread wants of them, and what comes
//! back from there.
//!
//! The loop that renders them ([`DeviceLoop`]) is there while there are streams.

use std::mem;

use mix::{Card, ChannelSet, DeviceLoop, DeviceShape, FrameHistory, Planes, Recorder, Stream};
use proto::limits::STREAMS;
use rt::park::Park;
use rt::stream::{FADE_NS, Gains};
use rtrb::{Consumer, Producer};
use sys::futex::Futex;
use sys::memory::OwnSlab;

use crate::device_shared::DeviceShared;
use crate::device_stream::{DeviceRecorder, DeviceStream};
use crate::plan::Plan;

/// The loop of a device that plays streams. Made by the control thread.
#[derive(Debug)]
pub struct StreamDevice {
    pub(crate) device: DeviceLoop<DeviceStream, DeviceRecorder>,
    /// What the graph plays in a cycle.
    pub(crate) cycle: Planes,
    /// What it brings to a channel of a stream that records.
    pub(crate) recorded: Vec<f32>,
}

/// Returns how long a fade and a change of volume last, frames.
pub fn fade_frames(sample_rate_hz: u32) -> u32 {
    u32::try_from(rt::rate::frames_in(FADE_NS, sample_rate_hz)).unwrap_or(u32::MAX)
}

/// Quanta that may have to be rendered again: two that are queued, and what a late cycle adds.
const KEPT_QUANTA: usize = 4;

impl StreamDevice {
    /// Returns a loop without streams, with the gains `volume`; the graph plays cycles of at most
    /// `longest_cycle` frames, or none if that is 0. All of its memory is allocated here, on the
    /// control thread.
    #[must_use]
    pub fn new(sample_rate_hz: u32, channels: u32, volume: Gains, longest_cycle: u32) -> Box<Self> {
        let (channels, longest) = (channels as usize, longest_cycle as usize);
        let graph_frames = KEPT_QUANTA * longest;
        let ramp_frames = fade_frames(sample_rate_hz);
        let streams = STREAMS;
        let shape = DeviceShape { sample_rate_hz, channels, graph_frames, streams, ramp_frames };
        let device = DeviceLoop::new(shape, volume);
        // A cycle must not be the first to touch it.
        let mut recorded = vec![1.0; longest];
        recorded.fill(0.0);
        Box::new(Self { device, cycle: Planes::new(channels, longest), recorded })
    }
}

/// What the control thread wants of the streams.
#[derive(Debug)]
pub enum StreamOrder {
    /// The loop for the first stream.
    Begin(Box<StreamDevice>),
    /// A new stream.
    Add(Box<Stream<DeviceStream>>),
    /// A channel of a stream is heard on other channels of the device.
    Route {
        /// The stream's number.
        stream: u32,
        /// Its channel.
        channel: usize,
        /// All that it is heard on.
        to: ChannelSet,
    },
    /// The memory by which programs of the graph hear a stream; once for each.
    Feed {
        /// The stream's number.
        stream: u32,
        /// The slabs.
        slabs: Vec<OwnSlab>,
    },
    /// Programs of the graph hear other channels of a stream.
    Hear {
        /// The stream's number.
        stream: u32,
        /// A bit for each channel.
        channels: u32,
    },
    /// Room to keep what leaves the device, for the first stream that records that.
    Keep(Box<FrameHistory>),
    /// A new stream that records.
    Record(Box<Recorder<DeviceRecorder>>),
    /// The stream of this number ends: it fades out, and comes back.
    Close(u32),
    /// No stream is left: the loop comes back.
    End,
}

/// What comes back from the driver thread, to be dropped.
#[derive(Debug)]
pub enum StreamReturn {
    /// A stream, as asked for by [`StreamOrder::Close`], or because the device has gone.
    Stream(Box<Stream<DeviceStream>>),
    /// Memory of a stream that had ended.
    Slabs(Vec<OwnSlab>),
    /// A stream that records, likewise.
    Recorder(Box<Recorder<DeviceRecorder>>),
    /// Room that is not needed any more.
    Kept(Box<FrameHistory>),
    /// The loop.
    Device {
        /// It has no streams any more.
        device: Box<StreamDevice>,
        /// The device has gone: another driver has taken its place, or it was removed.
        is_cut: bool,
    },
    /// A further device's thread ends: nothing comes back after this.
    Left,
}

/// What a device's thread has besides the streams.
pub trait StreamHost {
    /// Returns the hardware; `None`: it plays no streams. Thread: cycle.
    fn card(&mut self) -> Option<&mut dyn Card>;

    /// Returns whether it plays streams, with as many channels. What was ordered for the driver
    /// before may come to the next one. Thread: cycle.
    fn plays(&mut self, channels: usize) -> bool;

    /// The first stream begins, or the last one has ended. Thread: cycle.
    fn play_streams(&mut self, on: bool);

    /// Has the control thread look at what came back, and at wishes that were obeyed. Thread:
    /// cycle.
    fn call_control(&self);
}

/// The part that a device's thread has in the streams.
#[derive(Debug)]
pub struct StreamPart {
    orders: Consumer<StreamOrder>,
    /// There is room for everything that the control thread lets exist.
    returns: Producer<StreamReturn>,
    pub(crate) device: Option<Box<StreamDevice>>,
    /// Length of the graph's cycles that the loop gets; `None`: it gets none.
    pub(crate) quantum: Option<u32>,
    /// Calls that the control thread knows to have been served.
    answered_calls: u32,
}

impl StreamPart {
    /// Returns the part of a device without streams.
    #[must_use]
    pub fn new(orders: Consumer<StreamOrder>, returns: Producer<StreamReturn>) -> Self {
        Self { orders, returns, device: None, quantum: None, answered_calls: 0 }
    }

    /// Returns whether there are streams, or were a moment ago. Thread: cycle.
    #[inline]
    pub fn has_device(&self) -> bool {
        self.device.is_some()
    }

    /// Returns whether streams need the graph's cycles. Thread: cycle.
    pub fn need_cycles(&self) -> bool {
        self.device.as_ref().is_some_and(|all| all.device.recorders().need_cycles())
    }

    /// Has the device's own cycles bring the frames of all streams that record what it captures.
    /// Thread: cycle.
    pub fn follow_capture(&mut self) {
        if let Some(all) = &mut self.device {
            all.device.recorders_mut().feed(|_| true);
        }
    }

    /// Has the graph's cycles bring the frames of the streams that record in `plan`. Thread: cycle.
    pub fn follow_plan(&mut self, plan: &Plan) {
        if let Some(all) = &mut self.device {
            let recorders = all.device.recorders_mut();
            recorders.feed(|memory| plan.recording(memory.stream).is_some());
        }
    }

    fn memory_of(&mut self, number: u32) -> Option<&mut DeviceStream> {
        let mut memories = self.device.as_mut()?.device.memories_mut();
        memories.find(|memory| memory.stream == number)
    }

    fn give_back(&mut self, returned: StreamReturn) {
        // There is room: see `returns`.
        if let Err(rtrb::PushError::Full(lost)) = self.returns.push(returned) {
            // Freeing it here would take a lock.
            mem::forget(lost);
        }
    }

    /// Gives back what was closed and is not heard any more. Thread: cycle.
    pub fn give_back_closed(&mut self, host: &impl StreamHost) {
        let mut any = false;
        while let Some(stream) = self.device.as_mut().and_then(|all| all.device.take_closed()) {
            self.give_back(StreamReturn::Stream(stream));
            any = true;
        }
        while let Some(recorder) =
            self.device.as_mut().and_then(|all| all.device.recorders_mut().take_closed())
        {
            self.give_back(StreamReturn::Recorder(recorder));
            any = true;
        }
        if any {
            host.call_control();
        }
    }

    /// Takes what the control thread wants of the streams. Thread: cycle.
    pub fn take_orders(&mut self, host: &mut impl StreamHost) {
        while let Ok(order) = self.orders.pop() {
            let refused = match order {
                StreamOrder::Begin(device) if !host.plays(device.cycle.channels()) => {
                    Some(StreamReturn::Device { device, is_cut: true })
                }
                StreamOrder::Begin(device) => {
                    self.end(host, true);
                    self.device = Some(device);
                    host.play_streams(true);
                    None
                }
                StreamOrder::End => {
                    self.end(host, false);
                    None
                }
                order => self.obey(order),
            };
            if let Some(refused) = refused {
                self.give_back(refused);
                host.call_control();
            }
        }
    }

    /// Carries out an order for the streams of the loop; returns what has no place there.
    fn obey(&mut self, order: StreamOrder) -> Option<StreamReturn> {
        let device = self.device.as_deref_mut().map(|all| &mut all.device);
        match (order, device) {
            (StreamOrder::Add(stream), Some(device)) => {
                device.add(stream).err().map(StreamReturn::Stream)
            }
            (StreamOrder::Add(stream), None) => Some(StreamReturn::Stream(stream)),
            (StreamOrder::Record(recorder), Some(device)) => {
                device.recorders_mut().add(recorder).err().map(StreamReturn::Recorder)
            }
            (StreamOrder::Record(recorder), None) => Some(StreamReturn::Recorder(recorder)),
            (StreamOrder::Keep(room), Some(device)) => {
                device.recorders_mut().set_monitor(room).map(StreamReturn::Kept)
            }
            (StreamOrder::Keep(room), None) => Some(StreamReturn::Kept(room)),
            (StreamOrder::Feed { stream, slabs }, _) => match self.memory_of(stream) {
                Some(memory) => {
                    memory.feed.slabs = slabs;
                    None
                }
                None => Some(StreamReturn::Slabs(slabs)),
            },
            (StreamOrder::Hear { stream, channels }, _) => {
                if let Some(memory) = self.memory_of(stream) {
                    memory.feed.heard = channels;
                }
                None
            }
            (StreamOrder::Route { stream, channel, to }, Some(device)) => {
                device.route(|memory| memory.stream == stream, channel, to);
                None
            }
            (StreamOrder::Close(number), Some(device)) => {
                device.close(|memory| memory.stream == number);
                device.recorders_mut().close(|memory| memory.stream == number);
                None
            }
            // Without a loop, there is no stream that these are for.
            (StreamOrder::Route { .. } | StreamOrder::Close(_), None) => None,
            // Orders for the loop itself: see `take_orders`.
            (StreamOrder::Begin(_) | StreamOrder::End, _) => None,
        }
    }

    /// Gives everything back: the loop has no streams any more, or the device goes (`is_cut`).
    /// Thread: cycle.
    pub fn end(&mut self, host: &mut impl StreamHost, is_cut: bool) {
        let Some(mut all) = self.device.take() else { return };
        if let Some(card) = host.card() {
            all.device.finish(Futex.now_ns(), card);
        }
        host.play_streams(false);
        while let Some(stream) = all.device.take_any() {
            self.give_back(StreamReturn::Stream(stream));
        }
        while let Some(recorder) = all.device.recorders_mut().take_any() {
            self.give_back(StreamReturn::Recorder(recorder));
        }
        self.quantum = None;
        self.give_back(StreamReturn::Device { device: all, is_cut });
        host.call_control();
    }

    /// The thread ends, and has given everything back.
    pub fn leave(mut self) {
        self.give_back(StreamReturn::Left);
    }

    /// Counts the frames that were not rendered in time since the last call. Thread: cycle.
    pub fn count_lost_frames(&mut self, shared: &DeviceShared) {
        if let Some(all) = &mut self.device {
            shared.note_lost_frames(all.device.take_lost_frames());
        }
    }

    /// Does what is to be done without cycles, with the device's gains; returns when to do so
    /// again. Thread: cycle.
    pub fn serve(&mut self, host: &mut impl StreamHost, gains: Gains) -> Option<u64> {
        self.take_orders(host);
        let card = host.card()?;
        let device = &mut self.device.as_mut()?.device;
        device.set_volume(gains);
        let wake_ns = device.wake(Futex.now_ns(), card);
        self.give_back_closed(host);
        wake_ns
    }

    /// Has the control thread kick programs whose wishes were called for before the `calls` of the
    /// device's thread. Thread: cycle.
    pub fn answer_calls(&mut self, calls: u32, shared: &DeviceShared, host: &impl StreamHost) {
        shared.note_answered(calls);
        if mem::replace(&mut self.answered_calls, calls) != calls && self.has_device() {
            host.call_control();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::stream_rings;

    /// A driver that plays no streams.
    struct NoCard;

    impl StreamHost for NoCard {
        fn card(&mut self) -> Option<&mut dyn Card> {
            None
        }

        fn plays(&mut self, _channels: usize) -> bool {
            false
        }

        fn play_streams(&mut self, _on: bool) {
            panic!("it plays none");
        }

        fn call_control(&self) {}
    }

    #[test]
    fn a_loop_that_was_ordered_for_another_driver_comes_back() {
        let ((mut orders, mut returns), (theirs, to_control)) = stream_rings();
        let mut part = StreamPart::new(theirs, to_control);
        let device = StreamDevice::new(48_000, 2, Gains::default(), 64);
        orders.push(StreamOrder::Begin(device)).expect("room");
        part.take_orders(&mut NoCard);
        assert!(!part.has_device());
        assert!(matches!(returns.pop(), Ok(StreamReturn::Device { is_cut: true, .. })));
    }
}
