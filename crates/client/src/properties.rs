//! Properties of clients and ports. They live in the server, as long as what they belong to.

use proto::property::{Property, PropertyPage, PropertyRequest, PropertyValue};
use proto::request::{Reply, Request};

use crate::{Error, Observer, Session};

/// Asks page after page for the properties of `subject`, or for all.
fn all(subject: Option<u64>, ask: impl Fn(Request) -> Result<Reply, Error>) -> Result<Vec<Property>, Error> {
    let mut page = PropertyPage { subject, after: None };
    let mut all = Vec::new();
    loop {
        let Reply::Properties { properties, more } =
            ask(Request::Property(PropertyRequest::List(page.clone())))?
        else {
            return Err(Error::OTHER_REPLY);
        };
        all.extend(properties);
        page.after = all.last().map(|last| (last.subject, last.key.clone()));
        if !more {
            return Ok(all);
        }
    }
}

impl Session {
    /// Sets a property of a client or a port, by uuid: of any, not only of this client.
    ///
    /// # Errors
    /// Those of [`order`](Self::order).
    pub fn set_property(&self, property: Property) -> Result<(), Error> {
        self.order(Request::Property(PropertyRequest::Set(property)))
    }

    /// A property.
    ///
    /// # Errors
    /// Those of [`order`](Self::order); [`Error::Refused`] if there is no such property.
    pub fn property(&self, subject: u64, key: &str) -> Result<PropertyValue, Error> {
        match self.exchange(Request::Property(PropertyRequest::Get { subject, key: key.to_owned() }))? {
            Reply::Property(value) => Ok(value),
            _ => Err(Error::OTHER_REPLY),
        }
    }

    /// The properties of `subject`, or all that there are, by subject and key.
    ///
    /// # Errors
    /// Those of [`order`](Self::order).
    pub fn properties(&self, subject: Option<u64>) -> Result<Vec<Property>, Error> {
        all(subject, |request| self.exchange(request))
    }

    /// Removes a property.
    ///
    /// # Errors
    /// Those of [`order`](Self::order); [`Error::Refused`] if there is no such property.
    pub fn remove_property(&self, subject: u64, key: &str) -> Result<(), Error> {
        self.order(Request::Property(PropertyRequest::Remove { subject, key: key.to_owned() }))
    }

    /// Removes all properties of `subject`; how many there were.
    ///
    /// # Errors
    /// Those of [`order`](Self::order).
    pub fn remove_properties(&self, subject: u64) -> Result<u32, Error> {
        match self.exchange(Request::Property(PropertyRequest::RemoveAllOf { subject }))? {
            Reply::Count(count) => Ok(count),
            _ => Err(Error::OTHER_REPLY),
        }
    }

    /// Removes all properties of everything.
    ///
    /// # Errors
    /// Those of [`order`](Self::order).
    pub fn remove_all_properties(&self) -> Result<(), Error> {
        self.order(Request::Property(PropertyRequest::RemoveAll))
    }
}

impl Observer {
    /// The properties of `subject`, or all that there are, by subject and key.
    ///
    /// # Errors
    /// Those of [`order`](Self::order).
    pub fn properties(&self, subject: Option<u64>) -> Result<Vec<Property>, Error> {
        all(subject, |request| self.exchange(request))
    }
}
