//! Flags of a port: `JackPortFlags` of `jack/types.h`.

/// The port receives data.
pub const INPUT: u32 = 1;
/// The port sends data.
pub const OUTPUT: u32 = 2;
/// The port corresponds to a connector of a device.
pub const PHYSICAL: u32 = 4;
/// Data ends or originates at the port.
pub const TERMINAL: u32 = 16;
