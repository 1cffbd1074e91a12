//! The operations as plain loops, written so that the compiler vectorises them.
//!
//! `#[inline(always)]` throughout: `simd` compiles each kernel once per instruction set, and only
//! code that is inlined into its caller is compiled for the caller's instructions.

pub(crate) mod convert;
pub(crate) mod samples;
pub(crate) mod weave;
