//! Any words written, one by one, over the memory of a stream that its program can write: what the
//! server reads of it stays in order and within the ring.
#![no_main]

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use rt::shm::{RingHeader, RingShape, WISHES, WishReader, WrittenFrames};
use rt::stream::Wish;

/// Memory of exactly a `T`, zeroed, so that the sanitizer sees the first byte that is read beyond.
struct Page<T>(NonNull<T>);

impl<T> Page<T> {
    fn zeroed() -> Self {
        let layout = Layout::new::<T>();
        // SAFETY: no layout of shared memory is empty.
        let base = unsafe { alloc_zeroed(layout) };
        Self(NonNull::new(base.cast()).unwrap_or_else(|| handle_alloc_error(layout)))
    }

    fn get(&self) -> &T {
        // SAFETY: allocated for a `T`, which consists of atomics and is valid for any bytes.
        unsafe { self.0.as_ref() }
    }

    /// Writes a word, as the program does.
    fn set(&self, word: usize, value: u64) {
        let word = word % (size_of::<T>() / 8);
        // SAFETY: an aligned word within the allocation, which is accessed as atomics only.
        unsafe { self.0.cast::<AtomicU64>().add(word).as_ref() }.store(value, Ordering::Relaxed);
    }
}

impl<T> Drop for Page<T> {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout; no reference outlives the value.
        unsafe { dealloc(self.0.as_ptr().cast(), Layout::new::<T>()) }
    }
}

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let ring = Page::<RingHeader>::zeroed();
    let shape = RingShape::for_depth(2, 512).expect("possible");
    let capacity = shape.capacity_frames();
    let (mut reader, mut written) = (WishReader::default(), WrittenFrames::default());
    let (mut lowest, mut accepted, mut wished) = (0, 0, 0_usize);
    // Where, which word, and the word.
    for (steps, step) in input.chunks_exact(11).enumerate() {
        let word = usize::from(u16::from_le_bytes([step[1], step[2]]));
        let value = u64::from_le_bytes(step[3..].try_into().expect("eight bytes"));
        match step[0] % 4 {
            0 => ring.set(word % 8, value),
            _ => ring.set(word, value),
        }
        let now = written.read(ring.get(), lowest, capacity);
        assert!(accepted <= now && now <= lowest + u64::from(capacity), "never back or beyond");
        let frames = usize::try_from(now - lowest).expect("at most the ring");
        for piece in shape.pieces(lowest, frames) {
            assert!(piece.start <= piece.end && piece.end <= capacity as usize);
        }
        (lowest, accepted) = (now, now);
        let before = reader;
        let mut read = 0;
        while read < WISHES
            && let Some((_, wish)) = reader.next(ring.get().wishes())
        {
            if let Some(wish) = wish {
                assert_eq!(Wish::from_words(&wish.to_words()), Some(wish), "what it stands for");
            }
            read += 1;
        }
        assert!((read == 0) || reader != before, "no wish is read twice");
        wished += read;
        assert!(wished <= (steps + 1) * WISHES, "bounded by the wake-ups");
    }
});
