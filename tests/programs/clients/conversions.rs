//! Converts sound in all ways that there are, with the guard of cycles armed.
#![forbid(unsafe_code)]

use convert::{
    ChannelMap, ConvertError, Filter, Mixing, Options, PlaybackConverter, ProgramFormat,
    RecordConverter, SampleFormat, StreamFormat,
};

const RATES: [u32; 4] = [44_100, 44_101, 48_000, 96_000];
/// Longer than a block of any filter.
const FRAMES: usize = 10_000;

fn main() -> Result<(), ConvertError> {
    sys::cycle_guard::look_for_checker();
    dsp::detect_processor();
    let maps = ["mono", "stereo", "surround-51"].map(|map| map.parse().expect("a map"));
    for format in SampleFormat::ALL {
        for rate_hz in RATES {
            for map in maps {
                for filter in [Filter::Prompt, Filter::Medium] {
                    let program = ProgramFormat { format, rate_hz, map };
                    let options = Options { mixing: Mixing::Mixed, filter };
                    convert(&program, maps[1], options)?;
                }
            }
        }
    }
    Ok(())
}

/// Plays and records what a program has.
fn convert(program: &ProgramFormat, map: ChannelMap, options: Options) -> Result<(), ConvertError> {
    let stream = StreamFormat { rate_hz: 48_000, map };
    let mut playback = PlaybackConverter::new(program, &stream, options)?;
    let mut record = RecordConverter::new(&stream, program, options)?;
    let bytes: Vec<u8> = (0..FRAMES * program.map.channels() * program.format.bytes_per_sample())
        .map(|byte| (byte * 7 % 255) as u8)
        .collect();
    let mut recorded = 0;
    sys::cycle_guard::enter();
    for piece in bytes.chunks(1_001) {
        playback.push(piece, |planes| record.push(planes, |bytes| recorded += bytes.len()));
    }
    let held = playback.held_frames();
    playback.flush(|planes| record.push(planes, |bytes| recorded += bytes.len()));
    record.flush(|bytes| recorded += bytes.len());
    playback.start_at(held);
    playback.reset();
    sys::cycle_guard::leave();
    assert!(recorded >= bytes.len(), "{recorded} of {} bytes", bytes.len());
    Ok(())
}
