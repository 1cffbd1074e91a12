//! Who is let in, and what programs see of the server.

use pulseaudio::protocol::{
    ClientInfo, GetSinkInfo, LookupReply, ServerInfo, SinkInfo, SinkState, SourceInfo,
    SubscriptionEvent, SubscriptionEventFacility as Facility, SubscriptionEventType as EventType,
    SubscriptionMask,
};

use super::*;

#[test]
fn only_programs_of_this_user_are_let_in() {
    let mut scene = Scene::new();
    let origin = Origin { account: 2, way: Way::OtherUser };
    let stranger = scene.came(origin).expect("room");
    let auth = Command::Auth(AuthParams { version: 35, ..AuthParams::default() });
    let sent = scene.send(stranger, &auth);
    let refused = read_ack_message(&mut &sent[0][..]);
    assert!(matches!(refused, Err(ProtocolError::ServerError(PulseError::AccessDenied))));
    assert_eq!(sent[1], b"closed");
}

#[test]
fn a_program_that_is_not_let_in_is_answered_nothing_else() {
    let mut scene = Scene::new();
    let client = scene.connected(2).expect("room");
    let sent = scene.send(client, &Command::GetServerInfo);
    let refused = read_ack_message(&mut &sent[0][..]);
    assert!(matches!(refused, Err(ProtocolError::ServerError(PulseError::AccessDenied))));
    assert_eq!(sent[1], b"closed");
    let old = scene.connected(2).expect("room");
    let auth = Command::Auth(AuthParams { version: 12, ..AuthParams::default() });
    let sent = scene.send(old, &auth);
    let refused = read_ack_message(&mut &sent[0][..]);
    assert!(matches!(refused, Err(ProtocolError::ServerError(PulseError::Version))));
}

#[test]
fn a_packet_that_cannot_be_read_is_refused_and_the_next_is_answered() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    // A lookup whose name has no end.
    let mut bytes = vec![0, 0, 0, 14, 255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    bytes.extend(b"L\0\0\0\x0aL\0\0\0\x07tsin");
    scene.send_bytes(client, &bytes);
    let sent = scene.sent(client);
    let refused = read_ack_message(&mut &sent[0][..]);
    assert!(matches!(refused, Err(ProtocolError::ServerError(PulseError::Protocol))));
    assert!(scene.ask::<ServerInfo>(client, &Command::GetServerInfo).is_ok());
}

#[test]
fn the_device_is_a_sink_with_its_monitor() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    let server: ServerInfo = scene.ask(client, &Command::GetServerInfo).expect("an answer");
    assert_eq!(server.default_sink_name.as_deref(), Some(c"consort"));
    let sinks: Vec<SinkInfo> = scene.ask(client, &Command::GetSinkInfoList).expect("an answer");
    assert_eq!(sinks.len(), 1);
    assert_eq!(sinks[0].sample_spec.sample_rate, 48_000);
    assert_eq!(sinks[0].state, SinkState::Suspended);
    let sources: Vec<SourceInfo> =
        scene.ask(client, &Command::GetSourceInfoList).expect("an answer");
    assert_eq!(sources[0].monitor_of_sink_index, Some(sinks[0].index));
    for name in ["consort", "@DEFAULT_SINK@", "0"] {
        let found = scene.ask::<LookupReply>(client, &Command::LookupSink(text(name)));
        assert_eq!(found, Ok(LookupReply(0)), "{name}");
    }
    let none = scene.ask::<LookupReply>(client, &Command::LookupSink(text("other")));
    assert_eq!(none, Err(PulseError::NoEntity));
    let by_index = Command::GetSinkInfo(GetSinkInfo { index: Some(1), name: None });
    assert_eq!(scene.ask::<SinkInfo>(client, &by_index).err(), Some(PulseError::NoEntity));
}

#[test]
fn programs_are_listed_by_their_own_names_until_they_leave() {
    let mut scene = Scene::new();
    let [one, other] = [scene.admitted(), scene.admitted()];
    // One that is not let in yet is not listed.
    let _silent = scene.connected(2).expect("room");
    let list = |scene: &mut Scene| {
        let all: Vec<ClientInfo> = scene.ask(one, &Command::GetClientInfoList).expect("a list");
        all.into_iter().map(|client| (client.index, client.name)).collect::<Vec<_>>()
    };
    assert_eq!(list(&mut scene), [(one, text("a program")), (other, text("a program"))]);
    scene.tell(one, &Command::Subscribe(SubscriptionMask::CLIENT)).expect("subscribed");
    scene.front_end.disconnected(other, scene.now_ns);
    let removed = SubscriptionEvent {
        event_facility: Facility::Client,
        event_type: EventType::Removed,
        index: Some(other),
    };
    assert_eq!(scene.events(one), [Command::SubscribeEvent(removed)]);
    assert_eq!(list(&mut scene).len(), 1);
}

#[test]
fn what_is_not_there_is_said_in_pulseaudios_words() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    for (command, error) in [
        (Command::GetModuleInfo(0), PulseError::NoEntity),
        (Command::UnloadModule(0), PulseError::NoEntity),
        (Command::KillSinkInput(0), PulseError::NoEntity),
        (Command::DeletePlaybackStream(0), PulseError::NoEntity),
        (Command::KillClient(99), PulseError::NoEntity),
        (Command::SetDefaultSink(text("other")), PulseError::NoEntity),
        (Command::Exit, PulseError::NotSupported),
    ] {
        assert_eq!(scene.tell(client, &command), Err(error), "{command:?}");
    }
    assert_eq!(scene.tell(client, &Command::GetModuleInfoList), Ok(()));
}

#[test]
fn no_more_programs_are_taken_than_the_limit() {
    let mut scene = Scene::new();
    let clients: Vec<_> = (0..1000).map_while(|account| scene.connected(account)).collect();
    assert_eq!(clients.len(), super::super::MAX_CLIENTS);
    scene.front_end.disconnected(clients[0], scene.now_ns);
    assert!(scene.connected(0).is_some());
}

#[test]
fn one_program_leaves_connections_for_others() {
    let mut scene = Scene::new();
    let clients: Vec<_> = (0..1000).map_while(|_| scene.connected(2)).collect();
    assert_eq!(clients.len(), super::super::MAX_CLIENTS_OF_ONE);
    assert!(scene.connected(3).is_some());
    scene.front_end.disconnected(clients[0], scene.now_ns);
    assert!(scene.connected(2).is_some());
}

#[test]
fn the_core_lists_the_objects_that_take_messages() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    let message = |scene: &mut Scene, values: &[u8]| {
        let packet = [b"L\0\0\0\x68L\0\0\0\x07", values].concat();
        let length = (packet.len() as u32).to_be_bytes();
        scene.send_bytes(client, &[&length[..], &[0xff; 4], &[0; 12], &packet].concat());
        scene.sent(client).remove(0)
    };
    let answer = message(&mut scene, b"t/core\0tlist-handlers\0N");
    let list = br#"t[{"name":"/core","description":"Core message handler"}]"#;
    assert_eq!(answer[20..30], *b"L\0\0\0\x02L\0\0\0\x07");
    assert_eq!(answer[30..], [&list[..], b"\0"].concat());
    for (values, expected) in [
        (&b"t/other\0tlist-handlers\0N"[..], PulseError::NoEntity),
        (b"t/core\0tother\0N", PulseError::NotImplemented),
        (b"t/core\0N", PulseError::Protocol),
    ] {
        let answer = message(&mut scene, values);
        let refused = answered(read_ack_message(&mut &answer[..]).map(|tag| (tag, ())));
        assert_eq!(refused, Err(expected));
    }
}
