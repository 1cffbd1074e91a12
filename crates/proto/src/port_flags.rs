//! What a port is: `JackPortFlags`, of `jack/types.h`.

/// It receives.
pub const INPUT: u32 = 1;
/// It sends.
pub const OUTPUT: u32 = 2;
/// It stands for a connector of a device.
pub const PHYSICAL: u32 = 4;
/// Data ends, or comes into being, here.
pub const TERMINAL: u32 = 16;
