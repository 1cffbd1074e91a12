//! A stream on a card with a clock of its own.

mod beginning;
mod card;
mod indices;
mod monitored;
mod motion;
mod moving;
mod sent;

use card::Card;
use client::stream::Gains;
use convert::{Mixing, ProgramFormat, SampleFormat, StreamFormat};
use pulseaudio::protocol::stream::BufferAttr;

use super::{Notice, Playback};
use crate::playback::{Latency, Requested};
use crate::wire::Seek;

const RATE_HZ: u32 = 48_000;
/// Bytes of a second of 16-bit mono.
const SECOND: usize = 2 * RATE_HZ as usize;
const SECOND_NS: u64 = 1_000_000_000;

/// A stream of 16-bit mono with a target of two seconds, on a device of one channel.
fn playback(prebuffer: u32) -> Playback<Card> {
    let buffer = BufferAttr { pre_buffering: prebuffer, ..BufferAttr::default() };
    playback_of(Requested { buffer, latency: Latency::Queue })
}

fn playback_of(requested: Requested) -> Playback<Card> {
    playback_on("mono", requested)
}

/// The same stream on a device whose ring has its frames, on one whose ring has its samples only
/// decoded, and on one that has them on two channels.
fn each(prebuffer: u32) -> [Playback<Card>; 3] {
    let buffer = BufferAttr { pre_buffering: prebuffer, ..BufferAttr::default() };
    let on = |map| playback_on(map, Requested { buffer, latency: Latency::Queue });
    let mut decoded = on("mono");
    decoded.output.holds_frames = false;
    [on("mono"), decoded, on("stereo")]
}

fn playback_on(map: &str, requested: Requested) -> Playback<Card> {
    playback_at(RATE_HZ, map, requested)
}

/// The same stream, of a program with another rate.
fn playback_at(rate_hz: u32, map: &str, requested: Requested) -> Playback<Card> {
    playback_from("mono", rate_hz, map, requested)
}

/// The same stream, of a program with other channels.
fn playback_from(from: &str, rate_hz: u32, map: &str, requested: Requested) -> Playback<Card> {
    let format = SampleFormat::Linear(dsp::Format::S16Le);
    let program = ProgramFormat { format, rate_hz, map: from.parse().expect("a map") };
    let device = StreamFormat { rate_hz: RATE_HZ, map: map.parse().expect("a map") };
    let attributes = requested.grant(super::Pace::of(&program));
    let mut card = Card::new(8 * u64::from(RATE_HZ));
    card.holds_frames = map == "mono" && rate_hz == RATE_HZ;
    let (mixing, gains) = (Mixing::default(), Gains::default());
    Playback::new(card, program, device, mixing, attributes, gains).expect("possible")
}

/// Samples 1, 2, 3 and so on, from number `first` on.
fn bytes(first: usize, frames: usize) -> Vec<u8> {
    (first..first + frames).flat_map(|at| (1 + at % 30_000).to_le_bytes()[..2].to_vec()).collect()
}

impl Playback<Card> {
    /// Lets time pass until `until_ns`, with a look whenever one is due; returns the notices with
    /// their times.
    fn pass(&mut self, until_ns: u64) -> Vec<(u64, Notice)> {
        let mut notices = Vec::new();
        loop {
            let now_ns = self.output.now_ns;
            notices.extend(self.take_notices().into_iter().map(|notice| (now_ns, notice)));
            let due_ns = self.next_look(now_ns).map(|look| look.due_ns);
            match due_ns.filter(|due_ns| *due_ns <= until_ns) {
                Some(deadline_ns) => {
                    assert!(deadline_ns > now_ns, "it is looked at without end");
                    self.output.now_ns = deadline_ns;
                    self.look(deadline_ns);
                }
                None => break,
            }
        }
        self.output.now_ns = until_ns;
        notices
    }

    /// Lets time pass without a look before its end.
    fn late(&mut self, until_ns: u64) -> Vec<(u64, Notice)> {
        self.output.now_ns = until_ns;
        self.update(until_ns);
        self.take_notices().into_iter().map(|notice| (until_ns, notice)).collect()
    }

    fn put(&mut self, bytes: &[u8]) {
        self.write(Seek::Relative(0), bytes, self.output.now_ns);
    }
}
