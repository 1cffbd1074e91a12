//! Memory shared between processes: sealed memfds, and their mappings.

#[cfg(test)]
mod hostile_program;
mod mapping;
mod pin;
mod population;
mod program;
mod record_stream;
mod registry;
mod ring;
mod sealing;
mod segment;
mod shared;
mod slab;
mod stream;
mod unmapped;

pub use mapping::{Access, Mapping, Prefault};
pub use population::RingPopulation;
pub use program::{populate_device_libraries, populate_program, release_spare_memory};
pub use record_stream::RecordStream;
pub use registry::SharedRegistry;
pub use ring::{OwnRing, PeerRing, RingNotLocked, RingWishes};
pub use sealing::{Sealer, Sealers};
pub use segment::{Seals, Segment, SegmentIdentity, SegmentRequirements};
pub use shared::Shared;
pub use slab::{OwnSlab, PeerSlab, SlabPages};
pub use stream::PeerStream;
pub use unmapped::{MAX_UNMAPPED_BYTES, examine_unmapped, read_unmapped};

use std::io;

/// The size of a page, in bytes, from the C library. Its other source, the kernel's auxiliary
/// vector, cannot be read under valgrind, which maps the vDSO elsewhere.
fn page_bytes() -> usize {
    // SAFETY: `sysconf` reads a number that is fixed for the process.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).expect("every system has pages of a fixed size")
}

/// Returns how many mappings a process may have (`vm.max_map_count`).
#[must_use]
pub fn mapping_limit() -> u64 {
    /// The kernel's default.
    const USUAL: u64 = 65_530;
    let text = std::fs::read_to_string("/proc/sys/vm/max_map_count");
    text.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(USUAL)
}

/// Why a piece of shared memory was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SegmentError {
    /// The kernel refused to create it.
    #[error("cannot make a shared memory segment of {size_bytes} bytes: {source}")]
    Create {
        /// The requested size.
        size_bytes: u64,
        /// The kernel's error.
        source: io::Error,
    },
    /// A received descriptor is not a memfd (but a file or a pipe), so its sender could change it
    /// at any time.
    #[error("the descriptor received is not a memfd")]
    NotAMemfd,
    /// A received segment has a size that its use does not allow.
    #[error("the segment has {found_bytes} bytes, not {least_bytes} to {most_bytes}")]
    WrongSize {
        /// Its size.
        found_bytes: u64,
        /// The smallest acceptable size.
        least_bytes: u64,
        /// The largest acceptable size.
        most_bytes: u64,
    },
    /// A received segment lacks seals: its sender could still shrink, grow or write it.
    #[error("the segment is not sealed against: {missing}")]
    NotSealed {
        /// The missing seals.
        missing: Seals,
    },
    /// The kernel refused to add a seal.
    #[error("cannot seal the segment against: {seals}: {source}")]
    Seal {
        /// The requested seals.
        seals: Seals,
        /// The kernel's error.
        source: io::Error,
    },
    /// The kernel refused to map it.
    #[error("cannot map {size_bytes} bytes of shared memory ({access}): {source}")]
    Map {
        /// Its size.
        size_bytes: u64,
        /// The requested access.
        access: Access,
        /// The kernel's error: `EPERM` for a writable mapping of a sealed segment.
        source: io::Error,
    },
    /// The kernel has no memory for pages that were never written.
    #[error("the kernel has no memory for {size_bytes} bytes of a shared segment: {source}")]
    Populate {
        /// Size of the pages.
        size_bytes: u64,
        /// The kernel's error: `EFAULT` where an access would have raised `SIGBUS`.
        source: io::Error,
    },
    /// The mapping's address is not aligned for the layout.
    #[error("the mapping is not aligned to {alignment} bytes")]
    Misaligned {
        /// The alignment that the layout needs.
        alignment: usize,
    },
    /// The first words are not a segment header.
    #[error("the segment is not one of consort's")]
    Foreign,
    /// A segment for another purpose.
    #[error("the segment is of kind {found}, not {wanted}")]
    WrongKind {
        /// The expected kind.
        wanted: u32,
        /// Its kind.
        found: u32,
    },
    /// The sender is another version of this software.
    #[error(
        "the segment has layout version {found}, not {wanted}: client and server are not of the same release"
    )]
    WrongVersion {
        /// This process's version.
        wanted: u32,
        /// Its version.
        found: u32,
    },
    /// The kernel did not say what the descriptor is.
    #[error("cannot examine the segment received: {0}")]
    Examine(#[source] io::Error),
}
