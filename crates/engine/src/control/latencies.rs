//! Latencies: one pass over the clients in the order of the graph for capture, then one backwards
//! for playback, with the clients' latency callbacks on the way.

use proto::event::Event;

use super::clients::Clients;
use super::notifications::Notifications;
use super::questions::Questions;
use crate::latency::{enter, pass_through};
use crate::model::{Model, PortLatency};
use crate::opening::DriverFacts;
use crate::order::order;

/// The latency pass under way, and whether another is due.
///
/// A pass under way is not interrupted: whatever changes meanwhile, however often, is in the one
/// pass after it. Otherwise a program that keeps changing the graph would keep passes from ending.
#[derive(Debug)]
pub(super) struct Latencies {
    pass: Option<Pass>,
    /// The pass after the one under way, if there is to be one.
    next: Option<NextPass>,
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

/// A pass that begins when the one under way has ended.
#[derive(Debug, Clone, Copy, Default)]
struct NextPass {
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
        Self { pass: None, next: None, callbacks: Questions::default(), due: true }
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
    /// Asks for a pass that computes all latencies. With `order_changed`, clients are notified at
    /// its end that the order of the graph has changed.
    pub(super) fn need_pass(&mut self, order_changed: bool) {
        self.next.get_or_insert_default().order_changed |= order_changed;
    }

    /// Goes on with the pass under way until it waits for a callback or is done.
    pub(super) fn step(
        &mut self,
        model: &mut Model,
        clients: &mut Clients,
        notifications: &mut Notifications,
        now_ns: u64,
    ) -> LatencyStep {
        let mut step = LatencyStep::default();
        loop {
            self.begin_next(model);
            let Some(pass) = &mut self.pass else { break };
            let capture = pass.capture;
            let Some(&client) = pass.left.last() else {
                step.order_changed |= self.end_pass(model, &mut step.ports);
                continue;
            };
            let answer_due_ns = due_ns(&self.callbacks, client);
            // MUTATION: latencies.callback_awaited_without_end
            if answer_due_ns.is_some_and(|due_ns| now_ns < due_ns) {
                break;
            }
            if !std::mem::take(&mut pass.asked) {
                step.ports.extend(enter(model, client, capture));
                if answer_due_ns.is_none()
                    && let Some(token) = ask(clients, notifications, client, capture)
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

    /// Begins the next pass, if it is wanted and none is under way.
    fn begin_next(&mut self, model: &Model) {
        if self.pass.is_none() {
            let next = self.next.take();
            self.pass = next.map(|next| Pass::new(model, true, next.order_changed));
        }
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

/// Asks a client to call its latency callback, after it was notified of the connections that make
/// the latency. `None`: it has none.
fn ask(
    clients: &mut Clients,
    notifications: &mut Notifications,
    client: u32,
    capture: bool,
) -> Option<u64> {
    let activation = clients.slots.get(&client)?.activation?;
    if !activation.latency_callback {
        return None;
    }
    notifications.ask(clients, client, |token| Event::Latency { capture, token })
}

#[cfg(test)]
mod tests {
    use proto::request::Activation;

    use super::super::clients::tests::{Program, programs};
    use super::*;

    const CAPTURE: PortLatency = PortLatency { capture: 100, playback: 7, monitor: 0 };

    struct Scenario {
        program: (Model, Clients, Notifications),
        /// The clients with and without a callback.
        ids: [u32; 2],
        latencies: Latencies,
    }

    impl Scenario {
        /// Goes on; returns whether clients are to be notified of another order.
        fn step(&mut self, now_ns: u64) -> bool {
            let (model, clients, notifications) = &mut self.program;
            self.latencies.step(model, clients, notifications, now_ns).order_changed
        }

        /// The callback that runs returns.
        fn answer(&mut self) {
            let (token, client, _) = self.latencies.callbacks.iter().next().unwrap();
            self.latencies.callbacks.answered(client, token);
        }

        fn capture_latency(&self, port: &str) -> u32 {
            self.program.0.find(port).unwrap().capture_latency.max
        }
    }

    /// A device, a client with a latency callback, and one without: device → 1st → 2nd → device.
    fn scenario() -> Scenario {
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
        latencies.need_pass(true);
        let program = (model, clients, Notifications::default());
        Scenario { program, ids: [ids[0], ids[1]], latencies }
    }

    #[test]
    fn a_latency_pass_continues_once_a_callback_returns() {
        let mut scenario = scenario();
        assert!(!scenario.step(0));
        assert_eq!(scenario.capture_latency("first:in"), 100);
        assert_eq!(scenario.capture_latency("second:in"), 0, "the first one has not answered");
        let model = &mut scenario.program.0;
        let out = model.find("first:out").unwrap().id;
        model.set_latency(out, true, rt::shm::LatencyRange { min: 130, max: 130 });
        scenario.answer();
        scenario.step(0);
        assert_eq!(scenario.capture_latency("second:out"), 130);
    }

    #[test]
    fn a_callback_that_does_not_return_delays_a_pass_only_for_a_while() {
        let mut scenario = scenario();
        scenario.step(0);
        assert!(!scenario.step(CALLBACK_NS - 1));
        assert!(scenario.step(CALLBACK_NS));
        assert!(!scenario.step(CALLBACK_NS), "once");
    }

    #[test]
    fn a_client_that_leaves_is_not_waited_for() {
        let mut scenario = scenario();
        scenario.step(0);
        let first = scenario.ids[0];
        scenario.latencies.callbacks.forget(first);
        let (model, clients, _) = &mut scenario.program;
        clients.slots.remove(&first);
        model.close_client(first);
        assert!(scenario.step(0));
    }

    #[test]
    fn however_often_a_pass_is_asked_for_one_follows_the_one_under_way() {
        let mut scenario = scenario();
        scenario.step(0);
        let (mut answers, mut orders) = (0, 0);
        while scenario.latencies.callbacks.iter().next().is_some() {
            if answers < 2 {
                (0..100).for_each(|_| scenario.latencies.need_pass(false));
            }
            scenario.answer();
            answers += 1;
            orders += usize::from(scenario.step(0));
        }
        assert_eq!(answers, 4, "two passes, each in both directions");
        assert_eq!(orders, 1, "only the first pass was asked for by another order");
    }

    #[test]
    fn a_program_is_asked_for_a_latency_after_it_was_notified_of_the_connection() {
        let mut scenario = scenario();
        let (model, _, notifications) = &mut scenario.program;
        let first = scenario.ids[0];
        let [source, destination] =
            ["first:out", "second:in"].map(|port| model.find(port).unwrap().id);
        let connection = Event::Connection { source, destination, connected: true };
        let owner_of = |port| model.port(port).map(|port| port.owner);
        notifications.push(&connection, &[first], owner_of, 0);
        scenario.step(0);
        let due = scenario.program.2.take_due(|_, _| true, 0);
        let events: Vec<Event> =
            due.iter().map(|(_, packet)| proto::decode(packet).unwrap()).collect();
        assert_eq!(events[0], connection);
        assert!(matches!(events[1..], [Event::Latency { capture: true, .. }]), "{events:?}");
    }
}
