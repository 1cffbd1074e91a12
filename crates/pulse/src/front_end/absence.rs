//! The time without a server, and what it leaves behind: streams that are adrift, sinks whose
//! devices are not there, and requests that wait for the next server.

use std::collections::VecDeque;

use convert::StreamFormat;
use pulseaudio::protocol::PulseError;

use super::FrontEnd;
use super::inputs::SinkInputs;
use super::modules::OwnDevice;
use super::source_outputs::SourceOutput;
use crate::output::{Devices, HeardVolume, NewNullDevice, Refusal};
use crate::recording::Recorded;

/// How often a server that cannot take a stream back yet is asked again.
const RETRY_NS: u64 = 50_000_000;
/// How long a stream that its server has ended may look for a place, if its device is opened again.
const REOPENING_NS: u64 = 5_000_000_000;
/// Requests of one program that may wait.
const MAX_WAITING_OF_ONE: usize = 64;
/// Bytes of these.
const MAX_BYTES_OF_ONE: usize = 128 << 10;

/// Why a stream has none of the server's at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Adrift {
    /// Its server has gone: it can return to the next one.
    ServerGone,
    /// The server has ended it: its device is opened for other samples, or is not there any more;
    /// or it has not taken its memory.
    Ended,
}

/// A request that only a server can answer.
#[derive(Debug)]
struct Waiting {
    client: u32,
    account: u32,
    packet: Vec<u8>,
}

/// Until when what is missing is waited for.
#[derive(Debug, Default)]
pub(super) struct Absence {
    /// There is no server.
    has_no_server: bool,
    /// How long the next server is waited for, ns.
    grace_ns: u64,
    /// `None`: nothing is missing.
    until_ns: Option<u64>,
    /// When to try again to find places for streams.
    retry_ns: Option<u64>,
    waiting: VecDeque<Waiting>,
}

impl Absence {
    /// Returns when [`FrontEnd::end_absence_if_due`] is to be called.
    pub fn due_ns(&self) -> Option<u64> {
        [self.until_ns, self.retry_ns].into_iter().flatten().min()
    }

    /// Something is missing: it is waited for, unless something else is already.
    fn wait_until(&mut self, until_ns: u64) {
        self.until_ns = self.until_ns.or(Some(until_ns));
    }
}

/// Returns the error that stands for a refusal: a request for which the server is missing waits.
pub(super) fn or_later(error: PulseError) -> impl FnOnce(Refusal) -> PulseError {
    move |refusal| match refusal {
        Refusal::NotNow => PulseError::Busy,
        Refusal::Never => error,
    }
}

impl<D: Devices> FrontEnd<D> {
    /// The server has gone. For `grace_ns`, streams and sinks stay as they are, until
    /// [`server_found`](Self::server_found).
    pub fn server_gone(&mut self, grace_ns: u64, now_ns: u64) {
        self.take_all_heard(now_ns);
        self.awaited.clear();
        self.sinks.server_gone();
        self.set_clients_with_roles(Vec::new());
        for input in self.inputs.values_mut() {
            input.adrift = Some(Adrift::ServerGone);
            input.playback.leave(now_ns);
        }
        // What records another stream alone goes on when that does.
        for output in self.outputs.values_mut().filter(|output| output.monitors.is_none()) {
            output.adrift = Some(Adrift::ServerGone);
            output.recording.leave(now_ns);
        }
        self.links_are_down();
        self.absence.has_no_server = true;
        (self.absence.grace_ns, self.absence.retry_ns) = (grace_ns, None);
        self.absence.until_ns = Some(now_ns.saturating_add(grace_ns));
        self.end_absence_if_due(now_ns);
        self.announce_states(now_ns);
    }

    /// There is a server again.
    pub fn server_found(&mut self, now_ns: u64) {
        self.absence.has_no_server = false;
        self.restore_devices();
        self.refresh(now_ns);
        self.refresh_client_roles();
        // What the next server does not have at once has as much time to come.
        let is_missing = self.absence.until_ns.is_some();
        let until_ns = is_missing.then_some(now_ns.saturating_add(self.absence.grace_ns));
        self.absence.until_ns = until_ns;
        self.find_places(now_ns);
        self.load_ruled_modules(now_ns);
        self.announce_states(now_ns);
    }

    /// Makes the devices that modules have made, and sets the volumes that users have set: the
    /// server that knew them is gone. A volume that someone has set on this server stays.
    fn restore_devices(&mut self) {
        let Some(there) = self.devices.list() else { return };
        for OwnDevice { name, .. } in self.modules.devices() {
            let sink = self.sinks.of_device(Some(name)).and_then(|index| self.sinks.get(index));
            let Some(format) = sink.filter(|sink| sink.is_away).map(|sink| sink.format) else {
                continue;
            };
            if !there.iter().any(|device| device.name.as_ref() == Some(name)) {
                // Its sink goes with the others that are missing, if the server refuses it.
                let _ = self.devices.add(NewNullDevice {
                    name: name.clone(),
                    channels: format.channels,
                    rate_hz: Some(format.rate_hz),
                });
            }
        }
        for device in self.devices.list().unwrap_or_default() {
            let sink = self.sinks.of_device(device.name.as_deref());
            let Some(sink) = sink.and_then(|index| self.sinks.get(index)) else { continue };
            let HeardVolume { gains, muted, .. } = sink.volume;
            if sink.is_away && device.is_untouched && sink.volume != device.volume {
                let _ = self.devices.set_volume(device.name.as_deref(), Some(gains), Some(muted));
            }
        }
    }

    /// Streams that the server has ended look for a place: their device has gone, or is opened for
    /// other samples.
    pub(super) fn note_ended_streams(&mut self, now_ns: u64) {
        self.kill_what_asks_too_much();
        let ended = self.inputs.iter().filter(|(_, input)| {
            // One that is adrift already has no stream that could end.
            input.adrift.is_none() && input.playback.has_ended()
        });
        let ended: Vec<u32> = ended.map(|(index, _)| index).collect();
        let mut are_some = !ended.is_empty();
        if are_some {
            self.take_all_heard(now_ns);
        }
        for index in ended {
            if let Some(input) = self.inputs.get_mut(index) {
                input.adrift = Some(Adrift::Ended);
                input.playback.leave(now_ns);
            }
        }
        for output in self.outputs.values_mut() {
            if output.adrift.is_none() && output.recording.has_ended() {
                output.adrift = Some(Adrift::Ended);
                output.recording.leave(now_ns);
                are_some = true;
            }
        }
        if are_some {
            self.states.is_stale = true;
            self.absence.wait_until(now_ns.saturating_add(REOPENING_NS));
            // The streams of a sink that has gone are moved.
            self.refresh(now_ns);
            self.find_places(now_ns);
        }
    }

    /// A stream has no server that answers, or that takes its memory: the next turn of the event
    /// loop looks for a place.
    pub(super) fn set_adrift(&mut self, index: u32, now_ns: u64) {
        let Some(input) = self.inputs.get_mut(index) else { return };
        input.adrift = Some(Adrift::Ended);
        input.playback.leave(now_ns);
        self.states.is_stale = true;
        self.absence.wait_until(now_ns.saturating_add(REOPENING_NS));
        self.absence.retry_ns = Some(now_ns);
    }

    /// Has recordings go on as other streams whose source has other samples than they are converted
    /// from: they stay in the graph with another driver. As long as it captures nothing, they wait.
    pub(super) fn convert_recordings_again(&mut self, now_ns: u64) {
        let fits = |output: &SourceOutput<D::Input>| {
            let there = self.samples_of(output.source);
            there.is_none_or(|there| {
                let there = StreamFormat { rate_hz: there.rate_hz, map: there.map };
                there == *output.recording.source()
            })
        };
        let all = self.outputs.iter();
        let others = all.filter(|(_, output)| {
            output.adrift.is_none() && output.monitors.is_none() && !fits(output)
        });
        let others: Vec<u32> = others.map(|(index, _)| *index).collect();
        for index in &others {
            if let Some(output) = self.outputs.get_mut(index) {
                output.adrift = Some(Adrift::Ended);
                output.recording.leave(now_ns);
            }
        }
        if !others.is_empty() {
            self.absence.wait_until(now_ns.saturating_add(REOPENING_NS));
            self.find_places(now_ns);
        }
    }

    /// Tries again to find places for streams, if it is time; gives up what is missing for too
    /// long.
    pub(super) fn end_absence_if_due(&mut self, now_ns: u64) {
        let is_due = |ns: Option<u64>| ns.is_some_and(|ns| ns <= now_ns);
        self.states.is_stale |= is_due(self.absence.retry_ns) || is_due(self.absence.until_ns);
        if is_due(self.absence.retry_ns) && !is_due(self.absence.until_ns) {
            self.refresh(now_ns);
            self.find_places(now_ns);
        } else if is_due(self.absence.until_ns) {
            (self.absence.until_ns, self.absence.retry_ns) = (None, None);
            let (before, away) = (self.defaults(), self.sinks.away());
            self.remove_sinks(&away, before, now_ns);
            self.end_links_down(now_ns);
            self.kill_what_is_adrift();
            self.answer_waiting(now_ns);
        }
    }

    /// Returns whether the server has gone, and no other is there yet.
    pub fn has_no_server(&self) -> bool {
        self.absence.has_no_server
    }

    /// Returns whether there is no server, and the next one is not waited for any more.
    pub fn has_waited_in_vain(&self) -> bool {
        self.absence.has_no_server && self.absence.until_ns.is_none()
    }

    fn kill_what_asks_too_much(&mut self) {
        let inputs = self.inputs.iter().filter(|(_, input)| input.playback.has_too_many_wishes());
        let inputs: Vec<u32> = inputs.map(|(index, _)| index).collect();
        inputs.into_iter().for_each(|index| self.kill_input(index));
    }

    fn kill_what_is_adrift(&mut self) {
        let inputs = self.inputs.iter().filter(|(_, input)| input.adrift.is_some());
        let inputs: Vec<u32> = inputs.map(|(index, _)| index).collect();
        inputs.into_iter().for_each(|index| self.kill_input(index));
        let outputs = self.outputs.iter().filter(|(_, output)| output.adrift.is_some());
        let outputs: Vec<u32> = outputs.map(|(index, _)| *index).collect();
        outputs.into_iter().for_each(|index| self.kill_output(index));
    }

    /// Has streams go on at the devices that are there.
    fn find_places(&mut self, now_ns: u64) {
        if self.absence.has_no_server {
            return;
        }
        let were_adrift = self.adrift();
        let inputs: Vec<u32> = self.inputs.indices();
        for index in inputs {
            let is_adrift = |inputs: &SinkInputs<D::Output>| {
                inputs.get(index).is_some_and(|input| input.adrift.is_some())
            };
            let was_adrift = is_adrift(&self.inputs);
            if self.find_place_of_input(index, now_ns) == Err(PulseError::Busy) {
                continue;
            }
            if is_adrift(&self.inputs) {
                self.kill_input(index);
            } else if was_adrift {
                self.check_recordings_of(index);
            }
        }
        let outputs: Vec<u32> = self.outputs.keys().copied().collect();
        for index in outputs {
            if self.find_place_of_output(index, now_ns) == Err(PulseError::Busy) {
                continue;
            }
            if self.outputs.get(&index).is_some_and(|output| output.adrift.is_some()) {
                self.kill_output(index);
            }
        }
        self.restart_links(now_ns);
        let are_adrift = self.adrift();
        if are_adrift < were_adrift {
            // Devices have come while they were.
            self.route_again(now_ns);
        }
        let is_adrift = are_adrift > 0;
        self.absence.retry_ns = is_adrift.then_some(now_ns + RETRY_NS);
        if !is_adrift && self.sinks.away().is_empty() && !self.has_links_down() {
            self.absence.until_ns = None;
        }
        self.answer_waiting(now_ns);
    }

    /// Returns how many streams look for a place.
    fn adrift(&self) -> usize {
        self.inputs.values().filter(|input| input.adrift.is_some()).count()
            + self.outputs.values().filter(|output| output.adrift.is_some()).count()
    }

    /// Has a stream go on: as it was, or else converted again.
    ///
    /// # Errors
    /// [`PulseError::Busy`]: perhaps later; others: it cannot.
    fn find_place_of_input(&mut self, index: u32, now_ns: u64) -> Result<(), PulseError> {
        let Some(input) = self.inputs.get_mut(index) else { return Ok(()) };
        let Some(adrift) = input.adrift else { return Ok(()) };
        let sink = self.sinks.get(input.sink).filter(|sink| !sink.is_away);
        let sink = sink.ok_or(PulseError::Busy)?;
        if adrift == Adrift::ServerGone && *input.playback.stream() == sink.stream() {
            let devices = &mut self.devices;
            let returned =
                input.playback.return_with(|output| devices.return_output(output), now_ns);
            match returned {
                Ok(()) => {
                    input.adrift = None;
                    self.send_notices(index);
                    return Ok(());
                }
                Err(Refusal::NotNow) => return Err(PulseError::Busy),
                Err(Refusal::Never) => {}
            }
        }
        let sink = input.sink;
        self.move_input(index, sink, now_ns)
    }

    /// The same of a stream that records.
    ///
    /// # Errors
    /// [`PulseError::Busy`]: perhaps later; others: it cannot.
    fn find_place_of_output(&mut self, index: u32, now_ns: u64) -> Result<(), PulseError> {
        let Some(output) = self.outputs.get(&index) else { return Ok(()) };
        let (source, adrift) = (output.source, output.adrift);
        let Some(adrift) = adrift else { return Ok(()) };
        if self.sinks.get(source.sink()).is_none_or(|sink| sink.is_away) {
            return Err(PulseError::Busy);
        }
        let samples = self.samples_of(source).ok_or(PulseError::NoEntity)?;
        let stream = convert::StreamFormat { rate_hz: samples.rate_hz, map: samples.map };
        let Some(output) = self.outputs.get_mut(&index) else { return Ok(()) };
        if adrift == Adrift::ServerGone && *output.recording.source() == stream {
            let devices = &mut self.devices;
            let returned = output.recording.return_with(
                |input| match input {
                    Recorded::Server(input) => devices.return_input(input),
                    Recorded::Stream(_) => Ok(()),
                },
                now_ns,
            );
            match returned {
                Ok(()) => {
                    output.adrift = None;
                    return Ok(());
                }
                Err(Refusal::NotNow) => return Err(PulseError::Busy),
                Err(Refusal::Never) => {}
            }
        }
        self.move_output(index, source, now_ns)
    }

    /// Keeps a request until there is a server; returns false if too many wait.
    pub(super) fn let_wait(&mut self, client: u32, packet: &[u8], now_ns: u64) -> bool {
        let Some(known) = self.clients.get(&client) else { return false };
        let account = known.origin.account;
        let own = || self.absence.waiting.iter().filter(|request| request.account == account);
        let bytes = own().map(|request| request.packet.len()).sum::<usize>() + packet.len();
        // MUTATION: let_wait.without_limit
        let has_room = own().count() < MAX_WAITING_OF_ONE && bytes <= MAX_BYTES_OF_ONE;
        if has_room {
            self.absence.waiting.push_back(Waiting { client, account, packet: packet.into() });
            self.absence.wait_until(now_ns.saturating_add(REOPENING_NS));
            if !self.absence.has_no_server {
                // It has just gone, which its connection says next; or it was late.
                self.absence.retry_ns = self.absence.retry_ns.or(Some(now_ns + RETRY_NS));
            }
        }
        has_room
    }

    /// Answers the requests that have waited. Those that still have to wait again.
    fn answer_waiting(&mut self, now_ns: u64) {
        let is_over = self.absence.until_ns.is_none();
        for Waiting { client, packet, .. } in std::mem::take(&mut self.absence.waiting) {
            self.packet(client, &packet, !is_over, now_ns);
        }
    }

    /// Forgets the requests of a program that has gone.
    pub(super) fn forget_waiting(&mut self, client: u32) {
        self.absence.waiting.retain(|request| request.client != client);
    }
}
