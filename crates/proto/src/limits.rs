//! Limits that programs and server agree on.

/// Smallest and largest quantum, in frames. The slots of a slab hold the largest.
pub const QUANTUM_FRAMES: std::ops::RangeInclusive<u32> = 1..=8192;

/// Sample rates that a driver may be asked for, in Hz.
pub const SAMPLE_RATE_HZ: std::ops::RangeInclusive<u32> = 1_000..=768_000;

/// Bytes of a client's name.
pub const CLIENT_NAME_BYTES: usize = 64;

/// Bytes of `client:port`.
pub const FULL_NAME_BYTES: usize = 319;
