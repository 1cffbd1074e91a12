//! Memory of another process that is read and never mapped.
//!
//! Its owner may change it, cut it short or discard its pages at any time: reading then finds other
//! bytes or fewer, where a mapping would end the reader.

use std::io;
use std::os::fd::AsFd;

use rustix::buffer::spare_capacity;
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

/// Returns `length` bytes from `offset` on, or those that there are: fewer if the segment ends
/// before.
///
/// # Errors
/// Those of `pread`: it is not open for reading.
pub fn read_unmapped(memfd: impl AsFd, offset: u64, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(length);
    while bytes.len() < length {
        let at = offset.saturating_add(bytes.len() as u64);
        if retry_on_intr(|| pread(&memfd, spare_capacity(&mut bytes), at))? == 0 {
            break;
        }
    }
    // There may be more room than was asked for.
    bytes.truncate(length);
    Ok(bytes)
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
        assert_eq!(read_unmapped(&memfd, 2, 4).unwrap(), b"2345");
        ftruncate(&memfd, 3).unwrap();
        assert_eq!(read_unmapped(&memfd, 2, 4).unwrap(), b"2");
        assert_eq!(read_unmapped(&memfd, 1 << 40, 4).unwrap(), b"");
        assert!(read_unmapped(&memfd, u64::MAX, 4).is_err());
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
