//! `consort pulse`: PulseAudio's native protocol, for programs that speak nothing else.
//!
//! A process of its own beside a server. Everything is one thread around `epoll`, in four layers,
//! of which only the outermost does I/O:
//!
//! | layer | what it is about |
//! |---|---|
//! | `wire` | bytes, frames, packets; everything that a program can send is checked here |
//! | `front_end` | who is connected, and what each packet asks: events in, packets out |
//! | `playback` | one stream: its buffer, when to ask for more, what is heard |
//! | `recording` | one stream the other way: what waits for its program, when there is more |
//! | `service` | sockets, the server's streams, time |
//! | `remote` | another server of the protocol, with this process as its program |
//!
//! PulseAudio's words are used in the front end only: a *sink* is a device of the server, a *sink
//! input* a stream that plays, a *source* what can be recorded, a *source output* a stream that
//! records.
#![forbid(unsafe_code)]

mod command;
mod cookie_file;
mod front_end;
#[cfg(fuzzing)]
mod fuzzing;
mod input;
mod output;
mod playback;
mod processing;
mod recording;
mod remote;
mod service;
mod why;
mod wire;

pub use command::Pulse;
#[cfg(fuzzing)]
pub use fuzzing::answer;
pub use remote::{
    RemoteControl, RemoteCookie, RemoteDevice, RemoteDeviceKind, RemoteEvent, RemoteFormat,
    RemoteOptions, RemoteReader, RemoteServer, RemoteTiming, RemoteWriter, play as play_remotely,
    record as record_remotely,
};
pub use service::{Listener, arguments_of_front_end, front_end_at};
pub use why::Why;
