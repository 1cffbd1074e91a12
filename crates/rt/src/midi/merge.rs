//! What an input hears: the events of all its sources, copied, by time and then in the order of the sources.

use super::{MidiReader, MidiWriter, Record};

/// Where [`merge`] reads. A source may be refused at any moment: then the rest of its events is lost.
pub trait MidiSources {
    /// How many there are.
    fn count(&self) -> usize;

    /// Lets `read` look at source number `index`; `None` if it has nothing to say in this cycle.
    fn with<R>(&self, index: usize, read: impl FnOnce(MidiReader<'_>) -> R) -> Option<R>;
}

/// How far a source has been read: its next event. For [`merge`], which wants one for each source.
#[derive(Debug, Clone, Copy, Default)]
pub struct Cursor {
    next: Record,
    source: u32,
    /// Number of the event after `next`.
    after: u32,
    events: u32,
}

impl Cursor {
    /// The source's first event of at least `time`, from number `after` on. Events that make no sense (outside of
    /// the buffer or of the cycle, or before the one before) are counted as lost and left out.
    fn at(
        source: u32,
        after: u32,
        events: u32,
        time: u32,
        from: MidiReader<'_>,
        into: Hearing<'_>,
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

/// Where events go to.
#[derive(Clone, Copy)]
struct Hearing<'a> {
    writer: MidiWriter<'a>,
    frames: u32,
}

/// The cursors whose next event is still to be written: a heap with the least on top.
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

    /// Puts `cursor` in the first one's place, or the last one if there is none.
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
            let children = [2 * at + 1, 2 * at + 2].into_iter().filter(|child| *child < self.length);
            let Some(least) = children.min_by_key(|child| self.cursors[*child].key()) else { return };
            if self.cursors[at].key() <= self.cursors[least].key() {
                return;
            }
            self.cursors.swap(at, least);
            at = least;
        }
    }

    /// Events that are not written.
    fn rest(&self) -> u32 {
        let waiting = self.cursors.get(..self.length).unwrap_or_default();
        waiting.iter().fold(0, |sum, cursor| sum.saturating_add(1 + cursor.events - cursor.after))
    }
}

/// Makes `into` the events of all sources, by time and among equals in the order of the sources, each source's in
/// their own order. What the sources have lost counts as lost here too; and once an event does not fit, so do
/// it and all that come after it. `cursors`: one for each source; sources beyond are not heard. Thread: cycle; in time
/// proportional to the events (times the logarithm of the sources).
pub fn merge(sources: &impl MidiSources, cursors: &mut [Cursor], into: MidiWriter<'_>, frames: u32) {
    into.clear();
    into.set_frames(frames);
    let hearing = Hearing { writer: into, frames };
    let mut queue = Queue { cursors, length: 0 };
    for (index, source) in (0..sources.count()).zip(0..) {
        let first = sources.with(index, |reader| {
            into.note_lost(reader.lost());
            Cursor::at(source, 0, reader.len(), 0, reader, hearing)
        });
        if let Some(cursor) = first.flatten() {
            queue.push(cursor);
        }
    }
    while let Some(Cursor { next, source, after, events }) = queue.first() {
        let step = sources.with(source as usize, |reader| {
            into.copy(reader.at(next)).ok()?;
            Some(Cursor::at(source, after, events, next.time, reader, hearing))
        });
        match step {
            Some(Some(cursor)) => queue.replace_first(cursor),
            Some(None) => {
                // The writer has counted the one that did not fit.
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
