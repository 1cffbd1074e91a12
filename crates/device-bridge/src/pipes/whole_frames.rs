//! Bytes that go through a pipe in whole frames, as far as it takes them: pure.

use std::io::{self, ErrorKind};

/// Writes frames, and leaves out what has no room. A frame that was begun is finished before others
/// follow, so the reader stays aligned.
#[derive(Debug)]
pub(super) struct WholeFrames {
    frame_bytes: usize,
    /// What is missing of a frame that was begun.
    rest: Vec<u8>,
}

impl WholeFrames {
    pub(super) fn new(frame_bytes: usize) -> Self {
        Self { frame_bytes: frame_bytes.max(1), rest: Vec::new() }
    }

    /// Forgets a frame that was begun: another reader begins with a whole one.
    pub(super) fn restart(&mut self) {
        self.rest.clear();
    }

    /// Writes the bytes of some frames with `write`, which may take fewer or say that it would
    /// block. Returns how many frames were left out.
    ///
    /// # Errors
    /// Any other error of `write`.
    pub(super) fn write(
        &mut self,
        bytes: &[u8],
        mut write: impl FnMut(&[u8]) -> io::Result<usize>,
    ) -> io::Result<usize> {
        let rest = std::mem::take(&mut self.rest);
        let taken = take(&rest, &mut write)?;
        if taken < rest.len() {
            self.rest = rest[taken..].to_vec();
            return Ok(bytes.len() / self.frame_bytes);
        }
        let taken = take(bytes, &mut write)?;
        let begun = taken.next_multiple_of(self.frame_bytes).min(bytes.len());
        self.rest = bytes[taken..begun].to_vec();
        Ok((bytes.len() - begun) / self.frame_bytes)
    }
}

/// Returns how many of the bytes were taken until nothing more had room.
fn take(bytes: &[u8], write: &mut impl FnMut(&[u8]) -> io::Result<usize>) -> io::Result<usize> {
    let mut taken = 0;
    while taken < bytes.len() {
        match write(&bytes[taken..]) {
            Ok(0) => break,
            Ok(some) => taken += some,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(taken)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_reader_gets_whole_frames_in_order_whatever_has_room(
            frame_bytes in 1_usize..9,
            blocks in prop::collection::vec((1_usize..40, 0_usize..200), 1..40),
        ) {
            let mut frames = WholeFrames::new(frame_bytes);
            let (mut next, mut left_out, mut read) = (0_u8, 0, Vec::new());
            for (count, mut room) in blocks {
                let mut bytes = Vec::new();
                for _ in 0..count {
                    bytes.extend(std::iter::repeat_n(next, frame_bytes));
                    next = next.wrapping_add(1);
                }
                left_out += frames.write(&bytes, |bytes| {
                    if room == 0 {
                        return Err(ErrorKind::WouldBlock.into());
                    }
                    let some = bytes.len().min(room).min(7);
                    read.extend_from_slice(&bytes[..some]);
                    room -= some;
                    Ok(some)
                })?;
            }
            let whole = read.chunks_exact(frame_bytes);
            for frame in whole.clone() {
                prop_assert!(frame.iter().all(|byte| *byte == frame[0]), "{frame:?}");
            }
            // In order, and none is missing that was not counted.
            let numbers: Vec<u8> = whole.map(|frame| frame[0]).collect();
            let skipped = numbers.windows(2).map(|pair| {
                usize::from(pair[1].wrapping_sub(pair[0]).wrapping_sub(1))
            });
            let skipped: usize = skipped.sum();
            prop_assert!(skipped <= left_out, "{skipped} of {left_out}");
        }
    }
}
