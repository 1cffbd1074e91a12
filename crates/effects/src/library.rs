//! Foreign code, loaded at run time.

pub(crate) mod ladspa;
pub(crate) mod speex;
