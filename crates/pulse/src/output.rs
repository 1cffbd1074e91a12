//! What the front end asks of a server: devices, and streams on them.

mod links;

use std::collections::BTreeMap;
use std::ffi::CString;

use client::stream::{
    ChannelGains, ClientRole, DeviceVolume, RingSamples, Schedule, Timing, Volume, Wish,
};

pub(crate) use links::{
    Heard, LinkEnd, Network, NewBell, NewLink, NewListening, NewLoopback, NewPipe, NewRtpReceiver,
    NewRtpSender, NewSimple, NewTunnel,
};

use crate::input::{Input, NewInput};

/// What streams are converted to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DeviceFormat {
    /// Hz.
    pub rate_hz: u32,
    /// Channels that it plays, in ALSA's order; 0: it only captures.
    pub channels: u32,
    /// Channels that it captures, in the same order; 0: it captures nothing.
    pub captured: u32,
}

/// A device of the server that plays streams.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DeviceStatus {
    /// `None`: the one that drives the graph.
    pub name: Option<String>,
    /// The server's number of a further device: a later one of the same name has another.
    pub number: u32,
    /// What streams on it are converted to.
    pub format: DeviceFormat,
    /// The volume of all that it plays.
    pub volume: HeardVolume,
    /// Nobody has changed the server's part of that since the server began.
    pub is_untouched: bool,
    /// A mixer of the card has a part in it.
    pub has_mixer: bool,
    /// The sound card that it is, if it is one.
    pub card: Option<Card>,
}

/// How loud a device is, by the server and by the mixer of its card.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct HeardVolume {
    /// What the two make of it together.
    pub gains: ChannelGains,
    /// The server has muted it.
    pub muted: bool,
    /// The mixer's switch is off: that is the mixer's to remember.
    pub is_switched_off: bool,
}

impl HeardVolume {
    /// Returns whether nothing of the device is heard.
    pub fn is_muted(&self) -> bool {
        self.muted || self.is_switched_off
    }
}

impl From<DeviceVolume> for HeardVolume {
    fn from(DeviceVolume { gains, muted }: DeviceVolume) -> Self {
        Self { gains, muted, is_switched_off: false }
    }
}

/// A sound card, as users see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Card {
    /// ALSA's name of it; of a device with two, both.
    pub name: String,
    /// What else is known of it, by PulseAudio's names of properties.
    pub properties: Vec<(&'static str, String)>,
}

impl Card {
    /// Returns the name that users see, if the kernel has one.
    pub fn description(&self) -> Option<CString> {
        let named = |(key, _): &&(&str, String)| *key == "alsa.card_name";
        let (_, name) = self.properties.iter().find(named)?;
        CString::new(name.as_str()).ok()
    }
}

/// A device without hardware, to be added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewNullDevice {
    /// Its name.
    pub name: String,
    /// Channels that it plays.
    pub channels: u32,
    /// Hz; `None`: that of the device that drives.
    pub rate_hz: Option<u32>,
}

/// A stream to be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewOutput {
    /// Name of the device; `None`: the one that drives.
    pub device: Option<String>,
    /// All of the device's channels.
    pub channels: u32,
    /// Name of the program, for users.
    pub program: String,
    /// Name of what is played, for users.
    pub name: String,
    /// How far ahead it may be rendered, frames.
    pub depth_frames: u32,
    /// How its samples lie in the ring.
    pub samples: RingSamples,
    /// The account of its program.
    pub account: u32,
    /// The server's volume that it begins with, besides its gains.
    pub volume: Volume,
}

/// Why the server has not done something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It is not there, or does not answer: it may later.
    NotNow,
    /// It refuses it.
    Never,
}

/// A server's devices. A device is named by its name, or is the one that drives the graph.
pub(crate) trait Devices {
    /// A stream that plays.
    type Output: Output;
    /// A stream that records.
    type Input: Input;

    /// Returns those that there are, the one that drives first; `None` as long as no server says.
    fn list(&mut self) -> Option<Vec<DeviceStatus>>;

    /// Returns whether [`list`](Self::list) may be another one than last time. It asks no server.
    fn may_have_changed(&self) -> bool;

    /// Returns the roles of the graph's active clients that state one; `None` if no server says.
    fn client_roles(&mut self) -> Option<Vec<ClientRole>>;

    /// Turns on what a mixer has switched off of a device, because a user wants to hear it.
    fn switch_on(&mut self, device: Option<&str>);

    /// Changes the volume of a device, as far as that is not `None`; returns it. What a mixer has
    /// switched off stays off.
    ///
    /// # Errors
    /// The server refuses it.
    fn set_volume(
        &mut self,
        device: Option<&str>,
        gains: Option<ChannelGains>,
        muted: Option<bool>,
    ) -> Result<HeardVolume, Refusal>;

    /// Adds a device, which ends with this process.
    ///
    /// # Errors
    /// The server refuses it.
    fn add(&mut self, new: NewNullDevice) -> Result<(), Refusal>;

    /// Removes a device that was added: its streams end.
    fn remove(&mut self, device: &str);

    /// Starts what passes frames on, by a number that no other has. Whether it has begun, or has
    /// ended, is known later.
    ///
    /// # Errors
    /// A reason why it cannot be started.
    fn link(&mut self, number: u32, new: NewLink) -> Result<(), String>;

    /// Ends that.
    fn unlink(&mut self, number: u32);

    /// Sets the volume of an end of what passes frames on, if it is there.
    ///
    /// # Errors
    /// The server refuses it.
    fn set_link_volume(
        &mut self,
        number: u32,
        end: &LinkEnd,
        volume: Volume,
    ) -> Result<(), Refusal>;

    /// Lets programs in over TCP, by a number that no other has.
    ///
    /// # Errors
    /// A reason why it cannot listen there.
    fn listen(&mut self, number: u32, new: NewListening) -> Result<(), String>;

    /// Lets in no further ones.
    fn unlisten(&mut self, number: u32);

    /// Leaves a line to the user that runs this.
    fn report(&mut self, line: String);

    /// Opens a stream, which holds at position 0 once it has [begun](Output::begin). A server that
    /// has granted all so far may have its answer read only then.
    ///
    /// # Errors
    /// The server refuses it.
    fn open(&mut self, new: NewOutput) -> Result<Self::Output, Refusal>;

    /// Opens a stream that records, and holds at position 0.
    ///
    /// # Errors
    /// The server refuses it.
    fn record(&mut self, new: NewInput) -> Result<Self::Input, Refusal>;

    /// Has a stream of a server that has gone go on at this one, at the same position, on a device
    /// of the same format.
    ///
    /// # Errors
    /// The server cannot take it, or not yet.
    fn return_output(&mut self, output: &mut Self::Output) -> Result<(), Refusal>;

    /// The same of a stream that records.
    ///
    /// # Errors
    /// The server cannot take it, or not yet.
    fn return_input(&mut self, input: &mut Self::Input) -> Result<(), Refusal>;

    /// Has a stream go on at another device of the same format; returns false if the server
    /// refuses it.
    fn move_output(&mut self, output: &Self::Output, device: Option<&str>) -> bool;

    /// Returns the device of each stream of this process that plays, by the stream's number.
    fn homes(&mut self) -> BTreeMap<u32, Option<String>>;
}

/// The program's end of a stream: a ring and wishes. Positions count its frames.
pub(crate) trait Output {
    /// Makes the memory of a stream that was just opened, which takes a while: until then, wishes
    /// are kept, and nothing is written. It may hold fewer frames than was granted.
    ///
    /// # Errors
    /// The server refuses it now: it [has ended](Self::has_ended).
    fn begin(&mut self) -> Result<(), Refusal>;

    /// The same, but that the server is sent the memory, and its answer is [known](Self::has_begun)
    /// later.
    ///
    /// # Errors
    /// Those of [`begin`](Self::begin).
    fn start(&mut self) -> Result<(), Refusal>;

    /// Returns whether the server has taken the memory of a stream that was started; `None`: it
    /// has not answered.
    ///
    /// # Errors
    /// The server refuses it: at the moment, if it can take another one with less memory.
    fn has_begun(&mut self) -> Option<Result<(), Refusal>>;

    /// Returns its number on the server, if that knows it.
    fn number(&self) -> Option<u32>;

    /// Returns the server's volume of it, besides its gains, also once it has ended.
    fn volume(&self) -> Volume;

    /// Returns the most frames that it holds.
    fn capacity_frames(&self) -> u64;

    /// Returns how many frames can be written now.
    fn room(&self) -> usize;

    /// Writes frames at the end, a slice for each channel of the device; there is room for them.
    fn write(&mut self, planes: &[&[f32]]);

    /// Has `write` put frames where they are to be, at the end, into a slice for each channel of
    /// the device, and return how many. There may be more room behind them.
    fn write_in_place(&mut self, write: impl FnOnce(&mut [&mut [f32]]) -> usize);

    /// Returns whether it holds frames of 16 bits, as its program has them, and not planes.
    fn holds_frames(&self) -> bool;

    /// The same where it [holds frames](Self::holds_frames): `write` puts them into this room, and
    /// returns how many bytes it has written.
    fn write_frames_in_place(&mut self, write: impl FnOnce(&mut [u8]) -> usize);

    /// Returns the position after the last frame that was written.
    fn written(&self) -> u64;

    /// Copies the samples of a channel from `position` on: they were written, no longer ago than
    /// the ring holds.
    fn read(&self, channel: u32, position: u64, into: &mut [f32]);

    /// States a wish, to be obeyed after [`commit`](Self::commit).
    fn wish(&mut self, wish: Wish);

    /// Makes the device obey the wishes so far.
    fn commit(&mut self);

    /// Makes a device that has gone to sleep look at what was written.
    fn call(&mut self);

    /// Returns whether the device knows all wishes so far.
    fn is_committed(&self) -> bool;

    /// Returns what is heard when.
    fn timing(&mut self) -> Timing;

    /// Returns when the device wakes, and what it needs then; `None` if it sleeps, or that is not
    /// known.
    fn schedule(&self) -> Option<Schedule>;

    /// Returns whether the server has ended it.
    fn has_ended(&self) -> bool;

    /// Returns whether more wishes wait for the server than a program may have.
    fn has_too_many_wishes(&self) -> bool;

    /// The server has ended it or has gone itself, as was noticed at `now_ns`: nothing more is
    /// heard. What is written and wished from now on is kept.
    fn leave(&mut self, now_ns: u64);
}
