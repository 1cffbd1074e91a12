//! A stream's state: when it plays, what it asks for, what it tells its program. Pure but for the
//! ring, which is the program's own memory.
//!
//! Each request of the program ends in [`Playback::update`], which derives what follows from the
//! state as it is: fill the ring, run or hold, end, ask for more.

mod bytes;
mod motion;
mod moving;
mod requests;
mod sent;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use client::stream::{Gains, Wish};
use convert::{
    ConvertError, Filter, Mixing, Options, PlaybackConverter, ProgramFormat, StreamFormat,
};

use super::attributes::{Attributes, Pace};
use super::heard::HeardBytes;
use crate::output::{Output, Refusal};
use requests::Answers;
use sent::SentBytes;

/// A change of volume takes this long.
const RAMP_MS: u32 = 10;

/// What a program is notified of, or answered late.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Notice {
    /// This many bytes are wanted.
    Request(u32),
    /// The first sample after a stop is heard.
    Started,
    /// Nothing was left to be heard at this byte.
    Underflow(i64),
    /// Bytes beyond the limit were thrown away.
    Overflow,
    /// Everything that was written before this request is heard.
    Drained {
        /// The request.
        tag: u32,
    },
}

/// What is heard when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Times {
    /// The byte at which the next one is written.
    pub write_index: i64,
    /// The byte that is heard.
    pub read_index: i64,
    /// Bytes heard since it began; 0 while it does not play.
    pub playing_for: u64,
    /// Bytes that could have been heard since nothing was left.
    pub underrun_for: u64,
}

/// When a stream is to be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Look {
    /// By then, ns.
    pub due_ns: u64,
    /// How much earlier it may be, together with other streams, ns.
    pub slack_ns: u64,
}

/// Nothing was left to be heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Underrun {
    since_ns: u64,
    /// The end of what was written.
    write_index: i64,
}

/// One playback stream.
#[derive(Debug)]
pub(crate) struct Playback<O> {
    output: O,
    converter: PlaybackConverter,
    program: ProgramFormat,
    device: StreamFormat,
    /// How it is converted.
    options: Options,
    attributes: Attributes,
    /// Bytes that are in the ring, or its converter, and not heard yet.
    sent: SentBytes,
    /// Bytes that have no room in the ring yet.
    backlog: VecDeque<u8>,
    /// Bytes from the write index on that were written before its program went back.
    replaced: VecDeque<u8>,
    /// The most of these three that may be kept.
    most_kept: usize,
    /// The position at which it went on when it last left what was queued, and whether it played
    /// then.
    went_on: (u64, bool),
    /// How many rings it has had before this one.
    former_rings: u32,
    /// Until when what was written again into the ring counts.
    rewritten_until_ns: u64,
    write_index: i64,
    heard: HeardBytes,
    /// Bytes that were requested and have not come; below 0 if more has come. Programs count the
    /// same, and write nothing as long as theirs is not above 0.
    requested: i64,
    answers: Answers,
    /// Since when its program is asked by the device's clock, if it is.
    follows_since_ns: Option<u64>,
    is_corked: bool,
    /// A user has suspended its device.
    is_suspended: bool,
    /// It waits for the prebuffer.
    prebuffers: bool,
    /// The device plays it.
    runs: bool,
    /// Where it began, until that is heard.
    begins_at: Option<u64>,
    /// The byte at which it began to play.
    began: i64,
    /// Since when nothing was left.
    underrun: Option<Underrun>,
    /// What was written when the device was last called, or had a wish.
    called_for: u64,
    /// When that was.
    called_ns: u64,
    /// The program was not notified that it plays, since it last ran out of frames.
    owes_started: bool,
    /// The byte that was heard at the last look: what is heard never goes back.
    last_heard: i64,
    drains: Vec<u32>,
    /// The position at which the device was asked to end.
    drain_end: Option<u64>,
    notices: Vec<Notice>,
}

impl<O: Output> Playback<O> {
    /// Prepares a stream that holds.
    ///
    /// # Errors
    /// There is no conversion between the rates.
    pub fn new(
        mut output: O,
        program: ProgramFormat,
        device: StreamFormat,
        mixing: Mixing,
        attributes: Attributes,
        gains: Gains,
    ) -> Result<Self, ConvertError> {
        let options = Options { mixing, filter: filter(attributes) };
        let converter = PlaybackConverter::new(&program, &device, options)?;
        let frame_bytes = Pace::of(&program).frame_bytes;
        output.wish(Wish::Gain { gains, ramp_frames: 0 });
        let sent = SentBytes::new(&converter, &program, &device, mixing, output.written());
        let mut playback = Self {
            output,
            converter,
            program,
            device,
            options,
            attributes,
            sent,
            backlog: VecDeque::new(),
            replaced: VecDeque::new(),
            most_kept: usize::MAX,
            went_on: (0, false),
            former_rings: 0,
            rewritten_until_ns: 0,
            write_index: 0,
            heard: HeardBytes::new(frame_bytes, program.rate_hz, device.rate_hz),
            requested: attributes.target_length.into(),
            answers: Answers::new(0),
            follows_since_ns: None,
            is_corked: false,
            is_suspended: false,
            prebuffers: true,
            runs: false,
            begins_at: None,
            began: 0,
            underrun: None,
            called_for: 0,
            called_ns: 0,
            owes_started: true,
            last_heard: 0,
            drains: Vec::new(),
            drain_end: None,
            notices: Vec::new(),
        };
        // Until it has shown how fast it answers, there is as much time as by PulseAudio's rules.
        playback.answers = Answers::new(playback.two_requests_ns());
        playback.wish_depth();
        Ok(playback)
    }

    /// Returns how its channels are mixed to the device's.
    pub fn mixing(&self) -> Mixing {
        self.options.mixing
    }

    /// Returns what it was granted.
    pub fn attributes(&self) -> Attributes {
        self.attributes
    }

    /// Returns the stream on the server.
    pub fn output(&self) -> &O {
        &self.output
    }

    /// Returns the stream on the server.
    #[cfg(test)]
    pub fn output_mut(&mut self) -> &mut O {
        &mut self.output
    }

    /// Returns what it is converted to.
    pub fn stream(&self) -> &StreamFormat {
        &self.device
    }

    /// Returns the samples that its program sends.
    pub fn program(&self) -> &ProgramFormat {
        &self.program
    }

    /// Returns bytes and time of a frame of its program.
    pub fn pace(&self) -> Pace {
        Pace::of(&self.program)
    }

    /// Returns the bytes that are kept of it until they are heard, as of the last look: here, or in
    /// the ring.
    pub fn kept_bytes(&self) -> usize {
        let written = match &self.sent {
            SentBytes::InRing(_) => {
                usize::try_from(self.write_index - self.last_heard).unwrap_or(0)
            }
            SentBytes::Kept(sent) => sent.len() + self.backlog.len(),
        };
        written + self.replaced.len()
    }

    /// Limits the bytes that are kept of what is written from now on, besides what it was granted.
    pub fn keep_at_most(&mut self, bytes: usize) {
        self.most_kept = bytes;
    }

    /// Returns how many requests wait until everything was heard.
    pub fn waiting_drains(&self) -> usize {
        self.drains.len()
    }

    /// Returns the time of all that its ring can hold, µs.
    pub fn most_us(&self) -> u64 {
        most_us(&self.output, self.device.rate_hz)
    }

    /// Starts its [`Output`]: nothing may be written before.
    ///
    /// # Errors
    /// Those of [`Output::start`].
    pub fn start(&mut self) -> Result<(), Refusal> {
        self.output.start()?;
        self.output.commit();
        Ok(())
    }

    /// Returns whether the server has taken it since it was started; `None`: it has not answered.
    ///
    /// # Errors
    /// Those of [`Output::has_begun`].
    pub fn has_begun(&mut self) -> Option<Result<(), Refusal>> {
        self.output.has_begun()
    }

    /// Returns whether its program holds it.
    pub fn is_corked(&self) -> bool {
        self.is_corked
    }

    /// Returns whether the device plays it.
    pub fn runs(&self) -> bool {
        self.runs
    }

    /// Returns whether it is held, whatever its program wants.
    pub fn is_suspended(&self) -> bool {
        self.is_suspended
    }

    /// Returns whether the server has ended it.
    pub fn has_ended(&self) -> bool {
        self.output.has_ended()
    }

    /// Returns whether its program has asked for more than the server takes.
    pub fn has_too_many_wishes(&self) -> bool {
        self.output.has_too_many_wishes()
    }

    /// The server has ended it, or has gone itself: what is heard stands still.
    pub fn leave(&mut self, now_ns: u64) {
        self.output.leave(now_ns);
        self.update(now_ns);
    }

    /// Has the same stream go on elsewhere, with its position and what was wished so far.
    ///
    /// # Errors
    /// What `go_on` says: nothing has changed.
    pub fn return_with<E>(
        &mut self,
        go_on: impl FnOnce(&mut O) -> Result<(), E>,
        now_ns: u64,
    ) -> Result<(), E> {
        go_on(&mut self.output)?;
        self.update(now_ns);
        Ok(())
    }

    /// Takes other attributes.
    pub fn set_attributes(&mut self, attributes: Attributes) {
        self.attributes = attributes;
        self.follows_since_ns = None;
        self.wish_depth();
        self.output.commit();
    }

    /// Changes the gains, heard at once.
    pub fn set_gains(&mut self, gains: Gains) {
        let ramp_frames = self.device.rate_hz * RAMP_MS / 1000;
        self.output.wish(Wish::Gain { gains, ramp_frames });
        self.output.commit();
    }

    /// Converts what is written from now on at another rate. As in PulseAudio, one that has its
    /// device's keeps it unless it was opened with a variable rate.
    ///
    /// # Errors
    /// There is no conversion between the rates; nothing has changed.
    pub fn set_rate(&mut self, rate_hz: u32, is_variable: bool) -> Result<(), ConvertError> {
        let program = ProgramFormat { rate_hz, ..self.program };
        let options = Options { filter: filter(self.attributes), ..self.options };
        let converter = PlaybackConverter::new(&program, &self.device, options)?;
        if !is_variable && self.program.rate_hz == self.device.rate_hz {
            return Ok(());
        }
        self.finish_conversion();
        let (mixing, written) = (options.mixing, self.output.written());
        // They cannot be converted again together with what follows.
        self.sent = SentBytes::new(&converter, &program, &self.device, mixing, written);
        (self.program, self.converter, self.options) = (program, converter, options);
        self.replaced.clear();
        self.begin_segment();
        Ok(())
    }

    /// Returns what is heard at `now_ns`.
    pub fn times(&mut self, now_ns: u64) -> Times {
        let read_index = self.read_index(now_ns);
        let plays = self.plays();
        let since = |ns: u64| self.pace().bytes(now_ns.saturating_sub(ns) / 1000).into();
        Times {
            write_index: self.write_index,
            read_index,
            playing_for: if plays { (read_index - self.began).max(0).cast_unsigned() } else { 0 },
            underrun_for: self.underrun.map_or(0, |underrun| since(underrun.since_ns)),
        }
    }

    /// Returns what the program is to be notified of since the last time.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    /// Lets the device render as much as it was asked for when the stream was opened. The
    /// latency of the sink may be less than that, and the device would wake more often for
    /// nothing: positions are those that are heard, however much is rendered.
    fn wish_depth(&mut self) {
        let (pace, rate_hz) = (self.pace(), self.device.rate_hz);
        let frames = match self.follows_since_ns {
            Some(_) => self.attributes.most_depth_frames(pace, rate_hz),
            None => self.attributes.depth_frames(pace, rate_hz),
        };
        self.output.wish(Wish::Depth { frames });
    }

    /// Returns the byte that is heard.
    fn read_index(&mut self, now_ns: u64) -> i64 {
        let position = self.heard_position(now_ns);
        self.last_heard = self.last_heard.max(self.heard.index(position));
        // A flush is heard a moment after it was asked for.
        self.last_heard = self.last_heard.min(self.write_index);
        self.last_heard
    }

    /// Returns the position of the ring at which it went on, or will, when it last left what was
    /// queued: a seek or a flush. What was before, from when it was asked, was not heard. If it
    /// played then, it did so for a moment longer.
    pub fn went_on(&self) -> (u64, bool) {
        self.went_on
    }

    /// Returns how many rings it has had before this one, whose positions begin at 0.
    pub fn former_rings(&self) -> u32 {
        self.former_rings
    }

    /// Returns whether the device plays it, from an earlier look on.
    fn plays(&self) -> bool {
        self.runs && self.begins_at.is_none()
    }

    /// Returns the position of the ring that is heard. The device says at most 10 ms before that a
    /// stream will hold because nothing more has been written: until then it runs, and may run on.
    pub fn heard_position(&mut self, now_ns: u64) -> u64 {
        let timing = self.output.timing();
        let position = timing.position_at(now_ns);
        let holds_later = timing.until <= timing.position && now_ns < timing.at_ns;
        if !(self.plays() && holds_later) {
            return position;
        }
        let left_ps = u128::from(timing.at_ns - now_ns) * 1000;
        let left = left_ps.checked_div(timing.frame_ps.into()).unwrap_or(0);
        position.saturating_sub(u64::try_from(left).unwrap_or(u64::MAX))
    }

    /// Returns the bytes that are not heard yet.
    fn queued(&mut self, now_ns: u64) -> u64 {
        (self.write_index - self.read_index(now_ns)).max(0).cast_unsigned()
    }
}

/// Returns the time of all that a ring can hold, µs.
pub(crate) fn most_us(output: &impl Output, device_rate_hz: u32) -> u64 {
    output.capacity_frames() * 1_000_000 / u64::from(device_rate_hz.max(1))
}

/// Returns the longest filter whose latency is small beside that of the buffer.
fn filter(attributes: Attributes) -> Filter {
    match attributes.sink_latency_us {
        0..50_000 => Filter::Prompt,
        50_000..200_000 => Filter::Short,
        _ => Filter::Medium,
    }
}
