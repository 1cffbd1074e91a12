//! The little of a RIFF header that has to be looked at before the decoder sees it.

use std::io::{Read, Seek, SeekFrom};

/// Channels that the decoder can tell apart in a WAV: it gives each a speaker position, of which it knows 26.
/// Asked for more, it refuses some files with a misleading reason and miscounts the channels of others.
pub(crate) const MAXIMUM_CHANNELS: u16 = 26;

/// Channels according to the first format chunk.
///
/// `None` for what is no WAV, or is one with something missing: that is left for the decoder to find.
pub(crate) fn channels(file: &mut (impl Read + Seek)) -> Option<u16> {
    let mut form = [0; 12];
    file.read_exact(&mut form).ok()?;
    if !(form.starts_with(b"RIFF") && form.ends_with(b"WAVE")) {
        return None;
    }
    loop {
        let mut chunk = [0; 8];
        file.read_exact(&mut chunk).ok()?;
        let [name @ .., a, b, c, d] = chunk;
        if &name == b"fmt " {
            let mut format_and_channels = [0; 4];
            file.read_exact(&mut format_and_channels).ok()?;
            let [_, _, low, high] = format_and_channels;
            return Some(u16::from_le_bytes([low, high]));
        }
        let length = i64::from(u32::from_le_bytes([a, b, c, d]));
        let padded = length + length % 2;
        file.seek(SeekFrom::Current(padded)).ok()?;
    }
}
