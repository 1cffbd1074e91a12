//! Two clients that map nothing, and what other programs are notified of meanwhile.

use std::time::{Duration, Instant};

use harness::{Server, eventually, in_three_attempts};
use proto::event::{Answer, Event};
use proto::request::{Reply, Request};
use proto::{decode, encode};

use crate::wire::{ByHand, INPUT, OUTPUT, in_modes};

/// A writer and a reader that answer nothing, so that no connection between them carries sound.
struct DeafPair {
    writer: ByHand,
    reader: ByHand,
    /// How often they were connected.
    connections: usize,
}

impl DeafPair {
    fn open(server: &Server) -> Self {
        let (mut writer, mut reader) =
            (ByHand::open(server, "writer"), ByHand::open(server, "reader"));
        writer.add_slab();
        writer.register("out", OUTPUT);
        reader.register("in0", INPUT);
        reader.register("in1", INPUT);
        writer.activate();
        reader.activate();
        Self { writer, reader, connections: 0 }
    }

    /// Makes another connection, and ends the one before after that: one always waits.
    fn connect(&mut self) {
        let ends = |number: usize| {
            let destination = format!("{}:in{}", self.reader.name, number % 2);
            (format!("{}:out", self.writer.name), destination)
        };
        let (source, destination) = ends(self.connections);
        let connect = Request::Connect { source, destination };
        assert_eq!(self.writer.wire.ask(connect), Reply::Done);
        if self.connections > 0 {
            let (source, destination) = ends(self.connections - 1);
            let disconnect = Request::Disconnect { source, destination };
            assert_eq!(self.writer.wire.ask(disconnect), Reply::Done);
        }
        self.connections += 1;
    }
}

/// An active client that has a latency callback.
fn listener(server: &Server) -> ByHand {
    let mut listener = ByHand::open(server, "listener");
    listener.activate_with(true);
    listener
}

/// The next event that has arrived.
fn next_event(client: &ByHand) -> Option<Event> {
    let mut buffer = [0; 4096];
    let received = client.events.try_receive(&mut buffer).ok()?;
    Some(decode(&buffer[..received.bytes]).expect("an event"))
}

fn answer(client: &ByHand, token: u64) {
    client.send_event_answer(&encode(&Answer::Called { token }), &[]);
}

/// Serves the client's events, for some seconds at most, until it had one for which `is_wanted`
/// holds. `disturb` is called before each look.
fn await_event(
    client: &ByHand,
    what: &str,
    is_wanted: impl Fn(&Event) -> bool,
    mut disturb: impl FnMut(),
) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while Instant::now() < deadline {
        disturb();
        while let Some(event) = next_event(client) {
            if is_wanted(&event) {
                return;
            }
            if let Event::Latency { token, .. } = event {
                disturb();
                answer(client, token);
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("{what}");
}

/// Connections and ports that a client is notified of, up to the registration of `port`.
fn notified_until(client: &ByHand, port: u32) -> Vec<Event> {
    let mut events = Vec::new();
    let last = Event::PortRegistration { port, registered: true };
    eventually("a notification of the port", || {
        events.extend(std::iter::from_fn(|| next_event(client)).filter(|event| {
            matches!(event, Event::Connection { .. } | Event::PortRegistration { .. })
        }));
        events.contains(&last).then_some(())
    });
    events
}

#[test]
fn a_connection_that_never_carries_sound_delays_no_notification_of_others() {
    // Shorter than the 250 ms for which its two ends wait.
    const AT_ONCE: Duration = Duration::from_millis(200);
    in_modes(|server| {
        let (listener, mut other) = (listener(server), ByHand::active(server, "other"));
        let mut deaf = DeafPair::open(server);
        deaf.connect();
        let mut names = (0..).map(|number| format!("in{number}"));
        in_three_attempts(|| {
            let before = other.register(&names.next().expect("a name"), INPUT);
            notified_until(&listener, before);
            let begin = Instant::now();
            deaf.connect();
            let port = other.register(&names.next().expect("a name"), INPUT);
            let events = notified_until(&listener, port);
            let is_in_order = matches!(
                events[..],
                [
                    Event::Connection { connected: true, .. },
                    Event::Connection { connected: false, .. },
                    Event::PortRegistration { registered: true, .. },
                ]
            );
            assert!(is_in_order, "{events:?}");
            let waited = begin.elapsed();
            if waited < AT_ONCE { Ok(()) } else { Err(format!("it waits for {waited:?}")) }
        });
    });
}

#[test]
fn connections_that_never_carry_sound_delay_no_latency_of_others() {
    in_modes(|server| {
        let listener = listener(server);
        let mut deaf = DeafPair::open(server);
        deaf.connect();
        // What belongs to the time before.
        std::thread::sleep(Duration::from_millis(50));
        while next_event(&listener).is_some() {}
        let is_order = |event: &Event| *event == Event::GraphOrder;
        await_event(&listener, "no order is announced", is_order, || deaf.connect());
    });
}

#[test]
fn latency_passes_end_while_a_program_asks_for_more() {
    in_modes(|server| {
        let listener = listener(server);
        let mut flood = ByHand::open(server, "flood");
        let is_second_half = |event: &Event| matches!(event, Event::Latency { capture: false, .. });
        await_event(&listener, "the pass begins again and again", is_second_half, || {
            for _ in 0..10 {
                assert_eq!(flood.wire.ask(Request::RecomputeLatencies), Reply::Done);
            }
        });
    });
}
