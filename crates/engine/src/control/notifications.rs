//! Notifications on their way to the clients, in the order of the changes.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use proto::encode;
use proto::event::Event;

use super::clients::Clients;

/// The notifications that have not been put into an outbox, in a queue for each client.
///
/// The two clients at the ends of a connection are notified of it when it carries sound: a program
/// may then send its one MIDI event at once, and its reader does not miss it. Whatever else those
/// two are to be notified of waits behind that. All other clients are notified at once, so that
/// two clients that do not map each other's memory hold back no notification but their own.
#[derive(Debug, Default)]
pub(super) struct Notifications {
    /// What waits for each client, by its id; no queue is empty.
    waiting: BTreeMap<u32, VecDeque<Notification>>,
}

/// An event for one client.
#[derive(Debug)]
struct Notification {
    packet: Arc<[u8]>,
    awaits: Option<AwaitedConnection>,
}

/// A connection whose ends are notified of it when a plan with it runs.
#[derive(Debug, Clone, Copy)]
struct AwaitedConnection {
    source: u32,
    destination: u32,
    /// They are notified at this time at the latest: one of them may be stopped, and a driver may
    /// have no cycles.
    deadline_ns: u64,
}

/// Several cycles of all but the longest quanta.
const CARRIED_NS: u64 = 250_000_000;

impl Notifications {
    /// Puts a notification behind those that wait for the same client. `owner_of`: the client of a
    /// port.
    pub(super) fn push(
        &mut self,
        event: &Event,
        to: &[u32],
        owner_of: impl Fn(u32) -> Option<u32>,
        now_ns: u64,
    ) {
        let awaited = match *event {
            Event::Connection { source, destination, connected: true } => {
                let deadline_ns = now_ns + CARRIED_NS;
                Some(AwaitedConnection { source, destination, deadline_ns })
            }
            _ => None,
        };
        let ends = awaited.map(|awaited| [awaited.source, awaited.destination].map(owner_of));
        let is_end = |client: u32| ends.is_some_and(|ends| ends.contains(&Some(client)));
        let packet: Arc<[u8]> = encode(event).into();
        for client in to {
            // MUTATION: notifications.all_wait_for_a_connection
            let awaits = awaited.filter(|_| is_end(*client));
            let notification = Notification { packet: Arc::clone(&packet), awaits };
            self.waiting.entry(*client).or_default().push_back(notification);
        }
    }

    /// Asks `client` a question, after it was notified of what comes before; returns the token of
    /// the answer. `None`: there is no such client.
    pub(super) fn ask(
        &mut self,
        clients: &mut Clients,
        client: u32,
        question: impl FnOnce(u64) -> Event,
    ) -> Option<u64> {
        let Some(queue) = self.waiting.get_mut(&client) else {
            return clients.ask(client, question);
        };
        let token = clients.next_token();
        let packet = encode(&question(token)).into();
        queue.push_back(Notification { packet, awaits: None });
        Some(token)
    }

    /// Takes each client's notifications up to the first whose connection carries no sound yet,
    /// according to `is_carried(source, destination)`: (client, packet).
    pub(super) fn take_due(
        &mut self,
        is_carried: impl Fn(u32, u32) -> bool,
        now_ns: u64,
    ) -> Vec<(u32, Arc<[u8]>)> {
        let waits = |notification: &Notification| {
            notification.awaits.is_some_and(|awaited| {
                // MUTATION: notifications.wait_without_end
                awaited.deadline_ns > now_ns && !is_carried(awaited.source, awaited.destination)
            })
        };
        let mut taken = Vec::new();
        self.waiting.retain(|client, queue| {
            let due = queue.iter().position(waits).unwrap_or(queue.len());
            taken.extend(queue.drain(..due).map(|notification| (*client, notification.packet)));
            !queue.is_empty()
        });
        taken
    }

    /// Drops what waits for a client that has gone.
    pub(super) fn forget(&mut self, gone: u32) {
        self.waiting.remove(&gone);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Port 12 is of client 1, and so on.
    fn owner_of(port: u32) -> Option<u32> {
        Some(port / 10)
    }

    fn connected(source: u32, destination: u32) -> Event {
        Event::Connection { source, destination, connected: true }
    }

    fn registered(port: u32) -> Event {
        Event::PortRegistration { port, registered: true }
    }

    fn pushed(events: &[Event], now_ns: u64) -> Notifications {
        let mut notifications = Notifications::default();
        for event in events {
            notifications.push(event, &[1, 2, 3], owner_of, now_ns);
        }
        notifications
    }

    /// What is taken for one of the clients.
    fn taken(
        notifications: &mut Notifications,
        client: u32,
        carried: &[(u32, u32)],
        now_ns: u64,
    ) -> Vec<Event> {
        let is_carried = |source, destination| carried.contains(&(source, destination));
        let due = notifications.take_due(is_carried, now_ns);
        let packets = due.iter().filter(|(to, _)| *to == client);
        packets.map(|(_, packet)| proto::decode(packet).unwrap()).collect()
    }

    #[test]
    fn the_ends_of_a_connection_are_notified_of_nothing_else_until_it_carries_sound() {
        let events = [registered(31), connected(11, 21), registered(32)];
        for client in [1, 2] {
            let mut notifications = pushed(&events, 0);
            assert_eq!(taken(&mut notifications, client, &[], 0), events[..1]);
            assert_eq!(taken(&mut notifications, client, &[(11, 31)], 0), [], "another connection");
            assert_eq!(taken(&mut notifications, client, &[(11, 21)], 0), events[1..]);
            assert!(notifications.waiting.is_empty());
        }
    }

    #[test]
    fn clients_at_neither_end_of_a_connection_do_not_wait_for_it() {
        let events = [connected(11, 21), registered(32), connected(12, 22)];
        assert_eq!(taken(&mut pushed(&events, 0), 3, &[], 0), events);
    }

    #[test]
    fn a_connection_that_never_carries_sound_is_announced_at_its_deadline() {
        let events = [connected(11, 21), registered(32)];
        let mut notifications = pushed(&events, 1_000);
        assert_eq!(taken(&mut notifications, 1, &[], 999 + CARRIED_NS), []);
        assert_eq!(taken(&mut notifications, 1, &[], 1_000 + CARRIED_NS), events);
    }

    #[test]
    fn nothing_waits_for_a_client_that_has_gone() {
        let mut notifications = pushed(&[connected(11, 21)], 0);
        notifications.forget(1);
        assert_eq!(taken(&mut notifications, 1, &[(11, 21)], 0), []);
    }
}
