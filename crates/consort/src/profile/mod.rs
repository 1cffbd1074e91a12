//! Recordings of cycles: taken from a running server, kept in a file, drawn, and written for other programs.

pub(crate) mod draw;
pub(crate) mod file;
pub(crate) mod jack_log;
pub(crate) mod plots;
pub(crate) mod ports;
pub(crate) mod timeline;
pub(crate) mod trace;
