//! Another rate, by a fixed ratio.
//!
//! The ratio is that of two whole numbers, so a block of input is as long as a block of output, and
//! blocks begin where the stream begins. What comes out is a function of the position: it does not
//! depend on how the input was cut, and a restart at any position gives the same bits.

#[cfg(test)]
mod tests;

use rubato::audioadapter_buffers::direct::SequentialSlice;
use rubato::{Fft, FixedSync, Resampler as _, WindowFunction};

use crate::planes::{Emit, Planes, in_pieces};
use crate::{ConvertError, Filter, MAX_RATE_HZ, PIECE_FRAMES};

/// Most frames of a block, on either side: what rates without a large common divisor would need is
/// refused.
const MAX_BLOCK_FRAMES: usize = 1 << 16;

/// The greatest magnitude that is resampled: 96 dB above full scale, beyond what sound has.
const MAX_LEVEL: f32 = 65_536.0;

impl Filter {
    /// Returns how many frames of the lower rate it spans at least.
    const fn frames(self) -> usize {
        match self {
            Self::Short => 256,
            Self::Medium => 512,
            Self::Long => 2048,
        }
    }
}

/// Resamples planar frames.
pub(crate) struct Resampler {
    fft: Fft<f32>,
    ratio: Ratio,
    channels: usize,
    /// A block of input, of which the first `filled` frames are there.
    input: Planes,
    filled: usize,
    output: Planes,
    /// Input frames up to the end of what is there.
    taken: u64,
    /// Position of the next output frame.
    position: u64,
    /// Frames that the library makes before that one.
    early: usize,
}

/// Lengths of a block on both sides, which are to each other as the rates are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ratio {
    input: usize,
    output: usize,
}

impl Ratio {
    fn new(from_hz: u32, to_hz: u32, filter: Filter) -> Result<Self, ConvertError> {
        check_rate(from_hz)?;
        check_rate(to_hz)?;
        let divisor = divisor(from_hz, to_hz);
        let (input, output) = ((from_hz / divisor) as usize, (to_hz / divisor) as usize);
        // The delay is half a block: with an even number, that is a whole number of frames on both
        // sides.
        let wanted = filter.frames().div_ceil(input.min(output)).next_multiple_of(2);
        let possible = MAX_BLOCK_FRAMES / input.max(output) / 2 * 2;
        match wanted.min(possible) {
            0 => Err(ConvertError::Ratio(from_hz, to_hz)),
            blocks => Ok(Self { input: input * blocks, output: output * blocks }),
        }
    }

    /// Returns the output frames that begin before so many input frames have ended: their number
    /// times the ratio, rounded up.
    fn output_frames(self, input: u64) -> u64 {
        let frames = (u128::from(input) * self.output as u128).div_ceil(self.input as u128);
        u64::try_from(frames).unwrap_or(u64::MAX)
    }

    /// Returns the output frames by which the library's output is late.
    fn delay(self) -> usize {
        self.output / 2
    }
}

/// Refuses a rate that no program has.
pub(crate) fn check_rate(rate_hz: u32) -> Result<(), ConvertError> {
    if (1..=MAX_RATE_HZ).contains(&rate_hz) { Ok(()) } else { Err(ConvertError::Rate(rate_hz)) }
}

/// Makes samples what a transform can take: a program may send any bits. One that is no number
/// would make a whole block none, and the library panics if a sum is none.
fn bound(samples: &mut [f32]) {
    dsp::scrub(samples);
    for sample in samples {
        *sample = sample.clamp(-MAX_LEVEL, MAX_LEVEL);
    }
}

/// Returns the greatest common divisor.
fn divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { divisor(b, a % b) }
}

impl Resampler {
    /// Returns a resampler of `channels` channels. Allocates.
    pub(crate) fn new(
        channels: usize,
        from_hz: u32,
        to_hz: u32,
        filter: Filter,
    ) -> Result<Self, ConvertError> {
        let ratio = Ratio::new(from_hz, to_hz, filter)?;
        let fft = Fft::new_custom(
            from_hz as usize,
            to_hz as usize,
            ratio.input,
            1,
            channels,
            WindowFunction::BlackmanHarris2,
            FixedSync::Both,
        )
        .map_err(|_| ConvertError::Ratio(from_hz, to_hz))?;
        debug_assert_eq!((fft.fft_size_in(), fft.fft_size_out()), (ratio.input, ratio.output));
        Ok(Self {
            fft,
            ratio,
            channels,
            input: Planes::new(channels, ratio.input),
            filled: 0,
            output: Planes::new(channels, ratio.output),
            taken: 0,
            position: 0,
            early: ratio.delay(),
        })
    }

    /// Returns the position of the next output frame.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// Returns the output frames up to the end of the input that have not been passed on.
    pub(crate) fn held_frames(&self) -> u64 {
        self.ratio.output_frames(self.taken).saturating_sub(self.position)
    }

    /// Returns the most output frames that are ever held: a block that is one frame short, and the
    /// delay of the filter.
    pub(crate) fn latency_frames(&self) -> u64 {
        self.ratio.output_frames(self.ratio.input as u64 - 1) + self.ratio.delay() as u64
    }

    /// Returns the most input frames for which no more than `frames` come out.
    pub(crate) fn most_input(&self, frames: u64) -> u64 {
        let blocks = frames.saturating_add(self.early as u64) / self.ratio.output as u64;
        self.blocks(blocks.saturating_add(1)) - 1
    }

    /// Returns the fewest input frames for which `frames` or more come out.
    pub(crate) fn fewest_input(&self, frames: u64) -> u64 {
        if frames == 0 {
            return 0;
        }
        let place = frames.saturating_add(self.early as u64);
        self.blocks(place.div_ceil(self.ratio.output as u64))
    }

    /// Returns the input frames that are missing for so many blocks, one or more.
    fn blocks(&self, blocks: u64) -> u64 {
        blocks.saturating_mul(self.ratio.input as u64) - self.filled as u64
    }

    /// Begins again at an output frame, and returns the input frame from which on the input has to
    /// be pushed: up to two blocks before the one that corresponds to it.
    pub(crate) fn start_at(&mut self, position: u64) -> u64 {
        let (input, output) = (self.ratio.input as u64, self.ratio.output as u64);
        // Where the library has this frame. A block of its output depends on two blocks of input.
        let place = position.saturating_add(self.ratio.delay() as u64);
        let first_block = (place / output).saturating_sub(1);
        self.fft.reset();
        self.filled = 0;
        self.taken = first_block.saturating_mul(input);
        self.position = position;
        self.early = usize::try_from(place - first_block * output).unwrap_or(0);
        self.taken
    }

    /// Resamples frames, and passes on the blocks that are complete, in pieces.
    pub(crate) fn push(&mut self, planes: &[&[f32]], emit: Emit<'_>) {
        let frames = planes.first().map_or(0, |plane| plane.len());
        let mut first = 0;
        while first < frames {
            let count = (self.input.frames() - self.filled).min(frames - first);
            for (block, plane) in self.input.iter_mut().zip(planes) {
                let room = &mut block[self.filled..][..count];
                room.copy_from_slice(&plane[first..][..count]);
                bound(room);
            }
            first += count;
            self.filled += count;
            self.taken += count as u64;
            self.run_if_full(u64::MAX, emit);
        }
    }

    /// Passes on what is left, as if silence followed, and begins again at position 0. The output
    /// ends with the last frame that begins before the input's end.
    pub(crate) fn flush(&mut self, emit: Emit<'_>) {
        let end = self.ratio.output_frames(self.taken);
        while self.position < end {
            for block in self.input.iter_mut() {
                block[self.filled..].fill(0.0);
            }
            self.filled = self.input.frames();
            self.run_if_full(end, emit);
        }
        self.start_at(0);
    }

    /// Resamples a block that is complete, and passes on what of it lies before `end`.
    fn run_if_full(&mut self, end: u64, emit: Emit<'_>) {
        if self.filled < self.input.frames() {
            return;
        }
        self.filled = 0;
        self.run();
        let early = self.early.min(self.output.frames());
        self.early -= early;
        let left = usize::try_from(end - self.position).unwrap_or(usize::MAX);
        let count = (self.output.frames() - early).min(left);
        if count > 0 {
            self.position += count as u64;
            self.output
                .emit(early, early + count, &mut |planes| in_pieces(planes, PIECE_FRAMES, emit));
        }
    }

    /// Resamples the block of input into that of output.
    fn run(&mut self) {
        let (channels, ratio) = (self.channels, self.ratio);
        let input = SequentialSlice::new(self.input.as_slice(), channels, ratio.input);
        let output = SequentialSlice::new_mut(self.output.as_mut_slice(), channels, ratio.output);
        if let (Ok(input), Ok(mut output)) = (input, output) {
            let done = self.fft.process_into_buffer(&input, &mut output, None);
            debug_assert_eq!(done.ok(), Some((ratio.input, ratio.output)));
        }
    }
}

impl std::fmt::Debug for Resampler {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Resampler")
            .field("ratio", &self.ratio)
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}
