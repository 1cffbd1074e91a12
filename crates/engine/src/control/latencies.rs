//! Latencies: one pass over the clients in the order of the graph for capture, then one backwards
//! for playback, with the clients' latency callbacks on the way.

use proto::event::Event;

use super::clients::Clients;
use super::questions::Questions;
use crate::latency::{enter, pass_through};
use crate::model::{Model, PortLatency};
use crate::opening::DriverFacts;
use crate::order::order;

/// The latency pass under way, and whether another is due.
#[derive(Debug)]
pub(super) struct Latencies {
    pass: Option<Pass>,
    /// Latency callbacks that have not returned, and the time until which they are waited for.
    pub(super) callbacks: Questions<u64>,
    /// The graph has changed since the latencies were computed.
    pub(super) due: bool,
}

/// A pass under way.
#[derive(Debug)]
struct Pass {
    capture: bool,
    /// The clients that remain, the next one last.
    left: Vec<u32>,
    /// The next client was asked in this pass.
    asked: bool,
    /// The order of the graph has changed, which clients are notified of at the end.
    order_changed: bool,
}

/// What a step has changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct LatencyStep {
    /// The ports whose latency has changed.
    pub(super) ports: Vec<u32>,
    /// Clients are to be notified that the order of the graph has changed.
    pub(super) order_changed: bool,
}

/// A latency callback that does not return delays only other latencies, by at most this, and only
/// once: it is not called again before it has returned.
const CALLBACK_NS: u64 = 1_000_000_000;

impl Default for Latencies {
    fn default() -> Self {
        Self { pass: None, callbacks: Questions::default(), due: true }
    }
}

/// The latencies of the driver's ports: one quantum for capture, and one (or two in async mode) for
/// playback. `waits`: the driver waits for the end of the graph in each cycle.
pub(super) fn driver_latency(facts: &DriverFacts, quantum: u32, waits: bool) -> PortLatency {
    let own_quanta = if waits { 1 } else { 2 };
    let playback_quanta = facts.latency.playback_quanta.saturating_add(own_quanta);
    let playback = quantum.saturating_mul(playback_quanta);
    PortLatency {
        capture: quantum.saturating_add(facts.latency.capture_frames),
        playback: playback.saturating_add(facts.latency.playback_frames),
        // A monitor hears what was played in the cycle before.
        monitor: quantum,
    }
}

impl Latencies {
    /// Computes all latencies from the beginning. With `order_changed`, clients are notified at the
    /// end that the order of the graph has changed.
    pub(super) fn restart(&mut self, model: &Model, order_changed: bool) {
        let unannounced = self.pass.take().is_some_and(|pass| pass.order_changed);
        self.pass = Some(Pass::new(model, true, order_changed || unannounced));
    }

    /// Goes on with the pass under way until it waits for a callback or is done.
    pub(super) fn step(
        &mut self,
        model: &mut Model,
        clients: &mut Clients,
        now_ns: u64,
    ) -> LatencyStep {
        let mut step = LatencyStep::default();
        while let Some(pass) = &mut self.pass {
            let capture = pass.capture;
            let Some(&client) = pass.left.last() else {
                step.order_changed |= self.end_pass(model, &mut step.ports);
                continue;
            };
            let answer_due_ns = due_ns(&self.callbacks, client);
            if answer_due_ns.is_some_and(|due_ns| now_ns < due_ns) {
                break;
            }
            if !std::mem::take(&mut pass.asked) {
                step.ports.extend(enter(model, client, capture));
                if answer_due_ns.is_none()
                    && let Some(token) = ask(clients, client, capture)
                {
                    self.callbacks.note(token, client, now_ns + CALLBACK_NS);
                    pass.asked = true;
                    continue;
                }
                step.ports.extend(pass_through(model, client, capture));
            }
            pass.left.pop();
        }
        step
    }

    /// Ends a pass, and begins the one for playback after the one for capture. Returns true if
    /// clients are to be notified that the order has changed.
    fn end_pass(&mut self, model: &mut Model, changed: &mut Vec<u32>) -> bool {
        let Some(Pass { capture, order_changed, .. }) = self.pass.take() else { return false };
        // The paths end at the devices' ports.
        for device in model.devices().collect::<Vec<u32>>() {
            changed.extend(enter(model, device, capture));
        }
        self.pass = capture.then(|| Pass::new(model, false, order_changed));
        !capture && order_changed
    }
}

impl Pass {
    fn new(model: &Model, capture: bool, order_changed: bool) -> Self {
        let mut left = order(model, &model.programs().collect::<Vec<u32>>()).clients;
        if capture {
            left.reverse();
        }
        Self { capture, left, asked: false, order_changed }
    }
}

/// Until when the callback of `client` is waited for, if it has not returned.
fn due_ns(callbacks: &Questions<u64>, client: u32) -> Option<u64> {
    callbacks.iter().find(|(_, asked, _)| *asked == client).map(|(_, _, due_ns)| *due_ns)
}

/// Asks a client to call its latency callback. `None`: it has none.
fn ask(clients: &mut Clients, client: u32, capture: bool) -> Option<u64> {
    let activation = clients.slots.get(&client)?.activation?;
    if !activation.latency_callback {
        return None;
    }
    clients.ask(client, |token| Event::Latency { capture, token })
}

#[cfg(test)]
mod tests {
    use proto::request::Activation;

    use super::super::clients::tests::{Program, programs};
    use super::*;

    const CAPTURE: PortLatency = PortLatency { capture: 100, playback: 7, monitor: 0 };

    /// A device, a client with a latency callback, and one without: device → 1st → 2nd → device.
    fn scenario() -> (Model, Clients, [u32; 2], Latencies) {
        let Program { mut model, mut clients, ids } = programs(&["first", "second"]);
        let device = model.driver().unwrap();
        for (source, destination) in [
            ("system:capture_1", "first:in"),
            ("first:out", "second:in"),
            ("second:out", "system:playback_1"),
        ] {
            model.connect(source, destination).unwrap();
        }
        model.set_device_latency(device, CAPTURE);
        let slot = clients.slots.get_mut(&ids[0]).unwrap();
        slot.activation = Some(Activation {
            process_thread: None,
            latency_callback: true,
            quantum_callback: false,
            freewheel_callback: false,
            session_callback: false,
            interests: proto::request::Interests::default(),
        });
        let mut latencies = Latencies::default();
        latencies.restart(&model, true);
        (model, clients, [ids[0], ids[1]], latencies)
    }

    fn capture_latency(model: &Model, port: &str) -> u32 {
        model.find(port).unwrap().capture_latency.max
    }

    #[test]
    fn a_latency_pass_continues_once_a_callback_returns() {
        let (mut model, mut clients, [first, _], mut latencies) = scenario();
        assert!(!latencies.step(&mut model, &mut clients, 0).order_changed);
        assert_eq!(capture_latency(&model, "first:in"), 100);
        assert_eq!(capture_latency(&model, "second:in"), 0, "the first one has not answered");
        let (token, ..) = latencies.callbacks.iter().next().unwrap();
        let out = model.find("first:out").unwrap().id;
        model.set_latency(out, true, rt::shm::LatencyRange { min: 130, max: 130 });
        latencies.callbacks.answered(first, token);
        latencies.step(&mut model, &mut clients, 0);
        assert_eq!(capture_latency(&model, "second:out"), 130);
    }

    #[test]
    fn a_callback_that_does_not_return_delays_a_pass_only_for_a_while() {
        let (mut model, mut clients, _, mut latencies) = scenario();
        latencies.step(&mut model, &mut clients, 0);
        assert!(!latencies.step(&mut model, &mut clients, CALLBACK_NS - 1).order_changed);
        assert!(latencies.step(&mut model, &mut clients, CALLBACK_NS).order_changed);
        assert!(!latencies.step(&mut model, &mut clients, CALLBACK_NS).order_changed, "once");
    }

    #[test]
    fn a_client_that_leaves_is_not_waited_for() {
        let (mut model, mut clients, [first, _], mut latencies) = scenario();
        latencies.step(&mut model, &mut clients, 0);
        latencies.callbacks.forget(first);
        clients.slots.remove(&first);
        model.close_client(first);
        assert!(latencies.step(&mut model, &mut clients, 0).order_changed);
    }
}
