//! The cycles of a further device: while what it captures is recorded, its thread reads a quantum
//! at a time. No program of the graph takes part in them. Thread: the device's.

use device::{Capture, Channels, Wake};
use mix::GraphCycles;
use rt::park::Park;
use rt::stream::Gains;
use sys::futex::Futex;

use crate::device_thread::Host;
use crate::stream_part::{StreamDevice, StreamHost, StreamPart};

/// What a device captures in a cycle.
#[derive(Debug)]
pub struct Captured {
    quantum: u32,
    channels: Vec<Vec<f32>>,
}

impl Captured {
    /// Returns room for cycles of `quantum` frames. Its memory has been touched: a cycle must not
    /// be the first to do so.
    pub fn new(channels: &Channels, quantum: u32) -> Self {
        let room = |_| {
            let mut samples = vec![1.0; quantum as usize];
            samples.fill(0.0);
            samples
        };
        Self { quantum, channels: (0..channels.capture).map(room).collect() }
    }

    /// Returns whether the device captures nothing.
    pub fn is_empty(&self) -> bool {
        self.channels.is_empty()
    }

    fn copy(&self, channel: Option<&u32>, into: &mut [f32]) {
        let samples = channel.and_then(|channel| self.channels.get(*channel as usize));
        match samples.and_then(|samples| samples.get(..into.len())) {
            Some(samples) => into.copy_from_slice(samples),
            None => into.fill(0.0),
        }
    }
}

impl Capture for Captured {
    fn channel(&mut self, channel: u32) -> Option<&mut [f32]> {
        self.channels.get_mut(channel as usize).map(Vec::as_mut_slice)
    }
}

impl Host {
    /// Waits for the next cycle, and reads what was captured before it. Thread: cycle.
    pub fn wait_for_cycle(&mut self, captured: &mut Captured) -> Wake {
        sys::cycle_guard::leave();
        let wake = self.driver.wait();
        sys::cycle_guard::enter();
        self.driver.read(captured);
        wake
    }
}

impl StreamPart {
    /// Records what was captured before a cycle, and plays on: a cycle plays silence itself.
    /// Thread: cycle.
    pub fn run_cycle(&mut self, host: &mut Host, captured: &Captured, gains: Gains) {
        let now_ns = Futex.now_ns();
        let (Some(all), Some(card)) = (self.device.as_deref_mut(), host.card()) else { return };
        let StreamDevice { device, cycle: silence, recorded } = all;
        device.set_volume(gains);
        if !card.is_open() {
            // It gets the cycles from when it is there.
            if self.quantum.take().is_some() {
                device.end_graph(now_ns);
            }
            device.wake(now_ns, card);
        } else if self.quantum == Some(captured.quantum) {
            silence.silence(captured.quantum as usize);
            device.play_graph(now_ns, card, silence);
            device.feed_graph(captured.quantum as usize);
            let samples = recorded.get_mut(..captured.quantum as usize).unwrap_or_default();
            device.record_graph(samples, |memory, channel, into| {
                captured.copy(memory.captured.get(channel), into);
            });
        } else {
            // What a cycle plays comes when the next one is due.
            let frames = captured.quantum.into();
            device.begin_graph(now_ns, card, GraphCycles { frames, output_after: frames });
            self.quantum = Some(captured.quantum);
        }
        self.give_back_closed(host);
    }

    /// No cycle follows. Thread: cycle.
    pub fn end_cycles(&mut self) {
        if self.quantum.take().is_some()
            && let Some(all) = &mut self.device
        {
            all.device.end_graph(Futex.now_ns());
        }
    }
}
