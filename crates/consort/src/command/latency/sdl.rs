//! `consort latency sdl`: SDL, through whatever it uses.

use clap::Args;
use sys::library::LibraryError;
use sys::sdl_library::{SdlPair, SdlSettings};

use super::pair::{self, Buffers, Pair};
use super::subject::{Planner, Recorded, Subject};
use super::systems::{self, System};
use super::tape::Tape;

/// SDL, by its queues.
#[derive(Debug, Clone, Args)]
pub(crate) struct Sdl {
    /// What plays the signal, by SDL's name [default: SDL's default]
    #[arg(long, value_name = "DEVICE")]
    playback: Option<String>,
    /// Where it is heard
    #[arg(long, value_name = "DEVICE")]
    capture: Option<String>,
    #[command(flatten)]
    buffers: Buffers,
    /// SCHED_FIFO priority of the thread; SDL's own have what SDL gives them; 0: none
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
    fn record(&self, _server: &str, frames: Option<u32>, plan: Planner<'_>) -> anyhow::Result<Recorded> {
        let buffers = self.buffers.of(frames);
        let (mut tape, reel) = Tape::new(&plan(buffers.rate));
        let (interface, scheduling) = systems::in_thread(self.realtime_priority, |scheduling| {
            let mut pair = SdlPair::open(&SdlSettings {
                playback: self.playback.as_deref(),
                capture: self.capture.as_deref(),
                sample_rate_hz: buffers.rate,
                frames: u16::try_from(buffers.buffer)?,
            })?;
            pair::roll(&mut pair, buffers, &mut tape)?;
            Ok((format!("SDL {}, {}", pair.version(), pair.driver()), scheduling))
        })?;
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
        Ok((system, reel.wait(|| true)?))
    }
}
