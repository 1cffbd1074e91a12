//! `consort latency alsa`: a sound card as the paper's own test program used it, without any server.

use std::process::ExitCode;

use alsa::pcm::{Access, Format, Frames, HwParams, IO, IoFormat, PCM, State};
use alsa::{Direction, ValueOr};
use anyhow::{Context, ensure};
use clap::Args;

use super::measure::Measure;
use super::systems::{self, System};
use super::tape::Tape;

/// Measure a sound card directly through ALSA, without a server
///
/// Copies what it records and what it plays through the interface named, one period at a time, in a thread of its
/// own, as plain as a program can. What lies between the two devices is yours to provide: a cable, or a snd-aloop card.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  consort latency alsa --playback hw:Loopback,0 --capture hw:Loopback,1
  consort latency alsa --playback hw:0 --capture hw:0 --period 64 --periods 2")]
pub(crate) struct Alsa {
    /// The device that plays the signal
    #[arg(long, value_name = "DEVICE")]
    playback: String,
    /// The device at which it is heard
    #[arg(long, value_name = "DEVICE")]
    capture: String,
    /// Frames between two interrupts
    #[arg(long, value_name = "FRAMES", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=16_384))]
    period: u32,
    /// Periods of the device's memory
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(2..=32))]
    periods: u32,
    /// Sample rate in Hz
    #[arg(long, value_name = "HZ", default_value_t = 48_000, value_parser = clap::value_parser!(u32).range(8_000..=384_000))]
    rate: u32,
    /// SCHED_FIFO priority of the thread; 0: none
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(0..=98))]
    realtime_priority: u32,
    #[command(flatten)]
    measure: Measure,
}

/// Channels, of which the first carries the signal.
const CHANNELS: usize = 2;
/// Formats that both devices have, best first.
const FORMATS: [(Format, &str); 3] =
    [(Format::FloatLE, "32-bit float"), (Format::S32LE, "32-bit integer"), (Format::S16LE, "16-bit integer")];
/// A device that breaks so often in a row, without a single period in between, does not work with these settings.
const XRUNS_IN_A_ROW: u32 = 10;

impl Alsa {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let open = |name: &str, direction| {
            PCM::new(name, direction, false).with_context(|| format!("cannot open ALSA device {name}"))
        };
        let playback = open(&self.playback, Direction::Playback)?;
        let capture = open(&self.capture, Direction::Capture)?;
        let has = |pcm: &PCM, format| HwParams::any(pcm).is_ok_and(|wish| wish.test_format(format).is_ok());
        let (format, format_name) = FORMATS
            .into_iter()
            .find(|(format, _)| has(&playback, *format) && has(&capture, *format))
            .context("the devices have no format in common")?;
        self.configure(&playback, format).with_context(|| self.playback.clone())?;
        self.configure(&capture, format).with_context(|| self.capture.clone())?;
        let pair = Pair { playback: &playback, capture: &capture, period: self.period as usize };
        let (mut tape, reel) = Tape::new(&self.measure.plan(self.rate));
        let scheduling = systems::become_realtime(self.realtime_priority);
        let xruns = match format {
            Format::FloatLE => pair.roll::<f32>(self.periods, &mut tape),
            Format::S32LE => pair.roll::<i32>(self.periods, &mut tape),
            _ => pair.roll::<i16>(self.periods, &mut tape),
        };
        let system = System {
            interface: "ALSA, read/write".into(),
            device: format!("{} to {}", self.playback, self.capture),
            buffer: format!("{} x {} frames", self.periods, self.period),
            sample_rate_hz: self.rate,
            format: format_name,
            kernel: systems::kernel(),
            scheduling,
            stated_frames: None,
            xruns: xruns?,
        };
        self.measure.report(system, reel.wait(|| true)?)
    }

    fn configure(&self, pcm: &PCM, format: Format) -> anyhow::Result<()> {
        let wish = HwParams::any(pcm)?;
        wish.set_rate_resample(false)?;
        wish.set_access(Access::RWInterleaved)?;
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
        // Both are started by hand, so that what waits in the playback device is known.
        software.set_start_threshold(Frames::MAX)?;
        software.set_avail_min(Frames::from(self.period))?;
        Ok(pcm.sw_params(&software)?)
    }
}

/// A sample of a device.
trait Sample: IoFormat + Default {
    fn of(sample: f32) -> Self;
    fn value(self) -> f32;
}

impl Sample for f32 {
    fn of(sample: f32) -> Self {
        sample
    }
    fn value(self) -> f32 {
        self
    }
}

impl Sample for i32 {
    fn of(sample: f32) -> Self {
        (f64::from(sample) * 2_147_483_648.0).round() as Self
    }
    fn value(self) -> f32 {
        (f64::from(self) / 2_147_483_648.0) as f32
    }
}

impl Sample for i16 {
    fn of(sample: f32) -> Self {
        (sample * 32_768.0).round() as Self
    }
    fn value(self) -> f32 {
        f32::from(self) / 32_768.0
    }
}

/// The two devices while they run.
struct Pair<'a> {
    playback: &'a PCM,
    capture: &'a PCM,
    /// Frames.
    period: usize,
}

impl Pair<'_> {
    /// Runs the tape from its beginning to its end; gives the number of xruns.
    fn roll<S: Sample>(&self, periods: u32, tape: &mut Tape) -> anyhow::Result<u32> {
        let (playing, recording) = (self.playback.io_checked::<S>()?, self.capture.io_checked::<S>()?);
        let mut samples = vec![S::default(); self.period * CHANNELS];
        let (mut heard, mut said) = (vec![0.0; self.period], vec![0.0; self.period]);
        let (mut xruns, mut in_a_row) = (0, 0);
        self.start(&playing, periods)?;
        while !tape.is_over() {
            let moved = self.read(&recording, &mut samples).and_then(|()| {
                heard
                    .iter_mut()
                    .zip(samples.chunks(CHANNELS))
                    .for_each(|(heard, frame)| *heard = frame[0].value());
                tape.cycle(&heard, &mut said);
                for (frame, said) in samples.chunks_mut(CHANNELS).zip(&said) {
                    frame.fill(S::default());
                    frame[0] = S::of(*said);
                }
                self.write(&playing, &samples)
            });
            let Err(error) = moved else {
                in_a_row = 0;
                continue;
            };
            ensure!(self.is_xrun(), "the sound card stopped: {error:#}");
            (xruns, in_a_row) = (xruns + 1, in_a_row + 1);
            ensure!(in_a_row < XRUNS_IN_A_ROW, "the sound card cannot keep up: use longer or more periods");
            self.start(&playing, periods)?;
        }
        let _ = (self.playback.drop(), self.capture.drop());
        Ok(xruns)
    }

    fn is_xrun(&self) -> bool {
        [self.playback, self.capture].iter().any(|pcm| pcm.state() == State::XRun)
    }

    /// Begins anew, with silence in every period of the playback device.
    fn start<S: Sample>(&self, playing: &IO<'_, S>, periods: u32) -> anyhow::Result<()> {
        for pcm in [self.playback, self.capture] {
            // Fails where it does not run, which is what is wanted.
            let _ = pcm.drop();
            pcm.prepare()?;
        }
        let silence = vec![S::default(); self.period * CHANNELS];
        for _ in 0..periods {
            self.write(playing, &silence)?;
        }
        self.playback.start()?;
        // Linked devices have started together.
        if self.capture.state() != State::Running {
            self.capture.start()?;
        }
        Ok(())
    }

    fn write<S: Sample>(&self, playing: &IO<'_, S>, samples: &[S]) -> anyhow::Result<()> {
        let mut written = 0;
        while written < self.period {
            written += playing.writei(&samples[written * CHANNELS..])?;
        }
        Ok(())
    }

    fn read<S: Sample>(&self, recording: &IO<'_, S>, samples: &mut [S]) -> anyhow::Result<()> {
        let mut read = 0;
        while read < self.period {
            read += recording.readi(&mut samples[read * CHANNELS..])?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_comes_back_from_every_format_as_it_went_in_up_to_its_last_bit() {
        for sample in [0.0, 0.5, -0.5, 0.05, -0.05, 0.1] {
            assert_eq!(f32::of(sample).value(), sample);
            assert!((i32::of(sample).value() - sample).abs() < 1e-8);
            assert!((i16::of(sample).value() - sample).abs() <= 0.5 / 32_768.0);
        }
        assert_eq!((i16::of(1.0), i16::of(-1.0)), (i16::MAX, i16::MIN));
    }
}
