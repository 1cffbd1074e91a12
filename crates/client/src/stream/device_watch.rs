//! Waiting for a change of a server's devices, or of its streams, beside other descriptors.

use std::os::fd::{AsFd, BorrowedFd};

use proto::hello::{Role, Welcome};
use proto::request::{Reply, Request};
use proto::stream::{StreamReply, StreamRequest};
use sys::runtime_directory::ControlSockets;

use crate::Error;
use crate::requests::{Requests, introduce, server_name};

/// A connection that is readable when a device of the server was added or removed, has another
/// volume, or is opened for other samples, a stream has moved, or an active client of the graph has
/// another role; and once the server has gone. In between, nothing wakes.
#[derive(Debug)]
pub struct DeviceWatch {
    requests: Requests,
    streams: bool,
}

impl DeviceWatch {
    /// Connects to a server. `None` selects `JACK_DEFAULT_SERVER`, or else `default`. What happens
    /// after this is a change.
    ///
    /// # Errors
    /// [`Error::NoServer`] and the other errors of connecting.
    pub fn open(server: Option<&str>) -> Result<Self, Error> {
        Self::of(server, false)
    }

    /// Connects like [`open`](Self::open), and waits for changes of streams as well: one begins,
    /// ends or has another volume, the wishes of one are obeyed at once, or a device begins or
    /// ceases to sleep.
    ///
    /// # Errors
    /// See [`open`](Self::open).
    pub fn with_streams(server: Option<&str>) -> Result<Self, Error> {
        Self::of(server, true)
    }

    fn of(server: Option<&str>, streams: bool) -> Result<Self, Error> {
        let (sockets, server) = (ControlSockets::of_environment()?, server_name(server)?);
        let introduction = introduce(&sockets, &server, Role::Observer)?;
        if introduction.welcome != Welcome::Observer {
            return Err(Error::Protocol("it did not welcome a program with streams"));
        }
        let requests = introduction.requests;
        // All changes so far count as one, which is answered at once.
        let seen = match super::connection::ask(&requests, await_change(NEVER, streams))? {
            StreamReply::Changed { number } => number,
            _ => return Err(Error::OTHER_REPLY),
        };
        requests.begin(Request::Stream(await_change(seen, streams)))?;
        Ok(Self { requests, streams })
    }

    /// Returns whether something has changed since the last time. Does not wait.
    ///
    /// # Errors
    /// [`Error::ServerGone`].
    pub fn has_changed(&mut self) -> Result<bool, Error> {
        match self.requests.take_reply()? {
            None => Ok(false),
            Some(Reply::Stream(StreamReply::Changed { number })) => {
                self.requests.begin(Request::Stream(await_change(number, self.streams)))?;
                Ok(true)
            }
            Some(_) => Err(Error::OTHER_REPLY),
        }
    }
}

/// No change has this number.
const NEVER: u64 = u64::MAX;

fn await_change(seen: u64, streams: bool) -> StreamRequest {
    StreamRequest::AwaitChange { seen, streams }
}

impl AsFd for DeviceWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.requests.socket().as_fd()
    }
}
