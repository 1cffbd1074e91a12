//! Limits on which programs and the server agree.

use std::ops::RangeInclusive;

/// Smallest and largest quantum, in frames. The slots of a slab hold the largest.
pub const QUANTUM_FRAMES: RangeInclusive<u32> = 1..=8192;

/// Sample rates that a driver accepts, Hz.
pub const SAMPLE_RATE_HZ: RangeInclusive<u32> = 1_000..=768_000;

/// Maximum number of ports that a server can be started with.
pub const PORT_MAX: RangeInclusive<u32> = 16..=1 << 20;

/// Maximum number of channels of a driver in each direction: half of the ports.
pub const CHANNELS: RangeInclusive<u32> = 0..=*PORT_MAX.end() / 2;

/// Quanta that a sound card may queue. The card may support fewer.
pub const PERIODS: RangeInclusive<u32> = 2..=1024;

/// Extra latency that a driver accepts, added to what a card reports, frames.
pub const EXTRA_LATENCY_FRAMES: RangeInclusive<u32> = 0..=1 << 20;

/// Priorities that a driver thread accepts. The highest of `SCHED_FIFO` is left to the kernel's own
/// threads.
pub const REALTIME_PRIORITY: RangeInclusive<u32> = 1..=98;

/// Connections in one request of a returning client. They fit a packet, however long their names
/// are.
pub const RETURNED_AT_ONCE: usize = 64;

/// Clients in one status answer. They fit a packet, however long their names are.
pub const CLIENTS_AT_ONCE: usize = 128;

/// Streams of one program, at most; or of one account of a process that plays for others.
pub const STREAMS_OF_PROGRAM: usize = 64;

/// Streams of all accounts of a process that plays for others, at most.
pub const STREAMS_OF_PROCESS: usize = 768;

/// Streams of a server, at most.
pub const STREAMS: usize = 1024;

/// Further devices of a server, at most. A status of all of them fits a packet.
pub const STREAM_DEVICES: usize = 64;

/// Channels of a further device.
pub const DEVICE_CHANNELS: RangeInclusive<u32> = 1..=32;

/// Maximum length of a further device's name, bytes.
pub const DEVICE_NAME_BYTES: usize = 64;

/// Maximum length of the description of a further device's card, bytes. A longer one is cut.
pub const CARD_BYTES: usize = 256;

/// Maximum length of the name of a stream, and of its program's, bytes.
pub const STREAM_NAME_BYTES: usize = 128;

/// Maximum length of the role of a client, bytes. A longer one is none.
pub const ROLE_BYTES: usize = 64;

/// Clients with a role in one answer, at most: the first that opened.
pub const ROLES: usize = 64;

/// Largest position at which a stream can begin, frames: no stream reaches the end of the numbers
/// from there.
pub const MAX_STREAM_POSITION: u64 = 1 << 62;

/// Streams in one status answer. They fit a packet, however long their names are.
pub const STREAMS_AT_ONCE: usize = 64;

/// Maximum length of a client's name, bytes.
pub const CLIENT_NAME_BYTES: usize = 64;

/// Maximum length of `client:port`, bytes.
pub const FULL_NAME_BYTES: usize = 319;

/// Maximum length of an internal client's parameters, bytes: `JACK_LOAD_INIT_LIMIT`.
pub const INTERNAL_PARAMETER_BYTES: usize = 1024;

/// Maximum length of a plug-in's name, bytes.
pub const INTERNAL_OBJECT_BYTES: usize = 255;

/// Maximum number of internal clients.
pub const INTERNAL_CLIENTS: usize = 64;

/// Maximum length of a session's path, bytes.
pub const SESSION_PATH_BYTES: usize = 4095;

/// Maximum length of the command that restarts a client, bytes.
pub const SESSION_COMMAND_BYTES: usize = 2048;

/// Maximum number of names reserved for clients of a session.
pub const RESERVED_NAMES: usize = 1024;

/// Maximum length of a property's key, bytes.
pub const PROPERTY_KEY_BYTES: usize = 1024;

/// Maximum length of a property's value, bytes: the largest icon that JACK's headers mention, in
/// base64.
pub const PROPERTY_VALUE_BYTES: usize = 48 * 1024;

/// Maximum length of a property's type, bytes.
pub const PROPERTY_TYPE_BYTES: usize = 256;

/// Maximum number of properties of one client and its ports.
pub const PROPERTIES_PER_CLIENT: usize = 1024;

/// Maximum size of all properties of one client and its ports, bytes.
pub const PROPERTY_BYTES_PER_CLIENT: usize = 1024 * 1024;

/// Maximum size of the properties in one packet, bytes, unless it is a single one.
pub const PROPERTY_PAGE_BYTES: usize = 48 * 1024;

const _: () = assert!(
    PROPERTY_KEY_BYTES + PROPERTY_VALUE_BYTES + PROPERTY_TYPE_BYTES + 64 < crate::MAX_PACKET_BYTES
        && PROPERTY_PAGE_BYTES < crate::MAX_PACKET_BYTES
);
