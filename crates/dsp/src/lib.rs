//! Operations on samples in a cycle: copy, mix, gain, and conversion to and from a device's
//! formats.
//!
//! Every function may run inside a cycle: it uses no heap, lock or system call, never panics, and
//! takes time proportional to the number of samples. Slices of different lengths are not an error;
//! each function says how it treats them.
//!
//! Each operation is written once, as a plain loop that the compiler vectorises (`kernels`), and
//! compiled twice on x86-64: for the baseline (SSE2) and for AVX2, chosen at run time. Other
//! processors have the baseline only (NEON on aarch64). Some conversions also have a version
//! written by hand for AVX2 (`simd/avx2`). No version fuses a multiplication with an addition, so
//! all of them give the same bits.
#![cfg_attr(not(test), no_std)]
#![deny(unsafe_code)]

// `std` only for the detection of the processor's features at run time, which `core` lacks.
#[cfg(all(target_arch = "x86_64", not(test)))]
extern crate std;

mod format;
mod kernels;
#[expect(unsafe_code, reason = "memory that a peer writes, and calls to code compiled for AVX2")]
mod simd;
#[cfg(test)]
mod tests;

pub use format::Format;
pub use simd::{
    PeerFrames16, PeerSamples, add, copy, decode, decode_frames, deinterleave, detect_processor,
    encode, gain, interleave, limited_gain, mix, peak, scrub, silence,
};

/// Channels that [`interleave`] and [`deinterleave`] convert at a time.
pub const LANES: usize = 8;
