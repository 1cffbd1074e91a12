//! The control thread: an event loop over the owners of the server's state.
//!
//! It answers requests, publishes plans and supervises the cycles; it takes no lock and waits for
//! no client. What a request changes is in the registry before the request is answered; the plan
//! follows, and no cycle waits for it.
//!
//! | owner | its state |
//! |---|---|
//! | [`Model`] | the graph: clients, ports, connections, devices |
//! | [`Mirror`] | the shared registry, which is the model as programs see it |
//! | [`Peers`] | sockets, what each peer is and may do, the answers it waits for |
//! | [`Quotas`] | what one program may have of what all share |
//! | [`Turns`] | what each program has had of this thread's time |
//! | [`Clients`] | the memory shared with each client, and what clients have mapped |
//! | [`PlanPublisher`] | plans: needed, published, in force, running; where clients are placed |
//! | [`Notifications`] | what clients are to be notified of, in order |
//! | [`Latencies`] | the latency pass |
//! | [`CycleSettings`] | the driver, the quantum and freewheel, and the change to others |
//! | [`Supervisor`] | what was read of the cycles: load, xruns, whether the device is there |
//! | [`Persistence`] | the state file, and the clients of a server before this one |
//! | [`Streams`] | which program has which stream, its memory, and what the driver thread has of it |
//! | [`Services`] | plug-in processes, RealtimeKit, hardware monitoring, idle limit, sessions |
//!
//! An owner sees of the others only what it is passed. The methods of [`Control`] are the glue:
//! they pass it, and carry out the results.

mod batch;
mod changes;
mod clients;
mod handshake;
mod latencies;
mod listeners;
mod notifications;
mod pace;
mod packets;
mod peer_facts;
mod peers;
mod permissions;
mod persistence;
mod placement;
mod plans;
mod publisher;
mod questions;
mod quotas;
mod requests;
mod returning;
mod services;
mod setup;
mod status;
mod streams;
mod supervision;
mod ticket;
mod transition;
mod transport;
mod unsent;

use std::sync::Arc;

use round_robin::RoundRobin;
use sys::clock::now_ns;
use sys::lock::Serving;
use sys::machine_sleep::MachineSleep;
use sys::poll::{Event as Ready, Poller};
use sys::signals::TerminationSignals;

use crate::config::Config;
use crate::cycle_thread::CycleShared;
use crate::model::Model;
use crate::platform::Platform;
use crate::programs::ProgramId;
use crate::registry::Mirror;

use clients::Clients;
use latencies::Latencies;
pub use listeners::{GroupListener, Listeners};
use notifications::Notifications;
use pace::{Situation, TICK_NS};
use peers::Peers;
pub use peers::SharedMemory;
use persistence::Persistence;
pub use persistence::StatePersistence;
pub use placement::PlacementConfig;
use publisher::PlanPublisher;
use quotas::Quotas;
use services::Services;
pub use setup::Setup;
use streams::Streams;
pub use streams::stream_rings;
use supervision::Supervisor;
use transition::CycleSettings;

/// The control thread: an event loop over the owners of the server's state.
pub struct Control {
    config: Config,
    platform: Platform,
    poller: Poller,
    signals: TerminationSignals,
    /// `None`: the kernel had no descriptor left.
    sleep: Option<MachineSleep>,
    shared: Arc<CycleShared>,
    model: Model,
    registry: Mirror,
    peers: Peers,
    quotas: Quotas,
    /// How much of this round each program has had.
    round_robin: RoundRobin<ProgramId>,
    /// Buffer for a packet that is being received.
    packet: Vec<u8>,
    clients: Clients,
    publisher: PlanPublisher,
    notifications: Notifications,
    latencies: Latencies,
    settings: CycleSettings,
    supervisor: Supervisor,
    persistence: Persistence,
    services: Services,
    streams: Streams,
    /// When cycles and threads were last checked because their time had come.
    polled_ns: u64,
    /// The driver thread has called.
    driver_called: bool,
    /// When the last event came, `CLOCK_MONOTONIC` ns.
    last_event_ns: u64,
    /// Why the server stops.
    stopping: Option<String>,
}

const LISTENER: u64 = 0;
const WAKER: u64 = 1;
const SIGNALS: u64 = 2;
const GROUP_LISTENER: u64 = 3;
const SLEEP: u64 = 4;
/// Tokens from here on belong to peers.
const FIRST_PEER: u64 = 16;

impl Control {
    /// Raises the calling thread, which is to [run](Self::run) this, above ordinary ones: programs
    /// wait for its answers.
    pub fn favour_this_thread(&self) {
        if !sys::thread::favour() {
            self.platform.priorities.favour(sys::thread::thread_id());
        }
    }

    /// Serves until the server is asked to stop or its driver ends; returns the reason. `serving`:
    /// others see by it that a server runs.
    ///
    /// # Errors
    /// If the kernel refuses to poll.
    pub fn run(&mut self, serving: Serving<'_>) -> std::io::Result<String> {
        self.carry_changes();
        self.reconnect();
        let mut events = Vec::new();
        while self.stopping.is_none() {
            // What follows from the events comes first: programs wait for their answers, and polls
            // take CPU time.
            self.settle();
            if self.poll(events.is_empty()) {
                self.settle();
            }
            let populating_ns = self.populate_rings();
            let deadline_ns = self.next_poll_ns().into_iter().chain(populating_ns).min();
            self.poller.wait(&mut events, deadline_ns)?;
            if !events.is_empty() {
                self.last_event_ns = now_ns();
            }
            self.round_robin.begin_round(&mut events);
            events.iter().for_each(|event| self.handle(event));
        }
        let reason = self.stopping.take().unwrap_or_default();
        // First: a program that looks for a server only where one runs must not find this one again
        // when it hears of the end.
        drop(serving);
        self.close_drivers();
        self.services.plug_ins.finish();
        self.announce_end(&reason);
        let (quantum, engine) = (self.settings.quantum, &self.shared.engine);
        let known = (&self.model, &self.streams.kept_volumes);
        self.persistence.state.finish(known, quantum, engine);
        Ok(reason)
    }

    fn handle(&mut self, event: &Ready) {
        match event.token {
            LISTENER | GROUP_LISTENER => {
                self.peers.accept(event.token, &self.poller, &self.config.policy, now_ns())
            }
            WAKER => {
                self.shared.waker.reset();
                self.driver_called = true;
            }
            SIGNALS => {
                if let Ok(Some(signal)) = self.signals.read() {
                    self.stopping = Some(format!("signal {signal:?}"));
                }
            }
            SLEEP => self.notice_sleep(),
            token if token & services::HOSTS != 0 => self.handle_host(token),
            _ => self.handle_peer(event),
        }
    }

    /// Does what follows from events and timeouts. Each step may rely on those before it:
    ///
    /// 1. The driver thread's plans are taken back: which plan runs decides most of what follows.
    ///    So are streams that have ended.
    /// 2. The change of driver, quantum or freewheel goes on. It may need a plan, so it comes
    ///    before the plan is built.
    /// 3. Clients are notified of the connections that the running plan carries, before they are
    ///    asked what latency these make.
    /// 4. Sessions and plug-ins' processes, which depend on nothing else here.
    /// 5. The latency pass; changes of the graph are in the next one.
    /// 6. The plan, after everything that may need one.
    /// 7. Requests that wait for a plan are answered after it is built: withdrawing the plan before
    ///    may have found that it is in force.
    /// 8. Packets that the kernel refused are tried again, peers that said nothing are closed, and
    ///    new clients admitted, after the answers to those that are there. A plan that they need is
    ///    not due before the next round anyway.
    /// 9. Programs that wait for a change are answered, and events are sent, after every step that
    ///    may have made some.
    /// 10. The state file, after every step that may have changed the model.
    fn settle(&mut self) {
        self.notice_adoption();
        self.step_streams();
        self.step_transition();
        self.announce();
        self.answer_session_if_due();
        self.poll_hosts();
        self.step_latencies();
        self.publish_plan();
        self.answer_pending();
        self.retry_unsent();
        self.close_silent_peers();
        self.admit_waiting_clients();
        self.peers.resume_listening(&self.poller, now_ns());
        self.answer_watches();
        self.flush_outboxes();
        let (quantum, engine) = (self.settings.quantum, &self.shared.engine);
        let known = (&mut self.model, &mut self.streams.kept_volumes);
        self.persistence.state.step(known, quantum, engine, now_ns());
        let is_idle = self.is_idle() && self.streams.is_empty();
        if self.config.temporary && self.clients.had_clients && is_idle {
            self.stopping = Some("the last client has left".into());
        }
    }

    /// Polls what cycles and threads did: when the driver calls, and each
    /// [`tick_ns`](Self::tick_ns), or half as often while programs send requests. Returns true if
    /// it was time for it.
    fn poll(&mut self, is_quiet: bool) -> bool {
        let now_ns = now_ns();
        let tick_ns = self.tick_ns().unwrap_or(TICK_NS);
        let tick_ns = if is_quiet { tick_ns } else { 2 * tick_ns };
        let ticks = now_ns >= self.polled_ns + tick_ns;
        let called = std::mem::take(&mut self.driver_called);
        let has_verdict = self.supervisor.xruns.due_ns().is_some_and(|due_ns| due_ns <= now_ns);
        let is_due = called || ticks || has_verdict;
        if is_due {
            self.poll_cycles();
            self.diagnose_xruns();
        }
        self.check_suspended();
        if ticks {
            self.polled_ns = now_ns;
            self.peers.disposal.step(now_ns);
            self.probe_threads();
            self.review_placement(now_ns);
            self.ask_for_priorities(now_ns);
            if self.clients.have_overdue_pages(now_ns) {
                self.publisher.need(now_ns);
            }
        }
        is_due
    }

    /// When something is due that no event reports; `None`: nothing is.
    fn next_poll_ns(&self) -> Option<u64> {
        let tick_ns = self.tick_ns().map(|tick_ns| self.polled_ns + tick_ns);
        let pause_ns = self.settings.pause_until_ns();
        let call_ns = self.next_call_ns();
        let unsent_ns = self.unsent_due_ns();
        let due_ns =
            [tick_ns, self.publisher.due_ns(), self.next_check_ns(), pause_ns, call_ns, unsent_ns];
        due_ns.into_iter().flatten().min()
    }

    /// How long after a poll the next one is due; `None`: only an event can change something.
    fn tick_ns(&self) -> Option<u64> {
        pace::tick_ns(&Situation {
            since_event_ns: now_ns().saturating_sub(self.last_event_ns),
            saves_session: self.services.sessions.is_saving(),
            is_away: self.supervisor.is_away,
            is_parked: self.engine().is_parked(),
            period_ns: self.settings.period_ns(),
            // The cycle's own.
            records: self.clients.slots.len() as u64 + 1,
        })
    }

    fn engine(&self) -> &rt::shm::EngineSegment {
        &self.shared.engine
    }
}
