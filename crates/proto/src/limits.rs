//! Limits that programs and server agree on.

use std::ops::RangeInclusive;

/// Smallest and largest quantum, in frames. The slots of a slab hold the largest.
pub const QUANTUM_FRAMES: RangeInclusive<u32> = 1..=8192;

/// Sample rates that a driver may be asked for, in Hz.
pub const SAMPLE_RATE_HZ: RangeInclusive<u32> = 1_000..=768_000;

/// Ports that a server may be asked to have room for.
pub const PORT_MAX: RangeInclusive<u32> = 16..=1 << 20;

/// Channels that a driver may be asked for each way: half of the ports.
pub const CHANNELS: RangeInclusive<u32> = 0..=*PORT_MAX.end() / 2;

/// Priorities that a driver thread may be asked to have: one below `SCHED_FIFO`'s highest, which is left to the kernel's own
/// threads.
pub const REALTIME_PRIORITY: RangeInclusive<u32> = 1..=98;

/// Connections that a client tells with one request when it returns: they fit a packet, however long their names are.
pub const RETURNED_AT_ONCE: usize = 64;

/// Clients whose status is told with one answer: they fit a packet, however long their names are.
pub const CLIENTS_AT_ONCE: usize = 128;

/// Bytes of a client's name.
pub const CLIENT_NAME_BYTES: usize = 64;

/// Bytes of `client:port`.
pub const FULL_NAME_BYTES: usize = 319;

/// Bytes of an internal client's parameters: `JACK_LOAD_INIT_LIMIT`.
pub const INTERNAL_PARAMETER_BYTES: usize = 1024;

/// Bytes of a plug-in's name.
pub const INTERNAL_OBJECT_BYTES: usize = 255;

/// Internal clients at once.
pub const INTERNAL_CLIENTS: usize = 64;

/// Bytes of a session's path.
pub const SESSION_PATH_BYTES: usize = 4095;

/// Bytes of the command by which a client is started again.
pub const SESSION_COMMAND_BYTES: usize = 2048;

/// Names that are kept for clients of a session.
pub const RESERVED_NAMES: usize = 1024;

/// Bytes of a property's key.
pub const PROPERTY_KEY_BYTES: usize = 1024;

/// Bytes of a property's value: the largest icon that JACK's headers speak of, in base64.
pub const PROPERTY_VALUE_BYTES: usize = 48 * 1024;

/// Bytes of a property's type.
pub const PROPERTY_TYPE_BYTES: usize = 256;

/// Properties of one client and its ports.
pub const PROPERTIES_PER_CLIENT: usize = 1024;

/// Bytes of all properties of one client and its ports.
pub const PROPERTY_BYTES_PER_CLIENT: usize = 1024 * 1024;

/// Bytes of properties in one packet, unless it is a single one.
pub const PROPERTY_PAGE_BYTES: usize = 48 * 1024;

const _: () = assert!(
    PROPERTY_KEY_BYTES + PROPERTY_VALUE_BYTES + PROPERTY_TYPE_BYTES + 64 < crate::MAX_PACKET_BYTES
        && PROPERTY_PAGE_BYTES < crate::MAX_PACKET_BYTES
);
