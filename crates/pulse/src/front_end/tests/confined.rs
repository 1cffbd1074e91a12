//! Confined programs: what is theirs works, and nothing else, unless a rule allows it.

use confinement::Confinement;
use policy::Rules;
use pulseaudio::protocol::{
    ChannelVolume, CreateRecordStreamReply, LoadModuleParams, LookupReply, MoveStreamParams,
    RecordStreamParams, SampleInfo, SetDeviceMuteParams, SetDeviceVolumeParams,
    SetStreamMuteParams, SetStreamVolumeParams, SinkInputInfo, SubscriptionMask, Volume,
};

use super::recording::asked;
use super::samples::{play, uploaded};
use super::*;
use crate::front_end::Confined;

const CGROUP: &str = "/user.slice/app-flatpak-a-7.scope";

impl Scene {
    fn confined(&mut self) -> u32 {
        let client = self.admitted_of(3);
        let cgroup = Some(CGROUP.to_owned());
        let confined = Confined { why: Confinement::Mounts, cgroup };
        self.front_end.examined(client, Some(&confined), 0);
        client
    }

    /// Returns a program of which nothing is known.
    fn unexamined(&mut self) -> u32 {
        let origin = Origin { account: 3, way: Way::OwnUser };
        let client = self.front_end.connected(origin).expect("room");
        let auth = Command::Auth(AuthParams { version: 35, ..AuthParams::default() });
        self.ask::<AuthReply>(client, &auth).expect("let in");
        client
    }

    fn allowing(words: &str) -> Self {
        let mut scene = Self::new();
        let (rules, complaints) = Rules::parse(&format!("allow={words} cgroup=*flatpak-a-*"));
        assert_eq!(complaints, []);
        scene.front_end.obey(rules);
        scene.front_end.devices_mut().devices[0].format.captured = 1;
        scene
    }
}

fn half() -> ChannelVolume {
    let mut volume = ChannelVolume::empty();
    (0..2).for_each(|_| volume.push(Volume::from_u32_clamped(0x8000)));
    volume
}

/// Requests about a stream that plays.
fn about(stream: u32) -> Vec<Command> {
    vec![
        Command::SetSinkInputVolume(SetStreamVolumeParams { index: stream, volume: half() }),
        Command::SetSinkInputMute(SetStreamMuteParams { index: stream, mute: true }),
        Command::MoveSinkInput(MoveStreamParams {
            index: Some(stream),
            device_index: Some(0),
            device_name: None,
        }),
        Command::KillSinkInput(stream),
    ]
}

/// Requests about what all programs share.
fn about_devices() -> Vec<Command> {
    let volume =
        |volume| SetDeviceVolumeParams { device_index: Some(0), device_name: None, volume };
    let mute = || SetDeviceMuteParams { device_index: Some(0), device_name: None, mute: false };
    vec![
        Command::SetSinkVolume(volume(half())),
        Command::SetSinkMute(mute()),
        Command::SetSourceVolume(volume(half())),
        Command::SetSourceMute(mute()),
        Command::SetDefaultSink(c"consort".into()),
        Command::SetDefaultSource(c"consort.monitor".into()),
    ]
}

fn module() -> Command {
    Command::LoadModule(LoadModuleParams {
        name: c"module-null-sink".into(),
        arguments: Some(c"sink_name=a".into()),
    })
}

/// A recording of the monitor, or of what is captured.
fn recording_of(source: u32) -> RecordStreamParams {
    RecordStreamParams { source_index: Some(source), ..asked() }
}

const DENIED: Result<(), PulseError> = Err(PulseError::AccessDenied);

#[test]
fn a_confined_program_changes_only_what_is_its_own() {
    let mut scene = Scene::new();
    let (free, boxed) = (scene.admitted(), scene.confined());
    let others = scene.stream(free).stream_index;
    let requests =
        [about(others), about_devices(), vec![module(), Command::KillClient(free)]].concat();
    for request in requests {
        assert_eq!(scene.tell(boxed, &request), DENIED, "{request:?}");
    }
    let own = scene.stream(boxed).stream_index;
    for request in about(own) {
        assert_eq!(scene.tell(boxed, &request), Ok(()), "{request:?}");
    }
    assert!(scene.front_end.inputs.get(others).is_some(), "the other one plays on");
    // One that is not confined may do the same.
    for request in about_devices().into_iter().chain(about(others)) {
        assert_eq!(scene.tell(free, &request), Ok(()), "{request:?}");
    }
}

#[test]
fn a_request_waits_until_it_is_known_what_its_program_may_do() {
    let boxed = Confined { why: Confinement::Mounts, cgroup: None };
    for (confined, expected) in [(Some(&boxed), DENIED), (None, Ok(()))] {
        let mut scene = Scene::new();
        let other = scene.admitted();
        let client = scene.unexamined();
        assert_eq!(scene.send(client, &Command::KillClient(other)), [[0; 0]; 0]);
        assert!(scene.front_end.has_unanswered_request(client));
        scene.front_end.examined(client, confined, 0);
        let sent = scene.sent(client);
        let [answer] = &sent[..] else { panic!("{sent:?}") };
        assert_eq!(answered(read_ack_message(&mut &answer[..]).map(|tag| (tag, ()))), expected);
        assert!(!scene.front_end.has_unanswered_request(client));
    }
}

#[test]
fn a_program_that_is_found_to_be_confined_is_announced() {
    for (confined, events) in
        [(Some(Confined { why: Confinement::Mounts, cgroup: None }), 1), (None, 0)]
    {
        let mut scene = Scene::new();
        let (subscriber, client) = (scene.admitted(), scene.unexamined());
        let mask = SubscriptionMask::CLIENT;
        scene.tell(subscriber, &Command::Subscribe(mask)).expect("subscribed");
        scene.front_end.examined(client, confined.as_ref(), 0);
        assert_eq!(scene.events(subscriber).len(), events, "{confined:?}");
    }
}

#[test]
fn a_program_of_which_nothing_is_known_may_play() {
    let mut scene = Scene::new();
    let client = scene.unexamined();
    let name = Command::SetClientName(Props::new());
    scene.ask::<SetClientNameReply>(client, &name).expect("named");
    let channel = scene.stream(client).channel;
    assert_eq!(scene.tell(client, &Command::DeletePlaybackStream(channel)), Ok(()));
    assert!(!scene.front_end.has_rights(client));
}

#[test]
fn a_confined_program_records_nothing_until_a_rule_allows_it() {
    let (monitor, capture) = (0, 1);
    for (words, hears) in
        [("patch", [false, false]), ("record", [true, false]), ("capture", [false, true])]
    {
        let mut scene = Scene::allowing(words);
        let boxed = scene.confined();
        for (source, hears) in [monitor, capture].into_iter().zip(hears) {
            let asked = Command::CreateRecordStream(recording_of(source));
            let answered = scene.ask::<CreateRecordStreamReply>(boxed, &asked);
            let expected = if hears { Ok(()) } else { DENIED };
            assert_eq!(answered.map(drop), expected, "{words}: source {source}");
        }
    }
}

#[test]
fn nobody_moves_a_confined_programs_recording_to_what_it_may_not_hear() {
    let mut scene = Scene::allowing("capture");
    let (free, boxed) = (scene.admitted(), scene.confined());
    let asked = Command::CreateRecordStream(recording_of(1));
    let own = scene.ask::<CreateRecordStreamReply>(boxed, &asked);
    let index = Some(own.expect("a stream").stream_index);
    let request = Command::MoveSourceOutput(MoveStreamParams {
        index,
        device_index: Some(0),
        device_name: None,
    });
    for client in [boxed, free] {
        assert_eq!(scene.tell(client, &request), DENIED);
    }
}

#[test]
fn a_rule_gives_a_confined_program_what_it_names() {
    let mut scene = Scene::allowing("control");
    let boxed = scene.confined();
    for request in about_devices() {
        assert_eq!(scene.tell(boxed, &request), Ok(()), "{request:?}");
    }
    assert_eq!(scene.tell(boxed, &module()), DENIED);
    let mut scene = Scene::allowing("everything");
    let boxed = scene.confined();
    let loaded = scene.ask::<LookupReply>(boxed, &module());
    assert!(loaded.is_ok(), "{loaded:?}");
}

#[test]
fn who_may_change_streams_of_others_neither_unloads_nor_moves_a_module_by_that() {
    let mut scene = Scene::allowing("patch");
    let (free, boxed) = (scene.admitted(), scene.confined());
    scene.load_named(free, "module-null-sink", "sink_name=other").expect("loaded");
    scene.load_named(free, "module-loopback", "source=other.monitor").expect("loaded");
    let mute = Command::SetSinkInputMute(SetStreamMuteParams { index: 0, mute: true });
    assert_eq!(scene.tell(boxed, &mute), Ok(()));
    let to = MoveStreamParams { index: Some(0), device_index: Some(1), device_name: None };
    for request in [
        Command::KillSinkInput(0),
        Command::KillSourceOutput(0),
        Command::MoveSinkInput(to.clone()),
        // What is captured, which it may not hear.
        Command::MoveSourceOutput(to),
    ] {
        assert_eq!(scene.tell(boxed, &request), DENIED, "{request:?}");
    }
    assert_eq!(scene.tell(free, &Command::KillSinkInput(0)), Ok(()));
}

#[test]
fn what_a_confined_program_changes_of_its_streams_is_not_remembered() {
    let mut scene = Scene::new();
    let (free, boxed) = (scene.admitted(), scene.confined());
    for (client, is_remembered) in [(boxed, false), (free, true)] {
        let own = scene.stream(client).stream_index;
        scene.front_end.take_memory_has_changed();
        let volume = SetStreamVolumeParams { index: own, volume: half() };
        assert_eq!(scene.tell(client, &Command::SetSinkInputVolume(volume)), Ok(()));
        let later = scene.stream(client).stream_index;
        let info: SinkInputInfo =
            scene.ask(client, &Command::GetSinkInputInfo(later)).expect("a stream");
        assert_eq!(info.cvolume.channels() == half().channels(), is_remembered);
        assert_eq!(scene.front_end.take_memory_has_changed(), is_remembered);
    }
}

/// How many samples there are.
fn sample_count(scene: &mut Scene, client: u32) -> usize {
    scene.ask::<Vec<SampleInfo>>(client, &Command::GetSampleInfoList).expect("a list").len()
}

#[test]
fn a_confined_programs_samples_are_heard_by_no_other_and_end_with_it() {
    let mut scene = Scene::new();
    let (free, boxed) = (scene.admitted(), scene.confined());
    uploaded(&mut scene, boxed);
    uploaded(&mut scene, boxed);
    assert_eq!(sample_count(&mut scene, free), 1, "it may replace its own");
    let played = scene.ask::<LookupReply>(boxed, &play("bell"));
    assert!(played.is_ok(), "{played:?}");
    let played = scene.ask::<LookupReply>(free, &play("bell"));
    assert_eq!(played, Err(PulseError::NoEntity), "what it may have chosen for others");
    uploaded(&mut scene, free);
    assert_eq!(sample_count(&mut scene, free), 2, "one for all programs");
    let second = scene.admitted_of(3);
    scene.front_end.disconnected(boxed, scene.now_ns);
    assert_eq!(sample_count(&mut scene, free), 2, "it has another connection");
    scene.front_end.disconnected(second, scene.now_ns);
    assert_eq!(sample_count(&mut scene, free), 1);
    let boxed = scene.confined();
    let played = scene.ask::<LookupReply>(boxed, &play("bell"));
    assert!(played.is_ok(), "what is for all is for it as well: {played:?}");
}

#[test]
fn a_confined_program_removes_only_its_own_samples() {
    let mut scene = Scene::new();
    let (free, boxed) = (scene.admitted(), scene.confined());
    let remove = Command::RemoveSample(text("bell"));
    assert_eq!(scene.tell(boxed, &remove), Err(PulseError::NoEntity));
    uploaded(&mut scene, free);
    assert_eq!(scene.tell(boxed, &remove), DENIED);
    uploaded(&mut scene, boxed);
    assert_eq!(scene.tell(boxed, &remove), Ok(()));
    assert_eq!((scene.tell(boxed, &remove), sample_count(&mut scene, free)), (DENIED, 1));
}
