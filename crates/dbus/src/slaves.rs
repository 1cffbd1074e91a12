//! Slave drivers: devices in addition to the server's own, which are clients of it.

use crate::failure::{Answer, Failure};
use crate::service::Service;

impl Service {
    /// Adds the device of a slave driver to the running server.
    pub(crate) fn add_device(&self, driver: &str, options: &[String]) -> Answer<()> {
        self.with_server(|server, state| {
            let client = self.jackd().add_slave(server.server_name(), driver, options);
            let client = client.map_err(|error| {
                Failure::Generic(format!("the slave driver '{driver}' cannot be added: {error:#}"))
            })?;
            state.slaves.push((driver.to_owned(), client));
            Ok(())
        })
    }

    /// Checks that a slave driver can be added, and returns its options.
    pub(crate) fn slave_options(&self, driver: &str) -> Answer<Vec<String>> {
        let options = self.state().parameters.slave_options(driver)?;
        let checked = self.jackd().check_slave(driver, &options);
        checked.map_err(|error| Failure::InvalidArgs(error.to_string()))?;
        Ok(options)
    }

    /// Adds a slave driver: to the running server, and to those that the next server starts with.
    pub(crate) fn add_slave(&self, driver: &str) -> Answer<()> {
        let options = self.slave_options(driver)?;
        if self.is_started() {
            self.add_device(driver, &options)?;
        }
        let mut state = self.state();
        let mut names = state.parameters.slaves();
        names.push(driver.to_owned());
        state.configure(|parameters| parameters.set_slaves(&names));
        Ok(())
    }

    /// Removes the oldest device of a slave driver.
    pub(crate) fn remove_slave(&self, driver: &str) -> Answer<()> {
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
        self.with_server(|server, _| {
            let removed = self.jackd().remove_slave(server, &client);
            removed.map_err(|error| Failure::Generic(format!("{error:#}")))
        })
    }
}
