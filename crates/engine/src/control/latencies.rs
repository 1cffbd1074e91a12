//! One latency pass after the other: capture in the order of the clients, then playback backwards, then
//! everybody is told that the order of the graph is another.

use proto::event::Event;

use super::{Asked, Control};
use crate::latency::{enter, pass_through};
use crate::order::order;
use crate::plan::SYSTEM;
use rt::shm::LatencyRange;
use sys::clock::now_ns;

/// A pass under way.
#[derive(Debug)]
pub(super) struct LatencyPass {
    capture: bool,
    /// Clients to come, the next one last.
    left: Vec<u32>,
    /// The next client was asked in this pass.
    asked: bool,
    /// The graph has another order: everybody is told at the end.
    tells_order: bool,
}

/// A latency callback that does not return holds up nothing but other latencies, these not longer, and only once:
/// it is not called again before it has returned.
const CALLBACK_NS: u64 = 1_000_000_000;

impl Control {
    /// Computes all latencies anew, from the beginning. `order_changed`: everybody is told so at the end.
    pub(super) fn restart_latencies(&mut self, order_changed: bool) {
        self.state_system_latencies();
        let tells_order = order_changed || self.latency.take().is_some_and(|pass| pass.tells_order);
        self.latency = Some(self.latency_pass(true, tells_order));
    }

    fn latency_pass(&self, capture: bool, tells_order: bool) -> LatencyPass {
        let clients: Vec<u32> =
            self.parts.model.clients().map(|client| client.id).filter(|id| *id != SYSTEM).collect();
        let mut left = order(&self.parts.model, &clients).clients;
        if capture {
            left.reverse();
        }
        LatencyPass { capture, left, asked: false, tells_order }
    }

    /// What the driver's own ports add: a quantum to fetch, and one or (async) two until it is heard.
    fn state_system_latencies(&mut self) {
        let latency = self.parts.driver.latency;
        let own_cycles = if self.parts.config.sync || self.parts.driver.when_done { 1 } else { 2 };
        let cycles = latency.playback_quanta.saturating_add(own_cycles);
        let capture = self.quantum.saturating_add(latency.capture_frames);
        let playback = self.quantum.saturating_mul(cycles).saturating_add(latency.playback_frames);
        let captures = self.parts.driver.channels.capture;
        let ports: Vec<(u32, bool, u32)> = self
            .parts
            .model
            .ports_of(SYSTEM)
            .map(|port| {
                let frames = match port.is_output() {
                    // A monitor hears what was played in the cycle before.
                    true if port.number >= captures => self.quantum,
                    true => capture,
                    false => playback,
                };
                (port.id, port.is_output(), frames)
            })
            .collect();
        for (port, output, frames) in ports {
            if self.parts.model.set_latency(port, output, LatencyRange { min: frames, max: frames }) {
                self.parts.mirror.note_latency(&self.parts.model, port);
            }
        }
    }

    /// Goes on with the pass under way as far as it can.
    pub(super) fn step_latencies(&mut self) {
        // A program hears of a connection before it is asked what latency that makes.
        if self.is_announcing() {
            return;
        }
        while let Some(pass) = &mut self.latency {
            let (capture, tells_order) = (pass.capture, pass.tells_order);
            let Some(&client) = pass.left.last() else {
                self.end_pass(capture, tells_order);
                continue;
            };
            let answer_due_ns = self.asked.values().find_map(|asked| match asked {
                Asked::Latency { client: asked, deadline_ns } if *asked == client => Some(*deadline_ns),
                _ => None,
            });
            if answer_due_ns.is_some_and(|due_ns| now_ns() < due_ns) {
                return;
            }
            if !std::mem::take(&mut pass.asked) {
                self.note_latencies(|control| enter(&mut control.parts.model, client, capture));
                if answer_due_ns.is_none() && self.ask_latency(client, capture) {
                    continue;
                }
                self.note_latencies(|control| pass_through(&mut control.parts.model, client, capture));
            }
            if let Some(pass) = &mut self.latency {
                pass.left.pop();
            }
        }
    }

    fn end_pass(&mut self, capture: bool, tells_order: bool) {
        // What enters the driver's own ports at the end of the paths.
        self.note_latencies(|control| enter(&mut control.parts.model, SYSTEM, capture));
        self.latency = capture.then(|| self.latency_pass(false, tells_order));
        if !capture && tells_order {
            self.tell_all(&Event::GraphOrder, None);
        }
    }

    fn note_latencies(&mut self, compute: impl FnOnce(&mut Self) -> Vec<u32>) {
        for port in compute(self) {
            self.parts.mirror.note_latency(&self.parts.model, port);
        }
    }

    /// Has the client's latency callback called; false if it has none.
    fn ask_latency(&mut self, client: u32, capture: bool) -> bool {
        let activation = self.clients.get(&client).and_then(|slot| slot.activation);
        if !activation.is_some_and(|activation| activation.latency_callback) {
            return false;
        }
        let token = self.token(Asked::Latency { client, deadline_ns: now_ns() + CALLBACK_NS });
        if let Some(slot) = self.clients.get_mut(&client) {
            slot.outbox.push(&Event::Latency { capture, token });
        }
        if let Some(pass) = &mut self.latency {
            pass.asked = true;
        }
        true
    }
}
