//! The ring of a stream: its shape, the count of the frames in it, and its checks.

use core::ops::Range;

use super::super::header::{Layout, SegmentHeader};
use super::wishes::Wishes;
use crate::sync::{AtomicU64, Ordering, fence};

/// Channels that a stream can have.
pub const MAX_STREAM_CHANNELS: u32 = 32;

/// Capacity of the smallest ring: a page for each channel, and 21 ms at 48 kHz.
pub const LEAST_CAPACITY_FRAMES: u32 = 1024;

/// Capacity of the largest ring: 5 s at 192 kHz.
pub const MAX_CAPACITY_FRAMES: u32 = 1 << 20;

/// The header has a page of its own, so that the samples begin at a page.
const HEADER_BYTES: usize = 4096;

/// How the samples lie in a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RingSamples {
    /// A plane of 32-bit floats for each channel, as the graph has them.
    #[default]
    Planes,
    /// Frames of little-endian 16-bit integers, of one or two channels, as many programs have them.
    Frames16,
}

impl RingSamples {
    /// Returns the number that stands for it in a message.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Planes => 0,
            Self::Frames16 => 1,
        }
    }

    /// Returns what a number stands for; `None` for nothing.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::Planes),
            1 => Some(Self::Frames16),
            _ => None,
        }
    }

    const fn bytes(self) -> usize {
        match self {
            Self::Planes => size_of::<f32>(),
            Self::Frames16 => size_of::<i16>(),
        }
    }

    /// Returns the most channels of a ring whose samples lie like this.
    #[must_use]
    pub const fn most_channels(self) -> u32 {
        match self {
            Self::Planes => MAX_STREAM_CHANNELS,
            // A channel is read at the cost of all of its frames.
            Self::Frames16 => 2,
        }
    }
}

/// Number of a ring's channels, their length, and how their samples lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingShape {
    channels: u32,
    capacity_frames: u32,
    samples: RingSamples,
}

impl RingShape {
    /// Returns the shape of a ring of [planes](RingSamples::Planes); `None` if there can be no such
    /// ring: 1 to [`MAX_STREAM_CHANNELS`], and a power of two from [`LEAST_CAPACITY_FRAMES`] to
    /// [`MAX_CAPACITY_FRAMES`].
    #[must_use]
    pub const fn new(channels: u32, capacity_frames: u32) -> Option<Self> {
        let possible = 1 <= channels
            && channels <= MAX_STREAM_CHANNELS
            && LEAST_CAPACITY_FRAMES <= capacity_frames
            && capacity_frames <= MAX_CAPACITY_FRAMES
            && capacity_frames.is_power_of_two();
        let samples = RingSamples::Planes;
        if possible { Some(Self { channels, capacity_frames, samples }) } else { None }
    }

    /// Returns the same with samples that lie like this; `None` if there are too many channels.
    #[must_use]
    pub const fn holding(self, samples: RingSamples) -> Option<Self> {
        let fits = self.channels <= samples.most_channels();
        if fits { Some(Self { samples, ..self }) } else { None }
    }

    /// Returns the smallest shape for a depth of `depth_frames`, or the largest there is; `None`
    /// for an impossible number of channels.
    ///
    /// Half of a ring is for frames that were rendered and may have to be rendered again, the other
    /// half for frames that come after these.
    #[must_use]
    pub fn for_depth(channels: u32, depth_frames: u32) -> Option<Self> {
        let most = MAX_CAPACITY_FRAMES / 2;
        let half = depth_frames.clamp(LEAST_CAPACITY_FRAMES / 2, most).next_power_of_two();
        Self::new(channels, 2 * half)
    }

    /// Returns how far ahead of the hardware a stream of this shape can be rendered, frames.
    #[must_use]
    pub const fn depth_frames(self) -> u32 {
        self.capacity_frames / 2
    }

    /// Returns the number of channels.
    #[must_use]
    pub const fn channels(self) -> u32 {
        self.channels
    }

    /// Returns the frames that the ring holds, a power of two.
    #[must_use]
    pub const fn capacity_frames(self) -> u32 {
        self.capacity_frames
    }

    /// Returns how the samples lie.
    #[must_use]
    pub const fn samples(self) -> RingSamples {
        self.samples
    }

    /// Returns the same with half the capacity; `None` for the smallest.
    #[must_use]
    pub const fn halved(self) -> Option<Self> {
        match Self::new(self.channels, self.capacity_frames / 2) {
            Some(shape) => shape.holding(self.samples),
            None => None,
        }
    }

    /// Returns the bytes of a frame.
    #[must_use]
    pub const fn frame_bytes(self) -> usize {
        self.channels as usize * self.samples.bytes()
    }

    /// Returns the size of the segment, bytes: whole pages.
    #[must_use]
    pub const fn bytes(self) -> usize {
        let samples = self.capacity_frames as usize * self.frame_bytes();
        HEADER_BYTES + samples.next_multiple_of(HEADER_BYTES)
    }

    const fn channel_bytes(self) -> usize {
        self.capacity_frames as usize * size_of::<f32>()
    }

    /// Returns the offset of a channel's plane from the segment's start, bytes; `None` if there is
    /// none.
    #[must_use]
    pub const fn channel_offset(self, channel: u32) -> Option<usize> {
        if channel < self.channels && matches!(self.samples, RingSamples::Planes) {
            Some(HEADER_BYTES + channel as usize * self.channel_bytes())
        } else {
            None
        }
    }

    /// Returns the offset of the frames from the segment's start, bytes; `None` if they lie in
    /// planes.
    #[must_use]
    pub const fn frames_offset(self) -> Option<usize> {
        match self.samples {
            RingSamples::Planes => None,
            RingSamples::Frames16 => Some(HEADER_BYTES),
        }
    }

    /// Returns where all samples of `frames` frames from `position` on lie, bytes from the
    /// segment's start, in ranges of which some may be empty.
    pub fn byte_ranges(self, position: u64, frames: usize) -> impl Iterator<Item = Range<usize>> {
        let (parts, unit) = match self.samples {
            RingSamples::Planes => (self.channels, size_of::<f32>()),
            RingSamples::Frames16 => (1, self.frame_bytes()),
        };
        let part_bytes = self.capacity_frames as usize * unit;
        let pieces = self.pieces(position, frames);
        (0..parts as usize).flat_map(move |part| {
            let begin = HEADER_BYTES + part * part_bytes;
            let within = |piece: Range<usize>| begin + piece.start * unit..begin + piece.end * unit;
            pieces.clone().map(within)
        })
    }

    /// Returns where `frames` frames from `position` on lie, in frames from the first one of the
    /// ring: two ranges, since it may end between them. At most the whole ring.
    #[must_use]
    pub fn pieces(self, position: u64, frames: usize) -> [Range<usize>; 2] {
        let capacity = self.capacity_frames as usize;
        let begin = (position % u64::from(self.capacity_frames)) as usize;
        let end = begin + frames.min(capacity);
        [begin..end.min(capacity), 0..end.saturating_sub(capacity)]
    }
}

/// The first page of a ring; the samples follow. Written by the ring's writer only.
#[repr(C)]
#[cfg_attr(not(loom), repr(align(4096)))]
#[derive(Debug, Default)]
pub struct RingHeader {
    header: SegmentHeader,
    /// Position up to which the samples are written or being written. For a writer that does not
    /// wait for its reader.
    begun: AtomicU64,
    /// Position up to which the samples are written.
    written: AtomicU64,
    /// Of a stream that plays.
    wishes: Wishes,
}

same_for_all_widths!(RingHeader: 4096 bytes; begun at 16, written at 24, wishes at 32);

#[cfg(not(loom))]
const _: () = assert!(size_of::<RingHeader>() == HEADER_BYTES);

// SAFETY: repr(C), the header first, atomics only.
unsafe impl Layout for RingHeader {
    const KIND: u32 = 8;

    fn header(&self) -> &SegmentHeader {
        &self.header
    }
}

impl RingHeader {
    /// Announces that the frames up to `end` are about to be written over older ones, which a
    /// reader may be copying. Writer of a record ring. Thread: cycle.
    pub fn begin(&self, end: u64) {
        // MUTATION: ring.overwriting_not_announced
        self.begun.store(end, Ordering::Relaxed);
        // Release: a reader that gets one of the samples written next also sees that their write
        // has begun.
        // MUTATION: ring.writer_without_fence
        fence(Ordering::Release);
    }

    /// Publishes the frames up to `end`. Writer. Thread: cycle.
    pub fn publish(&self, end: u64) {
        // Release: a reader that sees the count sees the samples.
        // MUTATION: ring.publish_relaxed
        self.written.store(end, Ordering::Release);
    }

    /// Returns the position up to which the writer states to have written. Thread: any.
    pub fn written(&self) -> u64 {
        // Acquire: pairs with `publish`.
        // MUTATION: ring.written_relaxed
        self.written.load(Ordering::Acquire)
    }

    /// Returns the wishes of a stream that plays, whose program writes the ring.
    #[must_use]
    pub fn wishes(&self) -> &Wishes {
        &self.wishes
    }

    /// Returns whether a copy of published frames from `position` on, which was made just before,
    /// is free of newer ones. Reader of a record ring. Thread: any.
    pub fn is_intact(&self, position: u64, capacity_frames: u32) -> bool {
        // Acquire: pairs with the fence in `begin`.
        // MUTATION: ring.reader_without_fence
        fence(Ordering::Acquire);
        self.begun.load(Ordering::Relaxed) <= position.saturating_add(capacity_frames.into())
    }
}

/// How far a program has written its playback ring, as far as it can be believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WrittenFrames {
    accepted: u64,
    faults: u64,
}

impl WrittenFrames {
    /// Starts at a position: nothing before it is read.
    #[must_use]
    pub fn starting_at(position: u64) -> Self {
        Self { accepted: position, faults: 0 }
    }

    /// Returns the position up to which frames can be read: what the program states, but never less
    /// than before, and no more than the ring holds from `lowest` on. Device thread. Thread: cycle.
    pub fn read(&mut self, ring: &RingHeader, lowest: u64, capacity_frames: u32) -> u64 {
        let stated = ring.written();
        let end = lowest.saturating_add(capacity_frames.into());
        let accepted = stated.min(end).max(self.accepted);
        self.faults = self.faults.saturating_add(u64::from(accepted != stated));
        self.accepted = accepted;
        accepted
    }

    /// Returns how often the program has stated an impossible position.
    #[must_use]
    pub fn faults(self) -> u64 {
        self.faults
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shapes() -> impl Strategy<Value = RingShape> {
        (1..=MAX_STREAM_CHANNELS, 10..=20_u32)
            .prop_map(|(channels, log)| RingShape::new(channels, 1 << log).unwrap())
    }

    fn all_shapes() -> impl Strategy<Value = RingShape> {
        let samples = (0..=1_u8).prop_map(|code| RingSamples::from_code(code).unwrap());
        let shape = |(shape, samples): (RingShape, _)| shape.holding(samples).unwrap_or(shape);
        let few = (1..=2_u32, 10..=20_u32);
        let few = few.prop_map(|(channels, log)| RingShape::new(channels, 1 << log).unwrap());
        (prop_oneof![shapes(), few], samples).prop_map(shape)
    }

    #[test]
    fn what_lies_in_a_ring_is_what_its_number_says() {
        let known = (0..=255_u8).filter_map(RingSamples::from_code);
        let codes: Vec<u8> = known.map(RingSamples::code).collect();
        assert_eq!(codes, [0, 1]);
    }

    #[test]
    fn a_ring_of_many_channels_has_planes() {
        let with = |channels| RingShape::new(channels, 1024).unwrap();
        for channels in 1..=MAX_STREAM_CHANNELS {
            let frames = with(channels).holding(RingSamples::Frames16);
            assert_eq!(frames.is_some(), channels <= 2, "{channels}");
            assert!(with(channels).holding(RingSamples::Planes).is_some());
        }
    }

    #[test]
    fn frames_of_16_bits_take_half_the_memory() {
        let shape = RingShape::new(2, 1 << 18).unwrap();
        let of = |samples| shape.holding(samples).unwrap();
        assert_eq!(of(RingSamples::Planes).bytes(), 4096 + (2 << 20));
        assert_eq!(of(RingSamples::Frames16).bytes(), 4096 + (1 << 20));
        let least = RingShape::new(1, 1024).unwrap().holding(RingSamples::Frames16);
        assert_eq!(least.unwrap().bytes(), 8192, "whole pages");
        let halved = of(RingSamples::Frames16).halved().unwrap();
        assert_eq!((halved.samples(), halved.capacity_frames()), (RingSamples::Frames16, 1 << 17));
    }

    #[test]
    fn impossible_shapes_are_refused() {
        for (channels, capacity) in
            [(0, 1024), (33, 1024), (2, 0), (2, 512), (2, 1025), (2, 1 << 21), (2, u32::MAX)]
        {
            assert_eq!(RingShape::new(channels, capacity), None, "{channels} × {capacity}");
        }
        let (least, most) =
            (RingShape::new(1, 1024).unwrap(), RingShape::new(32, 1 << 20).unwrap());
        assert_eq!((least.bytes(), most.bytes()), (8192, 4096 + (128 << 20)));
        assert_eq!((least.halved(), most.halved()), (None, RingShape::new(32, 1 << 19)));
    }

    #[test]
    fn a_ring_has_room_for_its_depth_twice() {
        for (depth, capacity) in
            [(0, 1024), (512, 1024), (513, 2048), (96_000, 1 << 18), (u32::MAX, 1 << 20)]
        {
            let shape = RingShape::for_depth(2, depth).unwrap();
            assert_eq!(shape.capacity_frames(), capacity, "{depth}");
        }
        assert_eq!(RingShape::for_depth(0, 512), None);
    }

    proptest! {
        #[test]
        fn channels_begin_at_pages_within_the_segment(shape in shapes()) {
            let mut end = HEADER_BYTES;
            for channel in 0..shape.channels() {
                let begin = shape.channel_offset(channel).unwrap();
                prop_assert!(begin.is_multiple_of(4096) && begin == end);
                end = begin + 4 * shape.capacity_frames() as usize;
            }
            prop_assert_eq!(end, shape.bytes());
            prop_assert_eq!(shape.channel_offset(shape.channels()), None);
            prop_assert_eq!(shape.frames_offset(), None);
        }

        #[test]
        fn the_samples_of_some_frames_lie_within_the_segment_and_apart(
            shape in all_shapes(), position in 0..u64::MAX >> 1, frames in 0..1_usize << 21,
        ) {
            let mut ranges: Vec<_> = shape.byte_ranges(position, frames).collect();
            let place = |frame: usize, channel| match shape.channel_offset(channel) {
                Some(offset) => offset + 4 * frame,
                None => 4096 + frame * shape.frame_bytes(),
            };
            for piece in shape.pieces(position, frames).into_iter().filter(|piece| !piece.is_empty()) {
                for channel in 0..shape.channels() {
                    let (first, last) = (place(piece.start, channel), place(piece.end, channel));
                    prop_assert!(ranges.contains(&(first..last)), "{first} to {last}");
                }
            }
            let bytes: usize = ranges.iter().map(|range| range.len()).sum();
            let most = frames.min(shape.capacity_frames() as usize);
            prop_assert_eq!(bytes, most * shape.frame_bytes());
            ranges.retain(|range| !range.is_empty());
            ranges.sort_by_key(|range| range.start);
            prop_assert!(ranges.iter().all(|range| range.start >= 4096));
            prop_assert!(ranges.iter().all(|range| range.end <= shape.bytes()));
            prop_assert!(ranges.windows(2).all(|two| two[0].end <= two[1].start));
        }

        #[test]
        fn each_frame_lies_at_its_position_modulo_the_capacity(
            shape in shapes(),
            position in any::<u64>(),
            frames in 0..3000_usize,
        ) {
            let capacity = shape.capacity_frames() as usize;
            let places: Vec<usize> = shape.pieces(position, frames).into_iter().flatten().collect();
            prop_assert_eq!(places.len(), frames.min(capacity));
            for (offset, place) in places.into_iter().enumerate() {
                prop_assert!(place < capacity);
                prop_assert_eq!(
                    place as u64,
                    position.wrapping_add(offset as u64) % capacity as u64
                );
            }
        }

        #[test]
        fn accepted_positions_never_go_back_or_beyond_the_ring(
            steps in prop::collection::vec(
                (prop_oneof![3 => 0..10_000_u64, 1 => any::<u64>()], 0..1000_u64),
                1..50,
            ),
        ) {
            let (ring, mut written) = (RingHeader::default(), WrittenFrames::default());
            let (mut lowest, mut before, mut faults) = (0, 0, 0);
            for (stated, advance) in steps {
                lowest = before.min(lowest + advance);
                ring.publish(stated);
                let accepted = written.read(&ring, lowest, 1024);
                prop_assert!(before <= accepted && accepted <= (lowest + 1024).max(before));
                faults += u64::from(accepted != stated);
                before = accepted;
            }
            prop_assert_eq!(written.faults(), faults);
        }
    }
}
