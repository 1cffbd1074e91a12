//! The first words of every segment, checked by whoever receives one.

use crate::sync::{AtomicU32, Ordering::Relaxed};

/// Version of all layouts of this module. A client and a server that differ refuse each other in words.
pub const LAYOUT_VERSION: u32 = 6;

const MAGIC: u32 = 0x434e_5354; // "CNST"

/// What a segment is and which version of its layout it follows.
#[repr(C)]
#[derive(Debug, Default)]
pub struct SegmentHeader {
    magic: AtomicU32,
    kind: AtomicU32,
    version: AtomicU32,
    reserved: AtomicU32,
}

/// Why a received segment cannot be what it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayoutError {
    /// The first word is not consort's: these are some other program's bytes.
    Foreign,
    /// A segment of consort, but of another kind.
    WrongKind {
        /// The kind that was asked for.
        wanted: u32,
        /// The kind that the header names.
        found: u32,
    },
    /// The right kind in another version of its layout.
    WrongVersion {
        /// The version that the header names.
        found: u32,
    },
}

/// A type that may be laid over shared memory.
///
/// # Safety
/// The type is `repr(C)`, starts with a [`SegmentHeader`], and consists of atomics only, so that any bytes
/// are a valid value and a write by another process at any moment is no data race.
pub unsafe trait Layout {
    /// Number of the kind, unique among layouts.
    const KIND: u32;

    /// The segment's first words.
    fn header(&self) -> &SegmentHeader;
}

impl SegmentHeader {
    /// Marks a fresh segment as one of `kind`.
    pub fn initialize(&self, kind: u32) {
        self.kind.store(kind, Relaxed);
        self.version.store(LAYOUT_VERSION, Relaxed);
        self.magic.store(MAGIC, Relaxed);
    }

    /// Checks a segment that came from another process.
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
