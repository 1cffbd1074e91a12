//! Slave drivers: devices beside the server's own, which are clients of it.

use super::failure::{Answer, Failure};
use super::service::Service;
use crate::command::device::{self, DeviceOptions};

fn failed(error: &anyhow::Error) -> Failure {
    Failure::Generic(format!("{error:#}"))
}

impl Service {
    /// Has a device join the server that runs.
    pub(super) fn join(&self, driver: &str, options: &DeviceOptions) -> Answer<()> {
        self.with_server(|server, state| {
            let added = device::add(server.server_name(), options).map_err(|error| {
                Failure::Generic(format!("the slave driver '{driver}' cannot be added: {error:#}"))
            })?;
            state.slaves.push((driver.to_owned(), added.name));
            Ok(())
        })
    }

    /// Adds one: now if the server runs, and to those that the next one begins with.
    pub(super) fn add_slave(&self, driver: &str) -> Answer<()> {
        let options = self.state().parameters.slave(driver)?;
        if self.is_started() {
            self.join(driver, &options)?;
        }
        let mut state = self.state();
        let mut names = state.parameters.slaves();
        names.push(driver.to_owned());
        state.configure(|parameters| parameters.set_slaves(&names));
        Ok(())
    }

    /// Removes the oldest of that driver.
    pub(super) fn remove_slave(&self, driver: &str) -> Answer<()> {
        let client = {
            let mut state = self.state();
            let mut names = state.parameters.slaves();
            let index = names.iter().position(|name| name == driver);
            let found = state.slaves.iter().position(|(name, _)| name == driver);
            if index.is_none() && found.is_none() {
                let reason = format!("no slave driver '{}' was added", driver.escape_debug());
                return Err(Failure::InvalidArgs(reason));
            }
            index.map(|index| names.remove(index));
            state.configure(|parameters| parameters.set_slaves(&names));
            found.map(|index| state.slaves.remove(index).1)
        };
        let Some(client) = client else { return Ok(()) };
        self.with_server(|server, _| device::remove(server, &client).map_err(|error| failed(&error)))
    }
}
