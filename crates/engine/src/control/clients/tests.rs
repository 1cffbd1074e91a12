//! Clients without processes or sockets.

use std::collections::BTreeMap;

use device::Channels;
use proto::event::Event;
use proto::port_flags;
use proto::request::{NewPort, PortType, SlabSlot};

use super::super::questions::Tokens;
use super::Clients;
use crate::client_slot::{ClientMemory, ClientSlot, Origin};
use crate::driver_swap::capture_slabs;
use crate::model::{Limits, Model};
use crate::order::order;
use crate::outbox::FlushOutcome;
use crate::policy::Permissions;
use crate::supervision::ClientSupervision;

/// A model with the device `system` and active clients, each with an input and an output.
pub(in super::super) struct Program {
    pub(in super::super) model: Model,
    pub(in super::super) clients: Clients,
    /// The clients' ids, in the order of their names.
    pub(in super::super) ids: Vec<u32>,
}

pub(in super::super) fn programs(names: &[&str]) -> Program {
    let mut model = Model::new(Limits { clients: 8, ports: 32, connections: 32 });
    let device = model.open_device("system").unwrap();
    let channels = Channels { capture: 1, playback: 1, monitors: 0 };
    model.set_channels(device, &channels).unwrap();
    let slabs = BTreeMap::from([(device, capture_slabs(1, 16).unwrap().1)]);
    let mut clients = Clients::new(slabs, Tokens::after(100));
    let ids = names.iter().map(|name| add(&mut model, &mut clients, name)).collect();
    model.take_changes();
    Program { model, clients, ids }
}

fn add(model: &mut Model, clients: &mut Clients, name: &str) -> u32 {
    let client = model.open_client(name, true).unwrap();
    add_ports(model, client);
    model.set_active(client, true);
    let (mut memory, _) = ClientMemory::create().unwrap();
    memory.slabs = capture_slabs(1, 16).unwrap().1;
    let program = (u64::from(client), None, Permissions::ALL);
    let supervision = ClientSupervision::new(false);
    let slot = ClientSlot::new(program, memory, (Origin::New, 16), supervision);
    clients.slots.insert(client, slot);
    client
}

fn add_ports(model: &mut Model, client: u32) {
    for (name, flags) in [("in", port_flags::INPUT), ("out", port_flags::OUTPUT)] {
        let slot = (flags == port_flags::OUTPUT).then_some(SlabSlot { slab: 0, slot: 0 });
        let (name, port_type) = (name.into(), PortType::Audio);
        let new = NewPort { name, port_type, flags, number: 0, slot };
        model.register_port(client, &new).unwrap();
    }
}

/// The events that wait for a client.
fn events(clients: &mut Clients, client: u32) -> Vec<Event> {
    let mut events = Vec::new();
    let outbox = &mut clients.slots.get_mut(&client).unwrap().outbox;
    let flushed = outbox.flush(|packet, _| {
        events.push(proto::decode(packet).unwrap());
        Ok(())
    });
    assert_eq!(flushed, FlushOutcome::All);
    events
}

/// A writer and a reader that are connected, and the tokens of the mappings that they were asked
/// for.
fn connected() -> (Program, u64, u64) {
    let mut program = programs(&["writer", "reader"]);
    program.model.connect("writer:out", "reader:in").unwrap();
    ask(&mut program);
    let (writer, reader) = (program.ids[0], program.ids[1]);
    let Event::MapSignals { token: page, .. } = events(&mut program.clients, writer)[0] else {
        panic!("the writer is asked to map its follower's signal page");
    };
    let Event::MapSlab { token: slab, .. } = events(&mut program.clients, reader)[0] else {
        panic!("the reader is asked to map the writer's slab");
    };
    (program, page, slab)
}

fn ask(program: &mut Program) {
    let Program { model, clients, ids } = program;
    let order = order(model, ids);
    clients.ask_for_mappings(model, ids, &order, 0);
}

#[test]
fn a_connection_waits_until_both_ends_have_mapped_what_it_needs() {
    let (mut program, page, slab) = connected();
    let (writer, reader) = (program.ids[0], program.ids[1]);
    let clients = &mut program.clients;
    assert!(clients.have_unanswered_mappings(writer, reader));
    assert!(!clients.mapping_answered(reader, page, true), "another client's question");
    assert!(clients.mapping_answered(writer, page, true));
    assert!(!clients.mapping_answered(writer, page, true), "a second answer");
    assert!(clients.have_unanswered_mappings(reader, writer));
    assert!(clients.mapping_answered(reader, slab, true));
    assert!(!clients.have_unanswered_mappings(writer, reader));
}

#[test]
fn a_client_is_asked_again_only_for_mappings_that_failed() {
    let (mut program, page, _) = connected();
    let writer = program.ids[0];
    ask(&mut program);
    assert_eq!(events(&mut program.clients, writer), []);
    assert!(!program.clients.mapping_answered(writer, page, false));
    ask(&mut program);
    assert_eq!(events(&mut program.clients, writer).len(), 1);
}

#[test]
fn a_client_that_leaves_is_waited_for_by_no_connection() {
    let (mut program, page, _) = connected();
    let (writer, reader) = (program.ids[0], program.ids[1]);
    let clients = &mut program.clients;
    clients.slots.remove(&reader);
    clients.forget_mappings_of(reader, 1);
    assert!(!clients.have_unanswered_mappings(writer, reader));
    assert!(!clients.mapping_answered(writer, page, true), "the answer comes too late");
    assert!(matches!(events(clients, writer)[..], [Event::UnmapSignals { .. }]));
}

#[test]
fn memory_of_a_client_that_has_left_is_not_sent_any_more() {
    let mut program = programs(&["writer", "reader"]);
    program.model.connect("writer:out", "reader:in").unwrap();
    ask(&mut program);
    let (writer, reader) = (program.ids[0], program.ids[1]);
    program.clients.slots.remove(&reader);
    program.clients.forget_mappings_of(reader, 1);
    assert_eq!(events(&mut program.clients, writer), []);
}
