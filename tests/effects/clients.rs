//! Names of clients.

use harness::Server;

use crate::actors::Step::{A, B, Status};
use crate::actors::{Actor, Row, take};

const CLIENTS: &[Row] = &[
    (
        "jack_get_client_name tells the name that others know",
        &[
            A("get_client_name", "a"),
            Status("/clients/0/name", r#""a""#),
            Status("/clients/1/name", r#""b""#),
        ],
    ),
    (
        "a client's uuid leads another process to its name, and back",
        &[
            B("uuid_and_back a", "a"),
            B("uuid_and_back b", "b"),
            B("get_uuid_for_client_name nobody", "(null)"),
            B("get_client_name_by_uuid 12", "(null)"),
            B("get_client_name_by_uuid nonsense", "(null)"),
            B("get_client_pid nobody", "0"),
        ],
    ),
];

#[test]
fn clients_are_known_to_others_by_name_and_uuid() {
    take(CLIENTS);
}

#[test]
fn the_uuid_that_a_client_has_is_the_one_that_another_process_finds() {
    let server = Server::timer(256);
    let (mut a, _) = Actor::open(&server, "a", "a", "");
    let (mut b, _) = Actor::open(&server, "b", "b", "");
    let uuid = a.ask("client_get_uuid");
    assert_eq!(b.ask("get_uuid_for_client_name a"), uuid);
    assert_eq!(b.ask(&format!("get_client_name_by_uuid {uuid}")), "a");
    assert_ne!(b.ask("client_get_uuid"), uuid);
    assert_eq!(b.ask("get_client_pid a"), a.id().to_string());
    for (port, owner) in [("left", "a"), ("right", "a")] {
        assert_eq!(a.ask(&format!("port_register {port} audio o")), "ok");
        let name = format!("{owner}:{port}");
        assert_eq!(b.ask(&format!("port_uuid {name}")), a.ask(&format!("port_uuid {name}")));
    }
    assert_ne!(b.ask("port_uuid a:left"), b.ask("port_uuid a:right"));
}

#[test]
fn a_taken_name_is_changed_or_refused_by_the_options() {
    let server = Server::timer(256);
    let (mut first, opened) = Actor::open(&server, "first", "synth", "exact");
    assert_eq!(opened, "opened 0x0 synth");
    // JackNameNotUnique
    let (mut second, opened) = Actor::open(&server, "second", "synth", "");
    assert_eq!(opened, "opened 0x4 synth-01");
    assert_eq!(second.ask("get_client_name"), "synth-01");
    // JackFailure | JackNameNotUnique, and JackServerError, as in JACK2.
    let (_refused, opened) = Actor::open(&server, "third", "synth", "exact");
    assert_eq!(opened, "refused 0x25");
    // jack_client_new has no status.
    let (_refused, opened) = Actor::open(&server, "fourth", "synth", "new");
    assert_eq!(opened, "refused 0x0");
    let (mut new, opened) = Actor::open(&server, "fifth", "drums", "new");
    assert_eq!(opened, "opened 0x0 drums");
    assert_eq!(first.ask("uuid_and_back drums"), "drums");
    assert_eq!(new.ask("client_close"), "0");
    assert_eq!(first.ask("uuid_and_back synth-01"), "synth-01");
    assert_eq!(first.ask("uuid_and_back synth-02"), "(null)");
    assert_eq!(first.ask("client_close"), "0");
    let (_again, opened) = Actor::open(&server, "again", "synth", "exact");
    assert_eq!(opened, "opened 0x0 synth");
}

#[test]
fn a_ports_uuid_is_made_from_the_number_that_others_know_it_by() {
    let server = Server::timer(256);
    let (mut a, _) = Actor::open(&server, "a", "a", "");
    let (mut b, _) = Actor::open(&server, "b", "b", "");
    assert_eq!(a.ask("port_register out audio o"), "ok");
    let ports = server.consort_json(&["ls"]);
    let port = ports.as_array().and_then(|ports| ports.iter().find(|port| port["name"] == "a:out"));
    let number = port.and_then(|port| port["id"].as_u64()).expect("the port is listed");
    for actor in [&mut a, &mut b] {
        assert_eq!(actor.ask("port_uuid_number a:out"), format!("0 the same {number}"));
    }
}

#[test]
fn a_name_is_reserved_for_the_client_of_a_uuid() {
    let server = Server::timer(256);
    let (mut a, _) = Actor::open(&server, "a", "a", "");
    let (mut b, _) = Actor::open(&server, "b", "b", "");
    assert_eq!(b.ask("client_has_session_callback a"), "0");
    assert_eq!(b.ask("client_has_session_callback nobody"), "-1");
    assert_eq!(a.ask("reserve_client_name synth 8589944592"), "0");
    let (_other, opened) = Actor::open(&server, "other", "synth", "");
    assert_ne!(opened, "opened 0x0 synth");
}
