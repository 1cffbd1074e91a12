//! Several sinks: they come and go, streams move between them, and modules add some.

use client::stream::Volume;
use pulseaudio::protocol::{
    CreateRecordStreamReply, GetSourceInfo, LoadModuleParams, LookupReply, ModuleInfo,
    MoveStreamParams, RecordStreamParams, ServerInfo, SinkInfo, SinkInputInfo, SourceInfo,
    SourceOutputInfo, SubscriptionEvent, SubscriptionEventFacility as Facility,
    SubscriptionEventType as EventType, SubscriptionMask,
};

use super::*;
use crate::front_end::silence::TONE_NUMBER;
use crate::output::{Devices, NewNullDevice};

impl Scene {
    /// Another program adds a device.
    fn add(&mut self, name: &str, rate_hz: Option<u32>) {
        let new = NewNullDevice { name: name.into(), channels: 2, rate_hz };
        assert_eq!(self.front_end.devices_mut().add(new), Ok(()));
        self.front_end.devices_changed(self.now_ns);
    }

    /// Another program adds one that captures.
    fn add_headset(&mut self, name: &str) {
        let new = NewNullDevice { name: name.into(), channels: 2, rate_hz: None };
        let devices = self.front_end.devices_mut();
        assert_eq!(devices.add(new), Ok(()));
        devices.devices.last_mut().expect("a device").format.captured = 1;
        self.front_end.devices_changed(self.now_ns);
    }

    /// Another program adds one that only captures.
    fn add_microphone(&mut self, name: &str) {
        let new = NewNullDevice { name: name.into(), channels: 2, rate_hz: None };
        let devices = self.front_end.devices_mut();
        assert_eq!(devices.add(new), Ok(()));
        let format = &mut devices.devices.last_mut().expect("a device").format;
        (format.channels, format.captured) = (0, 1);
        self.front_end.devices_changed(self.now_ns);
    }

    /// The names of all sources, by index.
    fn sources(&mut self, client: u32) -> Vec<(u32, String)> {
        let all: Vec<SourceInfo> = self.ask(client, &Command::GetSourceInfoList).expect("a list");
        let name = |source: SourceInfo| (source.index, source.name.to_string_lossy().into_owned());
        all.into_iter().map(name).collect()
    }

    /// Another program removes one.
    fn remove(&mut self, name: &str) {
        self.front_end.devices_mut().remove(name);
        self.front_end.devices_changed(self.now_ns);
    }

    fn load(&mut self, client: u32, arguments: &str) -> Result<u32, PulseError> {
        let arguments = Some(text(arguments));
        let load = LoadModuleParams { name: text("module-null-sink"), arguments };
        self.ask::<LookupReply>(client, &Command::LoadModule(load)).map(|reply| reply.0)
    }

    /// The names of all sinks, by index.
    fn sinks(&mut self, client: u32) -> Vec<(u32, String)> {
        let all: Vec<SinkInfo> = self.ask(client, &Command::GetSinkInfoList).expect("a list");
        let name = |sink: SinkInfo| (sink.index, sink.name.to_string_lossy().into_owned());
        all.into_iter().map(name).collect()
    }

    fn sink_of(&mut self, client: u32, input: u32) -> Result<u32, PulseError> {
        let info = self.ask::<SinkInputInfo>(client, &Command::GetSinkInputInfo(input));
        info.map(|info| info.sink_index)
    }

    fn defaults(&mut self, client: u32) -> (String, String) {
        let info: ServerInfo = self.ask(client, &Command::GetServerInfo).expect("an answer");
        let text = |name: Option<CString>| name.expect("one").to_string_lossy().into_owned();
        (text(info.default_sink_name), text(info.default_source_name))
    }

    fn subscribe(&mut self, client: u32) {
        self.tell(client, &Command::Subscribe(SubscriptionMask::ALL)).expect("subscribed");
    }

    /// What happened to sinks, sources and modules, in the order of the events.
    fn changes(&mut self, client: u32) -> Vec<(EventType, Facility, u32)> {
        let is_stream = |facility| matches!(facility, Facility::SinkInput | Facility::SourceOutput);
        let change = |event| match event {
            Command::SubscribeEvent(SubscriptionEvent { event_facility, event_type, index })
                if !is_stream(event_facility) && event_type != EventType::Changed =>
            {
                Some((event_type, event_facility, index.unwrap_or(u32::MAX)))
            }
            _ => None,
        };
        self.events(client).into_iter().filter_map(change).collect()
    }
}

fn to(index: u32, name: &str) -> MoveStreamParams {
    MoveStreamParams { index: Some(index), device_index: None, device_name: Some(text(name)) }
}

fn on(sink: &str) -> PlaybackStreamParams {
    PlaybackStreamParams { sink_name: Some(text(sink)), ..params() }
}

fn recording(source: &str) -> RecordStreamParams {
    RecordStreamParams {
        sample_spec: params().sample_spec,
        channel_map: ChannelMap::stereo(),
        source_name: Some(text(source)),
        ..RecordStreamParams::default()
    }
}

#[test]
fn a_device_that_is_added_and_removed_is_a_sink_with_its_monitor_in_between() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    scene.subscribe(client);
    scene.add("other", Some(44_100));
    let expected = [(EventType::New, Facility::Source, 2), (EventType::New, Facility::Sink, 1)];
    assert_eq!(scene.changes(client), expected);
    assert_eq!(scene.sinks(client), [(0, "consort".into()), (1, "other".into())]);
    let sources: Vec<SourceInfo> = scene.ask(client, &Command::GetSourceInfoList).expect("a list");
    let shown = sources.iter().map(|source| (source.index, source.monitor_of_sink_index));
    assert_eq!(shown.collect::<Vec<_>>(), [(0, Some(0)), (2, Some(1))]);
    assert_eq!((&*sources[1].name, sources[1].sample_spec.sample_rate), (c"other.monitor", 44_100));
    scene.remove("other");
    let expected =
        [(EventType::Removed, Facility::Source, 2), (EventType::Removed, Facility::Sink, 1)];
    assert_eq!(scene.changes(client), expected);
    scene.add("other", None);
    assert_eq!(scene.sinks(client)[1], (2, "other".into()), "it is another one");
}

#[test]
fn streams_play_on_the_sink_that_they_name_and_record_its_monitor() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    scene.add("other", None);
    let reply: CreatePlaybackStreamReply =
        scene.ask(client, &Command::CreatePlaybackStream(on("other"))).expect("a stream");
    assert_eq!((reply.sink_index, reply.sink_name.as_deref()), (1, Some(c"other")));
    let by_index = PlaybackStreamParams { sink_index: Some(1), ..params() };
    let reply: CreatePlaybackStreamReply =
        scene.ask(client, &Command::CreatePlaybackStream(by_index)).expect("a stream");
    assert_eq!(reply.sink_index, 1);
    let reply: CreateRecordStreamReply = scene
        .ask(client, &Command::CreateRecordStream(recording("other.monitor")))
        .expect("a stream");
    assert_eq!((reply.sink_index, reply.sink_name.as_deref()), (2, Some(c"other.monitor")));
    scene.stream(client);
    let devices = scene.front_end.devices_mut();
    let played: Vec<_> = devices.opened.iter().map(|new| new.device.as_deref()).collect();
    assert_eq!(played, [Some("other"), Some("other"), None]);
    assert_eq!(devices.recorded[0].device.as_deref(), Some("other"));
    assert!(devices.recorded[0].is_monitor);
}

#[test]
fn a_stream_that_is_moved_is_told_where_it_plays_and_what_it_is_granted() {
    let mut scene = Scene::new();
    let [owner, mixer] = [scene.admitted(), scene.admitted()];
    scene.add("near", None);
    scene.add("far", Some(44_100));
    let stream = scene.stream(owner);
    for (name, index) in [("near", 1), ("far", 2)] {
        let command = Command::MoveSinkInput(to(stream.stream_index, name));
        assert_eq!(scene.tell(mixer, &command), Ok(()));
        let events = scene.events(owner);
        let moved = events.iter().find_map(|event| match event {
            Command::PlaybackStreamMoved(moved) => Some(moved),
            _ => None,
        });
        let moved = moved.unwrap_or_else(|| panic!("{events:?}"));
        assert_eq!((moved.stream_index, moved.device_index), (stream.channel, index));
        assert_eq!((&*moved.device_name, moved.device_suspended), (&*text(name), false));
        assert_eq!(moved.buffer_attr, stream.buffer_attr);
        assert_eq!(scene.sink_of(owner, stream.stream_index), Ok(index));
    }
    let devices = scene.front_end.devices_mut();
    assert_eq!(devices.moved, [(1, Some("near".into()))], "by the server, of the same rate");
    let opened: Vec<_> = devices.opened.iter().map(|new| new.device.as_deref()).collect();
    assert_eq!(opened, [None, Some("far")], "as another one, of another rate");
}

#[test]
fn what_a_user_has_set_on_the_server_stays_with_a_stream_that_is_opened_again_elsewhere() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    scene.add("far", Some(44_100));
    let stream = scene.stream(client).stream_index;
    let quiet = Volume { muted: true, ..Volume::default() };
    if let Some(input) = scene.front_end.inputs.get_mut(stream) {
        input.playback.output_mut().volume = quiet;
    }
    scene.tell(client, &Command::MoveSinkInput(to(stream, "far"))).expect("moved");
    let opened = &scene.front_end.devices_mut().opened;
    let volumes: Vec<Volume> = opened.iter().map(|new| new.volume).collect();
    assert_eq!(volumes, [Volume::default(), quiet]);
}

#[test]
fn a_move_that_cannot_be_is_refused_in_pulseaudios_words() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    scene.add("other", None);
    let stream = scene.stream(client).stream_index;
    let flags = pulseaudio::protocol::stream::StreamFlags { no_move: true, ..Default::default() };
    let stays = PlaybackStreamParams { flags, ..params() };
    let stays: CreatePlaybackStreamReply =
        scene.ask(client, &Command::CreatePlaybackStream(stays)).expect("a stream");
    for (command, error) in [
        (Command::MoveSinkInput(to(stream, "none")), PulseError::NoEntity),
        (Command::MoveSinkInput(to(99, "other")), PulseError::NoEntity),
        (Command::MoveSinkInput(to(stays.stream_index, "other")), PulseError::Invalid),
        (Command::MoveSourceOutput(to(0, "other.monitor")), PulseError::NoEntity),
    ] {
        assert_eq!(scene.tell(client, &command), Err(error), "{command:?}");
    }
    assert_eq!(scene.sink_of(client, stays.stream_index), Ok(0));
}

#[test]
fn streams_follow_the_default_sink_unless_a_user_has_moved_them() {
    let mut scene = Scene::new();
    let [client, mixer] = [scene.admitted(), scene.admitted()];
    scene.add("one", None);
    scene.add("two", None);
    let [follows, pinned] = [(); 2].map(|()| scene.stream(client).stream_index);
    let records: CreateRecordStreamReply = scene
        .ask(client, &Command::CreateRecordStream(recording("@DEFAULT_SOURCE@")))
        .expect("a stream");
    scene.tell(client, &Command::MoveSinkInput(to(pinned, "one"))).expect("moved");
    scene.subscribe(mixer);
    for (name, sink) in [("one", 1), ("two", 2)] {
        scene.tell(client, &Command::SetDefaultSink(text(name))).expect("set");
        let events = scene.events(mixer);
        let changed = SubscriptionEvent {
            event_facility: Facility::Server,
            event_type: EventType::Changed,
            index: None,
        };
        assert!(events.contains(&Command::SubscribeEvent(changed)), "{events:?}");
        assert_eq!(scene.defaults(client), (name.into(), format!("{name}.monitor")));
        assert_eq!(scene.sink_of(client, follows), Ok(sink));
        assert_eq!(scene.sink_of(client, pinned), Ok(1));
        let info: SourceOutputInfo = scene
            .ask(client, &Command::GetSourceOutputInfo(records.stream_index))
            .expect("a stream");
        assert_eq!(info.source_index, sink + 1, "it records the default source");
    }
    let lookup = Command::LookupSink(text("@DEFAULT_SINK@"));
    assert_eq!(scene.ask(client, &lookup), Ok(LookupReply(2)));
    scene.tell(client, &Command::SetDefaultSource(text("consort.monitor"))).expect("set");
    assert_eq!(scene.defaults(client), ("two".into(), "consort.monitor".into()));
    scene.remove("two");
    assert_eq!(scene.defaults(client).0, "one", "it was chosen before");
    assert_eq!(scene.sink_of(client, follows), Ok(1));
    scene.remove("one");
    assert_eq!(scene.defaults(client).0, "consort", "the server's own device again");
    assert_eq!(scene.sink_of(client, follows), Ok(0));
    scene.add("two", None);
    assert_eq!(scene.defaults(client).0, "two", "as it was chosen");
}

#[test]
fn streams_of_a_sink_that_goes_go_on_at_the_default_one() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    scene.add("other", Some(44_100));
    let plays: CreatePlaybackStreamReply =
        scene.ask(client, &Command::CreatePlaybackStream(on("other"))).expect("a stream");
    let records: CreateRecordStreamReply = scene
        .ask(client, &Command::CreateRecordStream(recording("other.monitor")))
        .expect("a stream");
    scene.remove("other");
    let events = scene.events(client);
    let has_moved = |event: &Command| match event {
        Command::PlaybackStreamMoved(moved) => &*moved.device_name == c"consort",
        Command::RecordStreamMoved(moved) => &*moved.device_name == c"consort.monitor",
        _ => false,
    };
    assert_eq!(events.iter().filter(|event| has_moved(event)).count(), 2, "{events:?}");
    assert_eq!(scene.sink_of(client, plays.stream_index), Ok(0));
    let info: SourceOutputInfo =
        scene.ask(client, &Command::GetSourceOutputInfo(records.stream_index)).expect("a stream");
    assert_eq!(info.source_index, 0);
}

#[test]
fn a_stream_that_another_program_of_the_server_moves_is_told() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    scene.add("other", None);
    let stream = scene.stream(client);
    scene.front_end.devices_mut().homes.insert(1, Some("other".into()));
    scene.front_end.devices_changed(0);
    let events = scene.events(client);
    assert!(matches!(&events[0], Command::PlaybackStreamMoved(moved) if moved.device_index == 1));
    assert_eq!(scene.sink_of(client, stream.stream_index), Ok(1));
    assert!(scene.front_end.devices_mut().moved.is_empty(), "it is there already");
}

#[test]
fn a_recording_that_another_program_of_the_server_moves_is_announced() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    scene.add("other", None);
    let records: CreateRecordStreamReply = scene
        .ask(client, &Command::CreateRecordStream(recording("consort.monitor")))
        .expect("a stream");
    scene.front_end.devices_mut().homes.insert(TONE_NUMBER, Some("other".into()));
    scene.front_end.devices_changed(0);
    let events = scene.events(client);
    let [Command::RecordStreamMoved(moved)] = &events[..] else { panic!("{events:?}") };
    assert_eq!(&*moved.device_name, c"other.monitor");
    let info: SourceOutputInfo =
        scene.ask(client, &Command::GetSourceOutputInfo(records.stream_index)).expect("a stream");
    assert_eq!(info.source_index, moved.device_index);
    scene.front_end.devices_changed(0);
    assert!(scene.events(client).is_empty(), "it is there");
}

#[test]
fn a_module_is_a_sink_as_its_arguments_describe_it() {
    let mut scene = Scene::new();
    let [client, mixer] = [scene.admitted(), scene.admitted()];
    scene.subscribe(mixer);
    let arguments = "sink_name=two rate=22050 channel_map=lfe sink_properties=device.description=A";
    let module = scene.load(client, arguments).expect("loaded");
    let expected = [
        (EventType::New, Facility::Source, 2),
        (EventType::New, Facility::Sink, 1),
        (EventType::New, Facility::Module, module),
    ];
    assert_eq!(scene.changes(mixer), expected);
    let sinks: Vec<SinkInfo> = scene.ask(client, &Command::GetSinkInfoList).expect("a list");
    let sink = &sinks[1];
    assert_eq!((&*sink.name, sink.description.as_deref()), (c"two", Some(c"A")));
    assert_eq!((sink.sample_spec.sample_rate, sink.owner_module_index), (22_050, Some(module)));
    assert_eq!((&sink.channel_map).into_iter().count(), 1);
    let modules: Vec<ModuleInfo> = scene.ask(client, &Command::GetModuleInfoList).expect("a list");
    assert_eq!((modules[0].index, &*modules[0].name), (module, c"module-null-sink"));
    assert_eq!(modules[0].argument.as_deref(), Some(&*text(arguments)));
    // Another one of the same name has a number, as with PulseAudio.
    scene.load(client, "sink_name=two").expect("loaded");
    assert_eq!(scene.sinks(client)[2].1, "two.2");
}

#[test]
fn a_module_that_is_unloaded_takes_its_sink_along() {
    let mut scene = Scene::new();
    let [client, mixer] = [scene.admitted(), scene.admitted()];
    let module = scene.load(client, "sink_name=two").expect("loaded");
    let plays: CreatePlaybackStreamReply =
        scene.ask(client, &Command::CreatePlaybackStream(on("two"))).expect("a stream");
    scene.subscribe(mixer);
    scene.tell(client, &Command::UnloadModule(module)).expect("unloaded");
    let removed = |sink: u32, module: u32| {
        [
            (EventType::Removed, Facility::Source, sink + 1),
            (EventType::Removed, Facility::Sink, sink),
            (EventType::Removed, Facility::Module, module),
        ]
    };
    assert_eq!(scene.changes(mixer), removed(1, module));
    assert_eq!(scene.sinks(client), [(0, "consort".into())]);
    assert_eq!(scene.front_end.devices_mut().moved, [(1, None)], "before the device goes");
    assert_eq!(scene.sink_of(client, plays.stream_index), Ok(0));
    assert_eq!(scene.tell(client, &Command::UnloadModule(module)), Err(PulseError::NoEntity));
    // One whose device another program removes goes with it.
    let module = scene.load(client, "sink_name=two").expect("loaded");
    scene.changes(mixer);
    scene.remove("two");
    assert_eq!(scene.changes(mixer), removed(2, module));
    // So does one whose device is another one of the same name by the next look.
    scene.load(client, "sink_name=two").expect("loaded");
    scene.front_end.devices_mut().remove("two");
    scene.add("two", None);
    let sinks: Vec<SinkInfo> = scene.ask(client, &Command::GetSinkInfoList).expect("a list");
    assert_eq!((sinks.len(), sinks[1].owner_module_index), (2, None));
    assert_eq!(scene.ask(client, &Command::GetModuleInfoList), Ok(Vec::<ModuleInfo>::new()));
}

#[test]
fn a_module_that_cannot_be_is_refused_in_pulseaudios_words() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    let failed = Err(PulseError::ModInitFailed);
    assert_eq!(scene.load(client, "rate=0"), failed);
    let other = LoadModuleParams { name: text("module-other"), arguments: None };
    assert_eq!(scene.tell(client, &Command::LoadModule(other)), failed.map(|_: u32| ()));
    scene.front_end.devices_mut().refuses = true;
    assert_eq!(scene.load(client, ""), failed, "by the server");
    scene.front_end.devices_mut().refuses = false;
    let loaded = (0..100).filter(|_| scene.load(client, "").is_ok()).count();
    assert_eq!(loaded, 8, "as many devices as the server has");
}

#[test]
fn what_a_further_device_captures_is_a_source_of_its_own() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    scene.add_headset("headset");
    scene.add("other", None);
    let named = |all: &[(u32, &str)]| -> Vec<(u32, String)> {
        all.iter().map(|(index, name)| (*index, (*name).to_owned())).collect()
    };
    let sinks = [(0, "consort"), (1, "headset"), (3, "other")];
    assert_eq!(scene.sinks(client), named(&sinks));
    let monitors = [(0, "consort.monitor"), (2, "headset.monitor"), (4, "other.monitor")];
    let [driver, headset, other] = monitors;
    let sources = [driver, headset, (3, "headset.capture"), other];
    assert_eq!(scene.sources(client), named(&sources));
    assert_eq!(scene.defaults(client).1, "headset.capture", "nothing else captures");
    for (index, name) in sources {
        let info: SourceInfo = scene.ask(client, &asked_source(Some(index), None)).expect("there");
        assert_eq!(info.name.to_str(), Ok(name));
        let info: SourceInfo = scene.ask(client, &asked_source(None, Some(name))).expect("there");
        assert_eq!((info.index, info.monitor_of_sink_index.is_some()), (index, index != 3));
    }
    for index in [1, 5, 6] {
        let found = scene.ask::<SourceInfo>(client, &asked_source(Some(index), None));
        assert_eq!(found.err(), Some(PulseError::NoEntity), "{index}");
    }
}

fn asked_source(index: Option<u32>, name: Option<&str>) -> Command {
    Command::GetSourceInfo(GetSourceInfo { index, name: name.map(text) })
}

#[test]
fn a_recording_of_a_device_that_goes_goes_on_at_the_default_source() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    scene.add_headset("headset");
    let reply: CreateRecordStreamReply = scene
        .ask(client, &Command::CreateRecordStream(super::recording::asked()))
        .expect("a stream");
    assert_eq!(reply.sink_name.as_deref(), Some(c"headset.capture"));
    let opened = scene.front_end.devices_mut().recorded.last().expect("one").clone();
    assert_eq!((opened.device.as_deref(), opened.is_monitor), (Some("headset"), false));
    assert_eq!(opened.channels, 1);
    scene.subscribe(client);
    scene.events(client);
    scene.remove("headset");
    let gone =
        [(EventType::Removed, Facility::Source, 2), (EventType::Removed, Facility::Source, 3)];
    let changes = scene.changes(client);
    assert!(gone.iter().all(|gone| changes.contains(gone)), "{changes:?}");
    let opened = scene.front_end.devices_mut().recorded.last().expect("one").clone();
    assert_eq!((opened.device.as_deref(), opened.is_monitor), (None, true));
}

#[test]
fn a_device_that_only_captures_is_a_source_and_nothing_else() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    scene.subscribe(client);
    scene.events(client);
    scene.add_microphone("mic");
    let of_devices = |changes: Vec<(EventType, Facility, u32)>| {
        let of = |(_, facility, _): &(EventType, Facility, u32)| *facility != Facility::Server;
        changes.into_iter().filter(of).collect::<Vec<_>>()
    };
    let came = of_devices(scene.changes(client));
    assert_eq!(came, [(EventType::New, Facility::Source, 3)], "no sink, and no monitor");
    scene.add("other", None);
    let names = |all: Vec<(u32, String)>| -> Vec<String> {
        all.into_iter().map(|(_, name)| name).collect()
    };
    assert_eq!(names(scene.sinks(client)), ["consort", "other"]);
    let sources = ["consort.monitor", "mic.capture", "other.monitor"];
    assert_eq!(names(scene.sources(client)), sources);
    assert_eq!(scene.defaults(client).1, "mic.capture", "nothing else captures");
    let reply: CreateRecordStreamReply = scene
        .ask(client, &Command::CreateRecordStream(super::recording::asked()))
        .expect("a stream");
    assert_eq!(reply.sink_name.as_deref(), Some(c"mic.capture"));
    scene.events(client);
    scene.remove("mic");
    let gone = of_devices(scene.changes(client));
    assert_eq!(gone, [(EventType::Removed, Facility::Source, 3)]);
    let opened = scene.front_end.devices_mut().recorded.last().expect("one").clone();
    assert_eq!((opened.device.as_deref(), opened.is_monitor), (None, true), "it goes on");
}
