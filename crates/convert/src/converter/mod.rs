//! A program's bytes and a stream's frames.

mod pipeline;
#[cfg(test)]
mod tests;

use pipeline::Pipeline;

use crate::{ChannelMap, ConvertError, Decoder, Encoder, Matrix, Mixing, Options, SampleFormat};

/// The samples that a program sends or receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ProgramFormat {
    /// Format of each sample.
    pub format: SampleFormat,
    /// Frames per second.
    pub rate_hz: u32,
    /// The channels of a frame.
    pub map: ChannelMap,
}

impl ProgramFormat {
    /// Returns whether the samples of `stream` are the program's own, decoded: at the same rate,
    /// with the same channels.
    #[must_use]
    pub fn is_unchanged_on(&self, stream: &StreamFormat, mixing: Mixing) -> bool {
        let has_channels = || Matrix::new(&self.map, &stream.map, mixing).is_identity();
        self.rate_hz == stream.rate_hz && has_channels()
    }

    /// Returns the channels of `stream` that have those of the program and nothing else, in the
    /// program's order: converted back to its rate, they are its samples again, up to the treble
    /// that the resampler's filters leave out. `None`: one of them is nowhere by itself.
    #[must_use]
    pub fn channels_on(&self, stream: &StreamFormat, mixing: Mixing) -> Option<Vec<usize>> {
        let matrix = Matrix::new(&self.map, &stream.map, mixing);
        let has_only = |sink: usize, source: usize| {
            let factor = |at: usize| if at == source { 1.0 } else { 0.0 };
            (0..).zip(matrix.row(sink)).all(|(at, is)| *is == factor(at))
        };
        let channel_of = |source| (0..matrix.sinks()).find(|sink| has_only(*sink, source));
        (0..self.map.channels()).map(channel_of).collect()
    }
}

/// What a stream has: its device's channels and rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StreamFormat {
    /// Frames per second.
    pub rate_hz: u32,
    /// The channels.
    pub map: ChannelMap,
}

/// Converts a program's bytes to frames of a playback stream.
///
/// Frame `n` of the stream is the program's sound `n` frames of the stream after its beginning: the
/// filter's delay is taken out. What comes out depends neither on how the bytes were cut nor on
/// where the converter began. Both sides count from the last [`reset`](Self::reset).
#[derive(Debug)]
pub struct PlaybackConverter {
    decoder: Decoder,
    pipeline: Pipeline,
}

impl PlaybackConverter {
    /// Allocates all that the converter needs.
    ///
    /// # Errors
    /// If there is no conversion between the rates.
    pub fn new(
        program: &ProgramFormat,
        stream: &StreamFormat,
        options: Options,
    ) -> Result<Self, ConvertError> {
        let pipeline = Pipeline::to_stream(program, stream, options)?;
        Ok(Self { decoder: Decoder::new(program.format, program.map.channels()), pipeline })
    }

    /// Takes bytes, and passes on the stream's frames that are ready, a slice for each channel, in
    /// pieces of at most [`PIECE_FRAMES`](crate::PIECE_FRAMES). The beginning of an incomplete
    /// frame is kept.
    pub fn push(&mut self, bytes: &[u8], mut emit: impl FnMut(&[&[f32]])) {
        self.decoder.push(bytes, |planes| self.pipeline.push(planes, &mut emit));
    }

    /// Decodes whole frames where the stream has them, if that [is all](Self::only_decodes) there
    /// is to do: into `planes`, a slice for each channel, as many as have room. Returns how many
    /// bytes that took, and how many frames they are. It takes none while an incomplete frame waits
    /// for the rest of it.
    pub fn decode_into(&mut self, bytes: &[u8], planes: &mut [&mut [f32]]) -> (usize, usize) {
        if !self.only_decodes() {
            return (0, 0);
        }
        let taken = self.decoder.decode_into(bytes, planes);
        let frames = taken / self.decoder.frame_bytes();
        self.pipeline.start_at(self.position() + frames as u64);
        (taken, frames)
    }

    /// Has `copy` copy whole frames of 16 bits as they are, if nothing else [is to be
    /// done](Self::only_decodes) to them: as many of `bytes` bytes as have room. Returns how many
    /// bytes that took; none while an incomplete frame waits for the rest of it.
    pub fn copy_16(
        &mut self,
        bytes: usize,
        room: &mut [u8],
        copy: impl FnOnce(&mut [u8]),
    ) -> usize {
        let frame_bytes = self.decoder.frame_bytes();
        let frames = bytes.min(room.len()) / frame_bytes;
        let is_16 = self.decoder.format() == SampleFormat::Linear(dsp::Format::S16Le);
        if !is_16 || !self.only_decodes() || !self.decoder.partial().is_empty() {
            return 0;
        }
        let taken = frames * frame_bytes;
        copy(&mut room[..taken]);
        self.pipeline.start_at(self.position() + frames as u64);
        taken
    }

    /// Passes on what is left at the program's end, and resets. In all, there are as many frames as
    /// the program's times the ratio of the rates, rounded up.
    pub fn flush(&mut self, mut emit: impl FnMut(&[&[f32]])) {
        self.decoder.reset();
        self.pipeline.flush(&mut emit);
    }

    /// Forgets everything, for what does not continue what was pushed.
    pub fn reset(&mut self) {
        self.start_at(0);
    }

    /// Begins again, so that the next frame passed on is the stream's frame `position`, bit for bit
    /// as if all frames before it had been pushed. Returns the program's frame from which on bytes
    /// are to be pushed: up to two blocks of the resampler before that place.
    pub fn start_at(&mut self, position: u64) -> u64 {
        self.decoder.reset();
        self.pipeline.start_at(position)
    }

    /// Returns whether the stream's samples are the program's own, decoded: at the same rate, with
    /// the same channels. [Encoded](Encoder), they are its bytes again, but for codes of the same
    /// sound.
    #[must_use]
    pub fn only_decodes(&self) -> bool {
        self.pipeline.changes_nothing()
    }

    /// Returns the beginning of an incomplete frame, whose rest has not been pushed.
    #[must_use]
    pub fn partial(&self) -> &[u8] {
        self.decoder.partial()
    }

    /// Returns the position of the stream's frame that is passed on next.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.pipeline.position()
    }

    /// Returns the frames of the stream that the bytes so far stand for, and that have not been
    /// passed on: what [`flush`](Self::flush) would pass on.
    #[must_use]
    pub fn held_frames(&self) -> u64 {
        self.pipeline.held_frames()
    }

    /// Returns the most that [`held_frames`](Self::held_frames) ever is: the latency of the
    /// conversion, in frames of the stream.
    #[must_use]
    pub fn latency_frames(&self) -> u64 {
        self.pipeline.latency_frames()
    }

    /// Returns the most bytes that can be pushed without more than `frames` of the stream being
    /// passed on.
    #[must_use]
    pub fn most_bytes(&self, frames: u64) -> u64 {
        self.bytes(self.pipeline.most_input(frames).saturating_add(1)).saturating_sub(1)
    }

    /// Returns the fewest bytes that make at least `frames` of the stream be passed on.
    #[must_use]
    pub fn fewest_bytes(&self, frames: u64) -> u64 {
        self.bytes(self.pipeline.fewest_input(frames))
    }

    /// Returns the bytes that complete `frames` frames.
    fn bytes(&self, frames: u64) -> u64 {
        let bytes = frames.saturating_mul(self.decoder.frame_bytes() as u64);
        bytes.saturating_sub(self.decoder.partial().len() as u64)
    }
}

/// Converts frames of a record stream to a program's bytes. The other way round, everything is as
/// with [`PlaybackConverter`].
#[derive(Debug)]
pub struct RecordConverter {
    pipeline: Pipeline,
    encoder: Encoder,
    channels: usize,
}

impl RecordConverter {
    /// Allocates all that the converter needs.
    ///
    /// # Errors
    /// If there is no conversion between the rates.
    pub fn new(
        stream: &StreamFormat,
        program: &ProgramFormat,
        options: Options,
    ) -> Result<Self, ConvertError> {
        Ok(Self {
            pipeline: Pipeline::from_stream(stream, program, options)?,
            encoder: Encoder::new(program.format, program.map.channels()),
            channels: stream.map.channels(),
        })
    }

    /// Takes frames of the stream, a slice for each channel, and passes on the program's bytes that
    /// are ready, in pieces of whole frames. The shortest slice counts; without the right number of
    /// slices nothing is taken.
    pub fn push(&mut self, planes: &[&[f32]], mut emit: impl FnMut(&[u8])) {
        if planes.len() != self.channels {
            return;
        }
        let Self { pipeline, encoder, .. } = self;
        pipeline.push(planes, &mut |frames| encoder.push(frames, &mut emit));
    }

    /// Passes on what is left at the stream's end, and resets.
    pub fn flush(&mut self, mut emit: impl FnMut(&[u8])) {
        let Self { pipeline, encoder, .. } = self;
        pipeline.flush(&mut |frames| encoder.push(frames, &mut emit));
    }

    /// Forgets everything, for what does not continue what was pushed.
    pub fn reset(&mut self) {
        self.start_at(0);
    }

    /// Begins again, so that the next frame passed on is the program's frame `position`. Returns
    /// the stream's frame from which on frames are to be pushed.
    pub fn start_at(&mut self, position: u64) -> u64 {
        self.pipeline.start_at(position)
    }

    /// Returns the program's frames that the stream's frames so far stand for, and that have not
    /// been passed on.
    #[must_use]
    pub fn held_frames(&self) -> u64 {
        self.pipeline.held_frames()
    }

    /// Returns the most that [`held_frames`](Self::held_frames) ever is: the latency of the
    /// conversion, in frames of the program.
    #[must_use]
    pub fn latency_frames(&self) -> u64 {
        self.pipeline.latency_frames()
    }
}
