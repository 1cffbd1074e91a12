//! What another server sends, as events: pure. Bytes go in as they came.

use pulseaudio::protocol::{
    AuthReply, Command, CommandReply, CreatePlaybackStreamReply, CreateRecordStreamReply,
    LookupReply, PlaybackLatency, PulseError, RecordLatency, ServerInfo, SinkInfo, SourceInfo,
    TagStructReader,
};

use crate::wire::{Frame, FrameError, FrameReader, Segment, read, reply_head};

/// Numbers of requests, by which they are answered: one of each waits at most.
pub(super) const AUTH: u32 = 0;
pub(super) const NAME: u32 = 1;
pub(super) const SOURCE: u32 = 2;
pub(super) const CREATE: u32 = 3;
pub(super) const TIMING: u32 = 4;
pub(super) const CORK: u32 = 5;
pub(super) const SERVER: u32 = 6;
pub(super) const LISTED_SINKS: u32 = 7;
pub(super) const LISTED_SOURCES: u32 = 8;
pub(super) const LOADED: u32 = 9;
pub(super) const DONE: u32 = 10;
pub(super) const PLAYED: u32 = 11;
/// Each drain has a number of its own, from here on.
pub(super) const FIRST_DRAIN: u32 = 16;

/// The numbers of answers.
const ERROR: u32 = 0;
const REPLY: u32 = 2;
/// The latest moment that a server may report, microseconds: beyond, its numbers make no sense.
const MAX_DELAY_US: u64 = 60_000_000;

/// What another server says of a stream.
#[derive(Debug, Clone, PartialEq)]
pub enum RemoteEvent {
    /// Samples that were recorded, in whole or in part.
    Samples(Vec<u8>),
    /// The answer to [`RemoteWriter::ask_timing`](super::RemoteWriter::ask_timing).
    Timing(RemoteTiming),
    /// It asks for this many bytes.
    Wanted(u64),
    /// Bytes that were missing: all before this index has been played.
    Underflow(i64),
    /// More was sent than it keeps, and some was left out.
    Overflow,
    /// The drain of this number is over.
    Drained(u32),
    /// The stream, or the server, has ended.
    Ended(String),
}

/// When what is heard, as another server knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemoteTiming {
    /// When it was answered, `CLOCK_MONOTONIC` of this machine, ns.
    pub answered_ns: u64,
    /// A byte of the stream: the next one that is played there, or that is recorded.
    pub index: i64,
    /// Of a recording: the next byte that is sent.
    pub sent: i64,
    /// How long after the answer that byte is heard, microseconds; of a recording, a byte that is
    /// recorded was heard that time ago, if negative.
    pub heard_in_us: i64,
    /// The stream plays, or records.
    pub runs: bool,
}

/// Answers on the way to a stream.
#[derive(Debug)]
pub(super) enum Opening {
    Version(u16),
    Named,
    /// Whether the source is a sink's monitor.
    Source {
        is_monitor: bool,
    },
    Playback(Box<CreatePlaybackStreamReply>),
    Record(Box<CreateRecordStreamReply>),
    Server(Box<ServerInfo>),
    Sinks(Vec<SinkInfo>),
    Sources(Vec<SourceInfo>),
    /// A module, by its number.
    Loaded(u32),
    Done,
}

/// One thing that has come.
#[derive(Debug)]
pub(super) enum Incoming {
    Opening(Opening),
    Event(RemoteEvent),
    /// Devices have changed.
    Changed,
    /// A request was refused.
    Refused(u32, PulseError),
}

/// Memory that is never agreed to.
#[derive(Debug)]
pub(super) struct NoMemory;

impl Segment for NoMemory {
    fn read(&self, _offset: u64, _into: &mut [u8]) -> usize {
        0
    }
}

/// The direction of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Playback,
    Record,
}

/// Reads what comes over one connection.
#[derive(Debug)]
pub(super) struct IncomingReader {
    frames: FrameReader<NoMemory>,
    direction: Direction,
    version: u16,
    /// The stream, once there is one.
    channel: Option<u32>,
}

impl IncomingReader {
    pub fn new(direction: Direction, version: u16) -> Self {
        Self { frames: FrameReader::default(), direction, version, channel: None }
    }

    /// Takes bytes that came at `now_ns`, and passes on what they say.
    ///
    /// # Errors
    /// They are no frames; what follows cannot be understood either.
    pub fn push(
        &mut self,
        bytes: &[u8],
        now_ns: u64,
        mut emit: impl FnMut(Incoming),
    ) -> Result<(), FrameError> {
        let (direction, version, channel) = (self.direction, &mut self.version, &mut self.channel);
        self.frames.push(bytes, |frame| match frame {
            Frame::Samples { channel: of, bytes, .. } => {
                if *channel == Some(of) && direction == Direction::Record {
                    emit(Incoming::Event(RemoteEvent::Samples(bytes.read().into_owned())));
                }
            }
            Frame::Packet(packet) => {
                let Some(said) = packet_says(packet, direction, *version, *channel, now_ns) else {
                    return;
                };
                match &said {
                    Incoming::Opening(Opening::Version(theirs)) => *version = *theirs,
                    Incoming::Opening(Opening::Playback(reply)) => *channel = Some(reply.channel),
                    Incoming::Opening(Opening::Record(reply)) => *channel = Some(reply.channel),
                    _ => {}
                }
                emit(said);
            }
        })
    }
}

/// Returns what a packet says; `None` if that is of no importance here, or makes no sense.
fn packet_says(
    packet: &[u8],
    direction: Direction,
    version: u16,
    channel: Option<u32>,
    now_ns: u64,
) -> Option<Incoming> {
    match reply_head(packet)? {
        (ERROR, number, values) => {
            let mut values = values;
            let error = TagStructReader::new(&mut values, version).read_enum();
            Some(Incoming::Refused(number, error.unwrap_or(PulseError::Unknown)))
        }
        (REPLY, number, values) => answer(number, values, direction, version, now_ns),
        _ => {
            let read = read(packet, version).ok()?;
            let crate::wire::Request::Command(command) = read.request else { return None };
            match *command {
                Command::SubscribeEvent(_) => Some(Incoming::Changed),
                command => notice(&command, channel).map(Incoming::Event),
            }
        }
    }
}

fn value<T: CommandReply>(mut values: &[u8], version: u16) -> Option<T> {
    TagStructReader::new(&mut values, version).read().ok()
}

fn answer(
    number: u32,
    values: &[u8],
    direction: Direction,
    version: u16,
    now_ns: u64,
) -> Option<Incoming> {
    Some(match (number, direction) {
        (AUTH, _) => {
            let AuthReply { version: theirs, .. } = value(values, version)?;
            Incoming::Opening(Opening::Version(theirs.min(version)))
        }
        (NAME, _) => Incoming::Opening(Opening::Named),
        (SERVER, _) => Incoming::Opening(Opening::Server(Box::new(value(values, version)?))),
        (LISTED_SINKS, _) => Incoming::Opening(Opening::Sinks(value(values, version)?)),
        (LISTED_SOURCES, _) => Incoming::Opening(Opening::Sources(value(values, version)?)),
        (LOADED, _) => {
            let LookupReply(index) = value(values, version)?;
            Incoming::Opening(Opening::Loaded(index))
        }
        (DONE | PLAYED, _) => Incoming::Opening(Opening::Done),
        (SOURCE, _) => {
            let info: SourceInfo = value(values, version)?;
            let is_monitor = info.monitor_of_sink_index.is_some();
            Incoming::Opening(Opening::Source { is_monitor })
        }
        (CREATE, Direction::Playback) => {
            Incoming::Opening(Opening::Playback(Box::new(value(values, version)?)))
        }
        (CREATE, Direction::Record) => {
            Incoming::Opening(Opening::Record(Box::new(value(values, version)?)))
        }
        (TIMING, _) => {
            Incoming::Event(RemoteEvent::Timing(timing(values, direction, version, now_ns)?))
        }
        (CORK, _) => return None,
        (drain, _) if drain >= FIRST_DRAIN => Incoming::Event(RemoteEvent::Drained(drain)),
        _ => return None,
    })
}

/// Returns the times of an answer; `None` if they make no sense.
fn timing(
    values: &[u8],
    direction: Direction,
    version: u16,
    answered_ns: u64,
) -> Option<RemoteTiming> {
    // MUTATION: remote_timing.any_delay
    let us = |us: u64| (us <= MAX_DELAY_US).then_some(us.cast_signed());
    Some(match direction {
        Direction::Playback => {
            let said: PlaybackLatency = value(values, version)?;
            RemoteTiming {
                answered_ns,
                index: said.read_offset,
                sent: said.read_offset,
                heard_in_us: us(said.sink_usec)?,
                runs: said.playing,
            }
        }
        Direction::Record => {
            let said: RecordLatency = value(values, version)?;
            RemoteTiming {
                answered_ns,
                index: said.write_offset,
                sent: said.read_offset,
                // What a monitor records is heard later.
                heard_in_us: us(said.sink_usec)? - us(said.source_usec)?,
                runs: said.playing,
            }
        }
    })
}

fn notice(command: &Command, own: Option<u32>) -> Option<RemoteEvent> {
    let is_own = |channel: u32| Some(channel) == own;
    match command {
        Command::Request(request) if is_own(request.channel) => {
            Some(RemoteEvent::Wanted(request.length.into()))
        }
        Command::Underflow(said) if is_own(said.channel) => {
            Some(RemoteEvent::Underflow(said.offset))
        }
        Command::Overflow(channel) if is_own(*channel) => Some(RemoteEvent::Overflow),
        Command::PlaybackStreamKilled(channel) | Command::RecordStreamKilled(channel)
            if is_own(*channel) =>
        {
            Some(RemoteEvent::Ended("the other server has ended its stream".into()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use pulseaudio::protocol::{MAX_VERSION, Underflow};

    use super::*;
    use crate::wire;

    fn said(direction: Direction, all: &[Vec<u8>]) -> Vec<String> {
        let mut reader = IncomingReader::new(direction, MAX_VERSION);
        let mut said = Vec::new();
        for byte in all.concat() {
            reader.push(&[byte], 5, |incoming| said.push(format!("{incoming:?}"))).expect("frames");
        }
        said
    }

    fn created(channel: u32) -> Vec<u8> {
        let reply = CreateRecordStreamReply { channel, ..CreateRecordStreamReply::default() };
        wire::reply(CREATE, &reply, MAX_VERSION)
    }

    #[test]
    fn samples_are_those_of_the_own_stream_alone() {
        let before = wire::samples(3, b"before");
        let (own, other) = (wire::samples(3, b"a"), wire::samples(4, b"b"));
        let said = said(Direction::Record, &[before, created(3), own, other]);
        assert_eq!(said.len(), 2, "{said:?}");
        assert_eq!(said[1], format!("{:?}", Incoming::Event(RemoteEvent::Samples(b"a".to_vec()))));
    }

    #[test]
    fn notices_about_other_streams_are_left_alone() {
        let underflow = |channel| {
            wire::event(&Command::Underflow(Underflow { channel, offset: 8 }), MAX_VERSION)
        };
        let created = CreatePlaybackStreamReply { channel: 3, ..Default::default() };
        let created = wire::reply(CREATE, &created, MAX_VERSION);
        let said = said(Direction::Playback, &[created, underflow(4), underflow(3)]);
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(said[1].contains("Underflow(8)"), "{said:?}");
    }

    #[test]
    fn a_refusal_has_the_number_of_its_request() {
        let said = said(Direction::Record, &[wire::error(CREATE, PulseError::NoEntity)]);
        assert_eq!(said, ["Refused(3, NoEntity)"]);
    }

    #[test]
    fn times_that_make_no_sense_are_left_alone() {
        let now = std::time::SystemTime::UNIX_EPOCH;
        let latency = |source_usec, sink_usec| {
            let latency = RecordLatency {
                sink_usec,
                source_usec,
                playing: true,
                local_time: now,
                remote_time: now,
                write_offset: 80,
                read_offset: 40,
            };
            wire::reply(TIMING, &latency, MAX_VERSION)
        };
        assert_eq!(said(Direction::Record, &[latency(u64::MAX, 0)]).len(), 0);
        let said = said(Direction::Record, &[latency(300, 100)]);
        assert!(said[0].contains("index: 80, sent: 40, heard_in_us: -200, runs: true"), "{said:?}");
    }

    proptest! {
        #[test]
        fn any_packets_are_events_or_nothing(
            packets in prop::collection::vec(
                (0_u32..106, 0_u32..20, prop::collection::vec(any::<u8>(), 0..80)), 0..8),
            is_record in any::<bool>(),
        ) {
            let direction = if is_record { Direction::Record } else { Direction::Playback };
            let mut reader = IncomingReader::new(direction, MAX_VERSION);
            for (command, number, values) in packets {
                let mut packet = b"L".to_vec();
                packet.extend(command.to_be_bytes());
                packet.extend(b"L");
                packet.extend(number.to_be_bytes());
                packet.extend(values);
                let mut frame = (packet.len() as u32).to_be_bytes().to_vec();
                frame.extend([0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
                frame.extend(packet);
                let pushed = reader.push(&frame, 0, |_| {});
                prop_assert!(pushed.is_ok());
            }
        }
    }
}
