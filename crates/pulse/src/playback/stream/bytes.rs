//! A program's bytes on their way into the ring.

use client::stream::Wish;

use super::{Notice, Playback};
use crate::output::Output;
use crate::wire::Seek;

/// Bytes that are converted at once.
const PIECE_BYTES: usize = 4096;

impl<O: Output> Playback<O> {
    /// Takes bytes of the program.
    pub fn write(&mut self, seek: Seek, bytes: &[u8], now_ns: u64) {
        self.requested = self.requested.saturating_sub(bytes.len() as i64);
        if self.requested <= 0 {
            self.answers.came(now_ns);
        }
        self.seek(seek, now_ns);
        let queued = self.queued(now_ns) + bytes.len() as u64;
        // What the device has ready is not the program's to count.
        let ready = self.pace().bytes(self.attributes.sink_latency_us);
        if queued > u64::from(self.attributes.max_length) + u64::from(ready) {
            self.notices.push(Notice::Overflow);
        } else if !bytes.is_empty() {
            self.append(bytes);
        }
        self.update(now_ns);
    }

    /// Throws away what is not heard yet.
    pub fn flush(&mut self, now_ns: u64) {
        self.write_index = self.read_index(now_ns);
        self.write_index -= self.write_index % i64::from(self.pace().frame_bytes);
        if self.attributes.prebuffer > 0 {
            self.hold();
            self.prebuffers = true;
            self.owes_started = true;
        }
        self.splice();
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
        let mut taken = 0;
        while taken < bytes.len() {
            let room = self.output.room() as u64;
            let most = usize::try_from(self.converter.most_bytes(room)).unwrap_or(usize::MAX);
            let count = most.min(bytes.len() - taken).min(PIECE_BYTES);
            if count == 0 {
                break;
            }
            let piece = &bytes[taken..taken + count];
            self.sent.extend(piece);
            let Self { converter, output, .. } = self;
            converter.push(piece, |planes| output.write(planes));
            taken += count;
        }
        taken
    }

    /// Writes what the converter has kept, if the ring has room for it; returns whether it had.
    pub(super) fn finish_conversion(&mut self) -> bool {
        if self.converter.held_frames() > self.output.room() as u64 {
            return false;
        }
        let Self { converter, output, .. } = self;
        converter.flush(|planes| output.write(planes));
        true
    }

    /// What is written from now on follows what was written, in the ring and in the program.
    pub(super) fn begin_segment(&mut self) {
        let waiting = i64::try_from(self.backlog.len()).unwrap_or(i64::MAX);
        let index = self.write_index.saturating_sub(waiting);
        self.heard.begin(self.output.written(), index, self.program.rate_hz);
    }

    fn append(&mut self, bytes: &[u8]) {
        self.write_index = self.write_index.saturating_add(bytes.len() as i64);
        self.fill();
        // Mostly there is room for all of them.
        let taken = if self.backlog.is_empty() { self.convert(bytes) } else { 0 };
        self.backlog.extend(&bytes[taken..]);
    }

    fn seek(&mut self, seek: Seek, now_ns: u64) {
        let to = match seek {
            Seek::Relative(0) => return,
            Seek::Relative(offset) => self.write_index.saturating_add(offset),
            Seek::Absolute(index) => index,
            Seek::OnRead(offset) => self.read_index(now_ns).saturating_add(offset),
        };
        let waits_from = self.write_index.saturating_sub(self.backlog.len() as i64);
        if to >= self.write_index {
            self.skip(to.abs_diff(self.write_index), now_ns);
        } else if to >= waits_from {
            self.backlog.truncate(usize::try_from(to - waits_from).unwrap_or(0));
            self.write_index = to;
        } else {
            self.write_index = to;
            self.last_heard = self.last_heard.min(to);
            self.splice();
        }
    }

    /// Writes silence up to a byte that is further on.
    fn skip(&mut self, bytes: u64, now_ns: u64) {
        let most = u64::from(self.attributes.max_length).saturating_sub(self.queued(now_ns));
        if bytes > most {
            self.notices.push(Notice::Overflow);
            return;
        }
        let mut silence = Vec::new();
        convert::Encoder::new(self.program.format, 1)
            .push(&[&[0.0]], |sample| silence.extend_from_slice(sample));
        let silence: Vec<u8> = silence.into_iter().cycle().take(bytes as usize).collect();
        self.append(&silence);
    }

    /// Goes on in the ring with what comes next, instead of what was written.
    fn splice(&mut self) {
        self.sent.clear();
        self.backlog.clear();
        self.converter.reset();
        self.drain_end = None;
        self.begin_segment();
        self.output.wish(Wish::Splice { position: self.output.written() });
        self.output.commit();
    }
}
