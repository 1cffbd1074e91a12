//! What programs ask about the streams of modules.

use client::stream::Volume;
use convert::ChannelMap;
use pulseaudio::protocol::{
    ChannelVolume, Command, PulseError, SubscriptionEventType as EventType,
};

use super::arguments::Arguments;
use super::kinds::Kind;
use super::streams::Side;
use crate::front_end::absence::or_later;
use crate::front_end::sources::{Source, for_each_channel};
use crate::front_end::{Answer, Answered, Client, FrontEnd};
use crate::output::{Devices, LinkEnd, NewLink};
use crate::playback::gain_of;
use crate::wire;

/// Where a stream is to go.
struct NewEnd {
    end: LinkEnd,
    /// All channels there.
    map: ChannelMap,
    /// It is the default sink, or source.
    is_default: bool,
}

impl<D: Devices> FrontEnd<D> {
    /// Answers requests about streams of modules; `None` if it is none of these.
    pub(in crate::front_end) fn answer_about_module_streams(
        &mut self,
        client: u32,
        tag: u32,
        command: &Command,
        now_ns: u64,
    ) -> Option<Answered> {
        let (side, index) = match command {
            Command::GetSinkInputInfo(index) | Command::KillSinkInput(index) => {
                (Side::Input, *index)
            }
            Command::SetSinkInputVolume(asked) => (Side::Input, asked.index),
            Command::SetSinkInputMute(asked) => (Side::Input, asked.index),
            Command::MoveSinkInput(asked) => (Side::Input, asked.index?),
            Command::GetSourceOutputInfo(index) | Command::KillSourceOutput(index) => {
                (Side::Output, *index)
            }
            Command::SetSourceOutputVolume(asked) => (Side::Output, asked.index),
            Command::SetSourceOutputMute(asked) => (Side::Output, asked.index),
            Command::MoveSourceOutput(asked) => (Side::Output, asked.index?),
            _ => return None,
        };
        let module = self.modules.of_stream(side, index)?;
        let version = self.clients.get(&client).map_or(0, Client::version);
        Some(match command {
            Command::GetSinkInputInfo(_) => {
                let info = self.module_input_info(module, index).ok_or(PulseError::NoEntity);
                info.map(|info| Answer::Packet(wire::reply(tag, &info, version)))
            }
            Command::GetSourceOutputInfo(_) => {
                let info = self.module_output_info(module, index).ok_or(PulseError::NoEntity);
                info.map(|info| Answer::Packet(wire::reply(tag, &info, version)))
            }
            Command::SetSinkInputVolume(asked) | Command::SetSourceOutputVolume(asked) => {
                self.set_module_stream_volume(module, (side, index), asked.volume)
            }
            Command::SetSinkInputMute(asked) | Command::SetSourceOutputMute(asked) => self
                .change_module_stream(module, (side, index), |volume| Volume {
                    muted: asked.mute,
                    ..volume
                }),
            Command::MoveSinkInput(asked) => {
                let sink = self.find_sink(asked.device_index, asked.device_name.as_deref());
                let sink = sink.and_then(|sink| self.end_on_sink(sink).ok_or(PulseError::NoEntity));
                sink.and_then(|to| self.move_module_stream(client, module, to, now_ns))
            }
            Command::MoveSourceOutput(asked) => {
                let source = self.find_source(asked.device_index, asked.device_name.as_deref());
                let source =
                    source.and_then(|of| self.end_at_source(of).ok_or(PulseError::NoEntity));
                source.and_then(|to| self.move_module_stream(client, module, to, now_ns))
            }
            _ => self.kill_module_stream(client, module, now_ns),
        })
    }

    fn end_on_sink(&self, sink: u32) -> Option<NewEnd> {
        let found = self.sinks.get(sink)?;
        let is_default = self.default_sink() == Some(sink);
        Some(NewEnd { end: LinkEnd::Plays(found.device.clone()), map: found.map, is_default })
    }

    fn end_at_source(&self, source: Source) -> Option<NewEnd> {
        let end = LinkEnd::Records(self.heard_at(source)?);
        let is_default = self.default_source() == Some(source);
        Some(NewEnd { end, map: self.samples_of(source)?.map, is_default })
    }

    /// Has a loopback play or record elsewhere, by another process. It follows no default from
    /// there, unless it names none, and that is where it goes.
    ///
    /// # Errors
    /// [`PulseError::Invalid`], as for each stream that must not be moved: its arguments say so, it
    /// is of another module, or would be played into itself.
    fn move_module_stream(
        &mut self,
        client: u32,
        module: u32,
        to: NewEnd,
        now_ns: u64,
    ) -> Answered {
        // MUTATION: move_module_stream.by_anyone
        if !self.rights_of(client).load {
            return Err(PulseError::AccessDenied);
        }
        let own = self.modules.get(module).ok_or(PulseError::NoEntity)?;
        if own.streams.iter().any(|stream| stream.end == to.end) {
            return Ok(Answer::Done);
        }
        let link = own.link.as_ref().ok_or(PulseError::Invalid)?;
        let (Kind::Loopback, NewLink::Loopback(loopback)) = (own.kind, &link.new) else {
            return Err(PulseError::Invalid);
        };
        if link.is_down {
            return Err(PulseError::Busy);
        }
        let arguments = Arguments::read(&own.argument_text(), own.kind.keys());
        let arguments = arguments.map_err(|_| PulseError::Invalid)?;
        let (side, stays) = match to.end {
            LinkEnd::Plays(_) => (Side::Input, "sink_dont_move"),
            LinkEnd::Records(_) => (Side::Output, "source_dont_move"),
        };
        if arguments.boolean(stays) == Ok(Some(true)) {
            return Err(PulseError::Invalid);
        }
        let mut new = loopback.clone();
        let named = match to.end {
            LinkEnd::Plays(device) => {
                new.to = vec![(device, to.map)];
                "sink"
            }
            LinkEnd::Records(heard) => {
                (new.from, new.from_map) = (heard, to.map);
                let via = arguments.samples().ok().and_then(|samples| samples.map);
                new.via = via.filter(|via| *via != to.map);
                "source"
            }
        };
        if new.is_into_itself() {
            return Err(PulseError::Invalid);
        }
        let is_pinned = arguments.text(named).is_some() || !to.is_default;
        if let Some(own) = self.modules.get_mut(module) {
            let streams = own.streams.iter_mut().filter(|stream| stream.side() == side);
            streams.for_each(|stream| stream.is_pinned = is_pinned);
        }
        self.link_again(module, NewLink::Loopback(new), now_ns);
        Ok(Answer::Done)
    }

    /// Ending a stream of a module unloads the module, as in PulseAudio.
    fn kill_module_stream(&mut self, client: u32, module: u32, now_ns: u64) -> Answered {
        // MUTATION: kill_module_stream.by_anyone
        if !self.rights_of(client).load {
            return Err(PulseError::AccessDenied);
        }
        self.modules.leave_unloaded(module);
        self.remove_module(module, now_ns);
        Ok(Answer::Done)
    }

    fn set_module_stream_volume(
        &mut self,
        module: u32,
        stream: (Side, u32),
        volumes: ChannelVolume,
    ) -> Answered {
        let own = self.modules.get(module).ok_or(PulseError::NoEntity)?;
        let end = &own.stream(stream).ok_or(PulseError::NoEntity)?.end;
        let (program, _) = self.passing_at(own, end).ok_or(PulseError::NoEntity)?;
        let volumes = for_each_channel(volumes, program.map.channels());
        let gain = volumes.as_ref().and_then(gain_of).ok_or(PulseError::Invalid)?;
        self.change_module_stream(module, stream, |volume| Volume { gain, ..volume })
    }

    fn change_module_stream(
        &mut self,
        module: u32,
        stream: (Side, u32),
        change: impl FnOnce(Volume) -> Volume,
    ) -> Answered {
        let own = self.modules.get_mut(module).and_then(|module| module.stream_mut(stream));
        let own = own.ok_or(PulseError::NoEntity)?;
        let volume = change(own.volume);
        if own.volume == volume {
            return Ok(Answer::Done);
        }
        let set = self.devices.set_link_volume(module, &own.end, volume);
        set.map_err(or_later(PulseError::AccessDenied))?;
        own.volume = volume;
        self.notify(stream.0.facility(), EventType::Changed, stream.1);
        Ok(Answer::Done)
    }
}
