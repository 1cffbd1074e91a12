//! A stream of the server as the front end's output.

use std::collections::VecDeque;

use client::stream::{
    Beginning, PlannedPlayback, PlaybackStream, RingSamples, RingShape, Samples, Schedule,
    StreamConnection, Timing, Volume, Wish,
};

use super::server::refusal;
use crate::output::{Output, Refusal};

/// Wishes that wait for the server. A program that has more of them loses its stream.
const MAX_WISHES: usize = 256;

/// A stream, and wishes that the server does not have yet.
#[derive(Debug)]
pub(crate) struct ServerOutput {
    stream: Stream,
    wishes: VecDeque<Wish>,
    /// Nothing was wished yet.
    is_new: bool,
}

/// What the server has of it.
#[derive(Debug)]
enum Stream {
    Planned(PlannedPlayback),
    /// It has memory, which the server has taken, or was sent.
    Begun(Box<PlaybackStream>),
    /// It was to have this shape, and was refused.
    Refused(RingShape),
}

impl ServerOutput {
    /// Takes a stream that is to begin.
    pub fn new(planned: PlannedPlayback) -> Self {
        Self { stream: Stream::Planned(planned), wishes: VecDeque::new(), is_new: true }
    }

    /// Goes on at another server; `None`: it has not begun.
    ///
    /// # Errors
    /// Those of [`PlaybackStream::return_to`].
    pub fn return_to(&mut self, server: &StreamConnection) -> Option<Result<(), client::Error>> {
        Some(self.begun_mut()?.return_to(server))
    }

    /// Begins a stream that is planned.
    fn begin_by(
        &mut self,
        begin: impl FnOnce(PlannedPlayback) -> Result<PlaybackStream, client::Error>,
    ) -> Result<(), Refusal> {
        let refused = Stream::Refused(self.shape());
        match std::mem::replace(&mut self.stream, refused) {
            Stream::Planned(planned) => match begin(planned) {
                Ok(stream) => self.stream = Stream::Begun(Box::new(stream)),
                Err(error) => {
                    self.wishes.clear();
                    return Err(refusal(&error));
                }
            },
            begun_or_refused => self.stream = begun_or_refused,
        }
        Ok(())
    }

    fn shape(&self) -> RingShape {
        match &self.stream {
            Stream::Planned(planned) => planned.shape(),
            Stream::Begun(stream) => stream.shape(),
            Stream::Refused(shape) => *shape,
        }
    }

    fn begun(&self) -> Option<&PlaybackStream> {
        match &self.stream {
            Stream::Begun(stream) => Some(stream),
            Stream::Planned(_) | Stream::Refused(_) => None,
        }
    }

    fn begun_mut(&mut self) -> Option<&mut PlaybackStream> {
        match &mut self.stream {
            Stream::Begun(stream) => Some(stream),
            Stream::Planned(_) | Stream::Refused(_) => None,
        }
    }
}

impl Output for ServerOutput {
    fn begin(&mut self) -> Result<(), Refusal> {
        self.begin_by(PlannedPlayback::begin)
    }

    fn start(&mut self) -> Result<(), Refusal> {
        self.begin_by(PlannedPlayback::start)
    }

    fn has_begun(&mut self) -> Option<Result<(), Refusal>> {
        match self.begun_mut()?.beginning() {
            Ok(Beginning::Begun) => Some(Ok(())),
            Ok(Beginning::TooLarge) => Some(Err(Refusal::NotNow)),
            Ok(Beginning::Unanswered) => None,
            Ok(_) => Some(Err(Refusal::Never)),
            Err(error) => Some(Err(refusal(&error))),
        }
    }

    fn number(&self) -> Option<u32> {
        match &self.stream {
            Stream::Planned(planned) => planned.number(),
            Stream::Begun(stream) => Some(stream.number()),
            Stream::Refused(_) => None,
        }
    }

    fn volume(&self) -> Volume {
        self.begun().map(PlaybackStream::volume).unwrap_or_default()
    }

    fn capacity_frames(&self) -> u64 {
        self.shape().capacity_frames().into()
    }

    fn room(&self) -> usize {
        self.begun().map_or(0, |stream| stream.writer().available())
    }

    fn write(&mut self, planes: &[&[f32]]) {
        if let Some(stream) = self.begun_mut() {
            stream.writer_mut().write(Samples::Planar(planes));
        }
    }

    fn write_in_place(&mut self, write: impl FnOnce(&mut [&mut [f32]]) -> usize) {
        if let Some(stream) = self.begun_mut() {
            stream.writer_mut().write_in_place(write);
        }
    }

    fn holds_frames(&self) -> bool {
        self.shape().samples() == RingSamples::Frames16
    }

    fn write_frames_in_place(&mut self, write: impl FnOnce(&mut [u8]) -> usize) {
        if let Some(stream) = self.begun_mut() {
            stream.writer_mut().write_frames_in_place(write);
        }
    }

    fn written(&self) -> u64 {
        self.begun().map_or(0, |stream| stream.writer().position())
    }

    fn read(&self, channel: u32, position: u64, into: &mut [f32]) {
        match self.begun() {
            Some(stream) => stream.writer().read(channel, position, into),
            None => into.fill(0.0),
        }
    }

    fn wish(&mut self, wish: Wish) {
        // What takes the place of one that was refused gets wishes of its own.
        if !matches!(self.stream, Stream::Refused(_)) {
            self.wishes.push_back(wish);
        }
    }

    fn commit(&mut self) {
        let Stream::Begun(stream) = &mut self.stream else { return };
        let (is_new, mut is_called_for) = (self.is_new, false);
        while let Some(wish) = self.wishes.front() {
            if stream.writer_mut().control_mut().wish(*wish).is_err() {
                break;
            }
            // What a new stream is to be like is in time with its first frames, whose call comes
            // the sooner.
            is_called_for |= !is_new || !matches!(wish, Wish::Gain { .. } | Wish::Depth { .. });
            self.is_new = false;
            self.wishes.pop_front();
        }
        if is_called_for {
            self.call();
        }
    }

    fn call(&mut self) {
        // A server that has gone is noticed by its connection, a stream that has ended by its page.
        let _ = self.begun().map(PlaybackStream::call);
    }

    fn is_committed(&self) -> bool {
        self.wishes.is_empty()
    }

    fn timing(&mut self) -> Timing {
        let begun = self.begun_mut();
        begun.map(|stream| stream.writer_mut().control_mut().timing()).unwrap_or_default()
    }

    fn schedule(&self) -> Option<Schedule> {
        let schedule = self.begun()?.writer().control().page().schedule();
        schedule.filter(|schedule| schedule.wake_ns > 0)
    }

    fn has_ended(&self) -> bool {
        match &self.stream {
            Stream::Planned(_) => false,
            Stream::Begun(stream) => stream.writer().control().page().has_ended(),
            Stream::Refused(_) => true,
        }
    }

    fn has_too_many_wishes(&self) -> bool {
        self.wishes.len() > MAX_WISHES
    }

    fn leave(&mut self, now_ns: u64) {
        if let Some(stream) = self.begun_mut() {
            stream.leave(now_ns);
        }
    }
}
