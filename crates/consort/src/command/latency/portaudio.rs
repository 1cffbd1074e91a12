//! `consort latency portaudio`: PortAudio, through whatever it uses.

use clap::Args;
use sys::portaudio_library::{PortAudioSettings, PortAudioStream};

use super::pair::Buffers;
use super::subject::{Planner, Recorded, Subject};
use super::systems::{self, System};
use super::tape::Tape;

/// PortAudio, by its callback.
#[derive(Debug, Clone, Args)]
pub(crate) struct PortAudio {
    /// Part of the name of the interface that it uses, such as ALSA [default: PortAudio's default]
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Part of the name of the device that plays the signal [default: the interface's default]
    #[arg(long, value_name = "NAME")]
    playback: Option<String>,
    /// Part of the name of the device at which it is heard
    #[arg(long, value_name = "NAME")]
    capture: Option<String>,
    #[command(flatten)]
    buffers: Buffers,
}

impl Subject for PortAudio {
    fn record(&self, _server: &str, frames: Option<u32>, plan: Planner<'_>) -> anyhow::Result<Recorded> {
        let buffers = self.buffers.of(frames);
        let (mut tape, reel) = Tape::new(&plan(buffers.rate));
        let settings = PortAudioSettings {
            host: self.host.as_deref(),
            playback: self.playback.as_deref(),
            capture: self.capture.as_deref(),
            sample_rate_hz: buffers.rate,
            frames: buffers.buffer,
            suggested_frames: buffers.buffers * buffers.buffer,
        };
        let cycle = Box::new(move |heard: &[f32], said: &mut [f32]| tape.cycle(heard, said));
        let stream = PortAudioStream::open(&settings, cycle)?;
        let channels = reel.wait(|| stream.is_running())?;
        let version = stream.version();
        let [host, playback, capture] = stream.names();
        let system = System {
            interface: format!("{}, {host}", version.split(',').next().unwrap_or(&version)),
            device: format!("{playback} to {capture}"),
            buffer: buffers.text(),
            sample_rate_hz: buffers.rate,
            format: "32-bit float",
            kernel: systems::kernel(),
            scheduling: stream.thread().map_or_else(String::new, systems::scheduling),
            stated_frames: stream
                .stated_s()
                .map(|stated_s| (stated_s * f64::from(buffers.rate)).round() as u32),
            xruns: Some(stream.breaks()),
        };
        Ok((system, channels))
    }
}
