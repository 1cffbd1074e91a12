//! The transport outside of cycles: requests of programs that are in no cycle, and the choice of
//! the timebase master.

use proto::request::RequestError;
use rt::shm::TransportRequest;
use rt::sync::Ordering;

use super::Control;

impl Control {
    /// Passes a request on to the driver; it is decided with the next cycle.
    pub(super) fn ask_transport(&self, request: TransportRequest) -> Result<(), RequestError> {
        let requests = &self.shared.transport;
        if let Some(position) = &request.position
            && !requests.request_position(position)
        {
            return Err(RequestError::Failed(
                "the transport cannot be moved now: try again".into(),
            ));
        }
        if let Some(roll) = request.roll {
            requests.request_roll(roll);
        }
        if let Some(timeout_us) = request.sync_timeout_us {
            requests.request_sync_timeout(timeout_us);
        }
        self.shared.call_for_cycle();
        Ok(())
    }

    /// Passes on what a client requested in its last cycle, so that it is not lost with the client.
    pub(super) fn take_over_transport_requests(&self, client: u32) {
        let slot = self.clients.slots.get(&client).filter(|slot| slot.permissions.control);
        let asked = slot.and_then(|slot| slot.memory.own.transport().take());
        if let Some(asked) = asked {
            // Refused only if the server's own requests were half written, which they never are.
            let _ = self.ask_transport(asked);
        }
    }

    /// Returns the timebase master.
    fn timebase(&self) -> Option<u32> {
        // Relaxed: only this thread writes it.
        Some(self.shared.timebase.load(Ordering::Relaxed)).filter(|master| *master != 0)
    }

    pub(super) fn take_timebase(&self, client: u32, conditional: bool) -> Result<(), RequestError> {
        if let Some(master) = self.timebase().filter(|master| conditional && *master != client) {
            let name = self.model.client(master).map(|client| client.name.clone());
            return Err(RequestError::TimebaseTaken(name.unwrap_or_default()));
        }
        self.shared.timebase.store(client, Ordering::Relaxed);
        Ok(())
    }

    pub(super) fn release_timebase(&self, client: u32) -> Result<(), RequestError> {
        if self.timebase() != Some(client) {
            return Err(RequestError::NotTimebase);
        }
        self.shared.timebase.store(0, Ordering::Relaxed);
        Ok(())
    }
}
