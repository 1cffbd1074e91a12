//! Streams that record, as all programs see them: *source outputs*.

use std::ffi::CString;

use client::stream::Gains;
use pulseaudio::protocol::{
    ChannelVolume, Command, Props, PulseError, SourceOutputInfo,
    SubscriptionEventFacility as Facility, SubscriptionEventType as EventType,
};

use super::absence::Adrift;
use super::playback_requests::media_name;
use super::sources::{Source, for_each_channel};
use super::treatment::Treatment;
use super::{Answer, Answered, FrontEnd, format};
use crate::input::Input as _;
use crate::output::Devices;
use crate::playback::gains;
use crate::recording::{Recorded, Recording};
use crate::wire;

/// Most bytes that are passed to a connection before it has sent them.
const SENT_AT_ONCE: usize = 256 << 10;
/// The largest gain of a stream.
const MAX_GAIN: f32 = 16.0;

/// One stream that records.
#[derive(Debug)]
pub(super) struct SourceOutput<I> {
    /// The program that it belongs to.
    pub client: u32,
    /// Its number there.
    pub channel: u32,
    /// The account that it counts for.
    pub account: u32,
    pub source: Source,
    /// The sink input that it records alone.
    pub monitors: Option<u32>,
    /// It must not be moved.
    pub stays: bool,
    /// A user has moved it there, and another default source does not move it.
    pub is_pinned: bool,
    pub treatment: Treatment,
    /// What its program and itself say about it.
    pub props: Props,
    /// For each of its own channels.
    pub volume: ChannelVolume,
    pub is_muted: bool,
    /// The server has gone, or has ended it.
    pub adrift: Option<Adrift>,
    /// Its program was notified that its source sleeps.
    pub is_suspended: bool,
    pub recording: Recording<Recorded<I>>,
}

impl<D: Devices> FrontEnd<D> {
    pub(super) fn output_info(&mut self, index: u32, now_ns: u64) -> Option<SourceOutputInfo> {
        let output = self.outputs.get_mut(&index)?;
        let program = *output.recording.program();
        let times = output.recording.times(now_ns);
        let waiting = (times.write_index - times.read_index).max(0).cast_unsigned();
        let is_resampled = output.recording.is_resampled();
        let stream = output.recording.input().number();
        Some(SourceOutputInfo {
            index,
            name: CString::new(media_name(&output.props)).unwrap_or_default(),
            owner_module_index: None,
            client_index: Some(output.client),
            source_index: output.source.index(),
            sample_spec: format::spec(&program),
            channel_map: format::map(&program.map),
            cvolume: output.volume,
            buffer_latency: output.recording.pace().us(waiting),
            source_latency: times.source_us,
            resample_method: Some(if is_resampled { c"rubato".into() } else { c"copy".into() }),
            driver: Some(c"protocol-native.c".into()),
            props: output.treatment.shown(&output.props, stream),
            muted: output.is_muted,
            corked: output.recording.is_corked(),
            has_volume: true,
            volume_writable: true,
            format: format::info(&program),
        })
    }

    pub(super) fn set_output_volume(
        &mut self,
        client: u32,
        index: u32,
        volume: ChannelVolume,
    ) -> Answered {
        let output = self.outputs.get_mut(&index).ok_or(PulseError::NoEntity)?;
        let channels = output.recording.program().map.channels();
        let volume = for_each_channel(volume, channels).ok_or(PulseError::Invalid)?;
        if std::mem::replace(&mut output.volume, volume).channels() == volume.channels() {
            return Ok(Answer::Done);
        }
        self.output_volume_changed(client, index);
        self.apply_output_gains(index);
        self.notify(Facility::SourceOutput, EventType::Changed, index);
        Ok(Answer::Done)
    }

    pub(super) fn set_output_mute(&mut self, client: u32, index: u32, is_muted: bool) -> Answered {
        let output = self.outputs.get_mut(&index).ok_or(PulseError::NoEntity)?;
        if std::mem::replace(&mut output.is_muted, is_muted) == is_muted {
            return Ok(Answer::Done);
        }
        self.output_mute_changed(client, index);
        self.apply_output_gains(index);
        self.notify(Facility::SourceOutput, EventType::Changed, index);
        Ok(Answer::Done)
    }

    /// A stream is recorded with its own volume and that of its source.
    pub(super) fn apply_output_gains(&mut self, index: u32) {
        let Some(output) = self.outputs.get(&index) else { return };
        let of = output.source;
        let Some(source) = self.samples_of(of) else { return };
        let Some(output) = self.outputs.get_mut(&index) else { return };
        let map = output.recording.program().map;
        let own = gains(&output.volume, output.is_muted, &map, &source.map);
        let of_source = self.source_volumes.of(of);
        let channels = source.map.channels();
        let volume = of_source.volume.filter(|volume| volume.channels().len() == channels);
        let volume = volume.unwrap_or_else(|| ChannelVolume::norm(channels as u8));
        let shared = gains(&volume, of_source.is_muted, &source.map, &source.map);
        output.recording.set_gains(product(&own, &shared));
    }

    /// Ends a stream; its program is notified.
    pub(super) fn kill_output(&mut self, index: u32) {
        let Some(output) = self.outputs.get(&index) else { return };
        let (client, channel) = (output.client, output.channel);
        self.send_event(client, &Command::RecordStreamKilled(channel));
        self.remove_output(index);
    }

    /// Ends a stream.
    pub(super) fn remove_output(&mut self, index: u32) {
        if self.outputs.remove(&index).is_some() {
            self.states.is_stale = true;
            self.notify(Facility::SourceOutput, EventType::Removed, index);
        }
    }

    /// Ends the streams of a program that has gone.
    pub(super) fn remove_outputs_of(&mut self, client: u32) {
        let outputs = self.outputs.iter().filter(|(_, output)| output.client == client);
        let outputs: Vec<u32> = outputs.map(|(index, _)| *index).collect();
        outputs.into_iter().for_each(|index| self.remove_output(index));
    }

    /// Does what is due for a stream that records.
    pub(super) fn update_output(&mut self, index: u32, now_ns: u64) {
        self.take_heard(index, now_ns);
        let Some(output) = self.outputs.get(&index) else { return };
        let most = self.most_kept(output.account, output.recording.kept_bytes());
        let Some(output) = self.outputs.get_mut(&index) else { return };
        output.recording.keep_at_most(most);
        output.recording.update(now_ns);
        self.send_recorded(index);
    }

    /// A program has taken everything that was sent.
    pub fn sent_all(&mut self, client: u32) {
        self.catch_up(client);
        let Some(known) = self.clients.get_mut(&client).filter(|known| known.is_busy) else {
            return;
        };
        known.is_busy = false;
        let outputs = self.outputs.iter().filter(|(_, output)| output.client == client);
        let outputs: Vec<u32> = outputs.map(|(index, _)| *index).collect();
        outputs.into_iter().for_each(|index| self.send_recorded(index));
    }

    /// Sends a stream's program what was recorded, unless it has not taken what was sent before.
    pub(super) fn send_recorded(&mut self, index: u32) {
        let client = self.outputs.get(&index).and_then(|output| self.clients.get(&output.client));
        if client.is_some_and(|known| !known.is_busy) {
            self.send_pieces(index);
        }
    }

    /// Sends a stream's program as much of what was recorded as it is sent at once.
    pub(super) fn send_pieces(&mut self, index: u32) {
        let Some(output) = self.outputs.get_mut(&index) else { return };
        let (client, channel) = (output.client, output.channel);
        let Some(known) = self.clients.get_mut(&client) else { return };
        let mut sent = 0;
        let mut frames = Vec::new();
        while sent < SENT_AT_ONCE
            && let Some(bytes) = output.recording.take()
        {
            let frame = wire::samples(channel, &bytes);
            sent += frame.len();
            frames.push(frame);
        }
        known.is_busy |= sent > 0;
        frames.into_iter().for_each(|frame| self.send(client, frame));
    }
}

/// Returns the product of gains, as far as there can be one.
pub(super) fn product(one: &Gains, other: &Gains) -> Gains {
    let of = |channel| (one.of(channel) * other.of(channel)).min(MAX_GAIN);
    Gains::new(std::array::from_fn(of)).unwrap_or_default()
}
