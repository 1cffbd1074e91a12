//! What the fuzzer calls.

use crate::front_end::silence::Silence;
use crate::front_end::{FrontEnd, Machine, Origin, Way};
use crate::wire::FrameReader;

/// Bytes of the segment that the program shares.
const SEGMENT_BYTES: usize = 4096;

/// Answers whatever bytes a program sends, as if it had been let in before: the first byte says
/// which version it speaks. It shares segment 0.
pub fn answer(bytes: &[u8]) {
    let Some((version, bytes)) = bytes.split_first() else { return };
    let mut front_end = FrontEnd::new(Silence::stereo(), Machine::default());
    let Some(client) = front_end.connected(Origin { account: 2, way: Way::OwnUser }) else {
        return;
    };
    front_end.examined(client, None, 0);
    // Let in by a packet with that version and no cookie.
    let mut auth = b"\0\0\0\x14\xff\xff\xff\xff\0\0\0\0\0\0\0\0\0\0\0\0".to_vec();
    auth.extend(b"L\0\0\0\x08L\0\0\0\0L\0\0\0");
    auth.extend([13 + version % 23, b'x', 0, 0, 0, 0]);
    let mut frames = FrameReader::<Vec<u8>>::default();
    frames.share_memory();
    if frames.arrived(vec![1; SEGMENT_BYTES]).is_err() {
        return;
    }
    let registration = b"\0\0\0\x0f\xff\xff\xff\xff\0\0\0\0\0\0\0\0\0\0\0\0L\0\0\0\x67\
        L\xff\xff\xff\xffL\0\0\0\0";
    let mut now_ns = 0;
    for piece in [&registration[..], &auth, bytes] {
        let read = frames.push(piece, |frame| {
            now_ns += 1_000_000;
            front_end.frame(client, frame, now_ns);
            front_end.update(now_ns);
            // The program takes what is recorded.
            front_end.take_effects();
            front_end.sent_all(client);
        });
        frames.take_releases().for_each(drop);
        if read.is_err() {
            break;
        }
    }
    let _ = (front_end.deadline(now_ns), front_end.take_effects());
    front_end.disconnected(client, now_ns);
}
