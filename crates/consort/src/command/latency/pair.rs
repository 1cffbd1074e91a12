//! A system with a stream to record and one to play, each with its own queue: read, write, and again.

use clap::Args;
use sys::library::LibraryError;

use super::report::frames;
use super::tape::Tape;

/// Two streams of one channel.
pub(crate) trait Pair {
    /// Waits for frames.
    fn read(&mut self, samples: &mut [f32]) -> Result<(), LibraryError>;
    /// Queues frames.
    fn write(&mut self, samples: &[f32]) -> Result<(), LibraryError>;
    /// Lets both run, once there is silence to be played.
    fn start(&mut self) {}
}

/// How the queues are used.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Buffers {
    /// Frames read and written at a time
    #[arg(long, value_name = "FRAMES", default_value_t = 256, value_parser = frames())]
    pub(crate) buffer: u32,
    /// Buffers that wait to be played
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=32))]
    pub(crate) buffers: u32,
    /// Sample rate in Hz
    #[arg(long, value_name = "HZ", default_value_t = 48_000, value_parser = clap::value_parser!(u32).range(8_000..=384_000))]
    pub(crate) rate: u32,
}

impl Buffers {
    /// With buffers of another length.
    pub(crate) fn of(self, frames: Option<u32>) -> Self {
        Self { buffer: frames.unwrap_or(self.buffer), ..self }
    }

    /// As a row says it.
    pub(crate) fn text(self) -> String {
        format!("{} x {} frames", self.buffers, self.buffer)
    }
}

/// Runs the tape from its beginning to its end.
pub(crate) fn roll(pair: &mut impl Pair, buffers: Buffers, tape: &mut Tape) -> Result<(), LibraryError> {
    let frames = buffers.buffer as usize;
    let (mut heard, mut said) = (vec![0.0; frames], vec![0.0; frames]);
    for _ in 0..buffers.buffers {
        pair.write(&said)?;
    }
    pair.start();
    while !tape.is_over() {
        pair.read(&mut heard)?;
        tape.cycle(&heard, &mut said);
        pair.write(&said)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use latency::Signal;

    use super::*;
    use crate::command::latency::tape::Plan;

    /// What is played is recorded, nothing else.
    struct Queue(VecDeque<f32>);

    impl Pair for Queue {
        fn read(&mut self, samples: &mut [f32]) -> Result<(), LibraryError> {
            samples.iter_mut().for_each(|sample| *sample = self.0.pop_front().unwrap_or(0.0));
            Ok(())
        }
        fn write(&mut self, samples: &[f32]) -> Result<(), LibraryError> {
            self.0.extend(samples);
            Ok(())
        }
    }

    #[test]
    fn a_queue_is_as_long_as_the_silence_that_it_begins_with() {
        let plan =
            Plan { signal: Signal::Marked, frames: 20_000, tail_frames: 2_000, sample_rate_hz: 48_000 };
        let (mut tape, reel) = Tape::new(&plan);
        let buffers = Buffers { buffer: 100, buffers: 3, rate: 48_000 };
        roll(&mut Queue(VecDeque::new()), buffers, &mut tape).unwrap();
        let [direct, delayed] = reel.wait(|| true).unwrap();
        assert_eq!(direct[..direct.len() - 300], delayed[300..]);
    }
}
