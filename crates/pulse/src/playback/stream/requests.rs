//! When a program is asked for more, and for how much. Each request wakes it.
//!
//! By PulseAudio's rules, two minimal requests are left for the time until the bytes come: a
//! program with a latency of 20 ms is asked each 6 ms. If program and device have been in time for
//! a while, a short stream follows the device's clock instead: the device renders seven eighths of
//! what there may be, and the program is asked once for each of its wake-ups, shortly before.
//!
//! A program may want to be asked early: for each minimal request as soon as that is missing, at
//! any latency. It may have no more than that ready at once, and send silence for the rest.

use super::motion::LEAST_NS;
use super::{Look, Notice, Playback};
use crate::output::Output;

/// A request may be made earlier by this part of the time between two, together with others.
const SLACK_PART: u64 = 4;
/// The part of a short latency that is left for an answer, at least. One that misses the device's
/// wake-up has nearly as long again until the device looks for it once more, and is heard in its
/// place.
const SPARE_PART: u64 = 8;
/// Beside two of the slowest answers.
const ASIDE_NS: u64 = 1_000_000;
/// With each answer, this part of the slowest one is forgotten.
const FORGOTTEN_PART: u64 = 32;
/// Answers that take no more than this part of a short latency are fast, those that take more than
/// the other are slow.
const FAST_PART: u64 = 20;
const SLOW_PART: u64 = 10;
/// What a program sends is not read for this part of the time until the device needs it; and for
/// half of the time of a fast answer at most, so that it stays one.
const UNREAD_PART: u64 = 8;
/// A device that wakes more often runs cycles, or has been late: in percent of a short latency,
/// before its clock is followed, and when it is.
const LEAST_PERIODS_PERCENT: [u64; 2] = [25, 40];
/// How long until the device wakes by its new depth.
const SETTLED_NS: u64 = 200_000_000;
/// How long the device's clock is not followed, after the beginning and after trouble: the first
/// time only that long, twice that if there is trouble again soon, and at most the longest.
const BEGINNING_NS: u64 = 2_000_000_000;
const SHORTEST_CAUTION_NS: u64 = 2_000_000_000;
const LONGEST_CAUTION_NS: u64 = 10_000_000_000;

/// How long a program takes to send what it was asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Answers {
    /// When it was to be asked next; 0: that is not known.
    planned_ns: u64,
    /// When it was asked, or was to be asked, for what has not come.
    asked_ns: Option<u64>,
    slowest_ns: u64,
    /// Until when the device's clock is not followed.
    cautious_until_ns: u64,
    /// How long it was not followed after the last trouble; 0: there was none.
    caution_ns: u64,
}

impl Answers {
    /// Supposes a time for the first answer.
    pub fn new(supposed_ns: u64) -> Self {
        Self {
            planned_ns: 0,
            asked_ns: None,
            slowest_ns: supposed_ns,
            cautious_until_ns: 0,
            caution_ns: 0,
        }
    }

    fn asked(&mut self, now_ns: u64) {
        // This process was late itself.
        let planned_ns = std::mem::take(&mut self.planned_ns);
        let since_ns = if planned_ns > 0 { planned_ns.min(now_ns) } else { now_ns };
        self.asked_ns.get_or_insert(since_ns);
    }

    /// All that was asked for has come.
    pub fn came(&mut self, now_ns: u64) {
        if let Some(asked_ns) = self.asked_ns.take() {
            let forgotten_ns = self.slowest_ns / FORGOTTEN_PART;
            self.slowest_ns = (self.slowest_ns - forgotten_ns).max(now_ns.saturating_sub(asked_ns));
        }
    }

    /// The stream is heard from now on.
    pub fn began(&mut self, now_ns: u64) {
        self.cautious_until_ns = self.cautious_until_ns.max(now_ns + BEGINNING_NS);
    }

    /// The program or the device was late, or the stream paused, and nothing is lost: one such time
    /// in a while is no reason to wake the program twice as often for long.
    fn was_late(&mut self, now_ns: u64) {
        let is_rare = now_ns >= self.cautious_until_ns.saturating_add(LONGEST_CAUTION_NS);
        let longer_ns = if is_rare { 0 } else { 2 * self.caution_ns };
        self.caution_ns = longer_ns.clamp(SHORTEST_CAUTION_NS, LONGEST_CAUTION_NS);
        self.cautious_until_ns = self.cautious_until_ns.max(now_ns + self.caution_ns);
    }

    /// The stream has run out of frames, or nearly.
    pub fn be_cautious(&mut self, now_ns: u64) {
        self.caution_ns = LONGEST_CAUTION_NS;
        self.cautious_until_ns = now_ns + LONGEST_CAUTION_NS;
    }
}

impl<O: Output> Playback<O> {
    /// Asks for more if that is due, or if at least `least` bytes are missing of a stream that does
    /// not follow the device.
    pub(super) fn request(&mut self, now_ns: u64, least: u64) {
        let asks_ns = self.asks_ns(now_ns);
        let least = if asks_ns.is_some() { self.minimum_request() } else { least };
        let is_time = asks_ns.is_none_or(|asks_ns| now_ns + LEAST_NS >= asks_ns);
        if self.drains.is_empty() && is_time && self.bytes_before_request(now_ns, least) == 0 {
            let missing = self.missing(now_ns).clamp(0, self.full().into());
            self.requested = self.requested.saturating_add(missing);
            self.answers.asked(now_ns);
            self.notices.push(Notice::Request(missing as u32));
        }
    }

    /// Returns when the next request is due, and by how much earlier it may be made.
    pub(super) fn next_request(&mut self, now_ns: u64) -> Look {
        let asks_ns = self.asks_ns(now_ns);
        let least = if asks_ns.is_some() { self.minimum_request() } else { self.least_request() };
        let left = self.bytes_before_request(now_ns, least);
        let left_ns = self.pace().us(left) * 1000;
        let ask_ns = if left > 0 || asks_ns.is_none() { now_ns + left_ns + LEAST_NS } else { 0 };
        let ask_ns = ask_ns.max(asks_ns.unwrap_or(0));
        self.answers.planned_ns = ask_ns;
        let slack_ns = match asks_ns {
            Some(_) => 0,
            None => self.pace().us(least) * 1000 / SLACK_PART,
        };
        Look { due_ns: ask_ns, slack_ns }
    }

    /// Returns for how long what its program sends next need not be read, ns; 0 if it is not known
    /// when the device needs it.
    pub fn unread_ns(&self, now_ns: u64) -> u64 {
        if !self.runs {
            return u64::MAX;
        }
        let due = self.output.schedule().and_then(|schedule| schedule.due(self.output.written()));
        let spare_ns = due.map_or(0, |due| due.at_ns.saturating_sub(now_ns));
        let total_ns = self.attributes.total_us(self.pace()) * 1000;
        (spare_ns / UNREAD_PART).min(total_ns / (2 * FAST_PART))
    }

    /// Returns the least that is requested of a stream that is looked at early, along with others.
    pub(super) fn least_early_request(&self) -> u64 {
        let least = self.least_request();
        least - least / SLACK_PART
    }

    /// Returns the bytes that are to be heard before `least` can be requested.
    fn bytes_before_request(&mut self, now_ns: u64, least: u64) -> u64 {
        let least = i64::try_from(least).unwrap_or(i64::MAX);
        let worth = least.saturating_sub(self.missing(now_ns));
        // What has come unasked is heard first: it is no reason to ask for more of it.
        let full = u64::from(self.full());
        let unasked = (self.queued(now_ns) + 1).saturating_sub(full);
        worth.max(0).cast_unsigned().max(unasked)
    }

    /// Begins to follow the device's clock, or gives it up.
    pub(super) fn follow_device(&mut self, now_ns: u64) {
        let Some(schedule) = self.output.schedule() else { return };
        let total_ns = self.attributes.total_us(self.pace()) * 1000;
        let Answers { slowest_ns, cautious_until_ns, .. } = self.answers;
        let [before, following] =
            LEAST_PERIODS_PERCENT.map(|percent| schedule.interval_ns >= total_ns / 100 * percent);
        let is_cautious = now_ns < cautious_until_ns;
        let follows = match self.follows_since_ns {
            None => {
                let plays = self.plays();
                let is_fast = slowest_ns <= total_ns / FAST_PART;
                let is_short = self.attributes.is_short(self.pace()) && !self.attributes.asks_early;
                // The device renders more at once, and all of it must be there.
                let is_full = self.missing(now_ns) < i64::from(self.attributes.minimum_request);
                is_short && plays && is_fast && before && !is_cautious && is_full
            }
            Some(since_ns) => {
                let is_slow = slowest_ns > total_ns / SLOW_PART;
                let has_settled = now_ns >= since_ns + SETTLED_NS;
                self.runs && !is_slow && !is_cautious && (following || !has_settled)
            }
        };
        if follows != self.follows_since_ns.is_some() {
            self.follows_since_ns = follows.then_some(now_ns);
            if !follows {
                self.answers.was_late(now_ns);
            }
            self.wish_depth();
        }
    }

    /// Returns the bytes to be requested for the buffer to become as full as it should be; below 0
    /// if it is fuller.
    fn missing(&mut self, now_ns: u64) -> i64 {
        let queued = i64::try_from(self.queued(now_ns)).unwrap_or(i64::MAX);
        i64::from(self.full()).saturating_sub(queued).saturating_sub(self.requested)
    }

    /// Returns the bytes of a full buffer, and of what the device has ready.
    fn full(&self) -> u32 {
        let ready = if self.runs { self.ready_bytes() } else { 0 };
        self.attributes.target_length.saturating_add(ready)
    }

    /// Returns the bytes that the device has ready, beside the queue.
    fn ready_bytes(&self) -> u32 {
        self.pace().bytes(self.attributes.sink_latency_us)
    }

    fn minimum_request(&self) -> u64 {
        self.attributes.minimum_request.into()
    }

    /// Returns when a program is asked by the device's clock, ns: early enough for
    /// the bytes to come before the wake-up at which the device needs more than there is.
    /// `None`: by what is missing, also until the device is known to wake by its new depth.
    fn asks_ns(&self, now_ns: u64) -> Option<u64> {
        self.follows_since_ns.filter(|since_ns| now_ns >= since_ns + SETTLED_NS)?;
        let due = self.output.schedule()?.due(self.output.written())?;
        let least_ns = self.attributes.total_us(self.pace()) * 1000 / SPARE_PART;
        let spare_ns = self.answers.slowest_ns.saturating_mul(2).saturating_add(ASIDE_NS);
        Some(due.at_ns.saturating_sub(spare_ns.max(least_ns)))
    }

    /// Returns the bytes that are worth a request: as many as possible while it plays, since each
    /// wakes the program, unless that wants to be asked early. Two requests' worth is left for the
    /// time until they come.
    pub(super) fn least_request(&self) -> u64 {
        let least = self.minimum_request();
        if !self.runs || self.attributes.asks_early {
            return least;
        }
        let held = self.converter.latency_frames() * u64::from(self.program.rate_hz)
            / u64::from(self.device.rate_hz);
        let margin = 2 * least + held * u64::from(self.pace().frame_bytes);
        u64::from(self.attributes.target_length).saturating_sub(margin).max(least)
    }

    /// Returns the time of two minimal requests, ns.
    pub(super) fn two_requests_ns(&self) -> u64 {
        self.pace().us(2 * self.minimum_request()) * 1000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_followed_again_soon_unless_there_is_trouble_again() {
        const SECOND_NS: u64 = 1_000_000_000;
        let mut answers = Answers::new(0);
        answers.began(0);
        let mut late = |at: u64| {
            answers.was_late(at * SECOND_NS);
            answers.cautious_until_ns / SECOND_NS - at
        };
        assert_eq!([late(20), late(25), late(32), late(45), late(60)], [2, 4, 8, 10, 10]);
        assert_eq!(late(100), 2, "that was long ago");
        answers.be_cautious(200 * SECOND_NS);
        answers.was_late(203 * SECOND_NS);
        assert_eq!(answers.cautious_until_ns, 213 * SECOND_NS, "frames were missing");
    }
}
