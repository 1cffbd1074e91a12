//! Any sequence of operations keeps the graph sound.

use proptest::prelude::*;
use proto::request::PortType;

use super::*;

const LIMITS: Limits = Limits { clients: 6, ports: 20, connections: 30 };

#[derive(Debug, Clone)]
enum Op {
    Open(u8),
    Activate(u32, bool),
    Close(u32),
    Register { client: u32, name: u8, output: bool, midi: bool },
    Unregister { asker: u32, port: u32 },
    Connect(u8, u8, u8, u8),
    Disconnect(u8, u8, u8, u8),
    DisconnectAll(u32),
    Rename(u32, u8),
    Alias(u32, u8, bool),
}

fn op() -> impl Strategy<Value = Op> {
    let (client, port, name) = (1..8_u32, 1..22_u32, 0..4_u8);
    prop_oneof![
        3 => name.clone().prop_map(Op::Open),
        4 => (client.clone(), prop::bool::weighted(0.8)).prop_map(|(client, active)| Op::Activate(client, active)),
        1 => client.clone().prop_map(Op::Close),
        6 => (client.clone(), name.clone(), any::<bool>(), prop::bool::weighted(0.2))
            .prop_map(|(client, name, output, midi)| Op::Register { client, name, output, midi }),
        1 => (client, port.clone()).prop_map(|(asker, port)| Op::Unregister { asker, port }),
        9 => (name.clone(), name.clone(), name.clone(), name.clone()).prop_map(|(a, b, c, d)| Op::Connect(a, b, c, d)),
        2 => (name.clone(), name.clone(), name.clone(), name.clone()).prop_map(|(a, b, c, d)| Op::Disconnect(a, b, c, d)),
        1 => port.clone().prop_map(Op::DisconnectAll),
        1 => (port.clone(), name.clone()).prop_map(|(port, name)| Op::Rename(port, name)),
        1 => (port, name, any::<bool>()).prop_map(|(port, name, set)| Op::Alias(port, name, set)),
    ]
}

fn full(client: u8, port: u8) -> String {
    format!("c{client}:p{port}")
}

fn apply(model: &mut Model, op: Op) {
    let before = format!("{model:?}");
    let result = match op {
        Op::Open(name) => model.open_client(&format!("c{name}"), false).map(drop),
        Op::Activate(client, active) => {
            model.set_active(client, active);
            Ok(())
        }
        Op::Close(client) => {
            model.close_client(client);
            Ok(())
        }
        Op::Register { client, name, output, midi } => {
            let flags = if output { port_flags::OUTPUT } else { port_flags::INPUT };
            let port_type = if midi { PortType::Midi } else { PortType::Audio };
            let new = NewPort { name: format!("p{name}"), port_type, flags, number: 0, slot: None };
            model.register_port(client, &new).map(drop)
        }
        Op::Unregister { asker, port } => model.unregister_port(asker, port),
        Op::Connect(a, b, c, d) => model.connect(&full(a, b), &full(c, d)).map(drop),
        Op::Disconnect(a, b, c, d) => model.disconnect(&full(a, b), &full(c, d)),
        Op::DisconnectAll(port) => model.disconnect_all(port),
        Op::Rename(port, name) => model.rename_port(port, &format!("p{name}")),
        Op::Alias(port, name, true) => model.set_alias(port, &format!("a{name}")),
        Op::Alias(port, name, false) => model.unset_alias(port, &format!("a{name}")),
    };
    if result.is_err() {
        assert_eq!(before, format!("{model:?}"), "a refused operation changes nothing");
    }
}

fn check(model: &Model) {
    let mut connections = 0;
    for port in model.ports.values() {
        assert!(model.clients[&port.owner].ports.contains(&port.id));
        assert_eq!(model.port_names[&port.name], port.id);
        assert!(port.aliases.len() <= ALIASES);
        for link in &port.links {
            let other = &model.ports[&link.other];
            assert!(
                other.links.contains(&Link { other: port.id, age: link.age }),
                "known at both ends"
            );
            assert_eq!(other.port_type, port.port_type);
            assert!(other.is_output() != port.is_output());
            assert!(model.clients[&port.owner].active);
            connections += 1;
        }
    }
    assert_eq!(connections, 2 * model.connections);
    assert_eq!(model.port_names.len(), model.ports.len());
    assert_eq!(model.client_names.len(), model.clients.len());
    assert!(
        model.ports.len() <= LIMITS.ports as usize
            && model.clients.len() <= LIMITS.clients as usize
    );
}

proptest! {
    #[test]
    fn any_sequence_of_operations_keeps_the_graph_sound(ops in prop::collection::vec(op(), 0..120)) {
        let mut model = Model::new(LIMITS);
        for op in ops {
            apply(&mut model, op);
            check(&model);
        }
    }
}

#[test]
fn a_taken_name_is_numbered_unless_it_must_be_exact() {
    let mut model = Model::new(LIMITS);
    let first = model.open_client("metro", true).unwrap();
    let second = model.open_client("metro", false).unwrap();
    assert_eq!(
        (&*model.client(first).unwrap().name, &*model.client(second).unwrap().name),
        ("metro", "metro-01")
    );
    assert_eq!(model.open_client("metro", true), Err(RequestError::NameTaken("metro".into())));
}

#[test]
fn an_unknown_port_is_answered_with_the_nearest_name() {
    let mut model = Model::new(LIMITS);
    let client = model.open_client("system", true).unwrap();
    let flags = port_flags::INPUT;
    let new = NewPort {
        name: "playback_1".into(),
        port_type: PortType::Audio,
        flags,
        number: 0,
        slot: None,
    };
    model.register_port(client, &new).unwrap();
    let error = model.suggest(model.find("system:playbak_1").unwrap_err());
    assert_eq!(
        error.to_string(),
        "there is no port 'system:playbak_1': did you mean 'system:playback_1'?"
    );
}

#[test]
fn ids_are_used_again_only_when_no_fresh_one_is_left() {
    let mut ids = Ids::new(3);
    let first = ids.take().unwrap();
    ids.give_back(first);
    assert_eq!([ids.take(), ids.take(), ids.take(), ids.take()], [Some(2), Some(3), Some(1), None]);
}
