//! What is remembered of clients that go, and restored when they come back.

use proto::property::client_uuid;
use proto::request::{NewPort, PortType};

use super::super::Limits;
use super::*;

fn model() -> Model {
    let mut model = Model::new(Limits { clients: 8, ports: 16, connections: 16 });
    model.keep_what_goes();
    open(&mut model, "system", &[("in", 1)]);
    model
}

/// Opens and activates a client with these ports (name, flags).
fn open(model: &mut Model, name: &str, ports: &[(&str, u32)]) -> u32 {
    let client = model.open_client(name, true).unwrap();
    for (name, flags) in ports {
        let port_type = PortType::Audio;
        let new = NewPort { name: (*name).into(), port_type, flags: *flags, number: 0, slot: None };
        model.register_port(client, &new).unwrap();
    }
    model.set_active(client, true);
    client
}

fn connection(source: &str, destination: &str) -> Connection {
    Connection { source: source.into(), destination: destination.into() }
}

fn property(subject: u64, key: &str, text: &str) -> Property {
    let value = PropertyValue { text: text.into(), type_name: "t".into() };
    Property { subject, key: key.into(), value }
}

/// A model in which a synth with connections, an alias and properties has gone.
fn with_a_synth_that_went() -> (Model, State) {
    let mut model = model();
    let synth = open(&mut model, "synth", &[("out", 2), ("other", 2)]);
    model.connect("synth:out", "system:in").unwrap();
    model.connect("synth:other", "system:in").unwrap();
    let out = model.port_named("synth:out").unwrap().id;
    model.set_alias(out, "main").unwrap();
    model.set_property(property(client_uuid(synth), "k", "client's")).unwrap();
    model.set_property(property(port_uuid(out), "k", "port's")).unwrap();
    let state = model.state(None, None);
    model.close_client(synth);
    (model, state)
}

#[test]
fn a_client_that_comes_back_under_its_name_has_what_it_had() {
    let (mut model, before) = with_a_synth_that_went();
    assert_eq!(model.state(None, None), before, "while it is gone");
    let synth = open(&mut model, "synth", &[("out", 2), ("other", 2)]);
    let due = model.take_due();
    assert_eq!(due, [connection("synth:out", "system:in"), connection("synth:other", "system:in")]);
    for Connection { source, destination } in due {
        model.connect(&source, &destination).unwrap();
    }
    assert_eq!(model.state(None, None), before);
    assert_eq!(model.property(client_uuid(synth), "k").unwrap().text, "client's");
    assert_eq!(
        model.remembered.by_age.len() + model.remembered.by_name.len() + model.remembered.bytes,
        0,
        "all is given"
    );
}

#[test]
fn a_model_restores_an_expected_state_to_clients_that_come() {
    let (_, before) = with_a_synth_that_went();
    let mut model = model();
    model.expect(&before);
    assert_eq!(model.state(None, None), before);
    open(&mut model, "another", &[("out", 2)]);
    assert_eq!(model.take_due(), []);
    open(&mut model, "synth", &[("out", 2)]);
    assert_eq!(model.take_due(), [connection("synth:out", "system:in")], "the port that is there");
    assert_eq!(model.port_named("synth:out").unwrap().aliases, ["main"]);
    model.stop_expecting();
    open(&mut model, "x", &[]);
    assert_eq!(model.state(None, None).connections, []);
}

#[test]
fn deliberately_removed_items_are_not_remembered() {
    let (mut model, _) = with_a_synth_that_went();
    let synth = open(&mut model, "synth", &[("out", 2), ("other", 2)]);
    for Connection { source, destination } in model.take_due() {
        model.connect(&source, &destination).unwrap();
    }
    let out = model.port_named("synth:out").unwrap().id;
    model.disconnect("synth:out", "system:in").unwrap();
    model.disconnect_all(model.port_named("synth:other").unwrap().id).unwrap();
    model.unset_alias(out, "main").unwrap();
    model.remove_property(port_uuid(out), "k").unwrap();
    model.remove_properties(client_uuid(synth));
    model.close_client(synth);
    assert_eq!(model.state(None, None), State::default());
}

#[test]
fn a_renamed_port_recovers_what_is_remembered_for_its_new_name() {
    let (mut model, _) = with_a_synth_that_went();
    open(&mut model, "synth", &[("new", 2)]);
    let port = model.port_named("synth:new").unwrap().id;
    model.rename_port(port, "out").unwrap();
    assert_eq!(model.take_due(), [connection("synth:out", "system:in")]);
    assert_eq!(model.port(port).unwrap().aliases, ["main"]);
    assert_eq!(model.property(port_uuid(port), "k").unwrap().text, "port's");
}

#[test]
fn a_connection_that_waits_for_its_other_end_follows_a_new_name() {
    let (mut model, _) = with_a_synth_that_went();
    let port = model.port_named("system:in").unwrap().id;
    model.rename_port(port, "first").unwrap();
    open(&mut model, "synth", &[("out", 2)]);
    assert_eq!(model.take_due(), [connection("synth:out", "system:first")]);
}

#[test]
fn a_returning_client_overrides_the_remembered_connections() {
    let (mut model, _) = with_a_synth_that_went();
    let synth = open(&mut model, "synth", &[("out", 2)]);
    model.take_due();
    model.trust_connections_of(synth);
    assert_eq!(model.state(None, None).connections, [connection("synth:other", "system:in")]);
}

#[test]
fn only_the_newest_remembered_items_fit_the_limit() {
    let mut model = model();
    let large = "x".repeat(40_000);
    for number in 0..200 {
        let client = open(&mut model, &format!("client-{number}"), &[]);
        model.set_property(property(client_uuid(client), "k", &large)).unwrap();
        model.close_client(client);
    }
    let kept = model.state(None, None).properties;
    assert!((90..110).contains(&kept.len()), "{}", kept.len());
    assert_eq!(kept.last().unwrap().owner, Owner::Client("client-199".into()));
    assert!(model.remembered.bytes <= LIMIT_BYTES);
}

#[test]
fn only_the_newest_items_of_a_name_are_remembered() {
    let mut remembered = RememberedGraph::default();
    let put = |remembered: &mut RememberedGraph, number: usize| {
        let source = connection("synth:out", &format!("mixer:in_{number}"));
        let destination = connection(&format!("synth:out_{number}"), "mixer:in");
        remembered.put(RememberedItem::Connection(source));
        remembered.put(RememberedItem::Connection(destination));
    };
    (0..2 * MOST_OF_A_NAME).for_each(|number| put(&mut remembered, number));
    for name in ["synth:out", "mixer:in"] {
        let kept = remembered.connections_of(name);
        assert_eq!(kept.len(), MOST_OF_A_NAME, "{name}");
        let (_, oldest) = &kept[0];
        let names = [&oldest.source, &oldest.destination];
        assert!(names.iter().any(|name| name.ends_with("_1024")), "{names:?}");
    }
    // One that is there already makes no other go.
    put(&mut remembered, 2 * MOST_OF_A_NAME - 1);
    assert_eq!(remembered.connections_of("synth:out").len(), MOST_OF_A_NAME);
}

#[test]
fn a_server_that_keeps_no_state_keeps_nothing_of_what_goes() {
    let mut model = Model::new(Limits { clients: 8, ports: 16, connections: 16 });
    let client = open(&mut model, "synth", &[("out", 2), ("in", 1)]);
    model.connect("synth:out", "synth:in").unwrap();
    model.close_client(client);
    assert_eq!(model.state(None, None), State::default());
}
