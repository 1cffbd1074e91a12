//! The 20 bytes before each frame.

/// Bytes of a descriptor: five words, big endian.
pub(crate) const DESCRIPTOR_BYTES: usize = 20;

/// Bytes that say where a block is: four words, big endian.
const BLOCK_BYTES: u32 = 16;

/// The channel of packets; other frames are samples of the stream of that channel.
pub(super) const PACKETS: u32 = u32::MAX;
/// Flags of frames about shared memory.
const MEMORY: u32 = 0xFF00_0000;
/// The samples are in a block; and the block is in a memfd. Whether it may be written makes no
/// difference to who only reads.
pub(super) const BLOCK_OF_MEMFD: u32 = 0xA000_0000;
pub(super) const WRITABLE: u32 = 0x0080_0000;
/// A block is released by who has read it, or taken back by who has sent it.
const RELEASED: u32 = 0x4000_0000;
const REVOKED: u32 = 0xC000_0000;
/// Flags that say from where on a frame's offset counts.
const SEEK: u32 = 0x0000_00FF;

/// Where the samples of a frame go in their stream, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seek {
    /// From the end of what was written last.
    Relative(i64),
    /// From the stream's beginning.
    Absolute(i64),
    /// From what is heard.
    OnRead(i64),
    /// From the end of all that was written.
    OnEnd(i64),
}

/// What follows a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    /// A packet.
    Packet,
    /// Samples.
    Samples {
        /// The stream.
        channel: u32,
        /// Where they go.
        seek: Seek,
    },
    /// Where a block of samples is.
    Block {
        /// The stream.
        channel: u32,
        /// Where they go.
        seek: Seek,
    },
    /// Nothing: a block of this number was released.
    Released(u32),
    /// Nothing: a block of this number was taken back.
    Revoked(u32),
}

/// One descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Descriptor {
    /// Bytes that follow.
    pub length: u32,
    /// What they are.
    pub content: Content,
}

impl Descriptor {
    /// Returns the descriptor in these bytes; `None` if it is of a kind that was not agreed to.
    pub fn read(bytes: &[u8; DESCRIPTOR_BYTES]) -> Option<Self> {
        let word = |at: usize| {
            let [a, b, c, d] = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
            u32::from_be_bytes([a, b, c, d])
        };
        let (length, channel, flags) = (word(0), word(4), word(16));
        let offset = (u64::from(word(8)) << 32 | u64::from(word(12))).cast_signed();
        let block = word(8);
        match flags {
            RELEASED => return Some(Self { length: 0, content: Content::Released(block) }),
            REVOKED => return Some(Self { length: 0, content: Content::Revoked(block) }),
            _ => {}
        }
        let seek = match flags & SEEK {
            // There is no end but that of what was written last.
            0 => Seek::Relative(offset),
            1 => Seek::Absolute(offset),
            2 => Seek::OnRead(offset),
            3 => Seek::OnEnd(offset),
            _ => return None,
        };
        let content = match (channel, flags & MEMORY, flags & WRITABLE) {
            (PACKETS, 0, 0) => Content::Packet,
            (PACKETS, ..) => return None,
            (_, 0, 0) => Content::Samples { channel, seek },
            (_, BLOCK_OF_MEMFD, _) if length == BLOCK_BYTES => Content::Block { channel, seek },
            _ => return None,
        };
        Some(Self { length, content })
    }
}

/// Where a block of samples is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Block {
    /// Its number, by which it is released.
    pub number: u32,
    /// The segment of memory.
    pub segment: u32,
    /// Its first byte in there.
    pub offset: u32,
    /// Bytes.
    pub length: u32,
}

impl Block {
    /// Returns what these bytes say; `None` if there are not as many as it takes.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let words = bytes.as_chunks().0;
        let [number, segment, offset, length] = *words else { return None };
        let [number, segment, offset, length] =
            [number, segment, offset, length].map(u32::from_be_bytes);
        Some(Self { number, segment, offset, length })
    }
}

/// A frame that releases no block: it only wakes a program.
pub(crate) fn nothing() -> [u8; DESCRIPTOR_BYTES] {
    release(u32::MAX)
}

/// Returns a frame that releases a block of a program.
pub(super) fn release(number: u32) -> [u8; DESCRIPTOR_BYTES] {
    let mut frame = [0; DESCRIPTOR_BYTES];
    for (room, word) in frame.chunks_exact_mut(4).zip([0, PACKETS, number, 0, RELEASED]) {
        room.copy_from_slice(&word.to_be_bytes());
    }
    frame
}

/// Returns a frame of samples for a program: what it records.
pub(crate) fn samples(channel: u32, bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    let mut frame = Vec::with_capacity(DESCRIPTOR_BYTES + bytes.len());
    for word in [length, channel, 0, 0, 0] {
        frame.extend(word.to_be_bytes());
    }
    frame.extend(bytes);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(words: [u32; 5]) -> [u8; DESCRIPTOR_BYTES] {
        let mut bytes = [0; DESCRIPTOR_BYTES];
        for (room, word) in bytes.chunks_exact_mut(4).zip(words) {
            room.copy_from_slice(&word.to_be_bytes());
        }
        bytes
    }

    #[test]
    fn a_descriptor_names_its_stream_and_the_place_of_its_samples() {
        let samples = |flags, offset: i64| {
            let [high, low] = [(offset >> 32) as u32, offset as u32];
            Descriptor::read(&bytes([640, 3, high, low, flags])).map(|read| read.content)
        };
        let content = |seek| Some(Content::Samples { channel: 3, seek });
        assert_eq!(samples(0, 0), content(Seek::Relative(0)));
        assert_eq!(samples(1, 1 << 40), content(Seek::Absolute(1 << 40)));
        assert_eq!(samples(2, -8), content(Seek::OnRead(-8)));
        assert_eq!(samples(3, 8), content(Seek::OnEnd(8)));
        assert_eq!(samples(4, 0), None);
        let packet = Descriptor { length: 10, content: Content::Packet };
        assert_eq!(Descriptor::read(&bytes([10, u32::MAX, 0, 0, 0])), Some(packet));
    }

    #[test]
    fn what_is_sent_to_a_program_is_a_frame_of_its_stream() {
        let frame = samples(3, b"four");
        let head = frame[..DESCRIPTOR_BYTES].try_into().expect("a descriptor");
        let content = Content::Samples { channel: 3, seek: Seek::Relative(0) };
        assert_eq!(Descriptor::read(head), Some(Descriptor { length: 4, content }));
        assert_eq!(&frame[DESCRIPTOR_BYTES..], b"four");
    }

    #[test]
    fn blocks_of_memfds_are_told_from_other_memory() {
        let kind = |words| Descriptor::read(&bytes(words)).map(|read| read.content);
        let block = Some(Content::Block { channel: 3, seek: Seek::OnRead(0) });
        assert_eq!(kind([16, 3, 0, 0, 0xA000_0002]), block);
        assert_eq!(kind([16, 3, 0, 0, 0xA080_0002]), block);
        assert_eq!(kind([0, u32::MAX, 9, 0, 0x4000_0000]), Some(Content::Released(9)));
        assert_eq!(kind([0, u32::MAX, 9, 0, 0xC000_0000]), Some(Content::Revoked(9)));
        for other in [
            // Not in a memfd, of another length, and what is no block at all.
            [16, 3, 0, 0, 0x8000_0000],
            [20, 3, 0, 0, 0xA000_0000],
            [16, 3, 0, 0, 0x2000_0000],
            [16, 3, 0, 0, 0x0080_0000],
            [16, 3, 9, 0, 0x4000_0001],
            [16, u32::MAX, 0, 0, 0xA000_0000],
        ] {
            assert_eq!(kind(other), None, "{other:x?}");
        }
    }

    #[test]
    fn a_block_is_named_by_four_words() {
        let words = [[0, 0, 0, 1], [0, 0, 0, 2], [0, 0, 1, 0], [0, 1, 0, 0]].concat();
        let block = Block { number: 1, segment: 2, offset: 256, length: 65_536 };
        assert_eq!(Block::read(&words), Some(block));
        assert_eq!(Block::read(&words[..15]), None);
        let release = Descriptor { length: 0, content: Content::Released(77) };
        assert_eq!(Descriptor::read(&super::release(77)), Some(release));
    }
}
