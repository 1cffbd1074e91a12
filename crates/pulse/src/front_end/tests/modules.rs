//! Modules: what they ask of the server, and what programs see of them.

mod policies;
mod processing;
mod rtp;
mod ruled;
mod streams;
mod tunnels;
mod x11;
mod zeroconf;

use pulseaudio::protocol::{
    LoadModuleParams, LookupReply, ModuleInfo, RecordStreamParams, SinkInfo, SourceInfo,
    SubscriptionEvent, SubscriptionEventFacility as Facility, SubscriptionEventType as EventType,
    SubscriptionMask,
};

use super::*;
use crate::output::{Devices, Heard, NewLink, NewLoopback, NewPipe};

pub(super) const FAILED: PulseError = PulseError::ModInitFailed;

impl Scene {
    /// Asks for a module; returns what is sent.
    pub(super) fn begin_to_load(
        &mut self,
        client: u32,
        name: &str,
        arguments: &str,
    ) -> Vec<Vec<u8>> {
        let load = LoadModuleParams { name: text(name), arguments: Some(text(arguments)) };
        self.send(client, &Command::LoadModule(load))
    }

    /// Loads a module, whose process begins if it has one.
    pub(super) fn load_named(
        &mut self,
        client: u32,
        name: &str,
        arguments: &str,
    ) -> Result<u32, PulseError> {
        let mut sent = self.begin_to_load(client, name, arguments);
        if !sent.iter().any(|packet| is_answer(packet)) {
            let index = *self.links().keys().last().expect("a process");
            self.front_end.link_has_begun(index, Ok(()), 0);
            sent = self.sent(client);
        }
        let answer = sent.iter().find(|packet| is_answer(packet)).expect("an answer");
        answered(read_reply_message::<LookupReply>(&mut &answer[..], MAX_VERSION)).map(|all| all.0)
    }

    pub(super) fn links(&mut self) -> &std::collections::BTreeMap<u32, NewLink> {
        &self.front_end.devices_mut().links
    }

    pub(super) fn loopback(&mut self, index: u32) -> NewLoopback {
        match self.links().get(&index) {
            Some(NewLink::Loopback(loopback)) => loopback.clone(),
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn reported(&mut self) -> Vec<String> {
        std::mem::take(&mut self.front_end.devices_mut().reported)
    }

    pub(super) fn module_names(&mut self, client: u32) -> Vec<String> {
        let all: Vec<ModuleInfo> = self.ask(client, &Command::GetModuleInfoList).expect("a list");
        all.into_iter().map(|module| module.name.to_string_lossy().into_owned()).collect()
    }

    pub(super) fn sink_named(&mut self, client: u32, name: &str) -> Option<SinkInfo> {
        let all: Vec<SinkInfo> = self.ask(client, &Command::GetSinkInfoList).expect("a list");
        all.into_iter().find(|sink| *sink.name == *text(name))
    }

    pub(super) fn source_named(&mut self, client: u32, name: &str) -> Option<SourceInfo> {
        let all: Vec<SourceInfo> = self.ask(client, &Command::GetSourceInfoList).expect("a list");
        all.into_iter().find(|source| *source.name == *text(name))
    }
}

fn map(text: &str) -> convert::ChannelMap {
    text.parse().expect("a map")
}

fn stereo() -> convert::ChannelMap {
    map("front-left,front-right")
}

#[test]
fn a_loopback_is_there_once_its_process_passes_frames_on() {
    let mut scene = Scene::new();
    let [client, mixer] = [scene.admitted(), scene.admitted()];
    scene.tell(mixer, &Command::Subscribe(SubscriptionMask::MODULE)).expect("subscribed");
    let name = "module-loopback";
    scene.load_named(client, "module-null-sink", "sink_name=other channels=1").expect("loaded");
    scene.events(mixer);
    let sent = scene.begin_to_load(client, name, "source=other.monitor latency_msec=50");
    assert!(sent.is_empty(), "it is not answered yet");
    assert_eq!(scene.module_names(mixer), ["module-null-sink"]);
    let expected = NewLoopback {
        from: Heard { device: Some("other".into()), captures: false },
        from_map: map("mono"),
        via: None,
        to: vec![(None, stereo())],
        mixed: true,
        latency_ms: 50,
    };
    assert_eq!(scene.loopback(1), expected);
    scene.front_end.link_has_begun(1, Ok(()), 0);
    let answer = scene.sent(client);
    let answer = answered(read_reply_message::<LookupReply>(&mut &answer[0][..], MAX_VERSION));
    assert_eq!(answer, Ok(LookupReply(1)));
    let event = |event_type| {
        let (event_facility, index) = (Facility::Module, Some(1));
        Command::SubscribeEvent(SubscriptionEvent { event_facility, event_type, index })
    };
    assert_eq!(scene.events(mixer), [event(EventType::New)]);
    assert_eq!(scene.module_names(mixer), ["module-null-sink", name]);
    scene.tell(client, &Command::UnloadModule(1)).expect("unloaded");
    assert!(scene.links().is_empty(), "its process ends");
    assert_eq!(scene.events(mixer), [event(EventType::Removed)]);
    // What is said of it later is about nothing.
    scene.front_end.link_has_begun(1, Ok(()), 0);
    scene.front_end.link_has_ended(1, None, 0);
    assert!(scene.events(mixer).is_empty() && scene.reported().is_empty());
}

#[test]
fn a_latency_that_is_too_short_is_the_shortest_and_one_that_is_too_long_is_refused() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    scene.load_named(client, "module-null-sink", "sink_name=other").expect("loaded");
    let load = |scene: &mut Scene, ms| {
        let arguments = format!("source=other.monitor latency_msec={ms}");
        scene.load_named(client, "module-loopback", &arguments)
    };
    for (ms, expected) in [(1, 20), (20, 20), (400, 400)] {
        let index = load(&mut scene, ms).expect("loaded");
        assert_eq!(scene.loopback(index).latency_ms, expected, "{ms}");
    }
    for ms in [0, 401, 30_001] {
        assert_eq!(load(&mut scene, ms), Err(FAILED), "{ms}");
    }
}

#[test]
fn a_combined_sink_is_heard_on_each_of_its_sinks_by_position() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    let surround = "sink_name=surround rate=44100 channel_map=surround-40";
    scene.load_named(client, "module-null-sink", surround).expect("loaded");
    let arguments = "slaves=surround,consort,surround sink_name=all remix=no";
    let index = scene.load_named(client, "module-combine-sink", arguments).expect("loaded");
    let expected = NewLoopback {
        from: Heard { device: Some("all".into()), captures: false },
        from_map: map("surround-40"),
        via: None,
        to: vec![(Some("surround".into()), map("surround-40")), (None, stereo())],
        mixed: false,
        latency_ms: 200,
    };
    assert_eq!(scene.loopback(index), expected);
    let sink = scene.sink_named(client, "all").expect("a sink");
    assert_eq!((sink.sample_spec.sample_rate, sink.sample_spec.channels), (44_100, 4));
    let expected = c"Simultaneous output to Null Output, consort";
    assert_eq!(sink.description.as_deref(), Some(expected));
    // Without others, it is heard on what has hardware.
    let index = scene.load_named(client, "module-combine-sink", "").expect("loaded");
    assert_eq!(scene.loopback(index).to, [(None, stereo())]);
    assert!(scene.sink_named(client, "combined").is_some());
}

#[test]
fn a_combined_sink_goes_on_with_the_sinks_that_are_left() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    for name in ["one", "two"] {
        let arguments = format!("sink_name={name}");
        scene.load_named(client, "module-null-sink", &arguments).expect("loaded");
    }
    let slaves = "slaves=one,two sink_name=all";
    let index = scene.load_named(client, "module-combine-sink", slaves).expect("loaded");
    scene.front_end.devices_mut().remove("one");
    scene.front_end.link_has_ended(index, None, 0);
    assert_eq!(scene.loopback(index).to, [(Some("two".into()), stereo())]);
    assert!(scene.sink_named(client, "all").is_some());
    scene.front_end.devices_mut().remove("two");
    scene.front_end.link_has_ended(index, None, 0);
    assert!(scene.sink_named(client, "all").is_none(), "none is left");
    assert!(scene.links().is_empty() && scene.module_names(client).is_empty());
}

#[test]
fn a_remapped_sink_is_heard_on_the_channels_that_it_names() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    let surround = "sink_name=surround channel_map=surround-40";
    scene.load_named(client, "module-null-sink", surround).expect("loaded");
    let arguments = "master=surround channels=2 master_channel_map=rear-left,rear-right remix=no";
    let index = scene.load_named(client, "module-remap-sink", arguments).expect("loaded");
    let expected = NewLoopback {
        from: Heard { device: Some("surround.remapped".into()), captures: false },
        from_map: map("rear-left,rear-right"),
        via: None,
        to: vec![(Some("surround".into()), map("surround-40"))],
        mixed: false,
        latency_ms: 100,
    };
    assert_eq!(scene.loopback(index), expected);
    let sink = scene.sink_named(client, "surround.remapped").expect("a sink");
    assert_eq!(sink.channel_map, pulseaudio::protocol::ChannelMap::stereo());
    assert_eq!(sink.description.as_deref(), Some(c"Remapped Null Output"));
    let master = sink.props.iter().find(|(key, _)| key.to_bytes() == b"device.master_device");
    assert_eq!(master.map(|(_, value)| &**value), Some(&b"surround\0"[..]));
}

#[test]
fn a_source_of_a_module_is_recorded_and_no_program_plays_on_it() {
    let mut scene = Scene::new();
    let [client, mixer] = [scene.admitted(), scene.admitted()];
    scene.tell(mixer, &Command::Subscribe(SubscriptionMask::ALL)).expect("subscribed");
    scene.events(mixer);
    let arguments =
        "source_name=left channels=1 master=consort.monitor master_channel_map=front-left";
    let index = scene.load_named(client, "module-remap-source", arguments).expect("loaded");
    let loopback = scene.loopback(index);
    assert_eq!(loopback.from, Heard { device: None, captures: false });
    assert_eq!(loopback.to, [(Some("left".into()), map("front-left"))]);
    let facilities = scene.events(mixer).into_iter().filter_map(|event| match event {
        Command::SubscribeEvent(event) => Some(event.event_facility),
        _ => None,
    });
    let facilities: Vec<Facility> = facilities.collect();
    assert!(!facilities.contains(&Facility::Sink), "{facilities:?}");
    let source = scene.source_named(client, "left").expect("a source");
    assert_eq!(source.description.as_deref(), Some(c"Remapped Monitor of consort"));
    assert_eq!((source.monitor_of_sink_index, source.owner_module_index), (None, Some(index)));
    assert!(scene.sink_named(client, "left").is_none());
    for (sink_index, sink_name) in [(Some(1), None), (None, Some(text("left")))] {
        let asked = PlaybackStreamParams { sink_index, sink_name, ..params() };
        let refused = scene.tell(client, &Command::CreatePlaybackStream(asked));
        assert_eq!(refused, Err(PulseError::NoEntity));
    }
    let asked = RecordStreamParams {
        sample_spec: params().sample_spec,
        channel_map: ChannelMap::stereo(),
        source_name: Some(text("left")),
        ..RecordStreamParams::default()
    };
    let _: pulseaudio::protocol::CreateRecordStreamReply =
        scene.ask(client, &Command::CreateRecordStream(asked)).expect("a stream");
    let recorded = &scene.front_end.devices_mut().recorded[0];
    assert_eq!((recorded.device.as_deref(), recorded.is_monitor), (Some("left"), true));
}

#[test]
fn a_module_with_a_fifo_says_which_and_what_is_in_it() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    let index = scene.load_named(client, "module-pipe-sink", "format=s24le rate=8000 channels=1");
    let pipe = |device: &str, file: &str, format: &str, rate_hz, channels| {
        let format = format.parse().expect("a format");
        NewPipe { device: device.into(), file: file.into(), format, rate_hz, channels }
    };
    let expected =
        NewLink::PipeSink(pipe("fifo_output", "/run/pulse/fifo_output", "s24le", 8000, 1));
    assert_eq!(scene.links().get(&index.expect("loaded")), Some(&expected));
    let sink = scene.sink_named(client, "fifo_output").expect("a sink");
    assert_eq!(sink.description.as_deref(), Some(c"Unix FIFO sink /run/pulse/fifo_output"));
    let index = scene.load_named(client, "module-pipe-source", "file=/tmp/f source_name=in");
    let expected = NewLink::PipeSource(pipe("in", "/tmp/f", "s16le", 48_000, 2));
    assert_eq!(scene.links().get(&index.expect("loaded")), Some(&expected));
    assert!(scene.source_named(client, "in").is_some() && scene.sink_named(client, "in").is_none());
}

#[test]
fn a_module_that_cannot_begin_leaves_nothing_but_a_reason() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    scene.begin_to_load(client, "module-pipe-sink", "file=/nonexistent/f");
    assert!(scene.sink_named(client, "fifo_output").is_some());
    let reason = "no such directory".to_owned();
    scene.front_end.link_has_begun(0, Err(reason), 0);
    let answer = scene.sent(client);
    let answer = answer.iter().find(|packet| is_answer(packet)).expect("an answer");
    assert_eq!(answered(read_ack_message(&mut &answer[..]).map(|tag| (tag, ()))), Err(FAILED));
    assert!(scene.sink_named(client, "fifo_output").is_none() && scene.links().is_empty());
    assert_eq!(scene.front_end.devices_mut().devices.len(), 1, "its device has gone");
    let expected = "cannot load 'module-pipe-sink file=/nonexistent/f': no such directory";
    assert_eq!(scene.reported(), [expected]);
}

#[test]
fn a_module_whose_process_has_ended_is_unloaded_with_its_device() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    let index = scene.load_named(client, "module-remap-sink", "sink_name=r").expect("loaded");
    scene.front_end.link_has_ended(index, None, 0);
    assert_eq!(scene.module_names(client), Vec::<String>::new());
    assert!(scene.sink_named(client, "r").is_none());
    assert!(scene.reported()[0].starts_with("unloads 'module-remap-sink sink_name=r'"));
    // One whose device another program removes ends its process.
    scene.load_named(client, "module-remap-sink", "sink_name=r").expect("loaded");
    scene.front_end.devices_mut().devices.truncate(1);
    scene.front_end.devices_changed(0);
    assert!(scene.links().is_empty() && scene.module_names(client).is_empty());
}

#[test]
fn a_module_is_loaded_though_its_program_has_gone_meanwhile() {
    let mut scene = Scene::new();
    let [client, other] = [scene.admitted(), scene.admitted()];
    scene.begin_to_load(client, "module-remap-sink", "");
    scene.front_end.disconnected(client, scene.now_ns);
    scene.front_end.link_has_begun(0, Ok(()), 0);
    assert_eq!(scene.module_names(other), ["module-remap-sink"]);
    assert!(scene.sent(client).iter().all(|packet| !is_answer(packet)), "nobody waits");
}

#[test]
fn what_a_module_names_and_is_not_there_is_the_reason_that_is_left() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    for (name, arguments, reason) in [
        ("module-other", "", "there is no such module"),
        ("module-loopback", "source=none", "there is no source 'none'"),
        ("module-loopback", "sink=none", "there is no sink 'none'"),
        ("module-loopback", "sink_name=a", "there is no argument 'sink_name'"),
        ("module-loopback", "adjust_time=often", "adjust_time is 'often'"),
        ("module-combine-sink", "slaves=consort,none", "there is no sink 'none'"),
        ("module-combine-sink", "slaves=,", "slaves names no sink"),
        ("module-remap-sink", "master=none", "there is no sink 'none'"),
        ("module-remap-sink", "master_channel_map=mono", "master_channel_map has 1 channels"),
        ("module-remap-source", "master=consort", "there is no source 'consort'"),
        ("module-null-source", "source_properties=a=b", "there is no argument"),
        ("module-pipe-sink", "use_system_clock_for_timing=perhaps", "takes yes or no"),
        ("module-null-sink", "sink_properties=a", "sink_properties are no key=value pairs"),
    ] {
        assert_eq!(scene.load_named(client, name, arguments), Err(FAILED), "{name} {arguments}");
        let reported = scene.reported();
        assert!(reported.len() == 1 && reported[0].contains(reason), "{reported:?}");
    }
    assert!(scene.links().is_empty());
    assert_eq!(scene.front_end.devices_mut().devices.len(), 1);
}

#[test]
fn modules_that_pass_sound_on_are_limited() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    scene.load_named(client, "module-null-sink", "sink_name=other").expect("loaded");
    let load = |scene: &mut Scene| {
        scene.load_named(client, "module-loopback", "source=other.monitor sink=consort")
    };
    let loaded = (0..100).filter(|_| load(&mut scene).is_ok()).count();
    assert_eq!((loaded, scene.links().len()), (32, 32));
    scene.tell(client, &Command::UnloadModule(1)).expect("unloaded");
    assert!(load(&mut scene).is_ok(), "one has made room");
}

#[test]
fn what_is_behind_a_sink_is_a_part_of_the_latency_of_its_streams() {
    use pulseaudio::protocol::{LatencyParams, PlaybackLatency, RecordLatency};
    let mut scene = Scene::new();
    let client = scene.admitted();
    scene.load_named(client, "module-remap-sink", "sink_name=near").expect("loaded");
    scene
        .load_named(client, "module-combine-sink", "sink_name=far slaves=consort,near")
        .expect("loaded");
    scene.load_named(client, "module-remap-source", "source_name=in").expect("loaded");
    let asked = |channel| LatencyParams { channel, now: std::time::SystemTime::UNIX_EPOCH };
    for (sink, expected) in [("consort", 0), ("near", 100_000), ("far", 300_000)] {
        let asked_for = PlaybackStreamParams { sink_name: Some(text(sink)), ..params() };
        let plays: CreatePlaybackStreamReply =
            scene.ask(client, &Command::CreatePlaybackStream(asked_for)).expect("a stream");
        let latency: PlaybackLatency = scene
            .ask(client, &Command::GetPlaybackLatency(asked(plays.channel)))
            .expect("a latency");
        assert_eq!(latency.sink_usec, expected, "{sink}");
    }
    let mut latencies = ["consort.monitor", "near.monitor", "in"].map(|source| {
        let asked_for = RecordStreamParams {
            sample_spec: params().sample_spec,
            channel_map: ChannelMap::stereo(),
            source_name: Some(text(source)),
            ..RecordStreamParams::default()
        };
        let records: pulseaudio::protocol::CreateRecordStreamReply =
            scene.ask(client, &Command::CreateRecordStream(asked_for)).expect("a stream");
        let latency: RecordLatency = scene
            .ask(client, &Command::GetRecordLatency(asked(records.channel)))
            .expect("a latency");
        latency.source_usec
    });
    latencies[2] -= 100_000;
    assert!(latencies.iter().all(|latency| *latency == latencies[0]), "{latencies:?}");
}

#[test]
fn a_loopback_follows_the_default_that_it_does_not_name() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    for name in ["one", "two"] {
        let arguments = format!("sink_name={name}");
        scene.load_named(client, "module-null-sink", &arguments).expect("loaded");
    }
    let refused = scene.load_named(client, "module-loopback", "");
    assert_eq!(refused, Err(FAILED), "the default sink's monitor on the default sink");
    let follows = scene.load_named(client, "module-loopback", "source=one.monitor");
    let follows = follows.expect("loaded");
    let stays = scene.load_named(client, "module-loopback", "source=one.monitor sink=consort");
    let stays = stays.expect("loaded");
    let to = |scene: &mut Scene, index| scene.loopback(index).to[0].0.clone();
    assert_eq!(to(&mut scene, follows), None);
    scene.tell(client, &Command::SetDefaultSink(text("two"))).expect("set");
    assert_eq!((to(&mut scene, follows), to(&mut scene, stays)), (Some("two".into()), None));
    // Where it would be played into itself, it does not go.
    scene.tell(client, &Command::SetDefaultSink(text("one"))).expect("set");
    assert_eq!(to(&mut scene, follows), Some("two".into()));
    scene.tell(client, &Command::SetDefaultSink(text("two"))).expect("set");
    let started = &scene.front_end.devices_mut().started;
    assert_eq!(started, &[follows, stays, follows], "the other one plays on");
    // Without the sink, the one that was the default before is it again.
    for name in ["consort", "two"] {
        scene.tell(client, &Command::SetDefaultSink(text(name))).expect("set");
    }
    // The end of its process is noticed before that of the device.
    scene.front_end.devices_mut().remove("two");
    scene.front_end.link_has_ended(follows, None, 0);
    assert_eq!(to(&mut scene, follows), None);
    assert_eq!(scene.module_names(client).len(), 3, "a null sink, and both loopbacks");
    scene.front_end.link_has_begun(follows, Err("there is no such device".into()), 0);
    scene.front_end.link_has_ended(follows, None, 0);
    assert_eq!(scene.module_names(client).len(), 2, "it could not follow");
    scene.front_end.link_has_ended(stays, None, 0);
    assert_eq!(scene.module_names(client), ["module-null-sink"]);
}
