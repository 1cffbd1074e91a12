//! Another server of PulseAudio's protocol, with this process as its program: what tunnels connect
//! to. Everything that it sends is checked in [`incoming`], as what programs send is.

mod address;
mod connection;
mod control;
mod incoming;

pub use connection::{
    RemoteCookie, RemoteFormat, RemoteOptions, RemoteReader, RemoteWriter, play, record,
};
pub use control::{RemoteControl, RemoteDevice, RemoteDeviceKind, RemoteServer};
pub use incoming::{RemoteEvent, RemoteTiming};
