//! The 20 bytes before each frame.

/// Bytes of a descriptor: five words, big endian.
pub(super) const DESCRIPTOR_BYTES: usize = 20;

/// The channel of packets; other frames are samples of the stream of that channel.
const PACKETS: u32 = u32::MAX;
/// Flags of frames about memory that both sides map, which is never agreed to.
const MAPPED_MEMORY: u32 = 0xE080_0000;
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
        if flags & MAPPED_MEMORY != 0 {
            return None;
        }
        let seek = match flags & SEEK {
            // There is no end but that of what was written last.
            0 | 3 => Seek::Relative(offset),
            1 => Seek::Absolute(offset),
            2 => Seek::OnRead(offset),
            _ => return None,
        };
        let content = match channel {
            PACKETS => Content::Packet,
            _ => Content::Samples { channel, seek },
        };
        Some(Self { length, content })
    }
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
        assert_eq!(samples(3, 8), content(Seek::Relative(8)));
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
    fn memory_that_was_not_agreed_to_is_refused() {
        for flags in [0x8000_0000, 0x4000_0000, 0xC000_0000, 0x2000_0000, 0x0080_0000] {
            assert_eq!(Descriptor::read(&bytes([16, u32::MAX, 0, 0, flags])), None, "{flags:x}");
        }
    }
}
