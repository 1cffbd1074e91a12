//! What a stream records.

use client::stream::{Timing, Volume};

use super::tap::Tap;
use crate::input::Input;

/// Where the frames of a record stream come from.
#[derive(Debug)]
pub(crate) enum Recorded<I> {
    /// A stream of the server.
    Server(I),
    /// What one stream of this process plays.
    Stream(Box<Tap>),
}

impl<I> Recorded<I> {
    /// Returns the end of the other stream, if it is recorded alone.
    pub fn tap_mut(&mut self) -> Option<&mut Tap> {
        match self {
            Self::Server(_) => None,
            Self::Stream(tap) => Some(tap),
        }
    }
}

/// Calls the same function of either.
macro_rules! either {
    ($recorded:expr, $input:ident => $call:expr) => {
        match $recorded {
            Recorded::Server($input) => $call,
            Recorded::Stream($input) => $call,
        }
    };
}

impl<I: Input> Input for Recorded<I> {
    fn number(&self) -> Option<u32> {
        either!(self, input => input.number())
    }

    fn volume(&self) -> Volume {
        either!(self, input => input.volume())
    }

    fn read(&mut self, planes: &mut [&mut [f32]]) -> usize {
        either!(self, input => input.read(planes))
    }

    fn position(&self) -> u64 {
        either!(self, input => input.position())
    }

    fn kept_bytes(&self) -> usize {
        either!(self, input => input.kept_bytes())
    }

    fn run(&mut self, runs: bool) -> bool {
        either!(self, input => input.run(runs))
    }

    fn set_interval(&mut self, frames: u32) -> bool {
        either!(self, input => input.set_interval(frames))
    }

    fn timing(&mut self) -> Timing {
        either!(self, input => input.timing())
    }

    fn due_ns(&self) -> Option<u64> {
        either!(self, input => input.due_ns())
    }

    fn has_ended(&self) -> bool {
        either!(self, input => input.has_ended())
    }

    fn leave(&mut self, now_ns: u64) {
        either!(self, input => input.leave(now_ns));
    }
}
