//! When a stream runs, holds and ends, and when it asks for more.

use client::stream::Wish;

use super::{Look, Notice, Playback, Underrun};
use crate::output::Output;

/// After a device's wake-up, when its ring has room again.
const AFTER_WAKE_NS: u64 = 2_000_000;
/// The shortest sleep between two looks at a stream.
pub(super) const LEAST_NS: u64 = 1_000_000;
/// How often a stream that is about to begin or to end is looked at, if the device does not say
/// when that is.
const UNKNOWN_NS: u64 = 10_000_000;
/// How long before the device needs bytes that had no room they go into the ring: this process may
/// be late, and most rings have room at the next request anyway.
const FILLED_BEFORE_NS: u64 = 200_000_000;
/// How often a device that sleeps and should play is called.
const CALL_AGAIN_NS: u64 = 100_000_000;
/// How much must be written before a stream begins while the rest of its prebuffer waits to be
/// written, µs; and how many times that the rest may be.
pub(super) const LEAST_BEGINNING_US: u64 = 100_000;
const MOST_FOLLOWING: u64 = 8;
/// How long before its end a stream is expected to have one, at most, and the part of its buffer.
const ENDING_NS: u64 = 20_000_000;
const ENDING_PART: u64 = 4;

impl<O: Output> Playback<O> {
    /// Holds the stream, or lets it play.
    pub fn cork(&mut self, is_corked: bool, now_ns: u64) {
        self.is_corked = is_corked;
        self.update(now_ns);
    }

    /// Holds the stream, whatever its program wants, or lets it go on.
    pub fn suspend(&mut self, is_suspended: bool, now_ns: u64) {
        if self.is_suspended != is_suspended {
            self.is_suspended = is_suspended;
            self.update(now_ns);
        }
    }

    /// Plays what there is, without waiting for more.
    pub fn trigger(&mut self, now_ns: u64) {
        self.prebuffers = false;
        self.update(now_ns);
    }

    /// Waits until there is as much as before the beginning.
    pub fn prebuffer(&mut self, now_ns: u64) {
        self.prebuffers = self.attributes.prebuffer > 0;
        self.update(now_ns);
    }

    /// Notifies the program by [`Notice::Drained`] once everything is heard.
    pub fn drain(&mut self, tag: u32, now_ns: u64) {
        self.drains.push(tag);
        self.update(now_ns);
    }

    /// Does what follows from the state, the device and the time.
    pub fn update(&mut self, now_ns: u64) {
        self.update_before(0, now_ns);
    }

    /// The same when `following` bytes have arrived and are written next.
    pub(super) fn update_before(&mut self, following: u64, now_ns: u64) {
        self.obey(following, now_ns);
        self.request(now_ns, self.least_request());
        self.commit(following, now_ns);
    }

    /// The same at the time of the [next look](Self::next_look), or earlier by its slack.
    pub fn look(&mut self, now_ns: u64) {
        self.obey(0, now_ns);
        self.request(now_ns, self.least_early_request());
        self.commit(0, now_ns);
    }

    pub(super) fn obey(&mut self, following: u64, now_ns: u64) {
        self.fill();
        self.note_beginning(now_ns);
        self.note_underrun(now_ns);
        self.forget_heard(now_ns);
        let queued = self.queued(now_ns);
        let is_enough = self.has_prebuffer(queued, following);
        if (is_enough && self.has_news()) || (queued > 0 && !self.drains.is_empty()) {
            self.prebuffers = false;
        }
        if self.is_corked || self.is_suspended || self.prebuffers {
            self.hold();
        } else if queued > 0 || self.attributes.prebuffer == 0 {
            self.run(now_ns);
        }
        self.end(now_ns);
        self.note_end(now_ns);
        self.follow_device(now_ns);
    }

    /// Returns whether something was written since nothing was left to be heard.
    pub(super) fn has_news(&self) -> bool {
        self.underrun.is_none_or(|before| self.write_index > before.write_index)
    }

    /// Returns whether this much is enough to begin with. What follows may have to wait until other
    /// programs have had their turn, so there is to be something to play until then.
    pub(super) fn has_prebuffer(&self, queued: u64, following: u64) -> bool {
        let prebuffer = u64::from(self.attributes.prebuffer);
        let lasts =
            self.pace().us(queued) >= LEAST_BEGINNING_US && queued >= following / MOST_FOLLOWING;
        queued >= prebuffer || (lasts && queued + following >= prebuffer)
    }

    /// Makes the device obey the wishes. If there are none and it sleeps, it is called for bytes
    /// that came after it had played all there was, which nobody may have noticed, and again as
    /// long as it has not begun: not for each of those that follow its first ones.
    pub(super) fn commit(&mut self, following: u64, now_ns: u64) {
        let (written, has_wishes) = (self.output.written(), !self.output.is_committed());
        self.output.commit();
        let is_called = has_wishes && self.output.is_committed();
        let sleeps = self.runs && self.output.schedule().is_none();
        let begins = self.begins_at.is_some();
        let waits = begins && now_ns >= self.called_ns + CALL_AGAIN_NS;
        let has_news = written > self.called_for && !(begins && following > 0);
        if is_called || (sleeps && (waits || has_news)) {
            (self.called_for, self.called_ns) = (written, now_ns);
            if !is_called {
                self.output.call();
            }
        }
    }

    /// Returns when to [look](Self::look) next; `None`: when its program asks for something.
    pub fn next_look(&mut self, now_ns: u64) -> Option<Look> {
        let earliest_ns = now_ns + LEAST_NS;
        let strict = |due_ns: u64| Some(Look { due_ns: due_ns.max(earliest_ns), slack_ns: 0 });
        if !self.output.is_committed() {
            return strict(0);
        }
        let has_sound = (self.has_news() && self.queued(now_ns) > 0) || !self.drains.is_empty();
        // That nothing is left is to be noted, too.
        if !self.runs || (!has_sound && self.underrun.is_some()) {
            // Only its program can change something.
            return None;
        }
        let unknown_ns = self.output.schedule().map_or(0, |next| next.wake_ns + AFTER_WAKE_NS);
        let unknown_ns = unknown_ns.max(now_ns + UNKNOWN_NS);
        let timing = self.output.timing();
        if let Some(position) = self.begins_at {
            let begins_ns = timing.time_of(position + 1).unwrap_or(unknown_ns);
            return strict(begins_ns);
        }
        let left = self.output.written().saturating_sub(self.heard_position(now_ns));
        let left_ns = left.saturating_mul(1_000_000_000) / u64::from(self.device.rate_hz);
        let mut next_ns = now_ns + left_ns + AFTER_WAKE_NS;
        if self.drain_end.is_none() {
            next_ns = next_ns.saturating_sub(AFTER_WAKE_NS + self.ending_ns());
        }
        if !self.backlog.is_empty() {
            next_ns = next_ns.min(self.fill_ns(unknown_ns));
        }
        if self.drains.is_empty() {
            let request = self.next_request(now_ns);
            if request.due_ns < next_ns {
                return Some(Look { due_ns: request.due_ns.max(earliest_ns), ..request });
            }
        }
        strict(next_ns)
    }

    /// Returns when bytes that wait for room are to go into the ring, which has room from `room_ns`
    /// on: in time before the device has rendered what is there.
    fn fill_ns(&self, room_ns: u64) -> u64 {
        let due = self.output.schedule().and_then(|next| next.due(self.output.written()));
        due.map_or(room_ns, |due| room_ns.max(due.at_ns.saturating_sub(FILLED_BEFORE_NS)))
    }

    pub(super) fn hold(&mut self) {
        if self.runs {
            self.runs = false;
            self.begins_at = None;
            self.output.wish(Wish::Hold);
        }
    }

    fn run(&mut self, now_ns: u64) {
        if !self.runs {
            self.runs = true;
            let position = self.output.timing().position_at(now_ns);
            self.began = self.heard.index(position);
            self.begins_at = Some(position);
            self.output.wish(Wish::Run);
        }
    }

    fn note_beginning(&mut self, now_ns: u64) {
        let heard = self.output.timing().position_at(now_ns);
        if self.begins_at.is_some_and(|begins_at| heard > begins_at) {
            self.begins_at = None;
            self.underrun = None;
            self.answers.began(now_ns);
            if std::mem::take(&mut self.owes_started) {
                self.notices.push(Notice::Started);
            }
        }
    }

    /// Asks the device to end exactly where the bytes end: as its program wants it, or because
    /// nothing more seems to come. Many programs never ask for it.
    fn end(&mut self, now_ns: u64) {
        if !self.runs {
            return;
        }
        let is_wanted = !self.drains.is_empty() || self.is_ending(now_ns);
        if !(is_wanted && self.backlog.is_empty() && self.finish_conversion()) {
            if self.drain_end.take().is_some() {
                self.output.wish(Wish::Drain { end: u64::MAX });
            }
            return;
        }
        let end = self.output.written();
        if self.drain_end != Some(end) {
            self.drain_end = Some(end);
            self.output.wish(Wish::Drain { end });
        }
    }

    fn is_ending(&mut self, now_ns: u64) -> bool {
        let heard = self.heard_position(now_ns);
        let left = self.output.written().saturating_sub(heard);
        let ending = self.ending_ns() * u64::from(self.device.rate_hz) / 1_000_000_000;
        self.begins_at.is_none() && left <= ending
    }

    fn ending_ns(&self) -> u64 {
        let total_us = self.pace().us(self.attributes.target_length.into());
        (total_us * 1000 / ENDING_PART).min(ENDING_NS)
    }

    fn note_end(&mut self, now_ns: u64) {
        if self.drains.is_empty() {
            return;
        }
        let is_heard = match self.drain_end {
            Some(end) => {
                let heard = self.output.timing().position_at(now_ns);
                heard >= end && self.output.written() == end && self.backlog.is_empty()
            }
            None => self.queued(now_ns) == 0,
        };
        if is_heard {
            let drained = self.drains.drain(..).map(|tag| Notice::Drained { tag });
            self.notices.extend(drained);
            if self.drain_end.is_some() {
                self.stop_at_end();
                self.note_out_of_frames(now_ns);
            }
        }
    }

    fn note_underrun(&mut self, now_ns: u64) {
        if !self.runs || self.begins_at.is_some() || !self.drains.is_empty() {
            return;
        }
        let is_heard = self.heard_position(now_ns) >= self.output.written();
        let is_out = is_heard && self.backlog.is_empty();
        if is_out && self.underrun.is_none() {
            self.note_out_of_frames(now_ns);
            let index = self.read_index(now_ns);
            self.notices.push(Notice::Underflow(index));
            if self.attributes.prebuffer > 0 {
                self.stop_at_end();
            }
        } else if !is_out {
            self.underrun = None;
        }
    }

    /// Nothing is left: what comes next waits for the prebuffer.
    fn stop_at_end(&mut self) {
        self.prebuffers = self.attributes.prebuffer > 0;
        self.hold();
        if let Some(position) = self.drain_end.take() {
            // It ended exactly, so what comes next begins at full level.
            self.output.wish(Wish::Splice { position });
        }
    }

    fn note_out_of_frames(&mut self, now_ns: u64) {
        self.underrun = Some(Underrun { since_ns: now_ns, write_index: self.write_index });
        self.owes_started = true;
        self.answers.be_cautious(now_ns);
    }
}
