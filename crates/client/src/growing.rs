//! A list that grows without moving, so that readers on any thread never wait for the one that extends it: a client's
//! ports, slabs and servers, and libjack's handles.

use std::sync::OnceLock;

const FIRST_CHUNK: usize = 16;
const CHUNKS: usize = 20;

/// Up to `FIRST_CHUNK * (2^CHUNKS - 1)` values, made in chunks that double in size and stay where they are.
#[derive(Debug)]
pub struct Growing<T> {
    chunks: [OnceLock<Box<[T]>>; CHUNKS],
}

impl<T: Default> Growing<T> {
    /// An empty list.
    pub const fn new() -> Self {
        Self { chunks: [const { OnceLock::new() }; CHUNKS] }
    }

    /// The value at `index`, if it was made. Thread: any.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&T> {
        // Most lists have no more than the first chunk.
        let (chunk, place) = if index < FIRST_CHUNK { (0, index) } else { split(index)? };
        self.chunks.get(chunk)?.get()?.get(place)
    }

    /// The value at `index`, made if need be; `None` past the last that there can be. Allocates.
    pub fn make(&self, index: usize) -> Option<&T> {
        let (chunk, place) = split(index)?;
        let make = || std::iter::repeat_with(T::default).take(FIRST_CHUNK << chunk).collect();
        self.chunks.get(chunk)?.get_or_init(make).get(place)
    }

    /// The values made so far, in their order. Thread: any.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().map_while(OnceLock::get).flat_map(|chunk| chunk.iter())
    }
}

impl<T: Default> Default for Growing<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Chunk, and place in the chunk.
#[inline]
fn split(index: usize) -> Option<(usize, usize)> {
    // Counted from there, each chunk begins at its own length, a power of two.
    let spread = index.checked_add(FIRST_CHUNK)?;
    let begins = spread.ilog2();
    Some(((begins - FIRST_CHUNK.ilog2()) as usize, spread - (1 << begins)))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn every_index_is_a_place_of_its_own() {
        let list = Growing::<AtomicUsize>::new();
        assert!(list.get(0).is_none());
        for index in 0..1000 {
            list.make(index).unwrap().store(index + 1, Ordering::Relaxed);
        }
        for index in 0..1000 {
            assert_eq!(list.get(index).unwrap().load(Ordering::Relaxed), index + 1);
        }
        assert!(list.iter().take(1000).map(|value| value.load(Ordering::Relaxed)).eq(1..=1000));
        assert!(list.get(usize::MAX).is_none() && list.make(usize::MAX).is_none());
    }
}
