//! The profiler client: sends the measurements as signals, one value per cycle (section 3 of "JACK2
//! timing measurements", Letz et al.).
//!
//! The process callback reads the recording up to its newest cycle. Ports are registered and
//! unregistered on another thread, and pass to and from the callback through rings.

use std::collections::HashSet;
use std::time::Duration;

use anyhow::{Context, bail};
use client::{Client, Control, CycleScope, Inactive, Observer, OutputPort};
use rt::cycle_number;
use rt::record::{ClientRecord, CycleRecord, Record};
use rt::shm::{RecordCursor, Recording};
use rtrb::{Consumer, Producer, RingBuffer};
use sys::memory::Shared;

/// Which of the server's own values have a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ServerPorts {
    /// The DSP load, as `cpu_load`.
    pub cpu_load: bool,
    /// How much longer or shorter a cycle is than it should be, as `driver_period`.
    pub driver_period: bool,
    /// When the driver has done its part of the cycle, as `driver_end_time`.
    pub driver_end_time: bool,
}

/// Limit of clients that have ports at the same time.
const MAX_CLIENTS: usize = 512;
/// Limit of records read in one cycle: more than one cycle produces.
const MAX_RECORDS: usize = 2 * MAX_CLIENTS;
/// Interval at which the list of clients is polled.
const POLL: Duration = Duration::from_millis(100);
/// Id of the server's own client.
const SYSTEM: u32 = 1;

/// A client's two ports, and their values in its newest cycle.
#[derive(Debug)]
struct ClientPorts {
    client: u32,
    scheduling: OutputPort,
    duration: OutputPort,
    values: [f32; 2],
}

/// A message to the process callback.
#[derive(Debug)]
enum Change {
    Added(ClientPorts),
    /// The client with this id has left.
    Removed(u32),
}

/// The state of the process callback.
#[derive(Debug)]
struct Meter {
    observer: Observer,
    recording: Shared<Recording>,
    cursor: RecordCursor,
    server_ports: [Option<OutputPort>; 3],
    newest: CycleRecord,
    /// `driver_period` and `driver_end_time` of the newest cycle.
    driver: [f32; 2],
    /// Allocated for `MAX_CLIENTS` from the start, so that the callback never allocates.
    clients: Vec<ClientPorts>,
    changes: Consumer<Change>,
    removed: Producer<ClientPorts>,
}

/// Returns a time as a fraction of the cycle, 0 to 1.
fn fraction(time_ns: u64, period_ns: u64) -> f32 {
    (time_ns as f64 / period_ns.max(1) as f64).clamp(0.0, 1.0) as f32
}

/// Returns how much longer or shorter a cycle was than it should be, as a fraction of its nominal
/// length, -1 to 1.
fn variation(period_ns: u64, ideal_ns: u64) -> f32 {
    let difference = period_ns as f64 - ideal_ns as f64;
    (difference / ideal_ns.max(1) as f64).clamp(-1.0, 1.0) as f32
}

impl Meter {
    fn process(&mut self, cycle: &CycleScope<'_>) -> Control {
        self.take_changes();
        for _ in 0..MAX_RECORDS {
            let Some(words) = self.cursor.next(&self.recording) else { break };
            match Record::from_words(&words) {
                Some(Record::Cycle(record)) => self.note_cycle(record),
                Some(Record::Client(record)) => self.note_client(&record),
                None => {}
            }
        }
        let load = self.observer.engine().load_ppm() as f32 / 1e6;
        let values = [load.clamp(0.0, 1.0), self.driver[0], self.driver[1]];
        for (port, value) in self.server_ports.iter_mut().zip(values) {
            port.iter_mut().for_each(|port| port.buffer(cycle).fill(value));
        }
        for client in &mut self.clients {
            client.scheduling.buffer(cycle).fill(client.values[0]);
            client.duration.buffer(cycle).fill(client.values[1]);
        }
        Control::Continue
    }

    fn take_changes(&mut self) {
        while let Ok(change) = self.changes.pop() {
            match change {
                // Does not reallocate: the other thread respects the limit.
                Change::Added(client) => self.clients.push(client),
                Change::Removed(id) => {
                    let found = self.clients.iter().position(|client| client.client == id);
                    if let Some(client) = found.map(|index| self.clients.swap_remove(index)) {
                        // The ring has room for all clients.
                        let _ = self.removed.push(client);
                    }
                }
            }
        }
    }

    fn note_cycle(&mut self, record: CycleRecord) {
        let ideal_ns = record.period_ns();
        let follows =
            record.cycle == cycle_number::next(self.newest.cycle) && self.newest.cycle != 0;
        if follows {
            let period_ns = record.woken_ns.saturating_sub(self.newest.woken_ns);
            self.driver[0] = variation(period_ns, ideal_ns);
        }
        self.driver[1] = fraction(record.end_ns.saturating_sub(record.woken_ns), ideal_ns);
        self.newest = record;
    }

    fn note_client(&mut self, record: &ClientRecord) {
        let period_ns = self.newest.period_ns();
        let Some(client) = self.clients.iter_mut().find(|client| client.client == record.client)
        else {
            return;
        };
        let values = [record.scheduling_ns(), record.duration_ns()];
        // A client that has not finished took at least the whole cycle.
        client.values =
            values.map(|time_ns| time_ns.map_or(1.0, |time_ns| fraction(time_ns, period_ns)));
    }
}

/// An active profiler client.
pub struct Profiler {
    client: Client<client::Active>,
    registrar: PortRegistrar,
}

impl Profiler {
    /// Opens and activates the client. With `exact`, another name than `name` is an error.
    ///
    /// # Errors
    /// There is no such server, or it refuses the client or its ports.
    pub fn start(
        server: &str,
        name: &str,
        exact: bool,
        server_ports: ServerPorts,
    ) -> anyhow::Result<Self> {
        let options = client::OpenOptions {
            server: Some(server.to_owned()),
            exact_name: exact,
            ..client::OpenOptions::default()
        };
        let client = Client::open_with(name, &options)?;
        let observer = Observer::open(Some(server))?;
        let recording = observer.recording()?;
        let cursor = RecordCursor::newest(&recording);
        let (to_process, changes) = RingBuffer::new(2 * MAX_CLIENTS);
        let (removed, from_process) = RingBuffer::new(MAX_CLIENTS);
        let mut meter = Meter {
            server_ports: register_server_ports(&client, server_ports)?,
            observer,
            recording,
            cursor,
            newest: CycleRecord::default(),
            driver: [0.0; 2],
            clients: Vec::with_capacity(MAX_CLIENTS),
            changes,
            removed,
        };
        let own = client.session().id();
        let client = client.activate(move |cycle: &CycleScope<'_>| meter.process(cycle))?;
        let registrar = PortRegistrar { to_process, from_process, present: HashSet::new(), own };
        Ok(Self { client, registrar })
    }

    /// Returns the client's name, as the server chose it.
    #[must_use]
    pub fn name(&self) -> &str {
        self.client.name()
    }

    /// Registers and unregisters ports as clients appear and leave, until `is_finished`.
    ///
    /// # Errors
    /// A request fails, or the server ends.
    pub fn run_until(&mut self, mut is_finished: impl FnMut() -> bool) -> anyhow::Result<()> {
        while !is_finished() {
            if !self.client.is_running() {
                bail!("the server has ended");
            }
            self.registrar.update(&self.client)?;
            std::thread::sleep(POLL);
        }
        Ok(())
    }
}

fn register_server_ports(
    client: &Client<Inactive>,
    which: ServerPorts,
) -> Result<[Option<OutputPort>; 3], client::Error> {
    let port = |wanted: bool, name: &str| wanted.then(|| client.output_port(name)).transpose();
    Ok([
        port(which.cpu_load, "cpu_load")?,
        port(which.driver_period, "driver_period")?,
        port(which.driver_end_time, "driver_end_time")?,
    ])
}

/// Registers two ports for every other client.
struct PortRegistrar {
    to_process: Producer<Change>,
    from_process: Consumer<ClientPorts>,
    present: HashSet<u32>,
    own: u32,
}

impl PortRegistrar {
    /// Registers ports for new clients, and unregisters those of clients that have left.
    fn update(&mut self, client: &Client<client::Active>) -> anyhow::Result<()> {
        while let Ok(ClientPorts { scheduling, duration, .. }) = self.from_process.pop() {
            scheduling.unregister()?;
            duration.unregister()?;
        }
        let others =
            client.registry().clients().filter(|other| other.active && other.id != self.own);
        let running: Vec<_> = others.filter(|other| other.id != SYSTEM).collect();
        let left: Vec<u32> = self
            .present
            .iter()
            .copied()
            .filter(|id| !running.iter().any(|other| other.id == *id))
            .collect();
        for id in left {
            if self.to_process.push(Change::Removed(id)).is_ok() {
                self.present.remove(&id);
            }
        }
        for other in running {
            if self.present.len() >= MAX_CLIENTS || self.present.contains(&other.id) {
                continue;
            }
            let port = |what: &str| {
                let name = format!("{}:{what}", other.name);
                client.output_port(&name).with_context(|| format!("no port for {name}"))
            };
            let (scheduling, duration) = match (port("scheduling"), port("duration")) {
                (Ok(scheduling), Ok(duration)) => (scheduling, duration),
                // A client that left a moment ago under this name still has its ports: try again
                // at the next poll.
                (Ok(single), Err(_)) | (Err(_), Ok(single)) => {
                    single.unregister()?;
                    continue;
                }
                (Err(_), Err(_)) => continue,
            };
            let measured = ClientPorts { client: other.id, scheduling, duration, values: [0.0; 2] };
            if self.to_process.push(Change::Added(measured)).is_ok() {
                self.present.insert(other.id);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stay_in_the_papers_ranges() {
        for (time_ns, expected) in [(0, 0.0), (500, 0.5), (1_000, 1.0), (9_000, 1.0)] {
            assert_eq!(fraction(time_ns, 1_000), expected);
        }
        for (period_ns, expected) in
            [(0, -1.0), (750, -0.25), (1_000, 0.0), (1_500, 0.5), (9_000, 1.0)]
        {
            assert_eq!(variation(period_ns, 1_000), expected);
        }
        assert_eq!((fraction(5, 0), variation(5, 0)), (1.0, 1.0), "a cycle of no length");
    }
}
