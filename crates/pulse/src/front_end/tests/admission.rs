//! Programs of other users and of the network, and what they cost.

use pulseaudio::protocol::UpdateClientProplistParams;
use pulseaudio::protocol::props::PropsUpdateMode;

use super::super::admission::{Admission, COOKIE_BYTES, Cookie};
use super::super::{MAX_ANSWERED_BYTES, MAX_NETWORK_CLIENTS, Way};
use super::*;

const COOKIE: [u8; COOKIE_BYTES] = [7; COOKIE_BYTES];

fn scene_with(admission: Admission) -> Scene {
    let front_end = FrontEnd::new(Silence::stereo(), Machine::default()).admitting(admission);
    Scene { front_end, now_ns: 0 }
}

fn with_cookie() -> Scene {
    scene_with(Admission { cookie: Some(Cookie(COOKIE)), ..Admission::default() })
}

fn auth(cookie: &[u8]) -> Command {
    Command::Auth(AuthParams {
        version: 35,
        supports_shm: true,
        supports_memfd: true,
        cookie: cookie.to_vec(),
    })
}

fn connected(scene: &mut Scene, account: u32, way: Way) -> Option<u32> {
    scene.came(Origin { account, way })
}

#[test]
fn a_program_of_another_user_or_of_the_network_needs_the_cookie() {
    let mut scene = with_cookie();
    for way in [Way::OtherUser, Way::Network] {
        let client = connected(&mut scene, 2, way).expect("room");
        let reply: AuthReply = scene.ask(client, &auth(&COOKIE)).expect("let in");
        assert_eq!((reply.use_shm, reply.use_memfd), (false, false), "{way:?}");
        scene.stream(client);
        for cookie in [&[8; COOKIE_BYTES][..], &[]] {
            let client = connected(&mut scene, 2, way).expect("room");
            let sent = scene.send(client, &auth(cookie));
            let refused = read_ack_message(&mut &sent[0][..]);
            assert!(matches!(refused, Err(ProtocolError::ServerError(PulseError::AccessDenied))));
            assert_eq!(sent[1], b"closed", "{way:?}");
            assert!(!scene.front_end.is_admitted(client));
        }
    }
}

#[test]
fn a_program_that_was_let_in_needs_no_cookie_again() {
    let mut scene = with_cookie();
    let client = connected(&mut scene, 2, Way::Network).expect("room");
    scene.ask::<AuthReply>(client, &auth(&COOKIE)).expect("let in");
    scene.ask::<AuthReply>(client, &auth(&[])).expect("let in before");
    assert!(scene.front_end.is_admitted(client));
}

#[test]
fn the_network_leaves_connections_for_programs_of_this_machine() {
    let mut scene = with_cookie();
    let remote: Vec<_> =
        (0..1000).map_while(|host| connected(&mut scene, 2 + host, Way::Network)).collect();
    assert_eq!(remote.len(), MAX_NETWORK_CLIENTS);
    let local: Vec<_> = (0..1000).map_while(|_| scene.connected(2000)).collect();
    assert_eq!(local.len(), super::super::MAX_CLIENTS_OF_ONE);
    assert!(scene.connected(2001).is_some());
    scene.front_end.disconnected(remote[0], scene.now_ns);
    assert!(connected(&mut scene, 2, Way::Network).is_some());
}

#[test]
fn one_program_has_no_more_properties_than_a_list_has_room_for() {
    let mut scene = with_cookie();
    let clients: Vec<u32> = (0..20).map(|_| scene.admitted_of(7)).collect();
    let add = |scene: &mut Scene, client: u32, key: &str| {
        let mut props = Props::new();
        props.set_bytes(text(key), [0; 3000]);
        let update = UpdateClientProplistParams { mode: PropsUpdateMode::Replace, props };
        scene.tell(client, &Command::UpdateClientProplist(update))
    };
    let mut added = 0;
    for (client, key) in clients.iter().flat_map(|client| (0..20).map(move |key| (*client, key))) {
        added += usize::from(add(&mut scene, client, &key.to_string()).is_ok());
    }
    assert_eq!(added, 347, "a megabyte");
    assert_eq!(add(&mut scene, clients[0], "0"), Ok(()), "what is replaced makes room");
    let stream = Command::CreatePlaybackStream(params());
    let refused = scene.ask::<CreatePlaybackStreamReply>(clients[0], &stream);
    assert_eq!(refused.expect_err("they are its properties, too"), PulseError::TooLarge);
    let other = scene.admitted_of(8);
    assert_eq!(add(&mut scene, other, "0"), Ok(()));
    scene.stream(other);
}

#[test]
fn requests_that_are_sent_without_end_are_answered_as_far_as_there_is_room() {
    let mut scene = with_cookie();
    let client = scene.admitted();
    let mut props = Props::new();
    props.set(Prop::ApplicationName, CString::new(vec![b'n'; 3000]).expect("a name"));
    scene.ask::<SetClientNameReply>(client, &Command::SetClientName(props)).expect("named");
    let mut list = Vec::new();
    encode_command_message(&mut list, 7, &Command::GetClientInfoList, MAX_VERSION).expect("bytes");
    scene.send_bytes(client, &list.repeat(4000));
    let sent = scene.sent(client);
    let bytes: usize = sent.iter().map(Vec::len).sum();
    assert!(bytes < 2 * MAX_ANSWERED_BYTES, "{bytes} bytes");
    assert_eq!(sent.last().map(Vec::as_slice), Some(&b"closed"[..]));
    // Another, which takes what it is sent, has as many answers as it wants.
    let client = scene.admitted();
    for _ in 0..4000 {
        let sent = scene.send(client, &Command::GetClientInfoList);
        assert!(sent.len() == 1 && sent[0] != b"closed");
    }
}

#[test]
fn only_programs_of_this_user_that_pass_memfds_share_memory() {
    let mut scene = with_cookie();
    for (way, version, supports_shm, supports_memfd, shares) in [
        (Way::OwnUser, 35, true, true, true),
        (Way::OwnUser, 31, true, true, true),
        (Way::OwnUser, 30, true, true, false),
        (Way::OwnUser, 35, true, false, false),
        (Way::OwnUser, 35, false, true, false),
        (Way::OtherUser, 35, true, true, false),
        (Way::Network, 35, true, true, false),
    ] {
        let client = connected(&mut scene, 2, way).expect("room");
        assert!(!scene.front_end.shares_memory(client));
        let cookie = COOKIE.to_vec();
        let asked = AuthParams { version, supports_shm, supports_memfd, cookie };
        let reply: AuthReply = scene.ask(client, &Command::Auth(asked)).expect("let in");
        assert_eq!((reply.use_shm, reply.use_memfd), (shares, shares), "{way:?} {version}");
        assert_eq!(scene.front_end.shares_memory(client), shares);
    }
}
