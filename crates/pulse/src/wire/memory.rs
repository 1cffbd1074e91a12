//! Memory that a program shares: its segments, and the blocks in them that hold samples.
//!
//! A block is copied when its frame comes, so the program could have it back at once. That would
//! wake it for nothing: blocks are released together with the next packet, or when many wait.

use std::collections::BTreeMap;

use super::descriptor::{Block, DESCRIPTOR_BYTES, release};
use super::tagstruct;
use super::{FrameError, ProgramBytes};

/// Most segments of one connection. libpulse has one.
const MAX_SEGMENTS: usize = 4;
/// Longest block, bytes: the slots of libpulse's memory.
const MAX_BLOCK_BYTES: u32 = 64 << 10;
/// Blocks that wait to be released, at most. libpulse can have 128 on their way, and sends samples
/// through the socket when all are.
const MOST_WAITING: usize = 64;
/// The command that registers a segment.
const REGISTER: u32 = 103;

/// A segment of memory of a program, which may change and shrink at any time.
pub(crate) trait Segment {
    /// Reads bytes from this one on; returns how many there are.
    fn read(&self, offset: u64, into: &mut [u8]) -> usize;
}

/// Bytes in this process, for tests and the fuzzer.
#[cfg(any(test, fuzzing))]
impl Segment for Vec<u8> {
    fn read(&self, offset: u64, into: &mut [u8]) -> usize {
        let there = usize::try_from(offset).ok().and_then(|offset| self.get(offset..));
        let there = there.unwrap_or_default();
        let bytes = into.len().min(there.len());
        into[..bytes].copy_from_slice(&there[..bytes]);
        bytes
    }
}

/// What one program shares.
#[derive(Debug)]
pub(super) struct SharedMemory<S> {
    is_agreed: bool,
    segments: BTreeMap<u32, S>,
    /// Those that came with bytes of a packet that is not complete.
    arrived: Vec<S>,
    /// Numbers of blocks that have been taken.
    to_release: Vec<u32>,
}

impl<S> Default for SharedMemory<S> {
    fn default() -> Self {
        let (segments, arrived, to_release) = Default::default();
        Self { is_agreed: false, segments, arrived, to_release }
    }
}

impl<S: Segment> SharedMemory<S> {
    /// Its program has been told that memory may be shared.
    pub fn agree(&mut self) {
        self.is_agreed = true;
    }

    /// Returns whether its program knows that memory may be shared.
    pub fn is_agreed(&self) -> bool {
        self.is_agreed
    }

    /// A segment has come with the bytes that are pushed next.
    ///
    /// # Errors
    /// It was not agreed to, or another one waits to be registered.
    pub fn arrived(&mut self, segment: S) -> Result<(), FrameError> {
        self.arrived.push(segment);
        if self.is_agreed && self.arrived.len() == 1 { Ok(()) } else { Err(FrameError::Descriptor) }
    }

    /// Comes between two frames: what has arrived must have been registered.
    ///
    /// # Errors
    /// It has not.
    pub fn check_arrived(&self) -> Result<(), FrameError> {
        if self.arrived.is_empty() { Ok(()) } else { Err(FrameError::Descriptor) }
    }

    /// Takes a packet if it registers a segment; returns whether it did.
    ///
    /// # Errors
    /// It registers none, one twice, or one too many.
    pub fn register(&mut self, packet: &[u8]) -> Result<bool, FrameError> {
        if !self.is_agreed || tagstruct::head(packet).is_none_or(|head| head.0 != REGISTER) {
            return Ok(false);
        }
        let number = tagstruct::only_u32(packet).ok_or(FrameError::Descriptor)?;
        let segment = self.arrived.pop().ok_or(FrameError::Descriptor)?;
        // MUTATION: register.segments_without_limit
        let is_full = self.segments.len() >= MAX_SEGMENTS;
        if is_full || self.segments.contains_key(&number) {
            return Err(FrameError::Segment(number));
        }
        self.segments.insert(number, segment);
        Ok(true)
    }

    /// Passes a block to `take`, which reads it once, and notes that it is to be released.
    ///
    /// # Errors
    /// There is no such segment, or it has not as many bytes.
    pub fn block(
        &mut self,
        place: &[u8],
        take: impl FnOnce(ProgramBytes<'_>),
    ) -> Result<(), FrameError> {
        let block = Block::read(place).ok_or(FrameError::Kind)?;
        // MUTATION: read.blocks_of_any_length
        if block.length > MAX_BLOCK_BYTES {
            return Err(FrameError::Length(block.length));
        }
        let segment = self.segments.get(&block.segment).ok_or(FrameError::Block)?;
        let (offset, length) = (u64::from(block.offset), u64::from(block.length));
        // MUTATION: read.short_blocks_are_played
        if length > 0 && segment.read(offset + length - 1, &mut [0]) == 0 {
            return Err(FrameError::Block);
        }
        take(ProgramBytes::in_block(segment, offset, block.length as usize));
        self.to_release.push(block.number);
        Ok(())
    }

    /// A program has taken a block back, whose number another one may have from now on.
    pub fn revoked(&mut self, block: u32) {
        self.to_release.retain(|number| *number != block);
    }

    /// Returns whether many blocks wait to be released.
    pub fn has_many_to_release(&self) -> bool {
        self.to_release.len() >= MOST_WAITING
    }

    /// Returns the frames that release the blocks that wait for it.
    pub fn take_releases(&mut self) -> impl Iterator<Item = [u8; DESCRIPTOR_BYTES]> {
        std::mem::take(&mut self.to_release).into_iter().map(release)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(command: u32, values: &[u8]) -> Vec<u8> {
        [b"L", &command.to_be_bytes()[..], b"L\xff\xff\xff\xff", values].concat()
    }

    fn registration(number: u32) -> Vec<u8> {
        packet(REGISTER, &[b"L", &number.to_be_bytes()[..]].concat())
    }

    fn place(number: u32, segment: u32, offset: u32, length: u32) -> Vec<u8> {
        [number, segment, offset, length].map(u32::to_be_bytes).concat()
    }

    /// Segment 5 of the bytes 0, 1, 2 and so on.
    fn shared(bytes: usize) -> SharedMemory<Vec<u8>> {
        let mut memory = SharedMemory::default();
        memory.agree();
        memory.arrived((0..bytes).map(|at| at as u8).collect()).expect("agreed");
        assert_eq!(memory.register(&registration(5)), Ok(true));
        memory.check_arrived().expect("registered");
        memory
    }

    fn read(memory: &mut SharedMemory<Vec<u8>>, place: &[u8]) -> Result<Vec<u8>, FrameError> {
        let mut bytes = Vec::new();
        memory.block(place, |block| bytes = block.read().into_owned()).map(|()| bytes)
    }

    fn releases(memory: &mut SharedMemory<Vec<u8>>) -> Vec<u8> {
        memory.take_releases().flatten().collect()
    }

    #[test]
    fn a_block_is_read_where_it_says_and_released_once() {
        let mut memory = shared(100);
        assert_eq!(read(&mut memory, &place(9, 5, 10, 3)), Ok(vec![10, 11, 12]));
        assert_eq!(read(&mut memory, &place(8, 5, 97, 3)), Ok(vec![97, 98, 99]));
        assert_eq!(releases(&mut memory), [release(9), release(8)].concat());
        assert!(releases(&mut memory).is_empty());
    }

    #[test]
    fn a_block_that_is_not_there_is_refused_and_not_released() {
        let mut memory = shared(100);
        for place in
            [place(9, 6, 0, 3), place(9, 5, 98, 3), place(9, 5, u32::MAX, 1), place(9, 5, 0, 101)]
        {
            assert_eq!(read(&mut memory, &place), Err(FrameError::Block));
        }
        let long = read(&mut memory, &place(9, 5, 0, 65_537));
        assert_eq!(long, Err(FrameError::Length(65_537)));
        assert!(releases(&mut memory).is_empty());
    }

    #[test]
    fn a_block_that_is_taken_back_is_not_released() {
        let mut memory = shared(100);
        for number in [1, 2, 3] {
            read(&mut memory, &place(number, 5, 0, 1)).expect("there");
        }
        memory.revoked(2);
        memory.revoked(7);
        assert_eq!(releases(&mut memory), [release(1), release(3)].concat());
    }

    #[test]
    fn blocks_are_released_before_a_program_has_none_left() {
        let mut memory = shared(100);
        let read = (0..200).take_while(|number| {
            read(&mut memory, &place(*number, 5, 0, 1)).expect("there");
            !memory.has_many_to_release()
        });
        assert_eq!(read.count() + 1, MOST_WAITING);
        assert_eq!(releases(&mut memory).len(), MOST_WAITING * 20);
        assert!(!memory.has_many_to_release());
    }

    #[test]
    fn a_program_has_few_segments_each_registered_once() {
        let mut memory = shared(1);
        memory.arrived(vec![0]).expect("agreed");
        assert_eq!(memory.register(&registration(5)), Err(FrameError::Segment(5)));
        for number in 6..100 {
            memory.arrived(vec![0]).expect("agreed");
            let registered = memory.register(&registration(number));
            let has_room = number < 5 + MAX_SEGMENTS as u32;
            let expected = if has_room { Ok(true) } else { Err(FrameError::Segment(number)) };
            assert_eq!(registered, expected, "{number}");
        }
    }

    #[test]
    fn a_segment_and_its_packet_come_together() {
        let mut memory = shared(1);
        assert_eq!(memory.register(&registration(6)), Err(FrameError::Descriptor));
        memory.arrived(vec![0]).expect("agreed");
        assert_eq!(memory.register(&packet(9, b"")), Ok(false));
        assert_eq!(memory.check_arrived(), Err(FrameError::Descriptor));
        let cut = packet(REGISTER, b"L\0\0\0");
        assert_eq!(memory.register(&cut), Err(FrameError::Descriptor));
        assert_eq!(memory.arrived(vec![0]), Err(FrameError::Descriptor), "one at a time");
    }

    #[test]
    fn memory_that_was_not_agreed_to_is_refused() {
        let mut memory = SharedMemory::<Vec<u8>>::default();
        assert_eq!(memory.register(&registration(5)), Ok(false));
        assert_eq!(memory.arrived(vec![0]), Err(FrameError::Descriptor));
    }
}
