//! When each of many streams is to be looked at. Pure.

use std::collections::{BTreeMap, BTreeSet};

use crate::playback::Look;

/// The next look at each stream, by its index.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    looks: BTreeMap<u32, Look>,
    /// The same, by their times.
    order: BTreeSet<(u64, u32)>,
}

impl Agenda {
    /// Replaces the next look at a stream; `None`: there is none.
    pub fn set(&mut self, stream: u32, look: Option<Look>) {
        let before = match look {
            Some(look) => self.looks.insert(stream, look),
            None => self.looks.remove(&stream),
        };
        if let Some(before) = before {
            self.order.remove(&(before.due_ns, stream));
        }
        if let Some(look) = look {
            self.order.insert((look.due_ns, stream));
        }
    }

    /// Returns when the first look is due, ns.
    pub fn next_ns(&self) -> Option<u64> {
        self.order.first().map(|(due_ns, _)| *due_ns)
    }

    /// Returns the streams to be looked at, if any is due: these, and those that would be due soon
    /// after. Programs that play many streams wake once for all of them.
    ///
    /// A stream is looked at early by no more than the slack of one that is due, so one that is
    /// looked at often does not take the others along each time.
    pub fn due(&self, now_ns: u64) -> Vec<u32> {
        let due = self.order.range(..=(now_ns, u32::MAX));
        let mut streams: Vec<u32> = due.map(|(_, stream)| *stream).collect();
        let slack = streams.iter().filter_map(|stream| self.looks.get(stream));
        let Some(most_ns) = slack.map(|look| look.slack_ns).max() else { return streams };
        let later = self.order.range((now_ns.saturating_add(1), 0)..);
        let soon = later.take_while(|(due_ns, _)| due_ns - now_ns <= most_ns);
        let soon = soon.filter(|(due_ns, stream)| {
            self.looks.get(stream).is_some_and(|look| due_ns - now_ns <= look.slack_ns)
        });
        streams.extend(soon.map(|(_, stream)| *stream));
        streams
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(due_ns: u64, slack_ns: u64) -> Option<Look> {
        Some(Look { due_ns, slack_ns })
    }

    #[test]
    fn streams_that_are_due_soon_are_looked_at_together() {
        let mut agenda = Agenda::default();
        for (stream, due_ns) in [(1, 1000), (2, 1100), (3, 1250), (4, 1251)] {
            agenda.set(stream, look(due_ns, 250));
        }
        agenda.set(5, look(1001, 0));
        assert_eq!(agenda.next_ns(), Some(1000));
        assert!(agenda.due(999).is_empty());
        assert_eq!(agenda.due(1000), [1, 2, 3], "the fifth has to be looked at in time");
        (1..4).for_each(|stream| agenda.set(stream, None));
        assert_eq!(agenda.due(1001), [5], "no other");
        assert_eq!(agenda.due(u64::MAX), [5, 4]);
    }

    #[test]
    fn a_stream_that_is_looked_at_often_takes_no_patient_one_along() {
        let mut agenda = Agenda::default();
        agenda.set(1, look(1000, 3));
        agenda.set(2, look(1100, 500));
        assert_eq!(agenda.due(1000), [1]);
        agenda.set(1, look(1098, 3));
        assert_eq!(agenda.due(1098), [1, 2]);
    }

    #[test]
    fn a_look_replaces_the_one_before() {
        let mut agenda = Agenda::default();
        agenda.set(1, look(1000, 0));
        agenda.set(1, look(2000, 0));
        assert_eq!((agenda.next_ns(), agenda.due(1999)), (Some(2000), vec![]));
        agenda.set(1, None);
        assert_eq!((agenda.next_ns(), agenda.due(u64::MAX)), (None, vec![]));
        assert!(agenda.order.is_empty() && agenda.looks.is_empty());
    }
}
