//! Systems with one stream that records and one that plays, each with its own queue.

use crate::library::LibraryError;
use clap::Args;

use super::probe::ProbeSender;
use super::report::frames;

/// Two streams of one channel.
pub(crate) trait Pair {
    /// Waits for the next frames.
    fn read(&mut self, samples: &mut [f32]) -> Result<(), LibraryError>;
    /// Queues frames.
    fn write(&mut self, samples: &[f32]) -> Result<(), LibraryError>;
    /// Starts both streams, once there is silence to play.
    fn start(&mut self) {}
}

/// The queues.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Buffers {
    /// Frames read and written at a time
    #[arg(long, value_name = "FRAMES", default_value_t = 256, value_parser = frames())]
    pub(crate) buffer: u32,
    /// Number of buffers that wait to be played
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=32))]
    pub(crate) buffers: u32,
    /// Sample rate in Hz
    #[arg(long, value_name = "HZ", default_value_t = 48_000, value_parser = clap::value_parser!(u32).range(8_000..=384_000))]
    pub(crate) rate: u32,
}

impl Buffers {
    /// Returns the queues with buffers of `frames`, if given.
    pub(crate) fn of(self, frames: Option<u32>) -> Self {
        Self { buffer: frames.unwrap_or(self.buffer), ..self }
    }

    /// Returns the text for a table.
    pub(crate) fn text(self) -> String {
        format!("{} x {} frames", self.buffers, self.buffer)
    }
}

/// Runs a measurement to its end.
pub(crate) fn run_streams(
    pair: &mut impl Pair,
    buffers: Buffers,
    sender: &mut ProbeSender,
) -> Result<(), LibraryError> {
    let frames = buffers.buffer as usize;
    let (mut received, mut sent) = (vec![0.0; frames], vec![0.0; frames]);
    for _ in 0..buffers.buffers {
        pair.write(&sent)?;
    }
    pair.start();
    while !sender.is_over() {
        pair.read(&mut received)?;
        sender.cycle(&received, &mut sent);
        pair.write(&sent)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use crate::analysis::Signal;

    use super::*;
    use crate::command::probe::Plan;

    /// Records exactly what is played.
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
    fn the_silence_in_a_queue_is_its_latency() {
        let plan = Plan {
            signal: Signal::Marked,
            frames: 20_000,
            tail_frames: 2_000,
            sample_rate_hz: 48_000,
        };
        let (mut sender, recorder) = ProbeSender::new(&plan);
        let buffers = Buffers { buffer: 100, buffers: 3, rate: 48_000 };
        run_streams(&mut Queue(VecDeque::new()), buffers, &mut sender).unwrap();
        let [direct, delayed] = recorder.wait(|| true).unwrap();
        assert_eq!(direct[..direct.len() - 300], delayed[300..]);
    }
}
