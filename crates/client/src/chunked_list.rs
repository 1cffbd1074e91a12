//! A list that grows without moving its elements, so that readers on any thread never wait for the
//! thread that extends it. Holds a client's ports, slabs and servers, and libjack's handles.

use std::iter;
use std::sync::OnceLock;

/// Number of chunks after the first.
const LATER_CHUNKS: usize = 19;

/// A list of up to `FIRST * (2^20 - 1)` values in chunks that double in size and never move.
/// `FIRST` is a power of two; choose it so that most lists need only the first chunk.
#[derive(Debug)]
pub struct ChunkedList<T, const FIRST: usize = 16> {
    /// Part of the list itself, so that a cycle does not touch another page for it.
    first: [T; FIRST],
    later: [OnceLock<Box<[T]>>; LATER_CHUNKS],
}

impl<T: Default, const FIRST: usize> ChunkedList<T, FIRST> {
    /// Returns a list with the first chunk.
    pub const fn new(first: [T; FIRST]) -> Self {
        Self { first, later: [const { OnceLock::new() }; LATER_CHUNKS] }
    }

    /// Returns the value at `index`, if it exists. Thread: any.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&T> {
        self.first.get(index).or_else(|| self.get_later(index))
    }

    #[cold]
    fn get_later(&self, index: usize) -> Option<&T> {
        let (chunk, place) = split::<FIRST>(index)?;
        self.later.get(chunk - 1)?.get()?.get(place)
    }

    /// Returns the value at `index`, creating its chunk if needed. `None` beyond the maximum
    /// length. Allocates.
    pub fn make(&self, index: usize) -> Option<&T> {
        if let Some(value) = self.first.get(index) {
            return Some(value);
        }
        let (chunk, place) = split::<FIRST>(index)?;
        let make = || iter::repeat_with(T::default).take(FIRST << chunk).collect();
        self.later.get(chunk - 1)?.get_or_init(make).get(place)
    }

    /// Iterates over the existing values, in order. Thread: any.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.first.iter().chain(self.later.iter().map_while(OnceLock::get).flatten())
    }
}

/// Splits an index into the chunk's number and the position in the chunk.
fn split<const FIRST: usize>(index: usize) -> Option<(usize, usize)> {
    // Shifted by `FIRST`, each chunk begins at its own length, a power of two.
    let spread = index.checked_add(FIRST)?;
    let begins = spread.ilog2();
    Some(((begins - FIRST.ilog2()) as usize, spread - (1 << begins)))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn every_index_is_a_place_of_its_own() {
        let list = ChunkedList::new([const { AtomicUsize::new(0) }; 4]);
        assert!(list.get(3).is_some() && list.get(4).is_none());
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
