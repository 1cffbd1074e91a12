//! A connection's bytes as frames, however they are cut.

use super::ProgramBytes;
use super::descriptor::{Block, Content, DESCRIPTOR_BYTES, Descriptor};
use super::memory::SharedMemory;
use super::{Seek, Segment, ring_offer};

/// Longest packet, bytes. libpulse's longest are lists of properties.
pub(crate) const MAX_PACKET_BYTES: u32 = 1 << 20;
/// Longest first packet, bytes: a program that has not said who it is gets little memory. It is the
/// one with the cookie, and has some 300.
const MAX_FIRST_PACKET_BYTES: u32 = 4096;
/// Longest frame of samples, bytes: PulseAudio's limit. They are passed on as they come.
const MAX_SAMPLES_BYTES: u32 = 16 << 20;
/// Bytes to be read at once, so that no program keeps the others waiting.
const READ_BYTES: usize = 64 << 10;
/// The same where each frame may be about a whole block of memory.
const READ_BYTES_WITH_BLOCKS: usize = 1 << 10;

/// One frame, or a piece of one.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Frame<'a> {
    /// A whole packet.
    Packet(&'a [u8]),
    /// Samples of a stream.
    Samples {
        /// The stream.
        channel: u32,
        /// Where they go. Pieces of one frame follow each other.
        seek: Seek,
        /// What has arrived of them.
        bytes: ProgramBytes<'a>,
        /// How many more bytes of the stream have arrived in the blocks that follow directly; 0 for
        /// samples in the socket.
        following: u64,
    },
}

/// Bytes that are no frames. What follows them cannot be understood either.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrameError {
    /// A length beyond the limits.
    #[error("a frame of {0} bytes")]
    Length(u32),
    /// Shared memory that was not agreed to, or an unknown way to seek.
    #[error("a frame of a kind that was not agreed to")]
    Kind,
    /// A descriptor came without a packet about it, or such a packet without one.
    #[error("a descriptor came without its packet, or a packet without its descriptor")]
    Descriptor,
    /// A segment of memory that there is already, or one too many.
    #[error("a segment of memory, {0}, which there is already, or one too many")]
    Segment(u32),
    /// A block in a segment that there is not, or beyond its end.
    #[error("a block of memory that is not there")]
    Block,
}

/// The place in a connection's bytes, and the memory that they are about.
#[derive(Debug)]
pub(crate) struct FrameReader<S> {
    /// Bytes of a descriptor that is not complete.
    head: Vec<u8>,
    /// The frame that has begun, and its bytes that are missing.
    body: Option<(Content, u32)>,
    /// Bytes of a packet that is not complete, or of a block's place.
    packet: Vec<u8>,
    /// The first packet has come.
    has_begun: bool,
    memory: SharedMemory<S>,
    rings: Rings,
}

/// Whether the program has rings in shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Rings {
    #[default]
    None,
    Offered,
    Accepted,
}

impl<S> Default for FrameReader<S> {
    fn default() -> Self {
        let (head, body, packet, has_begun) = Default::default();
        let (memory, rings) = Default::default();
        Self { head, body, packet, has_begun, memory, rings }
    }
}

impl<S: Segment> FrameReader<S> {
    /// Its program has been answered that it may share memory.
    pub fn share_memory(&mut self) {
        self.memory.agree();
    }

    /// Returns whether its program knows that memory may be shared.
    pub fn shares_memory(&self) -> bool {
        self.memory.is_agreed()
    }

    /// Its program has been offered rings.
    pub fn offer_rings(&mut self) {
        self.rings = Rings::Offered;
    }

    /// Returns whether its program has accepted the rings.
    pub fn has_accepted_rings(&self) -> bool {
        self.rings == Rings::Accepted
    }

    /// A segment of memory has come with the bytes that are pushed next.
    ///
    /// # Errors
    /// [`FrameError::Descriptor`]; the reader is of no use afterwards.
    pub fn arrived(&mut self, segment: S) -> Result<(), FrameError> {
        self.memory.arrived(segment)
    }

    /// Returns how many bytes to read next, at most.
    pub fn wanted(&self) -> usize {
        match self.body {
            _ if !self.memory.is_agreed() => READ_BYTES,
            Some((Content::Samples { .. }, missing)) => READ_BYTES.min(missing as usize),
            // MUTATION: wanted.as_many_blocks_as_come
            _ => READ_BYTES_WITH_BLOCKS,
        }
    }

    /// Returns the memory of what came of a packet that is not complete, bytes.
    pub fn kept_bytes(&self) -> usize {
        self.packet.capacity()
    }

    /// Returns whether blocks of memory should be released without waiting for a packet.
    pub fn has_many_to_release(&self) -> bool {
        self.memory.has_many_to_release()
    }

    /// Returns the frames that release what has been read of the program's memory.
    pub fn take_releases(&mut self) -> impl Iterator<Item = [u8; DESCRIPTOR_BYTES]> {
        self.memory.take_releases()
    }

    /// Takes bytes, and passes the frames in them on.
    ///
    /// # Errors
    /// [`FrameError`]; the reader is of no use afterwards.
    pub fn push(&mut self, bytes: &[u8], emit: impl FnMut(Frame<'_>)) -> Result<(), FrameError> {
        self.push_while(|| true, bytes, emit).map(drop)
    }

    /// Likewise, as long as `goes_on` says so, which is asked between frames. Returns how many
    /// bytes were taken: the others are to be pushed next.
    ///
    /// # Errors
    /// [`FrameError`]; the reader is of no use afterwards.
    pub fn push_while(
        &mut self,
        mut goes_on: impl FnMut() -> bool,
        bytes: &[u8],
        mut emit: impl FnMut(Frame<'_>),
    ) -> Result<usize, FrameError> {
        let mut rest = bytes;
        while !rest.is_empty() && goes_on() {
            rest = match self.body {
                None => self.read_descriptor(rest)?,
                Some((content, missing)) => self.read_body(content, missing, rest, &mut emit)?,
            };
            // What has no bytes is complete without any.
            if let Some((content, 0)) = self.body {
                self.read_body(content, 0, &[], &mut emit)?;
            }
        }
        if rest.is_empty() && self.body.is_none() && self.head.is_empty() {
            self.memory.check_arrived()?;
        }
        Ok(bytes.len() - rest.len())
    }

    fn read_descriptor<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], FrameError> {
        let missing = DESCRIPTOR_BYTES - self.head.len();
        let (taken, rest) = bytes.split_at(missing.min(bytes.len()));
        self.head.extend_from_slice(taken);
        if let Ok(head) = self.head.as_slice().try_into() {
            let Descriptor { length, content } = Descriptor::read(head).ok_or(FrameError::Kind)?;
            // MUTATION: frames.first_packet_of_any_length
            let packet = if self.has_begun { MAX_PACKET_BYTES } else { MAX_FIRST_PACKET_BYTES };
            let most = match content {
                Content::Packet => packet,
                Content::Samples { .. } => MAX_SAMPLES_BYTES,
                _ if self.memory.is_agreed() => length,
                _ => return Err(FrameError::Kind),
            };
            if length > most {
                return Err(FrameError::Length(length));
            }
            self.head.clear();
            self.body = Some((content, length));
        }
        Ok(rest)
    }

    fn read_body<'a>(
        &mut self,
        content: Content,
        missing: u32,
        bytes: &'a [u8],
        emit: &mut impl FnMut(Frame<'_>),
    ) -> Result<&'a [u8], FrameError> {
        let (taken, rest) = bytes.split_at(bytes.len().min(missing as usize));
        let missing = missing - taken.len() as u32;
        self.body = (missing > 0).then_some((content, missing));
        match content {
            Content::Samples { channel, seek } => {
                emit(Frame::Samples { channel, seek, bytes: taken.into(), following: 0 });
                let next = Content::Samples { channel, seek: Seek::Relative(0) };
                self.body = self.body.map(|_| (next, missing));
            }
            _ if missing > 0 => self.packet.extend_from_slice(taken),
            _ if self.packet.is_empty() => self.complete(content, taken, rest, emit)?,
            _ => {
                let mut whole = std::mem::take(&mut self.packet);
                whole.extend_from_slice(taken);
                self.complete(content, &whole, rest, emit)?;
            }
        }
        Ok(rest)
    }

    /// Takes what is passed on as a whole; `rest` has arrived behind it.
    fn complete(
        &mut self,
        content: Content,
        bytes: &[u8],
        rest: &[u8],
        emit: &mut impl FnMut(Frame<'_>),
    ) -> Result<(), FrameError> {
        match content {
            Content::Packet => {
                self.has_begun = true;
                if self.rings == Rings::Offered && ring_offer::accepts(bytes) {
                    self.rings = Rings::Accepted;
                } else if !self.memory.register(bytes)? {
                    emit(Frame::Packet(bytes));
                }
            }
            Content::Block { channel, seek } => {
                let following = bytes_of_blocks(rest, channel);
                self.memory.block(bytes, |bytes| {
                    emit(Frame::Samples { channel, seek, bytes, following });
                })?;
            }
            Content::Revoked(block) => self.memory.revoked(block),
            // Nothing is sent in blocks.
            Content::Released(_) | Content::Samples { .. } => {}
        }
        Ok(())
    }
}

/// Returns how many bytes are in the blocks at the beginning of `frames`, as long as each continues
/// this stream. Their memory is checked when it is read.
fn bytes_of_blocks(frames: &[u8], channel: u32) -> u64 {
    let follows = Content::Block { channel, seek: Seek::Relative(0) };
    let mut rest = frames;
    let lengths = std::iter::from_fn(|| {
        let (head, after) = rest.split_first_chunk::<DESCRIPTOR_BYTES>()?;
        let descriptor = Descriptor::read(head).filter(|found| found.content == follows)?;
        let place = after.get(..descriptor.length as usize)?;
        rest = &after[place.len()..];
        Block::read(place).map(|block| u64::from(block.length))
    });
    lengths.sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frame(channel: u32, flags: u32, offset: u64, body: &[u8]) -> Vec<u8> {
        let mut bytes = (body.len() as u32).to_be_bytes().to_vec();
        bytes.extend(channel.to_be_bytes());
        bytes.extend(offset.to_be_bytes());
        bytes.extend(flags.to_be_bytes());
        bytes.extend(body);
        bytes
    }

    /// A packet, or samples with the place of their first piece.
    type Read = (Option<Seek>, Vec<u8>);

    /// What a reader makes of pieces of bytes.
    fn read(pieces: &[&[u8]]) -> Result<Vec<Read>, FrameError> {
        read_with(FrameReader::<Vec<u8>>::default(), pieces)
    }

    fn read_with(
        mut reader: FrameReader<Vec<u8>>,
        pieces: &[&[u8]],
    ) -> Result<Vec<Read>, FrameError> {
        let mut frames: Vec<Read> = Vec::new();
        for piece in pieces {
            reader.push(piece, |frame| match frame {
                Frame::Packet(bytes) => frames.push((None, bytes.to_vec())),
                Frame::Samples { channel, seek, bytes, .. } => {
                    assert_eq!(channel, 5);
                    match frames.last_mut() {
                        Some((Some(_), before)) if seek == Seek::Relative(0) => {
                            before.extend(&*bytes.read())
                        }
                        _ => frames.push((Some(seek), bytes.read().into_owned())),
                    }
                }
            })?;
        }
        Ok(frames)
    }

    /// A reader that has received a segment, which is not registered yet.
    fn sharing() -> FrameReader<Vec<u8>> {
        let mut reader = FrameReader::default();
        reader.share_memory();
        reader.arrived(b"0123456789".to_vec()).expect("agreed");
        reader
    }

    fn registration() -> Vec<u8> {
        frame(u32::MAX, 0, 0, b"L\0\0\0\x67L\xff\xff\xff\xffL\0\0\0\x07")
    }

    /// A block in a memfd: its number, the segment's, its place and its length.
    fn block(channel: u32, seek: u32, words: [u32; 4]) -> Vec<u8> {
        frame(channel, 0xA000_0000 | seek, 0, &words.map(u32::to_be_bytes).concat())
    }

    proptest! {
        #[test]
        fn frames_do_not_depend_on_how_their_bytes_are_cut(cuts in prop::collection::vec(0..90_usize, 0..8)) {
            let stream = [
                frame(u32::MAX, 0, 0, b"first"),
                frame(5, 2, 8, b"samples of a stream"),
                frame(u32::MAX, 0, 0, b"second"),
            ].concat();
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.min(&stream.len()).to_owned()).collect();
            cuts.extend([0, stream.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &stream[cut[0]..cut[1]]).collect();
            prop_assert_eq!(read(&pieces).unwrap(), [
                (None, b"first".to_vec()),
                (Some(Seek::OnRead(8)), b"samples of a stream".to_vec()),
                (None, b"second".to_vec()),
            ]);
        }

        #[test]
        fn any_bytes_are_frames_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&[&bytes]);
            let _ = read_with(sharing(), &[&bytes]);
        }

        #[test]
        fn blocks_are_samples_in_their_order_however_their_frames_are_cut(
            cuts in prop::collection::vec(0..250_usize, 0..8),
        ) {
            let stream = [
                registration(),
                block(5, 2, [1, 7, 4, 3]),
                frame(5, 0, 0, b"through the socket"),
                block(5, 1, [2, 7, 0, 10]),
                frame(u32::MAX, 0x4000_0000, 0, b""),
                frame(u32::MAX, 0xC000_0000, 0, b""),
                block(5, 0, [3, 7, 9, 1]),
                frame(u32::MAX, 0, 0, b"a packet"),
            ].concat();
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| *cut.min(&stream.len())).collect();
            cuts.extend([0, stream.len()]);
            cuts.sort_unstable();
            cuts.dedup();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &stream[cut[0]..cut[1]]).collect();
            prop_assert_eq!(read_with(sharing(), &pieces).unwrap(), [
                (Some(Seek::OnRead(0)), b"456through the socket".to_vec()),
                (Some(Seek::Absolute(0)), b"01234567899".to_vec()),
                (None, b"a packet".to_vec()),
            ]);
        }
    }

    #[test]
    fn a_block_comes_with_the_length_of_those_that_follow_it() {
        let follows = |frames: &[Vec<u8>]| {
            let mut all = Vec::new();
            let note = |frame: Frame<'_>| match frame {
                Frame::Samples { following, .. } => all.push(following),
                Frame::Packet(_) => {}
            };
            let mut reader = sharing();
            reader.push(&registration(), |_| {}).unwrap();
            let bytes = frames.concat();
            reader.push(&bytes[..bytes.len() - 1], note).unwrap();
            all
        };
        let [first, second, third] =
            [block(5, 0, [1, 7, 0, 10]), block(5, 0, [2, 7, 3, 4]), block(5, 0, [3, 7, 0, 2])];
        let last = block(5, 0, [4, 7, 0, 1]);
        assert_eq!(follows(&[first.clone(), second, third.clone(), last.clone()]), [6, 2, 0]);
        let elsewhere = block(5, 1, [2, 7, 3, 4]);
        let of_another = block(6, 0, [2, 7, 3, 4]);
        let packet = frame(u32::MAX, 0, 0, b"a packet");
        for other in [elsewhere, of_another, packet] {
            let following = follows(&[first.clone(), other, third.clone(), last.clone()]);
            assert_eq!(following[0], 0);
        }
    }

    #[test]
    fn what_is_not_taken_yet_is_pushed_next() {
        let stream = [
            frame(u32::MAX, 0, 0, b"first"),
            registration(),
            frame(5, 0, 0, b"samples"),
            frame(u32::MAX, 0, 0, b"last"),
        ];
        let stream = stream.concat();
        let (mut reader, mut rest, mut frames) = (sharing(), &stream[..], Vec::new());
        while !rest.is_empty() {
            let mut once = true;
            let goes_on = || std::mem::take(&mut once);
            let emit = |frame: Frame<'_>| frames.push(format!("{frame:?}"));
            let taken = reader.push_while(goes_on, rest, emit).unwrap();
            assert!((1..=20).contains(&taken), "a descriptor, or what follows it");
            rest = &rest[taken..];
        }
        let mut whole = Vec::new();
        sharing().push(&stream, |frame| whole.push(format!("{frame:?}"))).unwrap();
        assert_eq!(frames, whole);
    }

    #[test]
    fn a_packet_without_content_is_a_packet() {
        assert_eq!(read(&[&frame(u32::MAX, 0, 0, b"")]).unwrap(), [(None, Vec::new())]);
    }

    #[test]
    fn a_segment_without_its_packet_is_refused() {
        assert_eq!(
            read_with(sharing(), &[&frame(u32::MAX, 0, 0, b"x")]),
            Err(FrameError::Descriptor)
        );
        assert!(read_with(sharing(), &[&registration()[..34]]).is_ok(), "it may still come");
    }

    #[test]
    fn blocks_that_were_not_agreed_to_are_refused() {
        for frame in [
            block(5, 0, [1, 7, 0, 1]),
            frame(u32::MAX, 0x4000_0000, 0, b""),
            frame(u32::MAX, 0xC000_0000, 0, b""),
        ] {
            assert_eq!(read(&[&frame]), Err(FrameError::Kind));
        }
    }

    #[test]
    fn few_blocks_are_read_at_once() {
        let mut reader = sharing();
        let blocks = reader.wanted() / block(5, 0, [0; 4]).len();
        assert!(blocks * 65_536 <= 2 << 20, "{blocks}");
        reader
            .push(&[&registration(), &frame(5, 0, 0, &[0; 5000])[..1020]].concat(), |_| ())
            .unwrap();
        assert_eq!(reader.wanted(), 4000, "samples in the socket are read in one piece");
    }

    #[test]
    fn lengths_beyond_the_limits_are_refused_before_their_bytes_come() {
        let mut long = frame(u32::MAX, 0, 0, b"");
        long[..4].copy_from_slice(&u32::MAX.to_be_bytes());
        assert_eq!(read(&[&long]), Err(FrameError::Length(u32::MAX)));
        for (before, most) in [
            (Vec::new(), MAX_FIRST_PACKET_BYTES),
            (frame(u32::MAX, 0, 0, b"first"), MAX_PACKET_BYTES),
        ] {
            long[..4].copy_from_slice(&(most + 1).to_be_bytes());
            assert_eq!(read(&[&before, &long]), Err(FrameError::Length(most + 1)));
            long[..4].copy_from_slice(&most.to_be_bytes());
            assert!(read(&[&before, &long]).is_ok(), "{most}");
        }
        let mut samples = frame(5, 0, 0, b"");
        samples[..4].copy_from_slice(&(MAX_SAMPLES_BYTES + 1).to_be_bytes());
        assert_eq!(read(&[&samples]), Err(FrameError::Length(MAX_SAMPLES_BYTES + 1)));
    }
}
