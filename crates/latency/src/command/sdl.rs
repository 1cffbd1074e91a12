//! `consort latency sdl`: SDL, through the backend that it chooses.

use crate::library::LibraryError;
use crate::library::{SdlPair, SdlSettings};
use clap::Args;

use super::pair::{self, Buffers, Pair};
use super::probe::ProbeSender;
use super::subject::{Planner, Recorded, Subject};
use super::systems::{self, System};

/// SDL, through its queues.
#[derive(Debug, Clone, Args)]
pub(crate) struct Sdl {
    /// Device that plays the signal, as SDL names it [default: SDL's default]
    #[arg(long, value_name = "DEVICE")]
    playback: Option<String>,
    /// Device that records it, as SDL names it [default: SDL's default]
    #[arg(long, value_name = "DEVICE")]
    capture: Option<String>,
    #[command(flatten)]
    buffers: Buffers,
    /// SCHED_FIFO priority of the measuring thread, not of SDL's own threads; 0: not real-time
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(0..=98))]
    realtime_priority: u32,
}

impl Pair for SdlPair {
    fn read(&mut self, samples: &mut [f32]) -> Result<(), LibraryError> {
        Self::read(self, samples)
    }
    fn write(&mut self, samples: &[f32]) -> Result<(), LibraryError> {
        Self::write(self, samples)
    }
    fn start(&mut self) {
        Self::start(self);
    }
}

impl Subject for Sdl {
    fn record(
        &self,
        _server: &str,
        frames: Option<u32>,
        plan: Planner<'_>,
    ) -> anyhow::Result<Recorded> {
        let buffers = self.buffers.of(frames);
        let (mut sender, recorder) = ProbeSender::new(&plan(buffers.rate));
        let this = self.clone();
        let measure = move |scheduling| {
            let mut pair = SdlPair::open(&SdlSettings {
                playback: this.playback.as_deref(),
                capture: this.capture.as_deref(),
                sample_rate_hz: buffers.rate,
                frames: u16::try_from(buffers.buffer)?,
            })?;
            pair::run_streams(&mut pair, buffers, &mut sender)?;
            Ok((format!("SDL {}, {}", pair.version(), pair.driver()), scheduling))
        };
        let ((interface, scheduling), channels) =
            systems::recorded_in_thread(self.realtime_priority, recorder, measure)?;
        let name = |name: &Option<String>| name.clone().unwrap_or_else(|| "default".into());
        let system = System {
            interface,
            device: format!("{} to {}", name(&self.playback), name(&self.capture)),
            buffer: buffers.text(),
            sample_rate_hz: buffers.rate,
            format: "32-bit float",
            kernel: systems::kernel(),
            scheduling,
            stated_frames: None,
            xruns: None,
        };
        Ok((system, channels))
    }
}
