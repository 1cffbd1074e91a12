//! The device's streams on the driver thread: in cycles and without.
//!
//! In cycles, the loop that renders them gets what the graph plays; without, the thread sleeps as
//! long as the loop allows.

use device::{Driver, Playback};
use mix::{Card, GraphCycles};
use rt::park::Park;
use rt::shm::CycleInfo;
use sys::futex::Futex;

use super::CycleThread;
use super::buffers::{PlaybackMix, mix};
use super::shared::CycleShared;
use crate::stream_part::{StreamDevice, StreamHost, StreamPart};

/// The driver thread, without the streams.
struct DriverHost<'a> {
    driver: &'a mut dyn Driver,
    shared: &'a CycleShared,
    /// Programs of the graph run in the cycles.
    graph_is_heard: bool,
}

impl StreamHost for DriverHost<'_> {
    fn card(&mut self) -> Option<&mut dyn Card> {
        self.driver.card()
    }

    fn plays(&mut self, channels: usize) -> bool {
        let is_wide = self.driver.channels().playback as usize == channels;
        is_wide && self.driver.card().is_some()
    }

    fn play_streams(&mut self, on: bool) {
        if on {
            self.driver.begin_streams(self.graph_is_heard);
        } else {
            self.driver.end_streams();
        }
    }

    fn call_control(&self) {
        self.shared.waker.wake();
    }
}

impl CycleThread {
    fn with_streams(&mut self) -> (&mut StreamPart, DriverHost<'_>) {
        let graph_is_heard = self.needs_cycles(&*self.plan);
        let host = DriverHost { driver: &mut *self.driver, shared: &self.shared, graph_is_heard };
        (&mut self.streams, host)
    }

    /// Takes what the control thread wants of the streams. Thread: cycle.
    pub(super) fn take_stream_orders(&mut self) {
        let (streams, mut host) = self.with_streams();
        streams.take_orders(&mut host);
        self.streams.follow_plan(&*self.plan);
    }

    /// Gives all streams back: the device goes. Thread: cycle.
    pub(super) fn cut_streams(&mut self) {
        let (streams, mut host) = self.with_streams();
        streams.end(&mut host, true);
    }

    /// Lets the loop know of the graph's cycles: that there are some, and how long they are.
    /// Thread: cycle.
    pub(super) fn follow_graph(&mut self) {
        // A card that is being opened gets the cycles from when it is there.
        let is_open = self.driver.card().is_some_and(|card| card.is_open());
        let quantum = (is_open && !self.plan.freewheels).then_some(self.plan.quantum);
        if self.streams.quantum == quantum {
            return;
        }
        let Some(quantum) = quantum else { return self.leave_graph() };
        let frames = u64::from(quantum);
        let cycles = GraphCycles { frames, output_after: if self.sync { 0 } else { frames } };
        if let (Some(all), Some(card)) = (&mut self.streams.device, self.driver.card()) {
            all.device.begin_graph(Futex.now_ns(), card, cycles);
            self.streams.quantum = Some(quantum);
        }
    }

    /// The loop gets no more cycles. Thread: cycle.
    pub(super) fn leave_graph(&mut self) {
        if self.streams.quantum.take().is_some()
            && let Some(all) = &mut self.streams.device
        {
            all.device.end_graph(Futex.now_ns());
        }
    }

    /// Plays what the graph has made in a cycle, with the streams. Thread: cycle.
    pub(super) fn play_with_streams(&mut self, cycle: u32, quantum: u32) {
        let calls = self.shared.device.call.count();
        // What was played before the loop knew of cycles was silence.
        if self.streams.quantum.is_none() {
            return;
        }
        let (Some(all), Some(card)) = (self.streams.device.as_deref_mut(), self.driver.card())
        else {
            return;
        };
        let StreamDevice { device, cycle: planes, recorded } = all;
        let recorded = recorded.get_mut(..quantum as usize).unwrap_or_default();
        device.record_graph(recorded, |memory, channel, into| {
            let channels = self.plan.recording(memory.stream).unwrap_or_default();
            mix(channels.get(channel).map_or(&[], Vec::as_slice), cycle, into);
        });
        planes.silence(quantum as usize);
        // The loop applies the device's volume, to what is rendered again as well.
        let mut mix = PlaybackMix { plan: &*self.plan, cycle, gains: None };
        for channel in 0..planes.channels() {
            let number = u32::try_from(channel).unwrap_or(u32::MAX);
            if mix.is_played_into(number) {
                mix.mix_into(number, planes.channel_mut(channel));
            }
        }
        device.set_volume(self.shared.device.gains.all());
        device.play_graph(Futex.now_ns(), card, planes);
        let (streams, host) = self.with_streams();
        streams.give_back_closed(&host);
        streams.answer_calls(calls, &host.shared.device, &host);
        self.streams.count_lost_frames(&self.shared.device);
    }

    /// Passes what streams play in the cycle that begins to the programs that hear them. Thread:
    /// cycle.
    pub(super) fn feed_graph(&mut self, info: CycleInfo) {
        // Other cycles are not the loop's.
        if self.streams.quantum != Some(info.quantum) {
            return;
        }
        let Some(all) = &mut self.streams.device else { return };
        all.device.feed_graph(info.quantum as usize);
        all.device.memories_mut().for_each(|memory| memory.feed.finish(info.cycle));
    }

    /// Does what is to be done without cycles; returns when to do so again. Thread: cycle.
    pub(super) fn serve_streams(&mut self) -> Option<u64> {
        let gains = self.shared.device.gains.all();
        let (streams, mut host) = self.with_streams();
        let wake_ns = streams.serve(&mut host, gains);
        self.streams.count_lost_frames(&self.shared.device);
        // A stream that records may have come.
        self.streams.follow_plan(&*self.plan);
        wake_ns
    }

    /// Has the control thread kick programs whose wishes were called for. Thread: cycle.
    pub(super) fn answer_calls(&mut self, calls: u32) {
        let (streams, host) = self.with_streams();
        streams.answer_calls(calls, &host.shared.device, &host);
    }
}
