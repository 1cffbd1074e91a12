//! Streams for which nobody has chosen a device.

use pulseaudio::protocol::stream::StreamFlags;
use pulseaudio::protocol::{
    CreateRecordStreamReply, RecordStreamParams, SourceOutputInfo, UpdatePropsParams,
    props::PropsUpdateMode,
};

use super::super::absence::GRACE;
use super::*;
use crate::output::{Devices, NewNullDevice};

const ON: &[u8] = b"L\0\0\0\x041";
const OFF: &[u8] = b"L\0\0\0\x040";
/// Why a stream without a role, and one of music, are where they were routed.
const WHY_PLAIN: &str = "of the devices that are there, it comes first for streams without a role";
const WHY_MUSIC: &str = "of the devices that are there, it comes first for the role 'music'";
const WHY_BEFORE: &str = "it came first for its role when it was routed";

/// A front end with the sinks 0, `consort`, 1, `usb`, and 2, `headset`, where `headset` comes first
/// for music.
fn routing(arguments: &str) -> (Scene, u32) {
    let mut scene = Scene::new().with_sink("usb").with_sink("headset");
    let client = scene.admitted();
    scene.load_named(client, MANAGER, arguments).expect("loaded");
    scene.reorder(client, "music", &["sink:headset", "sink:usb"]).expect("reordered");
    (scene, client)
}

#[test]
fn a_new_stream_plays_on_the_first_sink_of_its_role() {
    let (mut scene, client) = routing("do_routing=1");
    let music = scene.role(client, c"music");
    assert_eq!(music.sink_name.as_deref(), Some(c"headset"));
    assert_eq!(scene.why(client, music.stream_index, "device"), WHY_MUSIC);
    let plain = scene.stream(client);
    assert_eq!(plain.sink_index, 0);
    assert_eq!(scene.why(client, plain.stream_index, "device"), WHY_PLAIN);
    let other = scene.role(client, c"alarm").stream_index;
    assert_eq!(scene.why(client, other, "device"), "the default", "it has no order");
    // Another default moves only what follows it.
    scene.tell(client, &Command::SetDefaultSink(text("usb"))).expect("set");
    let sinks = [music.stream_index, plain.stream_index, other]
        .map(|index| scene.shown(client, index).sink_index);
    assert_eq!(sinks, [2, 0, 1]);
}

#[test]
fn a_stream_for_which_somebody_has_chosen_a_device_is_not_routed() {
    let (mut scene, client) = routing("do_routing=1");
    let mut props = Props::new();
    props.set(Prop::MediaRole, c"music");
    let named = PlaybackStreamParams { sink_name: Some(text("usb")), props, ..params() };
    let named: CreatePlaybackStreamReply =
        scene.ask(client, &Command::CreatePlaybackStream(named)).expect("a stream");
    let moved = scene.role(client, c"music").stream_index;
    scene.go(client, moved, "consort");
    let at = |scene: &mut Scene| {
        [named.stream_index, moved].map(|index| scene.shown(client, index).sink_index)
    };
    assert_eq!(at(&mut scene), [1, 0]);
    scene.reorder(client, "music", &["sink:usb", "sink:consort"]).expect("reordered");
    scene.reorder(client, "music", &["sink:headset"]).expect("reordered");
    scene.plug("another");
    assert_eq!(at(&mut scene), [1, 0]);
    assert_eq!(scene.role(client, c"music").sink_index, 2, "on the default, nothing is remembered");
    // The next one of its name goes where a user has moved it.
    scene.go(client, moved, "usb");
    let next = scene.role(client, c"music");
    assert_eq!(next.sink_index, 1);
    let why = "it was moved there the last time";
    assert_eq!(scene.why(client, next.stream_index, "device"), why);
}

#[test]
fn a_stream_returns_to_where_a_user_has_moved_its_name_although_it_was_routed_meanwhile() {
    let (mut scene, client) = routing("do_routing=1");
    let moved = scene.role(client, c"music").stream_index;
    scene.go(client, moved, "usb");
    scene.unplug("usb");
    let next = scene.role(client, c"music").stream_index;
    let at = |scene: &mut Scene| [moved, next].map(|index| scene.shown(client, index).sink_index);
    assert_eq!(at(&mut scene), [2; 2]);
    scene.plug("usb");
    assert_eq!(at(&mut scene), [3; 2]);
    assert_eq!(scene.why(client, next, "device"), "its device has come back");
    scene.reorder(client, "music", &["sink:consort"]).expect("reordered");
    assert_eq!(at(&mut scene), [3; 2], "it is where a user wants it");
}

#[test]
fn a_number_is_no_name_of_a_device_that_is_known() {
    let mut scene = Scene::new().with_sink("0");
    let client = scene.admitted();
    scene.load_named(client, MANAGER, "do_routing=1").expect("loaded");
    scene.reorder(client, "music", &["sink:0"]).expect("reordered");
    scene.unplug("0");
    assert_eq!(scene.known(client)[0], known("sink:0", "0", ABSENT));
    let music = scene.role(client, c"music").stream_index;
    scene.reorder(client, "music", &["sink:consort", "sink:0"]).expect("reordered");
    scene.reorder(client, "music", &["sink:0"]).expect("reordered");
    assert_eq!(scene.why(client, music, "device"), WHY_MUSIC, "on the one that is there");
    scene.plug("0");
    assert_eq!(scene.shown(client, music).sink_index, 2);
}

#[test]
fn a_rule_comes_before_the_order_of_devices() {
    let mut scene = Scene::ruled("device=usb role=music").with_sink("usb").with_sink("headset");
    let client = scene.admitted();
    scene.load_named(client, MANAGER, "do_routing=1").expect("loaded");
    scene.reorder(client, "music", &["sink:headset"]).expect("reordered");
    assert_eq!(scene.role(client, c"music").sink_index, 1);
    scene.unplug("usb");
    let next = scene.role(client, c"music");
    assert_eq!(next.sink_index, 2);
    assert_eq!(scene.why(client, next.stream_index, "device"), WHY_MUSIC);
}

#[test]
fn streams_go_when_the_order_or_their_role_changes_or_routing_begins() {
    let (mut scene, client) = routing("");
    let music = scene.role(client, c"music");
    let index = music.stream_index;
    assert_eq!(music.sink_index, 0, "nothing is routed");
    scene.manage(client, ON).expect("on");
    assert_eq!(scene.shown(client, index).sink_index, 2);
    scene.reorder(client, "music", &["sink:usb"]).expect("reordered");
    assert_eq!(scene.shown(client, index).sink_index, 1);
    scene.reorder(client, "video", &["sink:headset"]).expect("reordered");
    assert_eq!(scene.shown(client, index).sink_index, 1, "of another role");
    let mut props = Props::new();
    props.set(Prop::MediaRole, c"video");
    let (mode, channel) = (PropsUpdateMode::Replace, music.channel);
    let update = UpdatePropsParams { index: channel, mode, props };
    scene.tell(client, &Command::UpdatePlaybackStreamProplist(update)).expect("updated");
    assert_eq!(scene.shown(client, index).sink_index, 2);
    scene.manage(client, OFF).expect("off");
    assert_eq!(scene.shown(client, index).sink_index, 2, "it stays");
    assert_eq!(scene.stream(client).sink_index, 0);
    scene.manage(client, ON).expect("on");
    scene.reorder(client, "video", &["sink:consort"]).expect("reordered");
    scene.manage(client, OFF).expect("off");
    scene.tell(client, &Command::SetDefaultSink(text("usb"))).expect("set");
    assert_eq!(scene.shown(client, index).sink_index, 1, "it follows the default again");
    assert_eq!(scene.why(client, index, "device"), "the default");
}

#[test]
fn streams_go_when_devices_come_and_go_unless_the_module_says_otherwise() {
    for (arguments, [gone, back]) in [
        ("do_routing=1", [1, 3]),
        ("do_routing=1 on_hotplug=0", [1, 1]),
        ("do_routing=1 on_rescue=0", [0, 3]),
        ("do_routing=1 on_hotplug=0 on_rescue=0", [0, 0]),
        ("do_routing=0", [0, 0]),
    ] {
        let (mut scene, client) = routing(arguments);
        let index = scene.role(client, c"music").stream_index;
        scene.unplug("headset");
        assert_eq!(scene.shown(client, index).sink_index, gone, "{arguments}: it has gone");
        scene.plug("headset");
        assert_eq!(scene.shown(client, index).sink_index, back, "{arguments}: it is back");
    }
}

#[test]
fn a_stream_that_the_server_has_ended_with_its_sink_goes_to_the_next_of_its_order() {
    let (mut scene, client) = routing("do_routing=1");
    let index = scene.role(client, c"music").stream_index;
    let input = scene.front_end.inputs.get_mut(index).expect("a stream");
    input.playback.output_mut().has_ended = true;
    scene.front_end.devices_mut().remove("headset");
    scene.wait(1);
    assert_eq!(scene.shown(client, index).sink_index, 1);
    assert_eq!(scene.why(client, index, "device"), WHY_MUSIC);
}

#[test]
fn a_stream_whose_sink_is_not_on_the_next_server_goes_to_the_next_of_its_order() {
    let (mut scene, client) = routing("do_routing=1");
    let stays = scene.stream(client).stream_index;
    let playing = scene.role(client, c"music");
    let goes = playing.stream_index;
    scene.server_goes();
    scene.front_end.devices_mut().remove("headset");
    scene.server_comes();
    let waiting = scene.role(client, c"music");
    assert_eq!(waiting.sink_index, 1, "its first sink is not there");
    // Which must not be taken for a reason to leave it.
    let mut props = Props::new();
    props.set(Prop::MediaName, c"another song");
    let (index, mode) = (playing.channel, PropsUpdateMode::Merge);
    let update = UpdatePropsParams { index, mode, props };
    scene.tell(client, &Command::UpdatePlaybackStreamProplist(update)).expect("updated");
    assert_eq!(scene.shown(client, goes).sink_index, 2);
    scene.wait(GRACE);
    let at = [stays, goes].map(|index| scene.shown(client, index).sink_index);
    assert_eq!(at, [0, 1]);
    assert_eq!(scene.why(client, goes, "device"), WHY_MUSIC);
}

#[test]
fn a_stream_goes_to_a_sink_that_is_on_the_next_server_later_than_others() {
    let (mut scene, client) = routing("do_routing=1");
    scene.server_goes();
    scene.front_end.devices_mut().remove("headset");
    scene.server_comes();
    let index = scene.role(client, c"music").stream_index;
    assert_eq!(scene.shown(client, index).sink_index, 1);
    scene.plug("headset");
    assert_eq!(scene.shown(client, index).sink_index, 2);
}

#[test]
fn a_stream_goes_to_a_sink_that_came_while_there_was_no_server() {
    let (mut scene, client) = routing("do_routing=1");
    scene.unplug("headset");
    let index = scene.role(client, c"music").stream_index;
    assert_eq!(scene.shown(client, index).sink_index, 1);
    scene.server_goes();
    let new = NewNullDevice { name: "headset".into(), channels: 2, rate_hz: None };
    scene.front_end.devices_mut().is_away = false;
    scene.front_end.devices_mut().add(new).expect("added");
    scene.server_comes();
    let sink = scene.shown(client, index).sink_index;
    let asked = pulseaudio::protocol::GetSinkInfo { index: Some(sink), name: None };
    let sink: SinkInfo = scene.ask(client, &Command::GetSinkInfo(asked)).expect("a sink");
    assert_eq!(sink.name, text("headset"));
}

#[test]
fn a_stream_for_which_no_device_comes_first_any_more_has_the_default_one() {
    let (mut scene, client) = routing("do_routing=1");
    let stream = scene.role(client, c"music");
    let mut props = Props::new();
    props.set(Prop::MediaRole, c"alarm");
    let (index, mode) = (stream.channel, PropsUpdateMode::Replace);
    let update = UpdatePropsParams { index, mode, props };
    scene.tell(client, &Command::UpdatePlaybackStreamProplist(update)).expect("updated");
    let at = |scene: &mut Scene, index| {
        (scene.shown(client, index).sink_index, scene.why(client, index, "device"))
    };
    let default = "the default".to_owned();
    assert_eq!(at(&mut scene, stream.stream_index), (0, default.clone()));
    scene.tell(client, &Command::SetDefaultSink(text("usb"))).expect("set");
    assert_eq!(at(&mut scene, stream.stream_index), (1, default.clone()), "it follows it");
    let plain = scene.stream(client).stream_index;
    assert_eq!(at(&mut scene, plain), (0, WHY_PLAIN.to_owned()));
    let all = b"L\0\0\0\x03tsink:consort\0tsink:usb\0tsink:headset\0";
    scene.manage(client, all).expect("deleted");
    assert_eq!(at(&mut scene, plain), (1, default), "no device is known");
    scene.front_end.devices_mut().devices[1].volume.muted = true;
    scene.front_end.devices_changed(scene.now_ns);
    assert_eq!(at(&mut scene, plain), (0, WHY_PLAIN.to_owned()), "they are known again");
}

#[test]
fn why_a_stream_is_where_it_was_routed_stays_true_when_routing_ends() {
    let (mut scene, client) = routing("do_routing=1");
    let index = scene.role(client, c"music").stream_index;
    scene.manage(client, OFF).expect("off");
    assert_eq!(scene.why(client, index, "device"), WHY_BEFORE);
    for (default, why) in [("headset", WHY_BEFORE), ("usb", "the default")] {
        scene.tell(client, &Command::SetDefaultSink(text(default))).expect("set");
        assert_eq!(scene.why(client, index, "device"), why, "{default}");
    }
    assert_eq!(scene.shown(client, index).sink_index, 1);
}

#[test]
fn a_stream_that_must_not_be_moved_stays_and_ends_with_its_sink() {
    let (mut scene, client) = routing("do_routing=1");
    let flags = StreamFlags { no_move: true, ..StreamFlags::default() };
    let stays = PlaybackStreamParams { flags, ..params() };
    let stays: CreatePlaybackStreamReply =
        scene.ask(client, &Command::CreatePlaybackStream(stays)).expect("a stream");
    scene.reorder(client, "none", &["sink:usb"]).expect("reordered");
    assert_eq!(scene.shown(client, stays.stream_index).sink_index, 0);
    assert_eq!(scene.why(client, stays.stream_index, "device"), WHY_BEFORE);
    scene.plug("last");
    scene.events(client);
    scene.front_end.devices_mut().devices.remove(0);
    scene.front_end.devices_changed(scene.now_ns);
    assert_eq!(scene.events(client), [Command::PlaybackStreamKilled(stays.channel)]);
}

fn record(scene: &mut Scene, client: u32) -> u32 {
    let params = RecordStreamParams {
        sample_spec: params().sample_spec,
        channel_map: ChannelMap::stereo(),
        ..RecordStreamParams::default()
    };
    let reply: CreateRecordStreamReply =
        scene.ask(client, &Command::CreateRecordStream(params)).expect("a stream");
    reply.stream_index
}

fn recorded(scene: &mut Scene, client: u32, index: u32) -> SourceOutputInfo {
    scene.ask(client, &Command::GetSourceOutputInfo(index)).expect("a stream")
}

#[test]
fn a_program_that_may_not_capture_records_the_default_source_instead_of_a_microphone() {
    let mut scene = Scene::new();
    scene.plug_in("usb", 2, 1);
    let [free, boxed] = [scene.admitted(), scene.admitted_of(3)];
    scene.load_named(free, MANAGER, "do_routing=1").expect("loaded");
    scene.tell(free, &Command::SetDefaultSource(text("consort.monitor"))).expect("set");
    let known = scene.front_end.clients.get_mut(&boxed).expect("a program");
    known.rights = Some(Rights { capture: false, ..Rights::ALL });
    let [routed, other] = [free, boxed].map(|client| {
        let index = record(&mut scene, client);
        let shown = recorded(&mut scene, free, index);
        let why = shown.props.get_bytes(c"consort.why.device").unwrap_or_default();
        (shown.source_index, String::from_utf8_lossy(why).trim_end_matches('\0').to_owned())
    });
    assert_eq!(routed.1, WHY_PLAIN);
    assert_eq!(other, (0, "the default".to_owned()));
}

#[test]
fn a_recording_has_the_first_source_of_its_role_and_no_monitor() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    scene.load_named(client, MANAGER, "do_routing=1").expect("loaded");
    let record = |scene: &mut Scene| record(scene, client);
    let source = |scene: &mut Scene, index| recorded(scene, client, index).source_index;
    let index = record(&mut scene);
    assert_eq!(source(&mut scene, index), 0, "no source is known");
    let load = |scene: &mut Scene, name: &str| {
        let arguments = format!("source_name={name}");
        let module = scene.load_named(client, "module-null-source", &arguments).expect("loaded");
        (module, scene.source_named(client, name).expect("a source").index)
    };
    let (_, first) = load(&mut scene, "first");
    assert_eq!(source(&mut scene, index), first);
    let (module, second) = load(&mut scene, "second");
    assert_eq!(source(&mut scene, index), first);
    scene.reorder(client, "none", &["source:second"]).expect("reordered");
    assert_eq!(source(&mut scene, index), second);
    let next = record(&mut scene);
    assert_eq!(source(&mut scene, next), second);
    scene.tell(client, &Command::UnloadModule(module)).expect("unloaded");
    assert_eq!([index, next].map(|index| source(&mut scene, index)), [first; 2]);
}
