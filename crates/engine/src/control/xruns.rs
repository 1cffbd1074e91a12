//! The book of xruns: who was late, and why.

use std::collections::{HashMap, VecDeque};
use std::time::{SystemTime, UNIX_EPOCH};

use proto::xrun::{Dates, Link, Usual, Verdict, Xrun};
use rt::record::{ClientRecord, CycleRecord};
use rt::sync::Ordering;
use sys::clock::now_ns;
use sys::thread::SwitchTrace;

use super::Control;
use crate::autopsy::{Loss, Watch, cpu_users};
use crate::cycle_thread::grace_ns;

/// Xruns that are remembered.
const REMEMBERED: usize = 256;
/// ... and told in one answer: each is at most a kilobyte.
const TOLD: usize = 16;
/// Links of a chain that are remembered.
const CHAIN: usize = 8;
/// The driver takes the priority shortly after.
const AFTER_GRACE_NS: u64 = 200_000;

/// The book.
#[derive(Debug, Default)]
pub(super) struct Xruns {
    book: VecDeque<Xrun>,
    last_number: u64,
    /// The newest entry of each client that is late now.
    open: HashMap<u32, u64>,
    /// Those whose grace is not over.
    pending: Vec<Pending>,
    /// Who runs on the CPUs, if that is traced.
    switches: Option<SwitchTrace>,
    /// The driver thread.
    driver: Option<Watch>,
    /// What the clients of the newest cycle did, as far as it was read.
    in_cycle: Vec<ClientRecord>,
}

#[derive(Debug, Clone, Copy)]
struct Pending {
    number: u64,
    /// `None`: the driver.
    client: Option<u32>,
    cycle: u32,
    loss: Loss,
}

impl Xruns {
    /// A book that also says who had the CPU, if `trace_switches` and the kernel permits it.
    pub(super) fn new(trace_switches: bool) -> Self {
        let begin = || {
            SwitchTrace::begin()
                .inspect_err(|error| {
                    eprintln!("consort: cannot trace switches, xruns do not say who had the CPU: {error} (only root may)");
                })
                .ok()
        };
        Self { switches: trace_switches.then(begin).flatten(), ..Self::default() }
    }

    /// When the next verdict is due.
    pub(super) fn due_ns(&self) -> Option<u64> {
        self.pending.iter().map(|pending| pending.loss.end_ns + AFTER_GRACE_NS).min()
    }

    /// Those after `number`, oldest first.
    pub(super) fn after(&self, number: u64) -> Vec<Xrun> {
        self.book.iter().filter(|xrun| xrun.number > number).take(TOLD).cloned().collect()
    }

    pub(super) fn begin_cycle(&mut self) {
        self.in_cycle.clear();
    }

    pub(super) fn note(&mut self, record: ClientRecord) {
        if record.late_cycles == 0 {
            self.open.remove(&record.client);
        }
        self.in_cycle.push(record);
    }

    fn entry(&mut self, number: u64) -> Option<&mut Xrun> {
        self.book.iter_mut().rev().find(|xrun| xrun.number == number)
    }

    fn add(&mut self, xrun: Xrun, client: Option<u32>, loss: Loss) {
        self.last_number = xrun.number;
        if let Some(client) = client {
            self.open.insert(client, xrun.number);
        }
        if xrun.verdict.is_none() {
            let (number, cycle) = (xrun.number, xrun.cycle);
            self.pending.push(Pending { number, client, cycle, loss });
        }
        self.book.push_back(xrun);
        if self.book.len() > REMEMBERED {
            self.book.pop_front();
        }
    }
}

fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn dates(cycle: &CycleRecord, record: &ClientRecord) -> Dates {
    let after = |date_ns: u64| (date_ns != 0).then(|| date_ns.saturating_sub(cycle.woken_ns));
    Dates {
        signaled_ns: after(record.signaled_ns),
        awake_ns: after(record.awake_ns),
        finished_ns: after(record.finished_ns),
    }
}

impl Control {
    /// Reads the kernel's counters of all threads that take part in cycles, now and then.
    pub(super) fn watch_threads(&mut self) {
        let (now_ns, cycles) = (now_ns(), self.cycles);
        if self.xruns.driver.is_none() {
            let thread = self.parts.shared.driver_thread.load(Ordering::Relaxed);
            self.xruns.driver = Watch::of(sys::process::process_id(), thread).filter(|_| thread != 0);
        }
        let clients = self.clients.values_mut().filter_map(|slot| slot.watch.as_mut());
        clients.chain(self.xruns.driver.as_mut()).for_each(|watch| watch.look(now_ns, cycles));
    }

    /// A client's record says that it was late in the newest cycle.
    pub(super) fn book_late_client(&mut self, record: &ClientRecord) {
        let cycle = self.newest;
        let cycles = u32::from(record.late_cycles);
        if let Some(number) = self.xruns.open.get(&record.client)
            && cycles > 1
        {
            let number = *number;
            self.xruns.entry(number).into_iter().for_each(|xrun| xrun.cycles = cycles);
            return;
        }
        let Some(name) = self.parts.model.client(record.client).map(|client| client.name.clone()) else {
            return;
        };
        let period_ns = cycle.period_ns();
        let begin_ns = record.signaled_ns.clamp(cycle.woken_ns, cycle.woken_ns + period_ns);
        let next_ns = cycle.woken_ns + period_ns;
        let loss = Loss { begin_ns, end_ns: next_ns + grace_ns(period_ns) };
        let (driver_late_ns, signaled_late_ns) =
            (cycle.woken_ns.saturating_sub(cycle.due_ns), begin_ns.saturating_sub(cycle.woken_ns));
        let usual = self.usual(record.client);
        let by_others = [
            (signaled_late_ns >= period_ns / 2).then(|| Verdict::SignaledLate { by: self.slowest_before() }),
            (driver_late_ns >= period_ns / 2).then_some(Verdict::DriverLate),
        ];
        let xrun = Xrun {
            number: self.xruns.last_number + 1,
            cycle: cycle.cycle,
            unix_ms: unix_ms(),
            client: Some((record.client, name)),
            cycles,
            period_ns,
            driver_late_ns,
            dates: dates(&cycle, record),
            usual,
            verdict: by_others.into_iter().flatten().next(),
            evidence: None,
            had_cpu: Vec::new(),
            chain: self.chain(&cycle),
        };
        self.xruns.add(xrun, Some(record.client), loss);
    }

    /// The driver's record says that the device lost frames before the newest cycle.
    pub(super) fn book_driver_xrun(&mut self, xrun_us: u32) {
        let cycle = self.newest;
        let late_ns = u64::from(xrun_us) * 1000;
        let loss = Loss { begin_ns: cycle.woken_ns.saturating_sub(late_ns), end_ns: cycle.woken_ns };
        let xrun = Xrun {
            number: self.xruns.last_number + 1,
            cycle: cycle.cycle,
            unix_ms: unix_ms(),
            client: None,
            cycles: 1,
            period_ns: cycle.period_ns(),
            driver_late_ns: late_ns,
            dates: Dates::default(),
            usual: None,
            verdict: None,
            evidence: None,
            had_cpu: Vec::new(),
            chain: Vec::new(),
        };
        self.xruns.add(xrun, None, loss);
    }

    /// Gives the verdicts that are due.
    pub(super) fn give_verdicts(&mut self) {
        let (now_ns, cycles) = (now_ns(), self.cycles);
        let is_due = |pending: &mut Pending| pending.loss.end_ns + AFTER_GRACE_NS <= now_ns;
        let due: Vec<Pending> = self.xruns.pending.extract_if(.., is_due).collect();
        let mut readings = HashMap::new();
        for Pending { number, client, cycle, loss } in due {
            let has_begun = self.xruns.entry(number).is_some_and(|xrun| xrun.dates.awake_ns.is_some());
            let slot = client.and_then(|client| self.clients.get(&client));
            let watch = match client {
                Some(_) => slot.and_then(|slot| slot.watch.as_ref()),
                None => self.xruns.driver.as_ref(),
            };
            let began = has_begun || slot.is_some_and(|slot| slot.memory.own.awake() == cycle);
            let found = watch.map(|watch| {
                let reading = *readings.entry(client).or_insert_with(|| watch.read());
                watch.examine(loss, began, reading, cycles)
            });
            let (verdict, evidence) = found.unwrap_or((Verdict::Unknown, None));
            let had_cpu = match (&verdict, &evidence, &self.xruns.switches) {
                (Verdict::NotRunning, Some(evidence), Some(trace)) => {
                    // What cannot be read is not told; it was announced at the start whether it can.
                    let switches = trace.switches(evidence.cpu).unwrap_or_default();
                    cpu_users(&switches, loss)
                }
                _ => Vec::new(),
            };
            if let Some(xrun) = self.xruns.entry(number) {
                (xrun.verdict, xrun.evidence, xrun.had_cpu) = (Some(verdict), evidence, had_cpu);
            }
        }
    }

    fn usual(&mut self, client: u32) -> Option<Usual> {
        let timing = self.timing(client).ok().filter(|timing| timing.duration.minute.count > 0)?;
        Some(Usual {
            scheduling_ns: timing.scheduling.minute.p50_ns,
            duration_ns: timing.duration.minute.p50_ns,
        })
    }

    fn chain(&self, cycle: &CycleRecord) -> Vec<Link> {
        let before = &self.xruns.in_cycle;
        let nearest = before.iter().skip(before.len().saturating_sub(CHAIN));
        let link = |record: &ClientRecord| {
            let name = self.parts.model.client(record.client)?.name.clone();
            Some(Link { name, dates: dates(cycle, record), cpu: u32::from(record.cpu) })
        };
        nearest.filter_map(link).collect()
    }

    /// Who took longest beyond its usual time, in the newest cycle.
    fn slowest_before(&mut self) -> Option<String> {
        let before = self.xruns.in_cycle.clone();
        let beyond = |control: &mut Self, record: &ClientRecord| {
            let usual_ns = control.usual(record.client).map_or(0, |usual| usual.duration_ns);
            record.duration_ns().unwrap_or(0).saturating_sub(usual_ns)
        };
        let slowest = before.iter().map(|record| (beyond(self, record), record.client)).max()?;
        self.parts.model.client(slowest.1).map(|client| client.name.clone())
    }
}
