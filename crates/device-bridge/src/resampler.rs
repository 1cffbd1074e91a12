//! `rubato`, with the exact position of each output frame.

use rubato::audioadapter_buffers::direct::SequentialSlice;
use rubato::{
    Adjustable, Async, FixedAsync, Resampler as _, SincInterpolationParameters,
    SincInterpolationType, WindowFunction,
};

use crate::steering::WORST;

/// Taps of the filter: its stop band is below -100 dB, and it delays by half of the taps.
const TAPS: usize = 96;
/// Filter phases between two frames.
const STEPS: usize = 1024;

/// Which of the two frame counts is the same in each call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fixed {
    /// What goes in.
    Input,
    /// What comes out.
    Output,
}

/// Resamples several channels.
pub(crate) struct Resampler {
    inner: Async<f32>,
    channels: usize,
    /// Output frames per input frame.
    nominal: f64,
    ratio: f64,
    /// Input position of the next output frame.
    position: f64,
    /// Number of input frames.
    taken: f64,
    /// One channel after the other.
    pub(crate) input: Vec<f32>,
    /// One channel after the other.
    pub(crate) output: Vec<f32>,
}

impl std::fmt::Debug for Resampler {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Resampler").field("ratio", &self.ratio).finish_non_exhaustive()
    }
}

impl Resampler {
    /// Delay in input frames.
    pub(crate) const DELAY: f64 = (TAPS / 2) as f64 + 2.0;

    /// Returns a resampler for `chunk` frames at a time. Thread: not the cycle's.
    pub(crate) fn new(
        channels: usize,
        from_hz: f64,
        to_hz: f64,
        chunk: usize,
        fixed: Fixed,
    ) -> Result<Self, String> {
        let parameters = SincInterpolationParameters::new(TAPS, WindowFunction::BlackmanHarris2)
            .oversampling_factor(STEPS)
            .interpolation(SincInterpolationType::Linear);
        let fixed = match fixed {
            Fixed::Input => FixedAsync::Input,
            Fixed::Output => FixedAsync::Output,
        };
        let nominal = to_hz / from_hz;
        let most = 1.0 + 2.0 * WORST;
        let inner = Async::new_sinc(nominal, most, &parameters, chunk, channels, fixed);
        let inner = inner
            .map_err(|error| format!("cannot resample {from_hz} Hz to {to_hz} Hz: {error}"))?;
        let input = vec![0.0; channels * inner.input_frames_max()];
        let output = vec![0.0; channels * inner.output_frames_max()];
        Ok(Self {
            inner,
            channels,
            nominal,
            ratio: nominal,
            position: 0.0,
            taken: 0.0,
            input,
            output,
        })
    }

    /// Forgets all input.
    pub(crate) fn reset(&mut self) {
        self.inner.reset();
        (self.position, self.taken, self.ratio) = (0.0, 0.0, self.nominal);
    }

    /// Changes the number of output frames by `more`, relative to the nominal ratio. Thread: the
    /// card's.
    pub(crate) fn set_more(&mut self, more: f64) {
        let ratio = self.nominal * (1.0 + more);
        if self.inner.set_resample_ratio(ratio, false).is_ok() {
            self.ratio = ratio;
        }
    }

    /// Returns how many frames `input` must contain.
    pub(crate) fn wanted(&self) -> usize {
        self.inner.input_frames_next()
    }

    /// Returns how many frames before the next input frame the next output frame lies. Thread: the
    /// card's.
    pub(crate) fn lag(&self) -> f64 {
        // The library steps before each output frame, and its filters begin one of their own steps
        // late.
        self.taken - self.position + (TAPS / 2) as f64 - 1.0 / self.ratio - 1.0 / STEPS as f64
    }

    /// Resamples `input` and returns the number of frames in `output`. Thread: the card's.
    pub(crate) fn run(&mut self) -> usize {
        let (wanted, most) = (self.inner.input_frames_next(), self.inner.output_frames_next());
        let (channels, ratio) = (self.channels, self.ratio);
        let input = self.input.get(..channels * wanted).unwrap_or_default();
        let output = self.output.get_mut(..channels * most).unwrap_or_default();
        let buffers = SequentialSlice::new(input, channels, wanted)
            .and_then(|input| Ok((input, SequentialSlice::new_mut(output, channels, most)?)));
        let Ok((input, mut output)) = buffers else { return 0 };
        let Ok((taken, made)) = self.inner.process_into_buffer(&input, &mut output, None) else {
            return 0;
        };
        self.taken += taken as f64;
        self.position += made as f64 / ratio;
        // Small numbers keep their precision.
        let whole = self.position.floor();
        (self.taken, self.position) = (self.taken - whole, self.position - whole);
        made
    }
}
