//! What programs ask about their own streams that record.

use std::ffi::CString;

use client::stream::Volume;
use policy::{DeviceReason, Direction};
use pulseaudio::protocol::{
    ChannelVolume, Command, CreateRecordStreamReply, LatencyParams, Props, PulseError,
    RecordLatency, RecordStreamParams, SetRecordStreamBufferAttrParams,
    SetRecordStreamBufferAttrReply, SourceState, SubscriptionEventFacility as Facility,
    SubscriptionEventType as EventType,
};

use super::absence::or_later;
use super::dispatch::OVER_PROGRAM;
use super::playback_requests::{latency, media_name};
use super::source_outputs::SourceOutput;
use super::sources::{Source, for_each_channel};
use super::{Answer, Answered, Client, FrontEnd, format, offers, properties, treatment};
use crate::input::NewInput;
use crate::output::Devices;
use crate::playback::{Latency, Pace};
use crate::recording::{Manner, RecordAttributes, RecordRequested, Recorded, Recording, Tap};
use crate::wire;

/// How much may wait in the device and its ring, so that nothing is lost while this process has to
/// wait for a CPU, at least.
const LEAST_KEPT_US: u64 = 500_000;

/// A stream of the server that is to record for a program.
#[derive(Debug)]
pub(super) struct Listening {
    /// Name of the program, for users.
    pub program_name: String,
    /// Name of what it records for, for users.
    pub name: String,
    pub source: Source,
    /// How much may wait in the device and its ring.
    pub kept_us: u64,
    pub lets_sleep: bool,
    pub account: u32,
    /// The server's volume that it begins with.
    pub volume: Volume,
}

/// Returns how much may wait in a device and its ring.
pub(super) fn kept_us(attributes: RecordAttributes, pace: Pace) -> u64 {
    attributes.interval_us(pace).max(LEAST_KEPT_US)
}

impl<D: Devices> FrontEnd<D> {
    /// Answers requests about a stream of the program's own that records; `None` if it is none of
    /// these.
    pub(super) fn answer_about_recording(
        &mut self,
        client: u32,
        tag: u32,
        command: &Command,
        keys: &[CString],
        now_ns: u64,
    ) -> Option<Answered> {
        Some(match command {
            Command::CreateRecordStream(asked) => self.create_recording(client, tag, asked, now_ns),
            Command::DeleteRecordStream(channel) => {
                self.output_of(client, *channel).map(|(index, _)| index).map(|index| {
                    self.remove_output(index);
                    Answer::Done
                })
            }
            Command::CorkRecordStream(asked) => {
                self.cork_recording(client, asked.channel, asked.cork, now_ns)
            }
            Command::FlushRecordStream(channel) => {
                self.output_of(client, *channel).map(|(_, output)| {
                    output.recording.update(now_ns);
                    output.recording.flush();
                    Answer::Done
                })
            }
            Command::GetRecordLatency(asked) => self.record_latency(client, tag, *asked, now_ns),
            Command::SetRecordStreamBufferAttr(asked) => {
                self.set_record_buffer(client, tag, *asked, now_ns)
            }
            Command::UpdateRecordStreamSampleRate(asked) => {
                self.set_record_rate(client, asked.index, asked.sample_rate)
            }
            Command::SetRecordStreamName(asked) => {
                let name = asked.name.to_str().unwrap_or_default();
                self.change_output(client, asked.index, |before| {
                    let mut new = before.clone();
                    properties::set(&mut new, c"media.name", name);
                    properties::limited(new)
                })
            }
            Command::UpdateRecordStreamProplist(asked) => {
                self.change_output(client, asked.index, |before| {
                    properties::updated(before, asked.mode, &asked.props)
                })
            }
            Command::RemoveRecordStreamProplist(channel) => {
                self.change_output(client, *channel, |before| Ok(properties::without(before, keys)))
            }
            _ => return None,
        })
    }

    fn create_recording(
        &mut self,
        client: u32,
        tag: u32,
        asked: &RecordStreamParams,
        now_ns: u64,
    ) -> Answered {
        let index = self.open_output(client, asked, now_ns)?;
        self.apply_output_gains(index);
        let output = self.outputs.get_mut(&index).ok_or(PulseError::Internal)?;
        let source = output.source;
        output.recording.cork(asked.flags.start_corked, now_ns);
        self.take_heard(index, now_ns);
        self.states.touch(source.sink(), now_ns);
        let suspended = self.source_state(source) == SourceState::Suspended;
        let output = self.outputs.get_mut(&index).ok_or(PulseError::Internal)?;
        output.is_suspended = suspended;
        let (program, channel) = (*output.recording.program(), output.channel);
        let attributes = output.recording.attributes();
        let version = self.clients.get(&client).map_or(0, Client::version);
        let reply = CreateRecordStreamReply {
            channel,
            stream_index: index,
            buffer_attr: attributes.to_buffer(),
            sample_spec: format::spec(&program),
            channel_map: format::map(&program.map),
            stream_latency: attributes.source_latency_us,
            // The codec's name for a source.
            sink_index: source.index(),
            sink_name: self.source_name(source),
            suspended,
            format: format::info(&program),
        };
        self.notify(Facility::SourceOutput, EventType::New, index);
        Ok(Answer::Packet(wire::reply(tag, &reply, version)))
    }

    /// Opens a stream, which holds; returns its index.
    fn open_output(
        &mut self,
        client: u32,
        asked: &RecordStreamParams,
        now_ns: u64,
    ) -> Result<u32, PulseError> {
        self.refresh_if_changed(now_ns);
        let named = (asked.source_index, asked.source_name.as_deref());
        let monitors = asked.direct_on_input_index;
        let source = match monitors {
            None => self.find_source(named.0, named.1)?,
            Some(input) => self.source_of_input(input, named)?,
        };
        let account = self.clients.get(&client).ok_or(PulseError::NoEntity)?.origin.account;
        self.check_streams_of(account)?;
        let known = self.clients.get(&client).ok_or(PulseError::NoEntity)?;
        let props = properties::updated(&known.props, OVER_PROGRAM, &asked.props)?;
        let props = self.limited_for(account, 0, props)?;
        let states = (asked.cvolume.is_some(), asked.flags.start_muted.is_some());
        let mut wanted = treatment::asked(named.0, named.1, states);
        wanted.names_device |= monitors.is_some();
        let (mut treatment, start) = self.decide_start(Direction::Recording, &props, wanted);
        let mut chosen = start.device.value.as_deref().and_then(|name| self.source_named(name));
        if treatment.is_routed()
            && chosen.is_some_and(|source| self.check_hears(client, source).is_err())
        {
            // Nobody has chosen that one: it refuses no program the default.
            (chosen, treatment.device) = (None, DeviceReason::Default);
        }
        // What one stream plays is nowhere else.
        let source = chosen.filter(|_| monitors.is_none()).unwrap_or(source);
        self.check_hears(client, source)?;
        let device = self.samples_of(source).ok_or(PulseError::NoEntity)?;
        let described = (&asked.sample_spec, &asked.channel_map);
        let program = offers::chosen_of(described, &asked.formats, &asked.flags, &device)?;
        let channels = program.map.channels();
        let volume = asked.cvolume.unwrap_or_else(|| ChannelVolume::norm(channels as u8));
        let volume = for_each_channel(volume, channels).ok_or(PulseError::Invalid)?;
        let restored = start.volume.value.map(|volume| treatment::restored(&volume, &program.map));
        let volume = restored.unwrap_or(volume);

        let requested =
            RecordRequested { buffer: asked.buffer_attr, latency: latency(&asked.flags) };
        // PulseAudio's meters ask for the first; those of other programs do not.
        let lets_sleep = asked.flags.no_inhibit_auto_suspend || asked.flags.peak_detect;
        let pace = Pace::of(&program);
        let attributes = requested.grant(pace);
        let known = self.clients.get(&client).ok_or(PulseError::NoEntity)?;
        let (program_name, name) =
            (known.name().to_string_lossy().into_owned(), media_name(&props));
        let kept_us = kept_us(attributes, pace);
        let listening = Listening {
            program_name,
            name,
            source,
            kept_us,
            lets_sleep,
            account,
            volume: Volume::default(),
        };
        // Also for a stream that is recorded alone: the server's policy says whether this process
        // may hear what is played.
        let monitor = self.listen_to(listening)?;
        let input = match monitors {
            Some(_) => Recorded::Stream(Box::new(Tap::new(device.rate_hz, device.map.channels()))),
            None => Recorded::Server(monitor),
        };
        let known = self.clients.get_mut(&client).ok_or(PulseError::NoEntity)?;
        let stream = convert::StreamFormat { rate_hz: device.rate_hz, map: device.map };
        let manner = Manner {
            mixing: offers::mixing(&asked.flags),
            peaks: asked.flags.peak_detect,
            lets_sleep,
        };
        let recording = Recording::new(input, program, stream, manner, attributes)
            .map_err(|_| PulseError::NotSupported)?;

        let channel = known.next_channel;
        known.next_channel = known.next_channel.wrapping_add(1);
        let index = self.next_output;
        self.next_output = self.next_output.wrapping_add(1);
        let is_muted = start.muted.value.or(asked.flags.start_muted).unwrap_or(false);
        let output = SourceOutput {
            client,
            channel,
            account,
            source,
            monitors,
            stays: monitors.is_some() || start.may_move.map_or(asked.flags.no_move, |may| !may),
            is_pinned: treatment::is_chosen(&treatment.device),
            treatment,
            props,
            volume,
            is_muted,
            adrift: None,
            is_suspended: false,
            recording,
        };
        self.outputs.insert(index, output);
        Ok(index)
    }

    /// Opens a stream of the server that records, and holds.
    ///
    /// # Errors
    /// There is no such source, or the server's policy does not let this process hear it.
    pub(super) fn listen_to(&mut self, listening: Listening) -> Result<D::Input, PulseError> {
        let Listening { program_name, name, source, kept_us, lets_sleep, account, volume } =
            listening;
        let samples = self.samples_of(source).ok_or(PulseError::NoEntity)?;
        let device = self.sinks.get(source.sink()).and_then(|sink| sink.device.clone());
        let kept_frames = kept_us * u64::from(samples.rate_hz) / 1_000_000;
        let new = NewInput {
            program: program_name,
            name,
            device,
            is_monitor: matches!(source, Source::Monitor(_)),
            channels: samples.map.channels() as u32,
            kept_frames: u32::try_from(kept_frames).unwrap_or(u32::MAX),
            lets_sleep,
            account,
            volume,
        };
        self.devices.record(new).map_err(or_later(PulseError::AccessDenied))
    }

    fn cork_recording(
        &mut self,
        client: u32,
        channel: u32,
        is_corked: bool,
        now_ns: u64,
    ) -> Answered {
        let (index, output) = self.output_of(client, channel)?;
        let has_changed = output.recording.is_corked() != is_corked;
        output.recording.cork(is_corked, now_ns);
        self.take_heard(index, now_ns);
        self.send_recorded(index);
        if has_changed {
            self.notify(Facility::SourceOutput, EventType::Changed, index);
        }
        Ok(Answer::Done)
    }

    fn record_latency(
        &mut self,
        client: u32,
        tag: u32,
        asked: LatencyParams,
        now_ns: u64,
    ) -> Answered {
        let version = self.clients.get(&client).map_or(0, Client::version);
        let (index, output) = self.output_of(client, asked.channel)?;
        output.recording.update(now_ns);
        let times = output.recording.times(now_ns);
        let source = output.source;
        let later_us = self.source_later_us(source);
        let (_, output) = self.output_of(client, asked.channel)?;
        let reply = RecordLatency {
            // What a monitor records has been heard.
            sink_usec: 0,
            source_usec: times.source_us + later_us,
            playing: !output.recording.is_corked(),
            local_time: asked.now,
            remote_time: std::time::SystemTime::now(),
            write_offset: times.write_index,
            read_offset: times.read_index,
        };
        let answer = wire::reply(tag, &reply, version);
        self.send_recorded(index);
        Ok(Answer::Packet(answer))
    }

    fn set_record_buffer(
        &mut self,
        client: u32,
        tag: u32,
        asked: SetRecordStreamBufferAttrParams,
        now_ns: u64,
    ) -> Answered {
        let version = self.clients.get(&client).map_or(0, Client::version);
        let (_, output) = self.output_of(client, asked.index)?;
        let latency = match (asked.early_requests, asked.adjust_latency) {
            (true, _) => Latency::Early,
            (false, true) => Latency::Total,
            (false, false) => Latency::Queue,
        };
        let requested = RecordRequested { buffer: asked.buffer_attr, latency };
        let attributes = requested.grant(output.recording.pace());
        output.recording.set_attributes(attributes, now_ns);
        let reply = SetRecordStreamBufferAttrReply {
            buffer_attr: attributes.to_buffer(),
            configured_source_latency: attributes.source_latency_us,
        };
        Ok(Answer::Packet(wire::reply(tag, &reply, version)))
    }

    fn set_record_rate(&mut self, client: u32, channel: u32, rate_hz: u32) -> Answered {
        let (index, output) = self.output_of(client, channel)?;
        output.recording.set_rate(rate_hz).map_err(|_| PulseError::Invalid)?;
        self.notify(Facility::SourceOutput, EventType::Changed, index);
        Ok(Answer::Done)
    }

    /// Changes the properties of a stream of the program's own.
    fn change_output(
        &mut self,
        client: u32,
        channel: u32,
        change: impl FnOnce(&Props) -> Result<Props, PulseError>,
    ) -> Answered {
        let (index, output) = self.output_of(client, channel)?;
        let (account, before) = (output.account, properties::bytes(&output.props));
        let props = change(&output.props)?;
        let props = self.limited_for(account, before, props)?;
        let (_, output) = self.output_of(client, channel)?;
        if std::mem::replace(&mut output.props, props) != output.props {
            self.notify(Facility::SourceOutput, EventType::Changed, index);
        }
        Ok(Answer::Done)
    }

    /// Returns a program's stream by its channel, with its index.
    fn output_of(
        &mut self,
        client: u32,
        channel: u32,
    ) -> Result<(u32, &mut SourceOutput<D::Input>), PulseError> {
        let mut outputs = self.outputs.iter_mut();
        let found =
            outputs.find(|(_, output)| output.client == client && output.channel == channel);
        found.map(|(index, output)| (*index, output)).ok_or(PulseError::NoEntity)
    }
}
