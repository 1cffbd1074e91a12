//! The queue before the notification thread. The service thread fills it and never waits, and a
//! program's callback may block for as long as it likes, so events have a limit.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use proto::event::Event;

use crate::callbacks::Shutdown;

/// Events that may wait. The server holds back as many for a client that reads nothing.
const MOST_EVENTS: u32 = 4096;

/// A message to the notification thread.
#[derive(Debug)]
pub(crate) enum Notice {
    /// The client is about to become active.
    Activated,
    /// An event from the server that the program may have a callback for.
    Event(Event),
    /// The process thread has ended by itself.
    ProcessEnded {
        /// Number of the activation that the thread belongs to.
        activation: u32,
    },
    /// The server is gone and will not be replaced.
    Shutdown(Shutdown),
    /// Events found no room in the queue; it counts them.
    Lost,
    /// The client is closed.
    Quit,
}

/// Creates a queue.
pub(crate) fn notice_queue() -> (NoticeSender, NoticeReceiver) {
    let (notices, received) = channel();
    let counts = Arc::new(Counts::default());
    (NoticeSender { notices, counts: Arc::clone(&counts) }, NoticeReceiver { received, counts })
}

#[derive(Debug, Default)]
struct Counts {
    /// Events that wait.
    waiting: AtomicU32,
    /// Events that found no room since the last report.
    lost: AtomicU32,
}

/// The end of the threads that have something to report.
#[derive(Debug)]
pub(crate) struct NoticeSender {
    notices: Sender<Notice>,
    counts: Arc<Counts>,
}

/// The end of the notification thread.
#[derive(Debug)]
pub(crate) struct NoticeReceiver {
    received: Receiver<Notice>,
    counts: Arc<Counts>,
}

/// Whether the server waits for an answer to an event. It sends few of them at a time.
fn is_awaited(event: &Event) -> bool {
    matches!(
        event,
        Event::Quantum { .. }
            | Event::Freewheel { .. }
            | Event::Latency { .. }
            | Event::Session { .. }
    )
}

impl NoticeSender {
    /// Adds a notice. An event that finds no room is counted instead, unless the server waits for
    /// an answer to it.
    pub(crate) fn send(&self, notice: Notice) {
        // Relaxed, here and below: counts, which say nothing about other memory.
        // MUTATION: notice_queue.without_limit
        if let Notice::Event(event) = &notice
            && self.counts.waiting.fetch_add(1, Ordering::Relaxed) >= MOST_EVENTS
            && !is_awaited(event)
        {
            self.counts.waiting.fetch_sub(1, Ordering::Relaxed);
            // One notice for all that are lost until it is taken, at the place of the first.
            if self.counts.lost.fetch_add(1, Ordering::Relaxed) == 0 {
                let _ = self.notices.send(Notice::Lost);
            }
            return;
        }
        // Fails once the client is closed, when it does not matter.
        let _ = self.notices.send(notice);
    }
}

impl NoticeReceiver {
    /// Waits for the next notice. `None` once the client is closed.
    pub(crate) fn next(&self) -> Option<Notice> {
        match self.received.recv().ok()? {
            Notice::Lost => {
                let events = self.counts.lost.swap(0, Ordering::Relaxed);
                Some(Notice::Event(Event::Lost { events }))
            }
            notice => {
                if matches!(notice, Notice::Event(_)) {
                    self.counts.waiting.fetch_sub(1, Ordering::Relaxed);
                }
                Some(notice)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_beyond_the_limit_are_counted() {
        let (sender, receiver) = notice_queue();
        for _ in 0..MOST_EVENTS + 3 {
            sender.send(Notice::Event(Event::GraphOrder));
        }
        sender.send(Notice::Event(Event::Freewheel { on: true, token: 1 }));
        sender.send(Notice::Quit);
        let next = || match receiver.next() {
            Some(Notice::Event(event)) => Some(event),
            _ => None,
        };
        for _ in 0..MOST_EVENTS {
            assert_eq!(next(), Some(Event::GraphOrder));
        }
        assert_eq!(next(), Some(Event::Lost { events: 3 }), "where they would have come");
        assert_eq!(next(), Some(Event::Freewheel { on: true, token: 1 }), "it always has room");
        assert_eq!(next(), None);
        sender.send(Notice::Event(Event::GraphOrder));
        assert_eq!(next(), Some(Event::GraphOrder), "there is room again");
    }
}
