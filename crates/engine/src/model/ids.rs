//! Ids of clients and ports: a freed one is used again as late as possible, because programs keep them.

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

    /// An id never used, or else the one that has been free longest.
    pub(super) fn take(&mut self) -> Option<u32> {
        if self.unused <= self.limit {
            self.unused += 1;
            return Some(self.unused - 1);
        }
        self.freed.pop_front()
    }

    pub(super) fn give_back(&mut self, id: u32) {
        self.freed.push_back(id);
    }
}
