//! The packets of a session, as an end of a link.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::net::UdpSocket;
use std::sync::Arc;

use client::stream::Timing;
use convert::{Decoder, SampleFormat};
use rt::rate::frames_in;
use sys::clock::now_ns;
use sys::poll::{Interest, Poller, Waker};

use super::arrivals::ArrivalClock;
use super::description::Samples;
use super::order::{Order, Piece};
use super::packet::Packet;
use crate::links::{INTERVALS, Source};

/// The longest datagram.
const MOST_BYTES: usize = 1 << 16;
/// Packets that are read at once: a sender that never rests has no thread for itself.
const MOST_PACKETS: usize = 256;
/// Tokens of what is waited for.
const PACKETS: u64 = 0;
const END: u64 = 1;

/// What comes in packets.
pub(super) struct PacketSource {
    socket: UdpSocket,
    poller: Poller,
    /// Readable once the session is over.
    end: Arc<Waker>,
    has_ended: bool,
    samples: Samples,
    bytes: Vec<u8>,
    ordered: Ordered,
    clock: ArrivalClock,
    last_came_ns: u64,
    /// A sender that has sent nothing within this time is silent, ns.
    silent_after_ns: u64,
    /// Frames for which it is worth to wake the link.
    interval_frames: usize,
}

/// The frames of packets, in order.
struct Ordered {
    order: Order,
    decoder: Decoder,
    channels: Vec<VecDeque<f32>>,
    /// The position of the next frame that is read.
    position: u64,
    misses: u64,
}

impl Ordered {
    fn available(&self) -> usize {
        self.channels.first().map_or(0, VecDeque::len)
    }

    /// The position of the next frame that comes.
    fn end(&self) -> u64 {
        self.position + self.available() as u64
    }
}

/// Takes what is next; returns whether the sender has begun again.
fn take(
    piece: &Piece<'_>,
    decoder: &mut Decoder,
    channels: &mut [VecDeque<f32>],
    misses: &mut u64,
) -> bool {
    match piece {
        Piece::Samples(bytes) => decoder.push(bytes, |planes| {
            for (channel, plane) in channels.iter_mut().zip(planes) {
                channel.extend(*plane);
            }
        }),
        // At most what a packet may be ahead.
        Piece::Lost(frames) => {
            let frames = usize::try_from(*frames).unwrap_or(0);
            for channel in channels {
                channel.resize(channel.len() + frames, 0.0);
            }
        }
        Piece::Jump => {
            *misses += 1;
            return true;
        }
    }
    false
}

impl PacketSource {
    /// Takes packets from a socket, for a link of this latency, until `end` is woken.
    ///
    /// # Errors
    /// No descriptor is left.
    pub(super) fn new(
        socket: UdpSocket,
        end: Arc<Waker>,
        samples: Samples,
        latency_ns: u64,
    ) -> anyhow::Result<Self> {
        socket.set_nonblocking(true)?;
        let poller = Poller::new()?;
        poller.add(&socket, PACKETS, Interest::Readable)?;
        poller.add(&*end, END, Interest::Readable)?;
        let channels = usize::try_from(samples.channels)?;
        let format = SampleFormat::Linear(dsp::Format::S16Be);
        let frames = |ns| frames_in(ns, samples.rate_hz);
        // What is missing for longer could not be heard in time.
        let order = Order::new(
            format.bytes_per_sample() * channels,
            u32::try_from(frames(latency_ns / 2))?,
        );
        Ok(Self {
            socket,
            poller,
            end,
            has_ended: false,
            samples,
            bytes: vec![0; MOST_BYTES],
            ordered: Ordered {
                order,
                decoder: Decoder::new(format, channels),
                channels: vec![VecDeque::new(); channels],
                position: 0,
                misses: 0,
            },
            clock: ArrivalClock::new(samples.rate_hz),
            last_came_ns: 0,
            silent_after_ns: latency_ns / 2,
            interval_frames: usize::try_from(frames(latency_ns / INTERVALS / 2))?.max(1),
        })
    }

    /// Reads what has arrived.
    fn read_packets(&mut self) {
        for _ in 0..MOST_PACKETS {
            match self.socket.recv(&mut self.bytes) {
                Ok(count) => self.arrived(count, now_ns()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // Nothing more has come, or the network says that something is wrong with it.
                Err(_) => break,
            }
        }
    }

    fn arrived(&mut self, count: usize, now_ns: u64) {
        let Some(packet) = self.bytes.get(..count).and_then(Packet::read) else { return };
        if packet.payload_type != self.samples.payload_type {
            return;
        }
        let is_silent = self.is_silent(now_ns);
        let Ordered { order, decoder, channels, position, misses } = &mut self.ordered;
        let (mut came, mut begins) = (false, is_silent);
        order.push(&packet, is_silent, |piece| {
            came = true;
            if take(&piece, decoder, channels, misses) {
                begins = true;
                // Positions are not those before: what has not been read is left out.
                let left_out = channels.first().map_or(0, VecDeque::len) as u64;
                channels.iter_mut().for_each(VecDeque::clear);
                *position += left_out + 1;
                decoder.reset();
            }
        });
        if !came {
            return;
        }
        if begins {
            self.clock.reset();
        }
        self.clock.arrived(now_ns, self.ordered.end());
        self.last_came_ns = now_ns;
    }

    fn is_silent(&self, now_ns: u64) -> bool {
        now_ns.saturating_sub(self.last_came_ns) > self.silent_after_ns
    }

    /// What is missing before packets that wait does not come any more.
    fn give_up_if_silent(&mut self) {
        if self.is_silent(now_ns()) {
            let Ordered { order, decoder, channels, misses, .. } = &mut self.ordered;
            order.flush(|piece| {
                take(&piece, decoder, channels, misses);
            });
        }
    }
}

impl Source for PacketSource {
    fn await_frames(&mut self, deadline_ns: u64) -> usize {
        let mut events = Vec::new();
        let mut until_ns = deadline_ns;
        loop {
            self.read_packets();
            self.give_up_if_silent();
            self.has_ended |= self.end.reset();
            let (available, now_ns) = (self.ordered.available(), now_ns());
            if available >= self.interval_frames || now_ns >= until_ns || self.has_ended {
                return available;
            }
            if available > 0 {
                // What has come does not wait for long, whatever else comes.
                let soon_ns = now_ns + self.silent_after_ns / INTERVALS;
                until_ns = until_ns.min(soon_ns);
            }
            if self.poller.wait(&mut events, Some(until_ns)).is_err() {
                return available;
            }
        }
    }

    fn has_ended(&mut self) -> anyhow::Result<bool> {
        Ok(self.has_ended)
    }

    fn timing(&mut self) -> Timing {
        let timing = self.clock.timing();
        let until = if self.is_silent(now_ns()) { timing.position } else { u64::MAX };
        Timing { until, ..timing }
    }

    fn available(&self) -> usize {
        self.ordered.available()
    }

    fn read(&mut self, planes: &mut [&mut [f32]]) -> (u64, usize) {
        let room = planes.first().map_or(0, |plane| plane.len());
        let frames = room.min(self.ordered.available());
        for (channel, plane) in self.ordered.channels.iter_mut().zip(planes) {
            for (sample, from) in plane.iter_mut().zip(channel.drain(..frames)) {
                *sample = from;
            }
        }
        let position = self.ordered.position;
        self.ordered.position += frames as u64;
        (position, frames)
    }

    fn misses(&mut self) -> u64 {
        self.ordered.misses
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::super::packet::Packets;
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    fn scene() -> (UdpSocket, PacketSource, Arc<Waker>) {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
        let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
        sender.connect(socket.local_addr().expect("its address")).expect("connected");
        let end = Arc::new(Waker::new().expect("a waker"));
        let samples = Samples::new(8_000, 1);
        let source = PacketSource::new(socket, Arc::clone(&end), samples, 20 * SECOND_NS);
        (sender, source.expect("a source"), end)
    }

    fn read(source: &mut PacketSource) -> (u64, Vec<f32>) {
        let mut plane = vec![0.0; 20_000];
        let (position, frames) = source.read(&mut [&mut plane]);
        plane.truncate(frames);
        (position, plane)
    }

    #[test]
    fn samples_of_packets_are_read_at_their_positions() {
        let (sender, mut source, _) = scene();
        let mut packets = Packets::new([1, 2, 3], 127, 2, 1_000);
        let samples: Vec<u8> = (0..10_000_i16).flat_map(i16::to_be_bytes).collect();
        let mut sent = Vec::new();
        packets.push(&samples, |packet| sent.push(packet.to_vec()));
        // The fourth is overtaken, and the seventh is lost.
        sent.swap(3, 4);
        sent.remove(6);
        sender.send(b"no packet").expect("sent");
        for packet in &sent {
            sender.send(packet).expect("sent");
        }
        let found = source.await_frames(now_ns() + 10 * SECOND_NS);
        assert_eq!(found, 10_000);
        let (position, read) = read(&mut source);
        assert_eq!(position, 1);
        for (at, sample) in read.iter().enumerate() {
            let expected = if (3_000..3_500).contains(&at) { 0.0 } else { at as f32 };
            assert_eq!(*sample * 32_768.0, expected, "frame {at}");
        }
        assert!(!source.has_ended().expect("no error"));
    }

    #[test]
    fn a_sender_that_begins_again_is_at_another_position() {
        let (sender, mut source, _) = scene();
        let packet = |timestamp: u32| {
            let mut packets = Packets::new([1, timestamp, 3], 127, 2, 20_000);
            let mut sent = Vec::new();
            packets.push(&[0; 20_000], |packet| sent.extend_from_slice(packet));
            sent
        };
        sender.send(&packet(0)).expect("sent");
        assert_eq!(source.await_frames(now_ns() + 10 * SECOND_NS), 10_000);
        let (position, frames) = read(&mut source);
        let misses = source.misses();
        sender.send(&packet(1 << 30)).expect("sent");
        assert_eq!(source.await_frames(now_ns() + 10 * SECOND_NS), 10_000);
        assert!(read(&mut source).0 > position + frames.len() as u64);
        assert_eq!(source.misses(), misses + 1);
    }

    #[test]
    fn a_session_that_is_over_keeps_nobody_waiting() {
        let (_sender, mut source, end) = scene();
        end.wake();
        assert_eq!(source.await_frames(u64::MAX), 0);
        assert!(source.has_ended().expect("no error"));
    }
}
