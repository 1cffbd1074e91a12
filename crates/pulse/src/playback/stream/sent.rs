//! What is in the ring and not heard yet, as the program's bytes: to be written again there or on
//! another device.

use std::collections::VecDeque;
use std::ops::Range;

use convert::{Mixing, PlaybackConverter, ProgramFormat, RecordConverter, StreamFormat};

use super::{Pace, Playback};
use crate::output::Output;
use crate::playback::heard::Run;

/// The part of what is kept by which the room for it grows, at least.
const GROWTH_PART: usize = 8;
/// Frames that are read back at once.
const PIECE_FRAMES: usize = 1024;

/// The lowest rate with all the treble that is heard, Hz.
const AUDIBLE_HZ: u32 = 44_100;

/// Where these bytes are.
#[derive(Debug)]
pub(super) enum SentBytes {
    /// In the ring, as samples from which they can be converted back.
    InRing(InRing),
    /// Here: something of them that could be heard elsewhere is lost to what the device lacks.
    Kept(VecDeque<u8>),
}

/// Where they are in the ring.
#[derive(Debug)]
pub(super) struct InRing {
    /// The first position. From there on, the program's bytes follow each other.
    from: u64,
    /// The device's channels that have the program's.
    channels: Vec<usize>,
    /// The last bytes of the last run, which matter if they are resampled: the ring does not have
    /// all of them yet, or not what the filter needs behind them.
    last: VecDeque<u8>,
    most_last: usize,
}

impl SentBytes {
    /// None is sent yet; the first frame will be at this position.
    pub fn new(
        converter: &PlaybackConverter,
        program: &ProgramFormat,
        device: &StreamFormat,
        mixing: Mixing,
        from: u64,
    ) -> Self {
        let has_treble = device.rate_hz >= program.rate_hz.min(AUDIBLE_HZ);
        let Some(channels) = program.channels_on(device, mixing).filter(|_| has_treble) else {
            return Self::Kept(VecDeque::new());
        };
        // What the converter holds, and as much again: the way back has a filter as long.
        let held = 2 * converter.latency_frames();
        let frames = (held * u64::from(program.rate_hz)).div_ceil(device.rate_hz.into()) + 1;
        let most_last = frames as usize * Pace::of(program).frame_bytes as usize;
        Self::InRing(InRing { from, channels, last: VecDeque::new(), most_last })
    }

    /// Forgets all; the next frame is written at this position.
    pub fn clear(&mut self, position: u64) {
        match self {
            Self::InRing(ring) => {
                ring.from = position;
                ring.last.clear();
            }
            Self::Kept(bytes) => bytes.clear(),
        }
    }

    /// Notes bytes that go to the converter. The queue goes round in all the room that it has, so
    /// this grows by parts: doubled, much of it would be memory that is used for nothing.
    pub fn push(&mut self, piece: &[u8]) {
        match self {
            Self::InRing(ring) => {
                ring.last.extend(piece);
                ring.last.drain(..ring.last.len().saturating_sub(ring.most_last));
            }
            Self::Kept(bytes) => {
                let room = bytes.capacity() - bytes.len();
                if piece.len() > room {
                    bytes.reserve_exact(piece.len().max(bytes.len() / GROWTH_PART));
                }
                bytes.extend(piece);
            }
        }
    }

    /// Returns how many bytes are kept outside the ring.
    #[cfg(test)]
    pub fn kept(&self) -> usize {
        match self {
            Self::InRing(ring) => ring.last.len(),
            Self::Kept(bytes) => bytes.len(),
        }
    }

    /// Forgets those before the last `unheard`.
    pub fn forget_heard(&mut self, unheard: usize) {
        let (Self::InRing(InRing { last: bytes, .. }) | Self::Kept(bytes)) = self;
        bytes.drain(..bytes.len().saturating_sub(unheard));
    }

    /// All that was pushed is converted, to its end.
    pub fn end_run(&mut self) {
        if let Self::InRing(ring) = self {
            ring.last.clear();
        }
    }
}

impl<O: Output> Playback<O> {
    /// Forgets the bytes that have been heard.
    pub(super) fn forget_heard(&mut self, now_ns: u64) {
        let unheard = self.unheard_in_ring(now_ns);
        self.sent.forget_heard(unheard);
    }

    /// Returns all bytes that are not heard yet, up to the end of what was written. They are to be
    /// written again: after a [splice](Self::splice), or on another device.
    pub(super) fn unheard(&mut self, now_ns: u64) -> VecDeque<u8> {
        let count = self.unheard_in_ring(now_ns);
        let mut bytes = match &mut self.sent {
            SentBytes::InRing(_) => self.bytes_in_ring(count),
            SentBytes::Kept(bytes) => bytes.split_off(bytes.len() - count.min(bytes.len())),
        };
        bytes.append(&mut self.backlog);
        bytes
    }

    /// Returns whether [`unheard`](Self::unheard) resamples what is in the ring.
    pub(super) fn is_resampled_back(&self) -> bool {
        matches!(self.sent, SentBytes::InRing(_)) && self.converter.latency_frames() > 0
    }

    /// Keeps what is written from now on.
    pub(super) fn keep_sent(&mut self) {
        self.sent = SentBytes::Kept(VecDeque::new());
    }

    fn unheard_in_ring(&mut self, now_ns: u64) -> usize {
        let unheard = usize::try_from(self.queued(now_ns)).unwrap_or(usize::MAX);
        unheard.saturating_sub(self.backlog.len())
    }

    /// Returns the last `count` bytes of what was converted, or all that are in the ring.
    fn bytes_in_ring(&self, count: usize) -> VecDeque<u8> {
        let SentBytes::InRing(ring) = &self.sent else { return VecDeque::new() };
        // The same channels at the program's rate are its samples.
        let of_program = StreamFormat { map: self.program.map, ..self.device };
        let converter = RecordConverter::new(&of_program, &self.program, self.options);
        let Ok(mut converter) = converter else {
            debug_assert!(false, "it was possible the other way round");
            return VecDeque::new();
        };
        // Without latency, there is nothing but the beginning of a frame.
        let last = match self.converter.latency_frames() {
            0 => self.converter.partial().to_vec(),
            _ => ring.last.iter().copied().collect(),
        };
        let end = self.write_index.saturating_sub(self.backlog.len() as i64);
        let begin = end.saturating_sub_unsigned(count as u64);
        let last_begin = end.saturating_sub_unsigned(last.len() as u64);
        let mut bytes = Vec::with_capacity(count);
        for run in self.heard.runs(ring.from, (self.output.written(), end)) {
            // A frame that was not complete when its run ended is not in the ring.
            let length = run.bytes.end.saturating_sub(run.bytes.start);
            let whole = length - length % i64::from(self.pace().frame_bytes);
            let whole_end = run.bytes.start.saturating_add(whole);
            let is_over = run.bytes.end <= last_begin;
            let wanted_end = if is_over { whole_end } else { last_begin };
            let wanted = begin.max(run.bytes.start)..wanted_end;
            self.convert_back(&mut converter, ring, &run, wanted, &mut bytes);
        }
        let wanted = end - begin.max(last_begin);
        bytes.extend_from_slice(&last[last.len() - wanted as usize..]);
        bytes.into()
    }

    /// Adds those bytes of a run that are wanted, if there are any.
    fn convert_back(
        &self,
        converter: &mut RecordConverter,
        ring: &InRing,
        run: &Run,
        wanted: Range<i64>,
        bytes: &mut Vec<u8>,
    ) {
        if wanted.is_empty() {
            return;
        }
        let frame_bytes = u64::from(self.pace().frame_bytes);
        let before = wanted.start.abs_diff(run.bytes.start);
        let mut left_out = (before % frame_bytes) as usize;
        let end = bytes.len() + wanted.end.abs_diff(wanted.start) as usize;
        let add = |made: &[u8], bytes: &mut Vec<u8>, left_out: &mut usize| {
            let made = &made[std::mem::take(left_out).min(made.len())..];
            bytes.extend_from_slice(&made[..made.len().min(end - bytes.len())]);
        };
        let mut position = run.positions.start + converter.start_at(before / frame_bytes);
        let mut planes = vec![[0.0; PIECE_FRAMES]; ring.channels.len()];
        let oldest = self.output.written().saturating_sub(self.output.capacity_frames());
        while position < run.positions.end && bytes.len() < end {
            // What was written over was heard, and is before what is wanted: silence.
            let is_there = position >= oldest;
            let piece_end = run.positions.end.min(if is_there { u64::MAX } else { oldest });
            let piece = ..PIECE_FRAMES.min((piece_end - position) as usize);
            for (channel, plane) in ring.channels.iter().zip(&mut planes) {
                if is_there {
                    self.output.read(*channel as u32, position, &mut plane[piece]);
                }
            }
            let planes: Vec<&[f32]> = planes.iter().map(|plane| &plane[piece]).collect();
            converter.push(&planes, |made| add(made, bytes, &mut left_out));
            position += piece.end as u64;
        }
        converter.flush(|made| add(made, bytes, &mut left_out));
        // As of a ring that was refused.
        bytes.resize(end, 0);
    }
}
