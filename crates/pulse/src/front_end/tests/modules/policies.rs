//! Modules that pass no sound on.

use super::FAILED;
use super::*;
use crate::output::Devices;

#[test]
fn what_happens_of_itself_is_loaded_once_and_changes_nothing() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    scene.load_named(client, "module-suspend-on-idle", "timeout=3").expect("loaded");
    for (name, arguments, reason) in [
        ("module-suspend-on-idle", "", "it is loaded already"),
        ("module-stream-restore", "restore_volume=no", "restore_volume is always so"),
        ("module-device-restore", "restore_muted=x", "takes yes or no"),
        ("module-switch-on-connect", "blacklist=x", "blacklist is not known here"),
        ("module-switch-on-connect", "ignore_virtual=x", "takes yes or no"),
    ] {
        assert_eq!(scene.load_named(client, name, arguments), Err(FAILED), "{name}");
        assert!(scene.reported()[0].contains(reason), "{name}");
    }
    let true_anyway =
        [("module-stream-restore", "restore_device=yes"), ("module-device-restore", "")];
    for (name, arguments) in true_anyway {
        let module = scene.load_named(client, name, arguments).expect("loaded");
        scene.tell(client, &Command::UnloadModule(module)).expect("unloaded");
    }
    // PulseAudio unloads this one at once, whatever it is given.
    scene.load_named(client, "module-rescue-streams", "a=b").expect("loaded");
    assert_eq!(scene.module_names(client), ["module-suspend-on-idle"]);
}

#[test]
fn a_device_that_is_new_becomes_the_default_if_a_module_says_so() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    let default = |scene: &mut Scene| {
        let info: pulseaudio::protocol::ServerInfo =
            scene.ask(client, &Command::GetServerInfo).expect("an answer");
        let text = |name: Option<CString>| name.expect("a name").into_string().expect("text");
        (text(info.default_sink_name), text(info.default_source_name))
    };
    let defaults = |sink: &str, source: &str| (sink.to_owned(), source.to_owned());
    let name = "module-switch-on-connect";
    let module = scene.load_named(client, name, "").expect("loaded");
    scene.load_named(client, "module-null-sink", "sink_name=one").expect("loaded");
    assert_eq!(default(&mut scene), defaults("consort", "consort.monitor"), "it has no hardware");
    scene.tell(client, &Command::UnloadModule(module)).expect("unloaded");
    let module = scene.load_named(client, name, "ignore_virtual=no").expect("loaded");
    assert_eq!(default(&mut scene), defaults("consort", "consort.monitor"), "none is new");
    scene.load_named(client, "module-null-sink", "sink_name=two").expect("loaded");
    assert_eq!(default(&mut scene), defaults("two", "two.monitor"));
    scene.load_named(client, "module-null-source", "source_name=in").expect("loaded");
    assert_eq!(default(&mut scene), defaults("two", "in"));
    scene.tell(client, &Command::UnloadModule(module)).expect("unloaded");
    scene.load_named(client, "module-null-sink", "sink_name=three").expect("loaded");
    assert_eq!(default(&mut scene), defaults("two", "in"));
}

#[test]
fn there_is_a_silent_sink_while_there_is_no_other() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    let module = scene.load_named(client, "module-always-sink", "").expect("loaded");
    assert!(scene.sink_named(client, "auto_null").is_none());
    let driver = scene.front_end.devices_mut().devices.remove(0);
    scene.front_end.devices_changed(0);
    let sink = scene.sink_named(client, "auto_null").expect("a sink");
    assert_eq!(sink.owner_module_index, Some(module));
    assert_eq!(sink.description.as_deref(), Some(c"Dummy Output"));
    let plays: CreatePlaybackStreamReply = scene.stream(client);
    assert_eq!(plays.sink_index, sink.index);
    // Another program removes it: it comes again, as another one.
    scene.front_end.devices_mut().remove("auto_null");
    scene.front_end.devices_changed(0);
    let again = scene.sink_named(client, "auto_null").expect("a sink");
    assert_ne!(again.index, sink.index);
    assert_eq!(scene.module_names(client), ["module-always-sink"]);
    let plays: CreatePlaybackStreamReply = scene.stream(client);
    scene.front_end.devices_mut().devices.insert(0, driver);
    scene.front_end.devices_changed(0);
    assert!(scene.sink_named(client, "auto_null").is_none());
    assert_eq!(scene.front_end.devices_mut().devices.len(), 1, "the device has gone");
    let info: pulseaudio::protocol::SinkInputInfo =
        scene.ask(client, &Command::GetSinkInputInfo(plays.stream_index)).expect("a stream");
    assert_eq!(info.sink_index, 0, "its streams go on");
    assert_eq!(scene.module_names(client), ["module-always-sink"]);
}

#[test]
fn streams_of_the_last_sink_go_on_at_the_silent_one() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    let always = scene.load_named(client, "module-always-sink", "").expect("loaded");
    let plays: CreatePlaybackStreamReply = scene.stream(client);
    let at = |scene: &mut Scene| {
        let asked = Command::GetSinkInputInfo(plays.stream_index);
        let info: Result<pulseaudio::protocol::SinkInputInfo, _> = scene.ask(client, &asked);
        info.map(|info| info.sink_index)
    };
    let silent = |scene: &mut Scene| scene.sink_named(client, "auto_null").map(|sink| sink.index);
    // Its device goes, and then another one with its module.
    scene.front_end.devices_mut().devices.remove(0);
    scene.front_end.devices_changed(0);
    assert_eq!(at(&mut scene).ok(), silent(&mut scene));
    let module = scene.load_named(client, "module-null-sink", "sink_name=one").expect("loaded");
    assert!(silent(&mut scene).is_none());
    scene.tell(client, &Command::UnloadModule(module)).expect("unloaded");
    assert!(scene.sink_named(client, "one").is_none());
    assert_eq!(at(&mut scene).ok(), silent(&mut scene));
    assert!(silent(&mut scene).is_some());
    assert_eq!(scene.front_end.devices_mut().devices.len(), 1);
    scene.load_named(client, "module-null-source", "").expect("loaded");
    assert!(silent(&mut scene).is_some(), "a source is no sink");
    scene.tell(client, &Command::UnloadModule(always)).expect("unloaded");
    assert!(silent(&mut scene).is_none() && at(&mut scene).is_err(), "there is no other");
}

#[test]
fn programs_come_in_where_a_module_listens_until_it_is_unloaded() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    let name = "module-native-protocol-tcp";
    assert_eq!(scene.load_named(client, name, "port=99"), Err(FAILED));
    assert!(scene.reported()[0].contains("there is no cookie"));
    let module = scene.load_named(client, name, "port=99 auth-anonymous=1").expect("loaded");
    let listening = &scene.front_end.devices_mut().listening[&module];
    assert_eq!((listening.port, listening.is_open), (99, true));
    let come = |scene: &mut Scene, is_open| {
        let origin = Origin { account: 9, way: Way::Module { module, is_open } };
        let program = scene.came(origin).expect("room");
        let auth = AuthParams { version: 35, ..AuthParams::default() };
        let let_in: Result<AuthReply, PulseError> = scene.ask(program, &Command::Auth(auth));
        (program, let_in.map(|_| ()))
    };
    assert_eq!(come(&mut scene, false).1, Err(PulseError::AccessDenied));
    let (program, let_in) = come(&mut scene, true);
    assert_eq!(let_in, Ok(()));
    scene.sent(program);
    scene.tell(client, &Command::UnloadModule(module)).expect("unloaded");
    assert!(scene.front_end.devices_mut().listening.is_empty());
    assert_eq!(scene.sent(program), [b"closed"], "it is disconnected");
}

#[test]
fn modules_are_limited() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    let load = |scene: &mut Scene, port: u32| {
        let arguments = format!("port={port} auth-anonymous=1");
        scene.load_named(client, "module-native-protocol-tcp", &arguments)
    };
    let loaded = (1..400).filter(|port| load(&mut scene, *port).is_ok()).count();
    assert_eq!((loaded, scene.module_names(client).len()), (256, 256));
}

#[test]
fn the_arguments_of_all_modules_are_no_longer_than_a_list_has_room_for() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    let spaces = " ".repeat(60_000);
    for port in 1..40 {
        let arguments = text(&format!("port={port} auth-anonymous=1{spaces}"));
        let load = LoadModuleParams {
            name: text("module-native-protocol-tcp"),
            arguments: Some(arguments),
        };
        // The first packet of a connection is short.
        let packets = [Command::Stat, Command::LoadModule(load)].map(|command| {
            let mut bytes = Vec::new();
            encode_command_message(&mut bytes, 7, &command, MAX_VERSION).expect("a packet");
            bytes
        });
        scene.send_bytes(client, &packets.concat());
        scene.sent(client);
    }
    assert_eq!(scene.module_names(client).len(), 17, "a megabyte");
}

#[test]
fn a_program_over_the_network_opens_no_file_and_no_further_way_in_or_out() {
    let mut scene = Scene::new();
    let module = Way::Module { module: 9, is_open: true };
    let program = scene.came(Origin { account: 9, way: module }).expect("room");
    let auth = AuthParams { version: 35, ..AuthParams::default() };
    let _: AuthReply = scene.ask(program, &Command::Auth(auth)).expect("let in");
    for (name, arguments) in [
        ("module-pipe-sink", "file=/tmp/f"),
        ("module-pipe-source", "file=/tmp/f"),
        ("module-native-protocol-tcp", "auth-anonymous=1"),
        ("module-ladspa-sink", "plugin=/tmp/f label=a"),
        ("module-simple-protocol-tcp", ""),
        ("module-rtp-send", ""),
        ("module-rtp-recv", ""),
        ("module-zeroconf-publish", ""),
        ("module-zeroconf-discover", ""),
        ("module-x11-bell", "display=elsewhere:0"),
        ("module-tunnel-sink", "server=tcp:one"),
        ("module-tunnel-source", "server=tcp:one cookie=/etc/secret"),
    ] {
        assert_eq!(scene.load_named(program, name, arguments), Err(FAILED), "{name}");
        assert!(scene.reported()[0].contains("over the network"), "{name}");
    }
    assert!(scene.links().is_empty() && scene.front_end.devices_mut().listening.is_empty());
    scene.load_named(program, "module-null-sink", "").expect("sound is its to use");
}
