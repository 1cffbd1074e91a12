//! What changes sound on its way, off the real-time path: LADSPA plug-ins, and the removal of a
//! loudspeaker's echo from what a microphone captures.
//!
//! [`Ladspa`] runs one plug-in, as many instances of it as there are channels for. [`Canceller`]
//! removes echo by the library of Speex. Samples are planar `f32`, full scale ±1.0. Both load
//! foreign code into the calling process, which can do there what that process can: a caller that
//! must survive it runs it in a process of its own.
#![deny(unsafe_code)]

mod echo;
mod ladspa;
#[expect(
    unsafe_code,
    reason = "calls to LADSPA plug-ins and to libspeexdsp; every block states its invariant"
)]
mod library;

pub use echo::{Canceller, Method, Speex};
pub use ladspa::{Ladspa, LadspaOptions};
