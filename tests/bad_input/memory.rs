//! Memory that a client offers for its samples: the server accepts only memory that no process can
//! shrink.

use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};

use proto::request::Request;
use rt::shm::SLAB_BYTES;
use rustix::fs::{
    MemfdFlags, Mode, OFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create, open,
};
use sys::memory::{OwnSlab, Segment};

use crate::wire::{ByHand, assert_says, in_modes};

fn memfd(size_bytes: usize, seals: SealFlags) -> OwnedFd {
    let memfd =
        memfd_create("bad", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).expect("memory");
    ftruncate(&memfd, size_bytes as u64).expect("memory");
    fcntl_add_seals(&memfd, seals).expect("fresh");
    memfd
}

fn read_only(memfd: &OwnedFd) -> OwnedFd {
    use std::os::fd::AsRawFd;
    let path = format!("/proc/self/fd/{}", memfd.as_raw_fd());
    open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).expect("its own memory")
}

#[test]
fn memory_that_its_owner_could_still_shrink_is_no_slab() {
    let size = SealFlags::SHRINK | SealFlags::GROW;
    let all = size | SealFlags::FUTURE_WRITE;
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(&vec![0; SLAB_BYTES]).expect("room");
    let foreign = Segment::create("engine", SLAB_BYTES).expect("memory");
    foreign.seal_future_writes().expect("not sealed yet");
    let (pipe, _writer) = std::io::pipe().expect("a pipe");
    let unsealed = memfd(SLAB_BYTES, SealFlags::empty());
    let cases: [(&str, OwnedFd, &str); 11] = [
        (
            "read-only and unsealed",
            read_only(&unsealed),
            "not sealed against: shrinking, growing, future writes",
        ),
        ("unsealed", unsealed, "not sealed against: shrinking, growing, future writes"),
        (
            "it can shrink",
            memfd(SLAB_BYTES, SealFlags::GROW | SealFlags::FUTURE_WRITE),
            "against: shrinking",
        ),
        ("others can write", memfd(SLAB_BYTES, size), "not sealed against: future writes"),
        ("too small", memfd(4096, all), "has 4096 bytes"),
        ("empty", memfd(0, all), "has 0 bytes"),
        ("too large", memfd(SLAB_BYTES + 4096, all), "bytes, not"),
        ("all zeroes", memfd(SLAB_BYTES, all), "not one of consort's"),
        ("another segment", foreign.into_fd(), "not one of consort's"),
        ("a file", file.into(), "memory that was offered cannot be used"),
        ("a pipe", pipe.into(), "not a memfd"),
    ];
    in_modes(|server| {
        for (case, descriptor, word) in &cases {
            let mut client = ByHand::open(server, "bad");
            let text = client.refusal_with(Request::AddSlab, &[descriptor.as_fd()]);
            assert_says(case, &text, &["memory that was offered cannot be used", word]);
            // What has the seals and the size of a slab is closed quickly.
            if !word.contains("not one of consort's") {
                client.wire.assert_closed();
            }
        }
        ByHand::open(server, "good").add_slab();
    });
}

#[test]
fn a_slab_is_exactly_one_descriptor() {
    in_modes(|server| {
        let slab = OwnSlab::create().expect("memory");
        let descriptor = slab.segment().fd();
        for (count, word) in [(0, "one descriptor is expected, 0 came"), (2, "2 came")] {
            let mut client = ByHand::open(server, "bad");
            let text = client.refusal_with(Request::AddSlab, &vec![descriptor; count]);
            assert_says("a slab", &text, &[word]);
            if count > 0 {
                client.wire.assert_closed();
            }
        }
    });
}
