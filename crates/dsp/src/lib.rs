//! What a cycle does to samples: copy, mix, gain, and conversion to and from a device's formats.
//!
//! Every function here may run inside a cycle: no heap, no lock, no system call, no panic, and a time
//! proportional to the samples given. Lengths that disagree are settled, not refused; each function says how.
//!
//! Each operation is written once, as a plain loop that the compiler vectorises (`kernels`), and compiled
//! twice on x86-64: for the baseline (SSE2) and for AVX2, chosen at run time. Elsewhere the baseline (NEON on
//! aarch64) is all there is. Some conversions are written once more for AVX2 (`simd/avx2`). No variant fuses a multiplication
//! with an addition, so all give the same bits.
#![cfg_attr(not(test), no_std)]
#![deny(unsafe_code)]

// Only for run-time detection of the processor's features, which `core` does not offer.
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
    PeerSamples, add, copy, decode, deinterleave, detect_processor, encode, gain, interleave, mix, peak,
    scrub, silence,
};

/// Channels that [`interleave`] and [`deinterleave`] convert at a time.
pub const LANES: usize = 8;
