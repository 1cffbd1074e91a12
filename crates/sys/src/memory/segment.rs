//! A memfd whose size is sealed.

use std::fmt;
use std::io;
use std::ops::{BitOr, Range, RangeInclusive};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{
    MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create,
};
use rustix::io::{Errno, pwrite};

use super::SegmentError;
use super::sealing::seal_in_time;

/// Operations that are excluded for every process (`F_ADD_SEALS` in fcntl(2)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seals(u32);

impl Seals {
    /// No seal.
    pub const NONE: Self = Self(0);
    /// Its size cannot shrink, so that a mapping never faults.
    pub const SHRINK: Self = Self(SealFlags::SHRINK.bits());
    /// Its size cannot grow.
    pub const GROW: Self = Self(SealFlags::GROW.bits());
    /// It can be written only through writable mappings that already exist.
    pub const FUTURE_WRITE: Self = Self(SealFlags::FUTURE_WRITE.bits());
    /// No further seal can be added.
    pub const SEAL: Self = Self(SealFlags::SEAL.bits());
    /// The size is final, as for every [`Segment::create`]d segment.
    pub const SIZE: Self = Self(Self::SHRINK.0 | Self::GROW.0);

    const NAMES: [(Self, &'static str); 4] = [
        (Self::SHRINK, "shrinking"),
        (Self::GROW, "growing"),
        (Self::FUTURE_WRITE, "future writes"),
        (Self::SEAL, "more seals"),
    ];

    /// Returns whether all of `other` are included.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns those of `other` that are not included.
    #[must_use]
    pub const fn missing_of(self, other: Self) -> Self {
        Self(other.0 & !self.0)
    }
}

impl BitOr for Seals {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl fmt::Display for Seals {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (_, name) in Self::NAMES.iter().filter(|(seal, _)| self.contains(*seal)) {
            write!(formatter, "{separator}{name}")?;
            separator = ", ";
        }
        Ok(())
    }
}

/// What the receiver of a segment requires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentRequirements {
    /// The sizes that its use allows, in bytes.
    pub size_bytes: RangeInclusive<u64>,
    /// The seals that it must have; [`Seals::SHRINK`] at least, or its sender can make the mapping
    /// fault.
    pub seals: Seals,
}

impl SegmentRequirements {
    /// Requires exactly this size, which must be final.
    #[must_use]
    pub fn exactly(size_bytes: u64) -> Self {
        Self { size_bytes: size_bytes..=size_bytes, seals: Seals::SIZE }
    }
}

/// Identifies a segment as long as it is open or mapped in any process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentIdentity {
    device: u64,
    inode: u64,
}

impl SegmentIdentity {
    /// Returns the identity of the memfd behind a descriptor, whichever process sent it.
    ///
    /// # Errors
    /// [`SegmentError::Examine`].
    pub fn of(memfd: impl AsFd) -> Result<Self, SegmentError> {
        let status = fstat(memfd).map_err(|errno| SegmentError::Examine(errno.into()))?;
        Ok(Self { device: status.st_dev, inode: status.st_ino })
    }
}

static ZEROES: [u8; 16 << 10] = [0; 16 << 10];

/// An owned memfd and its size.
#[derive(Debug)]
pub struct Segment {
    memfd: OwnedFd,
    size_bytes: usize,
}

impl Segment {
    /// Creates a segment of zeroes. `name` shows in `/proc/PID/maps` and need not be unique.
    ///
    /// # Errors
    /// [`SegmentError::Create`]: size 0, a name over 249 bytes, no descriptor or memory left.
    pub fn create(name: &str, size_bytes: usize) -> Result<Self, SegmentError> {
        let size = size_bytes as u64;
        let failed = |source: io::Error| SegmentError::Create { size_bytes: size, source };
        if size_bytes == 0 {
            return Err(failed(io::ErrorKind::InvalidInput.into()));
        }
        let memfd = make_memfd(name).map_err(|errno| failed(errno.into()))?;
        ftruncate(&memfd, size).map_err(|errno| failed(errno.into()))?;
        let segment = Self { memfd, size_bytes };
        segment.add(Seals::SIZE)?;
        Ok(segment)
    }

    /// Takes ownership of a memfd that another process has sent, if it satisfies `wanted`.
    ///
    /// # Errors
    /// [`SegmentError::NotAMemfd`], [`SegmentError::NotSealed`], [`SegmentError::WrongSize`]; the
    /// descriptor is closed then.
    pub fn receive(memfd: OwnedFd, wanted: &SegmentRequirements) -> Result<Self, SegmentError> {
        let size_bytes = Self::examine(&memfd, wanted)?;
        Ok(Self { memfd, size_bytes })
    }

    /// Returns the size of a memfd that satisfies `wanted`. Takes no ownership: a receiver that
    /// must not be held up by the close of something else examines it first.
    ///
    /// # Errors
    /// Same as [`receive`](Self::receive).
    pub fn examine(memfd: impl AsFd, wanted: &SegmentRequirements) -> Result<usize, SegmentError> {
        // Of what is no memfd, only the kernel is asked: its file system may be a peer's.
        // MUTATION: segment.size_of_any_file
        let seals = match fcntl_get_seals(&memfd) {
            Ok(seals) => Seals(seals.bits()),
            Err(Errno::INVAL | Errno::BADF) => return Err(SegmentError::NotAMemfd),
            Err(errno) => return Err(SegmentError::Examine(errno.into())),
        };
        // Seals before size: a size that is not sealed can still change.
        let missing = seals.missing_of(wanted.seals);
        // MUTATION: segment.missing_seals_accepted
        if missing != Seals::NONE {
            return Err(SegmentError::NotSealed { missing });
        }
        let status = fstat(&memfd).map_err(|errno| SegmentError::Examine(errno.into()))?;
        let found_bytes = status.st_size as u64;
        let wrong_size = || SegmentError::WrongSize {
            found_bytes,
            least_bytes: *wanted.size_bytes.start(),
            most_bytes: *wanted.size_bytes.end(),
        };
        // MUTATION: segment.any_size_accepted
        if found_bytes == 0 || !wanted.size_bytes.contains(&found_bytes) {
            return Err(wrong_size());
        }
        usize::try_from(found_bytes).map_err(|_| wrong_size())
    }

    /// Writes zeroes, which are there already, so that these bytes have memory from now on: a page
    /// costs less than its first touch through a mapping does. Not once writes are sealed.
    ///
    /// # Errors
    /// [`SegmentError::Populate`]: no memory is left.
    pub(super) fn give_memory(&self, bytes: Range<usize>) -> Result<(), SegmentError> {
        let size_bytes = bytes.len() as u64;
        let mut offset = bytes.start;
        while offset < bytes.end {
            let zeroes = &ZEROES[..ZEROES.len().min(bytes.end - offset)];
            match pwrite(&self.memfd, zeroes, offset as u64) {
                // A write of nothing would be for ever.
                Ok(0) => return Ok(()),
                Ok(written) => offset += written,
                Err(Errno::INTR) => {}
                Err(errno) => {
                    return Err(SegmentError::Populate { size_bytes, source: errno.into() });
                }
            }
        }
        Ok(())
    }

    /// Forbids every new writable mapping and every write, also of this process; existing writable
    /// mappings stay writable. To be called by the owner once it has mapped the segment, before
    /// another process gets it.
    ///
    /// # Errors
    /// [`SegmentError::Seal`] if seals are sealed already.
    pub fn seal_future_writes(&self) -> Result<(), SegmentError> {
        self.add(Seals::FUTURE_WRITE)
    }

    /// Forbids further seals, so that no receiver can take an access away from the others.
    ///
    /// # Errors
    /// [`SegmentError::Seal`] if seals are sealed already.
    pub fn seal_seals(&self) -> Result<(), SegmentError> {
        self.add(Seals::SEAL)
    }

    /// Forbids every new writable mapping, and further seals. Processes that have mapped the
    /// segment for writing can go on, but no process can discard its pages: the kernel refuses to
    /// (`EPERM`), by `MADV_REMOVE` on an old mapping as by `fallocate` on any descriptor.
    ///
    /// # Errors
    /// [`SegmentError::Seal`] if a receiver has sealed the seals before, without this one, or
    /// writes to it for [longer](seal_in_time) than is waited for.
    pub(super) fn close_to_writers(memfd: impl AsFd) -> Result<(), SegmentError> {
        // MUTATION: close_to_writers.writes_not_sealed
        let seals = Seals::FUTURE_WRITE | Seals::SEAL;
        match seal_in_time(memfd.as_fd(), SealFlags::from_bits_retain(seals.0)) {
            Ok(()) => Ok(()),
            Err(_)
                if fcntl_get_seals(&memfd).is_ok_and(|has| Seals(has.bits()).contains(seals)) =>
            {
                Ok(())
            }
            Err(source) => Err(SegmentError::Seal { seals, source }),
        }
    }

    /// Returns its size, which is final if it was created here or received with [`Seals::SIZE`].
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.size_bytes
    }

    /// Returns the descriptor, to be sent.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.memfd.as_fd()
    }

    /// Returns the descriptor and gives up its ownership.
    #[must_use]
    pub fn into_fd(self) -> OwnedFd {
        self.memfd
    }

    fn add(&self, seals: Seals) -> Result<(), SegmentError> {
        fcntl_add_seals(&self.memfd, SealFlags::from_bits_retain(seals.0))
            .map_err(|errno| SegmentError::Seal { seals, source: errno.into() })
    }
}

impl AsFd for Segment {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd()
    }
}

fn make_memfd(name: &str) -> Result<OwnedFd, Errno> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    match memfd_create(name, flags | MemfdFlags::NOEXEC_SEAL) {
        // Linux before 6.3 does not know NOEXEC_SEAL.
        Err(Errno::INVAL) => memfd_create(name, flags),
        made => made,
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;

    use super::*;

    fn refused(memfd: OwnedFd, wanted: &SegmentRequirements) -> SegmentError {
        Segment::receive(memfd, wanted).unwrap_err()
    }

    fn unsealed(size_bytes: u64) -> OwnedFd {
        let memfd = make_memfd("unsealed").unwrap();
        ftruncate(&memfd, size_bytes).unwrap();
        memfd
    }

    #[test]
    fn a_created_segment_is_received_as_what_it_is() {
        let segment = Segment::create("whole", 8192).unwrap();
        assert_eq!(segment.size_bytes(), 8192);
        let received =
            Segment::receive(segment.into_fd(), &SegmentRequirements::exactly(8192)).unwrap();
        assert_eq!(received.size_bytes(), 8192);
    }

    #[test]
    fn every_descriptor_of_a_segment_has_the_same_identity() {
        let [one, other] =
            ["same name", "same name"].map(|name| Segment::create(name, 4096).unwrap());
        let again = one.fd().try_clone_to_owned().unwrap();
        let identity = SegmentIdentity::of(&one).unwrap();
        assert_eq!(identity, SegmentIdentity::of(&again).unwrap());
        assert_ne!(identity, SegmentIdentity::of(&other).unwrap());
    }

    #[test]
    fn the_size_of_a_created_segment_is_final() {
        let segment = Segment::create("final", 8192).unwrap();
        for size_bytes in [0, 4096, 12288] {
            assert_eq!(ftruncate(segment.fd(), size_bytes), Err(Errno::PERM));
        }
    }

    #[test]
    fn a_descriptor_that_is_no_memfd_is_refused() {
        let pipe = OwnedFd::from(io::pipe().unwrap().0);
        let device = OwnedFd::from(std::fs::File::open("/dev/null").unwrap());
        for (case, fd) in [("pipe", pipe), ("device", device)] {
            assert!(
                matches!(refused(fd, &SegmentRequirements::exactly(4096)), SegmentError::NotAMemfd),
                "{case}"
            );
        }
    }

    #[test]
    fn a_memfd_that_can_still_shrink_is_refused() {
        let error = refused(unsealed(4096), &SegmentRequirements::exactly(4096));
        assert!(matches!(error, SegmentError::NotSealed { missing: Seals::SIZE }));
        assert_eq!(error.to_string(), "the segment is not sealed against: shrinking, growing");
    }

    #[test]
    fn exactly_the_missing_seals_are_named() {
        let wanted = |seals| SegmentRequirements { size_bytes: 1..=4096, seals };
        let segment = Segment::create("seals", 4096).unwrap();
        let copy = || segment.fd().try_clone_to_owned().unwrap();
        let strict = wanted(Seals::SIZE | Seals::FUTURE_WRITE | Seals::SEAL);
        let both = Seals::FUTURE_WRITE | Seals::SEAL;
        assert!(
            matches!(refused(copy(), &strict), SegmentError::NotSealed { missing } if missing == both)
        );
        segment.seal_future_writes().unwrap();
        assert!(matches!(
            refused(copy(), &strict),
            SegmentError::NotSealed { missing: Seals::SEAL }
        ));
        segment.seal_seals().unwrap();
        Segment::receive(copy(), &strict).unwrap();
        assert!(matches!(segment.seal_future_writes(), Err(SegmentError::Seal { .. })));
    }

    #[test]
    fn a_size_outside_the_range_is_refused() {
        for (found, wanted, accepted) in [
            (4095, 4096..=8192, false),
            (4096, 4096..=8192, true),
            (8192, 4096..=8192, true),
            (8193, 4096..=8192, false),
        ] {
            let segment = Segment::create("size", found).unwrap();
            let received = Segment::receive(
                segment.into_fd(),
                &SegmentRequirements { size_bytes: wanted, seals: Seals::SIZE },
            );
            assert_eq!(received.is_ok(), accepted, "{found}");
            assert!(matches!(received, Ok(_) | Err(SegmentError::WrongSize { .. })), "{found}");
        }
    }

    #[test]
    fn an_empty_segment_is_neither_made_nor_received() {
        assert!(matches!(Segment::create("empty", 0), Err(SegmentError::Create { .. })));
        let empty = unsealed(0);
        fcntl_add_seals(&empty, SealFlags::SHRINK | SealFlags::GROW).unwrap();
        let anything = SegmentRequirements { size_bytes: 0..=u64::MAX, seals: Seals::SIZE };
        assert!(matches!(
            refused(empty, &anything),
            SegmentError::WrongSize { found_bytes: 0, .. }
        ));
    }

    #[test]
    fn a_segment_is_closed_at_exec() {
        let segment = Segment::create("exec", 4096).unwrap();
        let flags = rustix::io::fcntl_getfd(segment.fd()).unwrap();
        assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
    }
}
