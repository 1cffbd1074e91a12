//! Clients without processes or sockets.

use std::collections::BTreeMap;

use device::Channels;
use proto::event::Event;
use proto::port_flags;
use proto::request::{NewPort, PortType, SlabSlot};
use sys::clock::now_ns;

use super::super::questions::Tokens;
use super::Clients;
use crate::client_slot::{ClientMemory, ClientSlot, Origin};
use crate::driver_swap::capture_slabs;
use crate::model::{Limits, Model};
use crate::order::order;
use crate::outbox::FlushOutcome;
use crate::policy::Permissions;
use crate::realtime_limits::Locking;
use crate::signal_pages::NEWCOMERS_PATIENCE_NS;
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
    let slabs = BTreeMap::from([(device, capture_slabs(&[], 1).unwrap().1)]);
    let mut clients = Clients::new(slabs, Tokens::after(100), Locking::Nothing);
    let ids = names.iter().map(|name| add(&mut model, &mut clients, name)).collect();
    model.take_changes();
    Program { model, clients, ids }
}

fn add(model: &mut Model, clients: &mut Clients, name: &str) -> u32 {
    let client = model.open_client(name, true).unwrap();
    add_ports(model, client);
    model.set_active(client, true);
    let (mut memory, _) = ClientMemory::create().unwrap();
    memory.slabs = capture_slabs(&[], 1).unwrap().1;
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

/// `writer → reader` and `other → reader` in a plan with closed pages; `other` has just connected.
/// Returns the tokens that ask the reader, the writer and the other for a fresh page.
fn with_newcomer() -> (Program, [u64; 3]) {
    let mut program = programs(&["writer", "reader", "other"]);
    let [writer, reader, other] = program.ids[..] else { panic!("three") };
    program.model.connect("writer:out", "reader:in").unwrap();
    ask(&mut program);
    let page = page_token(&mut program.clients, writer);
    assert!(program.clients.mapping_answered(writer, page, true));
    events(&mut program.clients, reader);
    for slot in program.clients.slots.values_mut() {
        slot.memory.close_to_writers(Locking::Nothing).unwrap();
    }
    program.model.connect("other:out", "reader:in").unwrap();
    // The second time the page is there, and all predecessors are asked.
    ask(&mut program);
    ask(&mut program);
    let asked = [reader, writer, other].map(|client| page_token(&mut program.clients, client));
    (program, asked)
}

/// The token of the one question to `client` that concerns a signal page.
fn page_token(clients: &mut Clients, client: u32) -> u64 {
    let tokens: Vec<u64> = events(clients, client)
        .iter()
        .filter_map(|event| match event {
            Event::MapSignals { token, .. } | Event::MapOwnSignals { token, .. } => Some(*token),
            _ => None,
        })
        .collect();
    assert_eq!(tokens.len(), 1, "questions to client {client}");
    tokens[0]
}

fn take_up(program: &mut Program, now_ns: u64) -> u32 {
    let order = order(&program.model, &program.ids);
    program.clients.take_up_signal_pages(&order, now_ns);
    program.clients.slots[&program.ids[1]].memory.signals.current().number
}

/// Before every page is overdue.
const EARLY_NS: u64 = 0;
/// When nothing is waited for any more.
const LATE_NS: u64 = u64::MAX;

/// When new predecessors have had their time, and those that are heard have not.
fn late_for_newcomers_ns() -> u64 {
    now_ns() + NEWCOMERS_PATIENCE_NS
}

#[test]
fn a_new_predecessor_is_given_a_page_that_all_have_mapped() {
    let (mut program, [own, page, new_page]) = with_newcomer();
    let [writer, reader, other] = program.ids[..] else { panic!("three") };
    for (client, token) in [(reader, own), (other, new_page)] {
        assert!(program.clients.mapping_answered(client, token, true));
        let now_ns = late_for_newcomers_ns();
        assert_eq!(take_up(&mut program, now_ns), 0, "the writer would become silent");
    }
    assert!(program.clients.have_unanswered_mappings(other, reader), "it is not heard yet");
    assert!(program.clients.mapping_answered(writer, page, true));
    assert_eq!(take_up(&mut program, EARLY_NS), 1);
    let page = &program.clients.slots[&reader].memory.signals;
    assert!(page.current().memory().is_none(), "no further client can map it");
}

#[test]
fn a_new_predecessor_that_maps_nothing_is_waited_for_briefly() {
    let (mut program, [own, page, _]) = with_newcomer();
    let [writer, reader, other] = program.ids[..] else { panic!("three") };
    assert!(program.clients.mapping_answered(reader, own, true));
    assert!(program.clients.mapping_answered(writer, page, true));
    assert_eq!(take_up(&mut program, LATE_NS), 0, "no other client gains by another page");
    // Another predecessor does.
    let third = add(&mut program.model, &mut program.clients, "third");
    program.model.connect("third:out", "reader:in").unwrap();
    program.ids.push(third);
    ask(&mut program);
    let token = page_token(&mut program.clients, third);
    assert!(program.clients.mapping_answered(third, token, true));
    assert_eq!(take_up(&mut program, EARLY_NS), 0, "it has its time");
    assert_eq!(take_up(&mut program, LATE_NS), 1);
    let knows = |client: u32| program.clients.slots[&client].pages.mapped((reader, 1)).is_some();
    assert!(knows(writer) && knows(third) && !knows(other));
}

#[test]
fn a_predecessor_that_maps_nothing_falls_silent() {
    let (mut program, [own, page, new_page]) = with_newcomer();
    let [writer, reader, other] = program.ids[..] else { panic!("three") };
    for (client, token) in [(reader, own), (other, new_page)] {
        assert!(program.clients.mapping_answered(client, token, true));
    }
    assert_eq!(take_up(&mut program, LATE_NS), 1);
    let knows = |clients: &Clients, client: u32, page: u32| {
        clients.slots[&client].pages.mapped((reader, page)).is_some()
    };
    assert!(knows(&program.clients, other, 1) && !knows(&program.clients, writer, 1));
    // It answers at last, and is heard with the page after.
    assert!(program.clients.mapping_answered(writer, page, false), "a plan is needed");
    program.clients.leave_signal_page(reader, 1);
    ask(&mut program);
    ask(&mut program);
    for client in [reader, writer, other] {
        let token = page_token(&mut program.clients, client);
        assert!(program.clients.mapping_answered(client, token, true));
    }
    assert_eq!(take_up(&mut program, EARLY_NS), 2);
    assert!(knows(&program.clients, writer, 2));
}

#[test]
fn a_predecessor_that_maps_nothing_is_heard_while_no_client_gains_by_its_silence() {
    let (mut program, [own, ..]) = with_newcomer();
    let reader = program.ids[1];
    assert!(program.clients.mapping_answered(reader, own, true));
    assert_eq!(take_up(&mut program, LATE_NS), 0);
    // A former neighbour that holds the page is reason enough.
    program.clients.revoke_pages(&[(reader, 0)]);
    assert_eq!(take_up(&mut program, late_for_newcomers_ns()), 0);
    assert_eq!(take_up(&mut program, LATE_NS), 1);
}

#[test]
fn a_page_that_its_client_could_not_map_is_not_taken_for_the_next_one() {
    let (mut program, [own, _, new_page]) = with_newcomer();
    let [_, reader, other] = program.ids[..] else { panic!("three") };
    assert!(program.clients.mapping_answered(other, new_page, true));
    assert!(!program.clients.mapping_answered(reader, own, false));
    assert!(program.clients.slots[&other].pages.is_unknown((reader, 1)));
    assert!(matches!(events(&mut program.clients, other)[..], [Event::UnmapSignals { .. }]));
}
