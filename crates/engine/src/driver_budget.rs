//! How much of a cycle the driver thread spends on the clients of each program, as an estimate, and
//! how much it may. Pure; the control thread asks before a connection or a client becomes part of
//! plans.
//!
//! The driver signals each client, reads its times and writes its record; it mixes each output that
//! is connected to a playback port or to a stream that records; and it signals the followers of a
//! client that is late. A program chooses how many there are, so a program has a part of the
//! driver's time.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::Model;
use crate::quota::Quota;

/// A client in a plan, ns: the wake-up, its lines in other caches, its record, and twice the
/// wake-ups if it is late. 2.7 µs were measured for clients in time.
const SEAT_NS: u64 = 4_000;
/// A follower that the driver signals instead of a late client, twice, ns.
const EDGE_NS: u64 = 1_000;
/// An output that the driver mixes, ns, and ns for each frame of it. Two to four times what
/// `cargo run --release -p consort-sys --example cold_sources` measures from memory that no cache
/// holds.
const SOURCE_NS: u64 = 200;
const SOURCE_FRAME_NS: u64 = 1;

/// The parts of a cycle, in quarters, that all programs and one program may take of the driver. The
/// rest is for the driver's own work and for late wake-ups.
const QUARTERS_IN_ALL: u64 = 3;
const QUARTERS_OF_PROGRAM: u64 = 1;

/// What the driver does for a program in a cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DriverWork {
    /// Clients that run.
    pub seats: u64,
    /// Pairs of a client of the program and one that hears it.
    pub edges: u64,
    /// Connections to playback ports and to streams that record, and of streams with clients.
    pub sources: u64,
}

impl DriverWork {
    /// Returns the time that it takes in a cycle of `quantum` frames.
    pub fn ns(self, quantum: u32) -> u64 {
        let source_ns = SOURCE_NS + SOURCE_FRAME_NS * u64::from(quantum);
        self.seats * SEAT_NS + self.edges * EDGE_NS + self.sources * source_ns
    }

    /// Returns the work of both.
    pub fn and(self, other: Self) -> Self {
        Self {
            seats: self.seats + other.seats,
            edges: self.edges + other.edges,
            sources: self.sources + other.sources,
        }
    }
}

/// What the driver does for each program; `None`: for connections between devices.
pub type WorkOfPrograms<P> = BTreeMap<Option<P>, DriverWork>;

/// Returns how the driver's time in cycles of `period_ns` is shared, ns.
pub fn quota(period_ns: u64) -> Quota {
    let quarter_ns = period_ns / 4;
    Quota::new(QUARTERS_IN_ALL * quarter_ns, QUARTERS_OF_PROGRAM * quarter_ns, SEAT_NS)
}

/// Returns what the driver does for each program. `program` says whose a client is, and `runs`
/// whether it takes part in cycles, be it suspended or not.
pub fn work_of_programs<P: Ord>(
    model: &Model,
    program: impl Fn(u32) -> Option<P>,
    runs: impl Fn(u32) -> bool,
) -> WorkOfPrograms<P> {
    let mut work = WorkOfPrograms::new();
    for client in model.clients().filter(|client| !model.is_device(client.id)) {
        let of_program: &mut DriverWork = work.entry(program(client.id)).or_default();
        of_program.seats += u64::from(runs(client.id));
        if model.is_stream_client(client.id) {
            // The driver passes it to them, and signals none.
            let outputs = model.ports_of(client.id).filter(|port| port.is_output());
            let readers = outputs.flat_map(|port| &port.links);
            let readers = readers.filter_map(|link| model.port(link.other));
            let heard = readers.filter(|reader| !model.is_device(reader.owner));
            of_program.sources += heard.count() as u64;
        } else {
            of_program.edges += followers(model, client.id).len() as u64;
        }
    }
    for input in model.inputs_of_server() {
        for output in input.links.iter().filter_map(|link| model.port(link.other)) {
            let payer = if model.is_driver(input.owner) { output.owner } else { input.owner };
            work.entry(program(payer)).or_default().sources += 1;
        }
    }
    work
}

/// Returns what a connection adds to the driver's work for the program of its output.
pub fn work_of_connection(model: &Model, writer: u32, reader: u32) -> DriverWork {
    let between_clients = writer != reader && !model.is_device(writer) && !model.is_device(reader);
    let is_passed = model.is_stream_client(writer) && !model.is_device(reader);
    let is_signaled = between_clients && !is_passed && !model.is_stream_client(reader);
    let is_edge = is_signaled && !followers(model, writer).contains(&reader);
    // MUTATION: work_of_connection.passing_is_nothing
    let is_source = model.is_driver(reader) || is_passed;
    DriverWork { seats: 0, edges: u64::from(is_edge), sources: u64::from(is_source) }
}

/// Returns what a connection adds to the driver's work for the program of its input, if that is a
/// stream which records: it chooses what it records, also from devices.
pub fn work_of_recording(model: &Model, reader: u32) -> DriverWork {
    // MUTATION: work_of_recording.is_nothing
    DriverWork { sources: model.is_stream_client(reader).into(), ..DriverWork::default() }
}

/// The other clients that hear a client, and wait for it.
fn followers(model: &Model, writer: u32) -> BTreeSet<u32> {
    let outputs = model.ports_of(writer).filter(|port| port.is_output());
    let readers = outputs.flat_map(|port| &port.links).filter_map(|link| model.port(link.other));
    let clients = readers.map(|port| port.owner).filter(|reader| *reader != writer);
    clients.filter(|reader| !model.is_device(*reader) && !model.is_stream_client(*reader)).collect()
}

#[cfg(test)]
mod tests {
    use proto::port_flags::{INPUT, OUTPUT};
    use proto::request::{NewPort, PortType, SlabSlot};
    use rt::shm::RECORDS;

    use super::*;
    use crate::model::Limits;
    use crate::quota::Usage;

    const QUANTUM: u32 = 64;
    /// Of 64 frames at 48 kHz.
    const PERIOD_NS: u64 = 1_333_333;

    fn model_with_driver() -> (Model, u32) {
        let mut model = Model::new(Limits { clients: 32, ports: 64, connections: 64 });
        let driver = model.open_device("system").unwrap();
        model
            .set_channels(driver, &device::Channels { capture: 1, playback: 2, monitors: 0 })
            .unwrap();
        (model, driver)
    }

    fn client(model: &mut Model, name: &str) -> u32 {
        let client = model.open_client(name, true).unwrap();
        model.set_active(client, true);
        for (name, flags) in [("in", INPUT), ("out", OUTPUT), ("out2", OUTPUT)] {
            let slot = (flags == OUTPUT).then_some(SlabSlot { slab: 0, slot: 0 });
            let port =
                NewPort { name: name.into(), port_type: PortType::Audio, flags, number: 0, slot };
            model.register_port(client, &port).unwrap();
        }
        client
    }

    #[test]
    fn the_work_is_that_of_the_program_whose_outputs_are_connected() {
        let (mut model, driver) = model_with_driver();
        let [one, two, other] = ["one", "two", "other"].map(|name| client(&mut model, name));
        for (source, destination) in [
            ("one:out", "system:playback_1"),
            ("one:out", "system:playback_2"),
            ("other:out", "system:playback_1"),
            ("system:capture_1", "system:playback_1"),
            ("system:capture_1", "one:in"),
            ("one:out", "two:in"),
            ("one:out2", "two:in"),
            ("one:out2", "one:in"),
            ("two:out", "other:in"),
        ] {
            model.connect(source, destination).unwrap();
        }
        let program = |client: u32| match client {
            client if client == one || client == two => Some('a'),
            client if client == other => Some('b'),
            _ => None,
        };
        let work = work_of_programs(&model, program, |client| client != two);
        let expected = [
            (None, DriverWork { seats: 0, edges: 0, sources: 1 }),
            (Some('a'), DriverWork { seats: 1, edges: 2, sources: 2 }),
            (Some('b'), DriverWork { seats: 1, edges: 0, sources: 1 }),
        ];
        assert_eq!(work, expected.into());
        let adds = |writer, reader| work_of_connection(&model, writer, reader);
        assert_eq!(adds(one, two), DriverWork::default(), "a second connection of two clients");
        assert_eq!(adds(two, one).edges, 1);
        assert_eq!(adds(two, driver), DriverWork { sources: 1, ..DriverWork::default() });
        assert_eq!(adds(driver, two), DriverWork::default());
    }

    #[test]
    fn a_stream_is_passed_to_clients_without_a_signal() {
        let (mut model, driver) = model_with_driver();
        let reader = client(&mut model, "reader");
        let player = model.open_stream_client("player").unwrap();
        let (name, port_type, flags) = ("output_FL".into(), PortType::Audio, OUTPUT);
        let port = NewPort { name, port_type, flags, number: 0, slot: None };
        model.register_port(player, &port).unwrap();
        let source = DriverWork { sources: 1, ..DriverWork::default() };
        let adds = |model: &Model, reader| work_of_connection(model, player, reader);
        assert_eq!([adds(&model, reader), adds(&model, driver)], [source; 2]);
        model.connect("player:output_FL", "reader:in").unwrap();
        assert_eq!(adds(&model, reader), source, "each input");
        model.connect("player:output_FL", "system:playback_1").unwrap();
        let program = |client: u32| (client == player).then_some('p');
        let work = work_of_programs(&model, program, |_| false);
        assert_eq!(work[&Some('p')], DriverWork { sources: 2, ..DriverWork::default() });
    }

    #[test]
    fn what_a_stream_records_is_the_work_of_its_own_program() {
        let (mut model, driver) = model_with_driver();
        let synth = client(&mut model, "synth");
        let recorder = model.open_stream_client("recorder").unwrap();
        let (port_type, slot) = (PortType::Audio, None);
        for (name, flags) in [("input_FL", INPUT), ("output_FL", OUTPUT)] {
            let port = NewPort { name: name.into(), port_type, flags, number: 0, slot };
            model.register_port(recorder, &port).unwrap();
        }
        let source = DriverWork { sources: 1, ..DriverWork::default() };
        let nothing = DriverWork::default();
        for (writer, expected) in [(driver, nothing), (synth, nothing), (recorder, source)] {
            assert_eq!(work_of_connection(&model, writer, recorder), expected, "{writer}");
        }
        assert_eq!([recorder, synth].map(|to| work_of_recording(&model, to)), [source, nothing]);
        for output in ["system:capture_1", "synth:out", "recorder:output_FL"] {
            model.connect(output, "recorder:input_FL").unwrap();
        }
        let program = |client: u32| (client != driver).then_some(client);
        let work = work_of_programs(&model, program, |client| client == synth);
        assert_eq!(work[&Some(recorder)], DriverWork { sources: 4, ..DriverWork::default() });
        assert_eq!(work[&Some(synth)], DriverWork { seats: 1, ..DriverWork::default() });
    }

    fn most(mut work: impl FnMut(u64) -> DriverWork) -> u64 {
        let fits = |count: &u64| {
            quota(PERIOD_NS).check(Usage::default(), work(*count).ns(QUANTUM)).is_ok()
        };
        (1..).take_while(fits).last().unwrap_or(0)
    }

    #[test]
    fn a_program_has_some_clients_and_many_sources_at_64_frames() {
        let seats = most(|seats| DriverWork { seats, ..DriverWork::default() });
        let sources = most(|sources| DriverWork { sources, ..DriverWork::default() });
        assert_eq!((seats, sources), (83, 1262));
    }

    #[test]
    fn the_records_of_all_clients_are_read_before_they_are_overwritten() {
        // The control thread reads them every 40 ms, or 80 ms while programs send requests.
        const READ_EVERY_NS: u64 = 80_000_000;
        let whole_ns = QUARTERS_IN_ALL * PERIOD_NS / 4;
        let in_a_cycle = 1 + whole_ns / SEAT_NS;
        let written = READ_EVERY_NS / PERIOD_NS * in_a_cycle;
        assert!(2 * written <= RECORDS as u64, "{written} records");
    }
}
