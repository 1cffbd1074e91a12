//! A record stream's state: what waits for its program, and when there is more. Pure but for the
//! ring.

use std::collections::VecDeque;

use client::stream::Gains;
use convert::{
    ConvertError, Filter, Mixing, Options, ProgramFormat, RecordConverter, StreamFormat,
};

use super::attributes::RecordAttributes;
use super::conversion::{Conversion, Peaks};
use super::gain::RampedGains;
use crate::input::Input;
use crate::playback::Pace;

/// A change of volume takes this long.
pub(super) const RAMP_MS: u32 = 10;
/// Frames that are read at once.
const PIECE_FRAMES: usize = 1024;
/// Pieces at a look: some 40 ms at 48 kHz. Other programs wait until they are converted, which a
/// program makes costly that asks for a high rate and many channels.
const PIECES_AT_ONCE: usize = 2;
/// After a device's wake-up, when its frames are there.
const AFTER_WAKE_NS: u64 = 1_000_000;
/// The next look at a device that is late, or does not say yet when it wakes.
const UNKNOWN_NS: u64 = 5_000_000;
/// The next look at a device that sleeps, for a stream that lets it.
pub(super) const SLEEPING_NS: u64 = 500_000_000;

/// How a stream's bytes come from its frames.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Manner {
    /// How the source's channels go to the program's.
    pub mixing: Mixing,
    /// Peaks instead of samples.
    pub peaks: bool,
    /// The device may sleep, and there are no frames then.
    pub lets_sleep: bool,
}

/// What has been recorded, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordTimes {
    /// The byte after the last one that was recorded.
    pub write_index: i64,
    /// The byte that is sent next.
    pub read_index: i64,
    /// How long ago the last byte was recorded, µs.
    pub source_us: u64,
}

/// One record stream.
#[derive(Debug)]
pub(crate) struct Recording<I> {
    input: I,
    conversion: Conversion,
    program: ProgramFormat,
    source: StreamFormat,
    manner: Manner,
    attributes: RecordAttributes,
    gains: RampedGains,
    planes: Vec<Vec<f32>>,
    /// What waits for the program.
    queue: VecDeque<u8>,
    /// The most that may wait, besides what was granted.
    most_kept: usize,
    /// There may be more frames than were read at once.
    has_more: bool,
    write_index: i64,
    is_corked: bool,
    /// A user has suspended its source.
    is_suspended: bool,
    /// What the device knows.
    runs: bool,
    /// Likewise, frames; 0: nothing.
    interval_frames: u32,
    /// When to look for the last frames before a stop.
    stopped_ns: Option<u64>,
}

impl<I: Input> Recording<I> {
    /// Prepares a stream that holds.
    ///
    /// # Errors
    /// There is no conversion between the rates.
    pub fn new(
        input: I,
        program: ProgramFormat,
        source: StreamFormat,
        manner: Manner,
        attributes: RecordAttributes,
    ) -> Result<Self, ConvertError> {
        Ok(Self {
            input,
            conversion: conversion(&program, &source, manner, attributes)?,
            program,
            source,
            manner,
            attributes,
            gains: RampedGains::new(source.rate_hz * RAMP_MS / 1000),
            planes: vec![vec![0.0; PIECE_FRAMES]; source.map.channels()],
            queue: VecDeque::new(),
            most_kept: usize::MAX,
            has_more: false,
            write_index: 0,
            is_corked: true,
            is_suspended: false,
            runs: false,
            interval_frames: 0,
            stopped_ns: None,
        })
    }

    /// Returns what it was granted.
    pub fn attributes(&self) -> RecordAttributes {
        self.attributes
    }

    /// Returns what it reads.
    pub fn input(&self) -> &I {
        &self.input
    }

    /// Returns what it reads, to be changed.
    pub fn input_mut(&mut self) -> &mut I {
        &mut self.input
    }

    /// Returns the samples that its program receives.
    pub fn program(&self) -> &ProgramFormat {
        &self.program
    }

    /// Returns bytes and time of a frame of its program.
    pub fn pace(&self) -> Pace {
        Pace::of(&self.program)
    }

    /// Returns the bytes that wait for its program, or to be converted for it.
    pub fn kept_bytes(&self) -> usize {
        self.queue.len() + self.input.kept_bytes()
    }

    /// Limits the bytes that may wait for its program, besides what it was granted.
    pub fn keep_at_most(&mut self, bytes: usize) {
        self.most_kept = bytes;
    }

    /// Returns whether its program holds it.
    pub fn is_corked(&self) -> bool {
        self.is_corked
    }

    /// Returns whether it keeps the device awake.
    pub fn keeps_awake(&self) -> bool {
        !self.is_held() && !self.manner.lets_sleep
    }

    /// Returns whether the server has ended it.
    pub fn has_ended(&self) -> bool {
        self.input.has_ended()
    }

    /// The server has ended it, or has gone itself: what was recorded by then is kept.
    pub fn leave(&mut self, now_ns: u64) {
        self.input.leave(now_ns);
        self.update(now_ns);
    }

    /// Has the same stream go on elsewhere.
    ///
    /// # Errors
    /// What `go_on` says: nothing has changed.
    pub fn return_with<E>(
        &mut self,
        go_on: impl FnOnce(&mut I) -> Result<(), E>,
        now_ns: u64,
    ) -> Result<(), E> {
        go_on(&mut self.input)?;
        self.update(now_ns);
        Ok(())
    }

    /// Returns the samples of its source.
    pub fn source(&self) -> &StreamFormat {
        &self.source
    }

    /// Takes other attributes.
    pub fn set_attributes(&mut self, attributes: RecordAttributes, now_ns: u64) {
        self.attributes = attributes;
        self.update(now_ns);
    }

    /// Changes the gains of what is recorded from now on.
    pub fn set_gains(&mut self, gains: Gains) {
        self.gains.set(gains);
    }

    /// Converts what is recorded from now on to another rate.
    ///
    /// # Errors
    /// There is no conversion between the rates; nothing has changed.
    pub fn set_rate(&mut self, rate_hz: u32) -> Result<(), ConvertError> {
        let program = ProgramFormat { rate_hz, ..self.program };
        let conversion = conversion(&program, &self.source, self.manner, self.attributes)?;
        let most = self.most_bytes();
        let Self { queue, write_index, .. } = self;
        self.conversion.finish(|bytes| keep(queue, write_index, most, bytes));
        (self.program, self.conversion) = (program, conversion);
        Ok(())
    }

    /// Holds the stream, or lets it record.
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

    fn is_held(&self) -> bool {
        self.is_corked || self.is_suspended
    }

    /// Goes on with what another stream records, of samples like these.
    ///
    /// # Errors
    /// There is no conversion between the rates; nothing has changed.
    pub fn go_on_with(
        &mut self,
        input: I,
        source: StreamFormat,
        now_ns: u64,
    ) -> Result<(), ConvertError> {
        let conversion = conversion(&self.program, &source, self.manner, self.attributes)?;
        self.read(usize::MAX);
        let most = self.most_bytes();
        let Self { queue, write_index, .. } = self;
        self.conversion.finish(|bytes| keep(queue, write_index, most, bytes));
        (self.input, self.conversion, self.source) = (input, conversion, source);
        self.gains = RampedGains::new(source.rate_hz * RAMP_MS / 1000);
        self.planes = vec![vec![0.0; PIECE_FRAMES]; source.map.channels()];
        (self.runs, self.interval_frames, self.stopped_ns) = (false, 0, None);
        self.update(now_ns);
        Ok(())
    }

    /// Returns how its bytes come from its frames.
    pub fn manner(&self) -> Manner {
        self.manner
    }

    /// Returns whether its source has another rate than its program.
    pub fn is_resampled(&self) -> bool {
        self.source.rate_hz != self.program.rate_hz
    }

    /// Throws away what waits for the program.
    pub fn flush(&mut self) {
        self.read_all();
        self.queue.clear();
    }

    /// Takes all that was recorded, however long its conversion takes.
    pub fn read_all(&mut self) {
        self.read(usize::MAX);
    }

    /// Does what follows from the state, the device and the time.
    pub fn update(&mut self, now_ns: u64) {
        let is_held = self.is_held();
        if self.runs == is_held && self.input.run(!is_held) {
            self.runs = !is_held;
            self.stopped_ns = is_held.then_some(now_ns + UNKNOWN_NS);
        }
        let interval_us = self.attributes.interval_us(self.pace());
        let frames = interval_us * u64::from(self.source.rate_hz) / 1_000_000;
        let frames = u32::try_from(frames).unwrap_or(u32::MAX).max(1);
        if self.interval_frames != frames && self.input.set_interval(frames) {
            self.interval_frames = frames;
        }
        self.stopped_ns = self.stopped_ns.filter(|stopped_ns| *stopped_ns > now_ns);
        self.read(PIECES_AT_ONCE);
    }

    /// Returns when to [update](Self::update) next, ns; `None`: when its program asks for
    /// something.
    pub fn deadline(&mut self, now_ns: u64) -> Option<u64> {
        if self.has_more {
            return Some(now_ns);
        }
        if self.runs == self.is_held() || self.interval_frames == 0 {
            return Some(now_ns + UNKNOWN_NS);
        }
        if !self.runs {
            return self.stopped_ns;
        }
        Some(match self.input.due_ns() {
            Some(due_ns) if due_ns + AFTER_WAKE_NS > now_ns => due_ns + AFTER_WAKE_NS,
            None if self.manner.lets_sleep => now_ns + SLEEPING_NS,
            _ => now_ns + UNKNOWN_NS,
        })
    }

    /// Returns the next bytes for the program, whole frames, if there are some.
    pub fn take(&mut self) -> Option<Vec<u8>> {
        let count = self.queue.len().min(self.attributes.fragment as usize);
        (count > 0).then(|| self.queue.drain(..count).collect())
    }

    /// Returns what has been recorded by `now_ns`.
    pub fn times(&mut self, now_ns: u64) -> RecordTimes {
        let recorded = self.input.timing().position_at(now_ns);
        let late = recorded.saturating_sub(self.input.position());
        let late_us = late * 1_000_000 / u64::from(self.source.rate_hz);
        let held_us = self.conversion.held_frames() * 1_000_000 / u64::from(self.program.rate_hz);
        let waiting = i64::try_from(self.queue.len()).unwrap_or(i64::MAX);
        RecordTimes {
            write_index: self.write_index,
            read_index: self.write_index - waiting,
            source_us: late_us + held_us,
        }
    }

    fn most_bytes(&self) -> usize {
        self.most_kept.min(self.attributes.max_length as usize)
    }

    /// Takes the frames that the device has passed on, `most` pieces of them at once.
    fn read(&mut self, most_pieces: usize) {
        let most = self.most_bytes();
        for _ in 0..most_pieces {
            let mut into: Vec<&mut [f32]> = self.planes.iter_mut().map(Vec::as_mut_slice).collect();
            let frames = self.input.read(&mut into);
            self.has_more = frames > 0;
            if frames == 0 {
                return;
            }
            self.gains.scale(&mut self.planes, frames);
            let planes: Vec<&[f32]> = self.planes.iter().map(|plane| &plane[..frames]).collect();
            let Self { queue, write_index, .. } = self;
            self.conversion.push(&planes, |bytes| keep(queue, write_index, most, bytes));
        }
    }
}

/// Keeps bytes for the program. What does not fit is lost, as in PulseAudio.
fn keep(queue: &mut VecDeque<u8>, write_index: &mut i64, most: usize, bytes: &[u8]) {
    // MUTATION: keep.recorded_without_limit
    if queue.len() + bytes.len() <= most {
        queue.extend(bytes);
        *write_index = write_index.saturating_add(bytes.len() as i64);
    }
}

fn conversion(
    program: &ProgramFormat,
    source: &StreamFormat,
    manner: Manner,
    attributes: RecordAttributes,
) -> Result<Conversion, ConvertError> {
    let filter = match attributes.interval_us(Pace::of(program)) {
        0..50_000 => Filter::Prompt,
        50_000..200_000 => Filter::Short,
        _ => Filter::Medium,
    };
    let options = Options { mixing: manner.mixing, filter };
    if manner.peaks && program.rate_hz < source.rate_hz {
        return Ok(Conversion::Peaks(Box::new(Peaks::new(source, program, options)?)));
    }
    Ok(Conversion::Samples(Box::new(RecordConverter::new(source, program, options)?)))
}
