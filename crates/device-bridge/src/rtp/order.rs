//! Packets in the order of their timestamps: pure.

use std::collections::BTreeMap;

use super::packet::Packet;

/// Packets that wait for one before them; one more, and that is taken as lost.
const MOST_WAITING: usize = 4;

/// What comes next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// Samples, in whole frames.
    Samples(&'a [u8]),
    /// This many frames are lost.
    Lost(u64),
    /// What follows has nothing to do with what came before: the sender began again.
    Jump,
}

/// Puts the packets of one sender in order.
#[derive(Debug)]
pub(super) struct Order {
    frame_bytes: usize,
    /// A gap of more frames, either way, is no loss.
    most_gap: u32,
    sender: Option<u32>,
    /// The timestamp of what comes next.
    next: u32,
    /// Packets that came too early, by the number of frames from `next` to their first.
    waiting: BTreeMap<u32, Vec<u8>>,
}

impl Order {
    pub(super) fn new(frame_bytes: usize, most_gap: u32) -> Self {
        Self { frame_bytes, most_gap, sender: None, next: 0, waiting: BTreeMap::new() }
    }

    /// Takes a packet. One of another sender takes the place of the one before if that
    /// `is_silent`, and is left out otherwise.
    pub(super) fn push(
        &mut self,
        packet: &Packet<'_>,
        is_silent: bool,
        mut piece: impl FnMut(Piece<'_>),
    ) {
        let length = packet.samples.len();
        if length == 0 || !length.is_multiple_of(self.frame_bytes) {
            return;
        }
        // MUTATION: rtp.any_sender
        let is_other = self.sender != Some(packet.sender) && self.sender.is_some();
        if is_other && !is_silent {
            return;
        }
        let ahead = packet.timestamp.wrapping_sub(self.next);
        let behind = self.next.wrapping_sub(packet.timestamp);
        let is_known = self.sender == Some(packet.sender);
        if is_known && ahead <= self.most_gap {
            self.take(ahead, packet.samples, &mut piece);
        } else if !is_known || behind > self.most_gap {
            self.waiting.clear();
            (self.sender, self.next) = (Some(packet.sender), packet.timestamp);
            piece(Piece::Jump);
            self.take(0, packet.samples, &mut piece);
        }
        // Otherwise it is late, or a copy.
    }

    /// Takes what begins this many frames after what comes next.
    fn take(&mut self, ahead: u32, samples: &[u8], piece: &mut impl FnMut(Piece<'_>)) {
        if ahead > 0 {
            self.waiting.entry(ahead).or_insert_with(|| samples.to_vec());
            if self.waiting.len() > MOST_WAITING {
                self.give_up(piece);
            }
            return;
        }
        self.pass(samples, piece);
        self.pass_waiting(piece);
    }

    /// Nothing more comes for now: what is missing is lost.
    pub(super) fn flush(&mut self, mut piece: impl FnMut(Piece<'_>)) {
        while !self.waiting.is_empty() {
            self.give_up(&mut piece);
        }
    }

    /// Waits no longer for what is missing before the first that waits.
    fn give_up(&mut self, piece: &mut impl FnMut(Piece<'_>)) {
        let Some((&ahead, _)) = self.waiting.first_key_value() else { return };
        piece(Piece::Lost(ahead.into()));
        self.advance(ahead);
        self.pass_waiting(piece);
    }

    fn pass(&mut self, samples: &[u8], piece: &mut impl FnMut(Piece<'_>)) {
        piece(Piece::Samples(samples));
        self.advance(u32::try_from(samples.len() / self.frame_bytes).unwrap_or(0));
    }

    fn pass_waiting(&mut self, piece: &mut impl FnMut(Piece<'_>)) {
        while let Some(samples) = self.waiting.remove(&0) {
            self.pass(&samples, piece);
        }
    }

    /// What comes next begins this many frames later. Frames that are there twice are left out.
    fn advance(&mut self, frames: u32) {
        self.next = self.next.wrapping_add(frames);
        for (ahead, samples) in std::mem::take(&mut self.waiting) {
            if let Some(still) = ahead.checked_sub(frames) {
                self.waiting.insert(still, samples);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What comes out, as text: samples as they are, a dot for each lost frame, a bar for a jump.
    struct Scene {
        order: Order,
        out: String,
    }

    fn note(out: &mut String, piece: &Piece<'_>) {
        match piece {
            Piece::Samples(samples) => out.push_str(std::str::from_utf8(samples).expect("text")),
            Piece::Lost(frames) => out.extend((0..*frames).map(|_| '.')),
            Piece::Jump => out.push('|'),
        }
    }

    impl Scene {
        fn new() -> Self {
            Self { order: Order::new(1, 20), out: String::new() }
        }

        fn push_of(&mut self, sender: u32, timestamp: u32, samples: &str, is_silent: bool) {
            let packet = Packet {
                begins: false,
                payload_type: 10,
                sequence: 0,
                timestamp,
                sender,
                samples: samples.as_bytes(),
            };
            self.order.push(&packet, is_silent, |piece| note(&mut self.out, &piece));
        }

        fn push(&mut self, timestamp: u32, samples: &str) {
            self.push_of(1, timestamp, samples, false);
        }
    }

    #[test]
    fn packets_that_overtake_others_are_put_back_in_order() {
        let mut scene = Scene::new();
        scene.push(u32::MAX - 1, "ab");
        scene.push(2, "ef");
        scene.push(4, "gh");
        scene.push(0, "cd");
        scene.push(2, "EF");
        scene.push(6, "i");
        assert_eq!(scene.out, "|abcdefghi");
    }

    #[test]
    fn a_packet_that_does_not_come_is_lost_once_enough_others_have_come() {
        let mut scene = Scene::new();
        scene.push(0, "a");
        for (at, samples) in [(3, "d"), (4, "e"), (5, "f"), (7, "h")] {
            scene.push(at, samples);
        }
        assert_eq!(scene.out, "|a");
        scene.push(8, "i");
        assert_eq!(scene.out, "|a..def");
        scene.push(1, "b");
        scene.order.flush(|piece| note(&mut scene.out, &piece));
        assert_eq!(scene.out, "|a..def.hi");
    }

    #[test]
    fn a_timestamp_from_afar_is_a_beginning() {
        let mut scene = Scene::new();
        scene.push(100, "a");
        scene.push(122, "b");
        scene.push(50, "c");
        scene.push(31, "late");
        assert_eq!(scene.out, "|a|b|c");
    }

    #[test]
    fn another_sender_is_heard_when_the_one_before_is_silent() {
        let mut scene = Scene::new();
        scene.push_of(1, 0, "a", true);
        scene.push_of(2, 1, "x", false);
        scene.push_of(1, 1, "b", false);
        assert_eq!(scene.out, "|ab");
        scene.push_of(2, 7, "y", true);
        scene.push_of(1, 2, "c", false);
        assert_eq!(scene.out, "|ab|y");
    }

    #[test]
    fn packets_of_no_whole_frames_are_left_out() {
        let mut order = Order::new(4, 20);
        let packet = |samples| Packet {
            begins: false,
            payload_type: 10,
            sequence: 0,
            timestamp: 0,
            sender: 1,
            samples,
        };
        for samples in [&b""[..], b"abc", b"abcde"] {
            order.push(&packet(samples), true, |piece| panic!("{piece:?}"));
        }
    }

    proptest! {
        #[test]
        fn any_packets_wait_in_bounds_and_leave_in_order(
            packets in proptest::collection::vec((0_u32..60, 1_usize..6, any::<bool>()), 1..80),
        ) {
            let mut order = Order::new(1, 20);
            let all: Vec<u8> = (0..80).collect();
            let (mut next, mut begins) = (0, true);
            for (timestamp, frames, is_silent) in packets {
                let at = timestamp as usize;
                let packet = Packet {
                    begins: false,
                    payload_type: 10,
                    sequence: 0,
                    timestamp,
                    sender: 1,
                    samples: &all[at..at + frames],
                };
                order.push(&packet, is_silent, |piece| match piece {
                    // Each sample says which frame it is.
                    Piece::Samples(samples) => {
                        assert!(begins || samples[0] == next, "{samples:?}, not {next}");
                        (next, begins) = (samples[samples.len() - 1] + 1, false);
                    }
                    Piece::Lost(frames) => next += frames as u8,
                    Piece::Jump => begins = true,
                });
                prop_assert!(order.waiting.len() <= MOST_WAITING);
                prop_assert!(order.waiting.keys().all(|ahead| (1..=20).contains(ahead)));
            }
        }
    }
}
