//! A device without hardware that is there for its links alone.

use client::stream::NewDevice;
use client::{Observer, OpenOptions};

/// A device that is removed when this value is dropped.
#[derive(Debug)]
pub struct OwnDevice {
    server: Option<String>,
    name: String,
}

impl OwnDevice {
    /// Adds the device.
    ///
    /// # Errors
    /// There is a device of that name, or the server's policy does not let this program add one.
    pub fn add(open: &OpenOptions, device: NewDevice) -> anyhow::Result<Self> {
        let (server, name) = (open.server.clone(), device.name.clone());
        Observer::open(server.as_deref())?.add_device(device)?;
        Ok(Self { server, name })
    }

    /// Returns its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for OwnDevice {
    fn drop(&mut self) {
        // It is gone already, or the server is.
        let _ = Observer::open(self.server.as_deref())
            .and_then(|server| server.remove_device(&self.name));
    }
}
