//! Requests that a [`Session`](crate::Session) and an [`Observer`](crate::Observer) share.

use proto::internal::{InternalRequest, PlugIn};
use proto::property::{Property, PropertyPage, PropertyRequest, PropertyValue};
use proto::request::{Reply, Request};
use proto::session::{SessionCommand, SessionKind, SessionRequest};

use crate::Error;

/// An internal client: a plug-in that the server runs in a separate process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InternalClient {
    /// Its handle: never 0, never reused.
    pub handle: u64,
    /// The name of its client.
    pub name: String,
}

/// Sends requests to a server and waits, in bounded time, for the replies.
///
/// Every method fails with [`Error::Refused`] if the server refuses the request, and with
/// [`Error::Timeout`] or [`Error::ServerGone`] if it does not answer. A session also fails with
/// [`Error::Ended`], [`Error::InCycle`], [`Error::Closed`] and [`Error::Forked`].
pub trait Requester {
    /// Sends a request and returns the reply.
    ///
    /// # Errors
    /// See [`Requester`].
    fn ask(&self, request: Request) -> Result<Reply, Error>;

    /// Sends a request whose reply is [`Reply::Done`]. The registry shows the change when this
    /// returns.
    ///
    /// # Errors
    /// See [`Requester`].
    fn request(&self, request: Request) -> Result<(), Error> {
        match self.ask(request)? {
            Reply::Done => Ok(()),
            _ => Err(Error::OTHER_REPLY),
        }
    }

    /// Connects an output port to an input port, by full names or aliases.
    ///
    /// # Errors
    /// See [`Requester`].
    fn connect(&self, source: &str, destination: &str) -> Result<(), Error> {
        let (source, destination) = (source.to_owned(), destination.to_owned());
        self.request(Request::Connect { source, destination })
    }

    /// Removes a connection, by full names or aliases.
    ///
    /// # Errors
    /// See [`Requester`].
    fn disconnect(&self, source: &str, destination: &str) -> Result<(), Error> {
        let (source, destination) = (source.to_owned(), destination.to_owned());
        self.request(Request::Disconnect { source, destination })
    }

    /// Sets a property of any client or port, by uuid.
    ///
    /// # Errors
    /// See [`Requester`].
    fn set_property(&self, property: Property) -> Result<(), Error> {
        self.request(Request::Property(PropertyRequest::Set(property)))
    }

    /// Returns a property; the server refuses if there is none.
    ///
    /// # Errors
    /// See [`Requester`].
    fn property(&self, subject: u64, key: &str) -> Result<PropertyValue, Error> {
        let request = PropertyRequest::Get { subject, key: key.to_owned() };
        match self.ask(Request::Property(request))? {
            Reply::Property(value) => Ok(value),
            _ => Err(Error::OTHER_REPLY),
        }
    }

    /// Returns the properties of `subject`, or of every subject, sorted by subject and key.
    ///
    /// # Errors
    /// See [`Requester`].
    fn properties(&self, subject: Option<u64>) -> Result<Vec<Property>, Error> {
        let mut page = PropertyPage { subject, after: None };
        let mut all = Vec::new();
        loop {
            let request = Request::Property(PropertyRequest::List(page.clone()));
            let Reply::Properties { properties, more } = self.ask(request)? else {
                return Err(Error::OTHER_REPLY);
            };
            all.extend(properties);
            page.after = all.last().map(|last| (last.subject, last.key.clone()));
            if !more {
                return Ok(all);
            }
        }
    }

    /// Removes a property; the server refuses if there is none.
    ///
    /// # Errors
    /// See [`Requester`].
    fn remove_property(&self, subject: u64, key: &str) -> Result<(), Error> {
        let key = key.to_owned();
        self.request(Request::Property(PropertyRequest::Remove { subject, key }))
    }

    /// Removes all properties of `subject` and returns their number.
    ///
    /// # Errors
    /// See [`Requester`].
    fn remove_properties(&self, subject: u64) -> Result<u32, Error> {
        match self.ask(Request::Property(PropertyRequest::RemoveAllOf { subject }))? {
            Reply::Count(count) => Ok(count),
            _ => Err(Error::OTHER_REPLY),
        }
    }

    /// Removes all properties of every subject.
    ///
    /// # Errors
    /// See [`Requester`].
    fn remove_all_properties(&self) -> Result<(), Error> {
        self.request(Request::Property(PropertyRequest::RemoveAll))
    }

    /// Loads a plug-in and waits until it runs, a few seconds at most.
    ///
    /// # Errors
    /// See [`Requester`]; refused with [`RequestError::Internal`](crate::RequestError::Internal).
    fn load_internal(&self, plug_in: PlugIn) -> Result<InternalClient, Error> {
        internal_client(self.ask(Request::Internal(InternalRequest::Load(plug_in)))?)
    }

    /// Unloads a plug-in and waits until its process has ended.
    ///
    /// # Errors
    /// See [`load_internal`](Self::load_internal).
    fn unload_internal(&self, handle: u64) -> Result<(), Error> {
        self.request(Request::Internal(InternalRequest::Unload { handle }))
    }

    /// Returns the internal client with the name `name`.
    ///
    /// # Errors
    /// See [`load_internal`](Self::load_internal).
    fn find_internal(&self, name: &str) -> Result<InternalClient, Error> {
        let name = name.to_owned();
        internal_client(self.ask(Request::Internal(InternalRequest::Find { name }))?)
    }

    /// Returns the internal client with the handle `handle`.
    ///
    /// # Errors
    /// See [`load_internal`](Self::load_internal).
    fn internal(&self, handle: u64) -> Result<InternalClient, Error> {
        internal_client(self.ask(Request::Internal(InternalRequest::Describe { handle }))?)
    }

    /// Asks the client `target`, or every client with a session callback, to save its state below
    /// the absolute directory `path`. Waits at most 30 s for the answers.
    ///
    /// # Errors
    /// See [`Requester`].
    fn notify_session(
        &self,
        target: Option<&str>,
        kind: SessionKind,
        path: &str,
    ) -> Result<Vec<SessionCommand>, Error> {
        let (target, path) = (target.map(str::to_owned), path.to_owned());
        match self.ask(Request::Session(SessionRequest::Notify { target, kind, path }))? {
            Reply::Session(commands) => Ok(commands),
            _ => Err(Error::OTHER_REPLY),
        }
    }

    /// Reserves a name for the client that opens with this session uuid.
    ///
    /// # Errors
    /// See [`Requester`].
    fn reserve_name(&self, name: &str, uuid: u64) -> Result<(), Error> {
        self.request(Request::Session(SessionRequest::Reserve { name: name.to_owned(), uuid }))
    }

    /// Returns whether the client `name` is active and has a session callback.
    ///
    /// # Errors
    /// See [`Requester`].
    fn has_session_callback(&self, name: &str) -> Result<bool, Error> {
        let request = SessionRequest::HasCallback { name: name.to_owned() };
        match self.ask(Request::Session(request))? {
            Reply::Count(count) => Ok(count > 0),
            _ => Err(Error::OTHER_REPLY),
        }
    }
}

fn internal_client(reply: Reply) -> Result<InternalClient, Error> {
    match reply {
        Reply::Internal { handle, name } => Ok(InternalClient { handle, name }),
        _ => Err(Error::OTHER_REPLY),
    }
}
