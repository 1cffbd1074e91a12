//! A stream that records at another server, as an end of a link.

use std::collections::VecDeque;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use client::stream::Timing;
use convert::Decoder;
use pulse::{RemoteEvent, RemoteFormat, RemoteReader, RemoteWriter};
use sys::clock::now_ns;

use super::far::{Connection, MOST_WAITING};
use crate::links::Source;

/// What may have been left out at once, s: more makes no sense.
const MOST_LOST_S: i64 = 3600;

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
    /// Samples that have not come within this time do not come for now, ns.
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
                let most = i64::from(self.connection.format.rate_hz) * MOST_LOST_S * frame_bytes;
                if (1..=most).contains(&lost) && lost % frame_bytes == 0 {
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
            // No more at a time than wait, as for a sink.
            for _ in 0..MOST_WAITING {
                let Some(event) = self.connection.next() else { break };
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
