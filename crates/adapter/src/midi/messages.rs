//! From pieces to messages and back: long ones, several in one event, and the speed of a cable.

/// A System Exclusive message that is longer reaches the graph in pieces of this many bytes: each fits a port's buffer.
pub(super) const PIECE_BYTES: usize = 16 * 1024;
/// What is handed on at once: less than the smallest queue of a cable's driver.
pub(super) const CHUNK_BYTES: usize = 256;
/// How long a byte takes on a MIDI cable, ns: 31250 baud, ten bits to the byte.
const BYTE_NS: u64 = 320_000;
/// So much goes out at once before the cable's speed counts: drivers hold four times as much.
const BURST_BYTES: u64 = 1024;

/// Begins a System Exclusive message.
pub(super) const EXCLUSIVE: u8 = 0xf0;
/// Ends it.
pub(super) const END_OF_EXCLUSIVE: u8 = 0xf7;

/// Puts the pieces in which System Exclusive messages arrive together.
#[derive(Debug, Default)]
pub(super) struct Assembly(Vec<u8>);

impl Assembly {
    /// Takes a piece; gives what is complete: a whole message, or as much of a long one as goes into an event.
    pub(super) fn add(&mut self, piece: &[u8], mut complete: impl FnMut(&[u8])) {
        for byte in piece {
            if *byte == EXCLUSIVE {
                // What was before it has lost its end.
                self.0.clear();
            }
            self.0.push(*byte);
            if *byte == END_OF_EXCLUSIVE || self.0.len() == PIECE_BYTES {
                complete(&self.0);
                self.0.clear();
            }
        }
    }
}

/// The messages in `bytes`, each with its status byte: a decoder makes several of one event.
pub(super) fn split(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let is_status = |byte: &u8| *byte >= 0x80;
    let starts = move |index: &usize| bytes.get(*index).is_some_and(is_status);
    (0..bytes.len()).filter(starts).map(move |start| {
        let rest = bytes.get(start..).unwrap_or_default();
        let end = rest.iter().skip(1).position(is_status).map_or(rest.len(), |position| position + 1);
        rest.get(..end).unwrap_or_default()
    })
}

/// Keeps what goes out on one cable in order, and long messages to the cable's speed.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// When the cable has carried all that was given to it.
    free_ns: u64,
}

impl Pace {
    /// The date for `bytes` bytes that are due at `due_ns`, after all that came before.
    pub(super) fn date_of(&mut self, due_ns: u64, bytes: usize) -> u64 {
        let backlog_ns = BURST_BYTES * BYTE_NS;
        let date_ns = due_ns.max(self.free_ns.saturating_sub(backlog_ns));
        self.free_ns = self.free_ns.max(date_ns) + bytes as u64 * BYTE_NS;
        date_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_become_one_message_and_very_long_ones_a_few() {
        let mut assembly = Assembly::default();
        let mut complete: Vec<Vec<u8>> = Vec::new();
        let mut add = |piece: &[u8]| assembly.add(piece, |message| complete.push(message.to_vec()));
        add(&[0xf0, 1, 2]);
        add(&[3]);
        add(&[0xf7]);
        add(&[0xf0, 9]);
        add(&[0xf0, 4, 0xf7]);
        let long = [&[0xf0][..], &vec![5; PIECE_BYTES], &[0xf7]].concat();
        long.chunks(256).for_each(&mut add);
        assert_eq!(complete[0], [0xf0, 1, 2, 3, 0xf7]);
        assert_eq!(complete[1], [0xf0, 4, 0xf7], "one without its end is dropped");
        assert_eq!(complete[2..].concat(), long);
        assert_eq!(complete[2].len(), PIECE_BYTES);
    }

    #[test]
    fn what_one_event_was_decoded_to_is_split_at_each_status() {
        let controllers = [0xb0, 0x63, 1, 0xb0, 0x62, 2, 0xb0, 6, 3];
        let messages: Vec<&[u8]> = split(&controllers).collect();
        assert_eq!(messages, [&[0xb0, 0x63, 1][..], &[0xb0, 0x62, 2], &[0xb0, 6, 3]]);
        assert_eq!(split(&[0xf8]).collect::<Vec<_>>(), [&[0xf8][..]]);
        assert_eq!(split(&[]).count(), 0);
    }

    #[test]
    fn short_messages_go_when_they_are_due_and_long_ones_at_a_cables_speed_in_order() {
        let mut pace = Pace::default();
        assert_eq!(pace.date_of(1_000_000_000, 3), 1_000_000_000);
        assert_eq!(pace.date_of(1_000_000_000, 3), 1_000_000_000);
        let dates: Vec<u64> = (0..40).map(|_| pace.date_of(2_000_000_000, CHUNK_BYTES)).collect();
        assert!(dates.is_sorted());
        let carried_ns = 40 * CHUNK_BYTES as u64 * BYTE_NS;
        let last_ns = dates[39] - 2_000_000_000;
        assert!(last_ns < carried_ns && last_ns > carried_ns - 2 * BURST_BYTES * BYTE_NS, "{last_ns}");
        assert!(pace.date_of(2_000_000_001, 3) >= dates[39], "nothing overtakes");
    }
}
