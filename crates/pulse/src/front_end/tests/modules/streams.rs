//! The streams of modules: what programs see of them, and what they can change.

use pulseaudio::protocol::{
    ChannelVolume, MoveStreamParams, SetStreamMuteParams, SetStreamVolumeParams, SinkInputInfo,
    SourceOutputInfo, SubscriptionEvent, SubscriptionEventFacility as Facility,
    SubscriptionEventType as EventType, SubscriptionMask, Volume,
};

use super::*;
use crate::output::{Devices, Heard, LinkEnd};

impl Scene {
    fn inputs(&mut self, client: u32) -> Vec<SinkInputInfo> {
        self.ask(client, &Command::GetSinkInputInfoList).expect("a list")
    }

    fn outputs(&mut self, client: u32) -> Vec<SourceOutputInfo> {
        self.ask(client, &Command::GetSourceOutputInfoList).expect("a list")
    }

    /// A program that is notified of streams.
    fn watcher(&mut self) -> u32 {
        let client = self.admitted();
        let mask = SubscriptionMask::SINK_INPUT | SubscriptionMask::SOURCE_OUTPUT;
        self.tell(client, &Command::Subscribe(mask)).expect("subscribed");
        client
    }

    fn stream_changes(&mut self, watcher: u32) -> Vec<(Facility, EventType, u32)> {
        let events = self.events(watcher).into_iter();
        let changes = events.filter_map(|event| match event {
            Command::SubscribeEvent(SubscriptionEvent { event_facility, event_type, index }) => {
                Some((event_facility, event_type, index.expect("an index")))
            }
            _ => None,
        });
        changes.collect()
    }

    fn link_volumes(&mut self) -> Vec<(u32, LinkEnd, f32, bool)> {
        let set = std::mem::take(&mut self.front_end.devices_mut().link_volumes).into_iter();
        set.map(|(link, end, volume)| (link, end, volume.gain.factor(), volume.muted)).collect()
    }
}

fn volumes(each: &[u32]) -> ChannelVolume {
    let mut volumes = ChannelVolume::empty();
    each.iter().for_each(|volume| volumes.push(Volume::from_u32_clamped(*volume)));
    volumes
}

fn set(index: u32, each: &[u32]) -> Command {
    Command::SetSinkInputVolume(SetStreamVolumeParams { index, volume: volumes(each) })
}

fn plays(device: &str) -> LinkEnd {
    LinkEnd::Plays(Some(device.into()))
}

fn monitor(device: &str) -> LinkEnd {
    LinkEnd::Records(Heard { device: Some(device.into()), captures: false })
}

/// A loopback from the sink `other` to the device that drives, and the program that has loaded it.
fn looped() -> (Scene, u32, u32) {
    let mut scene = Scene::new();
    let client = scene.admitted();
    let arguments = "sink_name=other rate=44100 channels=1";
    scene.load_named(client, "module-null-sink", arguments).expect("loaded");
    let arguments = "source=other.monitor latency_msec=50 sink_input_properties=media.role=music";
    let module = scene.load_named(client, "module-loopback", arguments).expect("loaded");
    (scene, client, module)
}

#[test]
fn a_loopback_is_a_sink_input_and_a_source_output_of_its_module() {
    let (mut scene, client, module) = looped();
    let [input] = &scene.inputs(client)[..] else { panic!("one plays") };
    assert_eq!((input.owner_module_index, input.client_index), (Some(module), None));
    assert_eq!((input.sink_index, &*input.name), (0, c"Loopback from Monitor of Null Output"));
    assert_eq!((input.sample_spec.sample_rate, input.sample_spec.channels), (44_100, 1));
    assert_eq!(
        (input.buffer_latency, input.driver.as_deref()),
        (50_000, Some(c"module-loopback.c"))
    );
    assert_eq!((input.muted, input.cvolume.channels().len()), (false, 1));
    let role = input.props.iter().find(|(key, _)| key.to_bytes() == b"media.role");
    assert_eq!(role.map(|(_, value)| &**value), Some(&b"music\0"[..]));
    let [output] = &scene.outputs(client)[..] else { panic!("one records") };
    assert_eq!((output.owner_module_index, output.client_index), (Some(module), None));
    assert_eq!((output.source_index, &*output.name), (2, c"Loopback to consort"));
    // Each is found by its index, beside those of programs.
    let stream = scene.stream(client);
    assert_ne!(stream.stream_index, input.index);
    let found: SinkInputInfo =
        scene.ask(client, &Command::GetSinkInputInfo(input.index)).expect("it is there");
    assert_eq!(found, *input);
    assert_eq!(scene.inputs(client).len(), 2);
    let used = scene.tell(client, &Command::GetSourceOutputInfo(output.index + 1));
    assert_eq!(used, Err(PulseError::NoEntity));
}

#[test]
fn programs_are_notified_of_the_streams_of_a_module() {
    let (mut scene, client, module) = looped();
    let watcher = scene.watcher();
    scene.stream_changes(watcher);
    scene.tell(client, &Command::UnloadModule(module)).expect("unloaded");
    let gone = |facility| (facility, EventType::Removed, 0);
    assert_eq!(
        scene.stream_changes(watcher),
        [Facility::SourceOutput, Facility::SinkInput].map(gone)
    );
    assert!(scene.inputs(client).is_empty() && scene.outputs(client).is_empty());
    scene.load_named(client, "module-loopback", "source=other.monitor").expect("loaded");
    let new = |facility| (facility, EventType::New, 1);
    assert_eq!(
        scene.stream_changes(watcher),
        [Facility::SourceOutput, Facility::SinkInput].map(new)
    );
}

#[test]
fn the_volume_of_a_stream_of_a_module_is_the_servers_of_it() {
    let (mut scene, client, module) = looped();
    let watcher = scene.watcher();
    scene.tell(client, &set(0, &[0x8000])).expect("set");
    scene.tell(client, &set(0, &[0x8000])).expect("set");
    let driver = LinkEnd::Plays(None);
    assert_eq!(scene.link_volumes(), [(module, driver, 0.125, false)], "once");
    assert_eq!(scene.stream_changes(watcher), [(Facility::SinkInput, EventType::Changed, 0)]);
    assert_eq!(scene.inputs(client)[0].cvolume, volumes(&[0x8000]));
    let mute = Command::SetSourceOutputMute(SetStreamMuteParams { index: 0, mute: true });
    scene.tell(client, &mute).expect("muted");
    assert_eq!(scene.link_volumes(), [(module, monitor("other"), 1.0, true)]);
    assert!(scene.outputs(client)[0].muted && !scene.inputs(client)[0].muted);
    assert_eq!(scene.tell(client, &set(0, &[1, 2])), Err(PulseError::Invalid));
    assert_eq!(scene.tell(client, &set(1, &[1])), Err(PulseError::NoEntity));
    scene.front_end.devices_mut().refuses = true;
    assert_eq!(scene.tell(client, &set(0, &[1])), Err(PulseError::AccessDenied));
    assert_eq!(scene.inputs(client)[0].cvolume, volumes(&[0x8000]), "it is as it was");
}

#[test]
fn a_stream_of_a_module_has_the_volume_of_its_loudest_channel() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    let master = "sink_name=front master=consort";
    scene.load_named(client, "module-remap-sink", master).expect("loaded");
    scene.tell(client, &set(0, &[0x4000, 0x8000])).expect("set");
    assert_eq!(scene.inputs(client)[0].cvolume, volumes(&[0x8000, 0x8000]));
}

#[test]
fn a_combined_sink_has_a_stream_on_each_of_its_sinks() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    for name in ["one", "two"] {
        let arguments = format!("sink_name={name} sink_properties=device.description={name}");
        scene.load_named(client, "module-null-sink", &arguments).expect("loaded");
    }
    let slaves = "slaves=one,two sink_name=all";
    let module = scene.load_named(client, "module-combine-sink", slaves).expect("loaded");
    let shown = |scene: &mut Scene| {
        let inputs = scene.inputs(client).into_iter();
        let shown = inputs.map(|input| (input.index, input.sink_index, input.name));
        shown.collect::<Vec<_>>()
    };
    let on = |name: &str| text(&format!("Simultaneous output on {name}"));
    assert_eq!(shown(&mut scene), [(0, 1, on("one")), (1, 2, on("two"))]);
    assert!(scene.outputs(client).is_empty(), "it records a sink of its own");
    scene.tell(client, &set(1, &[0x8000])).expect("set");
    scene.link_volumes();
    let watcher = scene.watcher();
    scene.front_end.devices_mut().remove("one");
    scene.front_end.link_has_ended(module, None, 0);
    scene.front_end.link_has_begun(module, Ok(()), 0);
    assert_eq!(shown(&mut scene), [(1, 2, on("two"))]);
    assert_eq!(scene.stream_changes(watcher), [(Facility::SinkInput, EventType::Removed, 0)]);
    assert_eq!(scene.link_volumes(), [(module, plays("two"), 0.125, false)], "as it was");
}

#[test]
fn a_loopback_that_follows_the_default_has_the_same_streams() {
    let (mut scene, client, module) = looped();
    scene.load_named(client, "module-null-sink", "sink_name=next").expect("loaded");
    scene.tell(client, &set(0, &[0x8000])).expect("set");
    scene.link_volumes();
    let watcher = scene.watcher();
    scene.tell(client, &Command::SetDefaultSink(text("next"))).expect("set");
    scene.front_end.link_has_begun(module, Ok(()), 0);
    assert_eq!(scene.stream_changes(watcher), [(Facility::SinkInput, EventType::Changed, 0)]);
    let [input] = &scene.inputs(client)[..] else { panic!("one plays") };
    assert_eq!((input.index, input.sink_index), (0, 2));
    assert_eq!(scene.link_volumes(), [(module, plays("next"), 0.125, false)]);
}

#[test]
fn a_module_has_the_streams_that_pulseaudio_shows() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    scene.front_end.devices_mut().devices[0].format.captured = 1;
    let mut streams_of = |name: &str, arguments: &str| {
        let module = scene.load_named(client, name, arguments).expect(name);
        let inputs = scene.inputs(client).into_iter();
        let inputs = inputs.map(|of| (of.name, of.sink_index, of.sample_spec.sample_rate));
        let outputs = scene.outputs(client).into_iter();
        let outputs = outputs.map(|of| (of.name, of.source_index, of.sample_spec.sample_rate));
        let streams: (Vec<_>, Vec<_>) = (inputs.collect(), outputs.collect());
        scene.tell(client, &Command::UnloadModule(module)).expect("unloaded");
        streams
    };
    let one = |name: &str, index, rate_hz| vec![(text(name), index, rate_hz)];
    assert_eq!(
        streams_of("module-remap-source", "source_name=left master=consort.monitor"),
        (vec![], one("Remapped Stream", 0, 48_000))
    );
    assert_eq!(
        streams_of("module-ladspa-sink", "plugin=amp label=amp_stereo rate=44100"),
        (one("LADSPA Stream", 0, 44_100), vec![])
    );
    assert_eq!(
        streams_of("module-echo-cancel", ""),
        (one("Echo-Cancel Sink Stream", 0, 32_000), one("Echo-Cancel Source Stream", 1, 48_000))
    );
    // Those are seen at the other end.
    assert_eq!(streams_of("module-pipe-sink", ""), (vec![], vec![]));
    assert_eq!(streams_of("module-tunnel-sink", "server=unix:/x"), (vec![], vec![]));
}

fn to(device_name: &str) -> MoveStreamParams {
    MoveStreamParams { index: Some(0), device_index: None, device_name: Some(text(device_name)) }
}

#[test]
fn a_loopback_goes_on_where_its_streams_are_moved() {
    let (mut scene, client, module) = looped();
    scene.load_named(client, "module-null-sink", "sink_name=next").expect("loaded");
    let watcher = scene.watcher();
    let began = scene.front_end.devices_mut().started.len();
    assert_eq!(scene.tell(client, &Command::MoveSinkInput(to("consort"))), Ok(()), "it is there");
    assert_eq!(scene.front_end.devices_mut().started.len(), began);
    scene.tell(client, &Command::MoveSinkInput(to("next"))).expect("moved");
    assert_eq!(scene.loopback(module).to[0].0.as_deref(), Some("next"));
    scene.front_end.link_has_begun(module, Ok(()), 0);
    assert_eq!(scene.stream_changes(watcher), [(Facility::SinkInput, EventType::Changed, 0)]);
    let [input] = &scene.inputs(client)[..] else { panic!("one plays") };
    assert_eq!((input.index, input.sink_index), (0, 2));
    scene.tell(client, &Command::MoveSourceOutput(to("consort.monitor"))).expect("moved");
    let loopback = scene.loopback(module);
    assert_eq!(loopback.from, Heard { device: None, captures: false });
    assert_eq!((loopback.from_map.channels(), loopback.to[0].0.as_deref()), (2, Some("next")));
    let refused = scene.tell(client, &Command::MoveSinkInput(to("consort")));
    assert_eq!(refused, Err(PulseError::Invalid), "it would be played into itself");
}

#[test]
fn a_loopback_that_was_moved_follows_no_default_until_its_device_goes() {
    let (mut scene, client, module) = looped();
    for name in ["chosen", "next"] {
        let arguments = format!("sink_name={name}");
        scene.load_named(client, "module-null-sink", &arguments).expect("loaded");
    }
    scene.tell(client, &Command::MoveSinkInput(to("chosen"))).expect("moved");
    scene.front_end.link_has_begun(module, Ok(()), 0);
    scene.tell(client, &Command::SetDefaultSink(text("next"))).expect("set");
    let plays_on = |scene: &mut Scene| scene.loopback(module).to[0].0.clone();
    assert_eq!(plays_on(&mut scene).as_deref(), Some("chosen"));
    scene.front_end.devices_mut().remove("chosen");
    scene.front_end.link_has_ended(module, None, 0);
    assert_eq!(plays_on(&mut scene).as_deref(), Some("next"));
    scene.front_end.link_has_begun(module, Ok(()), 0);
    scene.tell(client, &Command::SetDefaultSink(text("consort"))).expect("set");
    assert_eq!(plays_on(&mut scene), None, "it follows again");
}

#[test]
fn a_stream_of_another_module_or_that_must_not_be_moved_stays() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    for name in ["other", "third"] {
        let arguments = format!("sink_name={name}");
        scene.load_named(client, "module-null-sink", &arguments).expect("loaded");
    }
    let invalid = Err(PulseError::Invalid);
    for (name, arguments) in [
        ("module-remap-sink", "master=consort"),
        ("module-loopback", "source=other.monitor sink=consort sink_dont_move=yes"),
    ] {
        let module = scene.load_named(client, name, arguments).expect("loaded");
        let index = Some(scene.inputs(client)[0].index);
        let there = MoveStreamParams { index, ..to("consort") };
        assert_eq!(scene.tell(client, &Command::MoveSinkInput(there)), Ok(()), "{name}");
        let elsewhere = MoveStreamParams { index, ..to("third") };
        assert_eq!(scene.tell(client, &Command::MoveSinkInput(elsewhere)), invalid, "{name}");
        scene.tell(client, &Command::UnloadModule(module)).expect("unloaded");
    }
}

#[test]
fn a_module_ends_with_each_of_its_streams() {
    let (mut scene, client, _) = looped();
    scene.tell(client, &Command::KillSinkInput(0)).expect("ended");
    assert_eq!(scene.module_names(client), ["module-null-sink"]);
    assert!(scene.links().is_empty() && scene.outputs(client).is_empty());
}
