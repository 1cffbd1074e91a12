//! How much is kept for the connections of one program together: what it has not taken, and what it
//! has sent and is not handled. A program may have 128 connections, and each of them 4 MiB that it
//! does not take, and a megabyte of a packet that never ends. Pure.

/// Most bytes for all connections of one program.
const MAX_BYTES_OF_ONE: usize = 16 << 20;
/// As much of each connection is never too much.
pub(super) const LITTLE_BYTES: usize = 128 << 10;

/// Returns the connection of a program that is to end, of their numbers and the bytes that are kept
/// for each; `None`: together they keep no more than one program may.
pub(super) fn first_beyond(own: impl Iterator<Item = (u32, usize)> + Clone) -> Option<u32> {
    // MUTATION: kept_memory.without_limit
    let all = own.clone().map(|(_, bytes)| bytes).sum::<usize>();
    let largest = own.max_by_key(|(_, bytes)| *bytes).map(|(number, _)| number);
    largest.filter(|_| all > MAX_BYTES_OF_ONE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beyond(own: &[(u32, usize)]) -> Option<u32> {
        first_beyond(own.iter().copied())
    }

    #[test]
    fn the_connection_that_keeps_most_ends_when_all_of_a_program_keep_too_much() {
        let half = MAX_BYTES_OF_ONE / 2;
        assert_eq!(beyond(&[(1, half), (2, half)]), None);
        assert_eq!(beyond(&[(1, half), (2, half + 1), (3, 5)]), Some(2));
        assert_eq!(beyond(&[]), None);
    }

    #[test]
    fn connections_that_keep_little_are_not_too_many() {
        let most = crate::front_end::MAX_CLIENTS_OF_ONE;
        let own: Vec<_> = (0..most as u32).map(|number| (number, LITTLE_BYTES)).collect();
        assert_eq!(beyond(&own), None);
    }
}
