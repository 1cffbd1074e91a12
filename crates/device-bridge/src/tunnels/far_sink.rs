//! A stream that plays at another server, as an end of a link.

use anyhow::Context;
use client::stream::Timing;
use convert::Encoder;
use pulse::{RemoteEvent, RemoteFormat, RemoteReader, RemoteWriter};
use rt::rate::frames_in;
use sys::clock::now_ns;

use super::far::{Connection, MOST_WAITING};
use crate::links::{End, Sink};

/// How often it is looked whether a stream has drained, ns.
const LOOK_NS: u64 = 20_000_000;

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
pub(crate) struct FarSink {
    connection: Connection,
    encoder: Encoder,
    bytes: Vec<u8>,
    written: u64,
    /// What of that has been sent.
    committed: u64,
    /// Frames that are made at once, at most.
    most_frames: u64,
    plays: Plays,
    is_dry: bool,
    misses: u64,
}

impl FarSink {
    /// Takes a stream that is corked, for a link of this latency.
    ///
    /// # Errors
    /// No thread is left.
    pub(crate) fn new(
        opened: (RemoteWriter, RemoteReader),
        format: RemoteFormat,
        latency_ns: u64,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            connection: Connection::new(opened, format)?,
            encoder: Encoder::new(format.format, format.map.channels()),
            bytes: Vec::new(),
            written: 0,
            committed: 0,
            most_frames: frames_in(2 * latency_ns, format.rate_hz),
            plays: Plays::Corked,
            is_dry: false,
            misses: 0,
        })
    }

    fn push(&mut self) {
        self.connection.writer.push(&self.bytes);
        self.bytes.clear();
        self.committed = self.written;
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
        // No more at a time than wait: a server that talks without end has no thread for itself.
        for _ in 0..MOST_WAITING {
            let Some(event) = self.connection.next() else { break };
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
        // It keeps several times the latency. Whatever it says of its time, no more than that is
        // made at once.
        let pending = self.written.saturating_sub(self.committed);
        usize::try_from(self.most_frames.saturating_sub(pending)).unwrap_or(usize::MAX)
    }

    fn write(&mut self, planes: &[&[f32]]) -> usize {
        if planes.first().is_none_or(|plane| plane.len() > self.room()) {
            return 0;
        }
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
        self.push();
        self.connection.writer.send().context("cannot send to the other server")
    }

    fn drain(&mut self) -> anyhow::Result<()> {
        self.push();
        self.plays = Plays::Drains(self.connection.writer.drain());
        self.commit()
    }
}
