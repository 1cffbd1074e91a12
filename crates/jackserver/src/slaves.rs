//! Slave drivers: devices in addition to that of the server's driver. Each is a client in a
//! separate process.

use std::sync::Arc;

use crate::control::{ask_for, device, give_up};
use crate::objects::{Part, Server, Slave, State};
use crate::process::Process;
use crate::words;

/// Adds a slave driver: immediately if the server runs, else at its start.
pub(crate) fn add(server: &Server, state: &mut State, driver: &Arc<Part>) -> Result<(), String> {
    let is_card = driver.name.as_c_str() == c"alsa";
    if !is_card && !driver.is_slave() {
        return Err(
            "this driver adds no device to a server: alsa (a card) and alsarawmidi (MIDI) do"
                .into(),
        );
    }
    let mut slave = Slave {
        driver: Arc::clone(driver),
        words: words::driver_words(driver),
        device: device(driver),
        client: None,
    };
    if let Some(process) = running(state) {
        slave.join(server, process)?;
    }
    state.slaves.push(slave);
    Ok(())
}

/// Removes the oldest slave driver of this kind. One that a running server has lost by itself is
/// dropped from the list.
pub(crate) fn remove(server: &Server, state: &mut State, driver: &Arc<Part>) -> Result<(), String> {
    let index = state.slaves.iter().position(|slave| Arc::ptr_eq(&slave.driver, driver));
    let mut slave = state.slaves.remove(index.ok_or("this driver was not added")?);
    let client = slave.client.clone();
    slave.leave(server);
    match (running(state), client) {
        (Some(process), Some(client)) => process.remove_slave(&client),
        _ => Ok(()),
    }
}

fn running(state: &mut State) -> Option<&Process> {
    let process = state.process.as_mut()?;
    process.is_running().then_some(&*process)
}

/// Adds all slave drivers to a server that has just started. Fails at the first that cannot be
/// added.
pub(crate) fn join(server: &Server, state: &mut State, process: &Process) -> Result<(), String> {
    state.slaves.iter_mut().try_for_each(|slave| slave.join(server, process))
}

/// Records that all slave drivers ended with the server.
pub(crate) fn leave(server: &Server, state: &mut State) {
    state.slaves.iter_mut().for_each(|slave| slave.leave(server));
}

impl Slave {
    fn join(&mut self, server: &Server, process: &Process) -> Result<(), String> {
        self.device.as_deref().map_or(Ok(()), |device| ask_for(server, device))?;
        let joined = process.add_slave(&self.words);
        match (&joined, &self.device) {
            (Ok(client), _) => self.client = Some(client.clone()),
            (Err(_), Some(device)) => give_up(server, device),
            (Err(_), None) => {}
        }
        joined.map(drop)
    }

    fn leave(&mut self, server: &Server) {
        if self.client.take().is_some()
            && let Some(device) = &self.device
        {
            give_up(server, device);
        }
    }
}
