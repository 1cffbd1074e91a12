//! What programs ask about the streams of modules.

use client::stream::Volume;
use pulseaudio::protocol::{
    ChannelVolume, Command, PulseError, SubscriptionEventType as EventType,
};

use super::absence::or_later;
use super::module_streams::Side;
use super::sources::for_each_channel;
use super::{Answer, Answered, Client, FrontEnd};
use crate::output::{Devices, LinkEnd};
use crate::playback::gain_of;
use crate::wire;

impl<D: Devices> FrontEnd<D> {
    /// Answers requests about streams of modules; `None` if it is none of these.
    pub(super) fn answer_about_module_streams(
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
                let device = sink.map(|sink| self.sinks.get(sink).map(|sink| &sink.device));
                device.and_then(|device| {
                    let plays_on = device.map(|device| LinkEnd::Plays(device.clone()));
                    self.stays(module, (side, index), plays_on)
                })
            }
            Command::MoveSourceOutput(asked) => {
                let source = self.find_source(asked.device_index, asked.device_name.as_deref());
                source.and_then(|source| {
                    let records = self.heard_at(source).map(LinkEnd::Records);
                    self.stays(module, (side, index), records)
                })
            }
            _ => self.kill_module_stream(client, module, now_ns),
        })
    }

    /// A stream of a module is where its module has it: elsewhere, it would be another link.
    ///
    /// # Errors
    /// [`PulseError::Invalid`], as for each stream that must not be moved.
    fn stays(&self, module: u32, stream: (Side, u32), to: Option<LinkEnd>) -> Answered {
        let own = self.modules.get(module).and_then(|module| module.stream(stream));
        match own.is_some_and(|own| Some(&own.end) == to.as_ref()) {
            true => Ok(Answer::Done),
            false => Err(PulseError::Invalid),
        }
    }

    /// Ending a stream of a module unloads the module, as in PulseAudio.
    fn kill_module_stream(&mut self, client: u32, module: u32, now_ns: u64) -> Answered {
        // MUTATION: kill_module_stream.by_anyone
        if !self.rights_of(client).load {
            return Err(PulseError::AccessDenied);
        }
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
