//! `rubato`, with the exact place of each frame that it puts out.

use rubato::audioadapter_buffers::direct::SequentialSlice;
use rubato::{
    Adjustable, Async, FixedAsync, Resampler as _, SincInterpolationParameters, SincInterpolationType,
    WindowFunction,
};

use crate::steering::WORST;

/// Taps of the filter: its stop-band is below -100 dB, and it delays by half of them.
const TAPS: usize = 96;
/// Filters between two frames.
const STEPS: usize = 1024;

/// Which of the two numbers of frames is the same at each call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fixed {
    /// What goes in.
    Input,
    /// What comes out.
    Output,
}

/// Several channels on their way from one rate to another.
pub(crate) struct Resampler {
    inner: Async<f32>,
    channels: usize,
    /// Frames out for a frame in.
    nominal: f64,
    ratio: f64,
    /// Where among the frames that went in the next one comes from that goes out.
    place: f64,
    /// All frames that went in.
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
    /// Frames by which it delays, at the rate of what goes in.
    pub(crate) const DELAY: f64 = (TAPS / 2) as f64 + 2.0;

    /// For `chunk` frames at a time. Thread: not the cycle's.
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
        let inner = inner.map_err(|error| format!("cannot resample {from_hz} Hz to {to_hz} Hz: {error}"))?;
        let input = vec![0.0; channels * inner.input_frames_max()];
        let output = vec![0.0; channels * inner.output_frames_max()];
        Ok(Self { inner, channels, nominal, ratio: nominal, place: 0.0, taken: 0.0, input, output })
    }

    /// Forgets what went in.
    pub(crate) fn reset(&mut self) {
        self.inner.reset();
        (self.place, self.taken, self.ratio) = (0.0, 0.0, self.nominal);
    }

    /// Puts out so much more than it would, relative. Thread: the card's.
    pub(crate) fn set_more(&mut self, more: f64) {
        let ratio = self.nominal * (1.0 + more);
        if self.inner.set_resample_ratio(ratio, false).is_ok() {
            self.ratio = ratio;
        }
    }

    /// How many frames have to be in `input` now.
    pub(crate) fn wanted(&self) -> usize {
        self.inner.input_frames_next()
    }

    /// Where the next frame that is put out comes from, in frames before the next that goes in. Thread: the card's.
    pub(crate) fn lag(&self) -> f64 {
        // The library steps before it puts out, and its filters begin one of their own steps late.
        self.taken - self.place + (TAPS / 2) as f64 - 1.0 / self.ratio - 1.0 / STEPS as f64
    }

    /// Resamples `input`; how many frames are in `output` then. Thread: the card's.
    pub(crate) fn run(&mut self) -> usize {
        let (wanted, most) = (self.inner.input_frames_next(), self.inner.output_frames_next());
        let (channels, ratio) = (self.channels, self.ratio);
        let input = self.input.get(..channels * wanted).unwrap_or_default();
        let output = self.output.get_mut(..channels * most).unwrap_or_default();
        let buffers = SequentialSlice::new(input, channels, wanted)
            .and_then(|input| Ok((input, SequentialSlice::new_mut(output, channels, most)?)));
        let Ok((input, mut output)) = buffers else { return 0 };
        let Ok((taken, made)) = self.inner.process_into_buffer(&input, &mut output, None) else { return 0 };
        self.taken += taken as f64;
        self.place += made as f64 / ratio;
        // Small numbers keep their precision.
        let whole = self.place.floor();
        (self.taken, self.place) = (self.taken - whole, self.place - whole);
        made
    }
}
