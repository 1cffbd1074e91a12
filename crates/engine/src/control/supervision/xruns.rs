//! The log of xruns: which client was late, and why.

use std::collections::{HashMap, VecDeque};
use std::time::{SystemTime, UNIX_EPOCH};

use proto::xrun::{Timestamps, TypicalTimes, UpstreamClient, Verdict, Xrun};
use rt::record::{ClientRecord, CycleRecord};
use sys::clock::now_ns;
use sys::thread::SwitchTrace;

use crate::control::clients::Clients;
use crate::model::Model;
use crate::supervision::grace_ns;
use crate::supervision::xrun_diagnosis::{Loss, ThreadProbe, cpu_users};

/// Xruns that are remembered.
const REMEMBERED: usize = 256;
/// Xruns in one reply: each is at most a kilobyte.
const PER_REPLY: usize = 16;
/// Clients before the late one that are remembered.
const CHAIN: usize = 8;
/// The driver takes the priority of a late client shortly after its grace.
const AFTER_GRACE_NS: u64 = 200_000;

/// The recent xruns, and what is needed to diagnose them. Thread: control.
#[derive(Debug, Default)]
pub(in crate::control) struct XrunLog {
    xruns: VecDeque<Xrun>,
    last_number: u64,
    /// The newest xrun of each client that is late now.
    open: HashMap<u32, u64>,
    /// The xruns whose grace is not over.
    undiagnosed: Vec<UndiagnosedXrun>,
    /// The trace of what runs on the CPUs, if there is one.
    switches: Option<SwitchTrace>,
    /// The driver thread.
    driver: Option<ThreadProbe>,
    /// What the clients of the newest cycle did, as far as it was read.
    in_cycle: Vec<ClientRecord>,
}

#[derive(Debug, Clone, Copy)]
struct UndiagnosedXrun {
    number: u64,
    /// `None`: the driver.
    client: Option<u32>,
    cycle: u32,
    loss: Loss,
}

impl XrunLog {
    /// Creates an empty log. With `trace_switches`, it also says what ran on the CPU, if the kernel
    /// permits that.
    pub(super) fn new(trace_switches: bool) -> Self {
        let begin = || {
            SwitchTrace::begin()
                .inspect_err(|error| {
                    sys::report!(
                        "consort: cannot trace switches, xruns do not say what had the CPU: \
                         {error} (only root may)"
                    );
                })
                .ok()
        };
        Self { switches: trace_switches.then(begin).flatten(), ..Self::default() }
    }

    /// When the next xrun is to be diagnosed, `CLOCK_MONOTONIC` ns.
    pub(in crate::control) fn due_ns(&self) -> Option<u64> {
        self.undiagnosed.iter().map(|xrun| xrun.loss.end_ns + AFTER_GRACE_NS).min()
    }

    /// Returns the xruns after `number`, oldest first, as many as one reply holds.
    pub(in crate::control) fn after(&self, number: u64) -> Vec<Xrun> {
        self.xruns.iter().filter(|xrun| xrun.number > number).take(PER_REPLY).cloned().collect()
    }

    /// Forgets the records of the cycle before: the records of another cycle begin.
    pub(super) fn begin_cycle(&mut self) {
        self.in_cycle.clear();
    }

    /// Notes one more record of the newest cycle.
    pub(super) fn note_record(&mut self, record: ClientRecord) {
        if record.late_cycles == 0 {
            self.open.remove(&record.client);
        }
        self.in_cycle.push(record);
    }

    /// Adds a client that was late in the newest cycle; if it was late in the cycle before, the
    /// xrun lasts for one more cycle.
    pub(super) fn add_late_client(
        &mut self,
        cycle: &CycleRecord,
        record: &ClientRecord,
        model: &Model,
        clients: &mut Clients,
    ) {
        let cycles = u32::from(record.late_cycles);
        if let Some(number) = self.open.get(&record.client).copied().filter(|_| cycles > 1) {
            self.xrun(number).into_iter().for_each(|xrun| xrun.cycles = cycles);
            return;
        }
        let Some(name) = model.client(record.client).map(|client| client.name.clone()) else {
            return;
        };
        let period_ns = cycle.period_ns();
        let begin_ns = record.signaled_ns.clamp(cycle.woken_ns, cycle.woken_ns + period_ns);
        let next_ns = cycle.woken_ns + period_ns;
        let loss = Loss { begin_ns, end_ns: next_ns + grace_ns(period_ns) };
        let driver_late_ns = cycle.woken_ns.saturating_sub(cycle.due_ns);
        let signaled_late_ns = begin_ns.saturating_sub(cycle.woken_ns);
        let verdict = if signaled_late_ns >= period_ns / 2 {
            Some(Verdict::SignaledLate { by: self.slowest_before(model, clients) })
        } else {
            (driver_late_ns >= period_ns / 2).then_some(Verdict::DriverLate)
        };
        let xrun = Xrun {
            number: self.last_number + 1,
            cycle: cycle.cycle,
            unix_ms: unix_ms(),
            client: Some((record.client, name)),
            cycles,
            period_ns,
            driver_late_ns,
            timestamps: timestamps(cycle, record),
            usual: usual(clients, record.client),
            verdict,
            evidence: None,
            had_cpu: Vec::new(),
            chain: self.chain(cycle, model),
        };
        self.add(xrun, Some(record.client), loss);
    }

    /// Adds an xrun of the device: it lost frames before the newest cycle.
    pub(super) fn add_driver_xrun(&mut self, cycle: &CycleRecord, xrun_us: u32) {
        let late_ns = u64::from(xrun_us) * 1000;
        let loss =
            Loss { begin_ns: cycle.woken_ns.saturating_sub(late_ns), end_ns: cycle.woken_ns };
        let xrun = Xrun {
            number: self.last_number + 1,
            cycle: cycle.cycle,
            unix_ms: unix_ms(),
            client: None,
            cycles: 1,
            period_ns: cycle.period_ns(),
            driver_late_ns: late_ns,
            timestamps: Timestamps::default(),
            usual: None,
            verdict: None,
            evidence: None,
            had_cpu: Vec::new(),
            chain: Vec::new(),
        };
        self.add(xrun, None, loss);
    }

    fn add(&mut self, xrun: Xrun, client: Option<u32>, loss: Loss) {
        self.last_number = xrun.number;
        if let Some(client) = client {
            self.open.insert(client, xrun.number);
        }
        if xrun.verdict.is_none() {
            let (number, cycle) = (xrun.number, xrun.cycle);
            self.undiagnosed.push(UndiagnosedXrun { number, client, cycle, loss });
        }
        self.xruns.push_back(xrun);
        if self.xruns.len() > REMEMBERED {
            self.xruns.pop_front();
        }
    }

    fn xrun(&mut self, number: u64) -> Option<&mut Xrun> {
        self.xruns.iter_mut().rev().find(|xrun| xrun.number == number)
    }

    /// Reads the kernel's counters of all threads that take part in cycles: of the driver thread,
    /// if it runs, and of the clients'.
    pub(in crate::control) fn probe_threads(
        &mut self,
        driver_thread: u32,
        clients: &mut Clients,
        cycles: u64,
    ) {
        let now_ns = now_ns();
        if self.driver.is_none() && driver_thread != 0 {
            self.driver = ThreadProbe::of(sys::process::process_id(), driver_thread);
        }
        let probes = clients.slots.values_mut().filter_map(|slot| slot.probe.as_mut());
        probes.chain(self.driver.as_mut()).for_each(|probe| probe.poll(now_ns, cycles));
    }

    /// Diagnoses the xruns whose grace is over. `cycles`: cycles since the server started.
    pub(in crate::control) fn diagnose_due(&mut self, clients: &Clients, cycles: u64) {
        let now_ns = now_ns();
        let is_due = |xrun: &mut UndiagnosedXrun| xrun.loss.end_ns + AFTER_GRACE_NS <= now_ns;
        let due: Vec<UndiagnosedXrun> = self.undiagnosed.extract_if(.., is_due).collect();
        let mut readings = HashMap::new();
        for UndiagnosedXrun { number, client, cycle, loss } in due {
            let has_begun =
                self.xrun(number).is_some_and(|xrun| xrun.timestamps.awake_ns.is_some());
            let slot = client.and_then(|client| clients.slots.get(&client));
            let probe = match client {
                Some(_) => slot.and_then(|slot| slot.probe.as_ref()),
                None => self.driver.as_ref(),
            };
            let began = has_begun || slot.is_some_and(|slot| slot.memory.own.awake() == cycle);
            let diagnosis = probe.map(|probe| {
                let reading = *readings.entry(client).or_insert_with(|| probe.read());
                probe.diagnose(loss, began, reading, cycles)
            });
            let (verdict, evidence) = diagnosis.unwrap_or((Verdict::Unknown, None));
            let had_cpu = match (&verdict, &evidence, &self.switches) {
                (Verdict::NotRunning, Some(evidence), Some(trace)) => {
                    // What cannot be read is left out; whether it can was logged at the start.
                    let switches = trace.switches(evidence.cpu).unwrap_or_default();
                    cpu_users(&switches, loss)
                }
                _ => Vec::new(),
            };
            if let Some(xrun) = self.xrun(number) {
                (xrun.verdict, xrun.evidence, xrun.had_cpu) = (Some(verdict), evidence, had_cpu);
            }
        }
    }

    /// The clients before the late one in the newest cycle, in the order of the graph.
    fn chain(&self, cycle: &CycleRecord, model: &Model) -> Vec<UpstreamClient> {
        let before = &self.in_cycle;
        let nearest = before.iter().skip(before.len().saturating_sub(CHAIN));
        let link = |record: &ClientRecord| {
            let name = model.client(record.client)?.name.clone();
            Some(UpstreamClient {
                name,
                timestamps: timestamps(cycle, record),
                cpu: u32::from(record.cpu),
            })
        };
        nearest.filter_map(link).collect()
    }

    /// The name of the client that took longest beyond its usual time in the newest cycle.
    fn slowest_before(&self, model: &Model, clients: &mut Clients) -> Option<String> {
        let mut beyond = |record: &ClientRecord| {
            let usual_ns = usual(clients, record.client).map_or(0, |usual| usual.duration_ns);
            record.duration_ns().unwrap_or(0).saturating_sub(usual_ns)
        };
        let slowest = self.in_cycle.iter().map(|record| (beyond(record), record.client)).max()?;
        model.client(slowest.1).map(|client| client.name.clone())
    }
}

fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn timestamps(cycle: &CycleRecord, record: &ClientRecord) -> Timestamps {
    let after = |time_ns: u64| (time_ns != 0).then(|| time_ns.saturating_sub(cycle.woken_ns));
    Timestamps {
        signaled_ns: after(record.signaled_ns),
        awake_ns: after(record.awake_ns),
        finished_ns: after(record.finished_ns),
    }
}

/// Medians of the last minute; `None`: the client has not run in it.
fn usual(clients: &mut Clients, client: u32) -> Option<TypicalTimes> {
    let timing = clients.slots.get_mut(&client)?.measured.timing(now_ns());
    (timing.duration.minute.count > 0).then_some(TypicalTimes {
        scheduling_ns: timing.scheduling.minute.p50_ns,
        duration_ns: timing.duration.minute.p50_ns,
    })
}
