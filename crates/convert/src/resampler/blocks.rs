//! Resampling block by block, for rates that have a short block in common.

use rubato::audioadapter_buffers::direct::SequentialSlice;
use rubato::{Fft, FixedSync, Resampler as _, WindowFunction};

use super::{MAX_POSITION, Ratio, Resampler, bound};
use crate::planes::{Emit, Planes, in_pieces};
use crate::{Filter, PIECE_FRAMES};

/// A block may be this many times as long as the filter requires.
const MOST_FILTERS: u64 = 4;
/// The shortest useful filter, in frames of the lower rate.
const LEAST_FRAMES: u64 = 256;
/// Most frames of a block, on either side.
const MAX_BLOCK_FRAMES: u64 = 1 << 16;

impl Filter {
    /// Returns how many frames of the lower rate it spans, which is what a block has;
    /// `None` if no block is short enough.
    const fn block_frames(self) -> Option<u64> {
        match self {
            Self::Prompt => None,
            Self::Short => Some(LEAST_FRAMES),
            Self::Medium => Some(512),
            Self::Long => Some(2048),
        }
    }
}

/// Resamples blocks of a grid that begins where the stream begins.
///
/// The ratio is that of two whole numbers, so a block of input is exactly as long as one of output.
pub(super) struct Blocks {
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

impl Blocks {
    /// Returns a resampler of `channels` channels; `None` if no block is as long as the filter has
    /// to be. Allocates.
    pub(super) fn new(channels: usize, ratio: Ratio, filter: Filter) -> Option<Self> {
        let count = Self::count(ratio, filter)?;
        let (input, output) = (ratio.input as usize * count, ratio.output as usize * count);
        let window = WindowFunction::BlackmanHarris2;
        let fft =
            Fft::new_custom(input, output, input, 1, channels, window, FixedSync::Both).ok()?;
        debug_assert_eq!((fft.fft_size_in(), fft.fft_size_out()), (input, output));
        let mut blocks = Self {
            fft,
            ratio,
            channels,
            input: Planes::new(channels, input),
            filled: 0,
            output: Planes::new(channels, output),
            taken: 0,
            position: 0,
            early: 0,
        };
        blocks.start_at(0);
        Some(blocks)
    }

    /// Returns how many of the shortest blocks are transformed together.
    fn count(ratio: Ratio, filter: Filter) -> Option<usize> {
        let frames = filter.block_frames()?;
        let shortest = ratio.input.min(ratio.output);
        // The delay is half a block: with an even number, that is a whole number of frames on both
        // sides.
        let wanted = frames.div_ceil(shortest).next_multiple_of(2);
        let possible = MAX_BLOCK_FRAMES / ratio.input.max(ratio.output) / 2 * 2;
        let count = wanted.min(possible);
        let is_good = (LEAST_FRAMES..=frames * MOST_FILTERS).contains(&(count * shortest));
        is_good.then_some(count as usize)
    }

    /// Returns the output frames by which the library's output is late.
    fn delay(&self) -> u64 {
        self.output.frames() as u64 / 2
    }

    /// Returns the input frames that are missing to complete `blocks` blocks, one or more.
    fn blocks(&self, blocks: u64) -> u64 {
        blocks.saturating_mul(self.input.frames() as u64) - self.filled as u64
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
        let frames = (self.input.frames(), self.output.frames());
        let input = SequentialSlice::new(self.input.as_slice(), self.channels, frames.0);
        let output = self.output.as_mut_slice();
        let output = SequentialSlice::new_mut(output, self.channels, frames.1);
        if let (Ok(input), Ok(mut output)) = (input, output) {
            let done = self.fft.process_into_buffer(&input, &mut output, None);
            debug_assert_eq!(done.ok(), Some(frames));
        }
    }
}

impl Resampler for Blocks {
    fn position(&self) -> u64 {
        self.position
    }

    fn held_frames(&self) -> u64 {
        self.ratio.output_frames(self.taken).saturating_sub(self.position)
    }

    fn latency_frames(&self) -> u64 {
        self.ratio.output_frames(self.input.frames() as u64 - 1) + self.delay()
    }

    fn most_input(&self, frames: u64) -> u64 {
        let blocks = frames.saturating_add(self.early as u64) / self.output.frames() as u64;
        self.blocks(blocks.saturating_add(1)) - 1
    }

    fn fewest_input(&self, frames: u64) -> u64 {
        if frames == 0 {
            return 0;
        }
        let place = frames.saturating_add(self.early as u64);
        self.blocks(place.div_ceil(self.output.frames() as u64))
    }

    fn start_at(&mut self, position: u64) -> u64 {
        let position = position.min(MAX_POSITION);
        let (input, output) = (self.input.frames() as u64, self.output.frames() as u64);
        // Where the library has this frame. A block of its output depends on two blocks of input.
        let place = position + self.delay();
        let first_block = (place / output).saturating_sub(1);
        self.fft.reset();
        self.filled = 0;
        self.taken = first_block * input;
        self.position = position;
        self.early = usize::try_from(place - first_block * output).unwrap_or(0);
        self.taken
    }

    fn push(&mut self, planes: &[&[f32]], emit: Emit<'_>) {
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

    fn flush(&mut self, emit: Emit<'_>) {
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
}

impl std::fmt::Debug for Blocks {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Blocks")
            .field("ratio", &self.ratio)
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}
