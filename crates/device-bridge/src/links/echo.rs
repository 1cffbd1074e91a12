//! The removal of an echo from what a link passes on: the stream of what was played, and what is
//! known of it when something captured is passed on.

use anyhow::ensure;
use client::stream::{
    RecordOptions, RecordStream, Samples, SamplesMut, StreamConnection, StreamWriter, Timing,
};
use effects::{Canceller, Method};
use rt::rate::frames_in;

use super::blocks::Blocks;
use super::link::{BLOCK_FRAMES, INTERVALS};
use super::options::{LinkMix, LinkOptions};
use super::reference::{Reference, ReferenceShape};

/// What removes an echo, and of what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EchoOptions {
    /// Name of the device whose sound comes back.
    pub of: String,
    /// Its channels, and those that it is removed from.
    pub mix: LinkMix,
    /// How much later it is heard than at that device, ms.
    pub heard_later_ms: u32,
    /// How it is removed.
    pub method: Method,
    /// How much sound is processed at once, ms.
    pub frame_ms: u32,
}

/// What removes the echo from the frames of a link.
pub(super) struct Echo {
    /// What was played.
    far: RecordStream,
    far_misses: u64,
    block: Vec<Vec<f32>>,
    pub(super) blocks: Blocks,
}

impl Echo {
    /// Opens the stream of what is played.
    ///
    /// # Errors
    /// There is no such device, or it has fewer channels; what removes an echo is not there.
    pub(super) fn open(
        connection: &StreamConnection,
        link: &LinkOptions,
        options: &EchoOptions,
        sink_hz: u32,
    ) -> anyhow::Result<Self> {
        let device = connection.device_named(Some(&options.of))?;
        let far_hz = device.sample_rate_hz;
        let (played, heard) = (options.mix.from.channels(), options.mix.to.channels());
        ensure!(
            played <= device.channels as usize,
            "'{}' has {} channels, and {played} are to be removed",
            options.of,
            device.channels
        );
        let canceller = Canceller::new(options.method, options.frame_ms, heard, sink_hz)?;
        let heard_later_ns = u64::from(options.heard_later_ms) * 1_000_000;
        let room = u32::try_from(frames_in(heard_later_ns, far_hz))?;
        let mut far = connection.record(RecordOptions {
            program: link.program.clone(),
            name: link.stream_name(),
            device: Some(options.of.clone()),
            monitor: true,
            channels: (0..u32::try_from(played)?).collect(),
            interval_frames: room,
            lets_sleep: true,
        })?;
        far.set_interval((room / INTERVALS as u32).max(1))?;
        far.run()?;
        let reference = Reference::new(ReferenceShape {
            mix: options.mix,
            far_hz,
            sink_hz,
            later_ns: heard_later_ns + u64::from(link.latency_ms) * 1_000_000,
        })?;
        Ok(Self {
            far,
            far_misses: 0,
            block: vec![vec![0.0; BLOCK_FRAMES]; played],
            blocks: Blocks::new(reference, canceller, heard),
        })
    }

    /// Returns whether the device whose sound comes back has gone.
    pub(super) fn has_ended(&self) -> bool {
        self.far.reader().control().page().has_ended()
    }

    /// Takes what was played since the last time; position `next` of the sink is to be filled.
    pub(super) fn listen(&mut self, next: u64, sink: Timing) {
        // Before the frames: what it says of them is true then.
        let far = self.far.reader_mut().control_mut().timing();
        loop {
            let mut planes: Vec<&mut [f32]> = self.block.iter_mut().map(|all| &mut **all).collect();
            let reader = self.far.reader_mut();
            let frames = reader.read(SamplesMut::Planar(&mut planes));
            if frames == 0 {
                break;
            }
            let planes: Vec<&[f32]> = self.block.iter().map(|all| &all[..frames]).collect();
            self.blocks.reference.push(reader.position() - frames as u64, &planes);
        }
        let misses = self.far.reader_mut().control_mut().misses();
        if misses != self.far_misses {
            self.far_misses = misses;
            self.blocks.reference.unlock();
        }
        self.blocks.reference.align(far, next, sink);
        if far.until <= far.position {
            // It stands, and begins again at another time.
            self.blocks.reference.unlock();
        }
    }

    /// Takes frames that were captured, and plays those that are a block, without the echo.
    pub(super) fn write(&mut self, planes: &[&[f32]], sink: &mut StreamWriter) {
        let at = sink.position() + self.blocks.waiting() as u64;
        self.blocks.write(at, planes, |planes| {
            sink.write(Samples::Planar(planes));
        });
    }
}
