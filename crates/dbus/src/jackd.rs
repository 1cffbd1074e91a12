//! What the service needs from the program that it is part of.

use std::fmt::Debug;
use std::process::Command;

use client::Observer;
use proto::driver::DriverSwitch;

/// Starts servers as `jackd` does, reads its command line, and adds devices to servers. The program
/// that calls [`run`](crate::run) implements it.
pub trait Jackd: Debug + Send + Sync {
    /// Returns the command that starts a server with these arguments of jackd.
    ///
    /// # Errors
    /// The program's own file cannot be found.
    fn command(&self, arguments: &[String]) -> std::io::Result<Command>;

    /// Reads the driver that a command line of jackd asks for.
    ///
    /// # Errors
    /// It asks for none, or for one that is impossible.
    fn driver(&self, arguments: &[String]) -> anyhow::Result<DriverSwitch>;

    /// Returns whether a driver can be a slave driver: one that adds a device to a server.
    fn is_slave_driver(&self, driver: &str) -> bool;

    /// Checks the options of a slave driver.
    ///
    /// # Errors
    /// No device can be added with them.
    fn check_slave(&self, driver: &str, options: &[String]) -> anyhow::Result<()>;

    /// Adds the device of a slave driver to a running server. Returns the name of the device's
    /// client.
    ///
    /// # Errors
    /// The device cannot be opened, or cannot join the server.
    fn add_slave(&self, server: &str, driver: &str, options: &[String]) -> anyhow::Result<String>;

    /// Ends the device of this client, and waits until it has ended.
    ///
    /// # Errors
    /// The client is not a device, or its process does not end.
    fn remove_slave(&self, server: &Observer, client: &str) -> anyhow::Result<()>;
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Knows which drivers can be slave drivers, and nothing else.
    #[derive(Debug)]
    pub(crate) struct TwoSlaveDrivers;

    impl Jackd for TwoSlaveDrivers {
        fn command(&self, _: &[String]) -> std::io::Result<Command> {
            Err(std::io::ErrorKind::Unsupported.into())
        }

        fn driver(&self, _: &[String]) -> anyhow::Result<DriverSwitch> {
            anyhow::bail!("not used by these tests")
        }

        fn is_slave_driver(&self, driver: &str) -> bool {
            ["alsa", "alsarawmidi"].contains(&driver)
        }

        fn check_slave(&self, _: &str, _: &[String]) -> anyhow::Result<()> {
            Ok(())
        }

        fn add_slave(&self, _: &str, _: &str, _: &[String]) -> anyhow::Result<String> {
            anyhow::bail!("not used by these tests")
        }

        fn remove_slave(&self, _: &Observer, _: &str) -> anyhow::Result<()> {
            anyhow::bail!("not used by these tests")
        }
    }
}
