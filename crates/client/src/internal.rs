//! Internal clients: plug-ins that the server runs, each in a process of its own.

use proto::internal::InternalRequest;
use proto::request::{Reply, Request};

use crate::{Error, Observer, Session};

/// An internal client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InternalClient {
    /// Its handle, never 0 and never given to another one.
    pub handle: u64,
    /// Its client's name.
    pub name: String,
}

/// What is to be loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlugIn<'a> {
    /// The client's name.
    pub name: &'a str,
    /// Fail rather than change the name when it is taken.
    pub exact: bool,
    /// A file's name in the server's directories, without its end.
    pub object: &'a str,
    /// For the plug-in.
    pub parameters: &'a str,
}

impl PlugIn<'_> {
    fn request(&self) -> Request {
        Request::Internal(InternalRequest::Load {
            name: self.name.to_owned(),
            exact: self.exact,
            object: self.object.to_owned(),
            parameters: self.parameters.to_owned(),
        })
    }
}

fn described(reply: Reply) -> Result<InternalClient, Error> {
    match reply {
        Reply::Internal { handle, name } => Ok(InternalClient { handle, name }),
        _ => Err(Error::OTHER_REPLY),
    }
}

impl Session {
    /// Has the server load a plug-in, and waits until it runs: some seconds at most.
    ///
    /// # Errors
    /// [`Error::Refused`] with [`RequestError::Internal`](crate::RequestError::Internal), and those of requests.
    pub fn load_internal(&self, plug_in: &PlugIn<'_>) -> Result<InternalClient, Error> {
        described(self.exchange(plug_in.request())?)
    }

    /// Has the server unload a plug-in, and waits until its process has ended.
    ///
    /// # Errors
    /// As [`load_internal`](Self::load_internal).
    pub fn unload_internal(&self, handle: u64) -> Result<(), Error> {
        self.order(Request::Internal(InternalRequest::Unload { handle }))
    }

    /// The internal client of a name.
    ///
    /// # Errors
    /// As [`load_internal`](Self::load_internal).
    pub fn find_internal(&self, name: &str) -> Result<InternalClient, Error> {
        let name = name.to_owned();
        described(self.exchange(Request::Internal(InternalRequest::Find { name }))?)
    }

    /// The internal client of a handle.
    ///
    /// # Errors
    /// As [`load_internal`](Self::load_internal).
    pub fn internal(&self, handle: u64) -> Result<InternalClient, Error> {
        described(self.exchange(Request::Internal(InternalRequest::Describe { handle }))?)
    }
}

impl Observer {
    /// See [`Session::load_internal`].
    ///
    /// # Errors
    /// As there.
    pub fn load_internal(&self, plug_in: &PlugIn<'_>) -> Result<InternalClient, Error> {
        described(self.exchange(plug_in.request())?)
    }

    /// See [`Session::unload_internal`].
    ///
    /// # Errors
    /// As there.
    pub fn unload_internal(&self, handle: u64) -> Result<(), Error> {
        self.order(Request::Internal(InternalRequest::Unload { handle }))
    }

    /// See [`Session::find_internal`].
    ///
    /// # Errors
    /// As there.
    pub fn find_internal(&self, name: &str) -> Result<InternalClient, Error> {
        let name = name.to_owned();
        described(self.exchange(Request::Internal(InternalRequest::Find { name }))?)
    }
}
