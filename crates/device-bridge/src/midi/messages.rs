//! Reassembles and splits messages, and limits the rate of long ones.

/// A longer System Exclusive message reaches the graph in pieces of this many bytes, each of which
/// fits a port's buffer.
pub(super) const PIECE_BYTES: usize = 16 * 1024;
/// Bytes sent at once: less than the smallest queue of a cable's driver.
pub(super) const CHUNK_BYTES: usize = 256;
/// Duration of a byte on a MIDI cable, ns: 31250 baud, ten bits to the byte.
const BYTE_NS: u64 = 320_000;
/// Bytes that are sent at once before the cable's rate applies: drivers buffer four times as much.
const BURST_BYTES: u64 = 1024;

/// Begins a System Exclusive message.
pub(super) const EXCLUSIVE: u8 = 0xf0;
/// Ends it.
pub(super) const END_OF_EXCLUSIVE: u8 = 0xf7;

/// Reassembles System Exclusive messages, which arrive in pieces.
#[derive(Debug, Default)]
pub(super) struct Assembly(Vec<u8>);

impl Assembly {
    /// Takes a piece, and calls back with a whole message, or with as much of a long one as fits an
    /// event.
    pub(super) fn add(&mut self, piece: &[u8], mut complete: impl FnMut(&[u8])) {
        for byte in piece {
            if *byte == EXCLUSIVE {
                // The message before has lost its end.
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

/// Returns the messages in `bytes`, each with its status byte: a decoder makes several of one
/// event.
pub(super) fn split(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let is_status = |byte: &u8| *byte >= 0x80;
    let starts = move |index: &usize| bytes.get(*index).is_some_and(is_status);
    (0..bytes.len()).filter(starts).map(move |start| {
        let rest = bytes.get(start..).unwrap_or_default();
        let end =
            rest.iter().skip(1).position(is_status).map_or(rest.len(), |position| position + 1);
        rest.get(..end).unwrap_or_default()
    })
}

/// Returns whether these bytes are a System Exclusive message or a piece of one: all others begin
/// with a status of their own.
fn is_exclusive(bytes: &[u8]) -> bool {
    bytes
        .first()
        .is_some_and(|first| *first < 0x80 || matches!(*first, EXCLUSIVE | END_OF_EXCLUSIVE))
}

/// Keeps messages for one cable in order, and limits System Exclusive to the cable's rate.
#[derive(Debug, Default)]
pub(super) struct CableRate {
    /// When the cable has carried all System Exclusive bytes so far.
    free_ns: u64,
    /// The newest send time.
    last_ns: u64,
}

impl CableRate {
    /// Returns the send time of these bytes, a message or a piece of one, which are due at
    /// `due_ns`; never before that of an earlier message.
    pub(super) fn send_time_ns(&mut self, due_ns: u64, bytes: &[u8]) -> u64 {
        let mut timestamp_ns = due_ns.max(self.last_ns);
        // Most endpoints are not cables of 31250 baud, and all of them must take music as it is
        // played.
        if is_exclusive(bytes) {
            timestamp_ns = timestamp_ns.max(self.free_ns.saturating_sub(BURST_BYTES * BYTE_NS));
            self.free_ns = self.free_ns.max(timestamp_ns) + bytes.len() as u64 * BYTE_NS;
        }
        self.last_ns = timestamp_ns;
        timestamp_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_a_message_are_reassembled() {
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
    fn a_decoded_event_is_split_at_each_status_byte() {
        let controllers = [0xb0, 0x63, 1, 0xb0, 0x62, 2, 0xb0, 6, 3];
        let messages: Vec<&[u8]> = split(&controllers).collect();
        assert_eq!(messages, [&[0xb0, 0x63, 1][..], &[0xb0, 0x62, 2], &[0xb0, 6, 3]]);
        assert_eq!(split(&[0xf8]).collect::<Vec<_>>(), [&[0xf8][..]]);
        assert_eq!(split(&[]).count(), 0);
    }

    #[test]
    fn long_messages_are_sent_at_the_speed_of_a_cable() {
        let (mut rate, note) = (CableRate::default(), [0x90, 60, 100]);
        assert_eq!(rate.send_time_ns(1_000_000_000, &note), 1_000_000_000);
        assert_eq!(rate.send_time_ns(1_000_000_000, &note), 1_000_000_000);
        let long = [&[EXCLUSIVE][..], &[5; 40 * CHUNK_BYTES - 2], &[END_OF_EXCLUSIVE]].concat();
        let chunks = long.chunks(CHUNK_BYTES);
        let send_times: Vec<u64> =
            chunks.map(|chunk| rate.send_time_ns(2_000_000_000, chunk)).collect();
        assert!(send_times.is_sorted());
        let carried_ns = 40 * CHUNK_BYTES as u64 * BYTE_NS;
        let last_ns = send_times[39] - 2_000_000_000;
        assert!(
            last_ns < carried_ns && last_ns > carried_ns - 2 * BURST_BYTES * BYTE_NS,
            "{last_ns}"
        );
        assert!(rate.send_time_ns(2_000_000_001, &note) >= send_times[39], "nothing overtakes");
    }

    #[test]
    fn short_messages_leave_when_due_even_if_denser_than_a_cable_carries() {
        let mut rate = CableRate::default();
        for index in 0..15_000 {
            let due_ns = 1_000_000_000 + index * 1_000_000_000 / 1500;
            assert_eq!(rate.send_time_ns(due_ns, &[0xb0, 1, 2]), due_ns, "message {index}");
        }
    }

    #[test]
    fn system_exclusive_keeps_to_the_speed_of_a_cable() {
        let mut rate = CableRate::default();
        let mut last_ns = 0;
        for index in 0..40 {
            let first = if index == 0 { EXCLUSIVE } else { 1 };
            last_ns = rate.send_time_ns(1_000_000_000, &[first; CHUNK_BYTES]);
            assert_eq!(rate.send_time_ns(1_000_000_000, &[0xf8]), last_ns);
        }
        assert_eq!(last_ns, 1_000_000_000 + (39 * CHUNK_BYTES as u64 - BURST_BYTES) * BYTE_NS);
    }
}
