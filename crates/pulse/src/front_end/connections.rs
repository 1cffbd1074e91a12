//! Programs that come and go, and who is let in.

use pulseaudio::protocol::{
    AuthParams, AuthReply, Command, MAX_VERSION, MIN_VERSION, Props, PulseError,
    SetClientNameReply, SubscriptionEventFacility as Facility, SubscriptionEventType as EventType,
};

use super::kept_sound::BYTES_OF_A_STREAM;
use super::{Answer, Answered, Client, Effect, FrontEnd, Origin, Way, properties};
use crate::output::Devices;
use crate::wire::{self, Frame, Seek};

/// The first version of the protocol whose programs pass memfds.
const FIRST_WITH_MEMFDS: u16 = 31;

impl<D: Devices> FrontEnd<D> {
    /// A program has connected. Returns the connection's number, or `None` if there are too many,
    /// or too many of this program.
    pub fn connected(&mut self, origin: Origin) -> Option<u32> {
        let is_its = |known: &&Client| known.origin.account == origin.account;
        // MUTATION: connected.one_program_takes_all
        let own = self.clients.values().filter(is_its).count();
        // MUTATION: connected.without_limit
        let all = self.clients.len();
        // MUTATION: connected.network_takes_all
        let remote = self.network_clients();
        if all >= super::MAX_CLIENTS
            || own >= super::MAX_CLIENTS_OF_ONE
            || (origin.way.is_network() && remote >= super::MAX_NETWORK_CLIENTS)
        {
            return None;
        }
        let number = self.next_client;
        self.next_client = self.next_client.wrapping_add(1);
        self.clients.insert(number, Client::new(origin));
        Some(number)
    }

    fn network_clients(&self) -> usize {
        self.clients.values().filter(|client| client.origin.way.is_network()).count()
    }

    /// A program is gone.
    pub fn disconnected(&mut self, client: u32, now_ns: u64) {
        self.take_all_heard(now_ns);
        let inputs = self
            .inputs
            .iter()
            .filter(|(_, input)| input.owner.is_some_and(|owner| owner.client == client));
        let inputs: Vec<u32> = inputs.map(|(index, _)| index).collect();
        inputs.into_iter().for_each(|index| self.remove_input(index));
        self.uploads.retain(|upload| upload.client != client);
        self.forget_waiting(client);
        self.remove_outputs_of(client);
        let Some(known) = self.clients.remove(&client) else { return };
        if known.admitted.is_some() {
            self.notify(Facility::Client, EventType::Removed, client);
        }
        self.forget_samples_of(known.origin.account);
    }

    /// Returns whether a program was let in.
    pub fn is_admitted(&self, client: u32) -> bool {
        self.clients.get(&client).is_some_and(|client| client.admitted.is_some())
    }

    /// Returns whether a program may send samples in blocks of its memory.
    pub fn shares_memory(&self, client: u32) -> bool {
        self.clients.get(&client).is_some_and(|client| client.shares_memory)
    }

    /// A program has not taken what was sent: events for it wait until it [has](Self::sent_all).
    pub fn is_behind(&mut self, client: u32) {
        if let Some(known) = self.clients.get_mut(&client) {
            known.is_behind = true;
        }
    }

    /// Notifies a program of what has waited.
    pub(super) fn catch_up(&mut self, client: u32) {
        let Some(known) = self.clients.get_mut(&client).filter(|known| known.is_behind) else {
            return;
        };
        known.is_behind = false;
        let events = known.owed_events.take();
        let [owes_memory, owes_devices] =
            [&mut known.owes_memory, &mut known.owes_devices].map(std::mem::take);
        for event in events {
            self.send_event(client, &Command::SubscribeEvent(event));
        }
        if owes_memory {
            self.notify_of_memory(client);
        }
        if owes_devices {
            self.notify_of_devices(client);
        }
        // It was not asked to hold streams, or to let them go on.
        self.desktop.is_stale = true;
    }

    /// Takes a frame of a program.
    pub fn frame(&mut self, client: u32, frame: Frame<'_>, now_ns: u64) {
        self.begin_streams(now_ns);
        match frame {
            Frame::Packet(bytes) => {
                self.end_idle_times(now_ns);
                self.take_all_heard(now_ns);
                self.packet(client, bytes, true, now_ns);
                self.announce_states(now_ns);
            }
            Frame::Samples { channel, seek, bytes, following } => {
                // PulseAudio, too, ignores samples of a stream that was deleted meanwhile.
                if let Ok((index, input)) = self.input_of(client, channel) {
                    let (account, kept) = (input.account, input.playback.kept_bytes());
                    let may_be_much =
                        seek != Seek::Relative(0) || kept + bytes.len() > BYTES_OF_A_STREAM;
                    if may_be_much {
                        let most = self.most_kept(account, kept);
                        if let Some(input) = self.inputs.get_mut(index) {
                            input.playback.keep_at_most(most);
                        }
                    }
                    self.take_heard_of(index, now_ns);
                    let Some(input) = self.inputs.get_mut(index) else { return };
                    let ran = input.playback.runs();
                    input.playback.write_before(following, seek, bytes, now_ns);
                    let has_changed = input.playback.runs() != ran;
                    self.send_notices(index);
                    if has_changed {
                        self.announce_states(now_ns);
                    }
                } else if let Some(upload) = self.upload_of(client, channel) {
                    upload.append(&bytes.read());
                }
            }
        }
    }

    /// Answers a packet; one for which a server is missing may wait for the next one.
    pub(super) fn packet(&mut self, client: u32, bytes: &[u8], may_wait: bool, now_ns: u64) {
        let Some(known) = self.clients.get(&client) else { return };
        // MUTATION: packet.answers_without_limit
        let has_too_much = known.answered_bytes > super::MAX_ANSWERED_BYTES;
        if has_too_much {
            return self.effects.push(Effect::Close { client });
        }
        let version = known.version();
        let (tag, answered) = match wire::read(bytes, version) {
            Ok(packet) if self.awaits_examination(client, &packet.request, bytes) => return,
            Ok(packet) => (packet.tag, self.answer(client, packet, now_ns)),
            Err(wire::Unreadable { tag: Some(tag), error }) => (tag, Err(error)),
            Err(wire::Unreadable { tag: None, .. }) => {
                return self.effects.push(Effect::Close { client });
            }
        };
        match answered {
            Ok(Answer::Done) => self.send(client, wire::success(tag)),
            Ok(Answer::Packet(packet)) => {
                if let Some(known) = self.clients.get_mut(&client) {
                    known.answered_bytes += packet.len();
                }
                self.send(client, packet);
            }
            Ok(Answer::Later) => {}
            Err(PulseError::Busy) if may_wait && self.let_wait(client, bytes, now_ns) => {}
            Err(error) => {
                self.send(client, wire::error(tag, error));
                if !self.is_admitted(client) {
                    self.effects.push(Effect::Close { client });
                }
            }
        }
    }

    /// Lets a program in, if it may come; one that has come in stays in.
    pub(super) fn authenticate(&mut self, client: u32, tag: u32, asked: &AuthParams) -> Answered {
        let known = self.clients.get_mut(&client).ok_or(PulseError::AccessDenied)?;
        let (way, was_let_in) = (known.origin.way, known.admitted.is_some());
        if !was_let_in && !self.admission.lets_in(way, &asked.cookie) {
            return Err(PulseError::AccessDenied);
        }
        if asked.version < MIN_VERSION {
            return Err(PulseError::Version);
        }
        let is_new = known.admitted.replace(asked.version.min(MAX_VERSION)).is_none();
        // Only memfds: other memory has names, which anyone of the user can open.
        let can_share = asked.supports_shm && asked.supports_memfd;
        let shares = can_share && way == Way::OwnUser && asked.version >= FIRST_WITH_MEMFDS;
        // What was answered before holds.
        known.shares_memory |= shares;
        if is_new {
            self.notify(Facility::Client, EventType::New, client);
        }
        let reply = AuthReply { version: MAX_VERSION, use_memfd: shares, use_shm: shares };
        Ok(Answer::Packet(wire::reply(tag, &reply, MAX_VERSION)))
    }

    pub(super) fn name_client(&mut self, client: u32, tag: u32, props: Props) -> Answered {
        self.set_client_props(client, |_| Ok(props))?;
        let known = self.clients.get(&client).ok_or(PulseError::NoEntity)?;
        let version = known.version();
        self.notify(Facility::Client, EventType::Changed, client);
        let reply = SetClientNameReply { client_id: client };
        Ok(Answer::Packet(wire::reply(tag, &reply, version)))
    }

    pub(super) fn change_client(
        &mut self,
        client: u32,
        change: impl FnOnce(&Props) -> Result<Props, PulseError>,
    ) -> Answered {
        self.set_client_props(client, change)?;
        self.notify(Facility::Client, EventType::Changed, client);
        Ok(Answer::Done)
    }

    fn set_client_props(
        &mut self,
        client: u32,
        change: impl FnOnce(&Props) -> Result<Props, PulseError>,
    ) -> Result<(), PulseError> {
        let known = self.clients.get(&client).ok_or(PulseError::NoEntity)?;
        let (account, before) = (known.origin.account, properties::bytes(&known.props));
        let props = self.limited_for(account, before, change(&known.props)?)?;
        if let Some(known) = self.clients.get_mut(&client) {
            known.props = props;
        }
        Ok(())
    }

    pub(super) fn kill_client(&mut self, client: u32) -> Answered {
        if !self.is_admitted(client) {
            return Err(PulseError::NoEntity);
        }
        self.effects.push(Effect::Close { client });
        Ok(Answer::Done)
    }
}
