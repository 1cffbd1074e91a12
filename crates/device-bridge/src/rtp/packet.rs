//! RTP packets (RFC 3550) and how samples are put into them (RFC 3551): pure.

/// Bytes of the part that each packet has.
const HEADER_BYTES: usize = 12;
const VERSION: u8 = 2;

/// A packet, as far as it matters for sound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Packet<'a> {
    /// It is the first after silence.
    pub(super) begins: bool,
    pub(super) payload_type: u8,
    pub(super) sequence: u16,
    /// Timestamp of its first frame, in frames.
    pub(super) timestamp: u32,
    /// The number that its sender has chosen for itself.
    pub(super) sender: u32,
    pub(super) samples: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Reads a datagram; `None` if it is no packet of this version, or its lengths are not true.
    pub(super) fn read(bytes: &'a [u8]) -> Option<Self> {
        let (header, mut rest) = bytes.split_first_chunk::<HEADER_BYTES>()?;
        let [flags, kind, s1, s0, t3, t2, t1, t0, n3, n2, n1, n0] = *header;
        if flags >> 6 != VERSION {
            return None;
        }
        let mixed_senders = usize::from(flags & 0xf);
        rest = rest.get(4 * mixed_senders..)?;
        if flags & 0x10 != 0 {
            let ([_, _, high, low], further) = rest.split_first_chunk()?;
            rest = further.get(4 * usize::from(u16::from_be_bytes([*high, *low]))..)?;
        }
        if flags & 0x20 != 0 {
            let padding = usize::from(*rest.last()?);
            rest = rest.get(..rest.len().checked_sub(padding.max(1))?)?;
        }
        Some(Self {
            begins: kind & 0x80 != 0,
            payload_type: kind & 0x7f,
            sequence: u16::from_be_bytes([s1, s0]),
            timestamp: u32::from_be_bytes([t3, t2, t1, t0]),
            sender: u32::from_be_bytes([n3, n2, n1, n0]),
            samples: rest,
        })
    }

    /// Writes it over what is in `bytes`.
    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.clear();
        bytes.push(VERSION << 6);
        bytes.push(u8::from(self.begins) << 7 | self.payload_type & 0x7f);
        bytes.extend(self.sequence.to_be_bytes());
        bytes.extend(self.timestamp.to_be_bytes());
        bytes.extend(self.sender.to_be_bytes());
        bytes.extend(self.samples);
    }
}

/// Puts samples into packets of equal length.
#[derive(Debug)]
pub(super) struct Packets {
    sender: u32,
    payload_type: u8,
    frame_bytes: usize,
    /// Bytes of samples in a packet: whole frames.
    most_bytes: usize,
    sequence: u16,
    timestamp: u32,
    /// What follows silence.
    begins: bool,
    waiting: Vec<u8>,
    packet: Vec<u8>,
}

impl Packets {
    /// Begins at numbers that are hard to guess, as RFC 3550 asks for.
    pub(super) fn new(
        [sender, timestamp, sequence]: [u32; 3],
        payload_type: u8,
        frame_bytes: usize,
        most_bytes: usize,
    ) -> Self {
        let most_bytes = (most_bytes - most_bytes % frame_bytes).max(frame_bytes);
        let (waiting, packet, begins) = (Vec::new(), Vec::new(), true);
        let sequence = (sequence >> 16) as u16;
        Self {
            sender,
            payload_type,
            frame_bytes,
            most_bytes,
            sequence,
            timestamp,
            begins,
            waiting,
            packet,
        }
    }

    /// Takes samples, in whole frames, and sends the packets that are full.
    pub(super) fn push(&mut self, samples: &[u8], mut send: impl FnMut(&[u8])) {
        self.waiting.extend_from_slice(samples);
        let full = self.waiting.len() - self.waiting.len() % self.most_bytes;
        self.send(full, &mut send);
    }

    /// Silence begins: sends what is left.
    pub(super) fn flush(&mut self, mut send: impl FnMut(&[u8])) {
        self.send(self.waiting.len(), &mut send);
        self.begins = true;
    }

    fn send(&mut self, bytes: usize, send: &mut impl FnMut(&[u8])) {
        let waiting = std::mem::take(&mut self.waiting);
        for samples in waiting[..bytes].chunks(self.most_bytes) {
            let Self { begins, payload_type, sequence, timestamp, sender, .. } = *self;
            let packet = Packet { begins, payload_type, sequence, timestamp, sender, samples };
            packet.write(&mut self.packet);
            send(&self.packet);
            let frames = u32::try_from(samples.len() / self.frame_bytes).unwrap_or(0);
            self.sequence = sequence.wrapping_add(1);
            self.timestamp = timestamp.wrapping_add(frames);
            self.begins = false;
        }
        self.waiting = waiting;
        self.waiting.drain(..bytes);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sent(packets: &mut Packets, samples: &[u8], is_last: bool) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        packets.push(samples, |packet| all.push(packet.to_vec()));
        if is_last {
            packets.flush(|packet| all.push(packet.to_vec()));
        }
        all
    }

    #[test]
    fn samples_are_in_packets_of_equal_length_whose_timestamps_count_frames() {
        let mut packets = Packets::new([7, u32::MAX - 1, 0xffff_0000], 127, 4, 11);
        assert_eq!(sent(&mut packets, b"abcd", false), Vec::<Vec<u8>>::new());
        let all = sent(&mut packets, b"efghijkl", true);
        let all: Vec<Packet<'_>> = all.iter().filter_map(|bytes| Packet::read(bytes)).collect();
        let first = Packet {
            begins: true,
            payload_type: 127,
            sequence: 0xffff,
            timestamp: u32::MAX - 1,
            sender: 7,
            samples: b"abcdefgh",
        };
        let second = Packet { begins: false, sequence: 0, timestamp: 0, samples: b"ijkl", ..first };
        assert_eq!(all, [first, second]);
        let later = sent(&mut packets, b"mnop", true);
        let later = Packet::read(&later[0]).expect("a packet");
        assert_eq!((later.begins, later.sequence, later.timestamp), (true, 1, 1));
    }

    #[test]
    fn samples_are_found_behind_all_that_a_header_may_have() {
        let whole = b"\xb2\x8a\0\x05\0\0\0\x06\0\0\0\x07mix1mix2\xbe\xde\0\x01extnSAMP\0\0\x03";
        let packet = Packet::read(whole).expect("a packet");
        assert_eq!((packet.begins, packet.payload_type, packet.sequence), (true, 10, 5));
        assert_eq!((packet.timestamp, packet.sender, packet.samples), (6, 7, &b"SAMP"[..]));
        for length in 0..whole.len() {
            let shorter = Packet::read(&whole[..length]);
            assert!(shorter.is_none_or(|packet| packet.samples.len() <= length));
        }
    }

    #[test]
    fn lengths_that_are_not_true_are_refused() {
        for (bytes, why) in [
            (&b"\x80\0\0\0\0\0\0\0\0\0\0"[..], "it is too short"),
            (b"\x40\0\0\0\0\0\0\0\0\0\0\0", "another version"),
            (b"\x81\0\0\0\0\0\0\0\0\0\0\0abc", "a mixed sender is missing"),
            (b"\x90\0\0\0\0\0\0\0\0\0\0\0abc", "an extension is missing"),
            (b"\x90\0\0\0\0\0\0\0\0\0\0\0ab\0\x02cdef", "an extension is cut off"),
            (b"\xa0\0\0\0\0\0\0\0\0\0\0\0", "padding is missing"),
            (b"\xa0\0\0\0\0\0\0\0\0\0\0\0a\x03", "padding is cut off"),
        ] {
            assert_eq!(Packet::read(bytes), None, "{why}");
        }
    }

    proptest! {
        #[test]
        fn any_datagram_is_a_packet_within_it_or_refused(
            bytes in proptest::collection::vec(any::<u8>(), 0..100)
        ) {
            if let Some(packet) = Packet::read(&bytes) {
                prop_assert!(packet.samples.len() + HEADER_BYTES <= bytes.len());
            }
        }

        #[test]
        fn any_samples_arrive_whole_and_in_order(
            pieces in proptest::collection::vec(0_usize..20, 1..20),
            most_bytes in 1_usize..60,
        ) {
            let mut packets = Packets::new([1, 2, 3], 10, 4, most_bytes);
            let (mut next, mut arrived) = (0_u8, Vec::new());
            let mut frames = 0;
            for (at, frames_of_piece) in pieces.iter().enumerate() {
                let piece: Vec<u8> = (0..frames_of_piece * 4)
                    .map(|_| { next = next.wrapping_add(1); next })
                    .collect();
                for bytes in sent(&mut packets, &piece, at + 1 == pieces.len()) {
                    let packet = Packet::read(&bytes).expect("a packet");
                    prop_assert!(packet.samples.len() <= most_bytes.max(4));
                    prop_assert_eq!(packet.timestamp, 2 + frames);
                    frames += packet.samples.len() as u32 / 4;
                    arrived.extend_from_slice(packet.samples);
                }
            }
            let all: Vec<u8> = (0..arrived.len()).map(|at| (at + 1) as u8).collect();
            prop_assert_eq!(arrived, all);
        }
    }
}
