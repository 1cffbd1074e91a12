//! The first words of every segment, which its receiver checks.

use crate::sync::{AtomicU32, Ordering::Relaxed};

/// Version of all layouts of this module. A client and a server with different versions refuse each
/// other with an error message.
///
/// With the compiler's flag `--cfg consort_other_layout` it is a version of no release, so that
/// tests have a server and programs that the others refuse.
pub const LAYOUT_VERSION: u32 = if cfg!(consort_other_layout) { 0 } else { 11 };

const MAGIC: u32 = 0x434e_5354; // "CNST"

/// The kind of a segment and the version of its layout.
#[repr(C)]
#[derive(Debug, Default)]
pub struct SegmentHeader {
    magic: AtomicU32,
    kind: AtomicU32,
    version: AtomicU32,
    reserved: AtomicU32,
}

/// Why a received segment cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayoutError {
    /// The first word is not consort's: another program wrote the segment.
    Foreign,
    /// The segment is consort's, but of another kind.
    WrongKind {
        /// The expected kind.
        wanted: u32,
        /// The kind that the header names.
        found: u32,
    },
    /// The kind is right, but the version of its layout is not.
    WrongVersion {
        /// The version that the header names.
        found: u32,
    },
}

/// A type that may be mapped onto shared memory.
///
/// # Safety
/// The type is `repr(C)`, starts with a [`SegmentHeader`], and consists of atomics only, so that
/// any bytes are a valid value, and a write by another process at any time is no data race.
pub unsafe trait Layout {
    /// Number of the kind, different for every layout.
    const KIND: u32;

    /// Returns the segment's first words.
    fn header(&self) -> &SegmentHeader;
}

impl SegmentHeader {
    /// Marks a new segment as one of `kind`.
    pub fn initialize(&self, kind: u32) {
        self.kind.store(kind, Relaxed);
        self.version.store(LAYOUT_VERSION, Relaxed);
        self.magic.store(MAGIC, Relaxed);
    }

    /// Checks a segment that another process has sent.
    pub fn check(&self, wanted: u32) -> Result<(), LayoutError> {
        if self.magic.load(Relaxed) != MAGIC {
            return Err(LayoutError::Foreign);
        }
        let found = self.kind.load(Relaxed);
        if found != wanted {
            return Err(LayoutError::WrongKind { wanted, found });
        }
        match self.version.load(Relaxed) {
            LAYOUT_VERSION => Ok(()),
            found => Err(LayoutError::WrongVersion { found }),
        }
    }
}
