//! Two rings of bytes between a program of libpulse and the front end that serves it, in the layout
//! of PulseAudio's "srbchannel" (`pulsecore/srbchannel.c`, `pulsecore/fdsem.c`; version 30 of its
//! protocol).
//!
//! The program may write all of it at any time: each end keeps its own place, and what the other
//! one can write is a count of bytes that is checked, a flag, and bytes.

use super::header::{Layout, SegmentHeader};
use crate::sync::{AtomicU32, Ordering, fence};

/// Words of one ring.
const WORDS: usize = if cfg!(loom) { 2 } else { 4080 };
/// Bytes of one ring.
const CAPACITY: u32 = (WORDS * 4) as u32;
/// Bytes before what the program knows.
const BLOCK_OFFSET: u32 = 64;
/// Where the rings are, from there on.
const RINGS_OFFSET: u32 = 64;

/// The words by which a thread of one end is woken.
#[repr(C)]
#[derive(Debug, Default)]
struct Doorbell {
    /// Above 0: the other end writes to the thread's eventfd when it rings.
    waiting: AtomicU32,
    /// 1: it has rung since the thread has last looked. Rings that follow need no system call.
    rung: AtomicU32,
    /// What was written to the eventfd and not read from it: libpulse's own.
    in_eventfd: AtomicU32,
}

/// Both rings, in the words that libpulse reads and writes.
#[repr(C)]
#[cfg_attr(not(loom), repr(align(4096)))]
#[derive(Debug)]
pub struct MessageRings {
    header: SegmentHeader,
    reserved: [AtomicU32; 12],
    /// Bytes in the ring that the program writes.
    incoming_bytes: AtomicU32,
    /// Bytes in the other one.
    outgoing_bytes: AtomicU32,
    /// Rung by the program.
    doorbell: Doorbell,
    /// The program's own, which nobody rings: it is woken by its socket.
    of_program: Doorbell,
    capacity: AtomicU32,
    incoming_offset: AtomicU32,
    outgoing_offset: AtomicU32,
    padding: [AtomicU32; 5],
    incoming: [AtomicU32; WORDS],
    outgoing: [AtomicU32; WORDS],
}

same_for_all_widths!(
    MessageRings: 32768 bytes;
    incoming_bytes at 64, outgoing_bytes at 68, doorbell at 72, of_program at 84, capacity at 96,
    incoming_offset at 100, outgoing_offset at 104, incoming at 128, outgoing at 16448
);

// SAFETY: repr(C), the header first, atomics only.
unsafe impl Layout for MessageRings {
    const KIND: u32 = 11;

    fn header(&self) -> &SegmentHeader {
        &self.header
    }
}

/// The other end has written what is no count of bytes: the rings are of no use any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoCount;

/// What was taken out of a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// Bytes; 0: there were none.
    pub bytes: usize,
    /// The ring was full, so its program may wait for room, and is to be woken.
    pub was_full: bool,
}

/// The front end's places in the rings. Thread: one.
#[derive(Debug, Default)]
pub struct MessageEnd {
    reads_at: u32,
    writes_at: u32,
}

impl MessageRings {
    /// The place in the segment of what the program knows of it, and its length, bytes.
    pub const BLOCK: (u32, u32) = (BLOCK_OFFSET, RINGS_OFFSET + 2 * CAPACITY);

    /// Says where the rings are, before the program has them.
    pub fn describe(&self) {
        // Relaxed: the message by which the program gets them orders it.
        self.capacity.store(CAPACITY, Ordering::Relaxed);
        self.incoming_offset.store(RINGS_OFFSET, Ordering::Relaxed);
        self.outgoing_offset.store(RINGS_OFFSET + CAPACITY, Ordering::Relaxed);
        // Nobody listens yet, so the program does not ring.
        self.doorbell.rung.store(1, Ordering::Relaxed);
        self.doorbell.waiting.store(1, Ordering::Relaxed);
    }

    /// Returns whether the program has sent bytes. What it did before that is seen afterwards.
    pub fn has_bytes(&self) -> bool {
        self.incoming_bytes.load(Ordering::Acquire) != 0
    }

    /// Has the program ring for what it sends from now on, once. Returns whether there are bytes
    /// already, for which it does not.
    pub fn listen(&self) -> bool {
        self.doorbell.rung.store(0, Ordering::Relaxed);
        // Either the program, which adds its bytes before it looks, finds that it has to ring, or
        // its bytes are found here. Its accesses are sequentially consistent.
        // MUTATION: message_rings.listen_without_fence
        fence(Ordering::SeqCst);
        self.has_bytes()
    }

    /// Has the program send without ringing.
    pub fn stop_listening(&self) {
        // Relaxed: a program that rings all the same only wakes this thread for nothing.
        self.doorbell.rung.store(1, Ordering::Relaxed);
    }

    /// Takes bytes that the program has sent, as many as there are and have room.
    ///
    /// # Errors
    /// [`NoCount`].
    pub fn take(&self, end: &mut MessageEnd, room: &mut [u8]) -> Result<Taken, NoCount> {
        // Acquire: the bytes were written before they were counted.
        // MUTATION: message_rings.take_relaxed
        let there = self.incoming_bytes.load(Ordering::Acquire);
        if there > CAPACITY {
            return Err(NoCount);
        }
        let bytes = room.len().min(there as usize);
        let mut left = &mut room[..bytes];
        while !left.is_empty() {
            let word = self.incoming[(end.reads_at / 4) as usize].load(Ordering::Relaxed);
            let word = word.to_ne_bytes();
            let word = &word[(end.reads_at % 4) as usize..];
            let (now, later) = left.split_at_mut(word.len().min(left.len()));
            now.copy_from_slice(&word[..now.len()]);
            end.reads_at = (end.reads_at + now.len() as u32) % CAPACITY;
            left = later;
        }
        // Release: the program writes there again only after these bytes were read.
        let before = self.incoming_bytes.fetch_sub(bytes as u32, Ordering::Release);
        Ok(Taken { bytes, was_full: bytes > 0 && before >= CAPACITY })
    }

    /// Puts words into the other ring, if all have room; returns whether they had. The program
    /// takes them when it wakes next, for whatever reason.
    ///
    /// # Errors
    /// [`NoCount`].
    pub fn put<const N: usize>(
        &self,
        end: &mut MessageEnd,
        words: [u32; N],
    ) -> Result<bool, NoCount> {
        // Acquire: the program has read what was there before it says that there is room.
        let there = self.outgoing_bytes.load(Ordering::Acquire);
        if there > CAPACITY {
            return Err(NoCount);
        }
        let bytes = (N * 4) as u32;
        if CAPACITY - there < bytes {
            return Ok(false);
        }
        for (at, word) in (end.writes_at / 4..).zip(words) {
            self.outgoing[at as usize % WORDS].store(word, Ordering::Relaxed);
        }
        end.writes_at = (end.writes_at + bytes) % CAPACITY;
        // Release: the program finds the words that are counted.
        // MUTATION: message_rings.put_unordered
        self.outgoing_bytes.fetch_add(bytes, Ordering::Release);
        Ok(true)
    }
}

impl Default for MessageRings {
    fn default() -> Self {
        let rings = Self {
            header: SegmentHeader::default(),
            reserved: core::array::from_fn(|_| AtomicU32::new(0)),
            incoming_bytes: AtomicU32::new(0),
            outgoing_bytes: AtomicU32::new(0),
            doorbell: Doorbell::default(),
            of_program: Doorbell::default(),
            capacity: AtomicU32::new(0),
            incoming_offset: AtomicU32::new(0),
            outgoing_offset: AtomicU32::new(0),
            padding: core::array::from_fn(|_| AtomicU32::new(0)),
            incoming: core::array::from_fn(|_| AtomicU32::new(0)),
            outgoing: core::array::from_fn(|_| AtomicU32::new(0)),
        };
        rings.header.initialize(Self::KIND);
        rings
    }
}

/// The other end, as libpulse has it: for tests and models.
#[derive(Debug, Default)]
pub struct MessagePeer {
    reads_at: u32,
    writes_at: u32,
}

impl MessagePeer {
    /// Sends as many of these words as have room; returns how many, and whether the other end's
    /// eventfd is to be written. If these are not all, the ring was full when it gave up.
    pub fn send(&mut self, rings: &MessageRings, words: &[u32]) -> (usize, bool) {
        let mut sent = 0;
        loop {
            let there = rings.incoming_bytes.load(Ordering::SeqCst);
            let count = (words.len() - sent).min(((CAPACITY - there) / 4) as usize);
            if count == 0 {
                break;
            }
            for word in &words[sent..][..count] {
                rings.incoming[self.writes_at as usize % WORDS].store(*word, Ordering::Relaxed);
                self.writes_at += 1;
            }
            rings.incoming_bytes.fetch_add(count as u32 * 4, Ordering::SeqCst);
            sent += count;
        }
        // libpulse's accesses are sequentially consistent, which loom has for fences only.
        fence(Ordering::SeqCst);
        let bell = &rings.doorbell;
        let rung = bell.rung.compare_exchange(0, 1, Ordering::SeqCst, Ordering::SeqCst);
        (sent, rung.is_ok() && bell.waiting.load(Ordering::SeqCst) > 0)
    }

    /// Takes words that have come, as many as there are and have room; returns how many.
    pub fn receive(&mut self, rings: &MessageRings, room: &mut [u32]) -> usize {
        let there = rings.outgoing_bytes.load(Ordering::SeqCst) / 4;
        let count = room.len().min(there as usize);
        for word in &mut room[..count] {
            *word = rings.outgoing[self.reads_at as usize % WORDS].load(Ordering::Relaxed);
            self.reads_at += 1;
        }
        rings.outgoing_bytes.fetch_sub(count as u32 * 4, Ordering::SeqCst);
        count
    }

    /// States any number of bytes as sent, and as received.
    pub fn lie(&self, rings: &MessageRings, bytes: u32) {
        rings.incoming_bytes.store(bytes, Ordering::SeqCst);
        rings.outgoing_bytes.store(bytes, Ordering::SeqCst);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn rings() -> MessageRings {
        let rings = MessageRings::default();
        rings.describe();
        rings
    }

    fn bytes(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn bytes_arrive_in_order_however_they_are_cut_across_the_end_of_the_ring() {
        let (rings, mut end, mut peer) = (rings(), MessageEnd::default(), MessagePeer::default());
        let words: Vec<u32> =
            (0..20_000).map(|number: u32| number.wrapping_mul(0x0101_0101)).collect();
        let (mut sent, mut came, mut room) = (0, Vec::new(), [0; 1021]);
        while came.len() < words.len() * 4 {
            let next = words.len().min(sent + 997);
            sent += peer.send(&rings, &words[sent..next]).0;
            let taken = rings.take(&mut end, &mut room).unwrap();
            came.extend_from_slice(&room[..taken.bytes]);
        }
        assert_eq!(came, bytes(&words));
    }

    #[test]
    fn a_program_that_waits_for_room_is_to_be_woken() {
        let (rings, mut end, mut peer) = (rings(), MessageEnd::default(), MessagePeer::default());
        assert_eq!(peer.send(&rings, &[7; WORDS + 1]).0, WORDS);
        let taken = |bytes, was_full| Ok(Taken { bytes, was_full });
        assert_eq!(rings.take(&mut end, &mut [0; 5]), taken(5, true));
        assert_eq!(rings.take(&mut end, &mut [0; 5]), taken(5, false));
    }

    #[test]
    fn words_that_have_no_room_are_not_put() {
        let (rings, mut end, mut peer) = (rings(), MessageEnd::default(), MessagePeer::default());
        let mut puts = || (0..1000).take_while(|n| rings.put(&mut end, [*n; 5]).unwrap()).count();
        assert_eq!(puts(), WORDS / 5);
        let mut room = [0; WORDS];
        assert_eq!(peer.receive(&rings, &mut room), WORDS);
        assert_eq!((room[4], room[5], room[WORDS - 1]), (0, 1, 815));
        assert_eq!(puts(), WORDS / 5);
    }

    #[test]
    fn a_program_rings_once_and_only_for_who_listens() {
        let (rings, mut end, mut peer) = (rings(), MessageEnd::default(), MessagePeer::default());
        let mut rings_for = |word| peer.send(&rings, &[word]).1;
        assert!(!rings_for(1), "nobody has listened yet");
        assert!(rings.listen(), "it has sent before");
        rings.take(&mut end, &mut [0; 64]).unwrap();
        assert_eq!((rings_for(2), rings_for(3)), (true, false));
        assert!(rings.listen());
        rings.stop_listening();
        assert!(!rings_for(4));
    }

    #[test]
    fn a_count_beyond_the_ring_is_refused() {
        let (rings, mut end, peer) = (rings(), MessageEnd::default(), MessagePeer::default());
        for lie in [CAPACITY + 1, u32::MAX] {
            peer.lie(&rings, lie);
            assert_eq!(rings.take(&mut end, &mut [0; 64]), Err(NoCount), "{lie}");
            assert_eq!(rings.put(&mut end, [0; 5]), Err(NoCount), "{lie}");
        }
    }

    #[test]
    fn the_program_knows_the_rings_by_the_words_of_libpulse() {
        let rings = rings();
        let (offset, length) = MessageRings::BLOCK;
        let placed = [&rings.capacity, &rings.incoming_offset, &rings.outgoing_offset];
        let placed = placed.map(|word| word.load(Ordering::Relaxed));
        assert_eq!(placed, [16_320, 64, 64 + 16_320]);
        assert_eq!((offset, (offset + length) as usize), (64, size_of::<MessageRings>()));
        let incoming = core::mem::offset_of!(MessageRings, incoming);
        assert_eq!(incoming, (offset + placed[1]) as usize);
    }
}
