//! What programs ask about samples: to upload, play, list and remove them.

use std::ffi::{CStr, CString};

use convert::{Mixing, ProgramFormat};
use policy::Direction;
use pulseaudio::protocol::stream::BufferAttr;
use pulseaudio::protocol::{
    ChannelVolume, Command, CreateUploadStreamReply, LookupReply, PlaySampleParams, Prop, Props,
    PulseError, SubscriptionEventFacility as Facility, SubscriptionEventType as EventType,
    UploadStreamParams, Volume,
};

use super::dispatch::OVER_PROGRAM;
use super::new_input::NewInput;
use super::samples::{Feed, Kept, MAX_SAMPLE_BYTES, Sample, is_name};
use super::{Answer, Answered, Client, FrontEnd, format, properties, treatment};
use crate::output::Devices;
use crate::playback::{Latency, Notice, Pace, Requested};
use crate::wire;

/// Bytes that one program may be uploading at once.
const MAX_UPLOADS_BYTES: u64 = MAX_SAMPLE_BYTES as u64;
/// Samples that one program may be uploading at once.
const MAX_UPLOADS: usize = 64;

/// A sample that is not complete yet.
#[derive(Debug)]
pub(super) struct Upload {
    /// The connection.
    pub client: u32,
    channel: u32,
    account: u32,
    sample: Sample,
    /// The bytes that it is to have.
    length: u32,
}

impl Upload {
    /// Takes bytes; those beyond its length are ignored, as by PulseAudio.
    pub fn append(&mut self, bytes: &[u8]) {
        let missing = self.length as usize - self.sample.bytes.len();
        self.sample.bytes.extend_from_slice(&bytes[..bytes.len().min(missing)]);
    }
}

impl<D: Devices> FrontEnd<D> {
    /// Answers requests about samples; `None` if it is none of these.
    pub(super) fn answer_about_samples(
        &mut self,
        client: u32,
        tag: u32,
        command: &Command,
        names: &[CString],
        now_ns: u64,
    ) -> Option<Answered> {
        let version = self.clients.get(&client).map_or(0, Client::version);
        Some(match command {
            Command::CreateUploadStream(asked) => self.create_upload(client, tag, asked),
            Command::FinishUploadStream(channel) => self.finish_upload(client, *channel),
            Command::DeleteUploadStream(channel) => {
                self.take_upload(client, *channel).map(|_| Answer::Done)
            }
            Command::PlaySample(asked) => self
                .play_sample(client, asked, now_ns)
                .map(|index| Answer::Packet(wire::reply(tag, &LookupReply(index), version))),
            Command::RemoveSample(name) => self.remove_sample(client, name),
            Command::GetSampleInfo(index) => {
                // By its name, unless the index is one.
                let owner = self.owner_of_samples(client);
                let named = || self.samples.info_named(owner, names.first()?);
                let info = self.samples.info(*index).or_else(named).ok_or(PulseError::NoEntity);
                info.map(|info| Answer::Packet(wire::reply(tag, &info, version)))
            }
            Command::GetSampleInfoList => {
                Ok(Answer::Packet(wire::reply(tag, &self.samples.infos(), version)))
            }
            _ => return None,
        })
    }

    fn create_upload(&mut self, client: u32, tag: u32, asked: &UploadStreamParams) -> Answered {
        let known = self.clients.get_mut(&client).ok_or(PulseError::NoEntity)?;
        let owner = (!known.rights().patch).then_some(known.origin.account);
        let sample = new_sample(asked, &known.props, owner)?;
        let length = asked.length;
        let (version, account) = (known.version(), known.origin.account);
        let own = || self.uploads.iter().filter(|upload| upload.account == account);
        // MUTATION: create_upload.without_limit
        let bytes = own().map(|upload| u64::from(upload.length)).sum::<u64>();
        if own().count() >= MAX_UPLOADS || bytes + u64::from(length) > MAX_UPLOADS_BYTES {
            return Err(PulseError::TooLarge);
        }
        let channel = known.take_channel();
        self.uploads.push(Upload { client, channel, account, sample, length });
        let reply = CreateUploadStreamReply { channel, length };
        Ok(Answer::Packet(wire::reply(tag, &reply, version)))
    }

    fn finish_upload(&mut self, client: u32, channel: u32) -> Answered {
        let Upload { mut sample, .. } = self.take_upload(client, channel)?;
        // What has come is the sample, as in PulseAudio, even if more was announced.
        let whole = whole_frames(sample.bytes.len() as u32, &sample.program);
        if whole == 0 {
            return Err(PulseError::NoData);
        }
        sample.bytes.truncate(whole as usize);
        match self.samples.keep(sample)? {
            Kept::New(index) => self.notify(Facility::SampleCache, EventType::New, index),
            Kept::Replaced(index) => self.notify(Facility::SampleCache, EventType::Changed, index),
        }
        Ok(Answer::Done)
    }

    /// Returns a program's upload by its channel.
    pub(super) fn upload_of(&mut self, client: u32, channel: u32) -> Option<&mut Upload> {
        let mut uploads = self.uploads.iter_mut();
        uploads.find(|upload| upload.client == client && upload.channel == channel)
    }

    fn take_upload(&mut self, client: u32, channel: u32) -> Result<Upload, PulseError> {
        let mut uploads = self.uploads.iter();
        let its = uploads.position(|upload| upload.client == client && upload.channel == channel);
        its.map(|place| self.uploads.swap_remove(place)).ok_or(PulseError::NoEntity)
    }

    fn remove_sample(&mut self, client: u32, name: &CStr) -> Answered {
        if !is_name(name) {
            return Err(PulseError::Invalid);
        }
        let owner = self.owner_of_samples(client);
        let index = self.samples.remove(owner, name);
        // One that is for all is not a confined program's to remove.
        let is_for_all = || owner.is_some() && self.samples.find(None, name).is_some();
        let index = index.ok_or_else(|| match is_for_all() {
            true => PulseError::AccessDenied,
            false => PulseError::NoEntity,
        })?;
        self.notify(Facility::SampleCache, EventType::Removed, index);
        Ok(Answer::Done)
    }

    /// Returns whose own the samples of a connection are: a confined program's, unless it may
    /// change what others have left. Nobody else should hear what it has chosen for a name.
    fn owner_of_samples(&self, client: u32) -> Option<u32> {
        let known = self.clients.get(&client)?;
        (!known.rights().patch).then_some(known.origin.account)
    }

    /// Forgets the samples of a confined program once it has no connection left.
    pub(super) fn forget_samples_of(&mut self, account: u32) {
        if self.clients.values().all(|known| known.origin.account != account) {
            for index in self.samples.remove_of(account) {
                self.notify(Facility::SampleCache, EventType::Removed, index);
            }
        }
    }

    /// Plays a sample, to its end, whatever becomes of the program that asked. Returns the stream.
    fn play_sample(
        &mut self,
        client: u32,
        asked: &PlaySampleParams,
        now_ns: u64,
    ) -> Result<u32, PulseError> {
        if !is_name(&asked.name) {
            return Err(PulseError::Invalid);
        }
        self.refresh_if_changed(now_ns);
        let sink = self.find_sink(asked.sink_index, asked.sink_name.as_deref())?;
        let owner = self.owner_of_samples(client);
        let sample = self.samples.find(owner, &asked.name).ok_or(PulseError::NoEntity)?;
        let known = self.clients.get(&client).ok_or(PulseError::NoEntity)?;
        let account = known.origin.account;
        self.check_streams_of(account)?;
        let mut props = Props::new();
        for key in [c"media.name", c"event.id"] {
            properties::set(&mut props, key, &asked.name.to_string_lossy());
        }
        for more in [&sample.props, &known.props, &asked.props] {
            props = properties::updated(&props, OVER_PROGRAM, more)?;
        }
        let props = self.limited_for(account, 0, props)?;
        // Any that is none stands for none, as in PulseAudio.
        let volume = Some(asked.volume).filter(|volume| *volume <= wire::MAX_VOLUME);
        let states = (volume.is_some(), false);
        let wanted = treatment::asked(asked.sink_index, asked.sink_name.as_deref(), states);
        let start = self.decide_start(Direction::Playback, &props, wanted);
        let chosen = start.1.device.value.as_deref().and_then(|name| self.sink_named(name));
        let sink = chosen.unwrap_or(sink);
        let all = volume.unwrap_or(Volume::NORM.as_u32());
        let mut volume = ChannelVolume::empty();
        (0..sample.program.map.channels()).for_each(|_| volume.push(Volume::from_u32_clamped(all)));
        let index = self.begin_input(NewInput {
            owner: None,
            feed: Some(Feed::new(sample.clone())),
            account,
            sink,
            stays: false,
            has_variable_rate: false,
            program_name: known.name().to_string_lossy().into_owned(),
            program: sample.program,
            props,
            volume,
            is_muted: false,
            fails_on_suspend: false,
            requested: Requested { buffer: BufferAttr::default(), latency: Latency::Queue },
            mixing: Mixing::Mixed,
            start,
        })?;
        self.notify(Facility::SinkInput, EventType::New, index);
        if let Some(input) = self.inputs.get_mut(index)
            && let Some(feed) = &mut input.feed
        {
            let first = input.playback.attributes().target_length;
            feed.give(&mut input.playback, first, now_ns);
        }
        self.feed(index, now_ns);
        Ok(index)
    }

    /// Gives a sample's stream what it asks for, and ends it when all of it was heard.
    pub(super) fn feed(&mut self, index: u32, now_ns: u64) {
        loop {
            let Some(input) = self.inputs.get_mut(index) else { return };
            let Some(feed) = &mut input.feed else { return };
            let notices = input.playback.take_notices();
            if notices.is_empty() {
                return;
            }
            for notice in notices {
                match notice {
                    Notice::Request(bytes) => feed.give(&mut input.playback, bytes, now_ns),
                    Notice::Drained { .. } => return self.remove_input(index),
                    Notice::Started | Notice::Underflow(_) | Notice::Overflow => {}
                }
            }
        }
    }
}

/// Returns the sample that a program with these properties describes, without its bytes; with an
/// `owner`, it is that program's own.
///
/// # Errors
/// The description makes no sense.
fn new_sample(
    asked: &UploadStreamParams,
    program_props: &Props,
    owner: Option<u32>,
) -> Result<Sample, PulseError> {
    let program = format::program(&asked.sample_spec, &asked.channel_map);
    let program = program.ok_or(PulseError::Invalid)?;
    if asked.length == 0 || whole_frames(asked.length, &program) != asked.length {
        return Err(PulseError::Invalid);
    }
    if asked.length > MAX_SAMPLE_BYTES {
        return Err(PulseError::TooLarge);
    }
    let stated = [Prop::EventId, Prop::MediaName].map(|prop| properties::text(&asked.props, prop));
    let name = asked.media_name.as_deref().or(stated[0]).or(stated[1]);
    let name = name.filter(|name| is_name(name)).ok_or(PulseError::Invalid)?.to_owned();
    let mut props = properties::updated(program_props, OVER_PROGRAM, &asked.props)?;
    if props.get(Prop::MediaRole).is_none() {
        props.set(Prop::MediaRole, c"event");
    }
    Ok(Sample { owner, name, program, props, bytes: Vec::new() })
}

fn whole_frames(bytes: u32, program: &ProgramFormat) -> u32 {
    bytes - bytes % Pace::of(program).frame_bytes
}
