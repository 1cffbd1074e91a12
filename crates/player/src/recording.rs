//! A stream on its way into a file.

use anyhow::bail;
use client::Error;
use client::stream::{ConvertedReader, RecordStream, Volume, WishError};
use soundfile::{SoundFileError, Writer};
use sys::clock::now_ns;
use sys::signals::Signal;

use crate::playback::{DEVICE_GONE, FOLLOWED_POLL_NS, FOLLOWED_WITHIN_NS};
use crate::progress::Level;
use crate::record::Elsewhere;
use crate::server::{Interruption, Server, Wait};

/// The next look where the device does not say when there is more, ns.
const UNKNOWN_NS: u64 = 50_000_000;
/// How long after the device's wake-up its frames are there, ns.
const AFTER_WAKE_NS: u64 = 2_000_000;

/// How long a stream takes to hold, at most, ns.
const HELD_WITHIN_NS: u64 = 500_000_000;

/// A recording that runs.
pub(crate) struct Recording {
    // Before the server: it ends first.
    stream: RecordStream,
    server: Server,
    reader: ConvertedReader,
    elsewhere: Elsewhere,
    file: Take,
    level: Level,
    /// Frames that are missing of streams on devices of before.
    lost: u64,
    /// How long there was no server, as long as that is not reported.
    gone_ms: u64,
}

/// How a recording has ended, with a complete file.
pub(crate) struct Ended {
    /// The signal that has ended it.
    pub(crate) signal: Option<Signal>,
    /// Frames of the stream that are missing.
    pub(crate) lost: u64,
}

/// The file, and how much of it there is to be.
struct Take {
    writer: Writer,
    /// Frames; `None`: until a signal.
    most: Option<u64>,
    /// What was converted and is not written yet.
    block: Vec<u8>,
}

impl Take {
    fn is_full(&self) -> bool {
        self.most.is_some_and(|most| self.writer.frames() >= most)
    }

    /// Writes the block, as far as it is wanted.
    fn write(&mut self) -> Result<(), SoundFileError> {
        let left = self.most.map_or(u64::MAX, |most| most.saturating_sub(self.writer.frames()));
        let wanted = left.saturating_mul(self.writer.frame_bytes() as u64);
        let wanted = usize::try_from(wanted).unwrap_or(usize::MAX).min(self.block.len());
        let written = self.writer.write_bytes(&self.block[..wanted]);
        self.block.clear();
        written
    }
}

impl Recording {
    /// Prepares to record `most` frames, or until a signal.
    pub(crate) fn new(
        (stream, reader, elsewhere): (RecordStream, ConvertedReader, Elsewhere),
        server: Server,
        (writer, level): (Writer, Level),
        most: Option<u64>,
    ) -> Self {
        let file = Take { writer, most, block: Vec::new() };
        Self { stream, server, reader, elsewhere, file, level, lost: 0, gone_ms: 0 }
    }

    /// Records until everything is there, or until a signal.
    ///
    /// # Errors
    /// The file cannot be written; the server has ended, or the stream. What was recorded by then
    /// is in the file.
    pub(crate) fn run(mut self) -> anyhow::Result<Ended> {
        let recorded = self.record();
        let written = self.flush();
        self.level.end();
        self.report_gap();
        let lost = self.lost();
        let finished = self.file.writer.finish();
        let signal = recorded?;
        written.and(finished)?;
        Ok(Ended { signal, lost })
    }

    /// Returns how many frames are missing.
    fn lost(&self) -> u64 {
        let reader = self.stream.reader();
        self.lost + reader.lost() + reader.control().missed_frames()
    }

    /// Writes what a filter has held back, as if silence followed.
    fn flush(&mut self) -> Result<(), SoundFileError> {
        let Self { reader, file, .. } = self;
        reader.flush(|bytes| file.block.extend_from_slice(bytes));
        file.write()
    }

    fn record(&mut self) -> anyhow::Result<Option<Signal>> {
        lasting(self.stream.run())?;
        let mut interruption = None;
        loop {
            self.write()?;
            match interruption {
                None => {}
                Some(Interruption::DevicesChanged) => self.follow()?,
                Some(Interruption::Signal(signal)) => return Ok(Some(signal)),
                Some(Interruption::ServerGone) => match self.server.await_next(&mut self.stream)? {
                    Wait::Returned { gone_ms } => self.gone_ms += gone_ms,
                    Wait::Signal(signal) => return Ok(Some(signal)),
                },
            }
            if self.file.is_full() {
                return Ok(None);
            }
            if self.stream.reader().control().page().has_ended()
                && let Some(signal) = self.follow_driver()?
            {
                return Ok(Some(signal));
            }
            if self.gone_ms > 0 && self.stream.reader_mut().unrecorded_frames().is_some() {
                self.level.end();
                self.report_gap();
            }
            interruption = self.server.sleep_until(self.next_look_ns())?;
            if let Some(Interruption::Signal(_)) = interruption {
                // What was heard by now.
                lasting(self.stream.hold())?;
            }
        }
    }

    /// Goes on on another device, if the stream is wanted on one that it does not fit as it is.
    fn follow(&mut self) -> anyhow::Result<()> {
        let status = match self.stream.status() {
            // Noticed elsewhere.
            Err(Error::ServerGone | Error::Refused(_)) => return Ok(()),
            status => status?,
        };
        let Some(device) = status.wanted else { return Ok(()) };
        match self.elsewhere.open(self.server.connection(), Some(&device)) {
            Ok((stream, reader)) => self.go_on_with(stream, reader, status.volume),
            Err(error) => {
                self.level.end();
                eprintln!("consort: it is not moved to '{device}': {error:#}");
                Ok(())
            }
        }
    }

    /// Goes on with the driver that has taken the place of the one whose sound is recorded; returns
    /// early with a signal. Nothing follows any other device.
    fn follow_driver(&mut self) -> anyhow::Result<Option<Signal>> {
        let state = self.stream.reader().control().page().state();
        if !self.elsewhere.is_monitor()
            || state.is_none_or(|state| state.device.further().is_some())
        {
            bail!(DEVICE_GONE);
        }
        let volume = self.stream.volume();
        let deadline_ns = now_ns() + FOLLOWED_WITHIN_NS;
        loop {
            let error = match self.elsewhere.open(self.server.connection(), None) {
                Ok((stream, reader)) => {
                    // Otherwise the next look finds that the server has gone.
                    if self.give(&stream, volume)? {
                        self.replace(stream, reader)?;
                    }
                    return Ok(None);
                }
                Err(error) => error,
            };
            if now_ns() >= deadline_ns {
                return Err(error.context(DEVICE_GONE));
            }
            match self.server.sleep_until(now_ns() + FOLLOWED_POLL_NS)? {
                Some(Interruption::Signal(signal)) => return Ok(Some(signal)),
                Some(Interruption::ServerGone) => return Err(error.context(DEVICE_GONE)),
                Some(Interruption::DevicesChanged) | None => {}
            }
        }
    }

    /// Records another stream from now on, after what was heard on the device of this one.
    fn go_on_with(
        &mut self,
        stream: RecordStream,
        reader: ConvertedReader,
        volume: Volume,
    ) -> anyhow::Result<()> {
        if !self.give(&stream, volume)? {
            return Ok(());
        }
        if let Some(held) = lasting(self.stream.hold())? {
            let deadline_ns = now_ns() + HELD_WITHIN_NS;
            let _ = self.stream.reader().control().await_acknowledgement(held, deadline_ns);
        }
        self.replace(stream, reader)
    }

    /// Gives a stream a volume; returns whether the server is there.
    fn give(&self, stream: &RecordStream, volume: Volume) -> anyhow::Result<bool> {
        let Volume { gain, muted } = volume;
        match self.server.connection().set_volume(stream.number(), Some(gain), Some(muted)) {
            Err(Error::ServerGone) => Ok(false),
            set => Ok(set.map(|_| true)?),
        }
    }

    /// Records another stream from now on, after what there is of this one.
    fn replace(&mut self, stream: RecordStream, reader: ConvertedReader) -> anyhow::Result<()> {
        self.write()?;
        self.flush()?;
        self.lost = self.lost();
        (self.stream, self.reader) = (stream, reader);
        lasting(self.stream.run())?;
        Ok(())
    }

    /// Says how long there was no server, unless that was said before.
    fn report_gap(&mut self) {
        let gone_ms = std::mem::take(&mut self.gone_ms);
        if gone_ms > 0 {
            let frames = self.stream.reader_mut().unrecorded_frames();
            let missing = frames.map(|frames| format!(": {frames} frames are missing"));
            eprintln!(
                "consort: the server was gone for {gone_ms} ms{}",
                missing.unwrap_or_default()
            );
        }
    }

    fn next_look_ns(&self) -> u64 {
        let reader = self.stream.reader();
        let schedule = reader.control().page().schedule();
        let due = schedule.and_then(|schedule| schedule.due(reader.position()));
        let now_ns = now_ns();
        due.map_or(now_ns + UNKNOWN_NS, |due| due.at_ns.max(now_ns) + AFTER_WAKE_NS)
    }

    /// Writes what is there, as far as it is wanted.
    fn write(&mut self) -> anyhow::Result<()> {
        let Self { stream, reader, file, level, .. } = self;
        while !file.is_full() {
            let block = &mut file.block;
            let read = reader.read(stream.reader_mut(), |bytes| block.extend_from_slice(bytes));
            file.write()?;
            if read[0].is_empty() {
                break;
            }
            level.note(&read);
        }
        level.show(file.writer.frames(), now_ns());
        Ok(())
    }
}

/// Returns the number of a wish; `None` if the server has gone: the next one gets it.
fn lasting(wish: Result<u64, WishError>) -> Result<Option<u64>, WishError> {
    match wish {
        Err(WishError::Server(Error::ServerGone)) => Ok(None),
        wish => wish.map(Some),
    }
}
