//! Streams as all programs see them: *sink inputs*.

use std::ffi::CString;

use client::stream::Gains;
use convert::ChannelMap;
use pulseaudio::protocol::{
    ChannelVolume, Command, Props, PulseError, Request, SinkInputInfo,
    SubscriptionEventFacility as Facility, SubscriptionEventType as EventType, Underflow,
};

use super::absence::Adrift;
use super::playback_requests::media_name;
use super::samples::Feed;
use super::sources::for_each_channel;
use super::treatment::Treatment;
use super::{Answer, Answered, FrontEnd, format};
use crate::output::{Devices, Output};
use crate::playback::{Notice, Playback, Requested, gains};
use crate::wire;

/// The connection that a stream belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Owner {
    pub client: u32,
    /// The stream's number there.
    pub channel: u32,
}

/// One stream.
#[derive(Debug)]
pub(super) struct SinkInput<O> {
    /// `None`: a sample that the server plays.
    pub owner: Option<Owner>,
    /// What is left of such a sample.
    pub feed: Option<Feed>,
    /// The account that it counts for.
    pub account: u32,
    /// Where it plays.
    pub sink: u32,
    /// It must not be moved.
    pub stays: bool,
    /// Its program may change its rate.
    pub has_variable_rate: bool,
    /// A user has moved it there, and another default sink does not move it.
    pub is_pinned: bool,
    pub treatment: Treatment,
    /// Name of the program, for users.
    pub program_name: String,
    pub requested: Requested,
    /// What its program and itself say about it.
    pub props: Props,
    /// For each of its own channels.
    pub volume: ChannelVolume,
    pub is_muted: bool,
    /// The server has gone, or has ended it.
    pub adrift: Option<Adrift>,
    /// Its program was notified that its sink sleeps.
    pub is_suspended: bool,
    /// It ends when a user suspends its sink.
    pub fails_on_suspend: bool,
    pub playback: Playback<O>,
}

impl<O: Output> SinkInput<O> {
    /// Returns its gains on a device with these channels.
    pub fn gains(&self, device: &ChannelMap) -> Gains {
        let program = &self.playback.program().map;
        self.treatment.applied(gains(&self.volume, self.is_muted, program, device))
    }
}

impl<D: Devices> FrontEnd<D> {
    pub(super) fn input_info(&mut self, index: u32, now_ns: u64) -> Option<SinkInputInfo> {
        let input = self.inputs.get_mut(index)?;
        let program = *input.playback.program();
        let times = input.playback.times(now_ns);
        let queued = (times.write_index - times.read_index).max(0).cast_unsigned();
        let is_resampled = input.playback.stream().rate_hz != program.rate_hz;
        let stream = input.playback.output().number();
        Some(SinkInputInfo {
            index,
            name: CString::new(media_name(&input.props)).unwrap_or_default(),
            owner_module_index: None,
            client_index: input.owner.map(|owner| owner.client),
            sink_index: input.sink,
            sample_spec: format::spec(&program),
            channel_map: format::map(&program.map),
            cvolume: input.volume,
            buffer_latency: input.playback.pace().us(queued),
            sink_latency: self.sinks.get(input.sink).map_or(0, super::sinks::Sink::later_us),
            resample_method: Some(if is_resampled { c"rubato".into() } else { c"copy".into() }),
            driver: Some(c"protocol-native.c".into()),
            props: input.treatment.shown(&input.props, stream),
            muted: input.is_muted || input.treatment.is_held(),
            corked: input.playback.is_corked(),
            has_volume: true,
            volume_writable: true,
            format: format::info(&program),
        })
    }

    pub(super) fn set_input_volume(
        &mut self,
        client: u32,
        index: u32,
        volume: ChannelVolume,
    ) -> Answered {
        let input = self.inputs.get_mut(index).ok_or(PulseError::NoEntity)?;
        let channels = input.playback.program().map.channels();
        let volume = for_each_channel(volume, channels).ok_or(PulseError::Invalid)?;
        if std::mem::replace(&mut input.volume, volume).channels() == volume.channels() {
            return Ok(Answer::Done);
        }
        self.input_volume_changed(client, index);
        self.apply_gains(index)
    }

    pub(super) fn set_input_mute(&mut self, client: u32, index: u32, is_muted: bool) -> Answered {
        let input = self.inputs.get_mut(index).ok_or(PulseError::NoEntity)?;
        let was_muted = std::mem::replace(&mut input.is_muted, is_muted);
        let is_released = input.treatment.is_held() && !is_muted;
        if is_released {
            let held = input.treatment.interaction.as_ref();
            input.treatment.released_from = held.map(|held| held.by().clone());
        } else if was_muted == is_muted {
            return Ok(Answer::Done);
        }
        self.desktop.is_stale = true;
        self.input_mute_changed(client, index);
        self.apply_gains(index)
    }

    pub(super) fn apply_gains(&mut self, index: u32) -> Answered {
        let input = self.inputs.get_mut(index).ok_or(PulseError::NoEntity)?;
        let gains = input.gains(&input.playback.stream().map);
        input.playback.set_gains(gains);
        self.notify(Facility::SinkInput, EventType::Changed, index);
        Ok(Answer::Done)
    }

    /// Ends a stream; its program is notified.
    pub(super) fn kill_input(&mut self, index: u32) {
        let Some(input) = self.inputs.get(index) else { return };
        if let Some(Owner { client, channel }) = input.owner {
            self.send_event(client, &Command::PlaybackStreamKilled(channel));
        }
        self.remove_input(index);
    }

    /// Ends a stream, which fades out.
    pub(super) fn remove_input(&mut self, index: u32) {
        self.end_recordings_of(index);
        if self.inputs.remove(index).is_some() {
            self.desktop.is_stale = true;
            self.states.is_stale = true;
            self.notify(Facility::SinkInput, EventType::Removed, index);
        }
    }

    /// Sends a stream's program what it is notified of; returns whether it was asked for more.
    pub(super) fn send_notices(&mut self, index: u32) -> bool {
        let Some(input) = self.inputs.get_mut(index) else { return false };
        let Some(Owner { client, channel }) = input.owner else { return false };
        let mut is_asked = false;
        for notice in input.playback.take_notices() {
            match notice {
                Notice::Request(length) => {
                    is_asked = true;
                    self.send_event(client, &Command::Request(Request { channel, length }));
                }
                Notice::Started => self.send_event(client, &Command::Started(channel)),
                Notice::Underflow(offset) => {
                    self.send_event(client, &Command::Underflow(Underflow { channel, offset }));
                }
                Notice::Overflow => self.send_event(client, &Command::Overflow(channel)),
                Notice::Drained { tag } => self.send(client, wire::success(tag)),
            }
        }
        is_asked
    }
}
