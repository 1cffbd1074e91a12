//! Streams: frames on their way between one program and a device, without cycles. Any program that
//! has connected may have some; they end with its connection.
//!
//! 1. [`StreamRequest::Device`]: the rate and the channels to convert to.
//! 2. [`StreamRequest::Open`]: the server grants a ring, which may be smaller than asked for.
//! 3. The program makes the ring, in which its wishes lie, and [`StreamRequest::Begin`] brings it.
//!    It may write and wish before the server has answered that. The ring of a stream that records
//!    is the server's: its program brings a page of wishes.
//!
//! From then on, everything goes through this memory. Only a wish that shall be obeyed at once
//! needs a [`StreamRequest::Call`], since the device may sleep.
//!
//! Each stream has a [`Volume`] in the server besides what its program wishes, and each device has
//! a [`DeviceVolume`], with a gain for each channel.
//!
//! Beside the device that drives the graph there may be *further* ones, by name, each with a thread
//! and a clock of its own.

use serde::{Deserialize, Serialize};

use crate::driver::AlsaOptions;
pub use crate::gain::{ChannelGains, Gain, NotAGain};
pub use crate::volume::{DeviceVolume, Volume, VolumeSource, VolumeSources};

/// A request about streams. The comment names the [`StreamReply`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum StreamRequest {
    /// Reads what streams on a device are to be converted to. [`StreamReply::Device`].
    Device {
        /// Name of a further device; `None`: the one that drives.
        device: Option<String>,
    },
    /// Reads all further devices. [`StreamReply::Devices`].
    Devices,
    /// Waits until something has changed. [`StreamReply::Changed`], at once if that has happened
    /// since `seen`. A connection waits once at a time.
    AwaitChange {
        /// The number of the last change that the program knows; 0 at first.
        seen: u64,
        /// Changes of what.
        of: Watched,
    },
    /// Adds a device: a sound card, or one without hardware, whose clock is a timer's.
    /// [`StreamReply::Added`], once it is open.
    Add(NewDevice),
    /// Removes a further device: its streams end. [`StreamReply::Removed`].
    Remove {
        /// Its name.
        device: String,
    },
    /// Asks for a stream. [`StreamReply::Granted`], with the descriptor of the stream page.
    Open(NewStream),
    /// Brings the memory of a granted stream, which begins to exist for the device; it holds at
    /// `position` until a wish. One descriptor: the ring, or the wish page of a stream that
    /// records. [`StreamReply::Begun`], with that of the ring for a stream that records;
    /// [`StreamReply::Granted`] if the ring is to be smaller.
    Begin {
        /// Its number.
        stream: u32,
        /// The position of its first frame: 0, or where a program goes on whose server has gone;
        /// [`MAX_STREAM_POSITION`](crate::limits::MAX_STREAM_POSITION) at most.
        position: u64,
    },
    /// Makes the device obey the wishes of a stream at once. [`StreamReply::Called`]; the wishes
    /// are acknowledged on the stream page, and then the program is kicked there.
    Call {
        /// Its number.
        stream: u32,
    },
    /// Changes the server's volume of a stream; what is `None` stays as it is. It is heard at once,
    /// in a ramp. [`StreamReply::Volume`].
    SetVolume {
        /// Its number.
        stream: u32,
        /// The factor while it is not muted.
        gain: Option<Gain>,
        /// Whether nothing of it is heard.
        muted: Option<bool>,
    },
    /// Changes the volume of all that leaves a device, the graph included; what is `None` stays as
    /// it is. It is heard at once, in a ramp. [`StreamReply::DeviceVolume`].
    SetDeviceVolume {
        /// Name of a further device; `None`: the one that drives.
        device: Option<String>,
        /// The factors while it is not muted.
        gains: Option<ChannelGains>,
        /// Whether nothing of it is heard.
        muted: Option<bool>,
    },
    /// Moves a playback stream to another device, where it continues once it has left its own.
    /// [`StreamReply::Moved`], before that is heard.
    Move {
        /// Its number.
        stream: u32,
        /// Name of a further device; `None`: the one that drives.
        device: Option<String>,
    },
    /// Reads the roles of the graph's active clients. [`StreamReply::Roles`].
    Roles,
    /// Reads the streams with greater numbers. [`StreamReply::Streams`].
    List {
        /// Number of a stream, which may have ended; 0 is before all.
        after: u32,
    },
    /// Ends a stream: what is queued fades out. [`StreamReply::Closed`], before that is heard.
    Close {
        /// Its number.
        stream: u32,
    },
}

/// In place of a device's channel: the port of a stream that records begins without a connection.
pub const UNCONNECTED: u32 = u32::MAX;

/// A stream to be opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewStream {
    /// Name of the program, for users.
    pub program: String,
    /// Name of what it plays, for users.
    pub name: String,
    /// Name of a further device; `None`: the one that drives.
    pub device: Option<String>,
    /// Where frames go.
    pub direction: Direction,
    /// The device's channel for each channel of the stream; [`UNCONNECTED`] for one that records
    /// what its program, or a user, connects with its port.
    pub channels: Vec<u32>,
    /// How far ahead of the hardware the device may render it, or how long it may keep what was
    /// heard, frames of the device.
    pub depth_frames: u32,
    /// How the samples lie in its ring (`rt::shm::RingSamples::code`): 0 in planes of floats, as in
    /// the ring of each stream that records; 1 in frames of 16 bits, of one or two channels.
    pub samples: u8,
    /// For which of the programs that it plays for the process opens it, by any number; 0: for
    /// itself. Streams of one account count together, and share their limits with no other.
    pub account: u32,
    /// For a stream that records: the device may sleep while nothing else needs it; the stream gets
    /// no frames meanwhile.
    pub lets_sleep: bool,
    /// For a stream that plays, or records what leaves a device: if it is moved to a device that it
    /// does not fit, its program opens it again there ([`StreamStatus::wanted`]). Otherwise such a
    /// move is refused.
    pub reopens: bool,
}

/// A device to be added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewDevice {
    /// Its name, which no other device has.
    pub name: String,
    /// What it plays on.
    pub hardware: NewHardware,
    /// Hz; `None`: that of the device that drives.
    pub sample_rate_hz: Option<u32>,
    /// It is removed when the connection that adds it ends.
    pub ends_with_connection: bool,
}

/// What a device that is added plays on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum NewHardware {
    /// Nothing: what is played there is heard by its monitors alone.
    Nothing {
        /// Channels, [`DEVICE_CHANNELS`](crate::limits::DEVICE_CHANNELS).
        channels: u32,
    },
    /// A sound card, which is there.
    Card {
        /// How it is opened. The rate is [`NewDevice::sample_rate_hz`].
        options: Box<AlsaOptions>,
        /// Frames of each cycle in which it is recorded,
        /// [`QUANTUM_FRAMES`](crate::limits::QUANTUM_FRAMES).
        quantum: u32,
    },
}

/// What a program awaits a change of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Watched {
    /// The devices: one is added or removed, has another volume, or is opened for other samples, a
    /// stream moves or loses its device, or an active client of the graph has another role.
    Devices,
    /// The streams as well: one begins, ends or has another volume, the wishes of one are obeyed at
    /// once, or a device begins or ceases to sleep.
    Streams,
    /// The graph: anything that the registry shows.
    Graph,
}

/// Where the frames of a stream go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Direction {
    /// From the program to the device.
    Playback,
    /// From the device to the program: what it captures.
    Record,
    /// From the device to the program: what leaves the device, once it is heard.
    Monitor,
}

/// The answer to a request about streams.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum StreamReply {
    /// What streams are to be converted to.
    Device {
        /// Hz.
        sample_rate_hz: u32,
        /// Channels that can be played; 0: the device plays no streams.
        channels: u32,
        /// Channels that can be recorded.
        captured: u32,
        /// They are more than silence.
        captures: bool,
        /// How often its thread has woken since the server's start.
        wake_ups: u64,
        /// How often lately.
        wake_up_rate: WakeUpRate,
        /// Frames that streams were to play and that were not rendered in time.
        lost_frames: u64,
        /// What it does now.
        state: DeviceState,
        /// Its volume.
        volume: DeviceVolume,
    },
    /// All further devices, by name: [`STREAM_DEVICES`](crate::limits::STREAM_DEVICES) at most.
    Devices(Vec<FurtherDevice>),
    /// The active clients that state a role: [`ROLES`](crate::limits::ROLES) at most.
    Roles(Vec<ClientRole>),
    /// Something about the devices has changed, once or more.
    Changed {
        /// The number of the last change.
        number: u64,
    },
    /// The device is there.
    Added,
    /// The device is not there any more. Its streams end in a moment.
    Removed,
    /// A stream, with the descriptor of its page; or a smaller ring for it.
    Granted {
        /// Its number.
        stream: u32,
        /// Frames that the ring must hold.
        capacity_frames: u32,
        /// Ids of its ports, by channel; none if it has no ports.
        ports: Vec<u32>,
    },
    /// The stream holds where it is to begin.
    Begun,
    /// The device has been called.
    Called,
    /// The stream is on its way.
    Moved,
    /// The volume of a stream from now on.
    Volume(Volume),
    /// The volume of a device from now on.
    DeviceVolume(DeviceVolume),
    /// The stream has ended.
    Closed,
    /// Some streams: [`STREAMS_AT_ONCE`](crate::limits::STREAMS_AT_ONCE), or fewer if there are no
    /// more.
    Streams(Vec<StreamStatus>),
}

/// What an active client of the graph is for, as its property
/// [`ROLE_KEY`](crate::property::ROLE_KEY) says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientRole {
    /// Its name.
    pub client: String,
    /// In PulseAudio's words; [`ROLE_BYTES`](crate::limits::ROLE_BYTES) at most.
    pub role: String,
}

/// A device beside the one that drives, for users.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FurtherDevice {
    /// Its name.
    pub name: String,
    /// Its number. A later device of the same name has another one.
    pub number: u32,
    /// Hz.
    pub sample_rate_hz: u32,
    /// Channels that it plays.
    pub channels: u32,
    /// Channels that it captures.
    pub captured: u32,
    /// Its card, as the driver describes it, in [`CARD_BYTES`](crate::limits::CARD_BYTES) at most;
    /// `None`: it has no hardware.
    pub card: Option<String>,
    /// Why that cannot be opened, likewise; `None`: it can, as far as is known.
    pub why_away: Option<String>,
    /// How often its thread has woken since it was added.
    pub wake_ups: u64,
    /// How often lately.
    pub wake_up_rate: WakeUpRate,
    /// Frames that streams were to play and that were not rendered in time.
    pub lost_frames: u64,
    /// What it does now. It runs cycles while what it captures is recorded.
    pub state: DeviceState,
    /// Its volume.
    pub volume: DeviceVolume,
}

/// What a device does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeviceState {
    /// It starts cycles.
    Cycling,
    /// It runs no cycles, and plays what was rendered ahead.
    Deep,
    /// It plays nothing, and nothing wakes it.
    Parked,
}

/// How often the thread of a device has woken in the last ten seconds, or for as long as it does
/// what it does now; or in the time of the last wake-ups if it wakes often.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct WakeUpRate {
    /// Wake-ups within that time.
    pub wake_ups: u32,
    /// The time, ns; 0: nothing is known yet.
    pub over_ns: u64,
}

impl WakeUpRate {
    /// Returns the wake-ups of a second.
    #[must_use]
    pub fn per_second(self) -> f64 {
        f64::from(self.wake_ups) * 1e9 / self.over_ns.max(1) as f64
    }
}

/// State of a stream, for users.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamStatus {
    /// Its number.
    pub stream: u32,
    /// Name of the program.
    pub program: String,
    /// Name of what it plays.
    pub name: String,
    /// Process id; 0: of another pid namespace.
    pub process: u32,
    /// Name of its device; `None`: the one that drives.
    pub device: Option<String>,
    /// Name of the device on which its program is to open it again, converted for that, and end
    /// this one: it was moved there.
    pub wanted: Option<String>,
    /// Where its frames go.
    pub direction: Direction,
    /// Whether it records, or is heard, now or once what is rendered is heard.
    pub plays: bool,
    /// How far ahead of what is heard it is rendered, µs.
    pub rendered_us: u64,
    /// How far ahead it may be rendered, frames.
    pub depth_frames: u32,
    /// Frames that were not there when they had to be played.
    pub missed_frames: u64,
    /// The server's volume of it.
    pub volume: Volume,
    /// Who has changed that last.
    pub volume_sources: VolumeSources,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{CARD_BYTES, DEVICE_NAME_BYTES, STREAM_DEVICES};
    use crate::request::Reply;

    #[test]
    fn the_longest_status_of_all_devices_fits_a_packet() {
        let device = FurtherDevice {
            name: "d".repeat(DEVICE_NAME_BYTES),
            number: u32::MAX,
            sample_rate_hz: u32::MAX,
            channels: u32::MAX,
            captured: u32::MAX,
            card: Some("c".repeat(CARD_BYTES)),
            why_away: Some("w".repeat(CARD_BYTES)),
            wake_ups: u64::MAX,
            wake_up_rate: WakeUpRate { wake_ups: u32::MAX, over_ns: u64::MAX },
            lost_frames: u64::MAX,
            state: DeviceState::Cycling,
            volume: DeviceVolume { gains: ChannelGains::default(), muted: true },
        };
        let all = StreamReply::Devices(vec![device; STREAM_DEVICES]);
        let bytes = crate::encode(&Reply::Stream(all)).len();
        // A packet is a numbered reply.
        assert!(bytes + 16 < crate::MAX_PACKET_BYTES, "{bytes}");
    }
}
