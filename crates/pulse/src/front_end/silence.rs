//! Devices that take everything and never play.

use std::collections::BTreeMap;

use client::stream::{ChannelGains, ClientRole, RingSamples, Schedule, Timing, Volume, Wish};

use crate::input::{Input, NewInput};
use crate::output::{
    DeviceFormat, DeviceStatus, Devices, HeardVolume, LinkEnd, NewLink, NewListening,
    NewNullDevice, NewOutput, Output, Refusal,
};

#[derive(Debug)]
pub(crate) struct Silence {
    /// Those that there are.
    pub devices: Vec<DeviceStatus>,
    /// There is no server.
    pub is_away: bool,
    /// Why streams do not return, or are not opened.
    pub takes_nothing: Option<Refusal>,
    /// The streams that have returned.
    pub returned: Vec<u32>,
    last: u32,
    pub opened: Vec<NewOutput>,
    pub recorded: Vec<NewInput>,
    /// The streams that were moved, and where.
    pub moved: Vec<(u32, Option<String>)>,
    /// Where other programs have moved streams.
    pub homes: BTreeMap<u32, Option<String>>,
    /// What passes frames on, by its number.
    pub links: BTreeMap<u32, NewLink>,
    /// The volumes that their ends were given.
    pub link_volumes: Vec<(u32, LinkEnd, Volume)>,
    /// The numbers of all that was ever started.
    pub started: Vec<u32>,
    /// The roles of the graph's clients.
    pub client_roles: Vec<ClientRole>,
    /// Where programs are let in, by its number.
    pub listening: BTreeMap<u32, NewListening>,
    /// The lines that were left.
    pub reported: Vec<String>,
    /// The server refuses another volume, a recording or a device.
    pub refuses: bool,
    /// The devices when it was last asked for them.
    listed: Vec<DeviceStatus>,
    /// How often it was.
    pub lists: usize,
    /// How many frames new streams hold once they have begun, or why they do not begin.
    pub begins: Result<u64, Refusal>,
    /// What it says of the memory of new streams; `None`: nothing so far.
    pub takes_memory: Option<Result<(), Refusal>>,
}

/// A device without hardware, whose volume nobody has changed.
fn silent(name: Option<String>, number: u32, format: DeviceFormat) -> DeviceStatus {
    let (volume, is_untouched) = (HeardVolume::default(), true);
    let (has_mixer, card) = (false, None);
    DeviceStatus { name, number, format, volume, is_untouched, has_mixer, card }
}

impl Silence {
    pub fn stereo() -> Self {
        let format = DeviceFormat { rate_hz: 48_000, channels: 2, captured: 0 };
        let driver = silent(None, 0, format);
        Self {
            devices: vec![driver],
            is_away: false,
            takes_nothing: None,
            returned: Vec::new(),
            last: 0,
            opened: Vec::new(),
            recorded: Vec::new(),
            moved: Vec::new(),
            homes: BTreeMap::new(),
            links: BTreeMap::new(),
            link_volumes: Vec::new(),
            started: Vec::new(),
            client_roles: Vec::new(),
            listening: BTreeMap::new(),
            reported: Vec::new(),
            refuses: false,
            listed: Vec::new(),
            lists: 0,
            begins: Ok(GRANTED),
            takes_memory: Some(Ok(())),
        }
    }

    /// What is asked of a server that refuses it, or is not there.
    fn refused(&self) -> Result<(), Refusal> {
        match (self.is_away, self.refuses) {
            (true, _) => Err(Refusal::NotNow),
            (false, true) => Err(Refusal::Never),
            (false, false) => Ok(()),
        }
    }

    fn find(&mut self, name: Option<&str>) -> Option<&mut DeviceStatus> {
        self.devices.iter_mut().find(|device| device.name.as_deref() == name)
    }
}

/// Wishes of a stream.
pub(super) const MAX_WISHES: usize = 10_000;
/// Further devices at most: fewer than a real server has, so that tests run out of them.
const MAX_DEVICES: usize = 8;

impl Devices for Silence {
    type Output = Sink;
    type Input = Tone;

    fn list(&mut self) -> Option<Vec<DeviceStatus>> {
        (self.listed, self.lists) = (self.devices.clone(), self.lists + 1);
        (!self.is_away).then(|| self.devices.clone())
    }

    fn may_have_changed(&self) -> bool {
        self.devices != self.listed
    }

    fn client_roles(&mut self) -> Option<Vec<ClientRole>> {
        (!self.is_away).then(|| self.client_roles.clone())
    }

    fn switch_on(&mut self, device: Option<&str>) {
        if let Some(device) = self.find(device) {
            device.volume.is_switched_off = false;
        }
    }

    fn set_volume(
        &mut self,
        device: Option<&str>,
        gains: Option<ChannelGains>,
        muted: Option<bool>,
    ) -> Result<HeardVolume, Refusal> {
        self.refused()?;
        let device = self.find(device).ok_or(Refusal::Never)?;
        let HeardVolume { gains: own, muted: was_muted, is_switched_off } = device.volume;
        device.volume = HeardVolume {
            gains: gains.unwrap_or(own),
            muted: muted.unwrap_or(was_muted),
            is_switched_off,
        };
        device.is_untouched = false;
        Ok(device.volume)
    }

    fn add(&mut self, new: NewNullDevice) -> Result<(), Refusal> {
        self.refused()?;
        if self.devices.len() > MAX_DEVICES {
            return Err(Refusal::Never);
        }
        self.last += 1;
        let NewNullDevice { name, channels, rate_hz } = new;
        let format = DeviceFormat { rate_hz: rate_hz.unwrap_or(48_000), channels, captured: 0 };
        self.devices.push(silent(Some(name), self.last, format));
        Ok(())
    }

    fn remove(&mut self, device: &str) {
        self.devices.retain(|known| known.name.as_deref() != Some(device));
    }

    fn link(&mut self, number: u32, new: NewLink) -> Result<(), String> {
        self.links.insert(number, new);
        self.started.push(number);
        Ok(())
    }

    fn unlink(&mut self, number: u32) {
        self.links.remove(&number);
    }

    fn set_link_volume(
        &mut self,
        number: u32,
        end: &LinkEnd,
        volume: Volume,
    ) -> Result<(), Refusal> {
        self.refused()?;
        self.link_volumes.push((number, end.clone(), volume));
        Ok(())
    }

    fn listen(&mut self, number: u32, new: NewListening) -> Result<(), String> {
        self.listening.insert(number, new);
        Ok(())
    }

    fn unlisten(&mut self, number: u32) {
        self.listening.remove(&number);
    }

    fn report(&mut self, line: String) {
        self.reported.push(line);
    }

    fn open(&mut self, new: NewOutput) -> Result<Sink, Refusal> {
        if self.is_away {
            return Err(Refusal::NotNow);
        }
        let (volume, samples) = (new.volume, new.samples);
        self.opened.push(new);
        Ok(Sink {
            volume,
            samples,
            number: self.opened.len() as u32,
            written: 0,
            is_away: false,
            has_ended: false,
            schedule: None,
            timing: Timing::default(),
            wishes: 0,
            has_begun: false,
            begins: self.begins,
            takes_memory: self.takes_memory,
            is_answered: false,
        })
    }

    fn record(&mut self, new: NewInput) -> Result<Tone, Refusal> {
        let volume = new.volume;
        self.recorded.push(new);
        self.refused().map(|()| Tone { volume, ..Tone::default() })
    }

    fn return_output(&mut self, output: &mut Sink) -> Result<(), Refusal> {
        self.takes_nothing.map_or(Ok(()), Err)?;
        if !output.has_begun {
            return Err(Refusal::Never);
        }
        self.returned.push(output.number);
        output.is_away = false;
        Ok(())
    }

    fn return_input(&mut self, _input: &mut Tone) -> Result<(), Refusal> {
        self.takes_nothing.map_or(Ok(()), Err)
    }

    fn move_output(&mut self, output: &Sink, device: Option<&str>) -> bool {
        self.moved.push((output.number, device.map(Into::into)));
        !self.refuses
    }

    fn homes(&mut self) -> BTreeMap<u32, Option<String>> {
        self.homes.clone()
    }
}

/// Frames that a stream is granted.
const GRANTED: u64 = 1 << 18;

#[derive(Debug)]
pub(crate) struct Sink {
    number: u32,
    /// That another program of the server has set.
    pub volume: Volume,
    samples: RingSamples,
    written: u64,
    is_away: bool,
    pub has_ended: bool,
    pub schedule: Option<Schedule>,
    /// What of it is heard when; by default, its first frame has not been heard.
    pub timing: Timing,
    /// Wishes that it has not taken; it takes none.
    pub wishes: usize,
    pub has_begun: bool,
    /// How many frames it holds once it has begun, or why it does not.
    begins: Result<u64, Refusal>,
    /// What the server says of its memory, once it was started.
    pub takes_memory: Option<Result<(), Refusal>>,
    /// It has said that.
    is_answered: bool,
}

impl Output for Sink {
    fn begin(&mut self) -> Result<(), Refusal> {
        (self.has_begun, self.has_ended) = (self.begins.is_ok(), self.begins.is_err());
        self.begins.map(drop)
    }

    fn start(&mut self) -> Result<(), Refusal> {
        self.begin()
    }

    fn has_begun(&mut self) -> Option<Result<(), Refusal>> {
        let answer = self.takes_memory;
        assert!(answer.is_none() || !std::mem::replace(&mut self.is_answered, true), "once");
        answer
    }

    fn number(&self) -> Option<u32> {
        Some(self.number)
    }

    fn volume(&self) -> Volume {
        self.volume
    }

    fn capacity_frames(&self) -> u64 {
        self.begins.ok().filter(|_| self.has_begun).unwrap_or(GRANTED)
    }

    fn room(&self) -> usize {
        (self.capacity_frames() - self.written) as usize
    }

    fn write(&mut self, planes: &[&[f32]]) {
        assert!(self.has_begun, "it has memory");
        self.written += planes[0].len() as u64;
    }

    fn write_in_place(&mut self, write: impl FnOnce(&mut [&mut [f32]]) -> usize) {
        assert!(self.has_begun, "it has memory");
        let mut room = vec![0.0; 2 * self.room()];
        let (left, right) = room.split_at_mut(self.room());
        self.written += write(&mut [left, right]) as u64;
    }

    fn written(&self) -> u64 {
        self.written
    }

    fn holds_frames(&self) -> bool {
        self.samples != RingSamples::Planes
    }

    fn write_frames_in_place(&mut self, write: impl FnOnce(&mut [u8]) -> usize) {
        assert!(self.has_begun, "it has memory");
        let frame_bytes = if self.samples == RingSamples::Frames16 { 4 } else { 8 };
        let mut room = vec![0; frame_bytes * self.room()];
        self.written += (write(&mut room) / frame_bytes) as u64;
    }

    fn read(&self, _channel: u32, _position: u64, into: &mut [f32]) {
        into.fill(0.0);
    }

    fn wish(&mut self, _wish: Wish) {
        self.wishes += 1;
    }

    fn commit(&mut self) {}

    fn call(&mut self) {}

    fn is_committed(&self) -> bool {
        true
    }

    fn timing(&mut self) -> Timing {
        self.timing
    }

    fn schedule(&self) -> Option<Schedule> {
        self.schedule
    }

    fn has_ended(&self) -> bool {
        self.has_ended
    }

    fn has_too_many_wishes(&self) -> bool {
        self.wishes > MAX_WISHES
    }

    fn leave(&mut self, _now_ns: u64) {
        self.is_away = true;
    }
}

/// Frames of 0.5 and -0.25, as many at each look.
#[derive(Debug, Default)]
pub(crate) struct Tone {
    /// That another program of the server has set.
    pub volume: Volume,
    runs: bool,
    position: u64,
    has_been_read: bool,
}

/// The server's number of each stream that records.
pub(crate) const TONE_NUMBER: u32 = 1000;
/// Frames that there are at each look.
pub(crate) const FRAMES_AT_ONCE: usize = 480;

impl Input for Tone {
    fn number(&self) -> Option<u32> {
        Some(TONE_NUMBER)
    }

    fn volume(&self) -> Volume {
        self.volume
    }

    fn read(&mut self, planes: &mut [&mut [f32]]) -> usize {
        self.has_been_read = self.runs && !self.has_been_read;
        if !self.has_been_read {
            return 0;
        }
        for (plane, sample) in planes.iter_mut().zip([0.5, -0.25]) {
            plane[..FRAMES_AT_ONCE].fill(sample);
        }
        self.position += FRAMES_AT_ONCE as u64;
        FRAMES_AT_ONCE
    }

    fn position(&self) -> u64 {
        self.position
    }

    fn run(&mut self, runs: bool) -> bool {
        self.runs = runs;
        true
    }

    fn set_interval(&mut self, _frames: u32) -> bool {
        true
    }

    fn timing(&mut self) -> Timing {
        Timing { position: self.position, ..Timing::default() }
    }

    fn due_ns(&self) -> Option<u64> {
        None
    }

    fn has_ended(&self) -> bool {
        false
    }

    fn leave(&mut self, _now_ns: u64) {}
}
