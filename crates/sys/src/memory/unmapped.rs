//! Memory of another process that is read and never mapped.
//!
//! Its owner may change it, cut it short or discard its pages at any time: reading then finds other
//! bytes or fewer, where a mapping would end the reader.

use std::io;
use std::os::fd::AsFd;

use rustix::io::{pread, retry_on_intr};

use super::{Seals, Segment, SegmentError, SegmentRequirements};

/// The most bytes of a segment that is [examined](examine_unmapped).
pub const MAX_UNMAPPED_BYTES: u64 = 1 << 30;

/// Returns whether a descriptor that another process has sent can be read without waiting for
/// anyone: a memfd, or a file that is in memory all the same (tmpfs), of 1 to
/// [`MAX_UNMAPPED_BYTES`] bytes. No seals are needed.
///
/// # Errors
/// [`SegmentError::NotAMemfd`], [`SegmentError::WrongSize`].
pub fn examine_unmapped(memfd: impl AsFd) -> Result<(), SegmentError> {
    let wanted = SegmentRequirements { size_bytes: 1..=MAX_UNMAPPED_BYTES, seals: Seals::NONE };
    Segment::examine(memfd, &wanted).map(drop)
}

/// Reads bytes from `offset` on; returns how many there were: fewer than `into` has room for if the
/// segment ends before.
///
/// # Errors
/// Those of `pread`: it is not open for reading.
pub fn read_unmapped(memfd: impl AsFd, offset: u64, into: &mut [u8]) -> io::Result<usize> {
    let mut read = 0;
    while read < into.len() {
        let at = offset.saturating_add(read as u64);
        match retry_on_intr(|| pread(&memfd, &mut into[read..], at))? {
            0 => break,
            bytes => read += bytes,
        }
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
    use rustix::io::write;

    use super::*;

    #[test]
    fn a_segment_that_its_owner_cuts_short_is_read_up_to_its_end() {
        let memfd = memfd_create("consort-test", MemfdFlags::CLOEXEC).unwrap();
        write(&memfd, b"0123456789").unwrap();
        examine_unmapped(&memfd).unwrap();
        let read = |offset| {
            let mut bytes = [0; 4];
            read_unmapped(&memfd, offset, &mut bytes).map(|read| bytes[..read].to_vec())
        };
        assert_eq!(read(2).unwrap(), b"2345");
        ftruncate(&memfd, 3).unwrap();
        assert_eq!(read(2).unwrap(), b"2");
        assert_eq!(read(1 << 40).unwrap(), b"");
        assert!(read(u64::MAX).is_err());
    }

    #[test]
    fn what_is_not_in_memory_or_of_another_size_is_refused() {
        let (reader, _writer) = io::pipe().unwrap();
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(matches!(examine_unmapped(&reader), Err(SegmentError::NotAMemfd)));
        assert!(matches!(examine_unmapped(&socket), Err(SegmentError::NotAMemfd)));
        let device = File::open("/dev/zero").unwrap();
        assert!(matches!(examine_unmapped(&device), Err(SegmentError::NotAMemfd)));
        let memfd = memfd_create("consort-test", MemfdFlags::CLOEXEC).unwrap();
        assert!(matches!(examine_unmapped(&memfd), Err(SegmentError::WrongSize { .. })));
        ftruncate(&memfd, MAX_UNMAPPED_BYTES + 1).unwrap();
        assert!(matches!(examine_unmapped(&memfd), Err(SegmentError::WrongSize { .. })));
        ftruncate(&memfd, MAX_UNMAPPED_BYTES).unwrap();
        examine_unmapped(&memfd).unwrap();
    }
}
