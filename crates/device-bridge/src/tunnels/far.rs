//! A stream at another server, as an end of a link.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, sync_channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use client::stream::Timing;
use convert::{Decoder, Encoder};
use pulse::{RemoteEvent, RemoteFormat, RemoteReader, RemoteTiming, RemoteWriter};
use sys::clock::now_ns;

use super::far_clock::{Answer, FarClock};
use crate::links::{End, Sink, Source};

/// Things that were said and not looked at, at most: each is a packet, or a read's samples.
const MOST_WAITING: usize = 1024;
/// How often the other server is asked for the time, ns; at first, and later.
const ASK_FIRST_NS: u64 = 10_000_000;
const ASK_NS: u64 = 100_000_000;
/// Answers until it is asked less often.
const FIRST_ANSWERS: u32 = 10;
/// A server that has not answered for so long is gone, ns.
const ANSWERS_WITHIN_NS: u64 = 10_000_000_000;
/// How often it is looked whether a stream has drained, ns.
const LOOK_NS: u64 = 20_000_000;

/// A connection, whose reader has a thread of its own: it waits for whatever is said.
struct Connection {
    writer: RemoteWriter,
    said: Receiver<RemoteEvent>,
    format: RemoteFormat,
    clock: FarClock,
    /// When a question was sent that is not answered.
    asked_ns: Option<u64>,
    /// When the last question was sent.
    last_ask_ns: u64,
    answers: u32,
    ended: Option<String>,
}

impl Connection {
    fn new(
        (writer, mut reader): (RemoteWriter, RemoteReader),
        format: RemoteFormat,
    ) -> anyhow::Result<Self> {
        let (say, said) = sync_channel(MOST_WAITING);
        let read = move || {
            loop {
                let event = reader.listen();
                let is_last = matches!(event, RemoteEvent::Ended(_));
                // The link that listens may have ended.
                if say.send(event).is_err() || is_last {
                    break;
                }
            }
        };
        thread::Builder::new().name("consort-far".into()).spawn(read)?;
        Ok(Self {
            writer,
            said,
            clock: FarClock::new(format.rate_hz),
            format,
            asked_ns: None,
            last_ask_ns: 0,
            answers: 0,
            ended: None,
        })
    }

    /// Returns what has been said next, if something has.
    fn next(&mut self) -> Option<RemoteEvent> {
        match self.said.try_recv() {
            Ok(event) => Some(event),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => {
                self.ended.get_or_insert_with(|| "the connection has ended".into());
                None
            }
        }
    }

    /// # Errors
    /// Why it has ended.
    fn check(&self) -> anyhow::Result<()> {
        if let Some(reason) = &self.ended {
            bail!("{reason}");
        }
        let asked = self.asked_ns;
        let waits_ns = asked.map_or(0, |asked_ns| now_ns().saturating_sub(asked_ns));
        ensure!(waits_ns < ANSWERS_WITHIN_NS, "the other server does not answer");
        Ok(())
    }

    /// Asks for the time if it is due.
    fn ask(&mut self) {
        let now_ns = now_ns();
        let interval_ns = if self.answers < FIRST_ANSWERS { ASK_FIRST_NS } else { ASK_NS };
        if self.asked_ns.is_none() && now_ns >= self.last_ask_ns + interval_ns {
            self.writer.ask_timing();
            (self.asked_ns, self.last_ask_ns) = (Some(now_ns), now_ns);
            // At once: its answer is as exact as it is quick.
            if let Err(error) = self.writer.send() {
                self.ended = Some(format!("{error:#}"));
            }
        }
    }

    /// Takes an answer about a stream that runs; `index` is heard as it says.
    fn answered(&mut self, timing: RemoteTiming) {
        let Some(asked_ns) = self.asked_ns.take() else { return };
        if !timing.runs {
            return;
        }
        self.answers = self.answers.saturating_add(1);
        let frames = timing.index as f64 / self.format.frame_bytes() as f64;
        let later = timing.heard_in_us as f64 * f64::from(self.format.rate_hz) / 1e6;
        let answered_ns = timing.answered_ns;
        self.clock.answered(Answer { asked_ns, answered_ns, position: frames - later });
    }

    /// The stream stands: when its next frame is heard is not known.
    fn stands(&mut self) {
        self.clock.reset();
        self.answers = 0;
    }
}

/// What a sink at another server does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Plays {
    /// It waits, and that server may sleep.
    Corked,
    Runs,
    /// It is to wait once the drain of this number is over.
    Drains(u32),
}

/// Plays at another server.
pub(super) struct FarSink {
    connection: Connection,
    encoder: Encoder,
    bytes: Vec<u8>,
    written: u64,
    plays: Plays,
    is_dry: bool,
    misses: u64,
}

impl FarSink {
    /// Takes a stream that is corked.
    ///
    /// # Errors
    /// No thread is left.
    pub(super) fn new(
        opened: (RemoteWriter, RemoteReader),
        format: RemoteFormat,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            connection: Connection::new(opened, format)?,
            encoder: Encoder::new(format.format, format.map.channels()),
            bytes: Vec::new(),
            written: 0,
            plays: Plays::Corked,
            is_dry: false,
            misses: 0,
        })
    }

    fn take(&mut self, event: RemoteEvent) {
        match event {
            RemoteEvent::Timing(timing) => {
                // One that was asked before it stood says nothing of what comes.
                if self.plays == Plays::Corked {
                    self.connection.asked_ns = None;
                } else {
                    self.connection.answered(timing);
                }
            }
            RemoteEvent::Underflow(index) => {
                self.connection.stands();
                let frame_bytes = self.connection.format.frame_bytes() as u64;
                // What was written since is heard when there is enough of it.
                let is_all = index < 0 || index.unsigned_abs() / frame_bytes >= self.written;
                if self.plays == Plays::Runs {
                    self.is_dry = is_all;
                    self.misses += 1;
                }
            }
            RemoteEvent::Overflow => self.misses += 1,
            RemoteEvent::Drained(number) if self.plays == Plays::Drains(number) => {
                self.plays = Plays::Corked;
                self.connection.stands();
                self.connection.writer.cork(true);
            }
            RemoteEvent::Ended(reason) => self.connection.ended = Some(reason),
            RemoteEvent::Drained(_) | RemoteEvent::Wanted(_) | RemoteEvent::Samples(_) => {}
        }
    }
}

impl Sink for FarSink {
    fn has_ended(&mut self) -> anyhow::Result<Option<End>> {
        while let Some(event) = self.connection.next() {
            self.take(event);
        }
        self.connection.check()?;
        Ok(None)
    }

    fn look_ns(&self) -> Option<u64> {
        matches!(self.plays, Plays::Drains(_)).then(|| now_ns() + LOOK_NS)
    }

    fn timing(&mut self) -> Timing {
        self.connection.ask();
        self.connection.clock.timing()
    }

    fn misses(&mut self) -> u64 {
        self.misses
    }

    fn has_run_dry(&mut self) -> bool {
        self.is_dry
    }

    fn position(&self) -> u64 {
        self.written
    }

    fn room(&self) -> usize {
        // It keeps several times the latency, and the link makes no more than that.
        usize::MAX
    }

    fn write(&mut self, planes: &[&[f32]]) -> usize {
        let bytes = &mut self.bytes;
        self.encoder.push(planes, |piece| bytes.extend_from_slice(piece));
        let frames = planes.first().map_or(0, |plane| plane.len());
        self.written += frames as u64;
        self.is_dry = false;
        frames
    }

    fn begin(&mut self, _position: u64) -> anyhow::Result<()> {
        if self.plays == Plays::Corked {
            self.connection.stands();
            self.connection.writer.cork(false);
        }
        self.plays = Plays::Runs;
        self.commit()
    }

    fn commit(&mut self) -> anyhow::Result<()> {
        self.connection.writer.push(&self.bytes);
        self.bytes.clear();
        self.connection.writer.send().context("cannot send to the other server")
    }

    fn drain(&mut self) -> anyhow::Result<()> {
        self.connection.writer.push(&self.bytes);
        self.bytes.clear();
        self.plays = Plays::Drains(self.connection.writer.drain());
        self.commit()
    }
}

/// What is recorded at another server.
pub(super) struct FarSource {
    connection: Connection,
    decoder: Decoder,
    channels: Vec<VecDeque<f32>>,
    /// The position of the next frame that is read.
    position: u64,
    /// Bytes that have come, as that server counts them.
    received: i64,
    last_came_ns: u64,
    /// Samples that do not come for so long do not come for now, ns.
    latency_ns: u64,
    misses: u64,
}

impl FarSource {
    /// Takes a stream that runs.
    ///
    /// # Errors
    /// No thread is left.
    pub(super) fn new(
        opened: (RemoteWriter, RemoteReader),
        format: RemoteFormat,
        latency_ns: u64,
    ) -> anyhow::Result<Self> {
        let channels = format.map.channels();
        Ok(Self {
            connection: Connection::new(opened, format)?,
            decoder: Decoder::new(format.format, channels),
            channels: vec![VecDeque::new(); channels],
            position: 0,
            received: 0,
            last_came_ns: 0,
            latency_ns,
            misses: 0,
        })
    }

    fn take(&mut self, event: RemoteEvent) {
        match event {
            RemoteEvent::Samples(bytes) => {
                let channels = &mut self.channels;
                self.decoder.push(&bytes, |planes| {
                    for (channel, plane) in channels.iter_mut().zip(planes) {
                        channel.extend(*plane);
                    }
                });
                self.received = self.received.saturating_add_unsigned(bytes.len() as u64);
                let now_ns = now_ns();
                if now_ns.saturating_sub(self.last_came_ns) > self.latency_ns {
                    // It had stood.
                    self.connection.stands();
                }
                self.last_came_ns = now_ns;
            }
            RemoteEvent::Timing(timing) => {
                let lost = timing.sent.saturating_sub(self.received);
                let frame_bytes = self.connection.format.frame_bytes() as i64;
                if lost > 0 && lost % frame_bytes == 0 {
                    // It has left something out: what comes next is later.
                    self.position += (lost / frame_bytes).unsigned_abs() + self.available() as u64;
                    self.channels.iter_mut().for_each(VecDeque::clear);
                    self.received = timing.sent;
                    self.misses += 1;
                }
                self.connection.answered(timing);
            }
            RemoteEvent::Overflow => self.misses += 1,
            RemoteEvent::Ended(reason) => self.connection.ended = Some(reason),
            RemoteEvent::Drained(_) | RemoteEvent::Wanted(_) | RemoteEvent::Underflow(_) => {}
        }
    }
}

impl Source for FarSource {
    fn await_frames(&mut self, deadline_ns: u64) -> usize {
        loop {
            while let Some(event) = self.connection.next() {
                self.take(event);
            }
            let left_ns = deadline_ns.saturating_sub(now_ns());
            if self.available() > 0 || left_ns == 0 || self.connection.ended.is_some() {
                return self.available();
            }
            match self.connection.said.recv_timeout(Duration::from_nanos(left_ns)) {
                Ok(event) => self.take(event),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    self.connection.ended.get_or_insert_with(|| "the connection has ended".into());
                }
            }
        }
    }

    fn has_ended(&mut self) -> anyhow::Result<bool> {
        self.connection.check()?;
        Ok(false)
    }

    fn timing(&mut self) -> Timing {
        self.connection.ask();
        let timing = self.connection.clock.timing();
        let comes = now_ns().saturating_sub(self.last_came_ns) < self.latency_ns;
        let until = if comes { u64::MAX } else { timing.position };
        Timing { until, ..timing }
    }

    fn available(&self) -> usize {
        self.channels.first().map_or(0, VecDeque::len)
    }

    fn read(&mut self, planes: &mut [&mut [f32]]) -> (u64, usize) {
        let room = planes.first().map_or(0, |plane| plane.len());
        let frames = room.min(self.available());
        for (channel, plane) in self.channels.iter_mut().zip(planes) {
            for (sample, from) in plane.iter_mut().zip(channel.drain(..frames)) {
                *sample = from;
            }
        }
        let position = self.position;
        self.position += frames as u64;
        (position, frames)
    }

    fn misses(&mut self) -> u64 {
        self.misses
    }
}
