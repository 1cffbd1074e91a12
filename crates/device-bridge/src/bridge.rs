//! One direction between a device and the graph, which have separate clocks.
//!
//! All samples are aligned with the graph's clock: what a device captures at the graph's frame `x`
//! is heard in the cycle that has frame `x + latency`, and what programs play at frame `x` leaves
//! the device when the graph is at `x + latency`. A control loop per direction keeps them aligned
//! to a fraction of a frame.

use std::sync::Arc;

use crate::resampler::{Fixed, Resampler};
use crate::steering::Steering;
use crate::timeline::Timeline;

/// Rates and lengths of a device and of the graph that it joins.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Layout {
    /// Channels of this direction.
    pub channels: usize,
    /// The graph's rate, Hz.
    pub graph_hz: f64,
    /// The device's rate, Hz.
    pub device_hz: f64,
    /// Frames that the device moves at once.
    pub device_quantum: u32,
    /// Frames that are queued in the device after a move.
    pub device_queue: u32,
    /// Frames of the graph by which either side may be late.
    pub margin: u32,
}

impl Layout {
    /// Frames of the graph per frame of the device.
    fn ratio(&self) -> f64 {
        self.graph_hz / self.device_hz
    }

    /// Returns the latency from the device to the graph, in frames, for cycles of `quantum` frames:
    /// the quantum of the cycle, the one that the device collects, the filter, the margin.
    #[must_use]
    pub fn capture_latency(&self, quantum: u32) -> u32 {
        let device = (f64::from(self.device_quantum) + Resampler::DELAY) * self.ratio();
        quantum + device.ceil() as u32 + self.margin
    }

    /// Returns the latency from the graph to the device, in frames: the quantum that is computed,
    /// the device's queue, the filter, the margin.
    #[must_use]
    pub fn playback_latency(&self, quantum: u32) -> u32 {
        let device = f64::from(self.device_queue) * self.ratio()
            + Resampler::DELAY
            + Resampler::DELAY * self.ratio();
        quantum + device.ceil() as u32 + self.margin
    }
}

/// Statistics of one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct BridgeStats {
    /// How often it was aligned again: at starts, after xruns, at new quanta.
    pub locks: u64,
    /// Alignment error in the newest cycle, in frames.
    pub off_frames: f64,
    /// How much faster the device runs than its nominal rate, relative to the graph's clock.
    pub drift: f64,
}

/// From the device to the graph.
#[derive(Debug)]
pub struct CaptureBridge {
    layout: Layout,
    timeline: Arc<Timeline>,
    resampler: Resampler,
    steering: Steering,
    /// Position on the timeline where the next frame is written; `None`: not locked.
    at: Option<u64>,
    latency: u32,
    stats: BridgeStats,
}

impl CaptureBridge {
    /// Allocates: not for a cycle.
    ///
    /// # Errors
    /// If the rates cannot be converted into each other.
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

    /// Aligns again with the next cycle: the device has lost frames, or the graph has another
    /// quantum.
    pub fn unlock(&mut self) {
        self.at = None;
    }

    /// Returns a channel's buffer for the device's next `device_quantum` frames. Thread: the
    /// card's.
    pub fn channel(&mut self, channel: usize) -> Option<&mut [f32]> {
        let frames = self.layout.device_quantum as usize;
        self.resampler.input.get_mut(channel * frames..(channel + 1) * frames)
    }

    /// Takes the frames in [`channel`](Self::channel), of which the device captured the last when
    /// the graph was at `graph_position`. `latency`: how much later the graph hears them. Thread:
    /// the card's.
    pub fn cycle(&mut self, graph_position: f64, latency: u32) {
        let frames = f64::from(self.layout.device_quantum);
        if latency != self.latency {
            (self.latency, self.at) = (latency, None);
        }
        if self.at.is_none() {
            self.resampler.reset();
        }
        // The correct position of the next output frame.
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

    /// Returns the statistics.
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
    /// Position on the timeline where the next frame is read; `None`: not locked.
    at: Option<u64>,
    latency: u32,
    stats: BridgeStats,
    made: usize,
}

impl PlaybackBridge {
    /// Allocates: not for a cycle.
    ///
    /// # Errors
    /// If the rates cannot be converted into each other.
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

    /// Aligns again with the next cycle: the device has lost frames, or the graph has another
    /// quantum.
    pub fn unlock(&mut self) {
        self.at = None;
    }

    /// Computes the device's next frames. When the graph is at `graph_position`, the device still
    /// has `device_queue` frames less a quantum queued before them. `latency`: how much later than
    /// the graph it plays them. Thread: the card's.
    pub fn cycle(&mut self, graph_position: f64, latency: u32) {
        let Layout { device_quantum, device_queue, channels, .. } = self.layout;
        if latency != self.latency {
            (self.latency, self.at) = (latency, None);
        }
        let ratio = self.layout.ratio() * (1.0 + self.steering.drift());
        let ahead = f64::from(device_queue.saturating_sub(device_quantum)) * ratio;
        // The correct position of the next frame to read.
        let due = graph_position + ahead - f64::from(latency);
        let margin = f64::from(self.layout.margin.max(1));
        let position = |at: u64, resampler: &Resampler| at as f64 - resampler.lag();
        let at = match self.at {
            Some(at) if (due - position(at, &self.resampler)).abs() <= margin => at,
            _ => {
                self.resampler.reset();
                self.steering.lock();
                self.stats.locks += 1;
                (due + self.resampler.lag()).round().max(0.0) as u64
            }
        };
        let off = due - position(at, &self.resampler);
        let more = self.steering.update(off, f64::from(device_quantum) / self.layout.device_hz);
        self.stats = BridgeStats { off_frames: off, drift: -self.steering.drift(), ..self.stats };
        // Taking more input means fewer output frames per input frame.
        self.resampler.set_more(1.0 / (1.0 + more) - 1.0);
        let wanted = self.resampler.wanted();
        let input = &mut self.resampler.input;
        for (channel, samples) in input.chunks_exact_mut(wanted.max(1)).take(channels).enumerate() {
            self.timeline.get(channel, at, samples);
        }
        self.made = self.resampler.run();
        self.at = Some(at + wanted as u64);
    }

    /// Returns the frames that [`cycle`](Self::cycle) computed for a channel. Thread: the card's.
    #[must_use]
    pub fn channel(&self, channel: usize) -> &[f32] {
        let range = channel * self.made..(channel + 1) * self.made;
        self.resampler.output.get(range).unwrap_or_default()
    }

    /// Returns the statistics.
    #[must_use]
    pub fn stats(&self) -> BridgeStats {
        self.stats
    }
}
