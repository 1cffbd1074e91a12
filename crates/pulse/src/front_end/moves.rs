//! Streams that go on at another sink or source.

use pulseaudio::protocol::{
    Command, PlaybackStreamMovedParams, PulseError, RecordStreamMovedParams, SourceState,
    SubscriptionEventFacility as Facility, SubscriptionEventType as EventType,
};

use super::new_input::Opening;
use super::playback_requests::media_name;
use super::record_requests::{Listening, kept_us};
use super::sink_inputs::Owner;
use super::sources::Source;
use super::{Answer, Answered, Client, FrontEnd};
use crate::input::Input as _;
use crate::output::{Devices, Output as _};
use crate::recording::Recorded;

impl<D: Devices> FrontEnd<D> {
    /// A user moves a stream that plays.
    pub(super) fn move_input_of(
        &mut self,
        client: u32,
        index: Option<u32>,
        sink: u32,
        now_ns: u64,
    ) -> Answered {
        let index = index.filter(|index| self.inputs.get(*index).is_some());
        let index = index.ok_or(PulseError::NoEntity)?;
        self.move_input(index, sink, now_ns)?;
        let is_default = self.default_sink() == Some(sink);
        if let Some(input) = self.inputs.get_mut(index) {
            input.is_pinned = !is_default;
        }
        self.input_device_changed(client, index);
        Ok(Answer::Done)
    }

    /// Has a stream go on at another sink. The server moves it if its frames fit the device there;
    /// else it goes on as another stream of the server, from the byte that is heard.
    ///
    /// # Errors
    /// It must not be moved ([`PulseError::Invalid`], as in PulseAudio), or the server refuses it.
    pub(super) fn move_input(
        &mut self,
        index: u32,
        sink: u32,
        now_ns: u64,
    ) -> Result<(), PulseError> {
        let input = self.inputs.get(index).ok_or(PulseError::NoEntity)?;
        if input.sink == sink && input.adrift.is_none() {
            return Ok(());
        }
        if input.stays && input.sink != sink {
            return Err(PulseError::Invalid);
        }
        let to = self.sinks.get(sink).ok_or(PulseError::NoEntity)?;
        let stream = to.stream();
        let fits = *input.playback.stream() == stream && input.adrift.is_none();
        let is_moved =
            fits && self.devices.move_output(input.playback.output(), to.device.as_deref());
        if !is_moved {
            let opening = Opening {
                sink,
                account: input.account,
                program_name: input.program_name.clone(),
                name: media_name(&input.props),
                program: *input.playback.program(),
                has_variable_rate: input.has_variable_rate,
                mixing: input.playback.mixing(),
                requested: input.requested,
                volume: input.playback.output().volume(),
            };
            let (output, attributes) = self.begin_on(opening)?;
            let input = self.inputs.get_mut(index).ok_or(PulseError::NoEntity)?;
            let gains = input.gains(&stream.map);
            let gone_on = input.playback.go_on_with(output, stream, attributes, gains, now_ns);
            gone_on.map_err(|_| PulseError::NotSupported)?;
            input.adrift = None;
        }
        self.input_has_moved(index, sink, now_ns);
        Ok(())
    }

    /// A stream goes on at another sink: its program is notified, and all others.
    pub(super) fn input_has_moved(&mut self, index: u32, sink: u32, now_ns: u64) {
        let Some(to) = self.sinks.get(sink) else { return };
        let device_name = to.name.clone();
        let Some(input) = self.inputs.get_mut(index) else { return };
        let from = std::mem::replace(&mut input.sink, sink);
        if from != sink {
            self.end_recordings_of(index);
        }
        let Some(input) = self.inputs.get_mut(index) else { return };
        self.desktop.is_stale = true;
        input.playback.update(now_ns);
        let attributes = input.playback.attributes();
        self.states.touch(sink, now_ns);
        let suspended = self.is_sink_asleep(sink);
        let Some(input) = self.inputs.get_mut(index) else { return };
        input.is_suspended = suspended;
        if let Some(Owner { client, channel }) = input.owner {
            let moved = PlaybackStreamMovedParams {
                stream_index: channel,
                device_index: sink,
                device_name,
                device_suspended: suspended,
                buffer_attr: attributes.to_buffer(),
                configured_sink_latency: attributes.sink_latency_us,
            };
            self.send_event(client, &Command::PlaybackStreamMoved(moved));
        }
        self.notify(Facility::SinkInput, EventType::Changed, index);
        for sink in if from == sink { vec![sink] } else { vec![from, sink] } {
            if self.sinks.get(sink).is_some() {
                self.notify(Facility::Sink, EventType::Changed, sink);
            }
        }
        self.send_notices(index);
    }

    /// A user moves a stream that records.
    pub(super) fn move_output_of(
        &mut self,
        client: u32,
        index: Option<u32>,
        source: Source,
        now_ns: u64,
    ) -> Answered {
        let index = index.filter(|index| self.outputs.contains_key(index));
        let index = index.ok_or(PulseError::NoEntity)?;
        self.move_output(index, source, now_ns)?;
        let is_default = self.default_source() == Some(source);
        if let Some(output) = self.outputs.get_mut(&index) {
            output.is_pinned = !is_default;
        }
        self.output_device_changed(client, index);
        Ok(Answer::Done)
    }

    /// Has a stream record another source from now on, as another stream of the server.
    ///
    /// # Errors
    /// It must not be moved ([`PulseError::Invalid`], as in PulseAudio), its program may not hear
    /// the source, or the server refuses it.
    pub(super) fn move_output(
        &mut self,
        index: u32,
        source: Source,
        now_ns: u64,
    ) -> Result<(), PulseError> {
        let output = self.outputs.get(&index).ok_or(PulseError::NoEntity)?;
        if output.source == source && output.adrift.is_none() {
            return Ok(());
        }
        if output.stays && output.source != source {
            return Err(PulseError::Invalid);
        }
        // Whoever moves it.
        self.check_hears(output.client, source)?;
        let listening = self.listening_of(index).ok_or(PulseError::NoEntity)?;
        let listening = Listening { source, ..listening };
        let samples = self.samples_of(source).ok_or(PulseError::NoEntity)?;
        let stream = convert::StreamFormat { rate_hz: samples.rate_hz, map: samples.map };
        let input = Recorded::Server(self.listen_to(listening)?);
        let output = self.outputs.get_mut(&index).ok_or(PulseError::NoEntity)?;
        let gone_on = output.recording.go_on_with(input, stream, now_ns);
        gone_on.map_err(|_| PulseError::NotSupported)?;
        output.adrift = None;
        self.output_has_moved(index, source, now_ns);
        Ok(())
    }

    /// Returns how a stream listens to its source.
    pub(super) fn listening_of(&self, index: u32) -> Option<Listening> {
        let output = self.outputs.get(&index)?;
        let program = self.clients.get(&output.client).map(Client::name);
        let recording = &output.recording;
        Some(Listening {
            program_name: program.unwrap_or_default().to_string_lossy().into_owned(),
            name: media_name(&output.props),
            source: output.source,
            kept_us: kept_us(recording.attributes(), recording.pace()),
            lets_sleep: recording.manner().lets_sleep,
            account: output.account,
            volume: recording.input().volume(),
        })
    }

    /// A stream records another source from now on: its program is notified, and all others.
    pub(super) fn output_has_moved(&mut self, index: u32, source: Source, now_ns: u64) {
        let device_name = self.source_name(source).unwrap_or_default();
        let Some(output) = self.outputs.get_mut(&index) else { return };
        output.source = source;
        let (client, attributes) = (output.client, output.recording.attributes());
        self.states.touch(source.sink(), now_ns);
        let suspended = self.source_state(source) == SourceState::Suspended;
        let Some(output) = self.outputs.get_mut(&index) else { return };
        output.is_suspended = suspended;
        let moved = RecordStreamMovedParams {
            stream_index: output.channel,
            device_index: source.index(),
            device_name,
            device_suspended: suspended,
            buffer_attr: attributes.to_buffer(),
            configured_source_latency: attributes.source_latency_us,
        };
        self.send_event(client, &Command::RecordStreamMoved(moved));
        self.apply_output_gains(index);
        self.notify(Facility::SourceOutput, EventType::Changed, index);
    }
}
