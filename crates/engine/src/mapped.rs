//! The memory of others that one client has mapped, and the indexes by which its assignments name
//! it.

use std::collections::HashMap;
use std::hash::Hash;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The client was asked to map it.
    Asked,
    /// Assignments may name it.
    Mapped,
}

/// Less than every plan's generation.
const NO_PLAN: u64 = 0;

/// Indexes for keys of type `K` (a client whose signal page it is, a slab).
///
/// The index of a key that is gone is reused only when no plan in force can name it.
#[derive(Debug)]
pub struct MappedTable<K> {
    entries: HashMap<K, (u32, State)>,
    /// (Index, generation of the plan that was the newest when its key went.)
    freed: Vec<(u32, u64)>,
    unused: u32,
}

impl<K> Default for MappedTable<K> {
    fn default() -> Self {
        Self { entries: HashMap::new(), freed: Vec::new(), unused: 0 }
    }
}

impl<K: Copy + Eq + Hash> MappedTable<K> {
    /// Returns the index of `key`, if assignments may name it.
    pub fn mapped(&self, key: K) -> Option<u32> {
        self.entries.get(&key).filter(|(_, state)| *state == State::Mapped).map(|(index, _)| *index)
    }

    /// Returns whether the client has neither mapped `key` nor been asked to.
    pub fn is_unknown(&self, key: K) -> bool {
        !self.entries.contains_key(&key)
    }

    /// Notes that the client is asked to map `key`; returns the index. `in_force`: generation of
    /// the plan in force.
    pub fn ask(&mut self, key: K, in_force: u64) -> u32 {
        let reusable = self.freed.iter().position(|(_, generation)| *generation < in_force);
        let index = reusable.map_or_else(
            || {
                self.unused += 1;
                self.unused - 1
            },
            |place| self.freed.swap_remove(place).0,
        );
        self.entries.insert(key, (index, State::Asked));
        index
    }

    /// Notes the client's answer. Returns true if assignments may name `key` from now on; otherwise
    /// the edge stays silent, and the client is asked again with the next plan.
    pub fn answer(&mut self, key: K, mapped: bool) -> bool {
        if !mapped {
            self.forget(key, NO_PLAN);
            return false;
        }
        let Some((_, state)) = self.entries.get_mut(&key) else { return false };
        *state = State::Mapped;
        true
    }

    /// Forgets `key`, whose memory is gone; returns its index. `newest`: generation of the newest
    /// plan.
    pub fn forget(&mut self, key: K, newest: u64) -> Option<u32> {
        let (index, _) = self.entries.remove(&key)?;
        self.freed.push((index, newest));
        Some(index)
    }

    /// The keys for which `wanted` holds.
    pub fn keys(&self, wanted: impl Fn(K) -> bool) -> Vec<K> {
        self.entries.keys().copied().filter(|key| wanted(*key)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_is_used_only_between_the_answer_and_the_unmapping() {
        let mut table = MappedTable::default();
        assert!(table.is_unknown('a'));
        assert_eq!((table.ask('a', 1), table.ask('b', 1)), (0, 1));
        assert_eq!(table.mapped('a'), None, "not answered yet");
        assert!(table.answer('a', true) && !table.answer('b', false));
        assert_eq!((table.mapped('a'), table.mapped('b')), (Some(0), None));
        assert!(table.is_unknown('b'), "it is asked again");
        assert_eq!(
            (table.forget('a', 5), table.forget('a', 5), table.mapped('a')),
            (Some(0), None, None)
        );
        assert!(!table.answer('a', true), "an answer that comes too late");
    }

    #[test]
    fn a_freed_index_waits_until_no_plan_in_force_can_name_it() {
        let mut table = MappedTable::default();
        table.ask('a', 1);
        table.forget('a', 5);
        assert_eq!((table.ask('b', 5), table.ask('c', 6)), (1, 0));
    }
}
