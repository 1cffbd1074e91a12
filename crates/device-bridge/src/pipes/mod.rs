//! Raw samples in FIFOs: written from a device, or played on one.

mod sink;
mod source;
mod whole_frames;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use client::stream::MAX_NAME_BYTES;
use client::{OpenOptions, Session};
use convert::SampleFormat;

use crate::links::{Links, OwnDevice, Parts, Program, spawn};
use sink::PipeSink;
use source::PipeSource;

/// What the frames in a FIFO are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PipeFormat {
    pub(crate) format: SampleFormat,
    pub(crate) rate_hz: u32,
    pub(crate) channels: u32,
}

/// A FIFO. It is removed when this value is dropped, if it was made for it.
#[derive(Debug)]
pub(crate) struct Fifo {
    path: PathBuf,
    is_ours: bool,
}

impl Fifo {
    fn new(path: &Path) -> anyhow::Result<Self> {
        let is_ours = sys::fifo::make(path);
        let is_ours = is_ours.with_context(|| format!("cannot use {}", path.display()))?;
        Ok(Self { path: path.to_owned(), is_ours })
    }
}

impl Drop for Fifo {
    fn drop(&mut self) {
        if self.is_ours {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl fmt::Display for PipeFormat {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { format, rate_hz, channels } = self;
        write!(formatter, "{format}, {rate_hz} Hz, {channels} channels")
    }
}

/// Writes what is heard on a device to a FIFO: on one of its own, or on the one of this name.
///
/// # Errors
/// The server refuses the device or the stream; the FIFO cannot be made.
pub(crate) fn start_sink(
    session: Session,
    device: Result<OwnDevice, String>,
    format: PipeFormat,
    path: &Path,
    open: &OpenOptions,
) -> anyhow::Result<Links> {
    let fifo = Fifo::new(path)?;
    let name = device.as_ref().map_or_else(Clone::clone, |device| device.name().to_owned());
    let description = format!("{name} to {}: {format}", path.display());
    let parts =
        Parts { _device: device.ok(), _fifo: Some(fifo), ..Parts::new(session, description, None) };
    Links::begin(parts, open, |program| {
        let Program { connection, state } = program()?;
        let mut sink =
            PipeSink::open(&connection, &name, format, path.to_owned(), Arc::clone(&state))?;
        spawn(state, move || {
            let _connection = connection;
            sink.run()
        })
    })
}

/// Plays what comes out of a FIFO on the device `to`.
///
/// # Errors
/// There is no such device; the server refuses the stream; the FIFO cannot be made or read.
pub(crate) fn start_source(
    session: Session,
    to: &str,
    format: PipeFormat,
    latency_ms: u32,
    path: &Path,
    open: &OpenOptions,
) -> anyhow::Result<Links> {
    let fifo = Fifo::new(path)?;
    let description = format!("{} to {to}: {format}", path.display());
    let latency_shown = Some(latency_ms);
    let parts = Parts { _fifo: Some(fifo), ..Parts::new(session, description, latency_shown) };
    Links::begin(parts, open, |program| {
        let Program { connection, state } = program()?;
        let mut source =
            PipeSource::open(&connection, to, format, latency_ms, path, Arc::clone(&state))?;
        spawn(state, move || {
            let _connection = connection;
            source.run()
        })
    })
}

/// The name of a file, as the name of a stream.
fn short_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    let is_in = |(at, letter): &(usize, char)| at + letter.len_utf8() <= MAX_NAME_BYTES;
    name.char_indices().take_while(is_in).map(|(_, letter)| letter).collect()
}
