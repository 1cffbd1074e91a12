//! Each command of the protocol, and what answers it.

use pulseaudio::protocol::props::PropsUpdateMode;
use pulseaudio::protocol::{Command, PulseError, StatInfo};

use super::objects::answer_message;
use super::{Answer, Answered, Client, FrontEnd, properties};
use crate::output::Devices;
use crate::wire::{self, Packet, Request};

impl<D: Devices> FrontEnd<D> {
    pub(super) fn answer(&mut self, client: u32, packet: Packet, now_ns: u64) -> Answered {
        let Packet { tag, request, keys, extension } = packet;
        if let Request::Command(command) = &request
            && let Command::Auth(asked) = &**command
        {
            return self.authenticate(client, tag, asked);
        }
        if !self.is_admitted(client) {
            return Err(PulseError::AccessDenied);
        }
        let command = match request {
            Request::Command(command) => *command,
            Request::Message(message) => return answer_message(tag, &message),
        };
        // MUTATION: answer.without_rights
        self.check_rights(client, &command)?;
        match command {
            Command::SetClientName(props) => self.name_client(client, tag, props),
            Command::UpdateClientProplist(update) => self.change_client(client, |before| {
                properties::updated(before, update.mode, &update.props)
            }),
            Command::RemoveClientProplist => {
                self.change_client(client, |before| Ok(properties::without(before, &keys)))
            }
            Command::Subscribe(mask) => {
                let known = self.clients.get_mut(&client).ok_or(PulseError::NoEntity)?;
                known.subscription = mask;
                Ok(Answer::Done)
            }
            Command::KillClient(index) => self.kill_client(index),
            Command::CreatePlaybackStream(asked) => {
                self.create_playback(client, tag, &asked, now_ns)
            }
            Command::DeletePlaybackStream(channel) => self.delete_playback(client, channel),
            Command::Extension(asked) => {
                self.answer_extension(client, tag, (asked.name.as_deref(), &extension), now_ns)
            }
            command => self
                .answer_about_module_streams(client, tag, &command, now_ns)
                .or_else(|| self.answer_about_playback(client, tag, &command, &keys, now_ns))
                .or_else(|| self.answer_about_samples(client, tag, &command, &keys, now_ns))
                .or_else(|| self.answer_about_recording(client, tag, &command, &keys, now_ns))
                .or_else(|| self.answer_about_sinks(client, tag, &command, now_ns))
                .or_else(|| self.answer_about_sources(client, tag, &command, now_ns))
                .or_else(|| self.answer_about_cards(client, tag, &command, now_ns))
                .or_else(|| self.answer_about_modules(client, tag, &command, now_ns))
                .unwrap_or_else(|| self.answer_about_server(client, tag, &command, now_ns)),
        }
    }

    /// Answers requests about a stream of the program's own; `None` if it is none of these.
    fn answer_about_playback(
        &mut self,
        client: u32,
        tag: u32,
        command: &Command,
        keys: &[std::ffi::CString],
        now_ns: u64,
    ) -> Option<Answered> {
        Some(match command {
            Command::CorkPlaybackStream(asked) => {
                self.control(client, asked.channel, |playback| playback.cork(asked.cork, now_ns))
            }
            Command::FlushPlaybackStream(channel) => {
                self.control(client, *channel, |playback| playback.flush(now_ns))
            }
            Command::TriggerPlaybackStream(channel) => {
                self.control(client, *channel, |playback| playback.trigger(now_ns))
            }
            Command::PrebufPlaybackStream(channel) => {
                self.control(client, *channel, |playback| playback.prebuffer(now_ns))
            }
            Command::DrainPlaybackStream(channel) => self.drain(client, tag, *channel, now_ns),
            Command::GetPlaybackLatency(asked) => self.latency(client, tag, *asked, now_ns),
            Command::SetPlaybackStreamBufferAttr(asked) => {
                self.set_buffer(client, tag, *asked, now_ns)
            }
            Command::UpdatePlaybackStreamSampleRate(asked) => {
                self.set_rate(client, asked.index, asked.sample_rate)
            }
            Command::SetPlaybackStreamName(asked) => {
                let name = asked.name.to_str().unwrap_or_default();
                self.change_input(client, asked.index, now_ns, |before| {
                    let mut new = before.clone();
                    properties::set(&mut new, c"media.name", name);
                    properties::limited(new)
                })
            }
            Command::UpdatePlaybackStreamProplist(asked) => {
                self.change_input(client, asked.index, now_ns, |before| {
                    properties::updated(before, asked.mode, &asked.props)
                })
            }
            Command::RemovePlaybackStreamProplist(channel) => {
                self.change_input(client, *channel, now_ns, |before| {
                    Ok(properties::without(before, keys))
                })
            }
            _ => return None,
        })
    }

    /// Answers requests about what all programs see.
    fn answer_about_server(
        &mut self,
        client: u32,
        tag: u32,
        command: &Command,
        now_ns: u64,
    ) -> Answered {
        let version = self.clients.get(&client).map_or(0, Client::version);
        let packet = |bytes| Ok(Answer::Packet(bytes));
        match command {
            Command::Stat => {
                // Nothing is shared with programs, so nothing is allocated for them.
                let sample_cache_size = self.samples.kept_bytes() as u32;
                let stat = StatInfo { sample_cache_size, ..StatInfo::default() };
                packet(wire::reply(tag, &stat, version))
            }
            Command::GetClientInfo(index) => {
                let known = self.clients.get(index).filter(|known| known.admitted.is_some());
                let info = known.ok_or(PulseError::NoEntity)?.info(*index);
                packet(wire::reply(tag, &info, version))
            }
            Command::GetClientInfoList => {
                let known = self.clients.iter().filter(|(_, known)| known.admitted.is_some());
                let all: Vec<_> = known.map(|(index, known)| known.info(*index)).collect();
                packet(wire::reply(tag, &all, version))
            }
            Command::GetSinkInputInfo(index) => {
                let info = self.input_info(*index, now_ns).ok_or(PulseError::NoEntity)?;
                packet(wire::reply(tag, &info, version))
            }
            Command::GetSinkInputInfoList => {
                let indices: Vec<u32> = self.inputs.indices();
                let own = indices.into_iter().filter_map(|index| self.input_info(index, now_ns));
                let mut all: Vec<_> = own.collect();
                all.extend(self.module_inputs());
                all.sort_unstable_by_key(|info| info.index);
                packet(wire::reply(tag, &all, version))
            }
            Command::SetSinkInputVolume(asked) => {
                self.set_input_volume(client, asked.index, asked.volume)
            }
            Command::SetSinkInputMute(asked) => {
                self.set_input_mute(client, asked.index, asked.mute)
            }
            Command::KillSinkInput(index) => {
                self.inputs.get(*index).ok_or(PulseError::NoEntity)?;
                self.kill_input(*index);
                Ok(Answer::Done)
            }
            Command::MoveSinkInput(asked) => {
                let sink = self.find_sink(asked.device_index, asked.device_name.as_deref());
                self.move_input_of(client, asked.index, sink?, now_ns)
            }
            _ => Err(PulseError::NotSupported),
        }
    }
}

/// How the properties of a new stream are laid over those of its program.
pub(super) const OVER_PROGRAM: PropsUpdateMode = PropsUpdateMode::Replace;
