//! The layouts of all shared memory: who may write what is the design's trust boundary.
//!
//! | segment | written by | read by |
//! |---|---|---|
//! | [`EngineSegment`] | server | every client |
//! | [`Registry`] | server | every client |
//! | [`Recording`] | server | observers |
//! | [`Assignments`] | server | one client, which also sleeps there |
//! | [`OwnPage`] | one client, server | the same |
//! | [`SignalPage`] | a client, its direct predecessors, server | the same |
//! | [`SlabHeader`] and samples | one client (or the server, for its devices) | server, connected readers |
//! | [`RingHeader`] and samples | a stream's program (or the server, of a record stream) | server (or that program) |
//! | [`WishPage`] | the program of a stream that records | server |
//! | [`MessageRings`] | a program of PulseAudio, its front end | the same |
//! | [`StreamPage`] | server | a stream's program, which also sleeps there |
//!
//! A segment with several writers is open for them to map until a plan names it. From then on it is
//! sealed: those that have it mapped can write it, no other process can, and none can discard its
//! pages. [`MessageRings`] are sealed when their program has accepted them, before they are read.
//!
//! Every layout is the same for 32- and 64-bit programs, consists of atomics only, and is valid for
//! any bytes. What a peer wrote is an index or a time that is checked where it is read, never a
//! pointer. A change of a layout or of its meaning increments [`LAYOUT_VERSION`].

/// Asserts what a layout is, in bytes: a compiler for a platform on which it differs refuses it.
/// The models have smaller ones.
macro_rules! same_for_all_widths {
    ($type:ty: $bytes:literal bytes; $($field:ident at $offset:literal),+) => {
        #[cfg(not(loom))]
        const _: () = {
            assert!(size_of::<$type>() == $bytes);
            $(assert!(core::mem::offset_of!($type, $field) == $offset);)+
        };
    };
}

mod assignments;
mod engine;
mod handover;
mod header;
mod message_rings;
mod own;
mod recording;
mod registry;
mod signal;
mod slab;
mod snapshot;
mod stream;
mod transport_requests;

pub use assignments::{
    ASSIGNMENT_WORDS, AssignmentCopy, AssignmentReader, AssignmentWriter, Assignments, FIXED_WORDS,
    FOLLOWER_WORDS, FollowerEdge, InputGroup, InputSource, NO_CPU, absent, group_words,
};
pub use engine::{CycleInfo, EngineSegment, Priorities, ServerFlags};
pub use handover::Handover;
pub use header::{LAYOUT_VERSION, Layout, LayoutError, SegmentHeader};
pub use message_rings::{MessageEnd, MessagePeer, MessageRings, NoCount, Taken};
pub use own::{OwnPage, Timestamps};
pub use recording::{RECORD_WORDS, RECORDS, RecordCursor, RecordRing, Recording};
pub use registry::{
    ALIASES_PER_PORT, CLIENT_NAME_BYTES, ClientEntry, ConnectionCell, FULL_NAME_BYTES,
    LatencyRange, PortEntry, Registry, RegistryHeader, RegistryShape, Text, state,
};
pub use signal::{Edges, MAX_EDGES, SignalPage};
pub use slab::{SLAB_BYTES, SLOT_BYTES, SLOTS_PER_SLAB, SlabHeader};
pub use snapshot::Snapshot;
pub use stream::{
    Acknowledgement, Due, LEAST_CAPACITY_FRAMES, MAX_CAPACITY_FRAMES, MAX_STREAM_CHANNELS, MISSES,
    Miss, NumberedCursor, NumberedRing, PEAK_BLOCKS, RingHeader, RingSamples, RingShape,
    STREAM_DEVICE_NAME_BYTES, Schedule, StreamDeviceName, StreamPage, StreamState, Timing, WISHES,
    WishPage, WishReader, Wishes, WrittenFrames, peak_block_frames,
};
pub use transport_requests::{TransportRequest, TransportRequests};
