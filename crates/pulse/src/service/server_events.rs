//! What happens to the server: it answers, its devices change, it goes, and another one comes.

use anyhow::Context;
use sys::clock::now_ns;
use sys::poll::Interest;

use super::{DEVICES, SERVER, Service};

impl Service {
    pub(super) fn watch_server(&mut self) -> anyhow::Result<()> {
        let devices = self.front_end.devices_mut();
        if let Some(connection) = devices.connection() {
            self.poller.add(connection, SERVER, Interest::Readable)?;
        }
        if let Some(watch) = devices.watch() {
            self.poller.add(watch, DEVICES, Interest::Readable)?;
        }
        Ok(())
    }

    /// Something about the server's devices may have changed.
    pub(super) fn devices_ready(&mut self) {
        match self.front_end.devices_mut().have_changed() {
            Ok(true) => self.front_end.devices_changed(now_ns()),
            Ok(false) => {}
            Err(_) => self.server_gone(),
        }
    }

    /// The server has answered what was not waited for, or has gone.
    pub(super) fn server_ready(&mut self) {
        let connection = self.front_end.devices_mut().connection();
        if connection.is_some_and(|connection| connection.take_answers().is_err()) {
            self.server_gone();
        }
    }

    /// The server has ended. Programs stay connected, and streams wait for the next one.
    fn server_gone(&mut self) {
        let devices = self.front_end.devices_mut();
        // Either of its two connections may say it first.
        let Some(connection) = devices.connection() else { return };
        let _ = self.poller.remove(connection);
        if let Some(watch) = devices.watch() {
            let _ = self.poller.remove(watch);
        }
        let grace_ns = u64::try_from(devices.disconnect().as_nanos()).unwrap_or(u64::MAX);
        let now_ns = now_ns();
        self.front_end.server_gone(grace_ns, now_ns);
        self.retry.server_gone(grace_ns, now_ns);
    }

    /// Looks once for a server, in bounded time: one that is there may take a second to answer.
    ///
    /// # Errors
    /// It is of another release, or those of [`watch_server`](Self::watch_server).
    pub(super) fn look_for_server(&mut self, now_ns: u64) -> anyhow::Result<()> {
        match self.front_end.devices_mut().reconnect() {
            Ok(()) => {
                self.retry.found(now_ns);
                self.watch_server()?;
                self.front_end.server_found(now_ns);
            }
            // This process stays what it is. The next one may be of the server's release.
            Err(error) if error.is_of_other_release() => {
                return Err(error).context(
                    "the next server is of another release than this front end, which \
                     ends: its programs have to connect to the next one",
                );
            }
            Err(error) => {
                let listens = !matches!(error, client::Error::NoServer { .. });
                self.retry.not_found(listens, now_ns);
            }
        }
        Ok(())
    }
}
