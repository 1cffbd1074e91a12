//! Services outside of the graph: plug-in processes, RealtimeKit, hardware monitoring, the kernel's
//! idle limit, and sessions.

mod idle_limit;
mod plug_ins;
mod priorities;
mod sessions;

use std::collections::BTreeSet;

use proto::request::{Reply, RequestError};
use proto::session::SessionRequest;
use rt::sync::Ordering;
use sys::clock::now_ns;

use super::Control;
use super::permissions::ROOT;
use super::requests::Outcome;
use super::ticket::Ticket;
use crate::client_slot::ClientSlot;
use crate::opening::HardwareMonitor;
use crate::priority_broker::BrokeredPriorities;

use idle_limit::IdleLimit;
pub(super) use plug_ins::{HOSTS, InternalOutcome};
use plug_ins::{HostCommand, PlugInHosts};
use priorities::RealtimeThread;
pub(super) use sessions::SaveRequest;
use sessions::{Sessions, has_callback};

/// The services outside of the graph.
pub(super) struct Services {
    pub(super) plug_ins: PlugInHosts,
    /// Gives priorities to threads that cannot take them.
    kit: Option<BrokeredPriorities>,
    /// Tells the driver's card which inputs to monitor.
    pub(super) hardware_monitor: HardwareMonitor,
    idle_limit: IdleLimit,
    pub(super) sessions: Sessions,
}

impl Services {
    /// Starts without plug-ins and sessions.
    pub(super) fn new(kit: Option<BrokeredPriorities>, hardware_monitor: HardwareMonitor) -> Self {
        Self {
            plug_ins: PlugInHosts::default(),
            kit,
            hardware_monitor,
            idle_limit: IdleLimit::default(),
            sessions: Sessions::default(),
        }
    }
}

impl Control {
    /// Starts a process for a plug-in, or tells one to finish.
    pub(super) fn do_internal(&mut self, ticket: Ticket, outcome: InternalOutcome) {
        let launcher = &*self.platform.plugins;
        let command = HostCommand { launcher, server_name: &self.config.name };
        let plug_ins = &mut self.services.plug_ins;
        let reply = match outcome {
            InternalOutcome::Now(reply) => Some((ticket, reply)),
            InternalOutcome::Load(plug_in) => {
                plug_ins.load(ticket, plug_in, command, &self.poller, now_ns())
            }
            InternalOutcome::Unload(handle) => {
                plug_ins.unload(ticket, handle, now_ns());
                None
            }
        };
        reply.into_iter().for_each(|(ticket, reply)| self.reply(ticket, reply));
    }

    /// Receives what the process of a plug-in reports.
    pub(super) fn handle_host(&mut self, token: u64) {
        let reply = self.services.plug_ins.handle(token, &self.poller, now_ns());
        reply.into_iter().for_each(|(ticket, reply)| self.reply(ticket, reply));
    }

    /// Ends plug-ins' processes whose time is over, and answers for those that have ended.
    pub(super) fn poll_hosts(&mut self) {
        let slots = &self.clients.slots;
        let has_client = |process| slots.values().any(|slot| slot.process == Some(process));
        let replies = self.services.plug_ins.poll(has_client, &self.poller, now_ns());
        replies.into_iter().for_each(|(ticket, reply)| self.reply(ticket, reply));
    }

    /// Returns whether no client is left but plug-ins.
    pub(super) fn is_idle(&self) -> bool {
        let plug_ins = &self.services.plug_ins;
        self.clients.slots.values().all(|slot| plug_ins.has(slot.process))
    }

    pub(super) fn answer_session(
        &mut self,
        request: SessionRequest,
    ) -> Result<Outcome, RequestError> {
        match request {
            SessionRequest::Reserve { name, uuid } => {
                self.model.reserve_name(&name, uuid)?;
                Ok(Outcome::Now(Reply::Done))
            }
            SessionRequest::HasCallback { name } => {
                let has_callback = has_callback(&self.clients, self.client_named(&name)?);
                Ok(Outcome::Now(Reply::Count(u32::from(has_callback))))
            }
            SessionRequest::Notify { target, kind, path } => {
                self.services.sessions.check(&path)?;
                if let Some(name) = &target {
                    self.client_named(name)?;
                }
                Ok(Outcome::Session(SaveRequest { target, kind, path }))
            }
        }
    }

    fn client_named(&self, name: &str) -> Result<u32, RequestError> {
        let found = self.model.clients().find(|client| client.name == name);
        let unknown = || RequestError::NotAllowed(format!("there is no client '{name}'"));
        found.map(|client| client.id).ok_or_else(unknown)
    }

    /// Asks the clients of the asking user: another user's programs would write with rights that
    /// it lacks, into a directory that it names. Root may ask all.
    pub(super) fn ask_session(&mut self, ticket: Ticket, request: SaveRequest) {
        let asking = self.peers.user(ticket.peer);
        let is_of_asking = |slot: &ClientSlot| {
            // MUTATION: ask_session.programs_of_other_users
            asking == Some(ROOT) || self.peers.user(slot.peer) == asking
        };
        let slots = self.clients.slots.iter();
        let may_save: BTreeSet<u32> =
            slots.filter(|(_, slot)| is_of_asking(slot)).map(|(client, _)| *client).collect();
        let asked = (&self.model, &mut self.clients);
        match self.services.sessions.ask(ticket, request, asked, &may_save, now_ns()) {
            Ok(()) => self.answer_session_if_due(),
            Err((ticket, error)) => self.refuse(ticket, error),
        }
    }

    /// Answers a session manager whose clients have saved.
    pub(super) fn answer_session_if_due(&mut self) {
        let reply = self.services.sessions.take_due(now_ns());
        reply.into_iter().for_each(|(ticket, reply)| self.reply(ticket, reply));
    }

    /// Tells the driver's card which of its inputs programs want to hear at its outputs. Does not
    /// wait for it.
    pub(super) fn update_hardware_monitoring(&self) {
        if let Some(tell) = &self.services.hardware_monitor
            && let Some(driver) = self.model.driver()
        {
            tell(self.model.monitored_inputs(driver));
        }
    }

    /// Limits how deeply CPUs sleep while real-time clients run.
    pub(super) fn limit_idle(&mut self, any_runs: bool) {
        let driver = &self.settings.driver;
        let is_realtime = self.config.realtime_priority.is_some()
            && !driver.when_done
            && !self.settings.freewheels;
        let cycles = (self.settings.quantum, driver.sample_rate_hz);
        self.services.idle_limit.set((is_realtime && any_runs).then_some(cycles));
    }

    /// Asks for the real-time priorities of threads that have none.
    pub(super) fn ask_for_priorities(&mut self, now_ns: u64) {
        let Some(priority) = self.config.realtime_priority else { return };
        if self.settings.driver.when_done || self.settings.freewheels {
            return;
        }
        let Some(kit) = &mut self.services.kit else { return };
        // Relaxed: a number, which says nothing about other memory.
        let thread = self.shared.driver_thread.load(Ordering::Relaxed);
        let driver = RealtimeThread { process: sys::process::process_id(), thread, priority };
        let slots = self.clients.slots.values();
        let clients = slots.filter(|slot| !slot.supervision.is_suspended()).filter_map(|slot| {
            // Checked to be the program's own: this thread can be demoted.
            let thread = slot.activation.and_then(|_| slot.threads.process_thread())?.id();
            let priority = self.shared.engine.client_priority()?;
            Some(RealtimeThread { process: slot.process?, thread, priority })
        });
        priorities::ask(kit, [driver].into_iter().chain(clients), now_ns);
    }
}
