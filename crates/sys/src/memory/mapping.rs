//! A segment in this process's address space.

use std::ffi::c_void;
use std::fmt;
use std::io;
use std::ops::Range;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU8, Ordering};

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, MlockFlags, ProtFlags, madvise, mlock_with, mmap, munmap};

use super::pin::Pin;
use super::{Segment, SegmentError, page_bytes};

/// What this process may do through a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Reading; a write raises `SIGSEGV`.
    ReadOnly,
    /// Reading and writing.
    Writable,
}

impl fmt::Display for Access {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::ReadOnly => "read-only",
            Self::Writable => "writable",
        })
    }
}

/// When the pages of a mapping are populated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prefault {
    /// All of them before the call returns, so that no later access faults.
    Now,
    /// Each when it is first touched.
    OnDemand,
}

/// A whole segment; unmapped on drop, and absent from forked children.
///
/// Other processes may write to it at any time: its bytes must be accessed atomically or through
/// raw pointers, never through a plain reference. It outlives the [`Segment`] that it was created
/// from.
#[derive(Debug)]
pub struct Mapping {
    base: NonNull<c_void>,
    len: usize,
    access: Access,
    /// What keeps its pages from being merged.
    pin: Pin,
}

// SAFETY: an address range is not bound to a thread; what is done with the bytes is up to the code
// that dereferences `base`, which is unsafe.
unsafe impl Send for Mapping {}
// SAFETY: as above: `&Mapping` only yields addresses and numbers.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `segment` for reading and writing.
    ///
    /// # Errors
    /// [`SegmentError::Map`], with `EPERM` once the segment is sealed against future writes.
    pub fn read_write(segment: &Segment, prefault: Prefault) -> Result<Self, SegmentError> {
        Self::new(segment, Access::Writable, prefault)
    }

    /// Maps `segment` for reading. A write through it raises `SIGSEGV`.
    ///
    /// # Errors
    /// [`SegmentError::Map`].
    pub fn read_only(segment: &Segment, prefault: Prefault) -> Result<Self, SegmentError> {
        Self::new(segment, Access::ReadOnly, prefault)
    }

    pub(super) fn new(
        segment: &Segment,
        access: Access,
        prefault: Prefault,
    ) -> Result<Self, SegmentError> {
        let flags = match prefault {
            Prefault::Now => MapFlags::SHARED | MapFlags::POPULATE,
            Prefault::OnDemand => MapFlags::SHARED,
        };
        let len = segment.size_bytes();
        let protection = match access {
            Access::ReadOnly => ProtFlags::READ,
            Access::Writable => ProtFlags::READ | ProtFlags::WRITE,
        };
        let failed =
            |source: io::Error| SegmentError::Map { size_bytes: len as u64, access, source };
        // SAFETY: a null hint without FIXED replaces no existing mapping.
        let base = unsafe { mmap(ptr::null_mut(), len, protection, flags, segment.fd(), 0) }
            .map_err(|errno| failed(errno.into()))?;
        let base = NonNull::new(base).ok_or_else(|| failed(io::ErrorKind::Other.into()))?;
        let mapping = Self { base, len, access, pin: Pin::none() };
        // SAFETY: the range is the mapping that we have just made; the advice changes only what a
        // fork copies.
        unsafe { madvise(mapping.base.as_ptr(), len, Advice::LinuxDontFork) }
            .map_err(|errno| failed(errno.into()))?;
        if prefault == Prefault::Now {
            // `MapFlags::POPULATE` does not say what it could not populate.
            mapping.populate(0..len)?;
        }
        Ok(mapping)
    }

    /// Returns its first byte, at the start of a page.
    #[must_use]
    pub fn base(&self) -> NonNull<u8> {
        self.base.cast()
    }

    /// Returns its size in bytes, which is the segment's.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "an empty mapping cannot be made")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns the permitted access.
    #[must_use]
    pub fn access(&self) -> Access {
        self.access
    }

    /// Populates the pages of a range of bytes, so that no later access to them faults. Where the
    /// kernel cannot do so (before Linux 5.14) it reads each of them, and an error is a `SIGBUS` of
    /// the calling thread.
    ///
    /// # Errors
    /// [`SegmentError::Populate`]: the kernel has no memory for a page that was never written.
    pub(super) fn populate(&self, bytes: Range<usize>) -> Result<(), SegmentError> {
        match self.advise_to_populate(bytes.clone()) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                self.touch(self.whole_pages(bytes));
                Ok(())
            }
            Err(source) => {
                let size_bytes = self.whole_pages(bytes).len().next_multiple_of(page_bytes());
                Err(SegmentError::Populate { size_bytes: size_bytes as u64, source })
            }
        }
    }

    /// Populates the pages of a range of bytes, so that no later access to them faults.
    ///
    /// # Errors
    /// `EINVAL` before Linux 5.14; `ENOMEM`.
    pub(super) fn advise_to_populate(&self, bytes: Range<usize>) -> io::Result<()> {
        let bytes = self.whole_pages(bytes);
        let advice = match self.access {
            Access::ReadOnly => Advice::LinuxPopulateRead,
            Access::Writable => Advice::LinuxPopulateWrite,
        };
        loop {
            // SAFETY: `whole_pages` keeps to our own mapping, whose content the advice does not
            // change.
            let populated =
                unsafe { madvise(self.base.as_ptr().byte_add(bytes.start), bytes.len(), advice) };
            match populated {
                Ok(()) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// Reads one byte of each page of a range of whole pages.
    fn touch(&self, bytes: Range<usize>) {
        for offset in bytes.step_by(page_bytes()) {
            // SAFETY: within our own mapping; an atomic access is no data race with other
            // processes.
            unsafe { self.base.byte_add(offset).cast::<AtomicU8>().as_ref() }
                .load(Ordering::Relaxed);
        }
    }

    /// Returns the pages of this mapping in which a range of bytes lies, as bytes.
    fn whole_pages(&self, bytes: Range<usize>) -> Range<usize> {
        let page = page_bytes();
        let end = bytes.end.min(self.len);
        bytes.start.min(end) / page * page..end
    }

    /// Populates the pages for which `segment`, which was mapped, has memory, so that no later read
    /// of them faults. Does nothing if the kernel cannot do so (before Linux 5.14): the first read
    /// of each page faults then.
    pub(super) fn populate_written(&self, segment: &Segment) {
        let mut end = 0;
        // The descriptor's position is used by nothing else.
        while let Ok(begin) = seek(segment.fd(), SeekFrom::Data(end)) {
            let Ok(hole) = seek(segment.fd(), SeekFrom::Hole(begin)) else { return };
            end = hole.min(self.len as u64);
            if begin >= end {
                return;
            }
            // SAFETY: within our own mapping, whose content the advice does not change.
            let populated = unsafe {
                let base = self.base.as_ptr().byte_add(begin as usize);
                madvise(base, (end - begin) as usize, Advice::LinuxPopulateRead)
            };
            if populated.is_err() {
                return;
            }
        }
    }

    /// Keeps the kernel from merging the segment's pages for any process, until the mapping is
    /// dropped. Best effort: where no descriptor is left, or the user has too many pipes, they are
    /// as they were. Not within a cycle.
    pub(super) fn pin(&self) {
        // MUTATION: mapping.pages_not_pinned
        let _ = self.pin.hold(self.base(), self.len);
    }

    /// Keeps each page in memory from its first touch on, until the mapping is dropped.
    ///
    /// # Errors
    /// `OutOfMemory` or `PermissionDenied` if the limit
    /// ([`memlock_limit`](crate::process::memlock_limit)) is too small; the mapping works all the
    /// same.
    pub fn lock_on_fault(&self) -> io::Result<()> {
        self.lock_range_on_fault(0..self.len)
    }

    /// Same as [`lock_on_fault`](Self::lock_on_fault), for the pages of a range of bytes.
    ///
    /// # Errors
    /// See [`lock_on_fault`](Self::lock_on_fault).
    pub(super) fn lock_range_on_fault(&self, bytes: Range<usize>) -> io::Result<()> {
        let bytes = self.whole_pages(bytes);
        // SAFETY: `whole_pages` keeps to our own mapping; locking changes none of its content.
        let locked = unsafe {
            let base = self.base.as_ptr().byte_add(bytes.start);
            mlock_with(base, bytes.len(), MlockFlags::ONFAULT)
        };
        Ok(locked?)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range is our own mapping, and code that derived a pointer from `base` has
        // promised (in its own unsafe code) not to use it beyond our life. It cannot fail for a
        // range that mmap returned.
        let _ = unsafe { munmap(self.base.as_ptr(), self.len) };
    }
}

#[cfg(test)]
mod tests {
    use not_run::not_run;
    use rustix::io::Errno;
    use rustix::mm::{MsyncFlags, msync};

    use super::super::pin::merge;
    use super::*;
    use crate::forked;

    fn store(mapping: &Mapping, value: u8) {
        // SAFETY: the first byte of a writable mapping of this test's own.
        unsafe { mapping.base().as_ptr().write_volatile(value) };
    }

    fn load(mapping: &Mapping) -> u8 {
        // SAFETY: the first byte of a live mapping.
        unsafe { mapping.base().as_ptr().read_volatile() }
    }

    fn refusal(result: Result<Mapping, SegmentError>) -> Option<i32> {
        match result {
            Err(SegmentError::Map { source, .. }) => source.raw_os_error(),
            _ => None,
        }
    }

    #[test]
    fn one_mapping_reads_what_another_wrote() {
        let segment = Segment::create("two", 4096).unwrap();
        let writer = Mapping::read_write(&segment, Prefault::OnDemand).unwrap();
        let reader = Mapping::read_only(&segment, Prefault::Now).unwrap();
        drop(segment);
        store(&writer, 42);
        assert_eq!(load(&reader), 42);
        assert_eq!((writer.access(), reader.access()), (Access::Writable, Access::ReadOnly));
    }

    #[test]
    fn after_the_seal_only_the_owner_s_mapping_can_write() {
        let segment = Segment::create("sealed", 4096).unwrap();
        let owner = Mapping::read_write(&segment, Prefault::Now).unwrap();
        segment.seal_future_writes().unwrap();
        let later = Mapping::read_write(&segment, Prefault::Now);
        assert_eq!(refusal(later), Some(libc::EPERM));
        assert_eq!(rustix::io::write(segment.fd(), b"x"), Err(Errno::PERM));
        let reader = Mapping::read_only(&segment, Prefault::Now).unwrap();
        // SAFETY: the range is this test's own mapping; the call is expected to change nothing.
        let raised = unsafe {
            rustix::mm::mprotect(reader.base.as_ptr(), reader.len, rustix::mm::MprotectFlags::WRITE)
        };
        assert_eq!(raised, Err(Errno::ACCESS));
        store(&owner, 7);
        assert_eq!(load(&reader), 7);
    }

    #[test]
    fn a_mapping_is_not_inherited_by_a_fork() {
        let segment = Segment::create("fork", 4096).unwrap();
        let mapping = Mapping::read_write(&segment, Prefault::Now).unwrap();
        // SAFETY: asks only whether the range is mapped, which msync answers with ENOMEM if it is
        // not.
        let is_mapped =
            || unsafe { msync(mapping.base.as_ptr(), mapping.len, MsyncFlags::ASYNC) }.is_ok();
        assert!(is_mapped());
        assert_eq!(
            forked::exit_status(|| is_mapped().into()),
            0,
            "the child still had the mapping"
        );
        assert!(is_mapped());
    }

    #[test]
    fn a_dropped_mapping_is_unmapped() {
        let segment = Segment::create("drop-me-consort-test", 4096).unwrap();
        let mapped =
            || std::fs::read_to_string("/proc/self/maps").unwrap().contains("drop-me-consort-test");
        let mapping = Mapping::read_only(&segment, Prefault::OnDemand).unwrap();
        assert!(mapped());
        drop(mapping);
        assert!(!mapped());
    }

    /// Returns `Rss` and `Locked` in KiB of the mapping of a segment named `name`.
    fn resident_and_locked(name: &str) -> [u64; 2] {
        let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut lines = smaps.lines().skip_while(|line| !line.contains(name)).skip(1);
        ["Rss:", "Locked:"].map(|field| {
            let line = lines.find_map(|line| line.strip_prefix(field)).unwrap();
            line.trim().trim_end_matches(" kB").parse().unwrap()
        })
    }

    #[test]
    fn a_prefaulted_mapping_is_resident_before_it_is_touched() {
        for (name, prefault, kib) in
            [("consort-test-now", Prefault::Now, 64), ("consort-test-later", Prefault::OnDemand, 0)]
        {
            let segment = Segment::create(name, 64 * 1024).unwrap();
            let _mapping = Mapping::read_only(&segment, prefault).unwrap();
            assert_eq!(resident_and_locked(name)[0], kib, "{name}");
        }
    }

    #[test]
    fn no_page_of_a_closed_segment_can_be_discarded() {
        let segment = Segment::create("discard", 8192).unwrap();
        let owner = Mapping::read_write(&segment, Prefault::Now).unwrap();
        let writer = Mapping::read_write(&segment, Prefault::Now).unwrap();
        let discard = || {
            // SAFETY: the range is this test's own mapping; only `load` reads it.
            let removed = unsafe { madvise(writer.base.as_ptr(), 4096, Advice::LinuxRemove) };
            let hole =
                rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
            [removed, rustix::fs::fallocate(segment.fd(), hole, 0, 4096)]
        };
        store(&owner, 1);
        assert_eq!((discard(), load(&owner)), ([Ok(()); 2], 0), "an open segment");
        Segment::close_to_writers(segment.fd()).unwrap();
        store(&writer, 2);
        assert_eq!((discard(), load(&owner)), ([Err(Errno::PERM); 2], 2));
        Segment::close_to_writers(segment.fd()).expect("it is closed");
    }

    #[test]
    fn the_kernel_merges_no_pinned_page() {
        let segments = ["plain", "pinned"].map(|name| Segment::create(name, 8192).unwrap());
        let [plain, pinned] =
            segments.each_ref().map(|segment| Mapping::read_write(segment, Prefault::Now).unwrap());
        if !merge(segments[0].fd()) {
            return not_run("this kernel merges no pages of a memfd");
        }
        pinned.pin();
        assert!(!merge(segments[1].fd()));
        drop(pinned);
        let _mapped = Mapping::read_write(&segments[1], Prefault::Now).unwrap();
        assert!(merge(segments[1].fd()), "the pin ends with the mapping");
        drop(plain);
    }

    #[test]
    fn a_segment_that_a_receiver_has_sealed_in_another_way_cannot_be_closed() {
        let segment = Segment::create("sealed-seals", 4096).unwrap();
        segment.seal_seals().unwrap();
        let closed = Segment::close_to_writers(segment.fd());
        assert!(matches!(closed, Err(SegmentError::Seal { .. })), "{closed:?}");
    }

    #[test]
    fn populated_pages_are_resident_before_they_are_touched() {
        let name = "consort-test-populated";
        let segment = Segment::create(name, 64 * 1024).unwrap();
        let mapping = Mapping::read_only(&segment, Prefault::OnDemand).unwrap();
        mapping.populate(5000..5001).unwrap();
        mapping.populate(60_000..1 << 40).unwrap();
        assert_eq!(resident_and_locked(name)[0], 12, "the second page, and the last two");
        mapping.touch(0..8192);
        mapping.populate(1 << 40..1 << 41).unwrap();
        assert_eq!(resident_and_locked(name)[0], 16, "the kernel cannot populate");
    }

    #[test]
    fn a_locked_mapping_stays_in_memory() {
        let segment = Segment::create("consort-test-locked", 16 * 1024).unwrap();
        let mapping = Mapping::read_write(&segment, Prefault::Now).unwrap();
        assert_eq!(resident_and_locked("consort-test-locked"), [16, 0]);
        match mapping.lock_on_fault() {
            Ok(()) => assert_eq!(resident_and_locked("consort-test-locked"), [16, 16]),
            Err(error) => not_run(&format!("no right to lock 16 KiB here: {error}")),
        }
    }
}
