//! A source on its way to a stream, until its last frame is heard.

use std::path::Path;

use anyhow::{bail, ensure};
use client::Error;
use client::stream::{PlaybackOptions, PlaybackStream, RingSamples, Samples, Volume, Wish};
use sys::clock::now_ns;
use sys::signals::Signal;

use crate::command::stream_format;
use crate::delays::Delays;
use crate::pacing::{Pacing, next_write_ns};
use crate::peaks::Peaks;
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
    /// Here; it goes on on another device.
    Moved,
}

/// A file that plays.
#[derive(Debug)]
pub(crate) struct Playback {
    // Before the server: it ends first.
    stream: PlaybackStream,
    options: PlaybackOptions,
    server: Server,
    source: Source,
    pacing: Pacing,
    device_hz: u32,
    /// The rate by which the user reads times.
    shown_hz: u32,
    /// Time that was missed on devices of before, ms.
    missed_ms: u64,
    delays: Delays,
    /// `None`: nobody sees them.
    peaks: Option<Peaks>,
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
        (stream, options): (PlaybackStream, PlaybackOptions),
        source: Source,
        pacing: Pacing,
        device_hz: u32,
    ) -> Self {
        let delays = Delays::new(device_hz);
        Self {
            stream,
            options,
            server,
            source,
            pacing,
            device_hz,
            shown_hz: device_hz,
            missed_ms: 0,
            delays,
            peaks: None,
        }
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
        self.peaks = progress.is_shown().then(Peaks::default);
        let mut ending = self.play(&progress);
        while let Ok(Ending::Moved) = ending {
            ending = self.play(&progress);
        }
        progress.end();
        let ending = ending?;
        if ending == Ending::Drained {
            // All that could be read was heard.
            self.source.check()?;
        }
        let ms = self.missed_ms();
        if ms > 0 {
            bail!("the sound stopped for {ms} ms: the file could not be read in time");
        }
        Ok(ending)
    }

    fn missed_ms(&self) -> u64 {
        let missed = self.stream.writer().control().missed_frames();
        self.missed_ms + (missed * 1000).div_ceil(u64::from(self.device_hz.max(1)))
    }

    /// Plays until the end, until a signal, or until the stream is on another device.
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
                // Obeyed at the device's next wake-up, which is near: nobody has to be called.
                self.stream.writer_mut().control_mut().wish(Wish::Depth { frames })?;
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
                self.source.next();
                return Ok(false);
            }
            let mut frames = self.source.next();
            if frames[0].is_empty() {
                return Ok(true);
            }
            frames.iter_mut().for_each(|plane| *plane = &plane[..plane.len().min(room)]);
            let written = self.stream.writer_mut().write(Samples::Planar(&frames));
            if let Some(peaks) = &mut self.peaks {
                frames.iter_mut().for_each(|plane| *plane = &plane[..written]);
                peaks.note(position, &frames);
            }
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
            let heard = self.stream.heard(now_ns);
            let peak = self.peaks.as_mut().map_or(0.0, |peaks| peaks.take_heard(heard));
            progress.show(at_rate(heard, self.device_hz, self.shown_hz), peak);
            if self.stream.writer().control().page().has_ended() {
                return self.follow_driver(heard).map(Some);
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
                Some(Interruption::DevicesChanged) if self.follow()? => {
                    return Ok(Some(Ending::Moved));
                }
                Some(Interruption::DevicesChanged) => {}
            }
        }
    }
}

impl Playback {
    /// Goes on on another device, if the stream is wanted on one for which the file has to be
    /// converted otherwise: from the frame on at which it fades out. Returns whether it does.
    fn follow(&mut self) -> anyhow::Result<bool> {
        let status = match self.stream.status() {
            // Noticed elsewhere.
            Err(Error::ServerGone | Error::Refused(_)) => return Ok(false),
            status => status?,
        };
        let Some(device) = status.wanted else { return Ok(false) };
        match self.hold().and_then(|held| self.reopen(Some(&device), held)) {
            Ok(()) => Ok(true),
            Err(error) => {
                eprintln!("consort: it is not moved to '{device}': {error:#}");
                // The server ends it if that is why.
                self.stream.run().map_or(Ok(false), |_| Ok(false))
            }
        }
    }

    /// Goes on with the driver that has taken its place, from the frame on that was heard last. A
    /// device that was removed is not followed by another one.
    fn follow_driver(&mut self, heard: u64) -> anyhow::Result<Ending> {
        let deadline_ns = now_ns() + FOLLOWED_WITHIN_NS;
        let device = self.options.device.clone();
        loop {
            let found = self.server.connection().device_named(device.as_deref());
            let Err(error) =
                found.map_err(Into::into).and_then(|_| self.reopen(device.as_deref(), heard))
            else {
                return Ok(Ending::Moved);
            };
            if device.is_some() || now_ns() >= deadline_ns {
                return Err(error.context(DEVICE_GONE));
            }
            match self.server.sleep_until(now_ns() + FOLLOWED_POLL_NS)? {
                Some(Interruption::Signal(signal)) => return Ok(Ending::Signal(number(signal))),
                Some(Interruption::ServerGone) => return Err(error.context(DEVICE_GONE)),
                Some(Interruption::DevicesChanged) | None => {}
            }
        }
    }

    /// Holds the stream; returns the position at which it fades out.
    fn hold(&mut self) -> anyhow::Result<u64> {
        let wish = self.stream.hold()?;
        let deadline_ns = now_ns() + HELD_WITHIN_NS;
        let control = self.stream.writer_mut().control_mut();
        let _ = control.await_acknowledgement(wish, deadline_ns);
        loop {
            let timing = control.timing();
            if timing.until <= timing.position || now_ns() >= deadline_ns {
                return Ok(timing.position_at(now_ns()));
            }
            sys::clock::sleep_until(now_ns() + HELD_POLL_NS);
        }
    }

    /// Replaces the stream by one on a device of this name, or on the one that drives, that begins
    /// at what was heard up to `held`, with its volume.
    fn reopen(&mut self, device: Option<&str>, held: u64) -> anyhow::Result<()> {
        let connection = self.server.connection();
        let there = connection.device_named(device)?;
        let format = stream_format(&there)?;
        let channels = u32::try_from(format.map.channels())?;
        // Rounded down, so that no part of a frame is left out.
        let position = at_rate(held, self.device_hz, format.rate_hz);
        let options = PlaybackOptions {
            device: device.map(Into::into),
            channels: (0..channels).collect(),
            depth_frames: self.pacing.depth_frames(format.rate_hz),
            samples: RingSamples::Planes,
            ..self.options.clone()
        };
        let stream = connection.play_reopening(options.clone(), position)?;
        let Volume { gain, muted } = self.stream.volume();
        stream.set_volume(Some(gain), Some(muted))?;
        ensure!(
            self.source.convert_for(&format, position)?,
            "the file cannot be read again from where it is heard"
        );
        self.missed_ms = self.missed_ms();
        (self.options, self.device_hz) = (options, format.rate_hz);
        self.delays = Delays::new(format.rate_hz);
        self.peaks = self.peaks.as_ref().map(|_| Peaks::default());
        self.stream = stream;
        Ok(())
    }
}

/// How long the driver that replaces another one takes to be there, at most, ns, and how often that
/// is looked at.
pub(crate) const FOLLOWED_WITHIN_NS: u64 = 5_000_000_000;
pub(crate) const FOLLOWED_POLL_NS: u64 = 50_000_000;
/// How long a stream takes to hold, at most, ns, and how often that is looked at.
const HELD_WITHIN_NS: u64 = 500_000_000;
const HELD_POLL_NS: u64 = 2_000_000;

/// Returns a position at one rate as one at another, rounded down.
fn at_rate(position: u64, from_hz: u32, to_hz: u32) -> u64 {
    let frames = u128::from(position) * u128::from(to_hz) / u128::from(from_hz.max(1));
    u64::try_from(frames).unwrap_or(u64::MAX)
}

fn number(signal: Signal) -> u8 {
    match signal {
        Signal::Hangup => 1,
        Signal::Interrupt => 2,
        _ => 15,
    }
}
