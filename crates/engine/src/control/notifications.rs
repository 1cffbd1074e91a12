//! Notifications on their way to the clients, in the order of the changes.

use std::collections::VecDeque;
use std::sync::Arc;

use proto::encode;
use proto::event::Event;

/// Notifications that wait for a connection to carry sound, in their order: a program that is
/// notified of a connection may send its one MIDI event at once, and no reader may miss it.
#[derive(Debug, Default)]
pub(super) struct Notifications {
    waiting: VecDeque<Notification>,
}

/// An event for several clients.
#[derive(Debug)]
pub(super) struct Notification {
    pub(super) packet: Arc<[u8]>,
    pub(super) to: Vec<u32>,
    awaits: Option<AwaitedConnection>,
}

/// A connection that clients are notified of when a plan with it runs.
#[derive(Debug, Clone, Copy)]
struct AwaitedConnection {
    source: u32,
    destination: u32,
    /// Clients are notified at this time at the latest: one of them may be stopped, and a driver
    /// may have no cycles.
    deadline_ns: u64,
}

/// Several cycles of all but the longest quanta.
const CARRIED_NS: u64 = 250_000_000;

impl Notifications {
    /// Puts a notification behind those that wait.
    pub(super) fn push(&mut self, event: &Event, to: Vec<u32>, now_ns: u64) {
        let awaits = match *event {
            Event::Connection { source, destination, connected: true } => {
                let deadline_ns = now_ns + CARRIED_NS;
                Some(AwaitedConnection { source, destination, deadline_ns })
            }
            _ => None,
        };
        self.waiting.push_back(Notification { packet: encode(event).into(), to, awaits });
    }

    /// Takes the notifications up to the first whose connection carries no sound yet, according to
    /// `is_carried(source, destination)`.
    pub(super) fn take_due(
        &mut self,
        is_carried: impl Fn(u32, u32) -> bool,
        now_ns: u64,
    ) -> Vec<Notification> {
        let waits = |notification: &Notification| {
            notification.awaits.is_some_and(|awaited| {
                awaited.deadline_ns > now_ns && !is_carried(awaited.source, awaited.destination)
            })
        };
        let due = self.waiting.iter().position(waits).unwrap_or(self.waiting.len());
        self.waiting.drain(..due).collect()
    }

    /// Returns whether no notification waits, so that what clients learn by another way need not
    /// wait either.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connected(source: u32, destination: u32) -> Event {
        Event::Connection { source, destination, connected: true }
    }

    fn taken(notifications: &mut Notifications, carried: &[(u32, u32)], now_ns: u64) -> Vec<Event> {
        let is_carried = |source, destination| carried.contains(&(source, destination));
        let due = notifications.take_due(is_carried, now_ns);
        due.iter().map(|notification| proto::decode(&notification.packet).unwrap()).collect()
    }

    #[test]
    fn notifications_wait_until_their_connection_carries_sound() {
        let mut notifications = Notifications::default();
        notifications.push(&Event::GraphOrder, vec![1], 0);
        notifications.push(&connected(1, 2), vec![1], 0);
        notifications.push(&Event::GraphOrder, vec![1], 0);
        assert_eq!(taken(&mut notifications, &[], 0), [Event::GraphOrder]);
        assert_eq!(taken(&mut notifications, &[(3, 4)], 0), [], "another connection");
        assert!(!notifications.is_empty());
        let rest = taken(&mut notifications, &[(1, 2)], 0);
        assert_eq!(rest, [connected(1, 2), Event::GraphOrder]);
        assert!(notifications.is_empty());
    }

    #[test]
    fn a_connection_that_never_carries_sound_is_announced_at_its_deadline() {
        let mut notifications = Notifications::default();
        notifications.push(&connected(1, 2), vec![1], 1_000);
        assert_eq!(taken(&mut notifications, &[], 999 + CARRIED_NS), []);
        assert_eq!(taken(&mut notifications, &[], 1_000 + CARRIED_NS), [connected(1, 2)]);
    }
}
