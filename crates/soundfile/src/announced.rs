//! The size that a file's header announces, where libsndfile does not report it.
//!
//! libsndfile treats the existing part of a WAV, an RF64 or an AIFF as the whole file. Whether the
//! file is truncated is determined here from the sizes of its chunks ("Multimedia Programming
//! Interface and Data Specifications 1.0"; EBU Tech 3306 for RF64; "Audio Interchange File Format
//! 1.3").

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

/// The size that means "stored elsewhere" or, outside of RF64, "unknown".
const NO_SIZE: u32 = u32::MAX;
/// Maximum number of chunks searched before the sound: real files have a dozen.
const CHUNK_LIMIT: usize = 1000;
/// Size of the offset and block size fields, which an AIFF counts as sound.
const SSND_HEADER_BYTES: u64 = 8;

/// Returns the announced bytes of sound if the file ends before them. `None` if it does not, and
/// for other formats.
pub(crate) fn bytes_of_a_cut_file(file: &File) -> io::Result<Option<u64>> {
    let length = file.metadata()?.len();
    let Some(form) = bytes_at::<12>(file, 0)? else { return Ok(None) };
    let [a, b, c, d, .., e, f, g, h] = form;
    let size_of = match (&[a, b, c, d], &[e, f, g, h]) {
        (b"RIFF" | b"RF64", b"WAVE") => u32::from_le_bytes,
        (b"RIFX", b"WAVE") | (b"FORM", b"AIFF" | b"AIFC") => u32::from_be_bytes,
        _ => return Ok(None),
    };
    let mut offset = 12;
    let mut long_size = None;
    // MUTATION: announced.chunks_without_limit
    for _ in 0..CHUNK_LIMIT {
        let Some([name @ .., a, b, c, d]) = bytes_at::<8>(file, offset)? else { break };
        let size = size_of([a, b, c, d]);
        let begin = offset + 8;
        match &name {
            b"ds64" => {
                // The size of the form, then that of the sound.
                long_size = bytes_at::<8>(file, begin + 8)?.map(u64::from_le_bytes);
            }
            b"data" | b"SSND" => {
                let announced = if size == NO_SIZE { long_size } else { Some(u64::from(size)) };
                let Some(announced) = announced else { break };
                // MUTATION: announced.any_size_fits
                let is_cut = begin.saturating_add(announced) > length;
                let header = if &name == b"SSND" { SSND_HEADER_BYTES } else { 0 };
                return Ok(is_cut.then(|| announced.saturating_sub(header)));
            }
            _ => {}
        }
        offset = begin + u64::from(size) + u64::from(size % 2);
    }
    Ok(None)
}

/// Returns the bytes from `offset` on, if the file is long enough.
fn bytes_at<const COUNT: usize>(file: &File, offset: u64) -> io::Result<Option<[u8; COUNT]>> {
    let mut bytes = [0; COUNT];
    match file.read_exact_at(&mut bytes, offset) {
        Ok(()) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// A file of these chunks: names, announced sizes, and content.
    fn file(form: &[u8; 4], chunks: &[([u8; 4], u32, &[u8])]) -> File {
        let mut file = tempfile::tempfile().expect("a file");
        let mut write = |bytes: &[u8]| file.write_all(bytes).expect("room");
        write(form);
        write(&NO_SIZE.to_le_bytes());
        write(b"WAVE");
        for (name, size, content) in chunks {
            write(name);
            write(&size.to_le_bytes());
            write(content);
        }
        file
    }

    #[test]
    fn sound_of_a_size_that_no_file_can_have_is_cut() {
        let sizes = [0_u64.to_le_bytes(), u64::MAX.to_le_bytes()].concat();
        let chunks: [([u8; 4], u32, &[u8]); 2] =
            [(*b"ds64", 16, &sizes), (*b"data", NO_SIZE, &[0; 64])];
        assert_eq!(bytes_of_a_cut_file(&file(b"RF64", &chunks)).unwrap(), Some(u64::MAX));
        let chunks: [([u8; 4], u32, &[u8]); 1] = [(*b"data", 64, &[0; 64])];
        assert_eq!(bytes_of_a_cut_file(&file(b"RIFF", &chunks)).unwrap(), None);
    }

    #[test]
    fn chunks_without_end_are_not_searched() {
        let empty: ([u8; 4], u32, &[u8]) = (*b"none", 0, &[]);
        let cut: ([u8; 4], u32, &[u8]) = (*b"data", 1000, &[0; 64]);
        for (count, expected) in [(CHUNK_LIMIT - 1, Some(1000)), (CHUNK_LIMIT, None)] {
            let chunks = [&vec![empty; count][..], &[cut]].concat();
            assert_eq!(bytes_of_a_cut_file(&file(b"RIFF", &chunks)).unwrap(), expected, "{count}");
        }
    }
}
