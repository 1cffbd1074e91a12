//! Messages with their timestamps, as bytes in a ring: only whole ones, of any length that fits.

use rtrb::{Consumer, Producer};

/// Bytes before a message: its timestamp or frame, and its length.
const HEADER: usize = size_of::<u64>() + size_of::<u32>();

/// Pushes a message into the ring; returns false if there is no room. Thread: cycle.
pub(super) fn push(ring: &mut Producer<u8>, at: u64, message: &[u8]) -> bool {
    let (at, length) = (at.to_le_bytes(), (message.len() as u32).to_le_bytes());
    let Ok(mut chunk) = ring.write_chunk(HEADER + message.len()) else { return false };
    let (first, second) = chunk.as_mut_slices();
    let target = first.iter_mut().chain(second);
    for (place, byte) in target.zip(at.iter().chain(&length).chain(message)) {
        *place = *byte;
    }
    chunk.commit_all();
    true
}

/// Returns timestamp and length of the next message, which stays in the ring. Thread: cycle.
pub(super) fn next(ring: &mut Consumer<u8>) -> Option<(u64, usize)> {
    let chunk = ring.read_chunk(HEADER).ok()?;
    let mut header = [0; HEADER];
    let (first, second) = chunk.as_slices();
    for (place, byte) in header.iter_mut().zip(first.iter().chain(second)) {
        *place = *byte;
    }
    let (at, length) = header.split_at(size_of::<u64>());
    let at = u64::from_le_bytes(at.try_into().ok()?);
    Some((at, u32::from_le_bytes(length.try_into().ok()?) as usize))
}

/// Removes the next message, of `length` bytes, from the ring; returns as much of it as fits
/// `room`. Thread: cycle.
pub(super) fn take<'a>(ring: &mut Consumer<u8>, length: usize, room: &'a mut [u8]) -> &'a [u8] {
    let Ok(chunk) = ring.read_chunk(HEADER + length) else { return &[] };
    let (first, second) = chunk.as_slices();
    let length = length.min(room.len());
    let message = first.iter().chain(second).skip(HEADER);
    for (place, byte) in room.iter_mut().zip(message).take(length) {
        *place = *byte;
    }
    chunk.commit_all();
    room.get(..length).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use rtrb::RingBuffer;

    use super::*;

    #[test]
    fn messages_come_out_as_they_went_in_also_over_the_end_of_the_ring() {
        let (mut producer, mut consumer) = RingBuffer::new(40);
        let mut room = [0; 32];
        for round in 0..50_u64 {
            let message: Vec<u8> = (0..round % 17).map(|byte| byte as u8).collect();
            assert!(push(&mut producer, round, &message));
            assert!(
                !push(&mut producer, round, &[0; 32]),
                "a message that does not fit is refused"
            );
            let (at, length) = next(&mut consumer).unwrap();
            assert_eq!((at, length), (round, message.len()));
            assert_eq!(take(&mut consumer, length, &mut room), message);
            assert_eq!(next(&mut consumer), None);
        }
    }
}
