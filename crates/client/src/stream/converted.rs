//! A record stream in a program's own format: its frames are converted in the program.

use convert::{ConvertError, Options, ProgramFormat, RecordConverter, StreamFormat};

use super::{SamplesMut, StreamReader};

/// Frames that are read at once.
const BLOCK_FRAMES: usize = 4096;

/// Reads a record stream as bytes in another format, at another rate, or with other channels.
///
/// The first frame that comes out is that of the first frame that is read: the delay of the filter
/// is taken out. With equal rates and channels, every sample keeps what the format can represent.
/// A filter needs frames beyond the one that it makes, so some are [held](Self::held_frames) until
/// they have come, or until the [end](Self::flush).
#[derive(Debug)]
pub struct ConvertedReader {
    converter: RecordConverter,
    planes: Vec<Vec<f32>>,
}

impl ConvertedReader {
    /// Allocates everything. `stream` are the stream's rate and channels, `program` is what comes
    /// out.
    ///
    /// # Errors
    /// There is no conversion between the rates.
    pub fn new(
        stream: &StreamFormat,
        program: &ProgramFormat,
        options: Options,
    ) -> Result<Self, ConvertError> {
        let converter = RecordConverter::new(stream, program, options)?;
        let planes = vec![vec![0.0; BLOCK_FRAMES]; stream.map.channels()];
        Ok(Self { converter, planes })
    }

    /// Reads the next frames of `reader` and passes on what they make, in pieces of whole frames.
    /// Returns the frames as they were recorded, a slice for each channel; empty ones once there
    /// are no more. Never waits.
    pub fn read(&mut self, reader: &mut StreamReader, emit: impl FnMut(&[u8])) -> Vec<&[f32]> {
        let Self { converter, planes } = self;
        let mut into: Vec<&mut [f32]> = planes.iter_mut().map(|plane| &mut **plane).collect();
        let frames = reader.read(SamplesMut::Planar(&mut into));
        let read: Vec<&[f32]> = planes.iter().map(|plane| &plane[..frames]).collect();
        converter.push(&read, emit);
        read
    }

    /// Passes on what is left at the end of the recording, as if silence followed.
    pub fn flush(&mut self, emit: impl FnMut(&[u8])) {
        self.converter.flush(emit);
    }

    /// Returns how many frames of the program have been read that were not passed on.
    #[must_use]
    pub fn held_frames(&self) -> u64 {
        self.converter.held_frames()
    }
}
