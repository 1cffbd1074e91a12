//! The recording reduced for a browser: columns of the plots, and single cycles.

use std::collections::BTreeMap;

use rt::cycle_number;
use rt::record::{ClientRecord, CycleRecord, Record};
use serde::Serialize;

/// Duration of a column in ns: its cycles are one step of the plots.
const COLUMN_NS: u64 = 100_000_000;
/// Maximum number of columns that wait to be sent: 10 s.
const COLUMNS: usize = 100;
/// Maximum number of clients with lines in plots; the others appear in the lists only.
const CLIENTS: usize = 64;

/// Minimum, median and maximum of a time, µs.
type Spread = [f64; 3];

/// The cycles of a tenth of a second.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Column {
    /// Its start, ms of the server's clock.
    pub(crate) at_ms: u64,
    /// Number of cycles.
    pub(crate) cycles: usize,
    /// Nominal duration of a cycle, µs.
    pub(crate) period_us: f64,
    /// Time from wake-up to wake-up.
    pub(crate) periods: Option<Spread>,
    /// Time from the driver's wake-up to the end of its work.
    pub(crate) ends: Option<Spread>,
    /// For each client id: finish after the driver's wake-up, scheduling latency, duration.
    pub(crate) clients: BTreeMap<u32, [Spread; 3]>,
}

/// A cycle. Times in µs after it was due.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub(crate) struct Cycle {
    pub(crate) number: u32,
    pub(crate) period_us: f64,
    pub(crate) woken_us: f64,
    pub(crate) end_us: f64,
    pub(crate) cpu: u16,
    pub(crate) clients: Vec<Pass>,
}

/// A client in a cycle. Times in µs after the cycle was due; `None`: not before the next cycle.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Pass {
    pub(crate) id: u32,
    pub(crate) signaled_us: Option<f64>,
    pub(crate) awake_us: Option<f64>,
    pub(crate) finished_us: Option<f64>,
    pub(crate) cpu: u16,
    pub(crate) is_late: bool,
}

/// Times of an incomplete column, ns.
#[derive(Debug, Default)]
struct OpenColumn {
    begin_ns: u64,
    periods: Vec<u64>,
    ends: Vec<u64>,
    clients: BTreeMap<u32, [Vec<u64>; 3]>,
}

/// Takes the recording and returns what is new.
#[derive(Debug, Default)]
pub(crate) struct Model {
    open: OpenColumn,
    columns: Vec<Column>,
    newest: Option<(CycleRecord, Vec<ClientRecord>)>,
    latest: Cycle,
    slowest: Cycle,
}

fn us(ns: u64) -> f64 {
    // The page shows tenths.
    (ns as f64 / 100.0).round() / 10.0
}

fn spread(times_ns: &mut [u64]) -> Option<Spread> {
    times_ns.sort_unstable();
    let (first, last) = (times_ns.first()?, times_ns.last()?);
    let median = times_ns.get(times_ns.len() / 2)?;
    Some([us(*first), us(*median), us(*last)])
}

impl Model {
    /// Adds a record. A record whose cycle was lost is dropped.
    pub(crate) fn add(&mut self, record: Record) {
        match record {
            Record::Client(client) => {
                let newest = self.newest.as_mut().filter(|(cycle, _)| cycle.cycle == client.cycle);
                if let Some((_, clients)) = newest.filter(|(_, clients)| clients.len() < CLIENTS) {
                    clients.push(client);
                }
            }
            Record::Cycle(next) => {
                if let Some((cycle, clients)) = self.newest.replace((next, Vec::new())) {
                    self.close_cycle(&cycle, &clients, &next);
                }
            }
        }
    }

    fn close_cycle(&mut self, cycle: &CycleRecord, clients: &[ClientRecord], next: &CycleRecord) {
        if cycle.woken_ns >= self.open.begin_ns + COLUMN_NS {
            self.close_column(cycle);
        }
        if next.cycle == cycle_number::next(cycle.cycle) {
            self.open.periods.push(next.woken_ns.saturating_sub(cycle.woken_ns));
        }
        self.open.ends.push(cycle.end_ns.saturating_sub(cycle.woken_ns));
        for client in clients {
            let (Some(scheduling_ns), Some(duration_ns)) =
                (client.scheduling_ns(), client.duration_ns())
            else {
                continue;
            };
            let times =
                [client.finished_ns.saturating_sub(cycle.woken_ns), scheduling_ns, duration_ns];
            let lists = self.open.clients.entry(client.client).or_default();
            lists.iter_mut().zip(times).for_each(|(list, time)| list.push(time));
        }
        self.latest = Cycle::of(cycle, clients);
        if self.latest.length() > self.slowest.length() {
            self.slowest = self.latest.clone();
        }
    }

    fn close_column(&mut self, next: &CycleRecord) {
        let mut open = std::mem::take(&mut self.open);
        self.open.begin_ns = next.woken_ns;
        if open.ends.is_empty() || self.columns.len() >= COLUMNS {
            return;
        }
        let client = |lists: &mut [Vec<u64>; 3]| -> Option<[Spread; 3]> {
            let [finished, scheduling, duration] = lists;
            Some([spread(finished)?, spread(scheduling)?, spread(duration)?])
        };
        let clients = open.clients.iter_mut().filter_map(|(id, lists)| Some((*id, client(lists)?)));
        self.columns.push(Column {
            at_ms: open.begin_ns / 1_000_000,
            cycles: open.ends.len(),
            period_us: us(next.period_ns()),
            clients: clients.collect(),
            periods: spread(&mut open.periods),
            ends: spread(&mut open.ends),
        });
    }

    /// Returns the columns completed since the last call.
    pub(crate) fn take_columns(&mut self) -> Vec<Column> {
        std::mem::take(&mut self.columns)
    }

    /// Returns the newest complete cycle, and the slowest since the last call.
    pub(crate) fn take_cycles(&mut self) -> (&Cycle, Cycle) {
        let slowest = std::mem::take(&mut self.slowest);
        (&self.latest, slowest)
    }
}

impl Cycle {
    fn of(cycle: &CycleRecord, clients: &[ClientRecord]) -> Self {
        let after = |date_ns: u64| us(date_ns.saturating_sub(cycle.due_ns));
        let offset = |time_ns: u64| (time_ns != 0).then(|| after(time_ns));
        let pass = |record: &ClientRecord| Pass {
            id: record.client,
            signaled_us: offset(record.signaled_ns),
            awake_us: offset(record.awake_ns),
            finished_us: offset(record.finished_ns),
            cpu: record.cpu,
            is_late: record.late_cycles > 0,
        };
        Self {
            number: cycle.cycle,
            period_us: us(cycle.period_ns()),
            woken_us: after(cycle.woken_ns),
            end_us: after(cycle.end_ns),
            cpu: cycle.cpu,
            clients: clients.iter().map(pass).collect(),
        }
    }

    /// Returns the time of its last timestamp, µs; infinity if a client did not finish.
    fn length(&self) -> f64 {
        let last =
            |pass: &Pass| if pass.is_late { f64::MAX } else { pass.finished_us.unwrap_or(0.0) };
        self.clients.iter().map(last).fold(self.woken_us.max(self.end_us), f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN_NS: u64 = 5_000_000_000;

    /// A cycle per ms, with a client of 100 µs, or of `slow_us` in cycle 7.
    fn model(cycles: u32, slow_us: u64) -> Model {
        let mut model = Model::default();
        for number in 0..cycles {
            let due_ns = BEGIN_NS + u64::from(number) * 1_000_000;
            let woken_ns = due_ns + 5_000;
            let cycle = CycleRecord {
                cycle: number,
                due_ns,
                woken_ns,
                end_ns: woken_ns + 9_000,
                quantum: 48,
                sample_rate_hz: 48_000,
                ..CycleRecord::default()
            };
            let duration_us = if number == 7 { slow_us } else { 100 };
            let client = ClientRecord {
                cycle: number,
                client: 3,
                signaled_ns: woken_ns + 2_000,
                awake_ns: woken_ns + 12_000,
                finished_ns: woken_ns + 12_000 + duration_us * 1_000,
                ..ClientRecord::default()
            };
            model.add(Record::Cycle(cycle));
            model.add(Record::Client(client));
        }
        model
    }

    #[test]
    fn a_column_has_minimum_median_and_maximum_of_each_time() {
        let mut model = model(250, 500);
        let columns = model.take_columns();
        assert_eq!(columns.iter().map(|column| column.cycles).collect::<Vec<_>>(), [100, 100]);
        assert_eq!(columns[0].periods, Some([1000.0; 3]));
        assert_eq!(columns[0].ends, Some([9.0; 3]));
        let [finished, scheduling, duration] = columns[0].clients[&3];
        assert_eq!(finished, [112.0, 112.0, 512.0]);
        assert_eq!((scheduling, duration), ([10.0; 3], [100.0, 100.0, 500.0]));
        assert_eq!(columns[1].clients[&3][2], [100.0; 3]);
        assert_eq!(model.take_columns(), [], "each is returned once");
    }

    #[test]
    fn the_slowest_cycle_is_returned_once() {
        let mut model = model(20, 500);
        let (latest, slowest) = model.take_cycles();
        assert_eq!((latest.number, slowest.number), (18, 7));
        assert_eq!(slowest.clients[0].finished_us, Some(517.0));
        assert_eq!(model.take_cycles().1, Cycle::default());
    }

    #[test]
    fn columns_and_clients_stay_bounded() {
        let mut model = model(COLUMNS as u32 * 100 + 5_000, 100);
        assert_eq!(model.take_columns().len(), COLUMNS);
        let cycle = CycleRecord { cycle: 9, ..CycleRecord::default() };
        model.add(Record::Cycle(cycle));
        for client in 0..1000 {
            model.add(Record::Client(ClientRecord { cycle: 9, client, ..ClientRecord::default() }));
        }
        model.add(Record::Client(ClientRecord { cycle: 8, client: 1, ..ClientRecord::default() }));
        model.add(Record::Cycle(CycleRecord { cycle: 10, ..cycle }));
        assert_eq!(model.take_cycles().0.clients.len(), CLIENTS);
    }
}
