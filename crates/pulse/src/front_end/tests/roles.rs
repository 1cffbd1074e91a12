//! What a stream or a client of the graph does to others by its role.

use client::stream::ClientRole;

use super::*;

#[test]
fn a_client_of_the_graph_with_a_role_holds_streams_while_it_states_it() {
    let mut scene = Scene::new().with_sink("other");
    let player = scene.admitted();
    let [music, elsewhere, game] =
        [c"music", c"music", c"game"].map(|role| scene.role(player, role));
    scene.go(player, elsewhere.stream_index, "other");
    scene.events(player);
    let state = |scene: &mut Scene, role: Option<&str>| {
        let call = |role: &str| ClientRole { client: "call".into(), role: role.into() };
        scene.front_end.devices_mut().client_roles = role.map(call).into_iter().collect();
        scene.front_end.devices_changed(0);
    };
    state(&mut scene, Some("phone"));
    assert_eq!(scene.asked(player), [(music.channel, "request-cork".into())]);
    assert!(scene.shown(player, music.stream_index).muted);
    let why = scene.why(player, music.stream_index, "other");
    assert!(why.starts_with("held while the JACK client 'call' is active"), "{why}");
    for other in [elsewhere, game] {
        assert!(!scene.shown(player, other.stream_index).muted);
    }
    state(&mut scene, None);
    assert_eq!(scene.asked(player), [(music.channel, "request-uncork".into())]);
    assert!(!scene.shown(player, music.stream_index).muted);
    state(&mut scene, Some("game"));
    assert_eq!(scene.asked(player), []);
    // It is gone with its server.
    state(&mut scene, Some("phone"));
    scene.asked(player);
    scene.front_end.devices_mut().is_away = true;
    scene.front_end.server_gone(0, 0);
    assert!(scene.front_end.desktop.clients.is_empty());
}

#[test]
fn a_user_hears_what_a_client_of_the_graph_holds_and_rules_name_such_clients() {
    let mut scene = Scene::ruled("duck=music by=-6dB name=radio*");
    let player = scene.admitted();
    let music = scene.role(player, c"music");
    let role = |client: &str, role: &str| ClientRole { client: client.into(), role: role.into() };
    let state = |scene: &mut Scene, role: ClientRole| {
        scene.front_end.devices_mut().client_roles = vec![role];
        scene.front_end.devices_changed(0);
        scene.events(player);
    };
    state(&mut scene, role("call", "phone"));
    assert!(scene.shown(player, music.stream_index).muted);
    scene.mute(player, music.stream_index, false);
    assert!(!scene.shown(player, music.stream_index).muted, "a user wants to hear it");
    state(&mut scene, role("radio 1", "production"));
    let why = scene.why(player, music.stream_index, "other");
    assert!(why.starts_with("-6 dB while the JACK client 'radio 1' is active: line 1"), "{why}");
}

#[test]
fn a_phone_call_holds_music_and_lets_it_go_on() {
    let mut scene = Scene::new();
    let [player, caller] = [scene.admitted(), scene.admitted()];
    let [music, paused, game] = [c"music", c"music", c"game"].map(|role| scene.role(player, role));
    scene.cork(player, paused.channel, true);
    let phone = scene.role(caller, c"phone");
    assert_eq!(scene.asked(player), [(music.channel, "request-cork".into())]);
    assert!(scene.shown(caller, music.stream_index).muted);
    let why = scene.why(caller, music.stream_index, "other");
    assert!(why.starts_with(&format!("held while sink input {}", phone.stream_index)), "{why}");
    assert!(!scene.shown(caller, game.stream_index).muted);
    scene.cork(player, music.channel, true);
    scene.cork(caller, phone.channel, true);
    assert_eq!(scene.asked(player), [(music.channel, "request-uncork".into())]);
    assert!(!scene.shown(caller, music.stream_index).muted);
    assert_eq!(scene.why(caller, music.stream_index, "other"), "");
    // Nothing of this is the user's wish.
    assert!(!scene.front_end.take_memory_has_changed());
}

#[test]
fn a_stream_that_a_user_unmutes_is_heard_during_the_call() {
    let mut scene = Scene::new();
    let [player, caller] = [scene.admitted(), scene.admitted()];
    let music = scene.role(player, c"music");
    let phone = scene.role(caller, c"phone");
    assert!(scene.shown(caller, music.stream_index).muted);
    scene.mute(caller, music.stream_index, false);
    assert!(!scene.shown(caller, music.stream_index).muted);
    let asked = |what: &str| (music.channel, what.to_owned());
    assert_eq!(scene.asked(player), [asked("request-cork"), asked("request-uncork")]);
    scene.tell(caller, &Command::DeletePlaybackStream(phone.channel)).expect("deleted");
    scene.role(caller, c"phone");
    assert_eq!(scene.asked(player), [asked("request-cork")], "the next call holds it again");
}

#[test]
fn a_rule_turns_streams_down_while_another_is_heard() {
    let mut scene = Scene::ruled("cork=nothing role=phone\nduck=music by=-12dB role=phone");
    let client = scene.admitted();
    let music = scene.role(client, c"music");
    scene.role(client, c"phone");
    assert_eq!(scene.asked(client), []);
    assert!(!scene.shown(client, music.stream_index).muted);
    let why = scene.why(client, music.stream_index, "other");
    assert!(why.starts_with("-12 dB while sink input"), "{why}");
}

#[test]
fn a_module_about_roles_does_so_from_when_it_is_loaded_until_it_is_unloaded() {
    let mut scene = Scene::new();
    let player = scene.admitted();
    let [music, game] = [c"music", c"game"].map(|role| scene.role(player, role));
    scene.events(player);
    let arguments = "trigger_roles=game ducking_roles=music volume=-20dB";
    let ducking = scene.load_named(player, "module-role-ducking", arguments).expect("loaded");
    let expected = format!(
        "-20 dB while sink input {} plays: module {ducking} was loaded for that",
        game.stream_index
    );
    assert_eq!(scene.why(player, music.stream_index, "other"), expected);
    let arguments = "trigger_roles=game cork_roles=music";
    let cork = scene.load_named(player, "module-role-cork", arguments).expect("loaded");
    assert!(scene.shown(player, music.stream_index).muted);
    scene.tell(player, &Command::UnloadModule(cork)).expect("unloaded");
    assert!(!scene.shown(player, music.stream_index).muted);
    assert_eq!(scene.why(player, music.stream_index, "other"), expected);
    scene.tell(player, &Command::UnloadModule(ducking)).expect("unloaded");
    assert_eq!(scene.why(player, music.stream_index, "other"), "");
}

#[test]
fn modules_have_no_more_roles_together_than_can_be_looked_at_at_every_stream() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    let groups = vec!["game"; 32].join("/");
    let arguments = format!("trigger_roles={groups} ducking_roles={groups}");
    let load = |scene: &mut Scene| scene.load_named(client, "module-role-ducking", &arguments);
    let loaded: Vec<u32> = (0..10).filter_map(|_| load(&mut scene).ok()).collect();
    assert_eq!(loaded.len(), 4);
    let reason = scene.reported().pop().expect("a reason");
    assert!(reason.contains("160 groups of roles, and 128 are the most"), "{reason}");
    scene.load_named(client, "module-null-sink", "").expect("it has no roles");
    scene.tell(client, &Command::UnloadModule(loaded[0])).expect("unloaded");
    assert!(load(&mut scene).is_ok(), "one has made room");
}
