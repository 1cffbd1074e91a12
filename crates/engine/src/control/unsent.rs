//! Packets with memory that the kernel refuses to carry: they are tried again for a while.
//!
//! The kernel counts the descriptors of a user that were sent and not received, and refuses more
//! than the sender may have open (`ETOOMANYREFS`). A program of the same user can keep them at
//! that limit. Nor is it the receiver's fault if the kernel has no memory for a moment.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use sys::socket::SocketError;

/// How long after a refusal the packets are tried again.
const RETRY_NS: u64 = 20_000_000;
/// How long a packet is tried. The library waits five seconds, and is to learn the reason.
const PATIENCE_NS: u64 = 4_000_000_000;

/// How many packets of a peer wait at most: one for each stream that a program may have. It may ask
/// for streams and end them meanwhile, and each packet keeps a descriptor open.
const WAITING_OF_ONE: usize = proto::limits::STREAMS_OF_PROGRAM;

/// A packet for one peer, with memory.
#[derive(Debug)]
pub(super) struct MemoryPacket {
    pub(super) peer: u64,
    pub(super) packet: Vec<u8>,
    pub(super) memory: Vec<Arc<OwnedFd>>,
    /// What is sent in its place if the kernel carries no descriptors.
    pub(super) refusal: Vec<u8>,
}

impl MemoryPacket {
    fn try_send(
        &self,
        send: impl FnOnce(u64, &[u8], &[BorrowedFd<'_>]) -> Result<(), SocketError>,
    ) -> Result<(), SocketError> {
        let memory: Vec<_> = self.memory.iter().map(AsFd::as_fd).collect();
        send(self.peer, &self.packet, &memory)
    }
}

/// The packets that wait, and when they are tried again.
#[derive(Debug, Default)]
pub(super) struct UnsentPackets {
    /// Each with the time up to which it is tried.
    waiting: Vec<(u64, MemoryPacket)>,
    retry_at_ns: u64,
}

impl UnsentPackets {
    /// Sends a packet, or keeps it if the kernel refuses it for now. Returns false if its peer does
    /// not take it, or too many wait for that.
    pub(super) fn send(
        &mut self,
        packet: MemoryPacket,
        now_ns: u64,
        send: impl FnOnce(u64, &[u8], &[BorrowedFd<'_>]) -> Result<(), SocketError>,
    ) -> bool {
        match packet.try_send(send) {
            Ok(()) => true,
            // MUTATION: unsent.not_tried_again
            Err(SocketError::Io(_)) if self.has_room_for(packet.peer) => {
                self.retry_at_ns = now_ns + RETRY_NS;
                self.waiting.push((now_ns + PATIENCE_NS, packet));
                true
            }
            Err(_) => false,
        }
    }

    /// Returns whether another packet of this peer may wait.
    fn has_room_for(&self, peer: u64) -> bool {
        let own = self.waiting.iter().filter(|(_, packet)| packet.peer == peer);
        // MUTATION: unsent.without_limit
        own.count() < WAITING_OF_ONE
    }

    /// Tries the packets again if it is time for it. Returns the peers that are to be closed: they
    /// do not take theirs, or have waited too long and were sent the refusal.
    pub(super) fn retry(
        &mut self,
        now_ns: u64,
        mut send: impl FnMut(u64, &[u8], &[BorrowedFd<'_>]) -> Result<(), SocketError>,
    ) -> Vec<u64> {
        if self.due_ns().is_none_or(|due_ns| due_ns > now_ns) {
            return Vec::new();
        }
        self.retry_at_ns = now_ns + RETRY_NS;
        let mut closed = Vec::new();
        self.waiting.retain(|(until_ns, packet)| match packet.try_send(&mut send) {
            Ok(()) => false,
            // MUTATION: unsent.tried_for_ever
            Err(SocketError::Io(_)) if now_ns < *until_ns => true,
            Err(error) => {
                if matches!(error, SocketError::Io(_)) {
                    // If this fails as well, the end of the connection has to do.
                    let _ = send(packet.peer, &packet.refusal, &[]);
                }
                closed.push(packet.peer);
                false
            }
        });
        closed
    }

    /// When they are tried next; `None`: none waits.
    pub(super) fn due_ns(&self) -> Option<u64> {
        (!self.waiting.is_empty()).then_some(self.retry_at_ns)
    }

    /// Drops what waits for a peer that has gone.
    pub(super) fn forget(&mut self, peer: u64) {
        self.waiting.retain(|(_, packet)| packet.peer != peer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(peer: u64) -> MemoryPacket {
        let memory = vec![Arc::new(OwnedFd::from(std::fs::File::open("/dev/null").unwrap()))];
        MemoryPacket { peer, packet: b"welcome".into(), memory, refusal: b"refusal".into() }
    }

    fn too_many() -> SocketError {
        SocketError::Io(std::io::Error::from_raw_os_error(109))
    }

    /// Packets that the kernel has refused at time 0, one for each peer.
    fn refused<const N: usize>(peers: [u64; N]) -> UnsentPackets {
        let mut unsent = UnsentPackets::default();
        for peer in peers {
            assert!(unsent.send(packet(peer), 0, |_, _, _| Err(too_many())));
        }
        unsent
    }

    #[test]
    fn a_packet_that_the_kernel_refuses_is_sent_once_when_it_does_not() {
        let mut unsent = refused([7]);
        let mut now_ns = 0;
        for kernel_refuses in [true, true, false] {
            now_ns = unsent.due_ns().unwrap();
            let mut sent = Vec::new();
            let closed = unsent.retry(now_ns, |peer, packet, memory| {
                sent.push((peer, packet.to_vec(), memory.len()));
                if kernel_refuses { Err(too_many()) } else { Ok(()) }
            });
            assert_eq!(sent, [(7, b"welcome".to_vec(), 1)]);
            assert!(closed.is_empty());
        }
        assert_eq!(unsent.due_ns(), None);
        assert!(unsent.retry(now_ns + PATIENCE_NS, |_, _, _| panic!("sent twice")).is_empty());
    }

    #[test]
    fn a_peer_for_which_too_many_packets_wait_gets_no_more() {
        let mut unsent = UnsentPackets::default();
        let mut refuse = |peer| unsent.send(packet(peer), 0, |_, _, _| Err(too_many()));
        assert!((0..WAITING_OF_ONE).all(|_| refuse(1)));
        assert!(!refuse(1) && refuse(2), "another peer has its own share");
    }

    #[test]
    fn nothing_is_tried_before_its_time() {
        let mut unsent = refused([7]);
        assert!(unsent.retry(RETRY_NS - 1, |_, _, _| panic!("too early")).is_empty());
    }

    #[test]
    fn a_peer_that_has_waited_too_long_gets_the_reason_and_is_closed() {
        let mut unsent = refused([1, 2]);
        assert!(unsent.retry(PATIENCE_NS - 1, |_, _, _| Err(too_many())).is_empty());
        let mut sent = Vec::new();
        let closed = unsent.retry(PATIENCE_NS + RETRY_NS, |peer, packet, memory| {
            sent.push((peer, packet.to_vec()));
            if memory.is_empty() { Ok(()) } else { Err(too_many()) }
        });
        assert_eq!(closed, [1, 2]);
        let tried = |peer| [(peer, b"welcome".to_vec()), (peer, b"refusal".to_vec())];
        assert_eq!(sent, [tried(1), tried(2)].concat());
        assert_eq!(unsent.due_ns(), None);
    }

    #[test]
    fn a_peer_that_does_not_take_its_packet_is_closed() {
        let mut unsent = UnsentPackets::default();
        assert!(!unsent.send(packet(1), 0, |_, _, _| Err(SocketError::NotReady)));
        assert_eq!(unsent.due_ns(), None);
        let mut unsent = refused([2, 3]);
        let closed = unsent.retry(RETRY_NS, |peer, _, _| match peer {
            2 => Err(SocketError::Closed),
            _ => Err(too_many()),
        });
        assert_eq!((closed, unsent.due_ns()), (vec![2], Some(2 * RETRY_NS)));
    }

    #[test]
    fn nothing_is_sent_to_a_peer_that_has_gone() {
        let mut unsent = refused([1, 2]);
        unsent.forget(1);
        let mut peers = Vec::new();
        unsent.retry(RETRY_NS, |peer, _, _| {
            peers.push(peer);
            Ok(())
        });
        assert_eq!(peers, [2]);
    }
}
