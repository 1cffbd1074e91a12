//! Events for a program that has not taken what was sent before. PulseAudio leaves out those that a
//! later one makes superfluous; here they wait as well, so that nobody fills a program's connection
//! by changing something over and over. Pure.

use std::collections::BTreeMap;

use pulseaudio::protocol::{
    SubscriptionEvent, SubscriptionEventFacility as Facility, SubscriptionEventType as EventType,
};

/// The events that wait: of each object one at most, so they are no more than there were objects
/// when the program fell behind, and are now.
#[derive(Debug, Default)]
pub(super) struct OwedEvents {
    /// By the number of the facility and the object's index, with its place in the order.
    events: BTreeMap<(u32, u32), (u64, SubscriptionEvent)>,
    next: u64,
}

impl OwedEvents {
    /// Adds what has become of an object.
    pub fn add(&mut self, facility: Facility, event_type: EventType, index: u32) {
        let key = (facility as u32, index);
        let event = SubscriptionEvent { event_facility: facility, event_type, index: Some(index) };
        let before = self.events.get_mut(&key).map(|(_, owed)| owed);
        match (before.as_ref().map(|owed| owed.event_type), event_type) {
            // Its program never knew it.
            (Some(EventType::New), EventType::Removed) => {
                self.events.remove(&key);
            }
            (Some(EventType::New | EventType::Changed), EventType::Changed) => {}
            _ => {
                let owed = self.events.entry(key).or_insert((self.next, event));
                owed.1 = event;
                self.next += 1;
            }
        }
    }

    /// Takes all of them, in the order in which objects had their first.
    pub fn take(&mut self) -> Vec<SubscriptionEvent> {
        let mut all: Vec<_> = std::mem::take(&mut self.events).into_values().collect();
        all.sort_unstable_by_key(|(order, _)| *order);
        all.into_iter().map(|(_, event)| event).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(owed: &mut OwedEvents) -> Vec<(EventType, Option<u32>)> {
        owed.take().into_iter().map(|event| (event.event_type, event.index)).collect()
    }

    #[test]
    fn an_object_has_one_event_whatever_becomes_of_it() {
        use EventType::{Changed, New, Removed};
        for (events, expected) in [
            (&[Changed, Changed, Changed][..], Some(Changed)),
            (&[New, Changed, Changed], Some(New)),
            (&[Changed, Removed], Some(Removed)),
            (&[New, Changed, Removed], None),
            (&[New, Removed, New], Some(New)),
        ] {
            let mut owed = OwedEvents::default();
            events.iter().for_each(|event| owed.add(Facility::SinkInput, *event, 7));
            let expected: Vec<_> = expected.map(|event| (event, Some(7))).into_iter().collect();
            assert_eq!(taken(&mut owed), expected, "{events:?}");
            assert_eq!(taken(&mut owed), [], "each once");
        }
    }

    #[test]
    fn events_keep_their_order_and_objects_of_other_kinds_theirs() {
        let mut owed = OwedEvents::default();
        owed.add(Facility::Client, EventType::New, 3);
        owed.add(Facility::SinkInput, EventType::New, 3);
        owed.add(Facility::SinkInput, EventType::Changed, 1);
        owed.add(Facility::Client, EventType::Changed, 3);
        let of = |(facility, index)| (facility, Some(index));
        let expected = [(Facility::Client, 3), (Facility::SinkInput, 3), (Facility::SinkInput, 1)];
        let taken = owed.take().into_iter().map(|event| (event.event_facility, event.index));
        assert_eq!(taken.collect::<Vec<_>>(), expected.map(of));
    }
}
