//! Detection of impulses in a channel.

/// Impulses closer than this are the ringing of one impulse, seconds.
const RINGING_S: f64 = 0.005;
/// Ratio of an impulse to everything else in its channel.
const ABOVE_REST: f64 = 3.0;

/// The frames at which impulses peak; none if the channel has other sounds that could hide an
/// impulse.
pub fn impulses(samples: &[f64], sample_rate_hz: u32) -> Vec<usize> {
    let ringing = (f64::from(sample_rate_hz) * RINGING_S) as usize;
    let highest = samples.iter().fold(0.0_f64, |peak, sample| peak.max(sample.abs()));
    let mut groups: Vec<(usize, usize, usize)> = Vec::new();
    for (frame, sample) in
        samples.iter().enumerate().filter(|(_, sample)| sample.abs() > highest / 2.0)
    {
        match groups.last_mut() {
            Some((_, last, peak)) if frame - *last <= ringing => {
                *last = frame;
                if sample.abs() > samples[*peak].abs() {
                    *peak = frame;
                }
            }
            _ => groups.push((frame, frame, frame)),
        }
    }
    // A dense sound is one long group, whereas an impulse is short.
    if groups.iter().any(|(first, last, _)| last - first > 2 * ringing) {
        return Vec::new();
    }
    let mut rest_from = 0;
    for (first, last, _) in &groups {
        if !is_quiet(&samples[rest_from..first.saturating_sub(ringing).max(rest_from)], highest) {
            return Vec::new();
        }
        rest_from = (last + ringing).min(samples.len());
    }
    if !is_quiet(&samples[rest_from..], highest) {
        return Vec::new();
    }
    groups.into_iter().map(|(_, _, peak)| peak).collect()
}

fn is_quiet(samples: &[f64], highest: f64) -> bool {
    samples.iter().all(|sample| sample.abs() * ABOVE_REST < highest)
}

/// The first frame of sound, if relative silence comes before it: at least half the highest level,
/// and less than an eighth of that level for at least `silence` frames before.
pub fn beginning(samples: &[f64], silence: usize) -> Option<usize> {
    let highest = samples.iter().fold(0.0_f64, |peak, sample| peak.max(sample.abs()));
    let first = samples.iter().position(|sample| sample.abs() > highest / 2.0)?;
    let onset = samples.iter().position(|sample| sample.abs() > highest / 8.0)?;
    (onset >= silence && first - onset <= silence).then_some(first)
}

/// Number of samples over which the energy of a channel is spread: for a few clicks their number,
/// for noise a third of all samples.
pub fn effective_samples(samples: &[f64]) -> f64 {
    let powers = samples.iter().map(|sample| sample * sample);
    let (energy, squares) = powers
        .fold((0.0, 0.0), |(energy, squares), power| (energy + power, squares + power * power));
    if squares > 0.0 { energy * energy / squares } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impulses_are_found_unless_other_sound_is_loud() {
        let sound = |level: f64| -> Vec<f64> {
            let mut samples: Vec<f64> =
                (0..20_000).map(|frame| if frame % 3 == 0 { level } else { -level }).collect();
            for (frame, height) in [(1_000, 0.5), (9_000, -0.45), (9_002, 0.3)] {
                samples[frame] = height;
            }
            samples
        };
        assert_eq!(impulses(&sound(0.0), 48_000), [1_000, 9_000]);
        assert_eq!(impulses(&sound(0.05), 48_000), [1_000, 9_000]);
        assert!(impulses(&sound(0.3), 48_000).is_empty());
    }

    #[test]
    fn effective_samples_are_few_for_clicks_but_many_for_sound() {
        let mut samples = vec![0.0; 1_000];
        assert_eq!(effective_samples(&samples), 0.0);
        (samples[10], samples[700]) = (0.5, -0.5);
        assert_eq!(effective_samples(&samples), 2.0);
        assert_eq!(effective_samples(&[0.1; 1_000]).round(), 1_000.0);
    }

    #[test]
    fn a_sound_has_a_beginning_only_after_silence() {
        let mut samples = vec![0.0; 1_000];
        samples[300..].fill(0.5);
        assert_eq!(beginning(&samples, 100), Some(300));
        assert_eq!(beginning(&samples, 400), None);
        assert_eq!(beginning(&samples[300..], 100), None);
    }
}
