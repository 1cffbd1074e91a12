//! `consort latency memory`: a loop in memory without an audio system. It shows the error of the
//! method and of the machine's timers.

use std::time::{Duration, Instant};

use clap::Args;

use super::pair::Buffers;
use super::probe::ProbeSender;
use super::report::frames;
use super::subject::{Planner, Recorded, Subject};
use super::systems::{self, System};

/// A loop in memory, run by a timer: the samples sent in one buffer are received in the next.
#[derive(Debug, Clone, Args)]
pub(crate) struct Memory {
    /// Frames of a buffer
    #[arg(long, value_name = "FRAMES", default_value_t = 256, value_parser = frames())]
    buffer: u32,
    /// Sample rate in Hz
    #[arg(long, value_name = "HZ", default_value_t = 48_000, value_parser = clap::value_parser!(u32).range(8_000..=384_000))]
    rate: u32,
    /// SCHED_FIFO priority of the thread; 0: not real-time
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(0..=98))]
    realtime_priority: u32,
}

impl Subject for Memory {
    fn record(
        &self,
        _server: &str,
        frames: Option<u32>,
        plan: Planner<'_>,
    ) -> anyhow::Result<Recorded> {
        let buffers = Buffers { buffer: self.buffer, buffers: 1, rate: self.rate }.of(frames);
        let (mut sender, recorder) = ProbeSender::new(&plan(self.rate));
        let measure = move |scheduling| Ok((scheduling, run_streams(buffers, &mut sender)));
        let ((scheduling, late), channels) =
            systems::recorded_in_thread(self.realtime_priority, recorder, measure)?;
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
        Ok((system, channels))
    }
}

/// Runs the measurement. A wake-up that is a whole buffer late loses the samples sent, as a device
/// would. Returns the number of such wake-ups.
fn run_streams(buffers: Buffers, sender: &mut ProbeSender) -> u32 {
    let frames = buffers.buffer as usize;
    let length = Duration::from_secs_f64(frames as f64 / f64::from(buffers.rate));
    let (mut received, mut sent) = (vec![0.0; frames], vec![0.0; frames]);
    let (mut due, mut late) = (Instant::now() + length, 0);
    while !sender.is_over() {
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        if due.elapsed() > length {
            received.fill(0.0);
            late += 1;
            due = Instant::now();
        }
        sender.cycle(&received, &mut sent);
        std::mem::swap(&mut received, &mut sent);
        due += length;
    }
    late
}
