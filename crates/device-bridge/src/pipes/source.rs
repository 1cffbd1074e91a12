//! What comes out of a FIFO is played on a device.
//!
//! A pipe has no clock: the device takes as much as it plays, and a writer that is faster waits.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use client::stream::{
    PlaybackOptions, PlaybackStream, RingSamples, Samples, StreamConnection, Wish,
};
use convert::{ChannelMap, Options, PlaybackConverter, ProgramFormat, Standard, StreamFormat};
use rt::rate::frames_in;
use sys::clock::{now_ns, sleep_until};
use sys::poll::{Interest, Poller};

use super::{PipeFormat, short_name};
use crate::links::LinkState;

/// It reads this often within the latency.
const INTERVALS: u64 = 8;
/// How often it looks whether its device is still there while nothing comes, ns.
const IDLE_LOOK_NS: u64 = 5_000_000_000;

/// Plays what comes out of a FIFO. On its own thread.
pub(super) struct PipeSource {
    state: Arc<LinkState>,
    stream: PlaybackStream,
    converter: PlaybackConverter,
    frame_bytes: usize,
    rate_hz: u32,
    device_hz: u32,
    file: File,
    latency_ns: u64,
    /// Converted frames that had no room.
    ready: Vec<Vec<f32>>,
    plays: bool,
    misses: u64,
}

impl PipeSource {
    /// Opens the stream and the FIFO.
    ///
    /// # Errors
    /// The server refuses the stream; the FIFO cannot be read.
    pub(super) fn open(
        connection: &StreamConnection,
        device: &str,
        format: PipeFormat,
        latency_ms: u32,
        path: &Path,
        state: Arc<LinkState>,
    ) -> anyhow::Result<Self> {
        let found = connection.device_named(Some(device))?;
        let latency_ns = u64::from(latency_ms) * 1_000_000;
        let depth_frames = u32::try_from(frames_in(latency_ns, found.sample_rate_hz))?;
        let channels = found.channels.min(format.channels.max(2));
        let map = |channels: u32| ChannelMap::extended(Standard::Alsa, channels as usize);
        let program_map = map(format.channels).context("a FIFO has 1 to 32 channels")?;
        let stream_map = map(channels).with_context(|| format!("'{device}' plays no streams"))?;
        let rate_hz = found.sample_rate_hz;
        let converter = PlaybackConverter::new(
            &ProgramFormat { format: format.format, rate_hz: format.rate_hz, map: program_map },
            &StreamFormat { rate_hz, map: stream_map },
            Options::default(),
        )?;
        let mut stream = connection.play(PlaybackOptions {
            program: "consort pipe-source".into(),
            name: short_name(path),
            device: Some(device.to_owned()),
            channels: (0..channels).collect(),
            depth_frames,
            samples: RingSamples::Planes,
        })?;
        stream.set_depth(depth_frames / 2)?;
        Ok(Self {
            state,
            stream,
            converter,
            frame_bytes: format.format.bytes_per_sample() * format.channels as usize,
            rate_hz: format.rate_hz,
            device_hz: rate_hz,
            file: sys::fifo::open_to_read(path)
                .with_context(|| format!("cannot read {}", path.display()))?,
            latency_ns,
            ready: vec![Vec::new(); channels as usize],
            plays: false,
            misses: 0,
        })
    }

    /// Plays until the device is removed.
    ///
    /// # Errors
    /// The server has gone.
    pub(super) fn run(&mut self) -> anyhow::Result<()> {
        let (poller, mut events) = (Poller::new()?, Vec::new());
        poller.add(&self.file, 0, Interest::Readable)?;
        while !self.stream.writer().control().page().has_ended() {
            if self.plays {
                sleep_until(now_ns() + self.latency_ns / INTERVALS);
            } else {
                poller.wait(&mut events, Some(now_ns() + IDLE_LOOK_NS))?;
            }
            let found = self.fill()?;
            self.follow(found)?;
        }
        Ok(())
    }

    /// Frames that are written and not heard.
    fn queued(&mut self) -> u64 {
        self.stream.queued_frames(now_ns())
    }

    /// Reads as much as is missing to the latency; returns whether something came.
    fn fill(&mut self) -> anyhow::Result<bool> {
        self.write();
        let queued = self.queued() + self.ready[0].len() as u64;
        let missing = frames_in(self.latency_ns, self.device_hz).saturating_sub(queued);
        let frames = missing * u64::from(self.rate_hz) / u64::from(self.device_hz.max(1));
        let mut bytes = vec![0; usize::try_from(frames)? * self.frame_bytes];
        let mut found = 0;
        while found < bytes.len() {
            match self.file.read(&mut bytes[found..]) {
                Ok(0) => break,
                Ok(some) => found += some,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        if found > 0 && !self.plays {
            self.begin()?;
        }
        let ready = &mut self.ready;
        self.converter.push(&bytes[..found], |planes| append(ready, planes));
        self.write();
        Ok(found > 0)
    }

    /// Begins with half of the latency in silence, so that a writer in real time has that much time
    /// for each piece.
    fn begin(&mut self) -> anyhow::Result<()> {
        let position = self.stream.writer().position();
        let silence = usize::try_from(frames_in(self.latency_ns / 2, self.device_hz))?;
        for plane in &mut self.ready {
            plane.resize(plane.len() + silence, 0.0);
        }
        self.write();
        // A stream that has drained ends there until a splice says where to go on.
        self.stream.writer_mut().control_mut().wish(Wish::Splice { position })?;
        self.stream.run()?;
        self.plays = true;
        self.state.set_plays(true);
        Ok(())
    }

    /// Writes converted frames, as far as they have room.
    fn write(&mut self) {
        let planes: Vec<&[f32]> = self.ready.iter().map(|plane| &plane[..]).collect();
        let written = self.stream.writer_mut().write(Samples::Planar(&planes));
        self.ready.iter_mut().for_each(|plane| drop(plane.drain(..written)));
    }

    /// Lets the stream end if nothing follows what is queued.
    fn follow(&mut self, found: bool) -> anyhow::Result<()> {
        let misses = self.stream.underruns();
        if misses != self.misses {
            self.misses = misses;
            self.state.note_gap();
        }
        // It will not come in time for the next look.
        let soon = frames_in(2 * self.latency_ns / INTERVALS, self.device_hz);
        if !self.plays || found || self.queued() > soon {
            return Ok(());
        }
        let ready = &mut self.ready;
        self.converter.flush(|planes| append(ready, planes));
        self.write();
        self.stream.drain()?;
        self.ready.iter_mut().for_each(Vec::clear);
        self.plays = false;
        self.state.set_plays(false);
        Ok(())
    }
}

fn append(ready: &mut [Vec<f32>], planes: &[&[f32]]) {
    for (ready, plane) in ready.iter_mut().zip(planes) {
        ready.extend_from_slice(plane);
    }
}
