//! A program and a device on the same memory, in two threads or two processes.

mod converted;
mod device;
mod playback;
mod processes;
mod record;

use rt::shm::RingShape;

/// Far enough away that no machine is so slow.
fn in_a_minute() -> u64 {
    sys::clock::now_ns() + 60_000_000_000
}

fn shape(channels: u32, capacity_frames: u32) -> RingShape {
    RingShape::new(channels, capacity_frames).expect("possible")
}

/// Returns the sample that a test writes at a position of a channel: exact as `f32`.
fn sample(position: u64, channel: u32) -> f32 {
    ((position * 31 + u64::from(channel) * 7) % (1 << 24)) as f32
}

/// Returns frames from `position` on, one vector for each channel.
fn planes(position: u64, frames: usize, channels: u32) -> Vec<Vec<f32>> {
    let plane = |channel| (position..).take(frames).map(|at| sample(at, channel)).collect();
    (0..channels).map(plane).collect()
}

/// Returns the same frames interleaved.
fn woven(position: u64, frames: usize, channels: u32) -> Vec<f32> {
    let frame = |at| (0..channels).map(move |channel| sample(at, channel));
    (position..).take(frames).flat_map(frame).collect()
}
