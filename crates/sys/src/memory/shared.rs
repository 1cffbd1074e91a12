//! A segment with a layout of `rt`.

use std::io;
use std::marker::PhantomData;
use std::ops::Deref;
use std::os::fd::{AsFd, OwnedFd};

use rt::shm::{LAYOUT_VERSION, Layout, LayoutError};

use super::{Access, Mapping, Prefault, Seals, Segment, SegmentError, SegmentRequirements};

/// A mapping that starts with a `T` and whose pages are populated. The segment may be longer than
/// `T`.
///
/// With [`Access::ReadOnly`], a store through the `T` raises `SIGSEGV`, as intended.
#[derive(Debug)]
pub struct Shared<T> {
    mapping: Mapping,
    layout: PhantomData<T>,
}

impl<T: Layout> Shared<T> {
    /// Maps one of this process's segments for writing, and marks it as a `T`. Its other bytes stay
    /// as they are (zero, if it is new).
    ///
    /// # Errors
    /// [`SegmentError::Map`], [`SegmentError::WrongSize`] if it is too small.
    pub fn create(segment: &Segment) -> Result<Self, SegmentError> {
        let shared = Self::map(segment, Access::Writable)?;
        shared.header().initialize(T::KIND);
        Ok(shared)
    }

    /// Returns a new `T` that only this process can ever write, and the descriptor for its readers.
    ///
    /// # Errors
    /// See [`Segment::create`], [`Segment::seal_future_writes`] and [`create`](Self::create).
    pub fn for_readers(name: &str) -> Result<(Self, OwnedFd), SegmentError> {
        let segment = Segment::create(name, size_of::<T>())?;
        let shared = Self::create(&segment)?;
        // MUTATION: for_readers.writes_not_sealed
        segment.seal_future_writes()?;
        segment.seal_seals()?;
        shared.mapping.pin();
        Ok((shared, segment.into_fd()))
    }

    /// Returns a new `T` that every receiver of the descriptor may map for writing, until
    /// [`close_to_writers`](Self::close_to_writers).
    ///
    /// # Errors
    /// See [`Segment::create`] and [`create`](Self::create).
    pub fn for_writers(name: &str) -> Result<(Self, OwnedFd), SegmentError> {
        let segment = Segment::create(name, size_of::<T>())?;
        let shared = Self::create(&segment)?;
        Ok((shared, segment.into_fd()))
    }

    /// Lets no further process map the segment for writing, and populates its pages again, since
    /// until now each writer could discard them. Those that have it mapped can write it as before.
    ///
    /// From then on no access by this process can wait for another one, or raise `SIGBUS`: the
    /// kernel refuses to discard pages of a sealed memfd, whoever asks. `memfd` is the descriptor
    /// that [`for_writers`](Self::for_writers) returned.
    ///
    /// # Errors
    /// [`SegmentError::Seal`] if a receiver has sealed it in another way,
    /// [`SegmentError::Populate`].
    pub fn close_to_writers(&self, memfd: impl AsFd) -> Result<(), SegmentError> {
        Segment::close_to_writers(memfd)?;
        self.hold_pages()
    }

    /// Maps a received segment if its header says that it is a `T` of this version.
    ///
    /// # Errors
    /// [`SegmentError::Map`], [`SegmentError::WrongSize`], [`SegmentError::Foreign`],
    /// [`SegmentError::WrongKind`], [`SegmentError::WrongVersion`].
    pub fn open(segment: &Segment, access: Access) -> Result<Self, SegmentError> {
        let shared = Self::map(segment, access)?;
        check_header::<T>(&shared)?;
        Ok(shared)
    }

    /// Checks the seals and the size of a `T` before it is [received](Self::receive). The close of
    /// what passes is short.
    ///
    /// # Errors
    /// [`SegmentError`]: what is wrong with it.
    pub fn examine(memfd: impl AsFd) -> Result<(), SegmentError> {
        Segment::examine(memfd, &Self::wanted()).map(drop)
    }

    /// Maps a received `T` for reading, if only its sender can write it.
    ///
    /// # Errors
    /// [`SegmentError`]: what is wrong with it.
    pub fn receive(memfd: OwnedFd) -> Result<Self, SegmentError> {
        Self::open(&Segment::receive(memfd, &Self::wanted())?, Access::ReadOnly)
    }

    /// What a `T` of another process must be.
    fn wanted() -> SegmentRequirements {
        let seals = Seals::SIZE | Seals::FUTURE_WRITE;
        SegmentRequirements { seals, ..SegmentRequirements::exactly(size_of::<T>() as u64) }
    }

    /// Same as [`Mapping::lock_on_fault`].
    ///
    /// # Errors
    /// See [`Mapping::lock_on_fault`].
    pub fn lock_on_fault(&self) -> io::Result<()> {
        self.mapping.lock_on_fault()
    }

    /// Keeps all pages in memory from now on, also those that the kernel has taken since they were
    /// populated.
    ///
    /// # Errors
    /// See [`Mapping::lock_on_fault`]; there is no memory.
    pub(super) fn lock(&self) -> io::Result<()> {
        self.mapping.lock_on_fault()?;
        self.mapping.populate(0..self.mapping.len()).map_err(io::Error::other)
    }

    /// Populates all pages, which others could discard until now, and keeps the kernel from merging
    /// them.
    ///
    /// # Errors
    /// [`SegmentError::Populate`].
    pub(super) fn hold_pages(&self) -> Result<(), SegmentError> {
        self.mapping.populate(0..self.mapping.len())?;
        self.mapping.pin();
        Ok(())
    }

    fn map(segment: &Segment, access: Access) -> Result<Self, SegmentError> {
        let size_bytes = segment.size_bytes();
        if size_bytes < size_of::<T>() {
            return Err(SegmentError::WrongSize {
                found_bytes: size_bytes as u64,
                least_bytes: size_of::<T>() as u64,
                most_bytes: u64::MAX,
            });
        }
        let mapping = Mapping::new(segment, access, Prefault::Now)?;
        if !mapping.base().cast::<T>().is_aligned() {
            return Err(SegmentError::Misaligned { alignment: align_of::<T>() });
        }
        Ok(Self { mapping, layout: PhantomData })
    }
}

/// Checks that a received layout is a `T` of this version.
pub(super) fn check_header<T: Layout>(layout: &T) -> Result<(), SegmentError> {
    // MUTATION: segment.any_kind_accepted
    layout.header().check(T::KIND).map_err(|error| match error {
        LayoutError::Foreign => SegmentError::Foreign,
        LayoutError::WrongKind { wanted, found } => SegmentError::WrongKind { wanted, found },
        LayoutError::WrongVersion { found } => {
            SegmentError::WrongVersion { wanted: LAYOUT_VERSION, found }
        }
    })
}

impl<T> Shared<T> {
    /// Returns the whole mapping, including what follows the `T`.
    #[must_use]
    pub fn mapping(&self) -> &Mapping {
        &self.mapping
    }
}

impl<T: Layout> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: `map` has checked size and alignment, and the seal on the size (asked for by
        // `Segment`) keeps the memory there as long as the mapping. `Layout` promises that any
        // bytes are a valid T and that T is atomics only, so that what other processes write
        // meanwhile is no data race.
        unsafe { self.mapping.base().cast::<T>().as_ref() }
    }
}

#[cfg(test)]
mod tests {
    use rt::shm::SegmentHeader;
    use rt::sync::{AtomicU32, Ordering};

    use super::*;

    #[repr(C)]
    struct Counter {
        header: SegmentHeader,
        count: AtomicU32,
    }

    // SAFETY: repr(C), the header first, atomics only.
    unsafe impl Layout for Counter {
        const KIND: u32 = 1000;

        fn header(&self) -> &SegmentHeader {
            &self.header
        }
    }

    #[repr(C)]
    #[derive(Debug)]
    struct Another {
        header: SegmentHeader,
    }

    // SAFETY: repr(C), the header first, atomics only.
    unsafe impl Layout for Another {
        const KIND: u32 = 1001;

        fn header(&self) -> &SegmentHeader {
            &self.header
        }
    }

    #[repr(C, align(65536))]
    #[derive(Debug)]
    struct Demanding {
        header: SegmentHeader,
    }

    // SAFETY: repr(C), the header first, atomics only.
    unsafe impl Layout for Demanding {
        const KIND: u32 = 1002;

        fn header(&self) -> &SegmentHeader {
            &self.header
        }
    }

    #[test]
    fn a_reader_loads_what_the_creator_stored() {
        let segment = Segment::create("counter", 4096).unwrap();
        let writer = Shared::<Counter>::create(&segment).unwrap();
        let reader = Shared::<Counter>::open(&segment, Access::ReadOnly).unwrap();
        writer.count.store(5, Ordering::Release);
        assert_eq!(reader.count.load(Ordering::Acquire), 5);
        assert_eq!(reader.mapping().len(), 4096);
    }

    #[test]
    fn what_is_for_readers_is_written_by_its_creator_alone() {
        let (writer, memfd) = Shared::<Counter>::for_readers("counter").unwrap();
        assert_eq!(rustix::io::pwrite(&memfd, &[1], 4095), Err(rustix::io::Errno::PERM));
        let reader = Shared::<Counter>::receive(memfd).unwrap();
        writer.count.store(5, Ordering::Release);
        assert_eq!(reader.count.load(Ordering::Acquire), 5);
    }

    #[test]
    fn a_segment_smaller_than_the_layout_is_refused() {
        let segment = Segment::create("small", size_of::<Counter>() - 1).unwrap();
        assert!(matches!(Shared::<Counter>::create(&segment), Err(SegmentError::WrongSize { .. })));
    }

    #[test]
    fn a_segment_without_our_header_is_refused() {
        let segment = Segment::create("foreign", 4096).unwrap();
        let opened = Shared::<Another>::open(&segment, Access::Writable);
        assert!(matches!(opened, Err(SegmentError::Foreign)));
    }

    #[test]
    fn a_segment_of_another_kind_is_refused() {
        let segment = Segment::create("kind", 4096).unwrap();
        let _counter = Shared::<Counter>::create(&segment).unwrap();
        let opened = Shared::<Another>::open(&segment, Access::ReadOnly);
        assert!(matches!(opened, Err(SegmentError::WrongKind { wanted: 1001, found: 1000 })));
    }

    #[test]
    fn only_a_misaligned_mapping_is_refused() {
        // A page more than the alignment, so that neighbouring mappings differ in theirs; kept, so
        // that they are neighbours.
        let segment = Segment::create("aligned", align_of::<Demanding>() + 4096).unwrap();
        let attempts: Vec<_> = (0..17).map(|_| Shared::<Demanding>::create(&segment)).collect();
        for attempt in &attempts {
            match attempt {
                Ok(shared) => assert!(shared.mapping().base().cast::<Demanding>().is_aligned()),
                Err(error) => {
                    assert!(matches!(error, SegmentError::Misaligned { alignment: 65536 }))
                }
            }
        }
        assert!(attempts.iter().any(Result::is_err));
    }
}
