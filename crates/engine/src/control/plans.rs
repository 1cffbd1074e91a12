//! The event loop's steps that concern plans and latencies.

use proto::event::Event;
use sys::clock::now_ns;

use super::Control;
use super::latencies::driver_latency;
use super::publisher::CycleMode;
use crate::client_slot::ClientSlot;
use crate::order::order;

impl Control {
    /// Publishes a plan of the graph as it is, if one is due.
    pub(super) fn publish_plan(&mut self) {
        if !self.publisher.is_due(now_ns()) {
            return;
        }
        self.withdraw();
        // Of four plans, three are out at most: in force, retiring, and the one just withdrawn.
        debug_assert!(self.publisher.has_free_plan(), "the plan would be due for ever");
        if std::mem::take(&mut self.latencies.due) {
            self.recompute_latencies(true);
        }
        let members: Vec<u32> = if self.settings.pauses() { Vec::new() } else { self.members() };
        let order = order(&self.model, &members);
        self.limit_idle(!members.is_empty());
        self.clients.replace_signal_pages(&self.model);
        let in_force = self.publisher.in_force();
        self.clients.ask_for_mappings(&self.model, &self.members(), &order, in_force);
        self.clients.take_up_signal_pages(&order, now_ns());
        self.place(&order);
        let quantum = self.settings.quantum;
        self.clients.make_playback_present(&self.model, quantum);
        // A pause takes its time, which must not pass faster for the transport.
        let freewheels = self.settings.freewheels && !self.settings.pauses();
        let driver_waits = self.config.sync || freewheels || self.settings.driver.when_done;
        let has_active_clients = self.clients.slots.values().any(ClientSlot::is_active);
        let driver_captures = self.settings.driver.captures;
        let mode =
            CycleMode { quantum, freewheels, driver_waits, has_active_clients, driver_captures };
        let recorders = self.streams.recorders();
        let graph = (&self.model, &order);
        self.publisher.publish(graph, &mut self.clients, &recorders, mode, &self.shared.next);
        self.shared.call_driver();
    }

    /// The clients that the next plan has, but for a pause.
    pub(super) fn members(&self) -> Vec<u32> {
        let mut members = self.clients.members(self.settings.quantum);
        members.retain(|client| !self.settings.awaits_freewheel_callback(*client));
        members
    }

    /// Takes back a plan that the driver has not taken; if it has, that one is in force.
    pub(super) fn withdraw(&mut self) {
        if self.publisher.withdraw(&self.shared.next, &mut self.clients, now_ns()) {
            self.start_if_connected();
        }
        self.notice_adoption();
    }

    /// Takes back the plans that have retired, and notes which one runs.
    pub(super) fn notice_adoption(&mut self) {
        while let Some(retirement) = self.publisher.take_retired(&mut self.clients, now_ns()) {
            if retirement.is_adoption {
                self.start_if_connected();
            }
            if let Some(driver) = retirement.driver {
                self.driver_retired(driver);
            }
        }
    }

    /// Starts a driver that waits for listeners, once it has some.
    pub(super) fn start_if_connected(&mut self) {
        let has_listeners = self.publisher.has_listeners();
        if let Some(start) = self.settings.start_trigger.as_mut().filter(|_| has_listeners) {
            start();
        }
    }

    /// Has all latencies computed again, those of the driver's ports at once.
    pub(super) fn recompute_latencies(&mut self, order_changed: bool) {
        let facts = &self.settings.driver;
        let waits = self.config.sync || facts.when_done;
        let latency = driver_latency(facts, self.settings.quantum, waits);
        if let Some(driver) = self.model.driver() {
            let changed = self.model.set_device_latency(driver, latency);
            self.note_latencies(&changed);
        }
        self.latencies.need_pass(order_changed);
    }

    /// Goes on with the latency pass under way, or begins the next one.
    pub(super) fn step_latencies(&mut self) {
        let Self { model, clients, notifications, latencies, .. } = self;
        let step = latencies.step(model, clients, notifications, now_ns());
        self.note_latencies(&step.ports);
        if step.order_changed {
            self.notify_all(&Event::GraphOrder, None);
        }
    }

    fn note_latencies(&self, ports: &[u32]) {
        ports.iter().for_each(|port| self.registry.note_latency(&self.model, *port));
    }
}
