//! What is heard on a device is written to a FIFO.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::sync::Arc;

use client::stream::{RecordOptions, RecordStream, SamplesMut, StreamConnection};
use convert::Encoder;
use sys::clock::now_ns;

use super::whole_frames::WholeFrames;
use super::{PipeFormat, short_name};
use crate::links::LinkState;

/// The device wakes this often in a second.
const INTERVALS_PER_SECOND: u32 = 40;
/// How long after the device's wake-up its frames are there, ns.
const AFTER_WAKE_NS: u64 = 1_000_000;
/// Frames that come this much later do not come for now, ns.
const PATIENCE_NS: u64 = 100_000_000;
/// How often it looks whether its device is still there while that is silent, ns.
const IDLE_LOOK_NS: u64 = 5_000_000_000;
/// Frames that are read at once.
const BLOCK_FRAMES: usize = 1024;

/// Writes what leaves a device to a FIFO. On its own thread.
pub(super) struct PipeSink {
    state: Arc<LinkState>,
    stream: RecordStream,
    encoder: Encoder,
    frames: WholeFrames,
    path: PathBuf,
    /// Open while someone reads.
    file: Option<File>,
    block: Vec<Vec<f32>>,
    bytes: Vec<u8>,
}

impl PipeSink {
    /// Opens the stream.
    ///
    /// # Errors
    /// The server refuses it.
    pub(super) fn open(
        connection: &StreamConnection,
        device: &str,
        format: PipeFormat,
        path: PathBuf,
        state: Arc<LinkState>,
    ) -> anyhow::Result<Self> {
        let channels = format.channels as usize;
        let stream = connection.record(RecordOptions {
            program: "consort pipe-sink".into(),
            name: short_name(&path),
            device: Some(device.to_owned()),
            monitor: true,
            channels: (0..format.channels).collect(),
            interval_frames: (format.rate_hz / INTERVALS_PER_SECOND).max(1),
            lets_sleep: true,
        })?;
        let encoder = Encoder::new(format.format, channels);
        let mut sink = Self {
            state,
            stream,
            frames: WholeFrames::new(encoder.frame_bytes()),
            encoder,
            path,
            file: None,
            block: vec![vec![0.0; BLOCK_FRAMES]; channels],
            bytes: Vec::new(),
        };
        sink.stream.run()?;
        Ok(sink)
    }

    /// Writes until the device is removed.
    ///
    /// # Errors
    /// The FIFO is not there any more.
    pub(super) fn run(&mut self) -> anyhow::Result<()> {
        let mut plays = false;
        while !self.stream.reader().control().page().has_ended() {
            let patience_ns = if plays { PATIENCE_NS } else { IDLE_LOOK_NS };
            let reader = self.stream.reader();
            let found = reader.await_frames(AFTER_WAKE_NS, now_ns().saturating_add(patience_ns));
            if plays != (found > 0) {
                plays = found > 0;
                self.state.set_plays(plays);
            }
            self.read();
            self.write()?;
        }
        Ok(())
    }

    /// Reads and encodes what is there.
    fn read(&mut self) {
        self.bytes.clear();
        loop {
            let mut planes: Vec<&mut [f32]> = self.block.iter_mut().map(|all| &mut **all).collect();
            let frames = self.stream.reader_mut().read(SamplesMut::Planar(&mut planes));
            if frames == 0 {
                return;
            }
            let planes: Vec<&[f32]> = self.block.iter().map(|all| &all[..frames]).collect();
            let bytes = &mut self.bytes;
            self.encoder.push(&planes, |piece| bytes.extend_from_slice(piece));
        }
    }

    /// Writes as much as the reader has room for. Without a reader, nothing is kept.
    fn write(&mut self) -> anyhow::Result<()> {
        if self.bytes.is_empty() {
            return Ok(());
        }
        if self.file.is_none() {
            self.file = sys::fifo::open_to_write(&self.path)?;
            self.frames.restart();
        }
        let Some(file) = &mut self.file else { return Ok(()) };
        match self.frames.write(&self.bytes, |bytes| file.write(bytes)) {
            Ok(0) => {}
            Ok(_) => self.state.note_gap(),
            Err(error) if error.kind() == ErrorKind::BrokenPipe => self.file = None,
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}
