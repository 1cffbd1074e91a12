//! The connected clients: the memory that the server shares with each, and what they have mapped of
//! each other's.

mod mappings;
mod presence;
mod signal_pages;
#[cfg(test)]
pub(super) mod tests;

use std::collections::BTreeMap;

use proto::event::Event;

use super::questions::{Questions, Tokens};
use crate::client_slot::ClientSlot;
use crate::plan::Sleep;
use crate::realtime_limits::Locking;
use crate::slab::Slab;

use mappings::Mapping;

/// The connected clients, by id, and the memory of the devices' ports.
#[derive(Debug)]
pub(super) struct Clients {
    pub(super) slots: BTreeMap<u32, ClientSlot>,
    /// Slabs of the devices' output ports.
    pub(super) device_slabs: BTreeMap<u32, Vec<Slab>>,
    /// Slabs of the ports of streams that programs of the graph hear, by client and number.
    pub(super) stream_slabs: BTreeMap<(u32, u32), Slab>,
    /// Memory that clients were asked to map, and have not answered.
    mappings: Questions<Mapping>,
    tokens: Tokens,
    /// What of the memory that the driver touches is locked.
    pub(super) locking: Locking,
    /// A client has connected since the server started.
    pub(super) had_clients: bool,
}

impl Clients {
    /// Starts without clients, with the slabs of the devices.
    pub(super) fn new(
        device_slabs: BTreeMap<u32, Vec<Slab>>,
        tokens: Tokens,
        locking: Locking,
    ) -> Self {
        Self {
            slots: BTreeMap::new(),
            device_slabs,
            stream_slabs: BTreeMap::new(),
            mappings: Questions::default(),
            tokens,
            locking,
            had_clients: false,
        }
    }

    /// The slabs of a device's output ports.
    pub(super) fn slabs_of_device(&mut self, device: u32) -> &mut Vec<Slab> {
        self.device_slabs.entry(device).or_default()
    }

    /// The clients that take part in cycles of `quantum` frames.
    pub(super) fn members(&self, quantum: u32) -> Vec<u32> {
        let runs = |slot: &ClientSlot| slot.runs(quantum);
        self.slots.iter().filter(|(_, slot)| runs(slot)).map(|(client, _)| *client).collect()
    }

    /// Notes where the clients of a plan that the driver has taken sleep. Returns true if one of
    /// them has left a signal page, so that another plan is needed. `newest` is the newest plan's
    /// generation.
    pub(super) fn note_adoption(&mut self, sleeps: &BTreeMap<u32, Sleep>, newest: u64) -> bool {
        for (client, slot) in &mut self.slots {
            slot.sleep = sleeps.get(client).copied().unwrap_or_default();
        }
        let mut has_left = false;
        for client in sleeps.keys() {
            has_left |= self.leave_signal_page(*client, newest);
        }
        has_left
    }

    /// Asks `client` a question; returns the token of the answer. `None`: there is no such client.
    pub(super) fn ask(&mut self, client: u32, question: impl FnOnce(u64) -> Event) -> Option<u64> {
        let slot = self.slots.get_mut(&client)?;
        let token = self.tokens.next();
        slot.outbox.push(&question(token));
        Some(token)
    }

    /// Returns a token for a question that is sent later.
    pub(super) fn next_token(&mut self) -> u64 {
        self.tokens.next()
    }
}
