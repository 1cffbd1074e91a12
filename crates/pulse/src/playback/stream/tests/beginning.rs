//! How much a stream waits for before it begins.

use std::cell::RefCell;

use client::stream::Wish;

use super::*;
use crate::wire::{ProgramBytes, Segment};

const DEFAULT: u32 = u32::MAX;

#[test]
fn a_stream_begins_when_there_is_as_much_as_it_waits_for() {
    let mut playback = playback(DEFAULT);
    let prebuffer = playback.attributes().prebuffer as usize;
    playback.put(&bytes(0, prebuffer / 2 - 1));
    assert_eq!(playback.pass(SECOND_NS), []);
    assert_eq!(playback.output.obeyed, []);
    playback.put(&bytes(0, 1));
    assert_eq!(playback.output.obeyed, [Wish::Run]);
    let notices = playback.pass(SECOND_NS + SECOND_NS / 10);
    // What the device has ready is asked for as well.
    let ready = playback.pace().bytes(playback.attributes().sink_latency_us);
    let kinds: Vec<Notice> = notices.into_iter().map(|(_, notice)| notice).collect();
    assert_eq!(kinds, [Notice::Request(ready), Notice::Started]);
}

#[test]
fn a_stream_begins_with_its_first_bytes_when_the_others_have_arrived() {
    let begins = |write: &[u8], short_by: usize| {
        let mut playback = playback(DEFAULT);
        let missing = playback.attributes().prebuffer as usize - write.len();
        let following = (missing - short_by) as u64;
        playback.write_before(following, Seek::Relative(0), write.into(), 0);
        playback.output.obeyed == [Wish::Run]
    };
    let [enough, tenth] = [bytes(0, SECOND / 8), bytes(0, SECOND / 20)];
    assert!(begins(&enough, 0));
    assert!(!begins(&enough, 1), "a byte of the prebuffer is missing");
    // It might run out before the others have had their turn.
    assert!(!begins(&tenth, 0), "much more has arrived than is written");
    let begins = |frames: usize| {
        let mut playback = playback(SECOND as u32 / 4);
        playback.write_before(SECOND as u64 / 2, Seek::Relative(0), bytes(0, frames)[..].into(), 0);
        playback.output.obeyed == [Wish::Run]
    };
    assert!(begins(SECOND / 20) && !begins(SECOND / 20 - 1), "a tenth of a second");
}

#[test]
fn a_stream_begins_before_all_of_a_block_is_converted() {
    let mut playback = playback(DEFAULT);
    let frames = RATE_HZ as usize / 3;
    playback.write_before(2 * SECOND as u64, Seek::Relative(0), bytes(0, frames)[..].into(), 0);
    assert_eq!(playback.output.begun_with, [u64::from(RATE_HZ) / 10]);
    let sample = |at: usize| (1 + at) as f32 / 32_768.0;
    assert_eq!(playback.output.samples, (0..frames).map(sample).collect::<Vec<_>>());
    assert_eq!((playback.output.calls, playback.output.obeyed.len()), (0, 1));
}

#[test]
fn a_stream_that_is_held_does_not_begin_with_its_first_bytes() {
    let mut playback = playback(DEFAULT);
    playback.cork(true, 0);
    playback.write_before(3 * SECOND as u64, Seek::Relative(0), bytes(0, SECOND / 4)[..].into(), 0);
    assert_eq!(playback.output.obeyed, []);
    playback.cork(false, 0);
    assert_eq!(playback.output.obeyed, [Wish::Run]);
}

#[test]
fn a_device_is_not_called_for_each_part_of_what_follows_the_first_bytes() {
    let mut playback = playback(DEFAULT);
    let (first, others) = (bytes(0, SECOND / 8), bytes(0, SECOND / 4));
    for following in [2 * SECOND, 3 * SECOND / 2, SECOND] {
        playback.write_before(following as u64, Seek::Relative(0), first[..].into(), 0);
    }
    assert_eq!((playback.output.obeyed.len(), playback.output.calls), (1, 0));
    playback.put(&others);
    assert_eq!((playback.output.obeyed.len(), playback.output.calls), (1, 1));
}

/// Memory of a program, and which bytes of it were read.
struct Noted {
    bytes: Vec<u8>,
    read: RefCell<Vec<u64>>,
}

impl Segment for Noted {
    fn read(&self, offset: u64, into: &mut [u8]) -> usize {
        self.read.borrow_mut().extend(offset..offset + into.len() as u64);
        self.bytes.read(offset, into)
    }
}

#[test]
fn each_byte_of_a_block_is_read_once_and_played() {
    let all = bytes(0, SECOND / 2);
    for (mut playback, mut copied) in each(1000).into_iter().zip(each(1000)) {
        let memory = Noted { bytes: all.clone(), read: RefCell::default() };
        // Also cut within a frame, and where the stream begins.
        let cuts = [0, 1, 777, 20_000, all.len()];
        for cut in cuts.windows(2) {
            let block = ProgramBytes::in_block(&memory, cut[0] as u64, cut[1] - cut[0]);
            playback.write_before(0, Seek::Relative(0), block, 0);
            copied.put(&all[cut[0]..cut[1]]);
        }
        assert_eq!(playback.output.samples, copied.output.samples);
        assert_eq!(playback.output.samples.len(), all.len() / 2);
        let read = memory.read.into_inner();
        assert!(read.iter().copied().eq(0..all.len() as u64), "each once, in their order");
    }
}
