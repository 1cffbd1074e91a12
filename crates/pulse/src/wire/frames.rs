//! A connection's bytes as frames, however they are cut.

use super::Seek;
use super::descriptor::{Content, DESCRIPTOR_BYTES, Descriptor};

/// Longest packet, bytes. libpulse's longest are lists of properties.
pub(crate) const MAX_PACKET_BYTES: u32 = 1 << 20;
/// Longest first packet, bytes: a program that has not said who it is gets little memory. It is the
/// one with the cookie, and has some 300.
const MAX_FIRST_PACKET_BYTES: u32 = 4096;
/// Longest frame of samples, bytes: PulseAudio's limit. They are passed on as they come.
const MAX_SAMPLES_BYTES: u32 = 16 << 20;

/// One frame, or a piece of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
        bytes: &'a [u8],
    },
}

/// Bytes that are no frames. What follows them cannot be understood either.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrameError {
    /// A length beyond the limits.
    #[error("a frame of {0} bytes")]
    Length(u32),
    /// Shared memory, or an unknown way to seek.
    #[error("a frame of a kind that was not agreed to")]
    Kind,
}

/// The place in a connection's bytes.
#[derive(Debug, Default)]
pub(crate) struct FrameReader {
    /// Bytes of a descriptor that is not complete.
    head: Vec<u8>,
    /// The frame that has begun, and its bytes that are missing.
    body: Option<(Content, u32)>,
    /// Bytes of a packet that is not complete.
    packet: Vec<u8>,
    /// The first packet has come.
    has_begun: bool,
}

impl FrameReader {
    /// Takes bytes, and passes the frames in them on.
    ///
    /// # Errors
    /// [`FrameError`]; the reader is of no use afterwards.
    pub fn push(
        &mut self,
        mut bytes: &[u8],
        mut emit: impl FnMut(Frame<'_>),
    ) -> Result<(), FrameError> {
        loop {
            match self.body {
                None if bytes.is_empty() => return Ok(()),
                None => bytes = self.read_descriptor(bytes)?,
                Some((content, missing)) => {
                    if bytes.is_empty() && missing > 0 {
                        return Ok(());
                    }
                    bytes = self.read_body(content, missing, bytes, &mut emit);
                }
            }
        }
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
    ) -> &'a [u8] {
        let (taken, rest) = bytes.split_at(bytes.len().min(missing as usize));
        let missing = missing - taken.len() as u32;
        let mut next = content;
        match content {
            Content::Packet if self.packet.is_empty() && missing == 0 => emit(Frame::Packet(taken)),
            Content::Packet => {
                self.packet.extend_from_slice(taken);
                if missing == 0 {
                    emit(Frame::Packet(&self.packet));
                    self.packet = Vec::new();
                }
            }
            Content::Samples { channel, seek } => {
                emit(Frame::Samples { channel, seek, bytes: taken });
                next = Content::Samples { channel, seek: Seek::Relative(0) };
            }
        }
        self.has_begun |= content == Content::Packet && missing == 0;
        self.body = (missing > 0).then_some((next, missing));
        rest
    }
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
        let mut reader = FrameReader::default();
        let mut frames: Vec<Read> = Vec::new();
        for piece in pieces {
            reader.push(piece, |frame| match frame {
                Frame::Packet(bytes) => frames.push((None, bytes.to_vec())),
                Frame::Samples { channel, seek, bytes } => {
                    assert_eq!(channel, 5);
                    match frames.last_mut() {
                        Some((Some(_), before)) if seek == Seek::Relative(0) => {
                            before.extend(bytes)
                        }
                        _ => frames.push((Some(seek), bytes.to_vec())),
                    }
                }
            })?;
        }
        Ok(frames)
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
        }
    }

    #[test]
    fn a_packet_without_content_is_a_packet() {
        assert_eq!(read(&[&frame(u32::MAX, 0, 0, b"")]).unwrap(), [(None, Vec::new())]);
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
