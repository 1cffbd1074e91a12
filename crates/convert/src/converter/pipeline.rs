//! From planar frames to planar frames: other channels, another rate.

use super::{ProgramFormat, StreamFormat};
use crate::planes::{Emit, Planes, in_pieces};
use crate::resampler::{Resampler, check_rate, resampler};
use crate::{ChannelMap, ConvertError, Matrix, Options, PIECE_FRAMES};

/// Mixes channels, and resamples them where they are fewer.
#[derive(Debug)]
pub(super) struct Pipeline {
    mixer: Option<Mixer>,
    is_mixed_first: bool,
    rate: Rate,
}

#[derive(Debug)]
struct Mixer {
    matrix: Matrix,
    mixed: Planes,
}

#[derive(Debug)]
enum Rate {
    /// The rates are equal. The position of the next frame.
    Same(u64),
    Other(Box<dyn Resampler>),
}

impl Pipeline {
    /// For playback. Allocates.
    pub(super) fn to_stream(
        program: &ProgramFormat,
        stream: &StreamFormat,
        options: Options,
    ) -> Result<Self, ConvertError> {
        let (from, to) = ((&program.map, program.rate_hz), (&stream.map, stream.rate_hz));
        Self::new(from, to, options)
    }

    /// For recording. Allocates.
    pub(super) fn from_stream(
        stream: &StreamFormat,
        program: &ProgramFormat,
        options: Options,
    ) -> Result<Self, ConvertError> {
        let (from, to) = ((&stream.map, stream.rate_hz), (&program.map, program.rate_hz));
        Self::new(from, to, options)
    }

    fn new(
        (source, from_hz): (&ChannelMap, u32),
        (sink, to_hz): (&ChannelMap, u32),
        options: Options,
    ) -> Result<Self, ConvertError> {
        let matrix = Matrix::new(source, sink, options.mixing);
        let rate = if from_hz == to_hz {
            check_rate(from_hz)?;
            Rate::Same(0)
        } else {
            let channels = source.channels().min(sink.channels());
            Rate::Other(resampler(channels, from_hz, to_hz, options.filter)?)
        };
        Ok(Self {
            mixer: (!matrix.is_identity())
                .then(|| Mixer { matrix, mixed: Planes::new(sink.channels(), PIECE_FRAMES) }),
            is_mixed_first: sink.channels() <= source.channels(),
            rate,
        })
    }

    /// Returns whether what comes out is what went in.
    pub(super) fn changes_nothing(&self) -> bool {
        self.mixer.is_none() && matches!(self.rate, Rate::Same(_))
    }

    /// Converts frames.
    pub(super) fn push(&mut self, planes: &[&[f32]], emit: Emit<'_>) {
        let Self { mixer, is_mixed_first, rate } = self;
        match mixer {
            None => rate.push(planes, emit),
            Some(mixer) if *is_mixed_first => {
                mixer.push(planes, &mut |mixed| rate.push(mixed, emit));
            }
            Some(mixer) => rate.push(planes, &mut |frames| mixer.push(frames, emit)),
        }
    }

    /// Passes on what is left, and begins again at position 0.
    pub(super) fn flush(&mut self, emit: Emit<'_>) {
        let Self { mixer, is_mixed_first, rate } = self;
        match mixer {
            Some(mixer) if !*is_mixed_first => rate.flush(&mut |frames| mixer.push(frames, emit)),
            _ => rate.flush(emit),
        }
    }

    /// Begins again at a position of the output; returns that of the input to be pushed next.
    pub(super) fn start_at(&mut self, position: u64) -> u64 {
        match &mut self.rate {
            Rate::Same(next) => {
                *next = position;
                position
            }
            Rate::Other(resampler) => resampler.start_at(position),
        }
    }

    /// Returns the position of the next output frame.
    pub(super) fn position(&self) -> u64 {
        match &self.rate {
            Rate::Same(position) => *position,
            Rate::Other(resampler) => resampler.position(),
        }
    }

    /// Returns the output frames that a flush would pass on.
    pub(super) fn held_frames(&self) -> u64 {
        match &self.rate {
            Rate::Same(_) => 0,
            Rate::Other(resampler) => resampler.held_frames(),
        }
    }

    /// Returns the most output frames that are ever held.
    pub(super) fn latency_frames(&self) -> u64 {
        match &self.rate {
            Rate::Same(_) => 0,
            Rate::Other(resampler) => resampler.latency_frames(),
        }
    }

    /// Returns the most input frames for which no more than `frames` come out.
    pub(super) fn most_input(&self, frames: u64) -> u64 {
        match &self.rate {
            Rate::Same(_) => frames,
            Rate::Other(resampler) => resampler.most_input(frames),
        }
    }

    /// Returns the fewest input frames for which `frames` or more come out.
    pub(super) fn fewest_input(&self, frames: u64) -> u64 {
        match &self.rate {
            Rate::Same(_) => frames,
            Rate::Other(resampler) => resampler.fewest_input(frames),
        }
    }
}

impl Mixer {
    fn push(&mut self, planes: &[&[f32]], emit: Emit<'_>) {
        in_pieces(planes, PIECE_FRAMES, &mut |piece| {
            self.matrix.mix(piece, &mut self.mixed);
            self.mixed.emit(0, piece.first().map_or(0, |plane| plane.len()), emit);
        });
    }
}

impl Rate {
    fn push(&mut self, planes: &[&[f32]], emit: Emit<'_>) {
        match self {
            Self::Same(position) => {
                in_pieces(planes, PIECE_FRAMES, &mut |piece| {
                    *position += piece.first().map_or(0, |plane| plane.len() as u64);
                    emit(piece);
                });
            }
            Self::Other(resampler) => resampler.push(planes, emit),
        }
    }

    fn flush(&mut self, emit: Emit<'_>) {
        match self {
            Self::Same(position) => *position = 0,
            Self::Other(resampler) => resampler.flush(emit),
        }
    }
}
