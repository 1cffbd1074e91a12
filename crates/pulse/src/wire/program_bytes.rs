//! Samples as a program has sent them.

use std::borrow::Cow;

use super::Segment;

/// Bytes of samples that a program has sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProgramBytes<'a> {
    place: Place<'a>,
    length: usize,
}

#[derive(Clone, Copy)]
enum Place<'a> {
    /// They have been read.
    Here(&'a [u8]),
    /// In memory that its program may change and cut short at any time: read once, to where they
    /// are needed.
    There { segment: &'a dyn Segment, offset: u64 },
}

impl std::fmt::Debug for Place<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Here(_) => "read",
            Self::There { .. } => "in a block of memory",
        })
    }
}

impl<'a> ProgramBytes<'a> {
    /// Returns a block of a program's memory.
    pub fn in_block(segment: &'a dyn Segment, offset: u64, length: usize) -> Self {
        Self { place: Place::There { segment, offset }, length }
    }

    /// Returns how many there are.
    pub fn len(self) -> usize {
        self.length
    }

    /// Returns whether there are none.
    pub fn is_empty(self) -> bool {
        self.length == 0
    }

    /// Returns those before `at`, and the others; all of them are before what is no place in them.
    pub fn split_at(self, at: usize) -> (Self, Self) {
        let at = at.min(self.length);
        let place = match self.place {
            Place::Here(bytes) => Place::Here(&bytes[at..]),
            Place::There { segment, offset } => {
                Place::There { segment, offset: offset + at as u64 }
            }
        };
        let first = match self.place {
            Place::Here(bytes) => Place::Here(&bytes[..at]),
            block @ Place::There { .. } => block,
        };
        (Self { place: first, length: at }, Self { place, length: self.length - at })
    }

    /// Copies the first ones, as many as `into` has; there must not be fewer. What its program has
    /// cut off is zero.
    pub fn copy(self, into: &mut [u8]) {
        match self.place {
            Place::Here(bytes) => into.copy_from_slice(&bytes[..into.len()]),
            Place::There { segment, offset } => {
                let read = segment.read(offset, into);
                into[read..].fill(0);
            }
        }
    }

    /// Returns all of them.
    pub fn read(self) -> Cow<'a, [u8]> {
        match self.place {
            Place::Here(bytes) => bytes.into(),
            Place::There { .. } => {
                let mut bytes = vec![0; self.length];
                self.copy(&mut bytes);
                bytes.into()
            }
        }
    }
}

impl<'a> From<&'a [u8]> for ProgramBytes<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self { place: Place::Here(bytes), length: bytes.len() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_in_a_block_are_those_in_memory_and_zero_where_it_was_cut() {
        let segment = vec![1, 2, 3, 4, 5, 6];
        let block = ProgramBytes::in_block(&segment, 1, 4);
        let (first, others) = block.split_at(3);
        assert_eq!((&*first.read(), &*others.read()), (&[2, 3, 4][..], &[5][..]));
        let mut into = [0; 2];
        block.copy(&mut into);
        assert_eq!(
            (into, block.split_at(9).0.len(), block.split_at(9).1.is_empty()),
            ([2, 3], 4, true)
        );
        let beyond = ProgramBytes::in_block(&segment, 4, 4);
        assert_eq!(&*beyond.read(), [5, 6, 0, 0]);
    }
}
