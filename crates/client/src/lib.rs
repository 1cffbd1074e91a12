//! A client of the audio server, inside somebody else's program.
//!
//! [`Client`] is for Rust programs: `Client<Inactive>` → [`activate`](Client::activate) → `Client<Active>`, with ports
//! whose buffers live as long as a cycle. [`Session`] below it has no types and every call: `libjack` is made of it.
//! [`Observer`] looks and asks, without ports.
//!
//! Threads: one service thread per process maps memory and never runs the program's code; each client has a
//! notification thread for callbacks, and while it is active a process thread for its part in cycles. Items marked
//! `Thread: cycle` may be called within a cycle; those marked `Thread: any`, from any thread without waiting.
#![forbid(unsafe_code)]

mod autostart;
mod callbacks;
mod error;
mod follower;
mod growing;
mod host;
mod internal;
mod internal_session;
mod joinable;
mod locked;
pub mod log;
pub mod midi;
mod notification;
mod observer;
mod port_kind;
mod process;
mod properties;
mod registry_view;
mod requests;
mod saving;
mod service;
mod session;
mod time;
mod transport;
mod typed;

pub use callbacks::{
    Callback, Callbacks, ProcessCallback, SessionEvent, Shutdown, ThreadFunction, Told, callback,
};
pub use error::Error;
pub use follower::{Follower, Recorded};
pub use growing::Growing;
pub use host::HostLine;
pub use internal::{InternalClient, PlugIn};
pub use observer::Observer;
pub use port_kind::PortKind;
pub use process::{CycleScope, SyncCallback, TimebaseCallback};
pub use registry_view::{ClientInfo, PortInfo, RegistryView};
pub use session::{OpenOptions, Session};
pub use time::CycleTimes;
pub use typed::{
    Active, Client, Control, Inactive, InputBuffer, InputPort, Notifications, OutputBuffer, OutputPort,
    Process,
};

pub use proto::internal::InternalFailure;
pub use proto::port_flags;
pub use proto::property::{Property, PropertyChange, PropertyValue, client_uuid, port_uuid};
pub use proto::request::{PortType, Request, RequestError};
pub use proto::session::{SessionAnswer, SessionCommand, SessionKind};
pub use rt::transport::{Position, Transport, TransportState, valid};
/// How threads that run the program's code are made: process threads, notification threads, and the program's own.
pub mod threads {
    pub use sys::thread::{ThreadBody, ThreadCreator, create, set_creator};
}
