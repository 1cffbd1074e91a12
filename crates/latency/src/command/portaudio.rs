//! `consort latency portaudio`: PortAudio, through the host API that it chooses.

use crate::library::{PortAudioSettings, PortAudioStream};
use clap::Args;

use super::pair::Buffers;
use super::probe::ProbeSender;
use super::subject::{Planner, Recorded, Subject};
use super::systems::{self, System};

/// PortAudio, through its callback.
#[derive(Debug, Clone, Args)]
pub(crate) struct PortAudio {
    /// Part of the name of the host API, such as ALSA [default: PortAudio's default]
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Part of the name of the device that plays the signal [default: the host API's default]
    #[arg(long, value_name = "NAME")]
    playback: Option<String>,
    /// Part of the name of the device that records it [default: the host API's default]
    #[arg(long, value_name = "NAME")]
    capture: Option<String>,
    #[command(flatten)]
    buffers: Buffers,
}

impl Subject for PortAudio {
    fn record(
        &self,
        _server: &str,
        frames: Option<u32>,
        plan: Planner<'_>,
    ) -> anyhow::Result<Recorded> {
        let buffers = self.buffers.of(frames);
        let (mut sender, recorder) = ProbeSender::new(&plan(buffers.rate));
        let settings = PortAudioSettings {
            host: self.host.as_deref(),
            playback: self.playback.as_deref(),
            capture: self.capture.as_deref(),
            sample_rate_hz: buffers.rate,
            frames: buffers.buffer,
            suggested_frames: buffers.buffers * buffers.buffer,
        };
        let cycle =
            Box::new(move |received: &[f32], sent: &mut [f32]| sender.cycle(received, sent));
        let stream = PortAudioStream::open(&settings, cycle)?;
        let channels = recorder.wait(|| stream.is_running())?;
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
            xruns: Some(stream.xruns()),
        };
        Ok((system, channels))
    }
}
