//! Sinks and sources that run, are idle, and sleep.

use client::stream::Timing;
use pulseaudio::protocol::stream::StreamFlags;
use pulseaudio::protocol::{
    CorkStreamParams, CreateRecordStreamReply, GetSinkInfo, RecordStreamParams, SinkInfo,
    SinkState, StreamSuspendedParams, SubscriptionEvent, SubscriptionEventFacility as Facility,
    SubscriptionEventType as EventType, SubscriptionMask, SuspendParams,
};

use super::*;
use crate::front_end::silence::{MAX_WISHES, Sink};
use crate::output::Output;

const S: u64 = 1_000_000_000;

impl Scene {
    fn state(&mut self, client: u32) -> SinkState {
        let asked = GetSinkInfo { index: Some(0), name: None };
        self.ask::<SinkInfo>(client, &Command::GetSinkInfo(asked)).expect("a sink").state
    }

    /// Corks a stream; returns the events that its program is sent.
    fn cork_and_read(&mut self, client: u32, channel: u32, cork: bool) -> Vec<Command> {
        let asked = Command::CorkPlaybackStream(CorkStreamParams { channel, cork });
        let sent = self.send(client, &asked);
        let read = |bytes: &Vec<u8>| read_command_message(&mut &bytes[..], MAX_VERSION);
        sent.iter().filter(|bytes| is_event(bytes)).map(|bytes| read(bytes).unwrap().1).collect()
    }

    /// The server's end of a stream.
    fn played(&mut self, stream: &CreatePlaybackStreamReply) -> &mut Sink {
        let input = self.front_end.inputs.get_mut(stream.stream_index).expect("a stream");
        input.playback.output_mut()
    }

    /// Samples of a stream, as many as it waits for.
    fn fill(&mut self, client: u32, stream: &CreatePlaybackStreamReply) {
        let bytes = vec![1; stream.buffer_attr.pre_buffering as usize];
        self.send_bytes(client, &crate::wire::samples(stream.channel, &bytes));
    }
}

fn suspend(name: Option<&str>, suspend: bool) -> SuspendParams {
    SuspendParams { device_index: None, device_name: name.map(text), suspend }
}

fn changes_of_sink(events: &[Command]) -> usize {
    let change = SubscriptionEvent {
        event_facility: Facility::Sink,
        event_type: EventType::Changed,
        index: Some(0),
    };
    events.iter().filter(|event| **event == Command::SubscribeEvent(change)).count()
}

#[test]
fn a_sink_sleeps_five_seconds_after_the_last_sound_and_programs_are_notified_once() {
    let mut scene = Scene::new();
    let [client, watcher] = [scene.admitted(), scene.admitted()];
    scene.tell(watcher, &Command::Subscribe(SubscriptionMask::SINK)).expect("subscribed");
    assert_eq!(scene.state(client), SinkState::Suspended);
    let stream = scene.stream(client);
    assert!(!stream.suspended, "its device would wake");
    scene.fill(client, &stream);
    assert_eq!(scene.state(client), SinkState::Running);
    assert_eq!(changes_of_sink(&scene.events(watcher)), 2, "idle, and then running");
    scene.cork_and_read(client, stream.channel, true);
    assert_eq!(scene.state(client), SinkState::Idle);
    assert_eq!(changes_of_sink(&scene.events(watcher)), 1);
    scene.events(client);
    assert_eq!(scene.front_end.deadline(0), Some(5 * S));
    scene.now_ns = 5 * S - 1;
    scene.front_end.update(scene.now_ns);
    assert_eq!(scene.state(watcher), SinkState::Idle);
    scene.now_ns = 5 * S;
    scene.front_end.update(scene.now_ns);
    let of = |suspended| {
        let of = StreamSuspendedParams { stream_index: stream.channel, suspended };
        Command::PlaybackStreamSuspended(of)
    };
    assert_eq!(scene.events(client), [of(true)]);
    assert_eq!(changes_of_sink(&scene.events(watcher)), 1);
    assert_eq!(scene.state(client), SinkState::Suspended);
    assert_eq!(scene.front_end.deadline(scene.now_ns), None, "nothing wakes it any more");
    let events = scene.cork_and_read(client, stream.channel, false);
    assert!(events.contains(&of(false)), "{events:?}");
    assert_eq!(scene.state(client), SinkState::Running);
}

#[test]
fn a_sink_is_idle_once_its_stream_has_run_out_or_was_killed() {
    let run_out = |output: &mut Sink| {
        let all = output.written();
        output.timing = Timing { position: all, until: all, ..Timing::default() };
    };
    let ask_too_much = |output: &mut Sink| output.wishes = MAX_WISHES + 1;
    for end in [run_out, ask_too_much] as [fn(&mut Sink); 2] {
        let mut scene = Scene::new();
        let [client, watcher] = [scene.admitted(), scene.admitted()];
        let stream = scene.stream(client);
        scene.fill(client, &stream);
        scene.tell(watcher, &Command::Subscribe(SubscriptionMask::SINK)).expect("subscribed");
        scene.front_end.update(scene.now_ns);
        assert_eq!(changes_of_sink(&scene.events(watcher)), 0, "it plays");
        end(scene.played(&stream));
        scene.front_end.deadline(scene.now_ns);
        scene.now_ns = S;
        scene.front_end.update(scene.now_ns);
        assert_eq!(changes_of_sink(&scene.events(watcher)), 1);
        assert_eq!(scene.state(watcher), SinkState::Idle);
    }
}

#[test]
fn nothing_wakes_the_front_end_for_states_that_nobody_watches() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    let stream = scene.stream(client);
    scene.fill(client, &stream);
    scene.tell(client, &Command::DeletePlaybackStream(stream.channel)).expect("deleted");
    assert_eq!(scene.state(client), SinkState::Idle);
    assert_eq!(scene.front_end.deadline(0), None);
    scene.now_ns = 5 * S;
    assert_eq!(scene.state(client), SinkState::Suspended);
}

#[test]
fn a_user_suspends_a_sink_with_all_that_plays_and_records_there() {
    let mut scene = Scene::new();
    let [client, user] = [scene.admitted(), scene.admitted()];
    let stream = scene.stream(client);
    scene.fill(client, &stream);
    let asked = RecordStreamParams { source_index: Some(0), ..recording::asked() };
    let recording: CreateRecordStreamReply =
        scene.ask(client, &Command::CreateRecordStream(asked)).expect("a recording");
    scene.events(client);
    let sink = |on| Command::SuspendSink(suspend(Some("consort"), on));
    assert_eq!(scene.tell(user, &sink(true)), Ok(()));
    let events = scene.events(client);
    let of = |stream_index| StreamSuspendedParams { stream_index, suspended: true };
    assert!(events.contains(&Command::PlaybackStreamSuspended(of(stream.channel))), "{events:?}");
    assert!(events.contains(&Command::RecordStreamSuspended(of(recording.channel))), "{events:?}");
    let runs = |scene: &Scene| {
        let inputs = scene.front_end.inputs.values().map(|input| input.playback.runs());
        let outputs = scene.front_end.outputs.values();
        inputs.chain(outputs.map(|output| output.recording.keeps_awake())).collect::<Vec<_>>()
    };
    assert_eq!((runs(&scene), scene.state(client)), (vec![false; 2], SinkState::Suspended));
    // A stream that begins there waits, or is refused if it wants that.
    let late = scene.stream(client);
    scene.fill(client, &late);
    assert!(late.suspended && runs(&scene) == [false; 3]);
    let flags = StreamFlags { fail_on_suspend: true, ..StreamFlags::default() };
    let fails = Command::CreatePlaybackStream(PlaybackStreamParams { flags, ..params() });
    assert_eq!(scene.tell(client, &fails), Err(PulseError::BadState));
    assert_eq!(scene.tell(user, &sink(false)), Ok(()));
    assert_eq!((runs(&scene), scene.state(client)), (vec![true; 3], SinkState::Running));
    let killed: CreatePlaybackStreamReply = scene.ask(client, &fails).expect("a stream");
    scene.events(client);
    // All sinks.
    assert_eq!(scene.tell(user, &Command::SuspendSink(suspend(Some(""), true))), Ok(()));
    let events = scene.events(client);
    assert!(events.contains(&Command::PlaybackStreamKilled(killed.channel)), "{events:?}");
    assert_eq!(scene.state(client), SinkState::Suspended);
}

#[test]
fn what_a_user_has_suspended_for_long_is_announced_at_once_when_it_goes_on() {
    let mut scene = Scene::new();
    let [client, user, watcher] = [scene.admitted(), scene.admitted(), scene.admitted()];
    let stream = scene.stream(client);
    scene.fill(client, &stream);
    scene.tell(watcher, &Command::Subscribe(SubscriptionMask::SINK)).expect("subscribed");
    for on in [true, false] {
        scene.events(client);
        scene.events(watcher);
        assert_eq!(scene.tell(user, &Command::SuspendSink(suspend(None, on))), Ok(()));
        let of = StreamSuspendedParams { stream_index: stream.channel, suspended: on };
        assert_eq!(scene.events(client), [Command::PlaybackStreamSuspended(of)]);
        assert_eq!(changes_of_sink(&scene.events(watcher)), 1);
        assert_eq!(scene.state(client) == SinkState::Suspended, on);
        scene.now_ns += 10 * S;
    }
}

#[test]
fn programs_are_notified_that_a_sink_is_idle_or_asleep_when_the_only_program_there_has_gone() {
    let mut scene = Scene::new();
    let watcher = scene.admitted();
    scene.tell(watcher, &Command::Subscribe(SubscriptionMask::SINK)).expect("subscribed");
    let plays: fn(&mut Scene, u32) = |scene, client| {
        let stream = scene.stream(client);
        scene.fill(client, &stream);
    };
    let records: fn(&mut Scene, u32) = |scene, client| {
        let asked = RecordStreamParams { source_index: Some(0), ..recording::asked() };
        let asked = Command::CreateRecordStream(asked);
        scene.ask::<CreateRecordStreamReply>(client, &asked).expect("a recording");
    };
    for (begin, changes) in [(plays, [1, 1]), (records, [0, 1])] {
        let client = scene.admitted();
        begin(&mut scene, client);
        scene.events(watcher);
        scene.front_end.disconnected(client, scene.now_ns);
        for changes in changes {
            let due_ns = scene.front_end.deadline(scene.now_ns).expect("something is due");
            scene.now_ns = scene.now_ns.max(due_ns);
            scene.front_end.update(scene.now_ns);
            assert_eq!(changes_of_sink(&scene.events(watcher)), changes);
        }
        assert_eq!(scene.front_end.deadline(scene.now_ns), None, "nothing else is due");
    }
}

#[test]
fn a_monitor_is_suspended_with_its_sink_only_and_what_is_captured_alone() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    scene.front_end.devices_mut().devices[0].format.captured = 2;
    let source = |name: &str, on| Command::SuspendSource(suspend(Some(name), on));
    let refused = scene.tell(client, &source("consort.monitor", true));
    assert_eq!(refused, Err(PulseError::Invalid));
    assert_eq!(scene.tell(client, &source("nothing", true)), Err(PulseError::NoEntity));
    let sink = Command::SuspendSink(suspend(Some("nothing"), true));
    assert_eq!(scene.tell(client, &sink), Err(PulseError::NoEntity));
    let asked = RecordStreamParams { source_index: Some(1), ..recording::asked() };
    scene.front_end.devices_changed(0);
    let _: CreateRecordStreamReply =
        scene.ask(client, &Command::CreateRecordStream(asked)).expect("a recording");
    let records = |scene: &Scene| {
        scene.front_end.outputs.values().all(|output| output.recording.keeps_awake())
    };
    assert!(records(&scene));
    assert_eq!(scene.tell(client, &source("", true)), Ok(()), "all that are no monitors");
    assert!(!records(&scene));
    assert_eq!(scene.tell(client, &source("consort.capture", false)), Ok(()));
    assert!(records(&scene));
}

#[test]
fn a_source_of_a_module_is_suspended_and_no_monitor_is() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    let load = pulseaudio::protocol::LoadModuleParams {
        name: text("module-null-source"),
        arguments: Some(text("source_name=silent")),
    };
    let _: pulseaudio::protocol::LookupReply =
        scene.ask(client, &Command::LoadModule(load)).expect("loaded");
    let params = RecordStreamParams {
        sample_spec: params().sample_spec,
        channel_map: ChannelMap::stereo(),
        source_name: Some(text("silent")),
        ..RecordStreamParams::default()
    };
    let record: CreateRecordStreamReply =
        scene.ask(client, &Command::CreateRecordStream(params)).expect("a stream");
    let asked = |name: Option<&str>, is| Command::SuspendSource(suspend(name, is));
    let is_suspended = |scene: &mut Scene| {
        let all: Vec<pulseaudio::protocol::SourceInfo> =
            scene.ask(client, &Command::GetSourceInfoList).expect("a list");
        let state = |source: &pulseaudio::protocol::SourceInfo| {
            source.state == pulseaudio::protocol::SourceState::Suspended
        };
        all.iter().find(|source| *source.name == *text("silent")).is_some_and(state)
    };
    for name in [Some("silent"), None] {
        assert!(!is_suspended(&mut scene));
        scene.sent(client);
        let sent = scene.send(client, &asked(name, true));
        let of = StreamSuspendedParams { stream_index: record.channel, suspended: true };
        let notified = sent
            .iter()
            .filter(|packet| is_event(packet))
            .map(|packet| read_command_message(&mut &packet[..], MAX_VERSION).expect("an event").1);
        assert!(notified.into_iter().any(|event| event == Command::RecordStreamSuspended(of)));
        assert!(is_suspended(&mut scene));
        assert_eq!(scene.tell(client, &asked(name, false)), Ok(()));
    }
    let refused = scene.tell(client, &asked(Some("consort.monitor"), true));
    assert_eq!(refused, Err(PulseError::Invalid));
}
