//! A list that grows without moving: readers on any thread never wait for the one that extends it.

use std::sync::OnceLock;

const FIRST_CHUNK: usize = 16;
const CHUNKS: usize = 16;

/// Up to `FIRST_CHUNK * (2^CHUNKS - 1)` values, made in chunks that double in size and stay where they are.
#[derive(Debug)]
pub(crate) struct Growing<T> {
    chunks: [OnceLock<Box<[T]>>; CHUNKS],
}

impl<T: Default> Growing<T> {
    pub(crate) fn new() -> Self {
        Self { chunks: std::array::from_fn(|_| OnceLock::new()) }
    }

    /// The value at `index`, if it was made. Thread: cycle.
    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        let (chunk, place) = split(index)?;
        self.chunks.get(chunk)?.get()?.get(place)
    }

    /// The value at `index`, made if need be; `None` past the last that there can be. Allocates.
    pub(crate) fn make(&self, index: u32) -> Option<&T> {
        let (chunk, place) = split(index)?;
        let make = || std::iter::repeat_with(T::default).take(FIRST_CHUNK << chunk).collect();
        self.chunks.get(chunk)?.get_or_init(make).get(place)
    }

    /// The values made so far. Thread: cycle.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().map_while(OnceLock::get).flat_map(|chunk| chunk.iter())
    }
}

/// Chunk, and place in the chunk.
fn split(index: u32) -> Option<(usize, usize)> {
    let round = index as usize / FIRST_CHUNK + 1;
    let chunk = round.checked_ilog2()? as usize;
    let before = FIRST_CHUNK * ((1 << chunk) - 1);
    Some((chunk, index as usize - before))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn every_index_is_a_place_of_its_own() {
        let list = Growing::<AtomicU32>::new();
        assert!(list.get(0).is_none());
        for index in 0..1000 {
            list.make(index).unwrap().store(index + 1, Ordering::Relaxed);
        }
        for index in 0..1000 {
            assert_eq!(list.get(index).unwrap().load(Ordering::Relaxed), index + 1);
        }
        let in_order = list.iter().take(1000).map(|value| value.load(Ordering::Relaxed));
        assert!(in_order.eq(1..=1000));
        assert!(list.make(u32::MAX).is_none());
    }
}
