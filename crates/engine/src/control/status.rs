//! The server's status, as reported to programs.

use proto::limits::CLIENTS_AT_ONCE;
use proto::request::RequestError;
use proto::status::{ClientStatus, Place, Status, Timing};
use proto::stream::DeviceState;
use proto::timing::ClientTiming;
use sys::clock::now_ns;

use super::Control;
use crate::client_slot::ClientSlot;
use crate::order::{Order, order};

impl Control {
    fn driver_now(&self) -> String {
        let description = &self.settings.driver.description;
        let state = self.shared.device.state();
        let is_away = match state {
            DeviceState::Cycling => self.supervisor.is_away,
            DeviceState::Deep | DeviceState::Parked => self.shared.is_away(),
        };
        if is_away {
            return format!("{description}, not there: cycles by timer");
        }
        match state {
            DeviceState::Cycling => description.clone(),
            DeviceState::Deep => format!("{description}, deep: streams, rendered ahead"),
            DeviceState::Parked if self.shared.is_closed() => {
                format!("{description}, parked: closed until a program plays")
            }
            DeviceState::Parked => format!("{description}, parked: no program needs cycles"),
        }
    }

    /// Returns how long a client takes.
    pub(super) fn timing(&mut self, client: u32) -> Result<ClientTiming, RequestError> {
        self.poll_cycles();
        let slot =
            self.clients.slots.get_mut(&client).ok_or(RequestError::UnknownClient(client))?;
        Ok(slot.measured.timing(now_ns()))
    }

    /// Returns the status of the server and of its first clients.
    pub(super) fn status(&mut self) -> Status {
        // Of a calm server, the last second may not have been read.
        self.poll_cycles();
        let (ports, connections) = self.model.counts();
        let order = order(&self.model, &self.members());
        Status {
            name: self.config.name.clone(),
            version: env!("CARGO_PKG_VERSION").into(),
            process: sys::process::process_id(),
            driver: self.driver_now(),
            sample_rate_hz: self.settings.driver.sample_rate_hz,
            quantum: self.settings.quantum,
            sync: self.config.sync,
            freewheel: self.settings.freewheels,
            realtime_priority: self.config.realtime_priority,
            cycles: self.supervisor.cycles,
            xruns: self.engine().xruns(),
            load: f64::from(self.engine().load_ppm()) / 1e6,
            placement: self.placement(&order),
            clients: self.client_statuses(&order, None),
            ports: (ports, self.config.port_max),
            connections,
        }
    }

    /// Returns the status of the clients with greater ids, as many as one answer holds.
    pub(super) fn clients_after(&mut self, after: u32) -> Vec<ClientStatus> {
        let order = order(&self.model, &self.members());
        self.client_statuses(&order, Some(after))
    }

    fn client_statuses(&mut self, order: &Order, after: Option<u32>) -> Vec<ClientStatus> {
        let is_included =
            |id: u32| after.is_none_or(|after| id > after) && self.clients.slots.contains_key(&id);
        let clients =
            self.model.clients().filter(|client| is_included(client.id)).take(CLIENTS_AT_ONCE);
        let placed: Vec<_> = clients
            .map(|client| (client.id, &client.name, self.place_of(client.id, order)))
            .collect();
        let statuses = placed.into_iter().filter_map(|(id, name, place)| {
            Some(client_status(id, name, place, self.clients.slots.get_mut(&id)?))
        });
        statuses.collect()
    }
}

fn client_status(id: u32, name: &str, place: Option<Place>, slot: &mut ClientSlot) -> ClientStatus {
    let ClientTiming { scheduling, duration } = slot.measured.timing(now_ns());
    let (scheduling, duration) = (scheduling.minute, duration.minute);
    let timing = Timing {
        cycles: u32::try_from(duration.count).unwrap_or(u32::MAX),
        scheduling_median_ns: scheduling.p50_ns,
        scheduling_max_ns: scheduling.max_ns,
        duration_median_ns: duration.p50_ns,
        duration_max_ns: duration.max_ns,
    };
    ClientStatus {
        id,
        name: name.into(),
        process: slot.process.unwrap_or(0),
        active: slot.activation.is_some(),
        bypassed: slot.supervision.is_suspended(),
        bypasses: slot.supervision.suspensions(),
        late_cycles: slot.supervision.late_cycles(),
        cpu: slot.measured.cpu,
        place,
        timing: (duration.count > 0).then_some(timing),
    }
}
