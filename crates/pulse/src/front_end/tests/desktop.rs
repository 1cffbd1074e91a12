//! What is remembered and restored, and rules.

use std::ffi::CStr;

use policy::{DeviceEntry, Memory, Rules, Volumes};
use pulseaudio::protocol::stream::StreamFlags;
use pulseaudio::protocol::{
    ChannelVolume, CorkStreamParams, CreateRecordStreamReply, ExtensionParams, GenericStreamEvent,
    MoveStreamParams, RecordStreamParams, ServerInfo, SetDeviceVolumeParams, SetStreamMuteParams,
    SetStreamVolumeParams, SinkInfo, SinkInputInfo, SourceOutputInfo, SubscriptionMask, Volume,
};

use super::super::WHY_DEFAULT;
use super::*;
use crate::output::{Devices, NewNullDevice};

impl Scene {
    /// As if the front end had ended and begun again with what it has remembered.
    pub(super) fn again(mut self, rules: &str) -> Self {
        assert!(self.front_end.take_memory_has_changed());
        let memory = self.front_end.memory().to_text();
        let devices = std::mem::replace(self.front_end.devices_mut(), Silence::stereo());
        Self::remembering(devices, &memory, rules)
    }

    pub(super) fn remembering(devices: Silence, memory: &str, rules: &str) -> Self {
        let memory = Memory::parse(memory).expect("a memory");
        let (rules, complaints) = Rules::parse(rules);
        assert_eq!(complaints, []);
        let front_end = FrontEnd::new(devices, Machine::default());
        Self { front_end: front_end.remembering(memory, rules), now_ns: 0 }
    }

    pub(super) fn ruled(rules: &str) -> Self {
        Self::remembering(Silence::stereo(), "{\"consort_desktop\": 1}", rules)
    }

    pub(super) fn with_sink(mut self, name: &str) -> Self {
        self.plug(name);
        self
    }

    pub(super) fn plug(&mut self, name: &str) {
        let new = NewNullDevice { name: name.into(), channels: 2, rate_hz: None };
        assert_eq!(self.front_end.devices_mut().add(new), Ok(()));
        self.front_end.devices_changed(self.now_ns);
    }

    pub(super) fn unplug(&mut self, name: &str) {
        self.front_end.devices_mut().remove(name);
        self.front_end.devices_changed(self.now_ns);
    }

    pub(super) fn shown(&mut self, client: u32, index: u32) -> SinkInputInfo {
        self.ask(client, &Command::GetSinkInputInfo(index)).expect("a stream")
    }

    /// Why, of one of the decisions about a stream.
    pub(super) fn why(&mut self, client: u32, index: u32, what: &str) -> String {
        let shown = self.shown(client, index);
        let key = text(&format!("consort.why.{what}"));
        let value = shown.props.get_bytes(&key).unwrap_or_default();
        String::from_utf8_lossy(value).trim_end_matches('\0').to_owned()
    }

    fn set_volume(&mut self, client: u32, index: u32, volume: u32) {
        let set = SetStreamVolumeParams { index, volume: all(volume) };
        self.tell(client, &Command::SetSinkInputVolume(set)).expect("set");
    }

    pub(super) fn mute(&mut self, client: u32, index: u32, mute: bool) {
        let mute = SetStreamMuteParams { index, mute };
        self.tell(client, &Command::SetSinkInputMute(mute)).expect("muted");
    }

    pub(super) fn cork(&mut self, client: u32, channel: u32, cork: bool) {
        let cork = CorkStreamParams { channel, cork };
        self.tell(client, &Command::CorkPlaybackStream(cork)).expect("corked");
    }

    pub(super) fn go(&mut self, client: u32, index: u32, sink: &str) {
        let (index, device_name) = (Some(index), Some(text(sink)));
        let go = MoveStreamParams { index, device_index: None, device_name };
        self.tell(client, &Command::MoveSinkInput(go)).expect("moved");
    }

    /// A stream with a role.
    pub(super) fn role(&mut self, client: u32, role: &CStr) -> CreatePlaybackStreamReply {
        let mut props = Props::new();
        props.set(Prop::MediaRole, role);
        let params = PlaybackStreamParams { props, ..params() };
        self.ask(client, &Command::CreatePlaybackStream(params)).expect("a stream")
    }

    /// What the programs of streams were asked to do, by their channels.
    pub(super) fn asked(&mut self, client: u32) -> Vec<(u32, String)> {
        let event = |event| match event {
            Command::PlaybackStreamEvent(GenericStreamEvent {
                stream_index, event_name, ..
            }) => Some((stream_index, event_name.into_string().expect("text"))),
            _ => None,
        };
        self.events(client).into_iter().filter_map(event).collect()
    }

    /// Sends a request to an extension; returns the values of the answer, or the refusal.
    pub(super) fn extension(
        &mut self,
        client: u32,
        module: &str,
        values: &[u8],
    ) -> Result<Vec<u8>, PulseError> {
        let (index, name) = (None, Some(text(module)));
        let command = Command::Extension(ExtensionParams { index, name });
        let mut bytes = Vec::new();
        encode_command_message(&mut bytes, 7, &command, MAX_VERSION).expect("a packet");
        bytes.extend(values);
        let length = (bytes.len() - 20) as u32;
        bytes[..4].copy_from_slice(&length.to_be_bytes());
        self.send_bytes(client, &bytes);
        let sent = self.sent(client);
        let answer = sent.iter().find(|packet| is_answer(packet)).expect("an answer");
        if answer[20..25] == *b"L\0\0\0\x02" {
            return Ok(answer[30..].to_vec());
        }
        Err(answered(read_ack_message(&mut &answer[..]).map(|tag| (tag, ()))).expect_err("refused"))
    }
}

const STREAMS: &str = "module-stream-restore";
/// A request of that extension to remember this.
const WRITE: &[u8] = b"L\0\0\0\x02L\0\0\0\x021tsink-input-by-application-name:a program\0\
                       m\x01\0v\x01\0\0\x80\0tother\x001";

fn all(volume: u32) -> ChannelVolume {
    let mut volumes = ChannelVolume::empty();
    (0..2).for_each(|_| volumes.push(Volume::from_u32_clamped(volume)));
    volumes
}

#[test]
fn a_stream_begins_as_the_last_one_of_its_program_was_left() {
    let mut scene = Scene::new().with_sink("other");
    let client = scene.admitted();
    let index = scene.stream(client).stream_index;
    assert_eq!(scene.why(client, index, "volume"), "the default");
    scene.set_volume(client, index, 0x8000);
    scene.mute(client, index, true);
    scene.go(client, index, "other");
    assert_eq!(scene.why(client, index, "device"), "it was moved there");
    let mut scene = scene.again("");
    let client = scene.admitted();
    let reply = scene.stream(client);
    assert_eq!(reply.sink_name.as_deref(), Some(c"other"));
    let shown = scene.shown(client, reply.stream_index);
    assert_eq!((shown.cvolume, shown.muted, shown.sink_index), (all(0x8000), true, 1));
    assert_eq!(scene.why(client, reply.stream_index, "volume"), "as the last time");
    assert_eq!(scene.why(client, reply.stream_index, "device"), "it was moved there the last time");
    // Of another program, nothing is known.
    let mut props = Props::new();
    props.set(Prop::ApplicationName, c"another program");
    let other = PlaybackStreamParams { props, ..params() };
    let reply: CreatePlaybackStreamReply =
        scene.ask(client, &Command::CreatePlaybackStream(other)).expect("a stream");
    let shown = scene.shown(client, reply.stream_index);
    assert_eq!((shown.cvolume, shown.muted, shown.sink_index), (all(0x10000), false, 0));
}

#[test]
fn what_a_program_states_itself_comes_before_what_was_remembered() {
    let mut scene = Scene::new().with_sink("other");
    let client = scene.admitted();
    let index = scene.stream(client).stream_index;
    scene.set_volume(client, index, 0x8000);
    scene.mute(client, index, true);
    scene.go(client, index, "other");
    let flags = StreamFlags { start_muted: Some(false), ..StreamFlags::default() };
    let (cvolume, sink_name) = (Some(all(0x4000)), Some(text("consort")));
    let stated = PlaybackStreamParams { flags, cvolume, sink_name, ..params() };
    let reply: CreatePlaybackStreamReply =
        scene.ask(client, &Command::CreatePlaybackStream(stated)).expect("a stream");
    let shown = scene.shown(client, reply.stream_index);
    assert_eq!((shown.cvolume, shown.muted, shown.sink_index), (all(0x4000), false, 0));
    assert_eq!(scene.why(client, reply.stream_index, "device"), "its program has named it");
    let by_index = PlaybackStreamParams { sink_index: Some(0), ..params() };
    let reply: CreatePlaybackStreamReply =
        scene.ask(client, &Command::CreatePlaybackStream(by_index)).expect("a stream");
    assert_eq!(reply.sink_index, 0);
}

#[test]
fn a_rule_comes_before_what_the_program_states() {
    let rules = "device=other volume=50% muted=yes name=\"a program\"";
    let mut scene = Scene::ruled(rules).with_sink("other");
    let client = scene.admitted();
    let stated = PlaybackStreamParams { cvolume: Some(all(0x4000)), ..params() };
    let reply: CreatePlaybackStreamReply =
        scene.ask(client, &Command::CreatePlaybackStream(stated)).expect("a stream");
    let shown = scene.shown(client, reply.stream_index);
    assert_eq!((shown.cvolume, shown.muted, shown.sink_index), (all(0x8000), true, 1));
    let line = "line 1 of the rules says so";
    assert_eq!(scene.why(client, reply.stream_index, "mute"), line);
    // Another default does not move it.
    scene.plug("third");
    for default in ["other", "third"] {
        scene.tell(client, &Command::SetDefaultSink(text(default))).expect("set");
    }
    assert_eq!(scene.shown(client, reply.stream_index).sink_index, 1);
}

#[test]
fn streams_return_to_the_sink_that_a_user_has_chosen_when_it_is_back() {
    let mut scene = Scene::new().with_sink("other");
    let client = scene.admitted();
    let [moved, stays] = [(); 2].map(|()| scene.role(client, c"music").stream_index);
    let mover = scene.role(client, c"video").stream_index;
    scene.go(client, moved, "other");
    scene.go(client, mover, "other");
    scene.go(client, mover, "consort");
    scene.unplug("other");
    assert_eq!(scene.shown(client, moved).sink_index, 0);
    assert_eq!(scene.why(client, moved, "device"), "the default: 'other' has gone");
    scene.plug("other");
    assert_eq!(scene.shown(client, moved).sink_index, 2);
    assert_eq!(scene.why(client, moved, "device"), "its device has come back");
    assert_eq!(scene.shown(client, mover).sink_index, 0, "it was moved back");
    assert_eq!(scene.shown(client, stays).sink_index, 2, "it is remembered by the same name");
}

#[test]
fn a_device_gets_its_volume_again_unless_somebody_has_changed_it() {
    let mut scene = Scene::new().with_sink("other");
    let client = scene.admitted();
    for name in ["consort", "other"] {
        let (device_index, device_name) = (None, Some(text(name)));
        let mut volume = ChannelVolume::empty();
        for each in [0x8000, 0x4000] {
            volume.push(Volume::from_u32_clamped(each));
        }
        let set = SetDeviceVolumeParams { device_index, device_name, volume };
        scene.tell(client, &Command::SetSinkVolume(set)).expect("set");
    }
    assert!(scene.front_end.take_memory_has_changed());
    let memory = scene.front_end.memory().clone();
    let volume = Volumes::of([("front-left", 0x8000), ("front-right", 0x4000)]);
    let set = DeviceEntry { volume, muted: false, mixer: false };
    assert_eq!(["consort", "other"].map(|name| memory.device(name)), [Some(&set); 2]);
    let mut later = Scene::remembering(Silence::stereo(), &memory.to_text(), "");
    let gains = |scene: &mut Scene, device: usize| {
        let gains = scene.front_end.devices_mut().devices[device].volume.gains;
        [0, 1].map(|channel| gains.channel(channel).factor())
    };
    assert_eq!(gains(&mut later, 0), [0.125, 0.015_625]);
    later.plug("other");
    assert_eq!(gains(&mut later, 1), [0.125, 0.015_625]);
    let mut devices = Silence::stereo();
    (devices.devices[0].volume.muted, devices.devices[0].is_untouched) = (true, false);
    let mut changed = Scene::remembering(devices, &memory.to_text(), "");
    assert_eq!(gains(&mut changed, 0), [1.0; 2]);
}

#[test]
fn a_mixer_reads_writes_and_deletes_what_is_remembered() {
    let mut scene = Scene::new().with_sink("other");
    let [player, mixer] = [scene.admitted(), scene.admitted()];
    assert_eq!(scene.extension(mixer, STREAMS, b"L\0\0\0\0"), Ok(b"L\0\0\0\x01".to_vec()));
    assert_eq!(scene.extension(mixer, STREAMS, b"L\0\0\0\x01"), Ok(Vec::new()));
    let index = scene.stream(player).stream_index;
    assert_eq!(scene.extension(mixer, STREAMS, WRITE), Ok(Vec::new()));
    let shown = scene.shown(player, index);
    assert_eq!((shown.cvolume, shown.muted, shown.sink_index), (all(0x8000), true, 1));
    let why = "it was changed for all streams of its name";
    assert_eq!(scene.why(player, index, "volume"), why);
    let read = scene.extension(mixer, STREAMS, b"L\0\0\0\x01").expect("read");
    // All but the command, its mode, and whether it is applied.
    assert_eq!(read, WRITE[11..]);
    let delete = b"L\0\0\0\x03tsink-input-by-application-name:a program\0tnone\0";
    assert_eq!(scene.extension(mixer, STREAMS, delete), Ok(Vec::new()));
    assert_eq!(scene.extension(mixer, STREAMS, b"L\0\0\0\x01"), Ok(Vec::new()));
}

#[test]
fn a_stream_changes_once_however_often_its_name_is_written_at_once() {
    let mut scene = Scene::new().with_sink("other");
    let [player, mixer, watcher] = [scene.admitted(), scene.admitted(), scene.admitted()];
    let index = scene.stream(player).stream_index;
    let mask = SubscriptionMask::SINK_INPUT;
    scene.tell(watcher, &Command::Subscribe(mask)).expect("subscribed");
    let entry = |device: &[u8]| {
        let name = b"tsink-input-by-application-name:a program\0";
        [name, &b"m\0v\0"[..], device, b"0"].concat()
    };
    let [there, back] = [entry(b"tother\0"), entry(b"tconsort\0")];
    let write =
        [b"L\0\0\0\x02L\0\0\0\x021".to_vec(), [there.clone(), back].concat().repeat(20), there];
    assert_eq!(scene.extension(mixer, STREAMS, &write.concat()), Ok(Vec::new()));
    assert_eq!(scene.shown(player, index).sink_index, 1, "the last one counts");
    assert_eq!(scene.events(watcher).len(), 2, "its volume, and its sink");
}

#[test]
fn a_mixer_that_has_subscribed_is_notified_of_what_is_remembered() {
    let mut scene = Scene::new();
    let [player, mixer] = [scene.admitted(), scene.admitted()];
    assert_eq!(scene.extension(mixer, STREAMS, b"L\0\0\0\x041"), Ok(Vec::new()));
    let index = scene.stream(player).stream_index;
    scene.set_volume(player, index, 0x8000);
    let sent = scene.sent(mixer);
    let event = b"L\0\0\0\x57L\xff\xff\xff\xffL\xff\xff\xff\xfftmodule-stream-restore\0L\0\0\0\x05";
    assert_eq!(sent.iter().map(|packet| &packet[20..]).collect::<Vec<_>>(), [&event[..]]);
    scene.set_volume(player, index, 0x8000);
    assert_eq!(scene.sent(mixer), Vec::<Vec<u8>>::new(), "nothing has changed");
}

#[test]
fn an_extension_that_is_not_there_or_makes_no_sense_is_refused() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    let manager = scene.extension(client, "module-device-manager", b"L\0\0\0\0");
    assert_eq!(manager, Err(PulseError::NoExtension));
    let nonsense = scene.extension(client, STREAMS, b"L\0\0\0\x09");
    assert_eq!(nonsense, Err(PulseError::Protocol));
    let devices = "module-device-restore";
    let formats = scene.extension(client, devices, b"L\0\0\0\x03").expect("formats");
    assert_eq!(formats, b"L\0\0\0\0L\0\0\0\0B\x01fB\x01PN");
    let encoded = b"L\0\0\0\x05L\0\0\0\0L\0\0\0\0B\x01fB\x03PN";
    assert_eq!(scene.extension(client, devices, encoded), Err(PulseError::NotSupported));
    let unknown = scene.extension(client, devices, b"L\0\0\0\x04L\0\0\0\0L\0\0\0\x09");
    assert_eq!(unknown, Err(PulseError::NoEntity));
}

#[test]
fn a_recorder_begins_as_the_last_one_of_its_program_was_left_and_returns_to_its_source() {
    let mut scene = Scene::new().with_sink("other");
    let client = scene.admitted();
    let params = || RecordStreamParams {
        sample_spec: params().sample_spec,
        channel_map: ChannelMap::stereo(),
        ..RecordStreamParams::default()
    };
    let create = |scene: &mut Scene| -> CreateRecordStreamReply {
        scene.ask(client, &Command::CreateRecordStream(params())).expect("a stream")
    };
    let index = create(&mut scene).stream_index;
    let set = SetStreamVolumeParams { index, volume: all(0x8000) };
    scene.tell(client, &Command::SetSourceOutputVolume(set)).expect("set");
    let mute = SetStreamMuteParams { index, mute: true };
    scene.tell(client, &Command::SetSourceOutputMute(mute)).expect("muted");
    let (device_index, device_name) = (None, Some(text("other.monitor")));
    let go = MoveStreamParams { index: Some(index), device_index, device_name };
    scene.tell(client, &Command::MoveSourceOutput(go)).expect("moved");
    let index = create(&mut scene).stream_index;
    let shown = |scene: &mut Scene| -> SourceOutputInfo {
        scene.ask(client, &Command::GetSourceOutputInfo(index)).expect("a stream")
    };
    let begun = shown(&mut scene);
    assert_eq!((begun.cvolume, begun.muted, begun.source_index), (all(0x8000), true, 2));
    scene.unplug("other");
    assert_eq!(shown(&mut scene).source_index, 0);
    scene.plug("other");
    assert_eq!(shown(&mut scene).source_index, 3);
}

#[test]
fn the_sink_that_was_chosen_before_is_the_default_while_the_last_one_is_away() {
    let mut scene = Scene::new().with_sink("usb").with_sink("headset");
    let client = scene.admitted();
    let default = |scene: &mut Scene| {
        let info: ServerInfo = scene.ask(client, &Command::GetServerInfo).expect("an answer");
        info.default_sink_name.expect("one").into_string().expect("text")
    };
    for name in ["usb", "headset"] {
        scene.tell(client, &Command::SetDefaultSink(text(name))).expect("set");
    }
    let index = scene.stream(client).stream_index;
    assert_eq!(default(&mut scene), "headset");
    scene.unplug("headset");
    assert_eq!(default(&mut scene), "usb");
    assert_eq!(scene.shown(client, index).sink_index, 1);
    let sinks: Vec<SinkInfo> = scene.ask(client, &Command::GetSinkInfoList).expect("a list");
    let why = sinks[1].props.get_bytes(WHY_DEFAULT).expect("a reason");
    assert_eq!(why, b"it was chosen before 'headset', which is not there\0");
    scene.plug("headset");
    assert_eq!(default(&mut scene), "headset");
}

#[test]
fn a_rule_says_whether_a_stream_may_be_moved_whatever_its_program_says() {
    for (rule, no_move, moved) in
        [("move=no", false, Err(PulseError::Invalid)), ("move=yes", true, Ok(()))]
    {
        let mut scene = Scene::ruled(rule).with_sink("other");
        let client = scene.admitted();
        let flags = StreamFlags { no_move, ..StreamFlags::default() };
        let params = PlaybackStreamParams { flags, ..params() };
        let reply: CreatePlaybackStreamReply =
            scene.ask(client, &Command::CreatePlaybackStream(params)).expect("a stream");
        let (index, device_name) = (Some(reply.stream_index), Some(text("other")));
        let go = MoveStreamParams { index, device_index: None, device_name };
        assert_eq!(scene.tell(client, &Command::MoveSinkInput(go)), moved, "{rule}");
    }
}

#[test]
fn the_defaults_that_were_chosen_are_those_of_the_next_front_end() {
    let mut scene = Scene::new().with_sink("other").with_sink("third");
    let client = scene.admitted();
    for default in ["other", "third"] {
        scene.tell(client, &Command::SetDefaultSink(text(default))).expect("set");
    }
    scene.tell(client, &Command::SetDefaultSource(text("consort.monitor"))).expect("set");
    let mut scene = scene.again("");
    let client = scene.admitted();
    let defaults = |scene: &mut Scene| {
        let info: ServerInfo = scene.ask(client, &Command::GetServerInfo).expect("a server");
        let text = |name: Option<CString>| name.expect("a default").into_string().expect("text");
        [text(info.default_sink_name), text(info.default_source_name)]
    };
    assert_eq!(defaults(&mut scene), ["third", "consort.monitor"]);
    scene.unplug("third");
    assert_eq!(defaults(&mut scene), ["other", "consort.monitor"], "the one before");
    // What was chosen already is nothing new to be written.
    scene.front_end.take_memory_has_changed();
    scene.tell(client, &Command::SetDefaultSource(text("consort.monitor"))).expect("set");
    assert!(!scene.front_end.take_memory_has_changed());
}
