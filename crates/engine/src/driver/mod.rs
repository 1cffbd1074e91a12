//! What starts cycles: a sound card, a timer, or sound files.
//!
//! A driver knows its device and its clock, nothing of clients. The driver thread calls it, cycle for
//! cycle, so that the quantum and the rule by which it wakes may differ from one cycle to the next.

mod alsa;
mod file;
mod monitored;
mod timer;

pub(crate) use alsa::may_share;
pub use alsa::{AlsaDriver, REFUSED, WhyAway};
pub(crate) use file::is_same_file;
pub use file::{FileDriver, FileDriverError, FileOptions};
pub(crate) use monitored::Monitored;
pub use proto::driver::{AlsaOptions, AlsaSide, Dither, DriverChoice, WakeRule};
pub use timer::Timer;

/// How far from real time a driver's cycles are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// A cycle must end before the next is due; a client that does not finish is late.
    RealTime,
    /// The next cycle begins when the graph has ended: nobody is late.
    WhenDone,
}

/// Why a driver woke.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wake {
    /// A cycle is due.
    Cycle {
        /// When it should have begun, `CLOCK_MONOTONIC` ns: what the frame clock is fed with.
        due_ns: u64,
        /// The device lost frames before it: an xrun that was noticed so late, in µs.
        xrun_us: Option<u32>,
    },
    /// There is nothing more to drive: the server stops.
    End,
}

/// Numbers of a driver's channels, which become ports of the client `system`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Channels {
    /// Capture ports.
    pub capture: u32,
    /// Playback ports.
    pub playback: u32,
    /// Ports that hear what the first playback ports do; they are written as the capture ports after the last one.
    pub monitors: u32,
}

impl Channels {
    /// Ports that the driver writes, and so slots of the server's slabs.
    #[must_use]
    pub fn outputs(&self) -> u32 {
        self.capture.saturating_add(self.monitors)
    }
}

/// What the device adds to the way of a sample, beyond the quantum in which it is fetched or computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeviceLatency {
    /// Frames from the connector to the capture ports.
    pub capture_frames: u32,
    /// Frames from the playback ports to the connector.
    pub playback_frames: u32,
    /// Quanta that wait in the device before the one that is written, beyond the one that plays meanwhile.
    pub playback_quanta: u32,
}

/// Samples of the playback ports, mixed when the driver asks for them.
pub trait Playback {
    /// Mixes channel `channel` of the cycle into `samples`, silence where nobody is connected; no NaN, no
    /// infinity. Thread: cycle.
    fn mix_into(&mut self, channel: u32, samples: &mut [f32]);

    /// Whether anybody is connected to channel `channel`; it is silent otherwise. Thread: cycle.
    fn is_played_into(&self, _channel: u32) -> bool {
        true
    }
}

/// Where the driver puts what it captured.
pub trait Capture {
    /// The samples of capture port, or then monitor, `channel` for the coming cycle, one quantum of them. Thread: cycle.
    fn channel(&mut self, channel: u32) -> Option<&mut [f32]>;

    /// Whether anybody is connected to `channel`. What lies in others may stay there: nobody hears it, and who is connected
    /// hears what was put there in the same cycle. Thread: cycle.
    fn is_heard(&self, _channel: u32) -> bool {
        true
    }
}

/// Silence in memory that was written to, and not only reserved: a cycle must not be the first to touch a page.
fn touched(frames: usize) -> Vec<f32> {
    let mut samples = vec![1.0; frames];
    samples.fill(0.0);
    samples
}

/// Silence on all capture ports. Thread: cycle.
fn silence(channels: u32, capture: &mut dyn Capture) {
    for channel in 0..channels {
        if let Some(port) = capture.channel(channel) {
            dsp::silence(port);
        }
    }
}

/// A device or a clock that starts cycles. It belongs to one thread at a time: to whoever opens it, to the driver thread
/// once it has been handed over, and to whoever closes it. What the driver thread calls is marked "Thread: cycle".
pub trait Driver: Send {
    /// What it is, for people: "timer", "file in.wav → out.wav".
    fn description(&self) -> String;

    /// Its channels; constant.
    fn channels(&self) -> Channels;

    /// Hz; constant between `start` and `stop`.
    fn sample_rate_hz(&self) -> u32;

    /// Latency of the device; constant.
    fn latency(&self) -> DeviceLatency {
        DeviceLatency::default()
    }

    /// Whether cycles wait for the clock or for the graph.
    fn pace(&self) -> Pace;

    /// Begins; the first cycle is due a quantum later. A driver that takes another one's place is started before it is
    /// handed over, and [resumes](Self::resume) then.
    ///
    /// # Errors
    /// A sentence that says what the device refused and what to do.
    fn start(&mut self, quantum: u32) -> Result<(), String>;

    /// Sleeps until the next cycle is due. Thread: cycle.
    fn wait(&mut self) -> Wake;

    /// Whether the device is gone, or being made ready, and cycles go on by a timer meanwhile. Thread: cycle.
    fn is_away(&self) -> bool {
        false
    }

    /// When the cycle after the one that has begun is due: the deadline of this one. Thread: cycle.
    fn next_due_ns(&self) -> u64;

    /// The cycle that begins, and all after it, have this length. Thread: cycle.
    fn set_quantum(&mut self, quantum: u32);

    /// Fetches the coming cycle's input, on every capture port that is heard: what lies there is another cycle's, or another
    /// driver's. Thread: cycle.
    fn read(&mut self, capture: &mut dyn Capture);

    /// Takes the output of a cycle of `frames` frames. Thread: cycle.
    fn write(&mut self, frames: u32, playback: &mut dyn Playback);

    /// Cycles go on without the driver from now on: none of its methods is called until `resume`, but `set_quantum`; or
    /// it is handed back, to be stopped. Thread: cycle.
    fn pause(&mut self) {}

    /// The cycle that begins now is the driver's again, and the next is due a quantum later. Thread: cycle.
    fn resume(&mut self);

    /// Ends; everything written so far reaches the device.
    fn stop(&mut self) {}

    /// What there is to say of its work, once it has ended.
    fn report(&self) -> Option<String> {
        None
    }
}
