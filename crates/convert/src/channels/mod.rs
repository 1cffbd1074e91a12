//! Where a program's channels are, and how they become those of a stream.

mod map;
mod matrix;
mod position;
mod standard;
#[cfg(test)]
mod tests;

pub use map::{ChannelMap, InvalidMap};
pub use matrix::{Matrix, Mixing};
pub use position::ChannelPosition;
pub use standard::Standard;
