//! One record stream: frames of a server's ring, or of what one stream plays, on their way to a
//! program.

mod attributes;
mod conversion;
mod gain;
mod recorded;
mod stream;
mod tap;

pub(crate) use attributes::{RecordAttributes, RecordRequested};
pub(crate) use recorded::Recorded;
pub(crate) use stream::{Manner, Recording};
pub(crate) use tap::Tap;
