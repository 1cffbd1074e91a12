//! The profiler client: what is measured as signals, one value for each cycle (section 3 of the paper).
//!
//! The process callback reads the recording up to its newest cycle; ports come to it and go from it through rings,
//! since they are made and unmade on another thread.

use std::collections::HashSet;
use std::time::Duration;

use anyhow::{Context, bail};
use client::{Client, Control, CycleScope, Inactive, Observer, OutputPort};
use rt::record::{ClientRecord, CycleRecord, Record};
use rt::shm::{RecordCursor, Recording};
use rtrb::{Consumer, Producer, RingBuffer};
use sys::memory::Shared;

/// Which of the server's own values have a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) cpu_load: bool,
    pub(crate) driver_period: bool,
    pub(crate) driver_end_time: bool,
}

/// Clients that have ports at the same time.
const MOST_CLIENTS: usize = 512;
/// Records that are read in one cycle: more than ever come in one.
const MOST_RECORDS: usize = 2 * MOST_CLIENTS;
/// How often it is looked who came or went.
const LOOK: Duration = Duration::from_millis(100);
/// Of the server's own client.
const SYSTEM: u32 = 1;

/// A client's two ports, and their values of its newest cycle.
#[derive(Debug)]
struct Measured {
    client: u32,
    scheduling: OutputPort,
    duration: OutputPort,
    values: [f32; 2],
}

/// To the process callback.
#[derive(Debug)]
enum Change {
    Came(Measured),
    Went(u32),
}

/// What the process callback keeps.
#[derive(Debug)]
struct Meter {
    observer: Observer,
    recording: Shared<Recording>,
    cursor: RecordCursor,
    general: [Option<OutputPort>; 3],
    newest: CycleRecord,
    /// Driver period and end time of the newest cycle.
    driver: [f32; 2],
    /// Room for `MOST_CLIENTS` from the start.
    clients: Vec<Measured>,
    changes: Consumer<Change>,
    gone: Producer<Measured>,
}

/// A part of a cycle, as a sample.
fn part(time_ns: u64, period_ns: u64) -> f32 {
    (time_ns as f64 / period_ns.max(1) as f64).clamp(0.0, 1.0) as f32
}

/// By how much a cycle was longer or shorter than it should be, as a part of that.
fn variation(period_ns: u64, ideal_ns: u64) -> f32 {
    let difference = period_ns as f64 - ideal_ns as f64;
    (difference / ideal_ns.max(1) as f64).clamp(-1.0, 1.0) as f32
}

impl Meter {
    fn process(&mut self, cycle: &CycleScope<'_>) -> Control {
        self.take_changes();
        for _ in 0..MOST_RECORDS {
            let Some(words) = self.cursor.next(&self.recording) else { break };
            match Record::from_words(&words) {
                Some(Record::Cycle(record)) => self.note_cycle(record),
                Some(Record::Client(record)) => self.note_client(&record),
                None => {}
            }
        }
        let load = self.observer.engine().load_ppm() as f32 / 1e6;
        let values = [load.clamp(0.0, 1.0), self.driver[0], self.driver[1]];
        for (port, value) in self.general.iter_mut().zip(values) {
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
                // The other thread keeps to the room.
                Change::Came(client) => self.clients.push(client),
                Change::Went(id) => {
                    let place = self.clients.iter().position(|client| client.client == id);
                    if let Some(client) = place.map(|place| self.clients.swap_remove(place)) {
                        // The ring has room for all.
                        let _ = self.gone.push(client);
                    }
                }
            }
        }
    }

    fn note_cycle(&mut self, record: CycleRecord) {
        let ideal_ns = record.period_ns();
        let follows = record.cycle == self.newest.cycle.wrapping_add(1) && self.newest.cycle != 0;
        if follows {
            let period_ns = record.woken_ns.saturating_sub(self.newest.woken_ns);
            self.driver[0] = variation(period_ns, ideal_ns);
        }
        self.driver[1] = part(record.end_ns.saturating_sub(record.woken_ns), ideal_ns);
        self.newest = record;
    }

    fn note_client(&mut self, record: &ClientRecord) {
        let period_ns = self.newest.period_ns();
        let Some(client) = self.clients.iter_mut().find(|client| client.client == record.client) else {
            return;
        };
        let values = [record.scheduling_ns(), record.duration_ns()];
        // One that has not finished took at least the whole cycle.
        client.values = values.map(|time_ns| time_ns.map_or(1.0, |time_ns| part(time_ns, period_ns)));
    }
}

/// The client, active.
pub(crate) struct Profiler {
    client: Client<client::Active>,
    guests: Guests,
}

impl Profiler {
    /// Opens the client; `exact`: by this name or not at all.
    pub(crate) fn start(server: &str, name: &str, exact: bool, wanted: Wanted) -> anyhow::Result<Self> {
        let options = client::OpenOptions {
            server: Some(server.to_owned()),
            exact_name: exact,
            ..client::OpenOptions::default()
        };
        let client = Client::open_with(name, &options)?;
        let observer = Observer::open(Some(server))?;
        let recording = observer.recording()?;
        let cursor = RecordCursor::newest(&recording);
        let (to_process, changes) = RingBuffer::new(2 * MOST_CLIENTS);
        let (gone, from_process) = RingBuffer::new(MOST_CLIENTS);
        let mut meter = Meter {
            general: general_ports(&client, wanted)?,
            observer,
            recording,
            cursor,
            newest: CycleRecord::default(),
            driver: [0.0; 2],
            clients: Vec::with_capacity(MOST_CLIENTS),
            changes,
            gone,
        };
        let own = client.session().id();
        let client = client.activate(move |cycle: &CycleScope<'_>| meter.process(cycle))?;
        let guests = Guests { to_process, from_process, present: HashSet::new(), own };
        Ok(Self { client, guests })
    }

    /// The client's name, as the server gave it.
    pub(crate) fn name(&self) -> &str {
        self.client.name()
    }

    /// Has ports come and go as clients do, until `is_over`.
    ///
    /// # Errors
    /// Those of requests, and the server's end.
    pub(crate) fn run_until(&mut self, mut is_over: impl FnMut() -> bool) -> anyhow::Result<()> {
        while !is_over() {
            if !self.client.is_running() {
                bail!("the server has ended");
            }
            self.guests.look(&self.client)?;
            std::thread::sleep(LOOK);
        }
        Ok(())
    }
}

fn general_ports(
    client: &Client<Inactive>,
    wanted: Wanted,
) -> Result<[Option<OutputPort>; 3], client::Error> {
    let port = |wanted: bool, name: &str| wanted.then(|| client.output_port(name)).transpose();
    Ok([
        port(wanted.cpu_load, "cpu_load")?,
        port(wanted.driver_period, "driver_period")?,
        port(wanted.driver_end_time, "driver_end_time")?,
    ])
}

/// Who has ports.
struct Guests {
    to_process: Producer<Change>,
    from_process: Consumer<Measured>,
    present: HashSet<u32>,
    own: u32,
}

impl Guests {
    /// Makes ports for those that came, and removes those of clients that went.
    fn look(&mut self, client: &Client<client::Active>) -> anyhow::Result<()> {
        while let Ok(Measured { scheduling, duration, .. }) = self.from_process.pop() {
            scheduling.unregister()?;
            duration.unregister()?;
        }
        let others = client.registry().clients().filter(|other| other.active && other.id != self.own);
        let running: Vec<_> = others.filter(|other| other.id != SYSTEM).collect();
        let went: Vec<u32> =
            self.present.iter().copied().filter(|id| !running.iter().any(|other| other.id == *id)).collect();
        for id in went {
            if self.to_process.push(Change::Went(id)).is_ok() {
                self.present.remove(&id);
            }
        }
        for other in running {
            if self.present.len() >= MOST_CLIENTS || self.present.contains(&other.id) {
                continue;
            }
            let port = |what: &str| {
                let name = format!("{}:{what}", other.name);
                client.output_port(&name).with_context(|| format!("no port for {name}"))
            };
            let (scheduling, duration) = match (port("scheduling"), port("duration")) {
                (Ok(scheduling), Ok(duration)) => (scheduling, duration),
                // One that went a moment ago under this name still has its ports: again at the next look.
                (Ok(lone), Err(_)) | (Err(_), Ok(lone)) => {
                    lone.unregister()?;
                    continue;
                }
                (Err(_), Err(_)) => continue,
            };
            let measured = Measured { client: other.id, scheduling, duration, values: [0.0; 2] };
            if self.to_process.push(Change::Came(measured)).is_ok() {
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
            assert_eq!(part(time_ns, 1_000), expected);
        }
        for (period_ns, expected) in [(0, -1.0), (750, -0.25), (1_000, 0.0), (1_500, 0.5), (9_000, 1.0)] {
            assert_eq!(variation(period_ns, 1_000), expected);
        }
        assert_eq!((part(5, 0), variation(5, 0)), (1.0, 1.0), "a cycle of no length");
    }
}
