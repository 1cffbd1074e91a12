//! A device without hardware that is there for its links alone.

use client::stream::NewDevice;
use client::{Observer, OpenOptions};

/// A device that is removed when this value is dropped, or the process ends.
#[derive(Debug)]
pub struct OwnDevice {
    /// The device ends with it.
    _connection: Observer,
    name: String,
}

impl OwnDevice {
    /// Adds the device.
    ///
    /// # Errors
    /// There is a device of that name, or the server's policy does not let this program add one.
    pub fn add(open: &OpenOptions, device: NewDevice) -> anyhow::Result<Self> {
        let connection = Observer::open(open.server.as_deref())?;
        let name = device.name.clone();
        connection.add_device(NewDevice { ends_with_connection: true, ..device })?;
        Ok(Self { _connection: connection, name })
    }

    /// Returns its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}
