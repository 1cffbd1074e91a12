//! What programs ask about their own streams.

use policy::Direction;
use pulseaudio::protocol::stream::StreamFlags;
use pulseaudio::protocol::{
    ChannelVolume, CreatePlaybackStreamReply, LatencyParams, PlaybackLatency, PlaybackStreamParams,
    Props, PulseError, SetPlaybackStreamBufferAttrParams, SetPlaybackStreamBufferAttrReply,
    SubscriptionEventFacility as Facility, SubscriptionEventType as EventType,
};

use super::dispatch::OVER_PROGRAM;
use super::new_input::NewInput;
use super::sink_inputs::{Owner, SinkInput};
use super::{Answer, Answered, Client, FrontEnd, format, offers, properties, treatment};
use crate::output::Devices;
use crate::playback::{Latency, Playback, Requested};
use crate::wire;

/// Requests of a stream that wait until everything was heard, at most. A program has one mostly.
const MAX_WAITING_DRAINS: usize = 64;

impl<D: Devices> FrontEnd<D> {
    pub(super) fn create_playback(
        &mut self,
        client: u32,
        tag: u32,
        asked: &PlaybackStreamParams,
        now_ns: u64,
    ) -> Answered {
        let (index, channel) = self.open_stream(client, asked, now_ns)?;
        let input = self.inputs.get_mut(index).ok_or(PulseError::Internal)?;
        let sink = input.sink;
        let is_held = self.sinks.get(sink).is_some_and(|sink| sink.is_suspended);
        input.playback.suspend(is_held, now_ns);
        input.playback.cork(asked.flags.start_corked, now_ns);
        // Its device wakes, or could.
        self.states.touch(sink, now_ns);
        let suspended = self.is_sink_asleep(sink);
        let input = self.inputs.get_mut(index).ok_or(PulseError::Internal)?;
        input.is_suspended = suspended;
        let program = *input.playback.program();
        let attributes = input.playback.attributes();
        let version = self.clients.get(&client).map_or(0, Client::version);
        let reply = CreatePlaybackStreamReply {
            channel,
            stream_index: index,
            requested_bytes: attributes.target_length,
            buffer_attr: attributes.to_buffer(),
            sample_spec: format::spec(&program),
            channel_map: format::map(&program.map),
            stream_latency: attributes.sink_latency_us,
            sink_index: sink,
            sink_name: self.sinks.get(sink).map(|sink| sink.name.clone()),
            suspended,
            format: format::info(&program),
        };
        self.notify(Facility::SinkInput, EventType::New, index);
        Ok(Answer::Packet(wire::reply(tag, &reply, version)))
    }

    /// Opens a stream; returns its index, and the channel by which its program knows it.
    fn open_stream(
        &mut self,
        client: u32,
        asked: &PlaybackStreamParams,
        now_ns: u64,
    ) -> Result<(u32, u32), PulseError> {
        self.refresh_if_changed(now_ns);
        let sink = self.find_sink(asked.sink_index, asked.sink_name.as_deref())?;
        let known = self.clients.get(&client).ok_or(PulseError::NoEntity)?;
        let account = known.origin.account;
        self.check_streams_of(account)?;
        let props = properties::updated(&known.props, OVER_PROGRAM, &asked.props)?;
        let props = self.limited_for(account, 0, props)?;
        let program_name = known.name().to_string_lossy().into_owned();
        let states = (asked.cvolume.is_some(), asked.flags.start_muted.is_some());
        let wanted = treatment::asked(asked.sink_index, asked.sink_name.as_deref(), states);
        let start = self.decide_start(Direction::Playback, &props, wanted);
        let chosen = start.1.device.value.as_deref().and_then(|name| self.sink_named(name));
        let sink = chosen.unwrap_or(sink);
        let found = self.sinks.get(sink).ok_or(PulseError::NoEntity)?;
        if asked.flags.fail_on_suspend && found.is_suspended {
            return Err(PulseError::BadState);
        }
        let device = found.samples();
        let program = offers::chosen(asked, &device)?;
        let volume = volume(asked, program.map.channels())?;
        let known = self.clients.get_mut(&client).ok_or(PulseError::NoEntity)?;
        let channel = known.take_channel();
        let index = self.open_input(NewInput {
            owner: Some(Owner { client, channel }),
            feed: None,
            account,
            sink,
            stays: asked.flags.no_move,
            has_variable_rate: asked.flags.variable_rate,
            program_name,
            program,
            props,
            volume,
            is_muted: asked.flags.start_muted.unwrap_or(false),
            fails_on_suspend: asked.flags.fail_on_suspend,
            requested: Requested { buffer: asked.buffer_attr, latency: latency(&asked.flags) },
            mixing: offers::mixing(&asked.flags),
            start,
        })?;
        Ok((index, channel))
    }

    pub(super) fn delete_playback(&mut self, client: u32, channel: u32) -> Answered {
        let (index, _) = self.input_of(client, channel)?;
        self.remove_input(index);
        Ok(Answer::Done)
    }

    /// Has a program answered once everything of a stream was heard.
    pub(super) fn drain(&mut self, client: u32, tag: u32, channel: u32, now_ns: u64) -> Answered {
        let (_, input) = self.input_of(client, channel)?;
        // MUTATION: drain.without_limit
        if input.playback.waiting_drains() >= MAX_WAITING_DRAINS {
            return Err(PulseError::TooLarge);
        }
        let drain = self.control(client, channel, |playback| playback.drain(tag, now_ns));
        drain.map(|_| Answer::Later)
    }

    /// Does something to a stream of the program's own.
    pub(super) fn control(
        &mut self,
        client: u32,
        channel: u32,
        control: impl FnOnce(&mut Playback<D::Output>),
    ) -> Answered {
        let (index, input) = self.input_of(client, channel)?;
        let before = (input.playback.is_corked(), input.playback.runs());
        control(&mut input.playback);
        let after = (input.playback.is_corked(), input.playback.runs());
        self.send_notices(index);
        if before != after {
            self.desktop.is_stale = true;
            self.notify(Facility::SinkInput, EventType::Changed, index);
        }
        Ok(Answer::Done)
    }

    pub(super) fn latency(
        &mut self,
        client: u32,
        tag: u32,
        asked: LatencyParams,
        now_ns: u64,
    ) -> Answered {
        let version = self.clients.get(&client).map_or(0, Client::version);
        let (index, input) = self.input_of(client, asked.channel)?;
        input.playback.update(now_ns);
        let times = input.playback.times(now_ns);
        let sink = input.sink;
        let later_us = self.sinks.get(sink).map_or(0, super::sinks::Sink::later_us);
        self.send_notices(index);
        let reply = PlaybackLatency {
            // What is not behind the sink is between the two indices.
            sink_usec: later_us,
            source_usec: 0,
            playing: times.playing_for > 0,
            local_time: asked.now,
            remote_time: std::time::SystemTime::now(),
            write_offset: times.write_index,
            read_offset: times.read_index,
            underrun_for: times.underrun_for,
            playing_for: times.playing_for,
        };
        Ok(Answer::Packet(wire::reply(tag, &reply, version)))
    }

    pub(super) fn set_buffer(
        &mut self,
        client: u32,
        tag: u32,
        asked: SetPlaybackStreamBufferAttrParams,
        now_ns: u64,
    ) -> Answered {
        let version = self.clients.get(&client).map_or(0, Client::version);
        let (index, input) = self.input_of(client, asked.index)?;
        let latency = match (asked.early_requests, asked.adjust_latency) {
            (true, _) => Latency::Early,
            (false, true) => Latency::Total,
            (false, false) => Latency::Queue,
        };
        let requested = Requested { buffer: asked.buffer_attr, latency };
        let (pace, most_us) = (input.playback.pace(), input.playback.most_us());
        let attributes = requested.grant_within(pace, most_us);
        input.playback.set_attributes(attributes);
        input.playback.update(now_ns);
        let reply = SetPlaybackStreamBufferAttrReply {
            buffer_attr: attributes.to_buffer(),
            configured_sink_latency: attributes.sink_latency_us,
        };
        self.send(client, wire::reply(tag, &reply, version));
        self.send_notices(index);
        Ok(Answer::Later)
    }

    pub(super) fn set_rate(&mut self, client: u32, channel: u32, rate_hz: u32) -> Answered {
        let (index, input) = self.input_of(client, channel)?;
        input
            .playback
            .set_rate(rate_hz, input.has_variable_rate)
            .map_err(|_| PulseError::Invalid)?;
        self.notify(Facility::SinkInput, EventType::Changed, index);
        Ok(Answer::Done)
    }

    /// Changes the properties of a stream of the program's own.
    pub(super) fn change_input(
        &mut self,
        client: u32,
        channel: u32,
        now_ns: u64,
        change: impl FnOnce(&Props) -> Result<Props, PulseError>,
    ) -> Answered {
        let (index, input) = self.input_of(client, channel)?;
        let (account, before) = (input.account, properties::bytes(&input.props));
        let props = change(&input.props)?;
        let props = self.limited_for(account, before, props)?;
        let (_, input) = self.input_of(client, channel)?;
        if std::mem::replace(&mut input.props, props) != input.props {
            input.treatment.identity = treatment::identity(Direction::Playback, &input.props);
            self.desktop.is_stale = true;
            self.notify(Facility::SinkInput, EventType::Changed, index);
            // It may have another role. One that looks for a place is routed when it has one.
            if self.inputs.get(index).is_some_and(|input| input.adrift.is_none()) {
                self.route_input(index, now_ns);
            }
        }
        Ok(Answer::Done)
    }

    /// Returns a program's stream by its channel, with its index.
    pub(super) fn input_of(
        &mut self,
        client: u32,
        channel: u32,
    ) -> Result<(u32, &mut SinkInput<D::Output>), PulseError> {
        let index = self.inputs.of_owner(Owner { client, channel }).ok_or(PulseError::NoEntity)?;
        let input = self.inputs.get_mut(index).ok_or(PulseError::NoEntity)?;
        Ok((index, input))
    }
}

/// Returns what the length of a buffer is about.
pub(super) fn latency(flags: &StreamFlags) -> Latency {
    match (flags.early_requests, flags.adjust_latency) {
        (true, _) => Latency::Early,
        (false, true) => Latency::Total,
        (false, false) => Latency::Queue,
    }
}

/// Returns the volume of a new stream: for each of its channels.
fn volume(asked: &PlaybackStreamParams, channels: usize) -> Result<ChannelVolume, PulseError> {
    match asked.cvolume {
        None => Ok(ChannelVolume::norm(channels as u8)),
        Some(volume) if volume.channels().len() == channels => Ok(volume),
        Some(volume) if volume.channels().len() == 1 => {
            let mut all = ChannelVolume::empty();
            (0..channels).for_each(|_| all.push(volume.channels()[0]));
            Ok(all)
        }
        Some(_) => Err(PulseError::Invalid),
    }
}

/// Returns what a stream plays, for users.
pub(super) fn media_name(props: &Props) -> String {
    let name = properties::text(props, pulseaudio::protocol::Prop::MediaName);
    name.unwrap_or_default().to_string_lossy().into_owned()
}
