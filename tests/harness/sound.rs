//! Recordings, and how they are measured.

use std::ops::Range;
use std::path::Path;

use soundfile::{Reader, Writer};

/// A recording, a vector of samples for each channel.
#[derive(Debug, Clone, PartialEq)]
pub struct Sound {
    /// Hz.
    pub sample_rate_hz: u32,
    /// The samples of each channel.
    pub channels: Vec<Vec<f32>>,
}

impl Sound {
    /// Reads a sound file.
    ///
    /// # Panics
    /// If the file cannot be read as a sound.
    pub fn read(path: &Path) -> Self {
        let mut reader = Reader::open(path).unwrap_or_else(|error| panic!("{error}"));
        let mut channels = vec![Vec::new(); reader.channels()];
        let mut block = vec![vec![0.0; 4096]; reader.channels()];
        while let frames @ 1.. = reader.read(&mut block).expect("readable") {
            for (channel, block) in channels.iter_mut().zip(&block) {
                channel.extend_from_slice(&block[..frames]);
            }
        }
        Self { sample_rate_hz: reader.sample_rate_hz(), channels }
    }

    /// A sound of these channels.
    pub fn of(sample_rate_hz: u32, channels: &[Vec<f32>]) -> Self {
        Self { sample_rate_hz, channels: channels.to_vec() }
    }

    /// Writes it as a WAV of 32-bit floating point, which stores every sample exactly.
    ///
    /// # Panics
    /// If the file cannot be written.
    pub fn write(&self, path: &Path) {
        let channels = u16::try_from(self.channels.len()).expect("few channels");
        let mut writer = Writer::create(path, channels, self.sample_rate_hz).expect("a file");
        writer.write(&self.channels).expect("written");
        writer.finish().expect("on the disk");
    }

    /// One channel alone, from its first sample that is not silent to its last.
    pub fn sounding(&self, channel: usize) -> Self {
        let samples = &self.channels[channel];
        let is_sound = |sample: &f32| *sample != 0.0;
        let begin = samples.iter().position(is_sound).unwrap_or(0);
        let end = samples.iter().rposition(is_sound).map_or(0, |last| last + 1);
        Self::of(self.sample_rate_hz, &[samples[begin..end].to_vec()])
    }

    /// Root of the mean square of a channel.
    pub fn rms(&self, channel: usize) -> f64 {
        let samples = &self.channels[channel];
        let sum: f64 = samples.iter().map(|sample| f64::from(*sample).powi(2)).sum();
        (sum / samples.len() as f64).sqrt()
    }

    /// Largest absolute sample of a channel.
    pub fn peak(&self, channel: usize) -> f32 {
        self.channels[channel].iter().fold(0.0, |peak, sample| sample.abs().max(peak))
    }

    /// The frequency of a tone, by its upward zero crossings: the median length of an eighth of its
    /// periods in a row, which some gaps in the tone do not change.
    pub fn frequency_hz(&self, channel: usize) -> f64 {
        let samples = &self.channels[channel];
        let crossings: Vec<usize> = (1..samples.len())
            .filter(|index| samples[index - 1] < 0.0 && samples[*index] >= 0.0)
            .collect();
        let periods = crossings.len().div_ceil(8).min(crossings.len().saturating_sub(1));
        let mut frames: Vec<usize> =
            crossings.windows(periods + 1).map(|timed| timed[periods] - timed[0]).collect();
        frames.sort_unstable();
        match frames.get(frames.len() / 2) {
            Some(&median @ 1..) => periods as f64 * f64::from(self.sample_rate_hz) / median as f64,
            _ => 0.0,
        }
    }
}

/// A part of a recording that equals a part of what was sent, sample for sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    /// Where it begins in what was sent, in frames.
    pub sent_at: usize,
    /// Where it begins in the recording, in frames.
    pub recorded_at: usize,
    /// Its length.
    pub frames: usize,
}

impl Stretch {
    /// The longest stretch of `sent` in `recorded`; it is found for certain if it is longer than
    /// [`Self::ALWAYS_FOUND_FRAMES`]. What was sent must not repeat itself.
    pub fn longest(sent: &[f32], recorded: &[f32]) -> Self {
        const ANCHOR_FRAMES: usize = 64;
        let mut longest = Self { sent_at: 0, recorded_at: 0, frames: 0 };
        for sent_at in
            (0..sent.len().saturating_sub(ANCHOR_FRAMES)).step_by(Self::ALWAYS_FOUND_FRAMES / 2)
        {
            let anchor = &sent[sent_at..][..ANCHOR_FRAMES];
            let is_known = longest.frames > 0 && sent_at < longest.sent_at + longest.frames;
            let at =
                recorded.windows(ANCHOR_FRAMES).position(|window| !is_known && window == anchor);
            let Some(recorded_at) = at else { continue };
            let before = sent[..sent_at].iter().rev().zip(recorded[..recorded_at].iter().rev());
            let before = before.take_while(|(sent, recorded)| sent == recorded).count();
            let after = sent[sent_at..].iter().zip(&recorded[recorded_at..]);
            let after = after.take_while(|(sent, recorded)| sent == recorded).count();
            if before + after > longest.frames {
                longest = Self {
                    sent_at: sent_at - before,
                    recorded_at: recorded_at - before,
                    frames: before + after,
                };
            }
        }
        longest
    }

    /// Twice the distance of the places at which the search begins.
    pub const ALWAYS_FOUND_FRAMES: usize = 8192;
}

/// The frames of a sound, from which to which, that a recording of one device has: they begin in a
/// fade of `fade` frames at most, or with the first of all, and nothing else is in the recording.
/// What was sent must not repeat itself, and is never 0.
///
/// # Errors
/// If anything else is in it; the text says what.
pub fn only_part(sent: &[f32], recorded: &[f32], fade: usize) -> Result<Range<usize>, String> {
    let begin = recorded.iter().position(|sample| *sample != 0.0).ok_or("nothing is heard")?;
    let end = recorded.iter().rposition(|sample| *sample != 0.0).map_or(0, |last| last + 1);
    let same = Stretch::longest(sent, recorded);
    let softer = same.recorded_at - begin;
    let said = || format!("{same:?} in frames {begin} to {end}");
    if softer > fade.min(same.sent_at) || same.recorded_at + same.frames != end {
        return Err(said());
    }
    let first = same.sent_at - softer;
    let mut faded = recorded[begin..].iter().zip(&sent[first..]).take(softer);
    if !faded.all(|(recorded, sent)| recorded.abs() < sent.abs()) {
        return Err(format!("no fade before {}", said()));
    }
    Ok(first..same.sent_at + same.frames)
}

/// A sine of half the full scale.
pub fn tone(frequency_hz: f64, sample_rate_hz: u32, frames: usize) -> Vec<f32> {
    let step = std::f64::consts::TAU * frequency_hz / f64::from(sample_rate_hz);
    (0..frames).map(|frame| (0.5 * (step * frame as f64).sin()) as f32).collect()
}

/// Noise that never repeats itself and is never 0, softer than half the full scale, on the grid of
/// 16-bit samples: it passes unchanged through every format that a program may record in, whether 1
/// is 32767 there or 32768. `seed` is not 0.
pub fn noise(seed: u64, frames: usize) -> Vec<f32> {
    let mut state = seed;
    let next = || {
        // Marsaglia, "Xorshift RNGs", 2003.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let size = (state >> 40) % 16_000 + 1;
        let sign = if state >> 63 == 0 { 1.0 } else { -1.0 };
        sign * size as f32 / 32_768.0
    };
    std::iter::repeat_with(next).take(frames).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_stretch_is_found_at_any_position() {
        let sent = noise(1, 60_000);
        for (what, lost, expected) in [
            ("nothing lost", 0..0, Stretch { sent_at: 0, recorded_at: 0, frames: 60_000 }),
            ("the start lost", 0..100, Stretch { sent_at: 100, recorded_at: 0, frames: 59_900 }),
            (
                "a hole",
                20_000..20_001,
                Stretch { sent_at: 20_001, recorded_at: 20_000, frames: 39_999 },
            ),
        ] {
            let mut recorded = sent.clone();
            recorded.drain(lost);
            assert_eq!(Stretch::longest(&sent, &recorded), expected, "{what}");
        }
        assert_eq!(Stretch::longest(&sent, &noise(2, 60_000)).frames, 0, "another sound");
    }

    #[test]
    fn a_part_begins_in_a_fade_and_nothing_is_beside_it() {
        let sent = noise(1, 60_000);
        let quiet: Vec<f32> = sent[19_900..20_000].iter().map(|sample| sample / 2.0).collect();
        let part = [&[0.0; 50][..], &quiet, &sent[20_000..50_000], &[0.0; 9]].concat();
        assert_eq!(only_part(&sent, &part, 100), Ok(19_900..50_000));
        assert!(only_part(&sent, &part, 99).is_err(), "a longer fade");
        assert_eq!(only_part(&sent, &sent[..30_000], 0), Ok(0..30_000));
        let twice = [&sent[..30_000], &sent[29_990..]].concat();
        assert!(only_part(&sent, &twice, 100).is_err(), "ten frames twice");
        let hole = [&sent[..30_000], &sent[30_001..]].concat();
        assert!(only_part(&sent, &hole, 100).is_err(), "a frame is left out");
        assert!(only_part(&sent, &[0.0; 99], 100).is_err(), "silence");
    }
}
