//! One record stream: frames of a server's ring on their way to a program.

mod attributes;
mod conversion;
mod gain;
mod stream;

pub(crate) use attributes::{RecordAttributes, RecordRequested};
pub(crate) use stream::{Manner, Recording};
