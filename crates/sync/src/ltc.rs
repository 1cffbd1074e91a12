//! Linear time code (SMPTE 12M): 80 bits for each frame of video, as sound.

mod decoder;
mod encoder;
mod follower;
mod frame;
#[cfg(test)]
mod tests;

pub(crate) use encoder::LtcEncoder;
pub(crate) use follower::LtcFollower;
