//! `consort latency alsa`: a sound card without a server, as the paper's own test program used it.

use alsa::pcm::{Access, Format, Frames, HwParams, PCM};
use alsa::{Direction, ValueOr};
use anyhow::Context;
use clap::{Args, ValueEnum};

use super::probe::ProbeSender;
use super::subject::{Planner, Recorded, Subject};
use super::systems::{self, System};
use pair::Pair;

mod pair;

/// A sound card, through the ALSA library.
#[derive(Debug, Clone, Args)]
pub(crate) struct Alsa {
    /// The device that plays the signal
    #[arg(long, value_name = "DEVICE")]
    playback: String,
    /// The device that records it
    #[arg(long, value_name = "DEVICE")]
    capture: String,
    /// Frames of a period
    #[arg(long, value_name = "FRAMES", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=16_384))]
    period: u32,
    /// Periods of the device's buffer
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(2..=32))]
    periods: u32,
    /// Sample rate in Hz
    #[arg(long, value_name = "HZ", default_value_t = 48_000, value_parser = clap::value_parser!(u32).range(8_000..=384_000))]
    rate: u32,
    /// SCHED_FIFO priority of the thread; 0: not real-time
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(0..=98))]
    realtime_priority: u32,
    /// Access to the device's buffer
    #[arg(long, value_enum, default_value = "rw")]
    access: AccessName,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum AccessName {
    /// Read and write calls
    Rw,
    /// Mapped memory
    Mmap,
}

/// Number of channels; the first one carries the signal.
const CHANNELS: usize = 2;
/// Formats to look for in both devices, best first.
const FORMATS: [(Format, &str); 3] = [
    (Format::FloatLE, "32-bit float"),
    (Format::S32LE, "32-bit integer"),
    (Format::S16LE, "16-bit integer"),
];
impl Subject for Alsa {
    fn record(
        &self,
        _server: &str,
        frames: Option<u32>,
        plan: Planner<'_>,
    ) -> anyhow::Result<Recorded> {
        let this = Self { period: frames.unwrap_or(self.period), ..self.clone() };
        let (mut sender, recorder) = ProbeSender::new(&plan(self.rate));
        let measure = move |scheduling| this.run_streams(scheduling, &mut sender);
        systems::recorded_in_thread(self.realtime_priority, recorder, measure)
    }
}

impl Alsa {
    fn run_streams(&self, scheduling: String, sender: &mut ProbeSender) -> anyhow::Result<System> {
        let open = |name: &str, direction| {
            PCM::new(name, direction, false)
                .with_context(|| format!("cannot open ALSA device {name}"))
        };
        let playback = open(&self.playback, Direction::Playback)?;
        let capture = open(&self.capture, Direction::Capture)?;
        let has = |pcm: &PCM, format| {
            HwParams::any(pcm).is_ok_and(|wish| wish.test_format(format).is_ok())
        };
        let (format, format_name) = FORMATS
            .into_iter()
            .find(|(format, _)| has(&playback, *format) && has(&capture, *format))
            .context("the devices have no format in common")?;
        self.configure(&playback, format).with_context(|| self.playback.clone())?;
        self.configure(&capture, format).with_context(|| self.capture.clone())?;
        let pair = Pair {
            playback: &playback,
            capture: &capture,
            period: self.period as usize,
            periods: self.periods,
            mapped: self.access == AccessName::Mmap,
        };
        let xruns = match format {
            Format::FloatLE => pair.run_streams::<f32>(sender),
            Format::S32LE => pair.run_streams::<i32>(sender),
            _ => pair.run_streams::<i16>(sender),
        };
        Ok(System {
            interface: match self.access {
                AccessName::Rw => "ALSA, read/write".into(),
                AccessName::Mmap => "ALSA, mmap".into(),
            },
            device: format!("{} to {}", self.playback, self.capture),
            buffer: format!("{} x {} frames", self.periods, self.period),
            sample_rate_hz: self.rate,
            format: format_name,
            kernel: systems::kernel(),
            scheduling,
            stated_frames: None,
            xruns: Some(xruns?),
        })
    }

    fn configure(&self, pcm: &PCM, format: Format) -> anyhow::Result<()> {
        let wish = HwParams::any(pcm)?;
        wish.set_rate_resample(false)?;
        wish.set_access(match self.access {
            AccessName::Rw => Access::RWInterleaved,
            AccessName::Mmap => Access::MMapInterleaved,
        })
        .context("it does not take this access")?;
        wish.set_format(format)?;
        wish.set_channels(CHANNELS as u32).context("it does not take 2 channels")?;
        wish.set_rate(self.rate, ValueOr::Nearest)
            .with_context(|| format!("it does not run at {} Hz", self.rate))?;
        wish.set_period_size(Frames::from(self.period), ValueOr::Nearest)
            .with_context(|| format!("it does not take periods of {} frames", self.period))?;
        wish.set_periods(self.periods, ValueOr::Nearest)
            .with_context(|| format!("it does not take {} periods", self.periods))?;
        pcm.hw_params(&wish)?;
        let software = pcm.sw_params_current()?;
        // Both are started explicitly, so that the frames that wait in the playback device are
        // known.
        software.set_start_threshold(Frames::MAX)?;
        software.set_avail_min(Frames::from(self.period))?;
        Ok(pcm.sw_params(&software)?)
    }
}
