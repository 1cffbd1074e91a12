//! Building, publishing and retiring plans.

use std::sync::Arc;

use proto::event::Event;
use rt::rouser::Rouser;
use sys::clock::now_ns;
use sys::memory::PeerSlab;

use super::{Asked, Control};
use crate::client_slot::ClientSlot;
use crate::handed::Handed;
use crate::model::{Model, Port};
use crate::order::order;
use crate::plan::{Books, ClientView, SYSTEM, Sleep, SourceView, build};

/// Generations, and whether another plan is needed.
#[derive(Debug, Default)]
pub(super) struct Plans {
    /// Since when the newest plan has not been what the graph is, `CLOCK_MONOTONIC` ns.
    needed_since_ns: Option<u64>,
    /// The plan that the driver has taken.
    in_force: u64,
    /// The plan that cycles have begun with.
    running: u64,
    newest: u64,
    published: Option<Published>,
    /// The plan in force has an audience for the driver.
    is_heard: bool,
    /// Goes into the next plan.
    handed: Option<Handed>,
    /// The first plan with the newest driver.
    driver_since: u64,
}

/// What the control thread has to know of a plan when the driver takes it.
#[derive(Debug)]
struct Published {
    generation: u64,
    /// Where each of its clients will sleep.
    sleeps: Vec<(u32, Sleep)>,
    has_audience: bool,
}

/// A plan is built so long after the first change that it brings, so that changes that come together are
/// one plan, and requests that come one after the other do not wait for plans in between.
const DELAY_NS: u64 = 300_000;
/// ... and so long after memory was mapped that a connection waits for.
const SHORT_DELAY_NS: u64 = 50_000;

impl Plans {
    /// The graph, or who can reach whom, is another since `now_ns`.
    pub(super) fn need(&mut self, now_ns: u64) {
        self.needed_since_ns.get_or_insert(now_ns);
    }

    /// As [`need`](Self::need), for what has waited already: it is built as soon as its like has had time to come.
    pub(super) fn need_soon(&mut self, now_ns: u64) {
        let since_ns = now_ns.saturating_sub(DELAY_NS - SHORT_DELAY_NS);
        self.needed_since_ns = Some(self.needed_since_ns.map_or(since_ns, |earlier| earlier.min(since_ns)));
    }

    pub(super) fn needed(&self) -> bool {
        self.needed_since_ns.is_some()
    }

    /// When the next plan is to be built.
    pub(super) fn due_ns(&self) -> Option<u64> {
        self.needed_since_ns.map(|since_ns| since_ns + DELAY_NS)
    }

    /// Generation of the plan that cycles have begun with: what it brings is what programs read and hear.
    pub(super) fn running(&self) -> u64 {
        self.running
    }

    /// The next plan brings a driver.
    pub(super) fn hand_over(&mut self, handed: Handed, now_ns: u64) {
        self.handed = Some(handed);
        self.driver_since = self.next_generation();
        self.need(now_ns);
    }

    /// Closes a driver that was not taken.
    pub(super) fn drop_driver(&mut self) {
        self.handed = None;
    }

    /// Whether a cycle of this plan is the newest driver's.
    pub(super) fn has_newest_driver(&self, generation: u64) -> bool {
        generation >= self.driver_since
    }

    /// Whether a plan is in force, and the one before is not back.
    pub(super) fn is_retiring(&self) -> bool {
        self.running < self.in_force
    }

    pub(super) fn newest(&self) -> u64 {
        self.newest
    }

    pub(super) fn next_generation(&self) -> u64 {
        self.newest + 1
    }
}

struct View<'a> {
    control: &'a Control,
}

impl View<'_> {
    fn slot(&self, client: u32) -> Option<&ClientSlot> {
        self.control.clients.get(&client)
    }
}

impl Books for View<'_> {
    fn client(&self, id: u32) -> ClientView<'_> {
        let slot = &self.control.clients[&id];
        let (own, signals, pulse) = (&slot.memory.own, &slot.memory.signals, &slot.pulse);
        ClientView { own, signals, pulse, sleep: slot.sleep, controls: slot.rights.control }
    }

    fn signal_page(&self, writer: u32, reader: u32) -> Option<u32> {
        let number = self.slot(reader)?.memory.signals.current().number;
        self.slot(writer)?.pages.mapped((reader, number))
    }

    fn source(&self, reader: u32, port: &Port) -> SourceView {
        let Some(slot) = port.slot else { return SourceView::Silent };
        if port.owner == reader {
            return SourceView::Own;
        }
        if port.owner == SYSTEM && self.control.freewheels {
            return SourceView::Silent;
        }
        let mapped = self.slot(reader).and_then(|reader| reader.slabs.mapped((port.owner, slot.slab)));
        mapped.map_or(SourceView::Silent, SourceView::Mapped)
    }

    fn slab(&self, port: &Port) -> Option<Arc<PeerSlab>> {
        let number = port.slot?.slab as usize;
        let slabs = match port.owner {
            SYSTEM => &self.control.parts.system_slabs,
            owner => &self.slot(owner)?.memory.slabs,
        };
        slabs.get(number).map(|slab| Arc::clone(&slab.peer))
    }

    fn cpu(&self, client: u32) -> Option<u32> {
        self.control.places.as_ref()?.cpu(client)
    }

    fn driver_cpu(&self) -> Option<u32> {
        self.control.places.as_ref()?.driver_cpu()
    }

    fn rouser(&self, cpu: u32, clients: usize) -> Option<&Arc<Rouser>> {
        let places = self.control.places.as_ref()?;
        self.control.rousers.on(cpu).filter(|_| places.are_roused(cpu, clients))
    }

    fn driver_waits(&self) -> bool {
        self.control.parts.config.sync || self.control.freewheels || self.control.parts.driver.when_done
    }
}

impl Control {
    /// Publishes a plan of the graph as it is, if one is due.
    pub(super) fn publish_plan(&mut self) {
        if self.plans.due_ns().is_none_or(|due_ns| now_ns() < due_ns) {
            return;
        }
        self.withdraw();
        let Some(plan) = self.parts.pool.take() else { return };
        self.plans.needed_since_ns = None;
        if std::mem::take(&mut self.latencies_due) {
            self.restart_latencies(true);
        }
        let paused = self.changeover.as_ref().is_some_and(super::changeover::Changeover::pauses);
        let members: Vec<u32> = if paused { Vec::new() } else { self.members() };
        let order = order(&self.parts.model, &members);
        self.limit_idle(!members.is_empty());
        self.replace_signal_pages();
        self.ask_for_mappings(&order.edges, &order.feedback.iter().copied().collect::<Vec<_>>());
        self.take_up_signal_pages(&order);
        self.place(&order);
        self.prepare_rousers(&order);
        let mut orders = build(plan, &self.parts.model, &order, &View { control: self });
        self.plans.newest += 1;
        plan.generation = self.plans.newest;
        plan.quantum = self.quantum;
        // Without clients, as in a pause, it would only burn time.
        plan.freewheels = self.freewheels && !members.is_empty();
        plan.handed = self.plans.handed.take();
        let (newest, in_force) = (self.plans.newest, self.plans.in_force);
        for (client, slot) in &mut self.clients {
            match orders.remove(client) {
                Some(words) => slot.memory.issue(words, newest, in_force),
                None => slot.memory.issue_absent(newest, in_force),
            };
        }
        let sleeps = plan.seats.iter().map(|seat| (seat.client, Sleep::from(seat.edges))).collect();
        self.plans.published =
            Some(Published { generation: newest, sleeps, has_audience: plan.has_audience });
        if let Some(replaced) = self.parts.shared.next.publish(plan) {
            self.parts.pool.give_back(replaced);
        }
    }

    pub(super) fn members(&self) -> Vec<u32> {
        let runs = |slot: &ClientSlot| slot.runs(self.quantum);
        self.clients.iter().filter(|(_, slot)| runs(slot)).map(|(client, _)| *client).collect()
    }

    /// Takes back a plan that the driver has not taken; if it has, that one is in force.
    pub(super) fn withdraw(&mut self) {
        if self.plans.published.is_none() {
            return;
        }
        match self.parts.shared.next.withdraw() {
            Some(plan) => {
                self.plans.published = None;
                // One that a later plan is to bring stays.
                if let Some(handed) = plan.handed.take() {
                    self.plans.handed = Some(handed);
                }
                self.parts.pool.give_back(plan);
            }
            None => self.adopted(),
        }
        self.notice_adoption();
    }

    /// Takes back the plans that are not in force any more, and notices which one is.
    pub(super) fn notice_adoption(&mut self) {
        while let Ok((plan, replaced_by)) = self.parts.retired.pop() {
            let retired = plan.handed.take();
            self.parts.pool.give_back(plan);
            self.plans.running = replaced_by;
            if self.plans.published.as_ref().is_some_and(|published| published.generation == replaced_by) {
                self.adopted();
            }
            if let Some(driver) = retired {
                self.driver_retired(driver);
            }
        }
    }

    fn adopted(&mut self) {
        let Some(published) = self.plans.published.take() else { return };
        self.plans.in_force = published.generation;
        for slot in self.clients.values_mut() {
            slot.sleep = Sleep::Absent;
        }
        for (client, sleep) in published.sleeps {
            if let Some(slot) = self.clients.get_mut(&client) {
                slot.sleep = sleep;
            }
            self.leave_signal_page(client);
        }
        self.plans.is_heard = published.has_audience;
        self.begin_if_heard();
    }

    /// Has a driver begin that waits for an audience, if there is one.
    pub(super) fn begin_if_heard(&mut self) {
        if let Some(begin) = self.parts.on_audience.as_mut().filter(|_| self.plans.is_heard) {
            begin();
        }
    }

    /// Asks clients to map what their connections need: the writer its follower's signal page, the reader
    /// the writer's slabs.
    fn ask_for_mappings(&mut self, edges: &[(u32, u32)], feedback: &[(u32, u32)]) {
        for (writer, reader) in edges {
            self.ask_for_page(*writer, *reader);
        }
        let pairs: Vec<(u32, u32)> = edges.iter().chain(feedback).copied().collect();
        let running: Vec<u32> = self.members();
        for reader in running {
            for (owner, slab) in sources(&self.parts.model, reader) {
                if owner == SYSTEM || pairs.contains(&(owner, reader)) {
                    self.ask_for_slab(reader, owner, slab);
                }
            }
        }
    }

    /// Asks for what one new connection needs, at once: the answers are there when the plan is built.
    pub(super) fn ask_for_connection(&mut self, source: u32, destination: u32) {
        let Some((source, reader)) = self.parts.model.port(source).zip(self.parts.model.port(destination))
        else {
            return;
        };
        let (writer, slot, reader) = (source.owner, source.slot, reader.owner);
        if writer == reader {
            return;
        }
        self.ask_for_page(writer, reader);
        if let Some(slot) = slot {
            self.ask_for_slab(reader, writer, slot.slab);
        }
    }

    fn ask_for_page(&mut self, writer: u32, reader: u32) {
        let Some(signals) = self.clients.get(&reader).map(|slot| &slot.memory.signals) else { return };
        let pages = [Some(signals.current()), signals.coming()];
        let unknown = |key| self.clients.get(&writer).is_some_and(|slot| slot.pages.is_unknown(key));
        let pages = pages.into_iter().flatten().map(|page| ((reader, page.number), Arc::clone(&page.memory)));
        let wanted: Vec<_> = pages.filter(|(key, _)| unknown(*key)).collect();
        let in_force = self.plans.in_force;
        for (key, memory) in wanted {
            let token = self.token(Asked::Page { client: writer, of: key });
            if let Some(slot) = self.clients.get_mut(&writer) {
                let page = slot.pages.ask(key, in_force);
                slot.outbox.push_with(&Event::MapSignals { page, token }, token, memory);
            }
        }
    }

    fn ask_for_slab(&mut self, reader: u32, owner: u32, number: u32) {
        let slabs = match owner {
            SYSTEM => &self.parts.system_slabs,
            owner => match self.clients.get(&owner) {
                Some(slot) => &slot.memory.slabs,
                None => return,
            },
        };
        let Some(memory) = slabs.get(number as usize).map(|slab| Arc::clone(&slab.memory)) else { return };
        if !self.clients.get(&reader).is_some_and(|slot| slot.slabs.is_unknown((owner, number))) {
            return;
        }
        let token = self.token(Asked::Slab { client: reader, of: (owner, number) });
        let in_force = self.plans.in_force;
        if let Some(slot) = self.clients.get_mut(&reader) {
            let slab = slot.slabs.ask((owner, number), in_force);
            slot.outbox.push_with(&Event::MapSlab { slab, token }, token, memory);
        }
    }

    /// The memory of `gone` is no more: everybody may unmap it, and nobody need map it.
    pub(super) fn forget_mappings_of(&mut self, gone: u32) {
        let is_gone = |asked: &Asked| match asked {
            Asked::Page { client, of: (of, _) } => *client == gone || *of == gone,
            Asked::OwnPage { client } => *client == gone,
            Asked::Slab { client, of: (owner, _) } => *client == gone || *owner == gone,
            Asked::Latency { client, .. } | Asked::Quantum { client, .. } | Asked::Freewheel { client } => {
                *client == gone
            }
        };
        let unanswered: Vec<(u64, Asked)> = self.asked.extract_if(|_, asked| is_gone(asked)).collect();
        let newest = self.plans.newest + 1;
        for (token, asked) in unanswered {
            self.cancel(token, asked, newest);
        }
        for slot in self.clients.values_mut() {
            for key in slot.pages.keys(|(of, _)| of == gone) {
                if let Some(page) = slot.pages.forget(key, newest) {
                    slot.outbox.push(&Event::UnmapSignals { page });
                }
            }
            for key in slot.slabs.keys(|(owner, _)| owner == gone) {
                if let Some(slab) = slot.slabs.forget(key, newest) {
                    slot.outbox.push(&Event::UnmapSlab { slab });
                }
            }
        }
        self.plans.need(now_ns());
    }

    /// Takes back what a client was asked and will not answer; memory only if it still waits to be sent.
    pub(super) fn cancel(&mut self, token: u64, asked: Asked, newest: u64) {
        match asked {
            Asked::Latency { .. } | Asked::OwnPage { .. } => {}
            Asked::Quantum { .. } | Asked::Freewheel { .. } => self.waits_no_more(token),
            Asked::Page { client, of } => {
                if let Some(slot) = self.clients.get_mut(&client).filter(|slot| slot.outbox.holds(token)) {
                    slot.outbox.cancel(token);
                    slot.pages.forget(of, newest);
                }
            }
            Asked::Slab { client, of } => {
                if let Some(slot) = self.clients.get_mut(&client).filter(|slot| slot.outbox.holds(token)) {
                    slot.outbox.cancel(token);
                    slot.slabs.forget(of, newest);
                }
            }
        }
    }
}

/// The slabs that the inputs of `reader` hear: (owner, number), each once.
fn sources(model: &Model, reader: u32) -> Vec<(u32, u32)> {
    let inputs = model.ports_of(reader).filter(|port| port.is_input());
    let outputs = inputs.flat_map(|port| &port.links).filter_map(|link| model.port(link.other));
    let mut slabs: Vec<_> = outputs
        .filter(|port| port.owner != reader)
        .filter_map(|port| Some((port.owner, port.slot?.slab)))
        .collect();
    slabs.sort_unstable();
    slabs.dedup();
    slabs
}
