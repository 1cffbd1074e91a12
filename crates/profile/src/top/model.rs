//! The figures that the screen shows of each client, taken from the recording.

use std::collections::{BTreeMap, HashMap, VecDeque};

use rt::record::{ClientRecord, CycleRecord, Record, UNKNOWN_CPU};

/// The screen shows the cycles of the last second.
const WINDOW_NS: u64 = 1_000_000_000;

/// One cycle of a client. All times but the first are in ns after the driver woke.
#[derive(Debug, Clone, Copy)]
struct Pass {
    /// When the driver woke.
    woken_ns: u64,
    signaled_ns: u64,
    awake_ns: u64,
    finished_ns: u64,
}

/// The last second of all clients.
#[derive(Debug, Default)]
pub(crate) struct Model {
    names: HashMap<u32, String>,
    newest: CycleRecord,
    passes: BTreeMap<u32, VecDeque<Pass>>,
    cpus: HashMap<u32, u16>,
}

/// A client's line of the screen.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) cpu: Option<u16>,
    /// Medians of when it was signaled, awake and finished, as fractions of the period. `None` if
    /// it has not finished a cycle in the last second.
    pub(crate) bar: Option<[f64; 3]>,
    /// Median and longest, in µs.
    pub(crate) scheduling_us: [f64; 2],
    /// Median and longest, in µs.
    pub(crate) duration_us: [f64; 2],
}

impl Model {
    /// Notes that the client `id` has this name from here on.
    pub(crate) fn name(&mut self, id: u32, name: &str) {
        self.names.insert(id, name.to_owned());
        self.passes.remove(&id);
    }

    pub(crate) fn add(&mut self, record: Record) {
        match record {
            Record::Cycle(cycle) => self.newest = cycle,
            Record::Client(client) if client.cycle == self.newest.cycle => self.add_client(&client),
            Record::Client(_) => {}
        }
    }

    fn add_client(&mut self, client: &ClientRecord) {
        self.cpus.insert(client.client, client.cpu);
        if client.scheduling_ns().is_none() || client.duration_ns().is_none() {
            return;
        }
        let woken_ns = self.newest.woken_ns;
        let after = |ns: u64| ns.saturating_sub(woken_ns);
        let pass = Pass {
            woken_ns,
            signaled_ns: after(client.signaled_ns),
            awake_ns: after(client.awake_ns),
            finished_ns: after(client.finished_ns),
        };
        self.passes.entry(client.client).or_default().push_back(pass);
    }

    /// Returns the newest cycle.
    pub(crate) fn newest(&self) -> &CycleRecord {
        &self.newest
    }

    /// Returns the line of the client `id`.
    pub(crate) fn row(&mut self, id: u32) -> Row {
        let since_ns = self.newest.woken_ns.saturating_sub(WINDOW_NS);
        let passes = self.passes.entry(id).or_default();
        while passes.front().is_some_and(|pass| pass.woken_ns < since_ns) {
            passes.pop_front();
        }
        let sorted = |value: &dyn Fn(&Pass) -> u64| {
            let mut values: Vec<u64> = passes.iter().map(value).collect();
            values.sort_unstable();
            values
        };
        let median = |value: &dyn Fn(&Pass) -> u64| {
            sorted(value).get(passes.len() / 2).copied().unwrap_or(0)
        };
        let both = |value: &dyn Fn(&Pass) -> u64| {
            [median(value), sorted(value).last().copied().unwrap_or(0)].map(|ns| ns as f64 / 1000.0)
        };
        let period_ns = self.newest.period_ns().max(1) as f64;
        let bar = [
            median(&|pass| pass.signaled_ns),
            median(&|pass| pass.awake_ns),
            median(&|pass| pass.finished_ns),
        ];
        Row {
            name: self.names.get(&id).cloned().unwrap_or_default(),
            cpu: self.cpus.get(&id).copied().filter(|cpu| *cpu != UNKNOWN_CPU),
            bar: (!passes.is_empty()).then(|| bar.map(|ns| (ns as f64 / period_ns).min(1.0))),
            scheduling_us: both(&|pass| pass.awake_ns.saturating_sub(pass.signaled_ns)),
            duration_us: both(&|pass| pass.finished_ns.saturating_sub(pass.awake_ns)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cycle(cycle: u32, woken_ns: u64) -> Record {
        let quantum = 48;
        Record::Cycle(CycleRecord {
            cycle,
            woken_ns,
            quantum,
            sample_rate_hz: 48_000,
            ..CycleRecord::default()
        })
    }

    fn client(cycle: u32, woken_ns: u64, duration_ns: u64) -> Record {
        let (signaled_ns, awake_ns) = (woken_ns + 100_000, woken_ns + 200_000);
        let finished_ns = awake_ns + duration_ns;
        let record = ClientRecord {
            cycle,
            client: 2,
            signaled_ns,
            awake_ns,
            finished_ns,
            ..ClientRecord::default()
        };
        Record::Client(record)
    }

    #[test]
    fn a_line_shows_the_last_second() {
        let mut model = Model::default();
        model.name(2, "synth");
        for number in 1..=3_000_u64 {
            let (number, woken_ns) = (number as u32, 5_000_000_000 + number * 1_000_000);
            model.add(cycle(number, woken_ns));
            let duration_ns = match number {
                10 => 700_000,
                2_500 => 600_000,
                _ => 300_000,
            };
            model.add(client(number, woken_ns, duration_ns));
        }
        let row = model.row(2);
        assert_eq!(row.bar, Some([0.1, 0.2, 0.5]));
        assert_eq!((row.scheduling_us, row.duration_us), ([100.0, 100.0], [300.0, 600.0]));
        assert_eq!(model.passes[&2].len(), 1001);
        assert_eq!(model.row(9).bar, None, "a client that never ran");
    }
}
