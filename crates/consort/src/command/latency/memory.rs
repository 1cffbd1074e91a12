//! `consort latency memory`: no audio system at all. What remains is the method, and how this machine wakes a thread.

use std::time::{Duration, Instant};

use clap::Args;

use super::pair::Buffers;
use super::report::frames;
use super::subject::{Planner, Recorded, Subject};
use super::systems::{self, System};
use super::tape::Tape;

/// A loop in memory, run by the clock: what is said in one buffer is heard in the next.
#[derive(Debug, Clone, Args)]
pub(crate) struct Memory {
    /// Frames of the buffer
    #[arg(long, value_name = "FRAMES", default_value_t = 256, value_parser = frames())]
    buffer: u32,
    /// Sample rate in Hz
    #[arg(long, value_name = "HZ", default_value_t = 48_000, value_parser = clap::value_parser!(u32).range(8_000..=384_000))]
    rate: u32,
    /// SCHED_FIFO priority of the thread; 0: none
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(0..=98))]
    realtime_priority: u32,
}

impl Subject for Memory {
    fn record(&self, _server: &str, frames: Option<u32>, plan: Planner<'_>) -> anyhow::Result<Recorded> {
        let buffers = Buffers { buffer: self.buffer, buffers: 1, rate: self.rate }.of(frames);
        let (mut tape, reel) = Tape::new(&plan(self.rate));
        let (scheduling, late) = systems::in_thread(self.realtime_priority, |scheduling| {
            Ok((scheduling, roll(buffers, &mut tape)))
        })?;
        let system = System {
            interface: "none: loop in memory".into(),
            device: "clock".into(),
            buffer: buffers.text(),
            sample_rate_hz: self.rate,
            format: "32-bit float",
            kernel: systems::kernel(),
            scheduling,
            stated_frames: Some(buffers.buffer),
            xruns: Some(late),
        };
        Ok((system, reel.wait(|| true)?))
    }
}

/// Runs the tape; a wake-up that comes a whole buffer late loses what was said, as a device would. Gives how many.
fn roll(buffers: Buffers, tape: &mut Tape) -> u32 {
    let frames = buffers.buffer as usize;
    let length = Duration::from_secs_f64(frames as f64 / f64::from(buffers.rate));
    let (mut heard, mut said) = (vec![0.0; frames], vec![0.0; frames]);
    let (mut due, mut late) = (Instant::now() + length, 0);
    while !tape.is_over() {
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        if due.elapsed() > length {
            heard.fill(0.0);
            late += 1;
            due = Instant::now();
        }
        tape.cycle(&heard, &mut said);
        std::mem::swap(&mut heard, &mut said);
        due += length;
    }
    late
}
