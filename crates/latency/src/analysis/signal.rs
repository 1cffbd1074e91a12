//! Test signals to send through the system under test.

use std::f64::consts::TAU;

/// A sound that can be recognised when it comes back.
///
/// No signal repeats itself within a run of practical length, so no delay can be mistaken for
/// another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// Single samples in silence, as in the paper, a quarter of a second or a little more apart.
    /// For clean paths.
    Impulses,
    /// A maximum-length sequence: every sample counts, so it is found even in much louder noise,
    /// and nothing can go missing unnoticed.
    Sequence,
    /// Logarithmic sweeps through all frequencies, at irregular distances. For paths that would
    /// distort a sequence.
    Sweeps,
    /// Impulses above a quiet sequence: has onsets to count, and every sample between them can be
    /// checked.
    Marked,
}

/// Half of full scale, so that no path clips.
const AMPLITUDE: f32 = 0.5;
/// The quiet sequence of [`Signal::Marked`], 20 dB below its impulses.
const QUIET: f32 = 0.05;
/// The lowest frequency of a sweep, Hz.
const SWEEP_FROM_HZ: f64 = 20.0;
/// The highest frequency, as a fraction of the sample rate.
const SWEEP_TO: f64 = 0.45;

impl Signal {
    /// The first `frames` samples.
    #[must_use]
    pub fn samples(self, frames: usize, sample_rate_hz: u32) -> Vec<f32> {
        match self {
            Self::Impulses => impulses(vec![0.0; frames], sample_rate_hz),
            Self::Sequence => sequence(frames, AMPLITUDE),
            Self::Sweeps => sweeps(frames, sample_rate_hz),
            Self::Marked => impulses(sequence(frames, QUIET), sample_rate_hz),
        }
    }
}

/// Writes impulses into `samples`.
fn impulses(mut samples: Vec<f32>, sample_rate_hz: u32) -> Vec<f32> {
    for place in places(samples.len(), sample_rate_hz) {
        samples[place] = AMPLITUDE;
    }
    samples
}

/// Positions of impulses: a quarter to five sixteenths of a second apart, unevenly, starting at a
/// tenth of a second.
fn places(frames: usize, sample_rate_hz: u32) -> impl Iterator<Item = usize> {
    let quarter = (sample_rate_hz as usize / 4).max(4);
    let mut state = 1_u64;
    std::iter::successors(Some((sample_rate_hz / 10) as usize), move |place| {
        // Knuth's multiplicative generator (MMIX); the upper bits are the random ones.
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Some(place + quarter + (state >> 33) as usize % (quarter / 4))
    })
    .take_while(move |place| *place < frames)
}

fn sequence(frames: usize, amplitude: f32) -> Vec<f32> {
    let order = (MLS_ORDERS.start..=MLS_ORDERS.end)
        .find(|order| (1_usize << order) > frames)
        .unwrap_or(MLS_ORDERS.end);
    let bits = register(order).cycle_bits();
    bits.take(frames).map(|bit| if bit { amplitude } else { -amplitude }).collect()
}

/// Sweeps of many lengths, alternately up and down: no two are alike.
fn sweeps(frames: usize, sample_rate_hz: u32) -> Vec<f32> {
    let shortest = (sample_rate_hz as usize / 8).max(1);
    let mut samples = vec![0.0; frames];
    for (index, place) in places(frames, sample_rate_hz).enumerate() {
        let length = shortest + place % (shortest / 2).max(1);
        // Half a sweep is hard to recognise.
        if index > 0 && place + length > frames {
            break;
        }
        let swept = sweep(length, sample_rate_hz);
        let swept: Box<dyn Iterator<Item = f32>> =
            if index % 2 == 0 { Box::new(swept) } else { Box::new(swept.rev()) };
        for (sample, swept) in samples[place..].iter_mut().zip(swept) {
            *sample = swept;
        }
    }
    samples
}

/// One rising sweep from [`SWEEP_FROM_HZ`], with equal time per octave, faded at both ends.
fn sweep(length: usize, sample_rate_hz: u32) -> impl DoubleEndedIterator<Item = f32> {
    let rate_hz = f64::from(sample_rate_hz.max(1));
    let growth = (SWEEP_TO * rate_hz / SWEEP_FROM_HZ).max(2.0).ln();
    let cycles = SWEEP_FROM_HZ * length as f64 / rate_hz / growth;
    let fade = (length / 16).max(1);
    (0..length).map(move |frame| {
        let phase = TAU * cycles * ((frame as f64 / length as f64 * growth).exp() - 1.0);
        let edge = frame.min(length - frame).min(fade) as f64 / fade as f64;
        (phase.sin() * edge * f64::from(AMPLITUDE)) as f32
    })
}

/// Taps of a primitive polynomial for each order from 4 on (P. Alfke, "Efficient Shift Registers,
/// LFSR Counters, and Long Pseudo-Random Sequence Generators", Xilinx XAPP 052).
const TAPS: [&[u32]; 21] = [
    &[4, 3],
    &[5, 3],
    &[6, 5],
    &[7, 6],
    &[8, 6, 5, 4],
    &[9, 5],
    &[10, 7],
    &[11, 9],
    &[12, 6, 4, 1],
    &[13, 4, 3, 1],
    &[14, 5, 3, 1],
    &[15, 14],
    &[16, 15, 13, 4],
    &[17, 14],
    &[18, 11],
    &[19, 6, 2, 1],
    &[20, 17],
    &[21, 19],
    &[22, 21],
    &[23, 18],
    &[24, 23, 22, 17],
];

/// Orders for which there are sequences.
struct Orders {
    start: u32,
    end: u32,
}
const MLS_ORDERS: Orders = Orders { start: 4, end: 24 };

/// A linear feedback shift register.
struct Register {
    order: u32,
    taps: &'static [u32],
    state: u32,
}

fn register(order: u32) -> Register {
    Register { order, taps: TAPS[(order - MLS_ORDERS.start) as usize], state: (1 << order) - 1 }
}

impl Register {
    /// The register's bits, without end.
    fn cycle_bits(mut self) -> impl Iterator<Item = bool> {
        std::iter::from_fn(move || {
            let feedback = self.taps.iter().fold(0, |bit, tap| bit ^ (self.state >> (tap - 1)));
            self.state = (self.state << 1 | feedback & 1) & ((1 << self.order) - 1);
            Some(feedback & 1 == 1)
        })
    }
}

/// One period, 2^`order` − 1 samples of ±1.0: its circular autocorrelation is an impulse (M. R.
/// Schroeder, "Integrated-impulse method measuring sound decay without using impulses", JASA 66,
/// 1979). `None`: no order from 4 to 24.
#[must_use]
pub fn maximum_length_sequence(order: u32) -> Option<Vec<f32>> {
    (MLS_ORDERS.start..=MLS_ORDERS.end).contains(&order).then(|| {
        let length = (1_usize << order) - 1;
        register(order).cycle_bits().take(length).map(|bit| if bit { 1.0 } else { -1.0 }).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequence_has_its_full_period_and_no_shorter_one() {
        for order in MLS_ORDERS.start..=20 {
            let first = register(order).state;
            let mut running = register(order);
            let mut period = 0_usize;
            loop {
                let feedback =
                    running.taps.iter().fold(0, |bit, tap| bit ^ (running.state >> (tap - 1)));
                running.state = (running.state << 1 | feedback & 1) & ((1 << order) - 1);
                period += 1;
                if running.state == first {
                    break;
                }
            }
            assert_eq!(period, (1 << order) - 1, "order {order}");
        }
    }

    #[test]
    fn the_circular_autocorrelation_of_a_sequence_is_an_impulse() {
        let sequence = maximum_length_sequence(10).expect("order 10");
        let at = |lag: usize| -> f32 {
            (0..sequence.len())
                .map(|frame| sequence[frame] * sequence[(frame + lag) % sequence.len()])
                .sum()
        };
        assert_eq!(at(0), 1023.0);
        assert!((1..sequence.len()).all(|lag| at(lag) == -1.0));
        assert_eq!(maximum_length_sequence(3), None);
        assert_eq!(maximum_length_sequence(25), None);
    }

    #[test]
    fn distances_between_impulses_do_not_repeat_within_a_minute() {
        let places: Vec<usize> = places(60 * 48_000, 48_000).collect();
        assert!(places.len() > 180);
        let mut distances: Vec<usize> = places.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(distances.iter().all(|distance| (12_000..15_000).contains(distance)));
        distances.sort_unstable();
        distances.dedup();
        // Some distances coincide by chance; a train that repeats itself would have only a handful
        // of different ones.
        assert!(distances.len() > 150, "{}", distances.len());
    }

    #[test]
    fn every_signal_has_the_given_length() {
        for signal in [Signal::Impulses, Signal::Sequence, Signal::Sweeps, Signal::Marked] {
            for frames in [0, 1, 1000, 100_000] {
                let samples = signal.samples(frames, 44_100);
                assert_eq!(samples.len(), frames);
                assert!(samples.iter().all(|sample| sample.abs() <= AMPLITUDE), "{signal:?}");
            }
        }
    }
}
