//! A running server on a terminal: what is read of it, and how it looks.

pub(crate) mod model;
pub(crate) mod screen;
