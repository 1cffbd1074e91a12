//! A program's bytes on their way into the ring.

use std::collections::VecDeque;

use client::stream::Wish;

use super::motion::LEAST_BEGINNING_US;
use super::{Notice, Playback};
use crate::output::Output;
use crate::wire::{ProgramBytes, Seek};

/// Bytes that are converted at once.
const PIECE_BYTES: usize = 4096;
/// How long after a wish the device goes on elsewhere in the ring, about, ns: it does so within 10
/// ms.
const OBEYED_NS: u64 = 5_000_000;
/// The part of the time of what is written again after which as much may be written again.
/// Converting it takes much less; a program that goes back with every byte would hold up all
/// others.
const REWRITING_PART: u64 = 8;
/// How much of that time may be ahead, ns: that of two seconds.
const REWRITING_AHEAD_NS: u64 = 2_000_000_000 / REWRITING_PART;

impl<O: Output> Playback<O> {
    /// Takes bytes of the program.
    pub fn write(&mut self, seek: Seek, bytes: &[u8], now_ns: u64) {
        self.write_before(0, seek, bytes.into(), now_ns);
    }

    /// Takes bytes of the program; `following` more have arrived and are written next. The stream
    /// may begin before those are converted.
    pub fn write_before(
        &mut self,
        following: u64,
        seek: Seek,
        bytes: ProgramBytes<'_>,
        now_ns: u64,
    ) {
        // Programs count the offset as well.
        let moved = if let Seek::Relative(offset) = seek { offset } else { 0 };
        self.requested = self.requested.saturating_sub(moved).saturating_sub(bytes.len() as i64);
        if self.requested <= 0 {
            self.answers.came(now_ns);
        }
        self.seek(seek, now_ns);
        let queued = self.queued(now_ns) + bytes.len() as u64;
        // What the device has ready is not the program's to count.
        let ready = self.pace().bytes(self.attributes.sink_latency_us);
        let most = u64::from(self.attributes.max_length) + u64::from(ready);
        // MUTATION: write.beyond_what_one_program_may_keep
        if queued > most.min(self.most_kept as u64) {
            self.notices.push(Notice::Overflow);
        } else if !bytes.is_empty() {
            self.take(bytes, following, now_ns);
        }
        self.update_before(following, now_ns);
    }

    /// Converts bytes of the program; if they are enough for the stream to begin, it does so with
    /// the first of them, while the others are converted.
    fn take(&mut self, bytes: ProgramBytes<'_>, following: u64, now_ns: u64) {
        let queued = self.queued(now_ns);
        let waits = self.prebuffers && self.backlog.is_empty();
        if !waits || !self.has_prebuffer(queued + bytes.len() as u64, following) {
            return self.append(bytes);
        }
        let least = u64::from(self.pace().bytes(LEAST_BEGINNING_US));
        let first = usize::try_from(least.saturating_sub(queued)).unwrap_or(usize::MAX);
        let (first, others) = bytes.split_at(first);
        self.append(first);
        if others.is_empty() {
            return;
        }
        let begins = self.has_news();
        if begins {
            self.prebuffers = false;
            let following = following + others.len() as u64;
            self.obey(following, now_ns);
            self.commit(following, now_ns);
        }
        self.append(others);
        if begins && self.runs {
            // A device that has not looked yet will find all of them.
            self.called_for = self.called_for.max(self.output.written());
        }
    }

    /// Throws away what is not heard yet.
    pub fn flush(&mut self, now_ns: u64) {
        self.write_index = self.read_index(now_ns);
        self.write_index -= self.write_index % i64::from(self.pace().frame_bytes);
        let played = self.runs;
        if self.attributes.prebuffer > 0 {
            self.hold();
            self.prebuffers = true;
            self.owes_started = true;
        }
        self.replaced.clear();
        self.splice(played);
        self.update(now_ns);
    }

    /// Moves as many bytes into the ring as there is room for.
    pub(super) fn fill(&mut self) {
        if !self.backlog.is_empty() {
            let mut backlog = std::mem::take(&mut self.backlog);
            let taken = self.convert(backlog.make_contiguous());
            backlog.drain(..taken);
            self.backlog = backlog;
        }
    }

    /// Converts bytes into the ring; returns how many had room.
    fn convert(&mut self, bytes: &[u8]) -> usize {
        let mut taken = self.copy(bytes.into());
        taken += self.decode(&bytes[taken..]);
        while taken < bytes.len() {
            let room = self.output.room() as u64;
            let most = usize::try_from(self.converter.most_bytes(room)).unwrap_or(usize::MAX);
            let count = most.min(bytes.len() - taken).min(PIECE_BYTES);
            if count == 0 {
                break;
            }
            let piece = &bytes[taken..taken + count];
            self.sent.push(piece);
            let Self { converter, output, .. } = self;
            converter.push(piece, |planes| output.write(planes));
            taken += count;
        }
        taken
    }

    /// Puts whole frames into the ring, if that has them as they come; returns how many bytes had
    /// room.
    fn copy(&mut self, bytes: ProgramBytes<'_>) -> usize {
        let Self { converter, output, .. } = self;
        let mut left = bytes;
        while output.holds_frames() && !left.is_empty() {
            let mut taken = 0;
            output.write_frames_in_place(|room| {
                taken = converter.copy_16(left.len(), room, |room| left.copy(room));
                taken
            });
            if taken == 0 {
                break;
            }
            left = left.split_at(taken).1;
        }
        bytes.len() - left.len()
    }

    /// Puts whole frames into the ring, if nothing is to be done to them but to decode them, and
    /// that has planes; returns how many bytes had room.
    fn decode(&mut self, bytes: &[u8]) -> usize {
        let Self { converter, output, .. } = self;
        let mut all_taken = 0;
        while !output.holds_frames() {
            let (left, mut taken) = (&bytes[all_taken..], 0);
            output.write_in_place(|planes| {
                let (bytes, frames) = converter.decode_into(left, planes);
                taken = bytes;
                frames
            });
            if taken == 0 {
                break;
            }
            all_taken += taken;
        }
        all_taken
    }

    /// Writes what the converter has kept, if the ring has room for it; returns whether it had.
    /// What is written from then on is converted by itself.
    pub(super) fn finish_conversion(&mut self) -> bool {
        if self.converter.held_frames() > self.output.room() as u64 {
            return false;
        }
        let Self { converter, output, .. } = self;
        converter.flush(|planes| output.write(planes));
        self.sent.end_run();
        self.begin_segment();
        true
    }

    /// What is written from now on follows what was written, in the ring and in the program.
    pub(super) fn begin_segment(&mut self) {
        let waiting = i64::try_from(self.backlog.len()).unwrap_or(i64::MAX);
        let index = self.write_index.saturating_sub(waiting);
        self.heard.begin(self.output.written(), index, self.program.rate_hz);
    }

    fn append(&mut self, bytes: ProgramBytes<'_>) {
        self.replaced.drain(..bytes.len().min(self.replaced.len()));
        self.write_index = self.write_index.saturating_add(bytes.len() as i64);
        self.fill();
        // Mostly there is room for all of them.
        let taken = if self.backlog.is_empty() { self.copy(bytes) } else { 0 };
        let (_, left) = bytes.split_at(taken);
        if left.is_empty() {
            return;
        }
        let left = left.read();
        let taken = if self.backlog.is_empty() { self.convert(&left) } else { 0 };
        self.backlog.extend(&left[taken..]);
    }

    fn seek(&mut self, seek: Seek, now_ns: u64) {
        let to = match seek {
            Seek::Relative(0) => return,
            Seek::Relative(offset) => self.write_index.saturating_add(offset),
            Seek::Absolute(index) => index,
            Seek::OnRead(offset) => self.read_index(now_ns).saturating_add(offset),
            Seek::OnEnd(offset) => {
                self.write_index.saturating_add(self.replaced.len() as i64).saturating_add(offset)
            }
        };
        let waits_from = self.write_index.saturating_sub(self.backlog.len() as i64);
        if to >= self.write_index {
            self.skip(to.abs_diff(self.write_index), now_ns);
        } else if to >= waits_from {
            let kept = usize::try_from(to - waits_from).unwrap_or(0);
            self.replace(kept, |playback| &mut playback.backlog);
            self.write_index = to;
        } else {
            self.go_back(to, now_ns);
        }
    }

    /// Goes on being written at a byte that is in the ring already. What is to be heard before it
    /// is written again: the ring cannot be changed where the device may have read it.
    fn go_back(&mut self, to: i64, now_ns: u64) {
        // MUTATION: go_back.without_limit
        let is_too_often = now_ns + REWRITING_AHEAD_NS < self.rewritten_until_ns;
        if is_too_often {
            return self.begin_at(to);
        }
        // Their own number: the device may publish another position at any time.
        let is_resampled_back = self.is_resampled_back();
        let unheard = self.unheard(now_ns);
        if is_resampled_back {
            // What goes back often is not to lose more with each time.
            self.keep_sent();
        }
        let begin = self.write_index.saturating_sub(unheard.len() as i64);
        let first = begin.max(self.index_when_obeyed(now_ns));
        let place = |index: i64| {
            usize::try_from(index.saturating_sub(begin)).unwrap_or(0).min(unheard.len())
        };
        let (from, kept) = (place(first), place(to));
        // Bytes that are only copied take less.
        let copied_part = if is_resampled_back { 1 } else { REWRITING_PART as usize };
        let cost = kept.saturating_sub(from).max(unheard.len() / copied_part);
        let again_ns = self.pace().us(cost as u64) * 1000 / REWRITING_PART;
        self.rewritten_until_ns = self.rewritten_until_ns.max(now_ns).saturating_add(again_ns);
        if to < first {
            return self.begin_at(to);
        }
        self.backlog = unheard;
        self.replace(kept, |playback| &mut playback.backlog);
        let before = Vec::from(std::mem::take(&mut self.backlog));
        let replaced = std::mem::take(&mut self.replaced);
        self.write_index = first;
        self.splice(self.runs);
        self.append(before[from..].into());
        self.replaced = replaced;
    }

    /// Drops what is not heard, and what was written before its program went back.
    fn begin_at(&mut self, to: i64) {
        self.replaced.clear();
        self.write_index = to;
        self.last_heard = self.last_heard.min(to);
        self.splice(self.runs);
    }

    /// Returns the byte at which the device stops playing what it plays, once it is asked to go on
    /// elsewhere.
    fn index_when_obeyed(&mut self, now_ns: u64) -> i64 {
        let obeyed_ns = if self.plays() { now_ns + OBEYED_NS } else { now_ns };
        let position = self.heard_position(obeyed_ns);
        let index = self.heard.index(position);
        index - index % i64::from(self.pace().frame_bytes)
    }

    /// Takes the bytes from `kept` on out of a queue whose end is the end of what was written. They
    /// are heard all the same if the program seeks beyond them.
    fn replace(&mut self, kept: usize, queue: impl FnOnce(&mut Self) -> &mut VecDeque<u8>) {
        let mut replaced = queue(self).split_off(kept);
        replaced.append(&mut self.replaced);
        self.replaced = replaced;
    }

    /// Leaves what was written up to a byte that is further on, and writes silence where nothing
    /// was.
    fn skip(&mut self, bytes: u64, now_ns: u64) {
        let most = u64::from(self.attributes.max_length).min(self.most_kept as u64);
        let most = most.saturating_sub(self.queued(now_ns));
        if bytes > most.max(self.replaced.len() as u64) {
            self.notices.push(Notice::Overflow);
            return;
        }
        let bytes = usize::try_from(bytes).unwrap_or(0);
        // Megabytes at times, so they are copied by slices.
        let mut all = Vec::with_capacity(bytes);
        let (first, second) = self.replaced.as_slices();
        for left in [first, second] {
            all.extend_from_slice(&left[..left.len().min(bytes - all.len())]);
        }
        let mut sample = Vec::new();
        convert::Encoder::new(self.program.format, 1)
            .push(&[&[0.0]], |silence| sample.extend_from_slice(silence));
        let (begun, missing) = (all.len() % sample.len(), bytes - all.len());
        let silence = sample.repeat(missing / sample.len() + 2);
        all.extend_from_slice(&silence[begun..begun + missing]);
        self.append(all.as_slice().into());
    }

    /// Goes on in the ring with what comes next, instead of what was written. It `played` until it
    /// was to.
    fn splice(&mut self, played: bool) {
        self.sent.clear(self.output.written());
        self.backlog.clear();
        self.converter.reset();
        self.drain_end = None;
        self.begin_segment();
        let position = self.output.written();
        self.went_on = (position, played);
        self.output.wish(Wish::Splice { position });
        self.output.commit();
    }
}
