//! Merging the events of an input's sources, ordered by time and then by source.

use super::{MidiReader, MidiWriter, Record};

/// The sources of [`merge`]. A source may become unreadable at any time; the rest of its events is
/// then lost.
pub trait MidiSources {
    /// Returns the number of sources.
    fn count(&self) -> usize;

    /// Calls `read` with source number `index`; `None` if it has no events in this cycle.
    fn with<R>(&self, index: usize, read: impl FnOnce(MidiReader<'_>) -> R) -> Option<R>;
}

/// How far a source has been read: its next event. [`merge`] needs one for each source.
#[derive(Debug, Clone, Copy, Default)]
pub struct Cursor {
    next: Record,
    source: u32,
    /// Number of the event after `next`.
    after: u32,
    events: u32,
}

impl Cursor {
    /// Returns the source's first event of at least `time`, from number `after` on. Skips malformed
    /// events (outside the buffer or the cycle, or earlier than the one before), and counts them as
    /// lost.
    fn at(
        source: u32,
        after: u32,
        events: u32,
        time: u32,
        from: MidiReader<'_>,
        into: MergeTarget<'_>,
    ) -> Option<Self> {
        let is_sound = |record: &Record| record.time >= time && record.time < into.frames;
        for index in after..events {
            if let Some(next) = from.record(index).filter(is_sound) {
                return Some(Self { next, source, after: index + 1, events });
            }
            into.writer.note_lost(1);
        }
        None
    }

    const fn key(&self) -> (u32, u32) {
        (self.next.time, self.source)
    }
}

/// Destination of the events.
#[derive(Clone, Copy)]
struct MergeTarget<'a> {
    writer: MidiWriter<'a>,
    frames: u32,
}

/// The cursors whose next event is still to be written: a heap with the earliest on top.
struct Queue<'a> {
    cursors: &'a mut [Cursor],
    length: usize,
}

impl Queue<'_> {
    fn push(&mut self, cursor: Cursor) {
        let Some(place) = self.cursors.get_mut(self.length) else { return };
        *place = cursor;
        let mut at = self.length;
        self.length += 1;
        while at > 0 && self.cursors[at].key() < self.cursors[(at - 1) / 2].key() {
            self.cursors.swap(at, (at - 1) / 2);
            at = (at - 1) / 2;
        }
    }

    fn first(&self) -> Option<Cursor> {
        self.cursors.get(..self.length)?.first().copied()
    }

    /// Replaces the top cursor by `cursor`, or by the last one if there is none.
    fn replace_first(&mut self, cursor: Option<Cursor>) {
        let cursor = cursor.unwrap_or_else(|| {
            self.length -= 1;
            self.cursors[self.length]
        });
        if self.length == 0 {
            return;
        }
        self.cursors[0] = cursor;
        let mut at = 0;
        loop {
            let children =
                [2 * at + 1, 2 * at + 2].into_iter().filter(|child| *child < self.length);
            let Some(least) = children.min_by_key(|child| self.cursors[*child].key()) else {
                return;
            };
            if self.cursors[at].key() <= self.cursors[least].key() {
                return;
            }
            self.cursors.swap(at, least);
            at = least;
        }
    }

    /// Returns the number of events that are not written yet.
    fn rest(&self) -> u32 {
        let waiting = self.cursors.get(..self.length).unwrap_or_default();
        waiting.iter().fold(0, |sum, cursor| sum.saturating_add(1 + cursor.events - cursor.after))
    }
}

/// Fills `into` with the events of all sources, ordered by time, then by source, then as in the
/// source.
///
/// Events that a source has lost count as lost here too. After the first event that does not fit,
/// the remaining ones are lost. `cursors` has one element for each source; further sources are
/// ignored. The time is proportional to the number of events, times the logarithm of the number of
/// sources. Thread: cycle.
pub fn merge(
    sources: &impl MidiSources,
    cursors: &mut [Cursor],
    into: MidiWriter<'_>,
    frames: u32,
) {
    into.clear();
    into.set_frames(frames);
    let target = MergeTarget { writer: into, frames };
    let mut queue = Queue { cursors, length: 0 };
    for (index, source) in (0..sources.count()).zip(0..) {
        let first = sources.with(index, |reader| {
            into.note_lost(reader.lost());
            Cursor::at(source, 0, reader.len(), 0, reader, target)
        });
        if let Some(cursor) = first.flatten() {
            queue.push(cursor);
        }
    }
    while let Some(Cursor { next, source, after, events }) = queue.first() {
        let step = sources.with(source as usize, |reader| {
            into.copy(reader.at(next)).ok()?;
            Some(Cursor::at(source, after, events, next.time, reader, target))
        });
        match step {
            Some(Some(cursor)) => queue.replace_first(cursor),
            Some(None) => {
                // The writer has already counted the one that did not fit.
                into.note_lost(queue.rest().saturating_sub(1));
                return;
            }
            None => {
                into.note_lost(1 + events - after);
                queue.replace_first(None);
            }
        }
    }
}
