//! The transport of a typed client.

use std::sync::Arc;
use std::time::Duration;

use rt::transport::{Position, Transport};

use super::Client;
use crate::{CycleScope, Error};

/// Requests are decided with the next cycle. Within the process callback, the [`CycleScope`] takes them.
impl<State> Client<State> {
    /// The transport in the newest cycle. Within the process callback: [`CycleScope::transport`].
    pub fn transport(&self) -> Transport {
        self.session().transport().unwrap_or_default()
    }

    /// Has the piece roll, once all clients that need time are ready.
    ///
    /// # Errors
    /// Those of [`Session::start_transport`](crate::Session::start_transport).
    pub fn start_transport(&self) -> Result<(), Error> {
        self.session().start_transport()
    }

    /// Has the piece stand still.
    ///
    /// # Errors
    /// Those of [`Session::stop_transport`](crate::Session::stop_transport).
    pub fn stop_transport(&self) -> Result<(), Error> {
        self.session().stop_transport()
    }

    /// Goes to a place in the piece; if it rolls, it starts anew from there.
    ///
    /// # Errors
    /// Those of [`Session::locate_transport`](crate::Session::locate_transport).
    pub fn locate_transport(&self, position: &Position) -> Result<(), Error> {
        self.session().locate_transport(position)
    }

    /// Sets how long the transport waits for clients that need time.
    ///
    /// # Errors
    /// Those of [`Session::set_sync_timeout`](crate::Session::set_sync_timeout).
    pub fn set_sync_timeout(&self, timeout: Duration) -> Result<(), Error> {
        self.session().set_sync_timeout(u64::try_from(timeout.as_micros()).unwrap_or(u64::MAX))
    }

    /// Has the transport wait for this client before it rolls: `is_ready` is asked on the process thread, before the
    /// process callback, after each start and each jump until it says so: it is in a cycle.
    ///
    /// # Errors
    /// Those of [`Session::set_sync_callback`](crate::Session::set_sync_callback).
    pub fn wait_for(
        &self,
        is_ready: impl Fn(&CycleScope<'_>) -> bool + Send + Sync + 'static,
    ) -> Result<(), Error> {
        self.session().set_sync_callback(Some(Arc::new(is_ready)))
    }

    /// Makes this client the timebase master: `complete` is called on the process thread, after the process callback,
    /// with the position of the next cycle, to fill in bar and beat or whatever it knows. `true`: it is the position
    /// of a start or a jump. With `conditional`, only if there is no master. It is in a cycle.
    ///
    /// # Errors
    /// Those of [`Session::take_timebase`](crate::Session::take_timebase).
    pub fn lead(
        &self,
        conditional: bool,
        complete: impl Fn(&CycleScope<'_>, &mut Position, bool) + Send + Sync + 'static,
    ) -> Result<(), Error> {
        self.session().take_timebase(conditional, Arc::new(complete))
    }

    /// Is the timebase master no more.
    ///
    /// # Errors
    /// Those of [`Session::release_timebase`](crate::Session::release_timebase).
    pub fn release_timebase(&self) -> Result<(), Error> {
        self.session().release_timebase()
    }
}
