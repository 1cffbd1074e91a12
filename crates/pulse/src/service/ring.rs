//! A stream of the server as the front end's output.

use std::collections::VecDeque;

use client::stream::{PlaybackStream, Samples, Schedule, StreamConnection, Timing, Volume, Wish};

use crate::output::Output;

/// Wishes that wait for the server. A program that has more of them loses its stream.
const MAX_WISHES: usize = 256;

/// A stream, and wishes that the server has no room for yet.
#[derive(Debug)]
pub(crate) struct ServerOutput {
    stream: PlaybackStream,
    wishes: VecDeque<Wish>,
    /// Nothing was wished yet.
    is_new: bool,
}

impl ServerOutput {
    /// Takes a stream that has just been opened.
    pub fn new(stream: PlaybackStream) -> Self {
        Self { stream, wishes: VecDeque::new(), is_new: true }
    }

    /// Goes on at another server.
    ///
    /// # Errors
    /// Those of [`PlaybackStream::return_to`].
    pub fn return_to(&mut self, server: &StreamConnection) -> Result<(), client::Error> {
        self.stream.return_to(server)
    }
}

impl Output for ServerOutput {
    fn number(&self) -> u32 {
        self.stream.number()
    }

    fn volume(&self) -> Volume {
        self.stream.volume()
    }

    fn capacity_frames(&self) -> u64 {
        self.stream.shape().capacity_frames().into()
    }

    fn room(&self) -> usize {
        self.stream.writer().available()
    }

    fn write(&mut self, planes: &[&[f32]]) {
        self.stream.writer_mut().write(Samples::Planar(planes));
    }

    fn write_in_place(&mut self, write: impl FnOnce(&mut [&mut [f32]]) -> usize) {
        self.stream.writer_mut().write_in_place(write);
    }

    fn written(&self) -> u64 {
        self.stream.writer().position()
    }

    fn samples(&self, channel: u32, position: u64, frames: usize) -> [&[f32]; 2] {
        self.stream.writer().samples(channel, position, frames)
    }

    fn wish(&mut self, wish: Wish) {
        self.wishes.push_back(wish);
    }

    fn commit(&mut self) {
        let (is_new, mut is_called_for) = (self.is_new, false);
        while let Some(wish) = self.wishes.front() {
            if self.stream.writer_mut().control_mut().wish(*wish).is_err() {
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
        let _ = self.stream.call();
    }

    fn is_committed(&self) -> bool {
        self.wishes.is_empty()
    }

    fn timing(&mut self) -> Timing {
        self.stream.writer_mut().control_mut().timing()
    }

    fn schedule(&self) -> Option<Schedule> {
        let schedule = self.stream.writer().control().page().schedule();
        schedule.filter(|schedule| schedule.wake_ns > 0)
    }

    fn has_ended(&self) -> bool {
        self.stream.writer().control().page().has_ended()
    }

    fn has_too_many_wishes(&self) -> bool {
        self.wishes.len() > MAX_WISHES
    }

    fn leave(&mut self, now_ns: u64) {
        self.stream.leave(now_ns);
    }
}
