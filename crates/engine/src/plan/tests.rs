//! Plans of small graphs, built without sockets or processes.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use proto::port_flags;
use proto::request::{NewPort, PortType, SlabSlot};
use rt::shm::{AssignmentReader, Assignments, OwnPage};
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

    fn view(&self, cpu: Option<u32>) -> ClientView<'_> {
        ClientView {
            own: &self.own,
            assignments: &self.assignments,
            signals: &self.signals,
            slabs: &self.slabs,
            mapped_pages: &self.mapped_pages,
            mapped_slabs: &self.mapped_slabs,
            health: &self.health,
            thread: None,
            sleep: Sleep::Absent,
            controls: true,
            cpu,
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
    /// The CPUs of the clients; the driver's is 0.
    cpus: HashMap<u32, u32>,
    wakes_early: bool,
    stream_slabs: BTreeMap<(u32, u32), Slab>,
    recorders: Vec<(u32, Vec<u32>)>,
    driver_captures: bool,
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
        let device_slabs = [(driver, vec![slab()])].into();
        Self {
            model,
            order,
            writer,
            reader,
            memory,
            device_slabs,
            cpus: HashMap::new(),
            wakes_early: false,
            stream_slabs: BTreeMap::new(),
            recorders: Vec::new(),
            driver_captures: true,
        }
    }

    fn memory(&mut self, client: u32) -> &mut Memory {
        self.memory.get_mut(&client).unwrap()
    }

    fn build(&self, captures: bool) -> (Plan, HashMap<u32, Vec<u32>>) {
        let cpu = |client: &u32| self.cpus.get(client).copied();
        let clients =
            self.memory.iter().map(|(client, memory)| (*client, memory.view(cpu(client))));
        let graph = GraphView {
            model: &self.model,
            order: &self.order,
            clients: clients.collect(),
            device_slabs: &self.device_slabs,
            stream_slabs: &self.stream_slabs,
            recorders: &self.recorders,
            driver_captures: self.driver_captures,
            captures,
            driver_waits: false,
            quantum: QUANTUM,
            driver_cpu: (!self.cpus.is_empty()).then_some(0),
            wakes_early: self.wakes_early,
        };
        let mut plan = Plan::default();
        let assignments = build(&mut plan, &graph);
        (plan, assignments)
    }

    /// The followers that the writer signals, in this order.
    fn followers(&self) -> Vec<u32> {
        let (plan, _) = self.build(true);
        let writer = plan.seats.iter().find(|seat| seat.client == self.writer).unwrap();
        writer.followers.iter().map(|follower| plan.seats[follower.seat].client).collect()
    }

    /// The clients that wake before the cycle is due.
    fn early(&self) -> Vec<u32> {
        let (plan, assignments) = self.build(true);
        let clients = plan.seats.iter().map(|seat| seat.client);
        let is_early = |client: &u32| AssignmentReader::new(&assignments[client]).wakes_early();
        clients.filter(is_early).collect()
    }
}

#[test]
fn an_edge_waits_for_the_signal_page_of_its_reader() {
    let mut scenario = Scenario::new();
    let (writer, reader) = (scenario.writer, scenario.reader);
    assert!(scenario.followers().is_empty());
    scenario.memory(writer).mapped_pages.ask((reader, 0), 0);
    assert!(scenario.followers().is_empty(), "asked, not answered");
    scenario.memory(writer).map_page(reader);
    assert_eq!(scenario.followers(), [reader]);
}

#[test]
fn followers_on_other_cpus_are_signaled_first() {
    let mut scenario = Scenario::new();
    let (writer, reader) = (scenario.writer, scenario.reader);
    let other = add_client(&mut scenario.model, "other");
    scenario.model.connect("writer:out", "other:in").unwrap();
    scenario.order = order(&scenario.model, &[writer, reader, other]);
    scenario.memory.insert(other, Memory::create());
    scenario.memory(writer).map_page(reader);
    scenario.memory(writer).map_page(other);
    scenario.cpus = [(writer, 1), (reader, 1), (other, 0)].into();
    assert_eq!(scenario.followers(), [other, reader]);
    scenario.cpus = [(writer, 1), (reader, 0), (other, 1)].into();
    assert_eq!(scenario.followers(), [reader, other]);
}

#[test]
fn one_client_on_each_cpu_but_the_drivers_wakes_early() {
    let mut scenario = Scenario::new();
    let (writer, reader) = (scenario.writer, scenario.reader);
    for (case, mapped, cpus, early) in [
        ("one of two that wait for the driver", false, [1, 1], &[writer][..]),
        ("each on a CPU of its own", false, [1, 2], &[writer, reader]),
        ("not on the driver's CPU", false, [0, 1], &[reader]),
        ("one that waits for the driver, rather than its follower", true, [1, 1], &[writer]),
        ("a follower", true, [0, 1], &[reader]),
    ] {
        if mapped {
            scenario.memory(writer).map_page(reader);
        }
        scenario.cpus = [writer, reader].into_iter().zip(cpus).collect();
        for (wakes_early, expected) in [(false, &[][..]), (true, early)] {
            scenario.wakes_early = wakes_early;
            assert_eq!(scenario.early(), expected, "{case}");
        }
    }
    scenario.cpus.clear();
    assert!(scenario.early().is_empty(), "the kernel chooses");
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

/// Adds a program with a stream that plays and one that records, of number 7.
fn add_streams(scenario: &mut Scenario) {
    let program = scenario.model.open_stream_client("program").unwrap();
    add_ports(&mut scenario.model, program);
    let input = scenario.model.find("program:in").unwrap().id;
    scenario.recorders = vec![(3, Vec::new()), (7, vec![input])];
    scenario.stream_slabs.insert((program, 0), slab());
}

#[test]
fn a_stream_records_what_its_ports_are_connected_with() {
    let mut scenario = Scenario::new();
    add_streams(&mut scenario);
    let sources = |scenario: &Scenario| {
        let (plan, _) = scenario.build(true);
        assert!(plan.recording(3).is_none() && plan.recording(8).is_none());
        plan.recording(7).map(|channels| channels.iter().map(Vec::len).collect::<Vec<_>>())
    };
    assert_eq!(sources(&scenario), None, "nothing, for which no cycle is needed");
    for (count, output) in (1..).zip(["system:out", "writer:out", "program:out"]) {
        scenario.model.connect(output, "program:in").unwrap();
        assert_eq!(sources(&scenario), Some(vec![count]), "{output}");
    }
    scenario.driver_captures = false;
    assert_eq!(sources(&scenario), Some(vec![2]), "without the device's silence");
    scenario.order = order(&scenario.model, &[scenario.reader]);
    scenario.stream_slabs.clear();
    assert_eq!(sources(&scenario), None, "nothing of who does not run, or has no memory yet");
}

#[test]
fn a_client_that_is_only_recorded_is_waited_for() {
    let mut scenario = Scenario::new();
    add_streams(&mut scenario);
    scenario.model.disconnect("reader:out", "system:in").unwrap();
    scenario.model.connect("writer:out", "program:in").unwrap();
    let (plan, _) = scenario.build(true);
    let feeders = plan.seats.iter().filter(|seat| seat.feeds_playback);
    assert_eq!(feeders.map(|seat| seat.client).collect::<Vec<u32>>(), [scenario.writer]);
}
