//! Ids of clients and ports: a freed id is reused as late as possible, because programs keep ids.

use std::collections::VecDeque;

/// The ids `1..=limit`.
#[derive(Debug)]
pub(super) struct Ids {
    unused: u32,
    limit: u32,
    freed: VecDeque<u32>,
}

impl Ids {
    pub(super) fn new(limit: u32) -> Self {
        Self { unused: 1, limit, freed: VecDeque::new() }
    }

    /// Takes an id that was never used, or else the one that has been free longest.
    pub(super) fn take(&mut self) -> Option<u32> {
        if self.unused <= self.limit {
            self.unused += 1;
            return Some(self.unused - 1);
        }
        self.freed.pop_front()
    }

    /// Takes this id; returns false if it is out of range or not free.
    pub(super) fn take_this(&mut self, id: u32) -> bool {
        if id == 0 || id > self.limit {
            return false;
        }
        self.keep_below(id + 1);
        match self.freed.iter().position(|free| *free == id) {
            Some(place) => self.freed.remove(place).is_some(),
            None => false,
        }
    }

    /// Allocates ids below `id` only when all others are in use: returning programs may have them.
    pub(super) fn keep_below(&mut self, id: u32) {
        let end = id.min(self.limit + 1);
        self.freed.extend(self.unused..end);
        self.unused = self.unused.max(end);
    }

    pub(super) fn give_back(&mut self, id: u32) {
        self.freed.push_back(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_ids_are_allocated_last() {
        let mut ids = Ids::new(5);
        assert_eq!(ids.take(), Some(1));
        ids.keep_below(4);
        ids.keep_below(2);
        assert!(ids.take_this(3) && !ids.take_this(3), "once");
        assert!(
            !ids.take_this(1) && !ids.take_this(0) && !ids.take_this(6),
            "in use, no id, out of range"
        );
        assert_eq!(
            [ids.take(), ids.take(), ids.take(), ids.take()],
            [Some(4), Some(5), Some(2), None]
        );
        ids.give_back(5);
        assert!(ids.take_this(5));
        ids.keep_below(u32::MAX);
        assert_eq!(ids.take(), None);
    }
}
