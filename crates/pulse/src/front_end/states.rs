//! Whether a sink or a source runs, is idle, or sleeps: programs are notified as it changes, and
//! those with streams there stop their timers while it sleeps.

use std::collections::{BTreeMap, BTreeSet};

use pulseaudio::protocol::{
    Command, PulseError, SinkState, SourceState, StreamSuspendedParams,
    SubscriptionEventFacility as Facility, SubscriptionEventType as EventType, SuspendParams,
};

use super::sink_inputs::Owner;
use super::sinks::Sink;
use super::sources::Source;
use super::{Answer, Answered, FrontEnd};
use crate::output::Devices;

/// How long a sink that nobody uses is idle before it sleeps: as the server's devices, by default.
const IDLE_NS: u64 = 5_000_000_000;

/// What programs were notified of last, and what users have suspended.
#[derive(Debug, Default)]
pub(super) struct States {
    sinks: BTreeMap<u32, SinkState>,
    sources: BTreeMap<Source, SourceState>,
    /// Those on which something plays or is recorded.
    used: BTreeSet<u32>,
    /// Since when nobody uses a sink; without: it sleeps, or is used.
    idle_since_ns: BTreeMap<u32, u64>,
    /// A stream has begun, stopped or ended, or a device changed, since programs were notified.
    pub is_stale: bool,
}

impl States {
    /// Somebody looks at a sink: it is idle for a while.
    pub fn touch(&mut self, sink: u32, now_ns: u64) {
        self.idle_since_ns.insert(sink, now_ns);
    }
}

impl<D: Devices> FrontEnd<D> {
    /// Returns when a sink that nobody uses falls asleep, if a program is to be notified of it.
    pub(super) fn next_sleep_ns(&self) -> Option<u64> {
        let is_watched = || {
            let mut clients = self.clients.values();
            let kinds = [Facility::Sink, Facility::Source];
            clients.any(|known| kinds.iter().any(|kind| known.has_subscribed(*kind)))
        };
        let idle = self.states.idle_since_ns.iter().filter(|(sink, _)| {
            let has_stream = self.inputs.values().any(|input| input.sink == **sink)
                || self.outputs.values().any(|output| output.source.sink() == **sink);
            has_stream || is_watched()
        });
        idle.map(|(_, since_ns)| since_ns + IDLE_NS).min()
    }

    /// Has sinks sleep that nobody has used for a while.
    pub(super) fn end_idle_times(&mut self, now_ns: u64) {
        self.states.idle_since_ns.retain(|_, since_ns| now_ns < *since_ns + IDLE_NS);
    }

    /// Notifies programs of the states that have changed, if one can have. While streams play on,
    /// none has, and this process wakes often for them.
    pub(super) fn announce_stale_states(&mut self, now_ns: u64) {
        let is_idle = !self.states.idle_since_ns.is_empty();
        if self.states.is_stale || is_idle || !self.outputs.is_empty() {
            self.announce_states(now_ns);
        }
    }

    /// Notifies programs of the states that have changed.
    pub(super) fn announce_states(&mut self, now_ns: u64) {
        self.states.is_stale = false;
        self.hold_streams(now_ns);
        self.end_idle_times(now_ns);
        for index in self.sinks.devices() {
            let is_used = self.is_played_on(index) || self.is_recorded(index);
            if is_used {
                self.states.used.insert(index);
                self.states.idle_since_ns.remove(&index);
            } else if self.states.used.remove(&index) {
                self.states.touch(index, now_ns);
            }
            let state = self.sink_state(index);
            let has_changed =
                self.states.sinks.insert(index, state).is_some_and(|was| was != state);
            if has_changed && self.sinks.is_sink(index) {
                self.notify(Facility::Sink, EventType::Changed, index);
            }
        }
        for source in self.sources() {
            let state = self.source_state(source);
            if self.states.sources.insert(source, state).is_some_and(|was| was != state) {
                self.notify(Facility::Source, EventType::Changed, source.index());
            }
        }
        self.states.sinks.retain(|index, _| self.sinks.get(*index).is_some());
        self.states.idle_since_ns.retain(|index, _| self.sinks.get(*index).is_some());
        self.states.used.retain(|index| self.sinks.get(*index).is_some());
        let sources = self.sources();
        self.states.sources.retain(|source, _| sources.contains(source));
        self.notify_streams();
    }

    /// Holds the streams of what a user has suspended, and lets the others go on.
    fn hold_streams(&mut self, now_ns: u64) {
        let by_user = |sink: u32| self.sinks.get(sink).is_some_and(|sink| sink.is_suspended);
        let changed = self.inputs.iter().filter_map(|(index, input)| {
            let is_held = by_user(input.sink);
            (input.playback.is_suspended() != is_held).then_some((index, is_held))
        });
        let changed: Vec<(u32, bool)> = changed.collect();
        for (index, is_held) in changed {
            if let Some(input) = self.inputs.get_mut(index) {
                input.playback.suspend(is_held, now_ns);
            }
        }
        for output in self.outputs.values_mut() {
            let captures = matches!(output.source, Source::Capture(_));
            let is_held = |sink: &Sink| sink.is_suspended || captures && sink.is_capture_suspended;
            let by_user = self.sinks.get(output.source.sink()).is_some_and(is_held);
            output.recording.suspend(by_user, now_ns);
        }
    }

    /// Notifies programs with streams of whether their device sleeps.
    fn notify_streams(&mut self) {
        let mut events = Vec::new();
        let sleeps = |sink: u32| self.states.sinks.get(&sink) == Some(&SinkState::Suspended);
        let changed = self.inputs.iter().filter_map(|(index, input)| {
            let suspended = sleeps(input.sink);
            (input.is_suspended != suspended).then_some((index, suspended))
        });
        let changed: Vec<(u32, bool)> = changed.collect();
        for (index, suspended) in changed {
            let Some(input) = self.inputs.get_mut(index) else { continue };
            input.is_suspended = suspended;
            if let Some(Owner { client, channel }) = input.owner {
                let of = StreamSuspendedParams { stream_index: channel, suspended };
                events.push((client, Command::PlaybackStreamSuspended(of)));
            }
        }
        for output in self.outputs.values_mut() {
            let state = self.states.sources.get(&output.source);
            let suspended = state == Some(&SourceState::Suspended);
            if std::mem::replace(&mut output.is_suspended, suspended) != suspended {
                let of = StreamSuspendedParams { stream_index: output.channel, suspended };
                events.push((output.client, Command::RecordStreamSuspended(of)));
            }
        }
        for (client, event) in events {
            self.send_event(client, &event);
        }
    }

    fn is_played_on(&self, sink: u32) -> bool {
        let mut inputs = self.inputs.values().filter(|input| input.sink == sink);
        inputs.any(|input| input.playback.runs())
    }

    /// Running while a stream plays; idle while one records, and for a while after the last one;
    /// else it sleeps. It does so as well while a user wants it, and without a server.
    pub(super) fn sink_state(&self, index: u32) -> SinkState {
        let sleeps = |sink: &Sink| sink.is_away || sink.is_suspended;
        if self.sinks.get(index).is_none_or(sleeps) {
            SinkState::Suspended
        } else if self.is_played_on(index) {
            SinkState::Running
        } else if self.is_recorded(index) || self.states.idle_since_ns.contains_key(&index) {
            SinkState::Idle
        } else {
            SinkState::Suspended
        }
    }

    /// Running while a stream records it; idle while its device is awake; else it sleeps.
    pub(super) fn source_state(&self, source: Source) -> SourceState {
        let sink = self.sink_state(source.sink());
        let is_held = |index| self.sinks.get(index).is_some_and(|sink| sink.is_capture_suspended);
        let is_suspended = matches!(source, Source::Capture(index) if is_held(index));
        if sink == SinkState::Suspended || is_suspended {
            return SourceState::Suspended;
        }
        let records = |output: &super::SourceOutput<D::Input>| {
            output.source == source && output.recording.keeps_awake()
        };
        match self.outputs.values().any(records) {
            true => SourceState::Running,
            false => SourceState::Idle,
        }
    }

    /// A user suspends sinks, or lets them go on: the one that is named, or all.
    pub(super) fn suspend_sinks(&mut self, asked: &SuspendParams) -> Answered {
        let sinks = match is_about_all(asked) {
            true => self.sinks.indices(),
            false => vec![self.find_sink(asked.device_index, asked.device_name.as_deref())?],
        };
        for index in sinks {
            if let Some(sink) = self.sinks.get_mut(index) {
                sink.is_suspended = asked.suspend;
            }
            if asked.suspend {
                self.kill_inputs_that_fail_on_suspend(index);
            }
        }
        Ok(Answer::Done)
    }

    fn kill_inputs_that_fail_on_suspend(&mut self, sink: u32) {
        let inputs = self.inputs.iter();
        let inputs = inputs.filter(|(_, input)| input.sink == sink && input.fails_on_suspend);
        let inputs: Vec<u32> = inputs.map(|(index, _)| index).collect();
        inputs.into_iter().for_each(|index| self.kill_input(index));
    }

    /// A user suspends sources, or lets them go on: the one that is named, or all but monitors.
    ///
    /// # Errors
    /// [`PulseError::Invalid`]: a monitor is suspended with its sink, as in PulseAudio.
    pub(super) fn suspend_sources(&mut self, asked: &SuspendParams) -> Answered {
        let is_monitor =
            |source: &Source| matches!(source, Source::Monitor(sink) if self.sinks.is_sink(*sink));
        let sources: Vec<Source> = match is_about_all(asked) {
            true => self.sources().into_iter().filter(|source| !is_monitor(source)).collect(),
            false => vec![self.find_source(asked.device_index, asked.device_name.as_deref())?],
        };
        if sources.iter().any(is_monitor) {
            return Err(PulseError::Invalid);
        }
        for source in sources {
            let Some(sink) = self.sinks.get_mut(source.sink()) else { continue };
            match source {
                Source::Capture(_) => sink.is_capture_suspended = asked.suspend,
                Source::Monitor(_) => sink.is_suspended = asked.suspend,
            }
        }
        Ok(Answer::Done)
    }

    /// Returns whether a new stream plays nothing because its sink is suspended.
    pub(super) fn is_sink_asleep(&self, sink: u32) -> bool {
        self.sink_state(sink) == SinkState::Suspended
    }
}

/// Returns whether no device is named.
fn is_about_all(asked: &SuspendParams) -> bool {
    asked.device_index.is_none() && asked.device_name.as_deref().is_none_or(|name| name.is_empty())
}
