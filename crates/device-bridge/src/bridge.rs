//! One direction between a device and the graph, each with a clock of its own.
//!
//! Everything is put where it belongs on the graph's clock: what a device captures at the graph's
//! frame `x` is heard in the cycle that has frame `x + latency`, and what programs play at frame
//! `x` leaves the device when the graph is at `x + latency`. A loop per direction keeps it there,
//! to a fraction of a frame.

use std::sync::Arc;

use crate::resampler::{Fixed, Resampler};
use crate::steering::Steering;
use crate::timeline::Timeline;

/// Rates and lengths of a device and of the graph that it is to be part of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Layout {
    /// Channels of this direction.
    pub channels: usize,
    /// The graph's rate, Hz.
    pub graph_hz: f64,
    /// The device's rate, Hz.
    pub device_hz: f64,
    /// Frames of the device that are moved at once.
    pub device_quantum: u32,
    /// Frames that wait in the device when they have been moved.
    pub device_queue: u32,
    /// Frames of the graph that either side may be late by.
    pub margin: u32,
}

impl Layout {
    /// Frames of the graph for a frame of the device.
    fn ratio(&self) -> f64 {
        self.graph_hz / self.device_hz
    }

    /// Frames from the device to the graph, for cycles of `quantum` frames: the quantum that a
    /// cycle is ahead of its first frame, the one that the device collects, the filter, the margin.
    #[must_use]
    pub fn capture_latency(&self, quantum: u32) -> u32 {
        let device = (f64::from(self.device_quantum) + Resampler::DELAY) * self.ratio();
        quantum + device.ceil() as u32 + self.margin
    }

    /// Frames from the graph to the device: the quantum that is computed, the device's queue, the
    /// filter, the margin.
    #[must_use]
    pub fn playback_latency(&self, quantum: u32) -> u32 {
        let device = f64::from(self.device_queue) * self.ratio()
            + Resampler::DELAY
            + Resampler::DELAY * self.ratio();
        quantum + device.ceil() as u32 + self.margin
    }
}

/// What a direction has been through.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct BridgeStats {
    /// How often it was put to its place anew: at starts, after xruns, at new quanta.
    pub locks: u64,
    /// Frames that it was off its place in the newest cycle.
    pub off_frames: f64,
    /// How much faster the device runs than it says, relative, against the graph's clock.
    pub drift: f64,
}

/// From the device to the graph.
#[derive(Debug)]
pub struct CaptureBridge {
    layout: Layout,
    timeline: Arc<Timeline>,
    resampler: Resampler,
    steering: Steering,
    /// Where on the timeline the next frame is written; `None`: not locked.
    at: Option<u64>,
    latency: u32,
    stats: BridgeStats,
}

impl CaptureBridge {
    /// Thread: not the cycle's.
    ///
    /// # Errors
    /// Rates that cannot be converted into each other.
    pub fn new(layout: Layout, timeline: Arc<Timeline>) -> Result<Self, String> {
        let chunk = layout.device_quantum as usize;
        let resampler = Resampler::new(
            layout.channels,
            layout.device_hz,
            layout.graph_hz,
            chunk,
            Fixed::Input,
        )?;
        let steering = Steering::new(layout.graph_hz);
        Ok(Self {
            layout,
            timeline,
            resampler,
            steering,
            at: None,
            latency: 0,
            stats: BridgeStats::default(),
        })
    }

    /// The device has lost frames, or the graph has another quantum: it is put to its place with
    /// the next cycle.
    pub fn unlock(&mut self) {
        self.at = None;
    }

    /// A channel's place for the device's next frames, `device_quantum` of them. Thread: the
    /// card's.
    pub fn channel(&mut self, channel: usize) -> Option<&mut [f32]> {
        let frames = self.layout.device_quantum as usize;
        self.resampler.input.get_mut(channel * frames..(channel + 1) * frames)
    }

    /// Takes the frames in [`channel`](Self::channel), the last of which the device had when the
    /// graph was at `graph_position`. `latency`: how much later the graph hears them. Thread: the
    /// card's.
    pub fn cycle(&mut self, graph_position: f64, latency: u32) {
        let frames = f64::from(self.layout.device_quantum);
        if latency != self.latency {
            (self.latency, self.at) = (latency, None);
        }
        if self.at.is_none() {
            self.resampler.reset();
        }
        // Where the next frame that is put out belongs.
        let ratio = self.layout.ratio() * (1.0 + self.steering.drift());
        let due = graph_position + f64::from(latency) - (frames + self.resampler.lag()) * ratio;
        let margin = f64::from(self.layout.margin.max(1));
        let at = match self.at {
            Some(at) if (due - at as f64).abs() <= margin => at,
            Some(_) | None => {
                if self.at.is_some() {
                    self.resampler.reset();
                }
                self.steering.lock();
                self.stats.locks += 1;
                due.round().max(0.0) as u64
            }
        };
        let off = due - at as f64;
        let more = self.steering.update(off, frames / self.layout.device_hz);
        self.stats = BridgeStats { off_frames: off, drift: -self.steering.drift(), ..self.stats };
        self.resampler.set_more(more);
        let made = self.resampler.run();
        self.timeline.begin_at(at);
        for (channel, samples) in
            self.resampler.output.chunks_exact(made.max(1)).take(self.layout.channels).enumerate()
        {
            self.timeline.put(channel, at, samples);
        }
        self.timeline.publish(at + made as u64);
        self.at = Some(at + made as u64);
    }

    /// What it has been through.
    #[must_use]
    pub fn stats(&self) -> BridgeStats {
        self.stats
    }
}

/// From the graph to the device.
#[derive(Debug)]
pub struct PlaybackBridge {
    layout: Layout,
    timeline: Arc<Timeline>,
    resampler: Resampler,
    steering: Steering,
    /// From where on the timeline the next frame is read; `None`: not locked.
    at: Option<u64>,
    latency: u32,
    stats: BridgeStats,
    made: usize,
}

impl PlaybackBridge {
    /// Thread: not the cycle's.
    ///
    /// # Errors
    /// Rates that cannot be converted into each other.
    pub fn new(layout: Layout, timeline: Arc<Timeline>) -> Result<Self, String> {
        let chunk = layout.device_quantum as usize;
        let resampler = Resampler::new(
            layout.channels,
            layout.graph_hz,
            layout.device_hz,
            chunk,
            Fixed::Output,
        )?;
        let steering = Steering::new(layout.graph_hz);
        let stats = BridgeStats::default();
        Ok(Self { layout, timeline, resampler, steering, at: None, latency: 0, stats, made: 0 })
    }

    /// The device has lost frames, or the graph has another quantum: it is put to its place with
    /// the next cycle.
    pub fn unlock(&mut self) {
        self.at = None;
    }

    /// Makes the device's next frames, which follow `device_queue` frames less a quantum that it
    /// still has when the graph is at `graph_position`. `latency`: how much later than the graph it
    /// plays them. Thread: the card's.
    pub fn cycle(&mut self, graph_position: f64, latency: u32) {
        let Layout { device_quantum, device_queue, channels, .. } = self.layout;
        if latency != self.latency {
            (self.latency, self.at) = (latency, None);
        }
        let ratio = self.layout.ratio() * (1.0 + self.steering.drift());
        let ahead = f64::from(device_queue.saturating_sub(device_quantum)) * ratio;
        // Where the next frame that is put out is to come from.
        let due = graph_position + ahead - f64::from(latency);
        let margin = f64::from(self.layout.margin.max(1));
        let place = |at: u64, resampler: &Resampler| at as f64 - resampler.lag();
        let at = match self.at {
            Some(at) if (due - place(at, &self.resampler)).abs() <= margin => at,
            _ => {
                self.resampler.reset();
                self.steering.lock();
                self.stats.locks += 1;
                (due + self.resampler.lag()).round().max(0.0) as u64
            }
        };
        let off = due - place(at, &self.resampler);
        let more = self.steering.update(off, f64::from(device_quantum) / self.layout.device_hz);
        self.stats = BridgeStats { off_frames: off, drift: -self.steering.drift(), ..self.stats };
        // To take more is to put out less for what it takes.
        self.resampler.set_more(1.0 / (1.0 + more) - 1.0);
        let wanted = self.resampler.wanted();
        let input = &mut self.resampler.input;
        for (channel, samples) in input.chunks_exact_mut(wanted.max(1)).take(channels).enumerate() {
            self.timeline.get(channel, at, samples);
        }
        self.made = self.resampler.run();
        self.at = Some(at + wanted as u64);
    }

    /// The frames that [`cycle`](Self::cycle) made of a channel. Thread: the card's.
    #[must_use]
    pub fn channel(&self, channel: usize) -> &[f32] {
        let range = channel * self.made..(channel + 1) * self.made;
        self.resampler.output.get(range).unwrap_or_default()
    }

    /// What it has been through.
    #[must_use]
    pub fn stats(&self) -> BridgeStats {
        self.stats
    }
}
