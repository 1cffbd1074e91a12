//! A device that takes everything and never plays.

use client::stream::{Gain, Timing, Volume, Wish};

use crate::input::{Input, NewInput};
use crate::output::{Device, DeviceFormat, NewOutput, Output};

#[derive(Debug)]
pub(crate) struct Silence {
    pub format: Option<DeviceFormat>,
    pub opened: Vec<NewOutput>,
    pub recorded: Vec<NewInput>,
    pub volume: Volume,
    /// The server refuses another volume.
    pub refuses: bool,
}

impl Silence {
    pub fn stereo() -> Self {
        let format = Some(DeviceFormat { rate_hz: 48_000, channels: 2, captured: 0 });
        let (opened, recorded) = (Vec::new(), Vec::new());
        Self { format, opened, recorded, volume: Volume::default(), refuses: false }
    }
}

impl Device for Silence {
    type Output = Sink;
    type Input = Tone;

    fn format(&self) -> Option<DeviceFormat> {
        self.format
    }

    fn refresh(&mut self) {}

    fn volume(&self) -> Volume {
        self.volume
    }

    fn set_volume(&mut self, gain: Option<Gain>, muted: Option<bool>) -> bool {
        if !self.refuses {
            self.volume = self.volume.changed(gain, muted);
        }
        !self.refuses
    }

    fn open(&mut self, new: NewOutput) -> Option<Sink> {
        self.opened.push(new);
        Some(Sink { written: 0 })
    }

    fn record(&mut self, new: NewInput) -> Option<Tone> {
        self.recorded.push(new);
        (!self.refuses).then(Tone::default)
    }
}

#[derive(Debug)]
pub(crate) struct Sink {
    written: u64,
}

impl Output for Sink {
    fn capacity_frames(&self) -> u64 {
        1 << 18
    }

    fn room(&self) -> usize {
        ((1 << 18) - self.written) as usize
    }

    fn write(&mut self, planes: &[&[f32]]) {
        self.written += planes[0].len() as u64;
    }

    fn written(&self) -> u64 {
        self.written
    }

    fn wish(&mut self, _wish: Wish) {}

    fn commit(&mut self) {}

    fn is_committed(&self) -> bool {
        true
    }

    fn timing(&mut self) -> Timing {
        Timing::default()
    }

    fn wake_ns(&self) -> Option<u64> {
        None
    }

    fn has_ended(&self) -> bool {
        false
    }
}

/// Frames of 0.5 and -0.25, as many at each look.
#[derive(Debug, Default)]
pub(crate) struct Tone {
    runs: bool,
    position: u64,
    has_been_read: bool,
}

/// Frames that there are at each look.
pub(crate) const FRAMES_AT_ONCE: usize = 480;

impl Input for Tone {
    fn read(&mut self, planes: &mut [&mut [f32]]) -> usize {
        self.has_been_read = self.runs && !self.has_been_read;
        if !self.has_been_read {
            return 0;
        }
        for (plane, sample) in planes.iter_mut().zip([0.5, -0.25]) {
            plane[..FRAMES_AT_ONCE].fill(sample);
        }
        self.position += FRAMES_AT_ONCE as u64;
        FRAMES_AT_ONCE
    }

    fn position(&self) -> u64 {
        self.position
    }

    fn run(&mut self, runs: bool) -> bool {
        self.runs = runs;
        true
    }

    fn set_interval(&mut self, _frames: u32) -> bool {
        true
    }

    fn timing(&mut self) -> Timing {
        Timing { position: self.position, ..Timing::default() }
    }

    fn due_ns(&self) -> Option<u64> {
        None
    }

    fn has_ended(&self) -> bool {
        false
    }
}
