//! Splits the byte stream of a raw MIDI device into messages.

use super::messages::{Assembly, END_OF_EXCLUSIVE, EXCLUSIVE};

/// From this status on, a byte is a message by itself, even inside another message.
const FIRST_REAL_TIME: u8 = 0xf8;
/// From this status on, a message has no channel, and running status does not apply.
const FIRST_COMMON: u8 = 0xf0;
const FIRST_STATUS: u8 = 0x80;

/// Splits bytes into messages, each with its status byte.
#[derive(Debug, Default)]
pub(super) struct Stream {
    /// The current message. Its status byte is also that of the next one if that has none (running
    /// status); 0: there is none.
    message: [u8; 3],
    /// Data bytes of the current message so far.
    has: usize,
    is_exclusive: bool,
    exclusive: Assembly,
}

/// Returns how many data bytes follow a status byte; `None` if that is undefined.
fn data_bytes(status: u8) -> Option<usize> {
    match status {
        0x80..=0xbf | 0xe0..=0xef | 0xf2 => Some(2),
        0xc0..=0xdf | 0xf1 | 0xf3 => Some(1),
        0xf6 => Some(0),
        _ => None,
    }
}

impl Stream {
    /// Takes bytes, and calls back with each complete message, or with as much of a long one as
    /// fits an event.
    pub(super) fn add(&mut self, bytes: &[u8], mut complete: impl FnMut(&[u8])) {
        for byte in bytes {
            match *byte {
                FIRST_REAL_TIME.. => complete(&[*byte]),
                END_OF_EXCLUSIVE if self.is_exclusive => {
                    self.is_exclusive = false;
                    self.exclusive.add(&[*byte], &mut complete);
                }
                EXCLUSIVE => {
                    self.begin(0);
                    self.is_exclusive = true;
                    self.exclusive.add(&[*byte], &mut complete);
                }
                // A preceding System Exclusive message has lost its end.
                FIRST_STATUS.. => {
                    self.begin(*byte);
                    self.give_if_complete(&mut complete);
                }
                _ if self.is_exclusive => self.exclusive.add(&[*byte], &mut complete),
                _ => self.add_data(*byte, &mut complete),
            }
        }
    }

    fn begin(&mut self, status: u8) {
        self.is_exclusive = false;
        self.message = [status, 0, 0];
        self.has = 0;
    }

    fn add_data(&mut self, byte: u8, complete: impl FnMut(&[u8])) {
        let [status, first, second] = &mut self.message;
        if data_bytes(*status).is_none() {
            // The byte belongs to no message: a cable was just plugged in, or bytes were lost.
            return;
        }
        *(if self.has == 0 { first } else { second }) = byte;
        self.has += 1;
        self.give_if_complete(complete);
    }

    fn give_if_complete(&mut self, mut complete: impl FnMut(&[u8])) {
        let [status, ..] = self.message;
        if data_bytes(status) != Some(self.has) {
            return;
        }
        complete(self.message.get(..=self.has).unwrap_or_default());
        self.begin(if status < FIRST_COMMON { status } else { 0 });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::midi::messages::PIECE_BYTES;

    fn heard(pieces: &[&[u8]]) -> Vec<Vec<u8>> {
        let (mut stream, mut heard) = (Stream::default(), Vec::new());
        for piece in pieces {
            stream.add(piece, |message| heard.push(message.to_vec()));
        }
        heard
    }

    #[test]
    fn running_status_applies_to_channel_messages() {
        let bytes = [0x90, 60, 64, 62, 65, 0xc3, 5, 6, 0x80, 60, 0];
        let expected: [&[u8]; 5] =
            [&[0x90, 60, 64], &[0x90, 62, 65], &[0xc3, 5], &[0xc3, 6], &[0x80, 60, 0]];
        assert_eq!(heard(&[&bytes]), expected);
        let singly: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(heard(&singly), expected);
    }

    #[test]
    fn real_time_bytes_pass_inside_other_messages() {
        let bytes = [0xf8, 0x90, 0xf8, 60, 0xfa, 64, 0xf0, 1, 0xfe, 2, 0xf7, 0xff];
        let expected: [&[u8]; 7] =
            [&[0xf8], &[0xf8], &[0xfa], &[0x90, 60, 64], &[0xfe], &[0xf0, 1, 2, 0xf7], &[0xff]];
        assert_eq!(heard(&[&bytes]), expected);
    }

    #[test]
    fn bytes_outside_of_messages_are_dropped() {
        let none: [&[u8]; 0] = [];
        assert_eq!(heard(&[&[1, 2, 3]]), none, "nothing began");
        assert_eq!(heard(&[&[0xf7]]), none, "an end without a start");
        assert_eq!(heard(&[&[0xf4, 1, 0xf5, 2]]), none, "messages that no standard has");
        assert_eq!(heard(&[&[0xf0, 1, 2, 0x90, 60, 64]]), [&[0x90, 60, 64]], "one without its end");
        assert_eq!(heard(&[&[0x90, 60, 0x91, 61, 1]]), [&[0x91, 61, 1]], "one that was broken off");
        let common: [&[u8]; 3] = [&[0x90, 1, 2], &[0xf2, 3, 4], &[0xf6]];
        assert_eq!(
            heard(&[&[0x90, 1, 2, 0xf2, 3, 4, 5, 6, 0xf6, 7, 8]]),
            common,
            "no status holds after these"
        );
        assert_eq!(
            heard(&[&[0x90, 1, 2, 0xf0, 0xf7, 3, 4]]).len(),
            2,
            "nor after System Exclusive"
        );
    }

    #[test]
    fn system_exclusive_of_any_length_comes_in_pieces_that_fit() {
        let data = (0..40_000_u32).map(|index| (index % 128) as u8);
        let long: Vec<u8> = [0xf0].into_iter().chain(data).chain([0xf7]).collect();
        let chunks: Vec<&[u8]> = long.chunks(100).collect();
        let pieces = heard(&chunks);
        assert_eq!(pieces.concat(), long);
        assert!(pieces.iter().all(|piece| piece.len() <= PIECE_BYTES) && pieces.len() == 3);
    }

    /// Whole messages that are no real-time ones.
    fn messages() -> impl Strategy<Value = Vec<Vec<u8>>> {
        let data = 0..0x80_u8;
        let of_a_channel =
            (0x80..0xf0_u8, data.clone(), data.clone()).prop_map(|(status, first, second)| {
                let wanted = data_bytes(status).unwrap_or_default();
                [status, first, second].into_iter().take(1 + wanted).collect::<Vec<u8>>()
            });
        let common = prop_oneof![
            Just(vec![0xf6]),
            data.clone().prop_map(|value| vec![0xf1, value]),
            (data.clone(), data.clone()).prop_map(|(low, high)| vec![0xf2, low, high]),
        ];
        let exclusive = prop::collection::vec(data, 0..300)
            .prop_map(|data| [0xf0].into_iter().chain(data).chain([0xf7]).collect::<Vec<u8>>());
        prop::collection::vec(prop_oneof![6 => of_a_channel, 1 => common, 1 => exclusive], 0..40)
    }

    proptest! {
        #[test]
        fn whatever_is_sent_is_heard_in_whatever_pieces_it_comes(
            messages in messages(),
            is_shortened in any::<bool>(),
            real_time in prop::collection::vec((any::<prop::sample::Index>(), 0xf8..=0xff_u8), 0..20),
            piece in 1..50_usize,
        ) {
            let (mut bytes, mut status) = (Vec::new(), 0);
            for message in &messages {
                let repeats = is_shortened && message[0] == status;
                bytes.extend(&message[usize::from(repeats)..]);
                status = if message[0] < FIRST_COMMON { message[0] } else { 0 };
            }
            for (index, byte) in &real_time {
                bytes.insert(index.index(bytes.len() + 1), *byte);
            }
            let pieces: Vec<&[u8]> = bytes.chunks(piece).collect();
            let (singles, others): (Vec<_>, Vec<_>) =
                heard(&pieces).into_iter().partition(|message| message[0] >= FIRST_REAL_TIME);
            prop_assert_eq!(others, messages);
            prop_assert_eq!(singles.len(), real_time.len());
        }

        #[test]
        fn whatever_bytes_come_what_is_heard_are_whole_messages(
            bytes in prop::collection::vec(prop_oneof![any::<u8>(), 0x80..=0xff_u8], 0..500)
        ) {
            for message in heard(&[&bytes]) {
                let (status, rest) = (message[0], &message[1..]);
                let is_whole = match status {
                    EXCLUSIVE => rest.last() == Some(&END_OF_EXCLUSIVE),
                    FIRST_REAL_TIME.. => rest.is_empty(),
                    _ => data_bytes(status) == Some(rest.len()),
                };
                let data = rest.strip_suffix(&[END_OF_EXCLUSIVE]).unwrap_or(rest);
                prop_assert!(is_whole && data.iter().all(|byte| *byte < FIRST_STATUS), "{:x?}", message);
            }
        }
    }
}
