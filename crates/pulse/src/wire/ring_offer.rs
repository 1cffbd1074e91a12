//! The frames by which a program is given rings in shared memory, in place of its socket's buffer
//! (`protocol-native.c`: `setup_srbchannel`; version 30, with memfds 31).

use super::descriptor::{BLOCK_OF_MEMFD, DESCRIPTOR_BYTES, PACKETS, WRITABLE};
use super::tagstruct;

/// The command that gives a program the eventfds, and by which it answers.
const ENABLE: u32 = 101;
/// The command that gives it the memory.
const REGISTER: u32 = 103;
/// The number of the offer, which is answered with it.
const OFFER: u32 = 1;
/// The segment's number, by which the program knows it: its own ones are random.
const SEGMENT: u32 = u32::from_be_bytes(*b"cons");
/// Of what no packet answers.
const NO_ANSWER: u32 = u32::MAX;

/// Returns the frame that comes with the memory.
pub(crate) fn memory() -> Vec<u8> {
    packet(&[REGISTER, NO_ANSWER, SEGMENT])
}

/// Returns the frame that comes with two eventfds: the one that the program writes, and the one
/// that it waits for.
pub(crate) fn eventfds() -> Vec<u8> {
    packet(&[ENABLE, OFFER])
}

/// Returns the frame that says where in the memory the rings are: a place and a length, bytes.
pub(crate) fn place((offset, length): (u32, u32)) -> Vec<u8> {
    let descriptor = [16, 0, 0, 0, BLOCK_OF_MEMFD | WRITABLE];
    let block = [0, SEGMENT, offset, length];
    descriptor.into_iter().chain(block).flat_map(u32::to_be_bytes).collect()
}

/// Returns whether a packet accepts the offer: the program's frames come by the ring from then on.
pub(super) fn accepts(packet: &[u8]) -> bool {
    tagstruct::head(packet) == Some((ENABLE, OFFER)) && packet.len() == tagstruct::HEAD_BYTES
}

fn packet(values: &[u32]) -> Vec<u8> {
    let body: Vec<u8> =
        values.iter().flat_map(|value| std::iter::once(b'L').chain(value.to_be_bytes())).collect();
    let mut frame = Vec::with_capacity(DESCRIPTOR_BYTES + body.len());
    for word in [body.len() as u32, PACKETS, 0, 0, 0] {
        frame.extend(word.to_be_bytes());
    }
    frame.extend(body);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Seek;
    use crate::wire::descriptor::{Block, Content, Descriptor};

    fn split(frame: &[u8]) -> (Descriptor, &[u8]) {
        let (head, body) = frame.split_at(DESCRIPTOR_BYTES);
        (Descriptor::read(head.try_into().expect("a descriptor")).expect("a frame"), body)
    }

    #[test]
    fn an_offer_is_two_packets_and_a_block_of_the_memory_that_they_name() {
        let memory = memory();
        let (descriptor, body) = split(&memory);
        assert_eq!((descriptor.content, descriptor.length), (Content::Packet, 15));
        assert_eq!((tagstruct::head(body).map(|head| head.0)), Some(REGISTER));
        assert_eq!(tagstruct::only_u32(body), Some(SEGMENT));
        let eventfds = eventfds();
        let (descriptor, body) = split(&eventfds);
        assert_eq!((descriptor.content, descriptor.length), (Content::Packet, 10));
        assert_eq!(tagstruct::head(body), Some((ENABLE, OFFER)));
        let place = place((64, 1000));
        let (descriptor, body) = split(&place);
        let content = Content::Block { channel: 0, seek: Seek::Relative(0) };
        assert_eq!(descriptor.content, content);
        let block = Block { number: 0, segment: SEGMENT, offset: 64, length: 1000 };
        assert_eq!(Block::read(body), Some(block));
    }

    #[test]
    fn only_the_answer_to_the_offer_accepts_it() {
        let body = |values: &[u32]| packet(values)[DESCRIPTOR_BYTES..].to_vec();
        assert!(accepts(&body(&[ENABLE, OFFER])));
        for other in [&[ENABLE, OFFER + 1][..], &[REGISTER, OFFER], &[ENABLE, OFFER, 1], &[ENABLE]]
        {
            assert!(!accepts(&body(other)), "{other:?}");
        }
    }
}
