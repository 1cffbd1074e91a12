//! Sound to and from other machines without a connection: RTP packets, mostly to a group, and
//! announcements of what is sent there, as with PulseAudio's `module-rtp-send` and
//! `module-rtp-recv`.
//!
//! Both ends are programs of the front end, with streams that users see and move. What comes out of
//! the network is read by [`packet`], [`announcement`] and [`description`], put in order by
//! [`order`], and bounded there and in [`sessions`].

mod announcement;
mod arrivals;
mod description;
mod order;
mod packet;
mod receive;
mod send;
mod sessions;
mod source;

pub(crate) use receive::{ReceiveOptions, start as receive};
pub(crate) use send::{SendOptions, start as send};

/// Where sessions are announced.
const ANNOUNCEMENTS_PORT: u16 = 9875;

/// Takes any datagrams, as from the network: the first byte says how long the first one is.
#[cfg(fuzzing)]
pub(crate) fn take_any(mut bytes: &[u8]) {
    let mut order = order::Order::new(4, 1 << 12);
    let mut sessions = sessions::Sessions::default();
    let mut now_ns = 0;
    while let Some((length, rest)) = bytes.split_first() {
        let (datagram, rest) = rest.split_at(rest.len().min(2 * usize::from(*length)));
        bytes = rest;
        now_ns += 1_000_000_000;
        for change in sessions.heard(now_ns, [127, 0, 0, 1].into(), datagram) {
            if let sessions::Change::Begin(_, description) = change {
                let again = description.write(1, 0);
                assert_eq!(description::Description::read(&again), Some(description));
            }
        }
        if let Some(packet) = packet::Packet::read(datagram) {
            order.push(&packet, length % 2 == 0, |piece| match piece {
                order::Piece::Samples(samples) => assert!(samples.len() % 4 == 0),
                order::Piece::Lost(frames) => assert!(frames <= 1 << 12),
                order::Piece::Jump => {}
            });
        }
        sessions.expire(now_ns);
    }
    order.flush(|_| {});
}
