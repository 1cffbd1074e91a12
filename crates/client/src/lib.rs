//! A client of the audio server, inside a program's process.
//!
//! [`Client`] is for Rust programs: [`Client::activate`] turns a `Client<Inactive>` into a
//! `Client<Active>`, and port buffers live as long as a cycle. [`Session`] is the untyped layer
//! below, with everything that `libjack` needs. [`Observer`] inspects and controls a server without
//! ports.
//!
//! One service thread per process maps memory and never runs the program's code. Each client has a
//! notification thread for callbacks and, while it is active, a process thread for its part in
//! cycles. Items marked `Thread: cycle` may be called within a cycle; items marked `Thread: any`
//! may be called from any thread and do not wait.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::print_stderr, clippy::print_stdout))]

mod autostart;
mod callbacks;
mod chunked_list;
mod error;
mod host;
mod internal_session;
mod joinable_thread;
mod locked;
pub mod log;
pub mod midi;
mod notice_queue;
mod notification;
mod observer;
mod port_kind;
mod process;
mod registry_view;
mod requester;
mod requests;
mod saving;
mod service;
mod session;
pub mod stream;
mod time;
mod transport;
mod typed;

pub use callbacks::{
    Callback, Callbacks, NotificationCallback, ProcessCallback, SessionEvent, Shutdown,
    ThreadFunction, callback,
};
pub use chunked_list::ChunkedList;
pub use error::Error;
pub use host::HostSocket;
pub use observer::Observer;
pub use port_kind::PortKind;
pub use process::{CycleScope, SyncCallback, TimebaseCallback};
pub use registry_view::{ClientInfo, PortInfo, RegistryView};
pub use requester::{InternalClient, Requester};
pub use session::{OpenOptions, Session};
pub use time::CycleTimes;
pub use typed::{
    Active, Audio, Client, Control, Inactive, Input, InputBuffer, InputPort, Midi, Notifications,
    Output, OutputBuffer, OutputPort, Port, Process,
};

pub use proto::internal::{InternalFailure, PlugIn};
pub use proto::port_flags;
pub use proto::property::{Property, PropertyChange, PropertyValue, client_uuid, port_uuid};
pub use proto::request::{PortType, Reply, Request, RequestError};
pub use proto::session::{SessionAnswer, SessionCommand, SessionKind};
pub use rt::transport::{Position, Transport, TransportState, valid};
/// How threads that run the program's code are created: process threads, notification threads and
/// the program's own.
pub mod threads {
    pub use sys::thread::{ThreadBody, ThreadCreator, create, set_creator};
}
