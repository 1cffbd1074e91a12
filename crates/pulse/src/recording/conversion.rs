//! From a source's frames to what a program receives: its samples, or peaks of them.

use convert::{
    ConvertError, Encoder, MAX_CHANNELS, Options, ProgramFormat, RecordConverter, SampleFormat,
    StreamFormat,
};

/// What becomes of a source's frames.
#[derive(Debug)]
pub(super) enum Conversion {
    /// The program's samples.
    Samples(Box<RecordConverter>),
    /// Peaks, for a meter.
    Peaks(Box<Peaks>),
}

impl Conversion {
    /// Takes frames of the source, and passes on the program's bytes that are ready.
    pub fn push(&mut self, planes: &[&[f32]], mut emit: impl FnMut(&[u8])) {
        match self {
            Self::Samples(converter) => converter.push(planes, emit),
            Self::Peaks(peaks) => peaks.push(planes, &mut emit),
        }
    }

    /// Passes on what it has kept.
    pub fn finish(&mut self, emit: impl FnMut(&[u8])) {
        match self {
            Self::Samples(converter) => converter.flush(emit),
            Self::Peaks(_) => {}
        }
    }

    /// Returns the program's frames that it has kept.
    pub fn held_frames(&self) -> u64 {
        match self {
            Self::Samples(converter) => converter.held_frames(),
            Self::Peaks(_) => 0,
        }
    }
}

/// One frame of the program for many of the source: the largest magnitude of each channel.
#[derive(Debug)]
pub(super) struct Peaks {
    /// Makes the program's channels, at the source's rate, of 32-bit floating point.
    mixer: RecordConverter,
    encoder: Encoder,
    peaks: [f32; MAX_CHANNELS],
    channels: usize,
    program_hz: u32,
    source_hz: u32,
    /// The part of a program's frame that has passed, in units of the source's rate.
    passed: u32,
}

const SAMPLE_BYTES: usize = size_of::<f32>();

impl Peaks {
    /// Begins. The program's rate is lower than the source's.
    ///
    /// # Errors
    /// A rate that is none.
    pub fn new(
        source: &StreamFormat,
        program: &ProgramFormat,
        options: Options,
    ) -> Result<Self, ConvertError> {
        let format = SampleFormat::Linear(dsp::Format::FloatLe);
        let mixed = ProgramFormat { format, rate_hz: source.rate_hz, map: program.map };
        let channels = program.map.channels();
        Ok(Self {
            mixer: RecordConverter::new(source, &mixed, options)?,
            encoder: Encoder::new(program.format, channels),
            peaks: [0.0; MAX_CHANNELS],
            channels,
            program_hz: program.rate_hz,
            source_hz: source.rate_hz,
            passed: 0,
        })
    }

    fn push(&mut self, planes: &[&[f32]], emit: &mut dyn FnMut(&[u8])) {
        let Self { mixer, encoder, peaks, channels, program_hz, source_hz, passed } = self;
        mixer.push(planes, |bytes| {
            for frame in bytes.chunks_exact(SAMPLE_BYTES * *channels) {
                let (samples, _) = frame.as_chunks::<SAMPLE_BYTES>();
                for (peak, sample) in peaks.iter_mut().zip(samples) {
                    *peak = peak.max(f32::from_le_bytes(*sample).abs());
                }
                *passed += *program_hz;
                if *passed >= *source_hz {
                    *passed -= *source_hz;
                    let frame: [&[f32]; MAX_CHANNELS] =
                        std::array::from_fn(|channel| std::slice::from_ref(&peaks[channel]));
                    encoder.push(&frame[..*channels], &mut *emit);
                    *peaks = [0.0; MAX_CHANNELS];
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peak_is_the_largest_magnitude_of_its_frames_on_each_channel() {
        let stereo = "stereo".parse().expect("a map");
        let source = StreamFormat { rate_hz: 48_000, map: stereo };
        let format = SampleFormat::Linear(dsp::Format::FloatLe);
        let program = ProgramFormat { format, rate_hz: 25, map: stereo };
        let mut peaks = Peaks::new(&source, &program, Options::default()).expect("possible");
        let (mut left, mut right) = (vec![0.0; 5760], vec![0.0; 5760]);
        (left[1919], left[1920], right[3839]) = (-0.5, 0.25, 0.75);
        let mut shown = Vec::new();
        // However they are cut.
        for (left, right) in left.chunks(700).zip(right.chunks(700)) {
            peaks.push(&[left, right], &mut |bytes| {
                let (samples, _) = bytes.as_chunks();
                shown.extend(samples.iter().map(|sample| f32::from_le_bytes(*sample)));
            });
        }
        assert_eq!(shown, [0.5, 0.0, 0.25, 0.75, 0.0, 0.0]);
    }
}
