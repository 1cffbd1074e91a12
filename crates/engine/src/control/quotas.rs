//! What one program may have of what all share: asked before anything is granted, and counted
//! afresh each time.

use proto::request::RequestError;
use rt::shm::CycleInfo;
use sys::process::PidFd;

use super::Control;
use super::clients::Clients;
use super::peers::Peers;
use crate::client_slot::ClientSlot;
use crate::config::Config;
use crate::driver_budget::{self, DriverWork, WorkOfPrograms};
use crate::model::{Limits, Model};
use crate::programs::{ProgramId, Programs};
use crate::quota::{Excess, Quota, Usage};
use crate::realtime_limits::Locking;

/// How the server's limits are shared.
#[derive(Debug)]
pub(super) struct Quotas {
    clients: Quota,
    ports: Quota,
    connections: Quota,
    descriptors: Quota,
    mappings: Quota,
    /// Mappings that a slab becomes.
    slab_mappings: u64,
}

/// Descriptors that the server holds for a client besides its socket: the socket for events, its
/// process, its thread's counters, its pages and what pins these.
const CLIENT_DESCRIPTORS: u64 = 8;
/// The memory of a slab, and what pins it.
const SLAB_DESCRIPTORS: u64 = 2;
/// A client's pages, with the signal page that is replaced.
const CLIENT_MAPPINGS: u64 = 5;
/// Each slot that is locked, and what lies between them.
const LOCKED_SLAB_MAPPINGS: u64 = 1 + 2 * rt::shm::SLOTS_PER_SLAB as u64;
/// The part of most things that one program may have.
const PART: u64 = 4;

/// Something that is shared.
#[derive(Debug, Clone, Copy)]
struct Shared {
    quota: Quota,
    what: &'static str,
    /// How to have less of it, or a larger limit.
    advice: &'static str,
}

impl Quotas {
    /// Shares the limits of the server's graph, and what this process may have of the kernel.
    pub(super) fn new(config: &Config, locking: Locking) -> Self {
        let Limits { clients, ports, connections } = config.limits();
        let part = |in_all: u64, piece: u64| Quota::new(in_all, in_all / PART, piece);
        let of_program = config.ports_of_program();
        let slab_mappings = if locking == Locking::Segments { LOCKED_SLAB_MAPPINGS } else { 1 };
        let descriptors = sys::process::file_limit().unwrap_or(u64::MAX);
        Self {
            clients: part(clients.into(), 1),
            ports: Quota::new(ports.into(), of_program.into(), 1),
            connections: part(connections.into(), 1),
            descriptors: part(descriptors, 1 + CLIENT_DESCRIPTORS),
            mappings: part(sys::memory::mapping_limit(), CLIENT_MAPPINGS),
            slab_mappings,
        }
    }

    fn descriptors(&self) -> Shared {
        Shared {
            quota: self.descriptors,
            what: "descriptor",
            advice: "the server holds them for connections, clients and slabs: close some, or \
                     start the server with a higher limit (ulimit -Hn)",
        }
    }

    fn mappings(&self) -> Shared {
        Shared {
            quota: self.mappings,
            what: "mapping",
            advice: "the server makes them for clients and slabs: close some, or raise \
                     vm.max_map_count",
        }
    }
}

const MORE_PORTS: &str = "close some of its clients, or start the server with a larger --port-max";

fn check(shared: Shared, used: Usage, more: u64) -> Result<(), RequestError> {
    let Shared { quota, what, advice } = shared;
    let (what, limit) = match quota.check(used, more) {
        Ok(()) => return Ok(()),
        Err(Excess::OfProgram { limit }) => (format!("{what} of one program"), limit),
        Err(Excess::InAll { limit }) => (what.into(), limit),
        Err(Excess::Reserved { modest }) => {
            (format!("{what} of a program that has more than a few"), modest)
        }
    };
    let limit = u32::try_from(limit).unwrap_or(u32::MAX);
    Err(RequestError::Full { what, limit, advice: advice.into() })
}

/// The clients, with their programs.
fn with_programs<'a>(clients: &'a Clients, peers: &Peers) -> Vec<(ProgramId, &'a ClientSlot)> {
    let slots = clients.slots.values();
    slots.filter_map(|slot| Some((peers.program(slot.peer)?, slot))).collect()
}

fn sum(
    program: ProgramId,
    clients: &[(ProgramId, &ClientSlot)],
    of_client: impl Fn(&ClientSlot) -> u64,
) -> Usage {
    let mut used = Usage::default();
    for (owner, slot) in clients {
        let amount = of_client(slot);
        used.in_all += amount;
        used.of_program += if *owner == program { amount } else { 0 };
    }
    used
}

fn descriptors(
    program: ProgramId,
    programs: &Programs<PidFd>,
    clients: &[(ProgramId, &ClientSlot)],
) -> Usage {
    let slabs = |slot: &ClientSlot| slot.memory.slabs.len() as u64;
    let used = sum(program, clients, |slot| CLIENT_DESCRIPTORS + SLAB_DESCRIPTORS * slabs(slot));
    // Each program has a handle to its process.
    Usage {
        of_program: used.of_program + programs.peers(program) + 1,
        in_all: used.in_all + programs.peers_in_all() + programs.count(),
    }
}

/// The connections that join a port of a program with another port.
fn connections(model: &Model, owns: impl Fn(u32) -> bool) -> u64 {
    let own = model.clients().filter(|client| owns(client.id));
    let ports = own.flat_map(|client| model.ports_of(client.id));
    let counts = ports.map(|port| {
        // A connection within the program is counted at its output.
        let is_counted = |other: u32| {
            port.is_output() || !model.port(other).is_some_and(|other| owns(other.owner))
        };
        port.links.iter().filter(|link| is_counted(link.other)).count() as u64
    });
    counts.sum()
}

impl Control {
    fn program_of_client(&self, client: u32) -> Option<ProgramId> {
        let peer = self.clients.slots.get(&client).map(|slot| slot.peer);
        self.peers.program(peer.or_else(|| self.streams.peer_of_client(client))?)
    }

    fn check_memory_of(
        &self,
        program: ProgramId,
        more_descriptors: u64,
        more_mappings: u64,
    ) -> Result<(), RequestError> {
        let clients = with_programs(&self.clients, &self.peers);
        let streams = self.stream_slabs(program);
        let mut used = descriptors(program, &self.peers.programs, &clients);
        used.of_program += SLAB_DESCRIPTORS * streams.of_program;
        used.in_all += SLAB_DESCRIPTORS * streams.in_all;
        check(self.quotas.descriptors(), used, more_descriptors)?;
        let slab_mappings = self.quotas.slab_mappings;
        let mut used = sum(program, &clients, |slot| {
            CLIENT_MAPPINGS + slab_mappings * slot.memory.slabs.len() as u64
        });
        used.of_program += slab_mappings * streams.of_program;
        used.in_all += slab_mappings * streams.in_all;
        check(self.quotas.mappings(), used, more_mappings)
    }

    /// The slabs by which clients hear streams.
    fn stream_slabs(&self, program: ProgramId) -> Usage {
        let owners = self.clients.stream_slabs.keys().map(|(client, _)| *client);
        let own = owners.filter(|client| self.program_of_client(*client) == Some(program));
        let of_program = own.count() as u64;
        Usage { of_program, in_all: self.clients.stream_slabs.len() as u64 }
    }

    /// Checks whether the program of a peer may have that connection to the server.
    pub(super) fn check_peer(&self, peer: u64) -> Result<(), RequestError> {
        let Some(program) = self.peers.program(peer) else { return Ok(()) };
        self.check_memory_of(program, 0, 0)
    }

    /// Checks whether the program of a peer may have another client.
    pub(super) fn check_new_client(&self, peer: u64) -> Result<(), RequestError> {
        let Some(program) = self.peers.program(peer) else { return Ok(()) };
        self.check_client_of(program)?;
        self.check_memory_of(program, CLIENT_DESCRIPTORS, CLIENT_MAPPINGS)
    }

    fn check_client_of(&self, program: ProgramId) -> Result<(), RequestError> {
        let clients = self.model.clients().filter_map(|client| self.program_of_client(client.id));
        let mut used = Usage::default();
        for owner in clients {
            used.in_all += 1;
            used.of_program += u64::from(owner == program);
        }
        check(Shared { quota: self.quotas.clients, what: "client", advice: MORE_PORTS }, used, 1)
    }

    /// Checks whether the program of a peer may have a stream with this number of ports, and a
    /// client for it if it has none.
    pub(super) fn check_stream_ports(
        &self,
        peer: u64,
        needs_client: bool,
        ports: usize,
    ) -> Result<(), RequestError> {
        let Some(program) = self.peers.program(peer) else { return Ok(()) };
        if needs_client {
            self.check_client_of(program)?;
        }
        self.check_ports_of(program, ports as u64)
    }

    /// Checks whether the program of a client may have another port.
    pub(super) fn check_program_ports(&self, client: u32) -> Result<(), RequestError> {
        let Some(program) = self.program_of_client(client) else { return Ok(()) };
        self.check_ports_of(program, 1)
    }

    fn check_ports_of(&self, program: ProgramId, more: u64) -> Result<(), RequestError> {
        let is_own = |client: u32| self.program_of_client(client) == Some(program);
        let own = self.model.clients().filter(|client| is_own(client.id));
        let of_program = own.map(|client| client.ports.len() as u64).sum();
        let used = Usage { of_program, in_all: self.model.counts().0.into() };
        check(Shared { quota: self.quotas.ports, what: "port", advice: MORE_PORTS }, used, more)
    }

    /// Checks whether the program of a client may have another slab.
    pub(super) fn check_program_slabs(&self, client: u32) -> Result<(), RequestError> {
        let Some(program) = self.program_of_client(client) else { return Ok(()) };
        self.check_memory_of(program, SLAB_DESCRIPTORS, self.quotas.slab_mappings)
    }

    /// Checks whether the programs of two ports may have another connection, and the driver the
    /// work that comes with it.
    pub(super) fn check_program_connections(
        &self,
        source: &str,
        destination: &str,
    ) -> Result<(), RequestError> {
        let (source, destination) = (self.model.find(source)?, self.model.find(destination)?);
        let (writer, reader) = (source.owner, destination.owner);
        let programs = [writer, reader].map(|client| self.program_of_client(client));
        let distinct = if programs[0] == programs[1] { &programs[..1] } else { &programs };
        for program in distinct.iter().flatten() {
            let is_own = |client: u32| self.program_of_client(client) == Some(*program);
            let used = Usage {
                of_program: connections(&self.model, is_own),
                in_all: self.model.counts().1.into(),
            };
            let shared =
                Shared { quota: self.quotas.connections, what: "connection", advice: MORE_PORTS };
            check(shared, used, 1)?;
        }
        let more = driver_budget::work_of_connection(&self.model, writer, reader);
        self.check_driver_work(&source.name, programs[0], more)?;
        let more = driver_budget::work_of_recording(&self.model, reader);
        self.check_driver_work(&destination.name, programs[1], more)
    }

    /// Checks whether the driver has time for a client that becomes active.
    pub(super) fn check_seat(&self, client: u32) -> Result<(), RequestError> {
        let name = self.model.client(client).map_or("", |client| &client.name);
        let seat = DriverWork { seats: 1, ..DriverWork::default() };
        self.check_driver_work(name, self.program_of_client(client), seat)
    }

    /// Checks whether the driver has time for `more` work for a program, on behalf of `name`.
    fn check_driver_work(
        &self,
        name: &str,
        program: Option<ProgramId>,
        more: DriverWork,
    ) -> Result<(), RequestError> {
        // MUTATION: check_driver_work.any_amount
        if more == DriverWork::default() {
            return Ok(());
        }
        let quantum = self.settings.quantum;
        let work = self.work_of_programs();
        let used = usage_of(&work, program, quantum);
        let excess = driver_budget::quota(self.period_ns(quantum)).check(used, more.ns(quantum));
        excess.map_err(|excess| {
            let whose = match excess {
                Excess::OfProgram { .. } => "its program has all that one program may have",
                Excess::Reserved { .. } => "what is left is for programs that have little of it",
                Excess::InAll { .. } => "all of it is in use",
            };
            RequestError::NotAllowed(format!(
                "the driver has no time for '{name}' in cycles of {quantum} frames, because \
                 {whose}: disconnect or close other ports and clients, or choose a larger buffer"
            ))
        })
    }

    /// Checks whether the driver has time for all programs in cycles of `quantum` frames, if these
    /// are shorter than those that run.
    pub(super) fn check_shorter_cycles(&self, quantum: u32) -> Result<(), RequestError> {
        if quantum >= self.settings.quantum {
            return Ok(());
        }
        let work = self.work_of_programs();
        let quota = driver_budget::quota(self.period_ns(quantum));
        for program in work.keys() {
            let whose = match quota.check(usage_of(&work, *program, quantum), 0) {
                Ok(()) | Err(Excess::Reserved { .. }) => continue,
                Err(Excess::InAll { .. }) => "of all clients together".into(),
                Err(Excess::OfProgram { .. }) => self.name_program(*program),
            };
            return Err(RequestError::NotAllowed(format!(
                "the driver has no time for the connections {whose} in cycles of {quantum} frames: \
                 disconnect or close some, or choose a larger buffer"
            )));
        }
        Ok(())
    }

    fn name_program(&self, program: Option<ProgramId>) -> String {
        let is_its = |client: &u32| self.program_of_client(*client) == program;
        let client = self.clients.slots.keys().copied().find(is_its);
        let name = client.and_then(|client| self.model.client(client)).map(|client| &client.name);
        name.map_or_else(|| "between devices".into(), |name| format!("of the program of '{name}'"))
    }

    fn work_of_programs(&self) -> WorkOfPrograms<ProgramId> {
        let runs = |client: u32| self.clients.slots.get(&client).is_some_and(ClientSlot::is_active);
        driver_budget::work_of_programs(&self.model, |client| self.program_of_client(client), runs)
    }

    fn period_ns(&self, quantum: u32) -> u64 {
        CycleInfo::nominal_period_ns(quantum, self.settings.driver.sample_rate_hz) as u64
    }
}

fn usage_of(work: &WorkOfPrograms<ProgramId>, program: Option<ProgramId>, quantum: u32) -> Usage {
    let in_all = work.values().copied().fold(DriverWork::default(), DriverWork::and);
    let of_program = work.get(&program).copied().unwrap_or_default();
    Usage { of_program: of_program.ns(quantum), in_all: in_all.ns(quantum) }
}
