//! When a plan is needed, what it is built from, and which plan the driver runs.

use std::collections::BTreeMap;

use rt::shm::Handover;
use rtrb::Consumer;

use super::clients::Clients;
use super::placement::{Placement, PlacementConfig};
use crate::client_slot::ClientSlot;
use crate::cycle_thread::Retired;
use crate::driver_swap::DriverSwap;
use crate::model::Model;
use crate::order::Order;
use crate::plan::{ClientView, GraphView, Plan, PlanPool, Sleep, build};

/// Builds plans, publishes them to the driver thread, and takes back those that have retired.
///
/// Plans are numbered by generation. A plan is *published* until the driver thread takes it; then
/// it is *in force*, and *running* once the driver thread has sent back the plan before.
#[derive(Debug)]
pub(super) struct PlanPublisher {
    /// Plans that are not in use.
    pool: PlanPool,
    /// Plans that the driver thread has left.
    retired: Consumer<Retired>,
    /// Which client runs on which CPU; `None`: the kernel decides.
    pub(super) placement: Option<Placement>,
    /// Time of the first change that the newest plan does not have, `CLOCK_MONOTONIC` ns.
    needed_since_ns: Option<u64>,
    in_force: u64,
    running: u64,
    newest: u64,
    published: Option<PublishedPlan>,
    /// The plan in force has listeners for the driver.
    has_listeners: bool,
    /// Goes into the next plan.
    driver_swap: Option<DriverSwap>,
    /// The first plan with the newest driver.
    driver_since: u64,
}

/// What becomes true when the driver takes a published plan.
#[derive(Debug)]
struct PublishedPlan {
    generation: u64,
    /// Where each of its clients will sleep.
    sleeps: BTreeMap<u32, Sleep>,
    has_listeners: bool,
}

/// What cycles of a new plan are to be like.
#[derive(Debug, Clone, Copy)]
pub(super) struct CycleMode {
    /// Length of a cycle, frames.
    pub(super) quantum: u32,
    /// Cycles follow each other without a pause.
    pub(super) freewheels: bool,
    /// The driver waits for the end of the graph in each cycle.
    pub(super) driver_waits: bool,
    /// Clients are active, also those that this plan leaves out.
    pub(super) has_active_clients: bool,
    /// What the driver's capture ports have is more than silence.
    pub(super) driver_captures: bool,
}

/// A plan that has come back from the driver thread.
#[derive(Debug, Default)]
pub(super) struct Retirement {
    /// The published plan has replaced it.
    pub(super) is_adoption: bool,
    /// The driver of the plans before, if the driver thread has left it.
    pub(super) driver: Option<DriverSwap>,
}

/// A plan is built this long after the first change that it brings: changes that come together are
/// one plan, and requests that follow each other do not wait for plans in between.
const DELAY_NS: u64 = 300_000;
/// How much longer the plan of a change may wait that is in no cycle: the program that has made the
/// change goes on, and needs the CPU.
const PUT_OFF_NS: u64 = 5_000_000;
/// Delay of a plan whose change is a mapping for which a connection has waited.
const SHORT_DELAY_NS: u64 = 50_000;

impl PlanPublisher {
    /// Publishes plans from `pool`; those that retire come back by `retired`.
    pub(super) fn new(
        pool: PlanPool,
        retired: Consumer<Retired>,
        config: Option<PlacementConfig>,
    ) -> Self {
        Self {
            pool,
            retired,
            placement: config.map(Placement::new),
            needed_since_ns: None,
            in_force: 0,
            running: 0,
            newest: 0,
            published: None,
            has_listeners: false,
            driver_swap: None,
            driver_since: 0,
        }
    }

    /// Notes that the graph, or what can be reached in it, has changed at `now_ns`.
    pub(super) fn need(&mut self, now_ns: u64) {
        let earlier_ns = self.needed_since_ns.unwrap_or(now_ns);
        self.needed_since_ns = Some(earlier_ns.min(now_ns));
    }

    /// Puts off a plan that is needed for a change at `now_ns` alone, which is in no cycle. What
    /// needs it from now on brings it forward.
    pub(super) fn put_off(&mut self, now_ns: u64) {
        if let Some(since_ns) = &mut self.needed_since_ns {
            *since_ns = now_ns + PUT_OFF_NS;
        }
    }

    /// Like [`need`](Self::need), with a shorter delay: a client has just confirmed a mapping for
    /// which a connection has waited.
    pub(super) fn need_soon(&mut self, now_ns: u64) {
        self.need(now_ns.saturating_sub(DELAY_NS - SHORT_DELAY_NS));
    }

    /// Returns whether the newest plan is not of the graph as it is.
    pub(super) fn is_needed(&self) -> bool {
        self.needed_since_ns.is_some()
    }

    /// When the next plan is to be built.
    pub(super) fn due_ns(&self) -> Option<u64> {
        self.needed_since_ns.map(|since_ns| since_ns + DELAY_NS)
    }

    /// Returns whether a plan is to be built at `now_ns`.
    pub(super) fn is_due(&self, now_ns: u64) -> bool {
        self.due_ns().is_some_and(|due_ns| due_ns <= now_ns)
    }

    /// Generation of the plan that the driver thread has taken.
    pub(super) fn in_force(&self) -> u64 {
        self.in_force
    }

    /// Generation of the plan that cycles have begun with: what it brings is what programs read and
    /// hear.
    pub(super) fn running(&self) -> u64 {
        self.running
    }

    /// Generation of the plan after the newest one.
    pub(super) fn next_generation(&self) -> u64 {
        self.newest + 1
    }

    /// Generation of the first plan that holds the graph as it is.
    pub(super) fn coming_generation(&self) -> u64 {
        if self.is_needed() { self.next_generation() } else { self.newest }
    }

    /// Returns whether cycles run the graph as it is.
    pub(super) fn runs_newest(&self) -> bool {
        !self.is_needed() && self.running >= self.newest
    }

    /// Puts a driver into the next plan.
    pub(super) fn hand_over(&mut self, swap: DriverSwap, now_ns: u64) {
        self.driver_swap = Some(swap);
        self.driver_since = self.next_generation();
        self.need(now_ns);
    }

    /// Closes a driver that was not taken.
    pub(super) fn drop_driver(&mut self) {
        self.driver_swap = None;
    }

    /// Returns whether a cycle of the plan `generation` is the newest driver's.
    pub(super) fn has_newest_driver(&self, generation: u64) -> bool {
        generation >= self.driver_since
    }

    /// Returns whether a plan is in force whose predecessor has not come back.
    pub(super) fn is_retiring(&self) -> bool {
        self.running < self.in_force
    }

    /// Returns whether the plan in force has listeners for the driver.
    pub(super) fn has_listeners(&self) -> bool {
        self.has_listeners
    }

    /// Returns whether there is a plan to build in; if not, one comes back within a cycle.
    pub(super) fn has_free_plan(&self) -> bool {
        !self.pool.is_empty()
    }

    /// Builds a plan of `order`, gives every client its assignment, and publishes the plan to the
    /// driver thread by `next`. `recorders` are the streams that record in the graph: see
    /// [`GraphView`].
    pub(super) fn publish(
        &mut self,
        (model, order): (&Model, &Order),
        clients: &mut Clients,
        recorders: &[(u32, Vec<u32>)],
        mode: CycleMode,
        next: &Handover<Plan>,
    ) {
        let Some(plan) = self.pool.take() else { return };
        self.needed_since_ns = None;
        let placement = self.placement.as_ref();
        let cpu = |client| placement.and_then(|placement| placement.cpu(client));
        let views = clients.slots.iter().map(|(id, slot)| (*id, client_view(slot, cpu(*id))));
        let graph = GraphView {
            model,
            order,
            clients: views.collect(),
            device_slabs: &clients.device_slabs,
            stream_slabs: &clients.stream_slabs,
            recorders,
            driver_captures: mode.driver_captures,
            captures: !mode.freewheels,
            driver_waits: mode.driver_waits,
            quantum: mode.quantum,
            driver_cpu: placement.and_then(Placement::driver_cpu),
            wakes_early: placement.is_some_and(Placement::wakes_early),
        };
        let mut assignments = build(plan, &graph);
        self.newest += 1;
        plan.generation = self.newest;
        plan.quantum = mode.quantum;
        plan.freewheels = mode.freewheels;
        plan.needs_cycles = mode.has_active_clients || plan.plays();
        plan.driver_swap = self.driver_swap.take();
        for (client, slot) in &mut clients.slots {
            match assignments.remove(client) {
                Some(words) => slot.memory.issue(words, self.newest, self.in_force),
                None => slot.memory.issue_absent(self.newest, self.in_force),
            }
        }
        let sleeps = plan.seats.iter().map(|seat| (seat.client, Sleep::from(seat.edges))).collect();
        let (generation, has_listeners) = (self.newest, plan.has_listeners);
        self.published = Some(PublishedPlan { generation, sleeps, has_listeners });
        if let Some(replaced) = next.publish(plan) {
            self.pool.give_back(replaced);
        }
    }

    /// Takes back the published plan if the driver thread has not taken it. Returns true if it has:
    /// that plan is in force.
    pub(super) fn withdraw(
        &mut self,
        next: &Handover<Plan>,
        clients: &mut Clients,
        now_ns: u64,
    ) -> bool {
        if self.published.is_none() {
            return false;
        }
        let Some(plan) = next.withdraw() else {
            self.adopted(clients, now_ns);
            return true;
        };
        self.published = None;
        // A driver that a later plan is to bring stays.
        if let Some(swap) = plan.driver_swap.take() {
            self.driver_swap = Some(swap);
        }
        self.pool.give_back(plan);
        false
    }

    /// Takes back the next plan that has retired, and notes which one runs.
    pub(super) fn take_retired(
        &mut self,
        clients: &mut Clients,
        now_ns: u64,
    ) -> Option<Retirement> {
        let (plan, replaced_by) = self.retired.pop().ok()?;
        let driver = plan.driver_swap.take();
        self.pool.give_back(plan);
        self.running = replaced_by;
        let published = self.published.as_ref().map(|published| published.generation);
        let is_adoption = published == Some(replaced_by);
        if is_adoption {
            self.adopted(clients, now_ns);
        }
        Some(Retirement { is_adoption, driver })
    }

    fn adopted(&mut self, clients: &mut Clients, now_ns: u64) {
        let Some(published) = self.published.take() else { return };
        self.in_force = published.generation;
        self.has_listeners = published.has_listeners;
        if clients.note_adoption(&published.sleeps, self.newest) {
            self.need(now_ns);
        }
    }
}

fn client_view(slot: &ClientSlot, cpu: Option<u32>) -> ClientView<'_> {
    ClientView {
        own: &slot.memory.own,
        assignments: &slot.memory.assignments,
        signals: &slot.memory.signals,
        slabs: &slot.memory.slabs,
        mapped_pages: &slot.pages,
        mapped_slabs: &slot.slabs,
        health: &slot.health,
        thread: slot.threads.process_thread(),
        sleep: slot.sleep,
        controls: slot.permissions.control,
        cpu,
    }
}

#[cfg(test)]
mod tests {
    use super::super::clients::tests::{Program, programs};
    use super::*;
    use crate::order::order;

    const MODE: CycleMode = CycleMode {
        quantum: 64,
        freewheels: false,
        driver_waits: false,
        has_active_clients: true,
        driver_captures: true,
    };

    /// A publisher, and the driver thread's side of it.
    struct Scenario {
        publisher: PlanPublisher,
        program: Program,
        next: Handover<Plan>,
        current: Option<&'static mut Plan>,
        to_retire: rtrb::Producer<Retired>,
    }

    impl Scenario {
        fn new() -> Self {
            let (to_retire, retired) = rtrb::RingBuffer::new(16);
            let mut pool = PlanPool::new();
            let current = pool.take();
            let publisher = PlanPublisher::new(pool, retired, None);
            let program = programs(&["client"]);
            Self { publisher, program, next: Handover::default(), current, to_retire }
        }

        fn publish(&mut self) {
            let Program { model, clients, ids } = &mut self.program;
            let order = order(model, ids);
            self.publisher.publish((model, &order), clients, &[], MODE, &self.next);
        }

        /// The driver thread takes the published plan, and gives back the one before.
        fn adopt(&mut self) {
            let next = self.next.take().unwrap();
            let generation = next.generation;
            let before = self.current.replace(next).unwrap();
            self.to_retire.push((before, generation)).unwrap();
        }

        fn withdraw(&mut self) -> bool {
            self.publisher.withdraw(&self.next, &mut self.program.clients, 0)
        }

        fn take_retired(&mut self) -> Option<bool> {
            let retirement = self.publisher.take_retired(&mut self.program.clients, 0)?;
            Some(retirement.is_adoption)
        }
    }

    #[test]
    fn changes_that_come_together_share_one_plan() {
        let mut publisher = Scenario::new().publisher;
        let start_ns = 1_000_000_000;
        assert!(!publisher.is_due(u64::MAX), "nothing has changed");
        publisher.need(start_ns);
        publisher.need(start_ns + DELAY_NS / 2);
        assert_eq!(publisher.due_ns(), Some(start_ns + DELAY_NS));
        publisher.need_soon(start_ns + DELAY_NS / 2);
        assert_eq!(publisher.due_ns(), Some(start_ns + DELAY_NS / 2 + SHORT_DELAY_NS));
    }

    #[test]
    fn a_plan_that_is_put_off_comes_at_once_for_another_change() {
        let mut publisher = Scenario::new().publisher;
        publisher.put_off(0);
        assert_eq!(publisher.due_ns(), None);
        publisher.need(0);
        publisher.put_off(0);
        assert_eq!(publisher.due_ns(), Some(PUT_OFF_NS + DELAY_NS));
        publisher.need(1000);
        assert_eq!(publisher.due_ns(), Some(1000 + DELAY_NS));
    }

    #[test]
    fn a_plan_runs_when_the_driver_has_given_back_the_one_before() {
        let mut scenario = Scenario::new();
        scenario.publisher.need(0);
        assert_eq!(scenario.publisher.coming_generation(), 1);
        scenario.publish();
        assert!(!scenario.publisher.is_needed() && !scenario.publisher.runs_newest());
        assert_eq!(scenario.take_retired(), None);
        scenario.adopt();
        assert_eq!(scenario.take_retired(), Some(true));
        assert!(scenario.publisher.runs_newest());
        assert_eq!((scenario.publisher.running(), scenario.publisher.in_force()), (1, 1));
        let slot = scenario.program.clients.slots.values().next().unwrap();
        assert_eq!(slot.sleep, Sleep::Turn, "it waits for the driver alone");
    }

    #[test]
    fn a_plan_that_was_not_taken_is_replaced() {
        let mut scenario = Scenario::new();
        for _ in 0..10 {
            scenario.publish();
            assert!(!scenario.withdraw(), "the driver has not taken it");
        }
        scenario.publish();
        scenario.adopt();
        assert_eq!(scenario.take_retired(), Some(true));
        assert_eq!(scenario.publisher.running(), 11);
    }

    #[test]
    fn a_plan_that_was_taken_is_in_force_before_the_one_before_is_back() {
        let mut scenario = Scenario::new();
        scenario.publish();
        scenario.adopt();
        assert!(scenario.withdraw());
        assert!(scenario.publisher.is_retiring());
        assert_eq!(scenario.take_retired(), Some(false), "it was noticed before");
        assert!(!scenario.publisher.is_retiring());
    }
}
