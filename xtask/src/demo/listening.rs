//! What came out, next to what went in.

use std::fmt::{self, Display};
use std::path::Path;

use anyhow::{Context, Result};
use realfft::RealFftPlanner;

/// A sound file.
pub(super) struct Take {
    pub channels: Vec<Vec<f32>>,
    pub rate_hz: u32,
}

impl Take {
    pub fn read(path: &Path) -> Result<Self> {
        let mut reader = soundfile::Reader::open(path)?;
        let mut block = vec![vec![0.0; 4096]; reader.channels()];
        let mut channels = vec![Vec::new(); reader.channels()];
        while let frames @ 1.. = reader.read(&mut block)? {
            for (channel, block) in channels.iter_mut().zip(&block) {
                channel.extend_from_slice(&block[..frames]);
            }
        }
        Ok(Self { channels, rate_hz: reader.sample_rate_hz() })
    }

    pub fn channel(&self, index: usize) -> Result<&[f32]> {
        self.channels.get(index).map(Vec::as_slice).context("the file has no such channel")
    }

    /// A line for each sound, with what it is.
    pub fn print_levels(sounds: &[(&str, &[f32])], rate_hz: u32) {
        println!("             peak dBFS   RMS dBFS   spectrum peak");
        for (name, samples) in sounds {
            let (peak, rms) = levels(samples);
            println!("{name:<12}{peak:>10.1}{rms:>11.1}{:>12.1} Hz", loudest_hz(samples, rate_hz));
        }
    }
}

/// Frames of a sound that came out as they were sent.
pub(super) struct Comparison {
    pub same: usize,
    pub sent: usize,
    /// What the programs on its way made of it, all in all.
    factor: f32,
    /// Frames from the beginning of the recording to that of the sound.
    pub delay: usize,
    /// Frames of time that the device was late by, in between.
    late: usize,
}

/// Frames of the stretches that are found in a recording one by one.
const STRETCH: usize = 512;

impl Comparison {
    /// Finds in `heard` what programs with these factors make of `sent`.
    pub fn of(sent: &[f32], factors: &[f32], heard: &[f32]) -> Result<Self> {
        let through = |sample: f32| factors.iter().fold(sample, |sample, factor| sample * factor);
        let expected: Vec<f32> = sent.iter().copied().map(through).collect();
        let stretches = || expected.chunks(STRETCH).enumerate();
        let begin = |number: usize| number * STRETCH;
        // Time is lost only, so a stretch is at the delay of the one before, or later.
        let found = |after: usize, number: usize, stretch: &[f32]| {
            let rest = heard.get(after + begin(number)..)?;
            let is_sound = stretch.iter().any(|sample| *sample != stretch[0]);
            let at = || rest.windows(stretch.len()).position(|part| part == stretch);
            if rest.starts_with(stretch) {
                Some(after)
            } else {
                Some(after + at().filter(|_| is_sound)?)
            }
        };
        let first = stretches().find_map(|(number, stretch)| found(0, number, stretch));
        let delay = first.context("what came out is not what went in")?;
        let (mut same, mut last) = (0, delay);
        for (number, stretch) in stretches() {
            last = found(last, number, stretch).unwrap_or(last);
            let heard = heard.get(last + begin(number)..).unwrap_or_default();
            same += stretch.iter().zip(heard).filter(|(sent, heard)| sent == heard).count();
        }
        let (sent, factor) = (sent.len(), through(1.0));
        Ok(Self { same, sent, factor, delay, late: last - delay })
    }

    /// Whether the device was in time all along.
    pub fn is_on_time(&self) -> bool {
        self.late == 0
    }

    /// Says why frames may differ, if any does.
    pub fn print_losses(&self) {
        if self.same < self.sent {
            println!(
                "the others fell into cycles that this machine, busy as it is now, did not finish \
                 in time"
            );
        }
        if !self.is_on_time() {
            println!("the device was late by {} frames in all: this machine is busy", self.late);
        }
    }
}

impl Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { same, sent, factor, delay, .. } = self;
        write!(
            f,
            "{same} of {sent} frames came out exactly as sent × {factor:.3}, {delay} frames later"
        )
    }
}

/// (Peak, RMS) in dB below full scale.
fn levels(samples: &[f32]) -> (f32, f32) {
    let peak = samples.iter().fold(0.0_f32, |peak, sample| sample.abs().max(peak));
    let power =
        samples.iter().map(|sample| sample * sample).sum::<f32>() / samples.len().max(1) as f32;
    (20.0 * peak.log10(), 10.0 * power.log10())
}

/// The frequency with the most energy.
fn loudest_hz(samples: &[f32], sample_rate_hz: u32) -> f64 {
    let transform = RealFftPlanner::<f32>::new().plan_fft_forward(samples.len());
    let (mut time, mut spectrum) = (samples.to_vec(), transform.make_output_vec());
    if transform.process(&mut time, &mut spectrum).is_err() {
        return 0.0;
    }
    let energies = spectrum.iter().map(|bin| bin.norm_sqr()).enumerate();
    let (bin, _) = energies.max_by(|left, right| left.1.total_cmp(&right.1)).unwrap_or_default();
    bin as f64 * f64::from(sample_rate_hz) / samples.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sound that never repeats, and a recording of it, halved and 100 frames later.
    fn sound() -> (Vec<f32>, Vec<f32>) {
        let sent: Vec<f32> = (0..20_000).map(|at| (at * 7 % 19_997) as f32 / 20_000.0).collect();
        let heard = vec![0.0; 100].into_iter().chain(sent.iter().map(|it| it * 0.5)).collect();
        (sent, heard)
    }

    #[test]
    fn a_lost_cycle_is_counted_wherever_it_is() {
        let (sent, whole) = sound();
        for at in (0..sent.len()).step_by(STRETCH) {
            let mut heard = whole.clone();
            heard[100 + at..].iter_mut().take(128).for_each(|sample| *sample = 0.25);
            let found = Comparison::of(&sent, &[0.5], &heard).expect("found");
            let lost = sent[at..].iter().take(128).filter(|sample| **sample != 0.5).count();
            assert_eq!((found.delay, found.sent - found.same), (100, lost), "{at}");
        }
    }

    #[test]
    fn a_device_that_is_late_costs_time_and_no_frame() {
        let (sent, mut heard) = sound();
        heard.splice(9_000..9_000, [0.0; 256]);
        let found = Comparison::of(&sent, &[0.5], &heard).expect("found");
        assert_eq!((found.delay, found.late), (100, 256));
        // All but those of the stretch that the silence is in.
        assert!(found.sent - found.same < STRETCH, "{} are the same", found.same);
    }

    #[test]
    fn another_sound_is_no_recording_of_it() {
        let (sent, heard) = sound();
        assert!(Comparison::of(&sent, &[0.25], &heard).is_err());
    }
}
