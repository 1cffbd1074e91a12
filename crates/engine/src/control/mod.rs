//! The control thread: owns the model and every client's books, answers requests, publishes plans.
//!
//! One event loop, no lock, no wait on any client. What a request changes is in the registry before it is
//! answered; the plan follows after it, and a cycle is never held up for it.

mod changeover;
mod connections;
mod cycles;
mod idle;
mod internals;
mod keeping;
mod latencies;
mod monitoring;
mod notify;
mod permissions;
mod places;
mod plans;
mod requests;
mod returning;
mod rights;
mod sessions;
mod signal_pages;
mod status;
mod switching;
mod transport;
mod welcome;
mod xruns;

use std::collections::{BTreeMap, HashMap};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::JoinHandle;

use rt::record::CycleRecord;
use rt::shm::RecordCursor;
use rtrb::Consumer;
use sys::clock::now_ns;
use sys::poll::{Event as Ready, Interest, Poller};
use sys::signals::TerminationSignals;
use sys::socket::{Connection, Listener};

use crate::client_slot::{ClientSlot, Slab};
use crate::config::{Config, Hosting};
use crate::cycle_thread::{CycleShared, Retired};
use crate::model::Model;
use crate::opening::{DriverFacts, Gate, Monitoring};
use crate::plan::PlanPool;
use crate::realtime_kit::RealtimeKit;
use crate::registry::Mirror;
use crate::rousers::Rousers;

use changeover::Changeover;
use connections::Connections;
use cycles::Load;
use idle::IdleLimit;
use internals::Internals;
pub use keeping::Keeping;
use latencies::LatencyPass;
pub use places::Ground;
use places::Places;
use returning::Returns;
use switching::Switching;
use xruns::Xruns;

/// Descriptors that every program receives.
#[derive(Debug)]
pub struct SharedMemory {
    /// The engine segment.
    pub engine: OwnedFd,
    /// The registry.
    pub registry: OwnedFd,
    /// The recording; for observers.
    pub recording: OwnedFd,
}

/// Where programs connect.
#[derive(Debug)]
pub struct Doors {
    /// Those of the server's own user.
    pub own: Listener,
    /// Those of the members of a group.
    pub group: Option<GroupDoor>,
}

/// Where the members of a group connect.
#[derive(Debug)]
pub struct GroupDoor {
    /// The socket.
    pub listener: Listener,
    /// The group.
    pub group_id: u32,
}

impl Doors {
    fn listeners(&self) -> impl Iterator<Item = (u64, &Listener)> {
        let group = self.group.as_ref().map(|door| (GROUP_LISTENER, &door.listener));
        [(LISTENER, &self.own)].into_iter().chain(group)
    }

    /// Whether who connected may be a client: what the kernel says of it, at the time when it connected.
    fn admit(&self, socket: &Connection) -> bool {
        let Ok(peer) = socket.peer() else { return false };
        let is_member = |door: &GroupDoor| {
            peer.group_id == door.group_id
                || socket.peer_groups().is_ok_and(|groups| groups.contains(&door.group_id))
        };
        peer.user_id == sys::process::real_user_id() || self.group.as_ref().is_some_and(is_member)
    }
}

/// What the control thread starts with.
pub struct Parts {
    /// How the server was started.
    pub config: Config,
    /// How plug-ins are run.
    pub hosting: Hosting,
    /// Where programs connect.
    pub doors: Doors,
    /// SIGTERM and the like.
    pub signals: TerminationSignals,
    /// Shared with the driver thread.
    pub shared: Arc<CycleShared>,
    /// For programs.
    pub memory: SharedMemory,
    /// The registry.
    pub mirror: Mirror,
    /// The model, with the driver's ports in it.
    pub model: Model,
    /// Slabs of the capture ports.
    pub system_slabs: Vec<Slab>,
    /// From the driver thread.
    pub retired: Consumer<Retired>,
    /// The plans.
    pub pool: PlanPool,
    /// About the driver.
    pub driver: DriverFacts,
    /// Where clients are placed; `None`: the kernel decides.
    pub ground: Option<Ground>,
    /// Tells the driver that a plan in force has an audience for it: the file driver begins then.
    pub on_audience: Gate,
    /// Has the driver's card monitor.
    pub monitoring: Monitoring,
    /// The server before this one, of this name, did not stop in order: its clients may come.
    pub after_crash: bool,
    /// Writes the state down.
    pub keeping: Keeping,
    /// Gives priorities to threads that cannot take them.
    pub kit: Option<RealtimeKit>,
}

/// Something that is answered later.
#[derive(Debug)]
struct Pending {
    connection: u64,
    number: u32,
    /// Answered when the driver runs a plan of this generation.
    generation: u64,
    /// ... and at this date at the latest.
    deadline_ns: u64,
    /// The connection closes with the answer.
    closes: bool,
}

/// The control thread.
pub struct Control {
    parts: Parts,
    poller: Poller,
    connections: Connections,
    /// Room for a packet that is being received.
    packet: Vec<u8>,
    clients: BTreeMap<u32, ClientSlot>,
    /// Which (client, memory) a token of a `Map…` event asks about.
    asked: HashMap<u64, Asked>,
    next_token: u64,
    plans: plans::Plans,
    places: Option<Places>,
    rousers: Rousers,
    latency: Option<LatencyPass>,
    announcements: notify::Announcements,
    session: Option<sessions::SessionPass>,
    internals: Internals,
    /// The graph has changed since the latencies were computed.
    latencies_due: bool,
    quantum: u32,
    /// Cycles follow each other as fast as the graph can.
    freewheels: bool,
    changeover: Option<Changeover>,
    switching: Option<Switching>,
    /// Threads that close drivers.
    closing: Vec<JoinHandle<()>>,
    pending: Vec<Pending>,
    load: Load,
    idle: IdleLimit,
    /// When cycles and threads were looked at by the clock.
    looked_ns: u64,
    /// The driver says that something happened.
    driver_called: bool,
    /// How far the recording was read.
    cursor: RecordCursor,
    /// The newest cycle that was read, whose clients' records follow.
    newest: CycleRecord,
    cycles: u64,
    /// The driver's device is gone.
    is_away: bool,
    /// Why, as far as it was said.
    said_why_away: Option<String>,
    xruns: Xruns,
    stopping: Option<String>,
    had_clients: bool,
    returns: Returns,
}

/// What a client was asked and has not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    /// To map a signal page: of this client, the one of this number.
    Page { client: u32, of: (u32, u32) },
    /// To map a signal page of its own.
    OwnPage { client: u32 },
    /// To map a slab.
    Slab { client: u32, of: (u32, u32) },
    /// To call its latency callback.
    Latency { client: u32, deadline_ns: u64 },
    /// To call its buffer-size callback.
    Quantum { client: u32, frames: u32 },
    /// To call its freewheel callback.
    Freewheel { client: u32 },
}

const LISTENER: u64 = 0;
const WAKER: u64 = 1;
const SIGNALS: u64 = 2;
const GROUP_LISTENER: u64 = 3;
/// Tokens from here on are connections': two for each.
const FIRST_CONNECTION: u64 = 16;

/// The control thread looks at the cycle records at least so often.
const TICK_NS: u64 = 40_000_000;

impl Control {
    /// A control thread that has not run yet.
    ///
    /// # Errors
    /// If the kernel has no descriptor left.
    pub fn new(parts: Parts) -> std::io::Result<Self> {
        let poller = Poller::new()?;
        for (token, listener) in parts.doors.listeners() {
            poller.add(listener, token, Interest::Readable)?;
        }
        poller.add(&parts.shared.waker, WAKER, Interest::Readable)?;
        poller.add(&parts.signals, SIGNALS, Interest::Readable)?;
        let quantum = parts.config.quantum;
        let returns = Returns::expected(parts.after_crash);
        let places = parts.ground.clone().map(Places::new);
        let cursor = RecordCursor::oldest(&parts.shared.recording);
        let xruns = Xruns::new(parts.config.trace_switches);
        // An answer that was on its way to a server before this one is no answer here.
        let next_token = parts.shared.engine.instance();
        Ok(Self {
            parts,
            poller,
            connections: Connections::default(),
            packet: Vec::new(),
            clients: BTreeMap::new(),
            asked: HashMap::new(),
            next_token,
            plans: plans::Plans::default(),
            places,
            rousers: Rousers::default(),
            latency: None,
            announcements: notify::Announcements::default(),
            session: None,
            internals: Internals::default(),
            latencies_due: true,
            quantum,
            freewheels: false,
            changeover: None,
            switching: None,
            closing: Vec::new(),
            pending: Vec::new(),
            load: Load::default(),
            idle: IdleLimit::default(),
            looked_ns: 0,
            driver_called: false,
            cursor,
            newest: CycleRecord::default(),
            cycles: 0,
            is_away: false,
            said_why_away: None,
            xruns,
            stopping: None,
            had_clients: false,
            returns,
        })
    }

    /// Serves until the server is told to stop or its driver ends; gives the reason.
    ///
    /// # Errors
    /// If the kernel refuses to poll.
    pub fn run(&mut self) -> std::io::Result<String> {
        self.carry_changes();
        self.reconnect();
        let mut events = Vec::new();
        while self.stopping.is_none() {
            // First what follows from the events: who asked waits for the CPU that the looks take.
            self.settle();
            if self.look(events.is_empty()) {
                self.settle();
            }
            let deadline_ns = self.next_look_ns();
            self.poller.wait(&mut events, Some(deadline_ns))?;
            events.iter().for_each(|event| self.handle(event));
        }
        let reason = self.stopping.take().unwrap_or_default();
        self.finish_switch();
        self.finish_hosts();
        self.say_goodbye(&reason);
        self.keep_last_state();
        Ok(reason)
    }

    fn handle(&mut self, event: &Ready) {
        match event.token {
            LISTENER | GROUP_LISTENER => self.accept_all(event.token),
            WAKER => {
                self.parts.shared.waker.reset();
                self.driver_called = true;
            }
            SIGNALS => {
                if let Ok(Some(signal)) = self.parts.signals.read() {
                    self.stopping = Some(format!("signal {signal:?}"));
                }
            }
            token if token & internals::HOSTS != 0 => self.handle_host(token),
            _ => self.handle_connection(event),
        }
    }

    /// Does what follows from events, and what is due by the clock.
    fn settle(&mut self) {
        self.notice_adoption();
        self.step_switch();
        self.step_changeover();
        self.announce();
        self.end_session_if_due();
        self.look_at_hosts();
        self.step_latencies();
        self.publish_plan();
        self.answer_pending();
        self.close_silent_connections();
        self.welcome_newcomers();
        self.resume_listening();
        self.flush_outboxes();
        self.keep_state();
        if self.parts.config.temporary && self.had_clients && self.is_deserted() {
            self.stopping = Some("the last client has left".into());
        }
    }

    /// Looks at what cycles and threads did, when the driver calls and by the clock; later if somebody has just asked
    /// something, and may ask more. Whether it was time for it.
    fn look(&mut self, nobody_asks: bool) -> bool {
        let now_ns = now_ns();
        let patience_ns = if nobody_asks { TICK_NS } else { 2 * TICK_NS };
        let ticks = now_ns >= self.looked_ns + patience_ns;
        let called = std::mem::take(&mut self.driver_called);
        let due = called || ticks || self.xruns.due_ns().is_some_and(|due_ns| due_ns <= now_ns);
        if due {
            self.look_at_cycles();
            self.give_verdicts();
        }
        self.let_in_again();
        if ticks {
            self.looked_ns = now_ns;
            self.watch_threads();
            self.look_at_places();
            self.ask_for_priorities(now_ns);
        }
        due
    }

    fn next_look_ns(&self) -> u64 {
        let tick_ns = self.looked_ns + TICK_NS;
        [self.plans.due_ns(), self.xruns.due_ns(), self.next_return_ns()]
            .into_iter()
            .flatten()
            .fold(tick_ns, u64::min)
    }

    fn token(&mut self, asked: Asked) -> u64 {
        self.next_token += 1;
        self.asked.insert(self.next_token, asked);
        self.next_token
    }

    fn engine(&self) -> &rt::shm::EngineSegment {
        &self.parts.shared.engine
    }
}
