//! The registry's memory: written by the server, read by all clients.

use std::ops::Deref;
use std::os::fd::OwnedFd;

use rt::shm::{Registry, RegistryShape};

use super::{Mapping, Prefault, Seals, Segment, SegmentError, SegmentRequirements};

/// A registry and the mapping that contains it.
#[derive(Debug)]
pub struct SharedRegistry {
    registry: Registry,
    #[expect(dead_code, reason = "keeps the memory of `registry` mapped")]
    mapping: Mapping,
}

impl SharedRegistry {
    /// Returns a new registry in `segment`, which is sealed against all other writers.
    ///
    /// # Errors
    /// [`SegmentError`] if the kernel refuses memory or seals.
    pub fn create(shape: RegistryShape) -> Result<(Self, Segment), SegmentError> {
        let segment = Segment::create("consort-registry", shape.bytes())?;
        let mapping = Mapping::read_write(&segment, Prefault::OnDemand)?;
        segment.seal_future_writes()?;
        segment.seal_seals()?;
        mapping.pin();
        // SAFETY: a fresh memfd is zeroed; the mapping is writable, page-aligned and as large as
        // the shape asks for, and lives as long as `registry`, which never leaves this value but by
        // reference.
        let registry = unsafe { Registry::create(mapping.base(), shape) };
        Ok((Self { registry, mapping }, segment))
    }

    /// Maps a received registry.
    ///
    /// # Errors
    /// [`SegmentError`]: what is wrong with it.
    pub fn receive(memfd: OwnedFd) -> Result<Self, SegmentError> {
        let wanted = SegmentRequirements {
            size_bytes: 4096..=u64::MAX,
            seals: Seals::SIZE | Seals::FUTURE_WRITE,
        };
        let segment = Segment::receive(memfd, &wanted)?;
        let mapping = Mapping::read_only(&segment, Prefault::OnDemand)?;
        // SAFETY: page-aligned, of the length given, sealed against shrinking, alive as long as
        // `registry`.
        let registry = unsafe { Registry::open(mapping.base(), mapping.len()) }
            .ok_or(SegmentError::Foreign)?;
        Ok(Self { registry, mapping })
    }
}

impl Deref for SharedRegistry {
    type Target = Registry;

    fn deref(&self) -> &Registry {
        &self.registry
    }
}
