//! A recording in order of time: cycles, and what each client did in them.

use std::collections::HashMap;

use observe::RecordingFollower;
use rt::cycle_number;
use rt::record::{ClientRecord, CycleRecord, Record};

/// The server that was recorded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Origin {
    /// The server's name.
    pub(crate) server: String,
    /// A description of its driver.
    pub(crate) driver: String,
    /// Whether the driver waits for the graph's end in each cycle (sync mode).
    pub(crate) sync: bool,
}

impl Origin {
    /// Describes the server that is followed.
    pub(crate) fn of(follower: &RecordingFollower) -> Result<Self, client::Error> {
        let status = follower.observer().status()?;
        Ok(Self { server: status.name, driver: status.driver, sync: status.sync })
    }
}

/// A cycle with its clients.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Run {
    pub(crate) cycle: CycleRecord,
    /// Pairs of an index into the timeline's names and the client's record, in the order of the
    /// graph.
    pub(crate) clients: Vec<(usize, ClientRecord)>,
}

/// A recording.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Timeline {
    pub(crate) origin: Origin,
    /// Names of the clients in the order in which they appeared. A client that reopens under its
    /// old name keeps its index.
    pub(crate) names: Vec<String>,
    pub(crate) runs: Vec<Run>,
    /// Number of records that were overwritten before they were read.
    pub(crate) lost: u64,
    /// Index into `names` of each client id.
    current: HashMap<u32, usize>,
}

impl Timeline {
    pub(crate) fn new(origin: Origin) -> Self {
        Self { origin, ..Self::default() }
    }

    /// Notes that the client `id` has this name from here on.
    pub(crate) fn name(&mut self, id: u32, name: &str) {
        let known = self.names.iter().position(|known| known == name);
        let index = known.unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        });
        self.current.insert(id, index);
    }

    /// Adds the next record. Drops a client's record if its cycle was lost or its name is unknown.
    pub(crate) fn add(&mut self, record: Record) {
        match record {
            Record::Cycle(cycle) => self.runs.push(Run { cycle, clients: Vec::new() }),
            Record::Client(client) => {
                let run = self.runs.last_mut().filter(|run| run.cycle.cycle == client.cycle);
                if let (Some(run), Some(index)) = (run, self.current.get(&client.client)) {
                    run.clients.push((*index, client));
                }
            }
        }
    }

    /// Iterates over pairs of consecutive cycles.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&Run, &Run)> {
        self.runs
            .iter()
            .zip(self.runs.iter().skip(1))
            .filter(|(run, next)| next.cycle.cycle == cycle_number::next(run.cycle.cycle))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns a recording of two clients in a chain, at 64 frames and 48 kHz. Each kind of time
    /// has a value of its own, so that a mix-up shows.
    pub(crate) fn sample(cycles: u32) -> Timeline {
        let mut timeline =
            Timeline::new(Origin { server: "default".into(), driver: "timer".into(), sync: false });
        timeline.name(2, "synth");
        timeline.name(3, "reverb");
        for cycle in 1..=cycles {
            let woken_ns = 1_000_000_000 + u64::from(cycle) * 1_333_333;
            timeline.add(Record::Cycle(CycleRecord {
                cycle,
                plan: 1,
                quantum: 64,
                sample_rate_hz: 48_000,
                due_ns: woken_ns - 5_000,
                woken_ns,
                released_ns: woken_ns + 2_000,
                end_ns: woken_ns + 9_000,
                cpu: 0,
                late: 0,
                xrun_us: None,
                is_away: false,
            }));
            for (client, signaled, awake, finished) in [(2, 2, 12, 112), (3, 112, 120, 320)] {
                timeline.add(Record::Client(ClientRecord {
                    cycle,
                    client,
                    signaled_ns: woken_ns + signaled * 1000,
                    awake_ns: woken_ns + awake * 1000,
                    finished_ns: woken_ns + finished * 1000,
                    cpu: 1,
                    ..ClientRecord::default()
                }));
            }
        }
        timeline
    }

    #[test]
    fn records_of_clients_belong_to_their_cycle() {
        let mut timeline = sample(3);
        assert_eq!(
            timeline.runs.iter().map(|run| run.clients.len()).collect::<Vec<_>>(),
            [2, 2, 2]
        );
        let stray = ClientRecord { cycle: 9, client: 2, ..ClientRecord::default() };
        timeline.add(Record::Client(stray));
        timeline.add(Record::Cycle(CycleRecord { cycle: 12, ..CycleRecord::default() }));
        timeline.add(Record::Client(ClientRecord {
            cycle: 12,
            client: 77,
            ..ClientRecord::default()
        }));
        assert_eq!(timeline.runs[3].clients.len(), 0, "a client without a name");
        assert_eq!(timeline.pairs().count(), 2, "3 and 12 do not follow each other");
    }

    #[test]
    fn a_client_that_reopens_keeps_its_index() {
        let mut timeline = sample(1);
        timeline.name(9, "synth");
        timeline.name(2, "other");
        assert_eq!(timeline.names, ["synth", "reverb", "other"]);
        assert_eq!((timeline.current[&9], timeline.current[&2]), (0, 2));
    }
}
