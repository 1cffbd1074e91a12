//! Impulses in a channel.

/// Impulses closer than this belong together: the ringing of one, seconds.
const RINGING_S: f64 = 0.005;
/// An impulse is this far above everything else in its channel.
const ABOVE_REST: f64 = 3.0;

/// The frames at which impulses peak; none if the channel has other sounds that an impulse could be
/// lost among.
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
    // A dense sound is one long group; an impulse is over soon.
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

/// The first frame of sound, if silence (in comparison) comes before it: half the highest level,
/// and nothing of an eighth of it in at least `silence` frames before.
pub fn beginning(samples: &[f64], silence: usize) -> Option<usize> {
    let highest = samples.iter().fold(0.0_f64, |peak, sample| peak.max(sample.abs()));
    let first = samples.iter().position(|sample| sample.abs() > highest / 2.0)?;
    let onset = samples.iter().position(|sample| sample.abs() > highest / 8.0)?;
    (onset >= silence && first - onset <= silence).then_some(first)
}

/// Over how many samples the energy of a channel is spread: of a few clicks that many, of a noise a
/// third of all.
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
    fn impulses_are_found_in_silence_and_above_a_quiet_sound_but_not_in_a_loud_one() {
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
    fn clicks_are_as_many_samples_as_they_are_and_a_sound_is_many() {
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
