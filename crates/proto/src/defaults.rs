//! What a server does unless it is asked for something else: one set of defaults for the server's
//! configuration, `consort run`, `jackd`, `jackctl` and the D-Bus service.

/// Length of a cycle in frames.
pub const QUANTUM_FRAMES: u32 = 1024;

/// Sample rate in Hz of a driver that takes it from no device and no file.
pub const SAMPLE_RATE_HZ: u32 = 48_000;

/// Capture ports, and playback ports, of a driver without a device.
pub const CHANNELS: u32 = 2;

/// Quanta that wait in a sound card.
pub const PERIODS: u32 = 2;

/// `SCHED_FIFO` priority of the driver thread.
pub const REALTIME_PRIORITY: u32 = 10;

/// After how long without anything that plays a sound card is closed, in s: as PulseAudio.
pub const SUSPEND_S: u32 = 5;

/// Ports that a server has room for.
pub const PORT_MAX: u32 = 2048;

/// How long clients wait for another server after this one has died, in ms: long enough to start
/// a server by hand, and short enough that programs do not look dead.
pub const GRACE_MS: u32 = 5_000;

/// Priority with which a sound card is reserved on the session bus, as JACK2's: the highest, so
/// that no program gets a card by asking for it.
pub const RESERVE_PRIORITY: i32 = i32::MAX;
