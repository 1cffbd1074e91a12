//! What is remembered by name, for those that were used last.

/// Longest name, bytes.
pub(crate) const MAX_NAME_BYTES: usize = 512;

/// Most entries: far more programs than a desktop has, and few enough to be looked through.
const MAX_ENTRIES: usize = 1000;

/// Entries by name, the one that was changed last at the end. Of more than `MOST`, the oldest makes
/// room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Table<E, const MOST: usize = MAX_ENTRIES> {
    entries: Vec<(String, E)>,
}

impl<E, const MOST: usize> Default for Table<E, MOST> {
    fn default() -> Self {
        Self { entries: Vec::new() }
    }
}

impl<E: PartialEq, const MOST: usize> Table<E, MOST> {
    pub fn get(&self, name: &str) -> Option<&E> {
        self.entries.iter().find(|(known, _)| known == name).map(|(_, entry)| entry)
    }

    /// Takes an entry; returns whether anything has changed.
    pub fn set(&mut self, name: &str, entry: E) -> bool {
        if name.is_empty() || name.len() > MAX_NAME_BYTES || self.get(name) == Some(&entry) {
            return false;
        }
        self.remove(name);
        // MUTATION: remember.without_limit
        if self.entries.len() >= MOST {
            self.entries.remove(0);
        }
        self.entries.push((name.to_owned(), entry));
        true
    }

    /// Forgets an entry; returns whether there was one.
    pub fn remove(&mut self, name: &str) -> bool {
        let before = self.entries.len();
        self.entries.retain(|(known, _)| known != name);
        self.entries.len() < before
    }

    /// Returns all, the one that was changed last at the end.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &E)> {
        self.entries.iter().map(|(name, entry)| (name.as_str(), entry))
    }

    /// Forgets all; returns whether there were some.
    pub fn clear(&mut self) -> bool {
        let had_some = !self.entries.is_empty();
        self.entries.clear();
        had_some
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_entry_makes_room() {
        let mut table = Table::<usize>::default();
        for number in 0..MAX_ENTRIES {
            assert!(table.set(&number.to_string(), number));
        }
        assert!(table.set("0", 7), "changed last now");
        assert!(table.set("another", 8));
        assert_eq!(table.iter().count(), MAX_ENTRIES);
        assert_eq!((table.get("0"), table.get("1"), table.get("2")), (Some(&7), None, Some(&2)));
    }

    #[test]
    fn only_what_is_new_is_a_change() {
        let mut table = Table::<i32>::default();
        assert!(table.set("a", 1) && !table.set("a", 1) && table.set("a", 2));
        assert!(table.remove("a") && !table.remove("a"));
        assert!(!table.set("", 1) && !table.set(&"x".repeat(MAX_NAME_BYTES + 1), 1));
    }
}
