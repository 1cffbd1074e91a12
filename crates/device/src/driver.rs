//! The driver trait and what a driver exchanges with the graph.

use mix::Card;
use rt::shm::SLOTS_PER_SLAB;

/// What sets the speed of a driver's cycles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pacing {
    /// The clock: a cycle must end before the next is due, and a client that does not finish is
    /// late.
    RealTime,
    /// The graph: the next cycle begins when the graph has finished, and no client is late.
    WhenDone,
}

/// Why a driver woke.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wake {
    /// A cycle is due.
    Cycle {
        /// When it should have begun, `CLOCK_MONOTONIC` ns: the input of the frame clock.
        due_ns: u64,
        /// How late the cycle is, in µs, if the device lost frames before it (an xrun).
        xrun_us: Option<u32>,
    },
    /// The driver has finished: the server stops.
    End,
}

/// Numbers of a driver's channels, which become ports of the client `system`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Channels {
    /// Capture ports.
    pub capture: u32,
    /// Playback ports.
    pub playback: u32,
    /// Monitor ports, which repeat the first playback ports.
    pub monitors: u32,
}

impl Channels {
    /// Returns the number of the first monitor port among the ports that the driver writes.
    /// Monitors begin a slab of their own: a program that may hear what is captured, and nothing
    /// else, maps the whole slab.
    #[must_use]
    pub fn first_monitor(&self) -> u32 {
        self.capture.checked_next_multiple_of(SLOTS_PER_SLAB).unwrap_or(u32::MAX)
    }

    /// Returns how many slots of the server's slabs the ports take that the driver writes.
    #[must_use]
    pub fn slots(&self) -> u32 {
        match self.monitors {
            0 => self.capture,
            monitors => self.first_monitor().saturating_add(monitors),
        }
    }
}

/// The latency that a device adds to the quantum in which a sample is captured or computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeviceLatency {
    /// Frames from the connector to the capture ports.
    pub capture_frames: u32,
    /// Frames from the playback ports to the connector.
    pub playback_frames: u32,
    /// Quanta queued in the device ahead of the one that is written, without the one that plays
    /// meanwhile.
    pub playback_quanta: u32,
}

/// The samples of the playback ports, mixed when the driver asks for them.
pub trait Playback {
    /// Mixes channel `channel` of the cycle into `samples`: silence without a connection, and never
    /// NaN or infinity. Thread: cycle.
    fn mix_into(&mut self, channel: u32, samples: &mut [f32]);

    /// Returns whether channel `channel` has a connection; it is silent otherwise. Thread: cycle.
    fn is_played_into(&self, _channel: u32) -> bool {
        true
    }
}

/// The capture ports, into which the driver writes.
pub trait Capture {
    /// Returns the samples of a port for the coming cycle, one quantum of them. Capture ports are
    /// numbered from 0, monitor ports from [`Channels::first_monitor`]. Thread: cycle.
    fn channel(&mut self, channel: u32) -> Option<&mut [f32]>;

    /// Returns whether `channel` has a connection. A channel without one may keep old samples: a
    /// client that is connected to it reads only what was written in the same cycle. Thread: cycle.
    fn is_heard(&self, _channel: u32) -> bool {
        true
    }
}

/// A device or a clock that starts cycles.
///
/// It belongs to one thread at a time: to the one that opens it, to the driver thread once it has
/// been handed over, and to the one that closes it. What the driver thread calls is marked "Thread:
/// cycle".
pub trait Driver: Send {
    /// Returns a description for users: "timer", "file in.wav → out.wav".
    fn description(&self) -> String;

    /// Returns the numbers of channels; constant.
    fn channels(&self) -> Channels;

    /// Returns the sample rate in Hz; constant between `start` and `stop`.
    fn sample_rate_hz(&self) -> u32;

    /// Returns the latency of the device; constant.
    fn latency(&self) -> DeviceLatency {
        DeviceLatency::default()
    }

    /// Returns whether cycles wait for the clock or for the graph.
    fn pacing(&self) -> Pacing;

    /// Starts; the first cycle is due a quantum later. A driver that replaces another one is
    /// started before it is handed over to the driver thread, and then [resumed](Self::resume).
    ///
    /// # Errors
    /// A sentence that says what the device refused and what to do.
    fn start(&mut self, quantum: u32) -> Result<(), String>;

    /// Sleeps until the next cycle is due. Thread: cycle.
    fn wait(&mut self) -> Wake;

    /// Returns whether the device is gone or not ready, and a timer starts the cycles meanwhile.
    /// Thread: cycle.
    fn is_away(&self) -> bool {
        false
    }

    /// Returns when the next cycle is due, which is the deadline of the one that has begun. Thread:
    /// cycle.
    fn next_due_ns(&self) -> u64;

    /// Sets the length of the cycle that begins and of all after it. Thread: cycle.
    fn set_quantum(&mut self, quantum: u32);

    /// Writes the coming cycle's input to every capture port that has a connection: the port holds
    /// samples of another cycle or of another driver. Thread: cycle.
    fn read(&mut self, capture: &mut dyn Capture);

    /// Takes the output of a cycle of `frames` frames. Thread: cycle.
    fn write(&mut self, frames: u32, playback: &mut dyn Playback);

    /// Returns whether the driver may be paused while no program needs cycles: what it would have
    /// captured is lost, and nothing is played. Thread: cycle.
    fn can_park(&self) -> bool {
        false
    }

    /// Returns the device as the loop of streams plays on it, which then gets the playback of the
    /// cycles as well, instead of [`write`](Self::write); `None`: it plays no streams. It goes on
    /// while the driver is paused. Thread: cycle.
    fn card(&mut self) -> Option<&mut dyn Card> {
        None
    }

    /// The loop of streams begins to play on the card. If the graph is heard, what it plays is not
    /// interrupted for that. Thread: cycle.
    fn begin_streams(&mut self, _graph_is_heard: bool) {}

    /// The loop of streams has ended: [`write`](Self::write) gets the playback of the cycles again.
    /// Thread: cycle.
    fn end_streams(&mut self) {}

    /// Pauses: cycles continue without the driver, or none are run. Until `resume`, only
    /// `set_quantum` and `rest` are called; or the driver is handed back to be stopped. Thread:
    /// cycle.
    fn pause(&mut self) {}

    /// Returns whether it has hardware open that it could close while it is paused and nothing
    /// plays. Thread: cycle.
    fn can_close(&self) -> bool {
        false
    }

    /// Has its hardware closed, or left closed if it is away, while it is paused: it is opened when
    /// the driver is resumed, or when the loop of streams opens the card. Thread: cycle.
    fn close(&mut self) {}

    /// Returns whether its hardware is closed because nothing plays. Thread: cycle.
    fn is_closed(&self) -> bool {
        false
    }

    /// Returns whether its hardware is not plugged in, as far as that is known. Thread: cycle.
    fn is_unplugged(&self) -> bool {
        false
    }

    /// Gives up what another program is to have, and takes hardware that has come back, while the
    /// driver is paused: called in each cycle that continues without the driver, and when the
    /// thread is called while none are run. Thread: cycle.
    fn rest(&mut self) {}

    /// Continues with the cycle that begins now; the next is due a quantum later. Thread: cycle.
    fn resume(&mut self);

    /// Stops after everything written so far has reached the device.
    fn stop(&mut self) {}

    /// Returns a summary for users once the driver has stopped, if there is one.
    fn report(&self) -> Option<String> {
        None
    }
}

/// Returns a silent buffer whose pages have been written to: a cycle must not be the first to touch
/// a page.
pub(crate) fn touched(frames: usize) -> Vec<f32> {
    let mut samples = vec![1.0; frames];
    samples.fill(0.0);
    samples
}

/// Writes silence to all capture ports. Thread: cycle.
pub(crate) fn silence(channels: u32, capture: &mut dyn Capture) {
    for channel in 0..channels {
        if let Some(port) = capture.channel(channel) {
            dsp::silence(port);
        }
    }
}
