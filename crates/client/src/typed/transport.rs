//! The transport of a typed client.

use std::sync::Arc;
use std::time::Duration;

use rt::transport::{Position, Transport};

use super::Client;
use crate::{CycleScope, Error};

/// Transport requests take effect in the next cycle. Within the process callback, use the methods
/// of [`CycleScope`] instead.
impl<State> Client<State> {
    /// Returns the transport in the newest cycle. Within the process callback, use
    /// [`CycleScope::transport`].
    pub fn transport(&self) -> Transport {
        self.session().transport().unwrap_or_default()
    }

    /// Starts the transport once all slow-sync clients are ready.
    ///
    /// # Errors
    /// See [`Session::start_transport`](crate::Session::start_transport).
    pub fn start_transport(&self) -> Result<(), Error> {
        self.session().start_transport()
    }

    /// Stops the transport.
    ///
    /// # Errors
    /// See [`Session::stop_transport`](crate::Session::stop_transport).
    pub fn stop_transport(&self) -> Result<(), Error> {
        self.session().stop_transport()
    }

    /// Moves the transport. If it rolls, it starts again from there.
    ///
    /// # Errors
    /// See [`Session::locate_transport`](crate::Session::locate_transport).
    pub fn locate_transport(&self, position: &Position) -> Result<(), Error> {
        self.session().locate_transport(position)
    }

    /// Sets how long the transport waits for slow-sync clients.
    ///
    /// # Errors
    /// See [`Session::set_sync_timeout`](crate::Session::set_sync_timeout).
    pub fn set_sync_timeout(&self, timeout: Duration) -> Result<(), Error> {
        self.session().set_sync_timeout(u64::try_from(timeout.as_micros()).unwrap_or(u64::MAX))
    }

    /// Makes the transport wait for this client before it rolls. `is_ready` is called within the
    /// cycle, on the process thread before the process callback, after each start and each move
    /// until it returns true.
    ///
    /// # Errors
    /// See [`Session::set_sync_callback`](crate::Session::set_sync_callback).
    pub fn set_sync_callback(
        &self,
        is_ready: impl Fn(&CycleScope<'_>) -> bool + Send + Sync + 'static,
    ) -> Result<(), Error> {
        self.session().set_sync_callback(Some(Arc::new(is_ready)))
    }

    /// Makes this client the timebase master. `complete` is called within the cycle, on the process
    /// thread after the process callback, to fill in bar and beat of the next cycle's position; its
    /// flag is true for the position of a start or a move. With `conditional`, only if there is no
    /// master.
    ///
    /// # Errors
    /// See [`Session::take_timebase`](crate::Session::take_timebase).
    pub fn become_timebase_master(
        &self,
        conditional: bool,
        complete: impl Fn(&CycleScope<'_>, &mut Position, bool) + Send + Sync + 'static,
    ) -> Result<(), Error> {
        self.session().take_timebase(conditional, Arc::new(complete))
    }

    /// Stops being the timebase master.
    ///
    /// # Errors
    /// See [`Session::release_timebase`](crate::Session::release_timebase).
    pub fn release_timebase(&self) -> Result<(), Error> {
        self.session().release_timebase()
    }
}
