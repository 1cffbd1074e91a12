//! Waiting for a change on a server, beside other descriptors.

use std::os::fd::{AsFd, BorrowedFd};

use proto::hello::{Role, Welcome};
use proto::request::{Reply, Request};
use proto::stream::{StreamReply, StreamRequest, Watched};
use sys::runtime_directory::ControlSockets;

use crate::Error;
use crate::requests::{Requests, introduce, server_name};

/// A connection that is readable when what is watched has changed, and once the server has gone. In
/// between, nothing wakes.
#[derive(Debug)]
pub struct ServerWatch {
    requests: Requests,
    of: Watched,
    /// The request that is answered when something has changed.
    awaited: u32,
}

impl ServerWatch {
    /// Connects to a server. `None` selects `JACK_DEFAULT_SERVER`, or else `default`. What happens
    /// after this is a change.
    ///
    /// # Errors
    /// [`Error::NoServer`] and the other errors of connecting.
    pub fn open(server: Option<&str>, of: Watched) -> Result<Self, Error> {
        let (sockets, server) = (ControlSockets::of_environment()?, server_name(server)?);
        let introduction = introduce(&sockets, &server, Role::Observer)?;
        if introduction.welcome != Welcome::Observer {
            return Err(Error::Protocol("it did not welcome a program with streams"));
        }
        let requests = introduction.requests;
        // All changes so far count as one, which is answered at once.
        let seen = match super::connection::ask(&requests, await_change(NEVER, of))? {
            StreamReply::Changed { number } => number,
            _ => return Err(Error::OTHER_REPLY),
        };
        let awaited = requests.start(Request::Stream(await_change(seen, of)), &[])?;
        Ok(Self { requests, of, awaited })
    }

    /// Returns whether [`has_changed`](Self::has_changed) has something to say. Does not wait.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.requests.socket().has_unread()
    }

    /// Returns whether something has changed since the last time. Does not wait.
    ///
    /// # Errors
    /// [`Error::ServerGone`].
    pub fn has_changed(&mut self) -> Result<bool, Error> {
        self.requests.take_answers()?;
        match self.requests.try_finish(self.awaited, true)? {
            None => Ok(false),
            Some((Reply::Stream(StreamReply::Changed { number }), _)) => {
                let next = Request::Stream(await_change(number, self.of));
                self.awaited = self.requests.start(next, &[])?;
                Ok(true)
            }
            Some(_) => Err(Error::OTHER_REPLY),
        }
    }
}

/// No change has this number.
const NEVER: u64 = u64::MAX;

fn await_change(seen: u64, of: Watched) -> StreamRequest {
    StreamRequest::AwaitChange { seen, of }
}

impl AsFd for ServerWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.requests.socket().as_fd()
    }
}
