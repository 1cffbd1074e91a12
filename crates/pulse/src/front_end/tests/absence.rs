//! The server goes, and another one comes: sinks, streams and requests wait for it.

use client::stream::{ChannelGains, Gain};
use pulseaudio::protocol::{
    ChannelVolume, LoadModuleParams, LookupReply, PlaybackLatency, SetDeviceVolumeParams, SinkInfo,
    SinkState, StreamSuspendedParams, SubscriptionMask,
};

use super::*;
use crate::output::{HeardVolume, Refusal};

const S: u64 = 1_000_000_000;
pub(super) const GRACE: u64 = 5 * S;

impl Scene {
    pub(super) fn server_goes(&mut self) {
        self.front_end.begin_streams(self.now_ns);
        self.front_end.devices_mut().is_away = true;
        self.front_end.server_gone(GRACE, self.now_ns);
    }

    pub(super) fn server_comes(&mut self) {
        self.front_end.devices_mut().is_away = false;
        self.front_end.server_found(self.now_ns);
    }

    pub(super) fn wait(&mut self, ns: u64) {
        self.now_ns += ns;
        self.front_end.update(self.now_ns);
    }

    fn states(&mut self, client: u32) -> Vec<SinkState> {
        let sinks: Vec<SinkInfo> = self.ask(client, &Command::GetSinkInfoList).expect("a list");
        sinks.into_iter().map(|sink| sink.state).collect()
    }

    /// A stream that plays.
    fn playing(&mut self, client: u32) -> CreatePlaybackStreamReply {
        let stream = self.stream(client);
        let bytes = vec![1; stream.buffer_attr.pre_buffering as usize];
        let samples = crate::wire::samples(stream.channel, &bytes);
        self.send_bytes(client, &samples);
        assert_eq!(self.states(client)[0], SinkState::Running);
        self.events(client);
        stream
    }
}

fn suspended(stream: &CreatePlaybackStreamReply, suspended: bool) -> Command {
    let of = StreamSuspendedParams { stream_index: stream.channel, suspended };
    Command::PlaybackStreamSuspended(of)
}

#[test]
fn a_stream_sleeps_without_a_server_and_goes_on_with_the_next_one() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    let stream = scene.playing(client);
    scene.server_goes();
    assert_eq!(scene.events(client), [suspended(&stream, true)]);
    assert_eq!(scene.states(client), [SinkState::Suspended]);
    let latency = Command::GetPlaybackLatency(pulseaudio::protocol::LatencyParams {
        channel: stream.channel,
        now: std::time::UNIX_EPOCH,
    });
    let before: PlaybackLatency = scene.ask(client, &latency).expect("times");
    assert_eq!(scene.front_end.deadline(scene.now_ns), Some(GRACE), "it sleeps");
    scene.wait(GRACE - 1);
    let after: PlaybackLatency = scene.ask(client, &latency).expect("times");
    assert_eq!(after.read_offset, before.read_offset);
    scene.server_comes();
    assert_eq!(scene.events(client), [suspended(&stream, false)]);
    assert_eq!(scene.front_end.devices_mut().returned, [1], "as it was");
    assert_eq!(scene.front_end.devices_mut().opened.len(), 1, "not as another one");
    assert_eq!(scene.states(client), [SinkState::Running]);
}

#[test]
fn streams_end_with_their_sink_after_the_grace_period() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    let stream = scene.playing(client);
    let recording: pulseaudio::protocol::CreateRecordStreamReply =
        scene.ask(client, &Command::CreateRecordStream(recording::asked())).expect("a recording");
    scene.tell(client, &Command::Subscribe(SubscriptionMask::SINK)).expect("subscribed");
    scene.server_goes();
    assert_eq!(scene.front_end.deadline(0), Some(GRACE));
    scene.events(client);
    scene.wait(GRACE);
    let events = scene.events(client);
    for event in [
        Command::PlaybackStreamKilled(stream.channel),
        Command::RecordStreamKilled(recording.channel),
        Command::SubscribeEvent(pulseaudio::protocol::SubscriptionEvent {
            event_facility: pulseaudio::protocol::SubscriptionEventFacility::Sink,
            event_type: pulseaudio::protocol::SubscriptionEventType::Removed,
            index: Some(0),
        }),
    ] {
        assert!(events.contains(&event), "{event:?} in {events:?}");
    }
    assert_eq!(scene.states(client), []);
    let refused = scene.tell(client, &Command::CreatePlaybackStream(params()));
    assert_eq!(refused, Err(PulseError::NoEntity));
    assert_eq!(scene.front_end.deadline(scene.now_ns), None);
}

#[test]
fn a_stream_that_the_next_server_cannot_take_as_it_is_is_converted_again() {
    for (change, refusal) in [(true, None), (false, Some(Refusal::Never))] {
        let mut scene = Scene::new();
        let client = scene.admitted();
        let stream = scene.playing(client);
        scene.server_goes();
        scene.events(client);
        let devices = scene.front_end.devices_mut();
        devices.takes_nothing = refusal;
        if change {
            devices.devices[0].format.rate_hz = 44_100;
        }
        scene.server_comes();
        assert_eq!(scene.front_end.devices_mut().opened.len(), 2, "another stream of the server");
        assert!(scene.front_end.devices_mut().returned.is_empty());
        let events = scene.events(client);
        let is_moved = |event: &Command| {
            matches!(event, Command::PlaybackStreamMoved(moved)
                if moved.stream_index == stream.channel && moved.device_index == 0)
        };
        assert!(events.iter().any(is_moved), "{events:?}");
        assert!(!events.contains(&Command::PlaybackStreamKilled(stream.channel)));
    }
}

#[test]
fn a_server_that_cannot_take_a_stream_yet_is_asked_again() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    let stream = scene.playing(client);
    scene.server_goes();
    scene.front_end.devices_mut().takes_nothing = Some(Refusal::NotNow);
    scene.server_comes();
    let due_ns = scene.front_end.deadline(0).expect("it is asked again");
    assert!(due_ns < S / 10);
    scene.front_end.devices_mut().takes_nothing = None;
    scene.wait(due_ns);
    assert_eq!(scene.front_end.devices_mut().returned, [1]);
    scene.front_end.devices_mut().takes_nothing = Some(Refusal::NotNow);
    scene.server_goes();
    scene.server_comes();
    scene.events(client);
    scene.wait(GRACE);
    let events = scene.events(client);
    assert!(events.contains(&Command::PlaybackStreamKilled(stream.channel)), "{events:?}");
}

#[test]
fn a_request_that_needs_a_server_is_answered_by_the_next_one() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    scene.server_goes();
    assert!(scene.send(client, &Command::CreatePlaybackStream(params())).is_empty(), "it waits");
    let mut volume = ChannelVolume::empty();
    volume.push(pulseaudio::protocol::Volume::from_u32_clamped(0x8000));
    let louder = Command::SetSinkVolume(SetDeviceVolumeParams {
        device_index: Some(0),
        device_name: None,
        volume,
    });
    assert!(scene.send(client, &louder).is_empty());
    assert!(scene.ask::<SinkInfo>(client, &sink_info()).is_ok(), "others are answered");
    scene.server_comes();
    let sent = scene.sent(client);
    let answers: Vec<_> = sent.iter().filter(|packet| is_answer(packet)).collect();
    let created =
        read_reply_message::<CreatePlaybackStreamReply>(&mut &answers[0][..], MAX_VERSION);
    assert!(answered(created).is_ok(), "in their order");
    assert!(read_ack_message(&mut &answers[1][..]).is_ok());
    assert_eq!((answers.len(), scene.front_end.devices_mut().opened.len()), (2, 1));
    assert_ne!(scene.front_end.devices_mut().devices[0].volume, HeardVolume::default());
}

fn sink_info() -> Command {
    Command::GetSinkInfo(pulseaudio::protocol::GetSinkInfo { index: Some(0), name: None })
}

#[test]
fn a_program_has_as_many_requests_wait_as_there_is_room_for() {
    let mut scene = Scene::new();
    let [client, other] = [scene.admitted_of(2), scene.admitted_of(3)];
    scene.server_goes();
    let create = Command::CreatePlaybackStream(params());
    let refused = (0..100).filter(|_| !scene.send(client, &create).is_empty()).count();
    assert_eq!(refused, 100 - 64);
    assert!(scene.send(other, &create).is_empty(), "there is room for others");
    scene.front_end.disconnected(client, scene.now_ns);
    scene.server_comes();
    assert_eq!(scene.front_end.devices_mut().opened.len(), 1, "nobody asks any more");
    assert_eq!(scene.sent(other).len(), 1);
    // No server comes.
    scene.server_goes();
    scene.events(other);
    assert!(scene.send(other, &create).is_empty());
    scene.wait(GRACE);
    let sent = scene.sent(other);
    let answer = sent.iter().find(|packet| is_answer(packet)).expect("an answer");
    let refused = answered(read_ack_message(&mut &answer[..]).map(|tag| (tag, ())));
    assert_eq!(refused, Err(PulseError::NoEntity));
}

#[test]
fn the_next_server_gets_the_volumes_and_the_devices_of_modules() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    let arguments = Some(text("sink_name=other rate=44100"));
    let load = LoadModuleParams { name: text("module-null-sink"), arguments };
    let module: LookupReply = scene.ask(client, &Command::LoadModule(load)).expect("loaded");
    let quiet = [0.5, 0.25].map(|factor| Gain::new(factor).expect("a gain"));
    let quiet = ChannelGains::of(&quiet).expect("gains");
    for device in [None, Some("other")] {
        use crate::output::Devices;
        let set = scene.front_end.devices_mut().set_volume(device, Some(quiet), Some(true));
        assert!(set.is_ok());
    }
    scene.front_end.devices_changed(0);
    let sinks: Vec<SinkInfo> = scene.ask(client, &Command::GetSinkInfoList).expect("a list");
    let stream = PlaybackStreamParams { sink_index: Some(1), ..params() };
    let _: CreatePlaybackStreamReply =
        scene.ask(client, &Command::CreatePlaybackStream(stream)).expect("a stream");
    scene.server_goes();
    let devices = scene.front_end.devices_mut();
    devices.devices.truncate(1);
    devices.devices[0].volume = HeardVolume::default();
    devices.devices[0].is_untouched = true;
    scene.server_comes();
    let idle = |mut sinks: Vec<SinkInfo>| {
        sinks.iter_mut().for_each(|sink| sink.state = SinkState::Idle);
        sinks
    };
    let again: Vec<SinkInfo> = scene.ask(client, &Command::GetSinkInfoList).expect("a list");
    assert_eq!(idle(again), idle(sinks), "indices and all");
    let devices = &scene.front_end.devices_mut().devices;
    let volumes: Vec<HeardVolume> = devices.iter().map(|device| device.volume).collect();
    assert_eq!(volumes, [HeardVolume { gains: quiet, muted: true, is_switched_off: false }; 2]);
    assert_eq!(scene.front_end.devices_mut().returned, [1]);
    assert_eq!(scene.tell(client, &Command::UnloadModule(module.0)), Ok(()));
    // A volume that somebody has set on the next server stays.
    scene.server_goes();
    let louder = ChannelGains::all(Gain::new(0.75).expect("a gain"));
    let louder = HeardVolume { gains: louder, muted: false, is_switched_off: false };
    scene.front_end.devices_mut().devices[0].volume = louder;
    scene.front_end.devices_mut().devices[0].is_untouched = false;
    scene.server_comes();
    assert_eq!(scene.front_end.devices_mut().devices[0].volume, louder);
}

#[test]
fn a_sink_that_the_next_server_does_not_have_is_waited_for_and_its_streams_move_then() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    {
        use crate::output::{Devices, NewNullDevice};
        let new = NewNullDevice { name: "other".into(), channels: 2, rate_hz: None };
        assert_eq!(scene.front_end.devices_mut().add(new), Ok(()));
    }
    scene.front_end.devices_changed(0);
    let on_other = PlaybackStreamParams { sink_index: Some(1), ..params() };
    let stream: CreatePlaybackStreamReply =
        scene.ask(client, &Command::CreatePlaybackStream(on_other)).expect("a stream");
    scene.server_goes();
    scene.front_end.devices_mut().devices.truncate(1);
    scene.server_comes();
    assert_eq!(scene.states(client).len(), 2);
    scene.events(client);
    scene.wait(GRACE);
    let events = scene.events(client);
    let is_moved = |event: &Command| {
        matches!(event, Command::PlaybackStreamMoved(moved)
            if moved.stream_index == stream.channel && moved.device_index == 0)
    };
    assert!(events.iter().any(is_moved), "{events:?}");
    assert_eq!(scene.states(client).len(), 1);
}

/// A remapped sink of the sink `other`, of another program, and a null source.
fn with_links(scene: &mut Scene, client: u32) -> u32 {
    {
        use crate::output::{Devices, NewNullDevice};
        let new = NewNullDevice { name: "other".into(), channels: 2, rate_hz: Some(44_100) };
        assert_eq!(scene.front_end.devices_mut().add(new), Ok(()));
    }
    scene.front_end.devices_changed(0);
    let load = |name, arguments| {
        let arguments = Some(text(arguments));
        Command::LoadModule(LoadModuleParams { name: text(name), arguments })
    };
    let source = load("module-null-source", "source_name=silent channels=1");
    let _: LookupReply = scene.ask(client, &source).expect("loaded");
    scene.send(client, &load("module-remap-sink", "master=other sink_name=remapped"));
    let link = *scene.front_end.devices_mut().links.keys().next().expect("a process");
    scene.front_end.link_has_begun(link, Ok(()), 0);
    scene.sent(client);
    link
}

/// The next server has none but these devices.
fn only(scene: &mut Scene, names: &[Option<&str>]) {
    let devices = &mut scene.front_end.devices_mut().devices;
    devices.retain(|device| names.contains(&device.name.as_deref()));
}

#[test]
fn modules_have_their_devices_on_the_next_server_and_connect_them_once_all_are_there() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    let link = with_links(&mut scene, client);
    let before = scene.front_end.devices_mut().links.clone();
    let modules = Command::GetModuleInfoList;
    let loaded: Vec<pulseaudio::protocol::ModuleInfo> =
        scene.ask(client, &modules).expect("a list");
    scene.server_goes();
    assert!(scene.front_end.devices_mut().links.is_empty(), "nobody listens to the process");
    scene.front_end.link_has_begun(link, Err("its server has gone".into()), 0);
    only(&mut scene, &[None]);
    scene.server_comes();
    let names: Vec<_> =
        scene.front_end.devices_mut().devices.iter().map(|device| device.name.clone()).collect();
    assert_eq!(names, [None, Some("silent".into()), Some("remapped".into())]);
    let rates: Vec<u32> =
        scene.front_end.devices_mut().devices.iter().map(|device| device.format.rate_hz).collect();
    assert_eq!(rates, [48_000, 48_000, 44_100]);
    assert!(scene.front_end.devices_mut().links.is_empty(), "its master is not there");
    {
        use crate::output::{Devices, NewNullDevice};
        let new = NewNullDevice { name: "other".into(), channels: 2, rate_hz: Some(44_100) };
        assert_eq!(scene.front_end.devices_mut().add(new), Ok(()));
    }
    scene.front_end.devices_changed(scene.now_ns);
    assert_eq!(scene.front_end.devices_mut().links, before);
    let again: Vec<pulseaudio::protocol::ModuleInfo> = scene.ask(client, &modules).expect("a list");
    assert_eq!(again, loaded);
    // It passes frames on: that is no answer to anybody.
    scene.front_end.link_has_begun(link, Ok(()), 0);
    assert!(scene.sent(client).is_empty());
}

#[test]
fn a_module_whose_devices_do_not_come_is_unloaded_after_the_grace_period() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    with_links(&mut scene, client);
    scene.tell(client, &Command::Subscribe(SubscriptionMask::MODULE)).expect("subscribed");
    scene.server_goes();
    only(&mut scene, &[None]);
    scene.server_comes();
    scene.wait(GRACE);
    let removed = |events: &[Command]| {
        let is_it = |event: &&Command| {
            matches!(event, Command::SubscribeEvent(event)
                if event.event_type == pulseaudio::protocol::SubscriptionEventType::Removed)
        };
        events.iter().filter(is_it).count()
    };
    assert_eq!(removed(&scene.events(client)), 1);
    let reported = std::mem::take(&mut scene.front_end.devices_mut().reported);
    assert_eq!(
        reported,
        ["unloads 'module-remap-sink master=other sink_name=remapped': the next server does not \
          have what it needs"]
    );
    only(&mut scene, &[None, Some("silent")]);
    scene.front_end.devices_changed(scene.now_ns);
    let sinks: Vec<SinkInfo> = scene.ask(client, &Command::GetSinkInfoList).expect("a list");
    assert_eq!(sinks.len(), 1, "its sink has gone with it");
}

#[test]
fn a_module_goes_on_with_the_devices_that_came_if_it_can() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    with_links(&mut scene, client);
    scene.tell(client, &Command::SetDefaultSink(text("other"))).expect("set");
    for (name, arguments) in [
        ("module-combine-sink", "sink_name=all slaves=other,consort"),
        ("module-loopback", "source=silent"),
        ("module-loopback", "source=silent sink=other"),
    ] {
        let arguments = Some(text(arguments));
        let load = Command::LoadModule(LoadModuleParams { name: text(name), arguments });
        scene.send(client, &load);
        let link = *scene.front_end.devices_mut().links.keys().next_back().expect("a process");
        scene.front_end.link_has_begun(link, Ok(()), 0);
    }
    scene.server_goes();
    only(&mut scene, &[None]);
    scene.server_comes();
    assert!(scene.front_end.devices_mut().links.is_empty(), "there may be more to come");
    scene.wait(GRACE);
    let links = scene.front_end.devices_mut().links.values();
    let to: Vec<Vec<Option<String>>> = links
        .map(|link| match link {
            crate::output::NewLink::Loopback(loopback) => {
                loopback.to.iter().map(|(device, _)| device.clone()).collect()
            }
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(to, [[None], [None]]);
}

#[test]
fn a_module_that_is_loaded_without_a_server_connects_devices_of_the_next_one() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    scene.server_goes();
    let name = text("module-remap-sink");
    let load = Command::LoadModule(LoadModuleParams { name, arguments: None });
    assert!(scene.send(client, &load).is_empty());
    assert!(scene.front_end.devices_mut().links.is_empty());
    scene.server_comes();
    let link = *scene.front_end.devices_mut().links.keys().next().expect("a process");
    // That server goes as well before the process has begun.
    scene.server_goes();
    only(&mut scene, &[None]);
    assert!(scene.front_end.devices_mut().links.is_empty());
    scene.server_comes();
    assert!(scene.front_end.devices_mut().links.contains_key(&link), "it begins again");
    scene.front_end.link_has_begun(link, Ok(()), 0);
    let answer = scene.sent(client);
    let answer = answer.iter().find(|packet| is_answer(packet)).expect("an answer");
    let loaded = answered(read_reply_message::<LookupReply>(&mut &answer[..], MAX_VERSION));
    assert_eq!(loaded, Ok(LookupReply(link)));
}

#[test]
fn a_sink_that_comes_late_gets_its_volume() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    with_links(&mut scene, client);
    let mut volume = ChannelVolume::empty();
    volume.push(pulseaudio::protocol::Volume::from_u32_clamped(0x8000));
    let set =
        SetDeviceVolumeParams { device_index: None, device_name: Some(text("other")), volume };
    scene.tell(client, &Command::SetSinkVolume(set)).expect("set");
    let volume = |scene: &mut Scene| {
        let devices = &scene.front_end.devices_mut().devices;
        let other = devices.iter().find(|device| device.name.as_deref() == Some("other"));
        other.expect("a device").volume
    };
    let before = volume(&mut scene);
    assert_ne!(before, HeardVolume::default());
    scene.server_goes();
    only(&mut scene, &[None]);
    scene.server_comes();
    {
        use crate::output::{Devices, NewNullDevice};
        let new = NewNullDevice { name: "other".into(), channels: 2, rate_hz: Some(44_100) };
        assert_eq!(scene.front_end.devices_mut().add(new), Ok(()));
    }
    scene.front_end.devices_changed(scene.now_ns);
    assert_eq!(volume(&mut scene), before);
}

#[test]
fn a_stream_that_the_server_has_ended_is_opened_again_and_one_that_wishes_too_much_is_not() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    let stream = scene.playing(client);
    let end = |scene: &mut Scene| {
        let input = scene.front_end.inputs.values_mut().next().expect("a stream");
        input.playback.output_mut().has_ended = true;
        scene.wait(1);
    };
    end(&mut scene);
    assert_eq!(scene.front_end.devices_mut().opened.len(), 2);
    let killed = Command::PlaybackStreamKilled(stream.channel);
    assert!(!scene.events(client).contains(&killed));
    // Each is a wish.
    for cork in (0..20_000).map(|number| number % 2 == 0) {
        let asked = pulseaudio::protocol::CorkStreamParams { channel: stream.channel, cork };
        scene.send(client, &Command::CorkPlaybackStream(asked));
    }
    scene.wait(1);
    assert!(scene.events(client).contains(&killed));
    assert_eq!(scene.front_end.devices_mut().opened.len(), 2);
}
