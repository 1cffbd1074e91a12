//! Plans of small graphs, built without sockets or processes.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use proto::port_flags;
use proto::request::{NewPort, PortType, SlabSlot};
use rt::shm::{Assignments, OwnPage};
use sys::memory::{OwnSlab, PeerSlab, Shared};

use super::{ClientView, GraphView, Plan, Sleep, build};
use crate::client_health::ClientHealth;
use crate::mapped::MappedTable;
use crate::model::{Limits, Model};
use crate::order::{Order, order};
use crate::realtime_limits::Locking;
use crate::signal_pages::SignalPages;
use crate::slab::Slab;

const QUANTUM: u32 = 16;

/// The memory of one client.
struct Memory {
    assignments: Arc<Shared<Assignments>>,
    own: Arc<Shared<OwnPage>>,
    signals: SignalPages,
    slabs: Vec<Slab>,
    mapped_pages: MappedTable<(u32, u32)>,
    mapped_slabs: MappedTable<(u32, u32)>,
    health: Arc<ClientHealth>,
}

impl Memory {
    fn create() -> Self {
        Self {
            own: Arc::new(Shared::for_writers("test-own").unwrap().0),
            assignments: Arc::new(Shared::for_readers("test-assignments").unwrap().0),
            signals: SignalPages::create().unwrap(),
            slabs: vec![slab()],
            mapped_pages: MappedTable::default(),
            mapped_slabs: MappedTable::default(),
            health: Arc::default(),
        }
    }

    fn view(&self) -> ClientView<'_> {
        ClientView {
            own: &self.own,
            assignments: &self.assignments,
            signals: &self.signals,
            slabs: &self.slabs,
            mapped_pages: &self.mapped_pages,
            mapped_slabs: &self.mapped_slabs,
            health: &self.health,
            sleep: Sleep::Absent,
            controls: true,
            cpu: None,
        }
    }

    fn map_page(&mut self, of: u32) {
        self.mapped_pages.ask((of, 0), 0);
        self.mapped_pages.answer((of, 0), true);
    }

    fn map_slab(&mut self, of: u32) {
        self.mapped_slabs.ask((of, 0), 0);
        self.mapped_slabs.answer((of, 0), true);
    }
}

fn slab() -> Slab {
    let own = OwnSlab::create().unwrap();
    let memory = own.segment().fd().try_clone_to_owned().unwrap();
    let peer = PeerSlab::map(own.segment()).unwrap();
    let mut slab = Slab::new(memory, peer);
    slab.make_present(0, QUANTUM, Locking::Nothing).unwrap();
    slab
}

fn add_client(model: &mut Model, name: &str) -> u32 {
    let client = model.open_client(name, true).unwrap();
    add_ports(model, client);
    model.set_active(client, true);
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

/// A driver and two clients: driver → writer → reader → driver.
struct Scenario {
    model: Model,
    order: Order,
    writer: u32,
    reader: u32,
    memory: HashMap<u32, Memory>,
    device_slabs: BTreeMap<u32, Vec<Slab>>,
}

impl Scenario {
    fn new() -> Self {
        let mut model = Model::new(Limits { clients: 8, ports: 16, connections: 16 });
        let driver = model.open_device("system").unwrap();
        add_ports(&mut model, driver);
        let (writer, reader) = (add_client(&mut model, "writer"), add_client(&mut model, "reader"));
        for (source, destination) in
            [("system:out", "writer:in"), ("writer:out", "reader:in"), ("reader:out", "system:in")]
        {
            model.connect(source, destination).unwrap();
        }
        let order = order(&model, &[writer, reader]);
        let memory = [writer, reader].map(|client| (client, Memory::create())).into();
        Self { model, order, writer, reader, memory, device_slabs: [(driver, vec![slab()])].into() }
    }

    fn memory(&mut self, client: u32) -> &mut Memory {
        self.memory.get_mut(&client).unwrap()
    }

    fn build(&self, captures: bool) -> (Plan, HashMap<u32, Vec<u32>>) {
        let clients = self.memory.iter().map(|(client, memory)| (*client, memory.view()));
        let graph = GraphView {
            model: &self.model,
            order: &self.order,
            clients: clients.collect(),
            device_slabs: &self.device_slabs,
            captures,
            driver_waits: false,
            quantum: QUANTUM,
            driver_cpu: None,
        };
        let mut plan = Plan::default();
        let assignments = build(&mut plan, &graph);
        (plan, assignments)
    }

    /// Number of followers that the writer signals.
    fn followers(&self) -> usize {
        let (plan, _) = self.build(true);
        plan.seats.iter().find(|seat| seat.client == self.writer).unwrap().followers.len()
    }
}

#[test]
fn an_edge_waits_for_the_signal_page_of_its_reader() {
    let mut scenario = Scenario::new();
    let (writer, reader) = (scenario.writer, scenario.reader);
    assert_eq!(scenario.followers(), 0);
    scenario.memory(writer).mapped_pages.ask((reader, 0), 0);
    assert_eq!(scenario.followers(), 0, "asked, not answered");
    scenario.memory(writer).map_page(reader);
    assert_eq!(scenario.followers(), 1);
}

#[test]
fn an_input_is_silent_until_its_reader_has_mapped_the_slab() {
    let mut scenario = Scenario::new();
    let (writer, reader) = (scenario.writer, scenario.reader);
    scenario.memory(writer).map_page(reader);
    let silent = scenario.build(true).1[&reader].len();
    scenario.memory(reader).map_slab(writer);
    let sounding = scenario.build(true).1[&reader].len();
    assert!(sounding > silent, "{sounding} words, {silent} before");
}

#[test]
fn in_freewheel_the_driver_captures_nothing() {
    let mut scenario = Scenario::new();
    let writer = scenario.writer;
    let driver = scenario.model.driver().unwrap();
    scenario.memory(writer).map_slab(driver);
    let words = |captures| scenario.build(captures).1[&writer].len();
    assert!(words(true) > words(false));
}

#[test]
fn a_client_that_does_not_run_plays_into_no_driver() {
    let mut scenario = Scenario::new();
    assert_eq!(scenario.build(true).0.playback[0].len(), 1);
    scenario.order = order(&scenario.model, &[scenario.writer]);
    assert_eq!(scenario.build(true).0.playback[0].len(), 0);
}

#[test]
fn only_clients_that_are_heard_in_a_playback_port_feed_it() {
    let mut scenario = Scenario::new();
    let (writer, reader) = (scenario.writer, scenario.reader);
    let feeders = |scenario: &Scenario| {
        let (plan, _) = scenario.build(true);
        let feeders = plan.seats.iter().filter(|seat| seat.feeds_playback);
        feeders.map(|seat| seat.client).collect::<Vec<u32>>()
    };
    assert_eq!(feeders(&scenario), [reader], "the reader does not hear the writer yet");
    scenario.memory(writer).map_page(reader);
    assert_eq!(feeders(&scenario), [writer, reader], "one by way of the other");
    scenario.model.disconnect("reader:out", "system:in").unwrap();
    assert_eq!(feeders(&scenario), [0; 0]);
    scenario.model.connect("writer:out", "system:in").unwrap();
    assert_eq!(feeders(&scenario), [writer], "its follower is not waited for");
}
