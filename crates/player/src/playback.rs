//! A source on its way to a stream, until its last frame is heard.

use std::path::Path;

use anyhow::bail;
use client::Error;
use client::stream::{PlaybackStream, Samples, Wish};
use sys::clock::now_ns;
use sys::signals::Signal;

use crate::delays::Delays;
use crate::pacing::{Pacing, next_write_ns};
use crate::progress::Progress;
use crate::server::{Interruption, Server, Wait};
use crate::source::Source;

/// Why a playback has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Everything was heard.
    Drained,
    /// By the signal of this number.
    Signal(u8),
}

/// A file that plays.
#[derive(Debug)]
pub(crate) struct Playback {
    // Before the server: it ends first.
    stream: PlaybackStream,
    server: Server,
    source: Source,
    pacing: Pacing,
    device_hz: u32,
    delays: Delays,
}

/// What is said of a stream that the server has ended.
pub(crate) const DEVICE_GONE: &str = "the server has ended the stream: its device was removed, or \
                                      another driver has taken its place";

/// How long after the device's wake-up its new state is looked at.
const AFTER_WAKE_NS: u64 = 2_000_000;

impl Playback {
    /// Prepares to play a source on a stream at this pace, on a device of this rate.
    pub(crate) fn new(
        server: Server,
        stream: PlaybackStream,
        source: Source,
        pacing: Pacing,
        device_hz: u32,
    ) -> Self {
        let delays = Delays::new(device_hz);
        Self { stream, server, source, pacing, device_hz, delays }
    }

    /// Returns how long frames took from when they were written until they were heard.
    pub(crate) fn delays(&self) -> Delays {
        self.delays
    }

    /// Plays until the end, or until a signal: then the stream fades out as it is dropped.
    pub(crate) fn run(&mut self, file: &Path) -> anyhow::Result<Ending> {
        let (rate_hz, channels) = self.source.shape();
        let s = if channels == 1 { "" } else { "s" };
        let about = format!("{rate_hz} Hz, {channels} channel{s}");
        let progress = Progress::begin(file, &about, self.source.frames(), self.device_hz);
        let ending = self.play(&progress);
        progress.end();
        let ending = ending?;
        let missed = self.stream.writer().control().missed_frames();
        if missed > 0 {
            let ms = missed * 1000 / u64::from(self.device_hz.max(1));
            bail!("the sound stopped for {ms} ms: the file could not be read in time");
        }
        Ok(ending)
    }

    fn play(&mut self, progress: &Progress) -> anyhow::Result<Ending> {
        let heard = self.stream.heard(now_ns());
        let mut is_written = self.fill(heard)?;
        if let Some(ending) = self.wish(Wish::Run, progress)? {
            return Ok(ending);
        }
        while !is_written {
            let writer = self.stream.writer();
            let schedule = writer.control().page().schedule();
            let (written, has_room) = (writer.position(), writer.available() > 0);
            let lead_ns = self.pacing.lead_ns;
            let write_ns = next_write_ns(schedule, written, has_room, lead_ns, now_ns());
            if let Some(ending) = self.sleep_until(write_ns, progress)? {
                return Ok(ending);
            }
            let now_ns = now_ns();
            if self.pacing.note_lateness(now_ns.saturating_sub(write_ns)) {
                let frames = self.pacing.depth_frames(self.device_hz);
                if let Some(ending) = self.wish(Wish::Depth { frames }, progress)? {
                    return Ok(ending);
                }
            }
            let (heard, was_dry) = (self.stream.heard(now_ns), self.stream.has_drained(now_ns));
            is_written = self.fill(heard)?;
            self.delays.note(written, self.stream.writer().position(), heard);
            // The device may sleep, since it had nothing to play.
            if was_dry && let Some(ending) = self.call(progress)? {
                return Ok(ending);
            }
        }
        let end = self.stream.writer().position();
        match self.wish(Wish::Drain { end }, progress)? {
            Some(ending) => Ok(ending),
            None => self.drain(end, progress),
        }
    }

    /// Writes as much as the ring has room for, and as the pace allows while `heard` is heard;
    /// returns whether nothing is left.
    fn fill(&mut self, heard: u64) -> anyhow::Result<bool> {
        loop {
            let position = self.stream.writer().position();
            let room = self.pacing.room(self.device_hz, position, heard);
            let room = room.min(self.stream.writer().available());
            if room == 0 {
                // Decoded now, and not when the device is about to need it.
                self.source.next()?;
                return Ok(false);
            }
            let mut frames = self.source.next()?;
            if frames[0].is_empty() {
                return Ok(true);
            }
            frames.iter_mut().for_each(|plane| *plane = &plane[..plane.len().min(room)]);
            let written = self.stream.writer_mut().write(Samples::Planar(&frames));
            self.source.take(written);
        }
    }

    fn wish(&mut self, wish: Wish, progress: &Progress) -> anyhow::Result<Option<Ending>> {
        self.stream.writer_mut().control_mut().wish(wish)?;
        self.call(progress)
    }

    /// Has the device look at the stream.
    fn call(&mut self, progress: &Progress) -> anyhow::Result<Option<Ending>> {
        match self.stream.call() {
            // The next one gets the wish.
            Err(Error::ServerGone) => self.await_next_server(progress),
            called => Ok(called.map(|()| None)?),
        }
    }

    /// Goes on with the server that follows; returns the ending that a signal brings.
    fn await_next_server(&mut self, progress: &Progress) -> anyhow::Result<Option<Ending>> {
        match self.server.await_next(&mut self.stream)? {
            Wait::Signal(signal) => Ok(Some(Ending::Signal(number(signal)))),
            Wait::Returned { gone_ms } => {
                progress.end();
                eprintln!("consort: the server was gone for {gone_ms} ms");
                Ok(None)
            }
        }
    }

    /// Waits until everything before position `end` is heard.
    fn drain(&mut self, end: u64, progress: &Progress) -> anyhow::Result<Ending> {
        loop {
            let now_ns = now_ns();
            let control = self.stream.writer_mut().control_mut();
            let timing = control.timing();
            if timing.position_at(now_ns) >= end {
                return Ok(Ending::Drained);
            }
            let heard_ns = timing.time_of(end.saturating_sub(1));
            let woken_ns = control.page().schedule().map(|schedule| schedule.wake_ns);
            let until_ns = heard_ns.or(woken_ns).unwrap_or(0).max(now_ns) + AFTER_WAKE_NS;
            if let Some(ending) = self.sleep_until(until_ns, progress)? {
                return Ok(ending);
            }
        }
    }

    /// Sleeps, and less if the server is followed by another one meanwhile; returns early with the
    /// ending that a signal brings.
    fn sleep_until(
        &mut self,
        until_ns: u64,
        progress: &Progress,
    ) -> anyhow::Result<Option<Ending>> {
        loop {
            let now_ns = now_ns();
            progress.show(self.stream.heard(now_ns));
            if self.stream.writer().control().page().has_ended() {
                bail!(DEVICE_GONE);
            }
            if now_ns >= until_ns {
                return Ok(None);
            }
            let shown_ns = progress.due_ns(now_ns).unwrap_or(u64::MAX);
            match self.server.sleep_until(until_ns.min(shown_ns))? {
                None => {}
                Some(Interruption::Signal(signal)) => {
                    return Ok(Some(Ending::Signal(number(signal))));
                }
                Some(Interruption::ServerGone) => return self.await_next_server(progress),
            }
        }
    }
}

fn number(signal: Signal) -> u8 {
    match signal {
        Signal::Hangup => 1,
        Signal::Interrupt => 2,
        _ => 15,
    }
}
