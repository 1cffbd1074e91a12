//! The event loop of `consort pulse`: sockets, the server's streams, and time. What it does not
//! decide itself is asked of the [`front_end`](crate::front_end), on the same thread.

mod accounts;
mod arrivals;
mod card;
mod keeper;
mod kept_memory;
mod line_limit;
mod link;
mod link_processes;
mod link_words;
mod listener;
mod machine;
mod message_ring;
mod mixers;
mod module_listeners;
mod network;
mod record_ring;
mod retry;
mod ring;
mod rings;
mod server;
mod server_events;
mod socket;
mod spare_memory;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use accounts::Accounts;
pub(crate) use keeper::Keeper;
use link::{Link, State};
use link_processes::LinkNews;
pub(crate) use listener::default_path;
pub use listener::{Listener, arguments_of_front_end, front_end_at};
pub(crate) use network::{NetworkListener, address};
use retry::Retry;
use round_robin::RoundRobin;
pub(crate) use server::ServerDevices;
use sys::clock::now_ns;
use sys::disposal::Disposal;
use sys::memory::Sealers;
use sys::poll::{Event, Interest, Poller, Waker};
use sys::signals::TerminationSignals;

use crate::front_end::{Admission, Effect, FrontEnd};
use spare_memory::SpareMemory;

const SIGNALS: u64 = 0;
const SERVER: u64 = 1;
const LISTENER: u64 = 2;
const NETWORK: u64 = 3;
const DEVICES: u64 = 4;
const LINK_NEWS: u64 = 5;
const MODULES: u64 = 6;
const MIXERS: u64 = 7;
const RINGS: u64 = 8;
/// The token of program 0; the others follow.
const FIRST_LINK: u64 = 9;

/// Where programs come in, and which of them may.
#[derive(Debug)]
pub(crate) struct Entrance {
    /// For those of this machine.
    pub local: Listener,
    /// For those over TCP.
    pub network: Option<NetworkListener>,
    /// Who is let in.
    pub admission: Admission,
}

/// What the front end does without a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WithoutServer {
    /// It stays until a signal.
    Stays,
    /// It ends if no program is connected: a service manager keeps its socket, and starts the next
    /// one with the next program.
    EndsIfUnused,
    /// It ends if nobody waits for the next server: at once if no program is connected, or else
    /// when the grace period is over.
    EndsUnlessAwaited,
}

/// The front end's process.
#[derive(Debug)]
pub(crate) struct Service {
    poller: Poller,
    signals: TerminationSignals,
    local: Listener,
    network: Option<NetworkListener>,
    front_end: FrontEnd<ServerDevices>,
    links: BTreeMap<u32, Link>,
    round_robin: RoundRobin<u32>,
    /// Those at which the streams of programs are looked at.
    looks: RoundRobin<u32>,
    /// The programs that are not read from, by the time until which, ns.
    resting: BTreeSet<(u64, u32)>,
    accounts: Accounts,
    retry: Retry,
    keeper: Keeper,
    disposal: Disposal,
    spare_memory: SpareMemory,
    without_server: WithoutServer,
    /// What close the memory of rings to writers.
    sealers: Sealers,
    /// Woken when one has.
    sealed: Arc<Waker>,
}

impl Service {
    /// Begins to serve programs on the device of a server.
    ///
    /// # Errors
    /// The kernel's: no descriptor or thread is left.
    pub fn new(
        mut devices: ServerDevices,
        entrance: Entrance,
        signals: TerminationSignals,
        mut keeper: Keeper,
        without_server: WithoutServer,
    ) -> anyhow::Result<Self> {
        // Each program takes a descriptor, and each stream some.
        let _ = sys::process::raise_file_limit();
        let Entrance { local, network, admission } = entrance;
        let poller = Poller::new()?;
        poller.add(&signals, SIGNALS, Interest::Readable)?;
        poller.add(&local, LISTENER, Interest::Readable)?;
        if let Some(network) = &network {
            poller.add(network, NETWORK, Interest::Readable)?;
        }
        devices.links().listens_at(local.path().unwrap_or_default());
        poller.add(devices.links(), LINK_NEWS, Interest::Readable)?;
        poller.add(devices.listeners(), MODULES, Interest::Readable)?;
        poller.add(devices.mixers(), MIXERS, Interest::Readable)?;
        let (memory, rules) = (keeper.load(), keeper.changed_rules().unwrap_or_default());
        let tcp_port = network.as_ref().and_then(|network| network.address().ok());
        let tcp_port = tcp_port.map(|address| address.port());
        let front_end = FrontEnd::new(devices, machine::about(tcp_port));
        let front_end = front_end.admitting(admission).remembering(memory, rules);
        let (links, accounts, retry) = (BTreeMap::new(), Accounts::default(), Retry::new(now_ns()));
        let disposal = Disposal::start()?;
        let sealed = Arc::new(Waker::new()?);
        poller.add(&*sealed, RINGS, Interest::Readable)?;
        let mut service = Self {
            poller,
            signals,
            local,
            network,
            front_end,
            links,
            round_robin: RoundRobin::default(),
            looks: RoundRobin::default(),
            resting: BTreeSet::new(),
            accounts,
            retry,
            keeper,
            disposal,
            spare_memory: SpareMemory::default(),
            without_server,
            sealers: Sealers::default(),
            sealed,
        };
        service.watch_server()?;
        service.front_end.load_ruled_modules(now_ns());
        Ok(service)
    }

    /// Serves until a signal, or until there is [no server](WithoutServer).
    ///
    /// # Errors
    /// The kernel's, of waiting for events; the server that follows is of another release.
    pub fn run(mut self) -> anyhow::Result<()> {
        // Programs wait for its answers, and devices for the frames that it converts.
        if !sys::thread::favour() {
            cli::ask_to_favour(sys::thread::thread_id());
        }
        let ended = self.serve();
        self.keep(now_ns());
        self.keeper.finish(self.front_end.memory());
        ended
    }

    fn serve(&mut self) -> anyhow::Result<()> {
        let mut events = Vec::new();
        loop {
            let due_ns = self.front_end.deadline(now_ns());
            let retry_ns = self.retry.due_ns(self.links.len());
            let ended_ns = self.front_end.devices_mut().links().due_ns();
            let rested_ns = self.resting.first().map(|(until_ns, _)| *until_ns);
            let arrival_ns = self.arrival_ns();
            let deadline_ns =
                [due_ns, retry_ns, arrival_ns, self.keeper.due_ns(), ended_ns, rested_ns];
            let awaits_turn = self.links.values_mut().any(Link::listen).then_some(0);
            let deadline_ns = deadline_ns.into_iter().chain([awaits_turn]).flatten().min();
            self.poller.wait(&mut events, deadline_ns)?;
            self.wake_rested(now_ns());
            self.add_unhandled(&mut events);
            self.round_robin.begin_round(&mut events);
            for event in &events {
                match event.token {
                    SIGNALS => {
                        if self.signals.read()?.is_some() {
                            return Ok(());
                        }
                    }
                    SERVER => self.server_ready(),
                    DEVICES => self.devices_ready(),
                    LINK_NEWS => self.links_ready(),
                    MIXERS => self.mixers_ready(),
                    RINGS => self.rings_ready(),
                    LISTENER | NETWORK | MODULES => self.accept(event.token),
                    token => self.link_ready(token, event),
                }
            }
            let now_ns = now_ns();
            if due_ns.is_some_and(|due_ns| due_ns <= now_ns) {
                self.update_streams(now_ns);
            }
            if self.retry.due_ns(self.links.len()).is_some_and(|retry_ns| retry_ns <= now_ns) {
                self.look_for_server(now_ns)?;
            }
            self.end_arrivals(now_ns);
            if ended_ns.is_some_and(|ended_ns| ended_ns <= now_ns) {
                self.links_ready();
            }
            self.carry_out();
            self.keep(now_ns);
            self.disposal.step(now_ns);
            if self.spare_memory.take_due(now_ns) {
                sys::memory::release_spare_memory();
            }
            let is_unused = self.links.is_empty() && self.front_end.has_no_server();
            let ends = match self.without_server {
                WithoutServer::Stays => false,
                WithoutServer::EndsIfUnused => is_unused,
                WithoutServer::EndsUnlessAwaited => {
                    is_unused || self.front_end.has_waited_in_vain()
                }
            };
            if ends {
                return Ok(());
            }
        }
    }

    /// Does what is due for streams. However much that is for those of one program, the others have
    /// their turn.
    fn update_streams(&mut self, due_ns: u64) {
        let mut due = self.front_end.begin_update(due_ns);
        self.looks.begin_round(&mut due);
        for (account, stream) in due {
            let began_ns = now_ns();
            // MUTATION: update_streams.without_turns
            if let Some(turn) = self.looks.begin(account, began_ns) {
                self.front_end.look(stream, began_ns);
                self.looks.end(account, turn, now_ns());
            }
        }
        self.front_end.end_update(now_ns());
    }

    /// Writes what is remembered, once that is due.
    fn keep(&mut self, now_ns: u64) {
        if self.front_end.take_memory_has_changed() {
            self.keeper.note(now_ns);
        }
        if self.keeper.due_ns().is_some_and(|due_ns| due_ns <= now_ns) {
            self.keeper.write(self.front_end.memory(), now_ns);
        }
    }

    /// Adds the programs that have rested, and those whose frames wait for their turn, to those
    /// that the poller has reported.
    fn add_unhandled(&self, events: &mut Vec<Event>) {
        let unhandled = self.links.iter().filter(|(_, link)| link.awaits_turn());
        let tokens: Vec<u64> = unhandled.map(|(number, _)| token(*number)).collect();
        for token in tokens {
            if events.iter().all(|event| event.token != token) {
                events.push(Event { token, readable: true, writable: false, closed: false });
            }
        }
    }

    fn link_ready(&mut self, token: u64, event: &Event) {
        let Ok(number) = u32::try_from(token - FIRST_LINK) else { return };
        let Some(link) = self.links.get_mut(&number) else { return };
        link.note(event);
        let account = link.account();
        let is_ready = event.readable || event.closed;
        let slice = is_ready.then(|| self.round_robin.begin(account, now_ns())).flatten();
        let (mut state, awaits_rights) = (State::Open, Cell::new(false));
        if let Some(slice) = slice {
            let front_end = &mut self.front_end;
            let goes_on = || !awaits_rights.get() && slice.goes_on(now_ns());
            state = link.read(goes_on, |frame| {
                front_end.frame(number, frame, now_ns());
                // MUTATION: link_ready.requests_before_rights
                awaits_rights.set(front_end.has_unanswered_request(number));
            });
            if front_end.shares_memory(number) {
                link.share_memory();
            }
            if state == State::Open {
                state = link.close_rings(&self.sealed);
            }
        }
        // Before it is written to: that may end its connection.
        if awaits_rights.get() {
            self.examine(number);
        }
        if state == State::Ended {
            self.end_link(number);
        }
        self.write(number);
        self.offer_rings(number);
        self.carry_out();
        if let Some(slice) = slice {
            self.round_robin.end(account, slice, now_ns());
        }
    }

    /// Sends what the front end has for programs, and disconnects those that are to be. Streams
    /// that were opened begin after that.
    fn carry_out(&mut self) {
        let mut touched = Vec::new();
        loop {
            let effects = self.front_end.take_effects();
            if effects.is_empty() && !self.front_end.begin_streams(now_ns()) {
                break;
            }
            for effect in effects {
                let (Effect::Send { client, .. }
                | Effect::Close { client }
                | Effect::Gather { client, .. }) = effect;
                touched.push(client);
                let Some(link) = self.links.get_mut(&client) else { continue };
                match effect {
                    Effect::Send { bytes, .. } => link.send(bytes),
                    Effect::Close { .. } => link.close_when_sent(),
                    Effect::Gather { until_ns, .. } => {
                        if link.rest() {
                            self.resting.insert((until_ns, client));
                        }
                    }
                }
            }
            touched.sort_unstable();
            touched.dedup();
            for number in touched.drain(..) {
                self.write(number);
            }
        }
        let waiting: Vec<u32> =
            self.links.iter().filter(|(_, link)| link.waits()).map(|(number, _)| *number).collect();
        waiting.into_iter().for_each(|number| self.write(number));
    }

    /// Reads again from the programs that have had the time to answer.
    fn wake_rested(&mut self, now_ns: u64) {
        while let Some((until_ns, number)) = self.resting.first().copied()
            && until_ns <= now_ns
        {
            self.resting.pop_first();
            if let Some(link) = self.links.get_mut(&number) {
                link.wake();
            }
        }
    }

    fn write(&mut self, number: u32) {
        let Some(link) = self.links.get_mut(&number) else { return };
        if link.write() == State::Ended {
            return self.end_link(number);
        }
        if let (Some(interest), Some(socket)) = (link.changed_interest(), link.socket()) {
            let _ = self.poller.modify(socket, token(number), interest);
        }
        if link.has_sent_all() {
            self.front_end.sent_all(number);
        } else {
            // MUTATION: write.nobody_is_behind
            self.front_end.is_behind(number);
        }
        self.bound_memory(number);
    }

    /// Ends the connection of a program that keeps most, if all of its connections keep too much.
    fn bound_memory(&mut self, number: u32) {
        let Some(link) = self.links.get(&number) else { return };
        let account = link.account();
        // MUTATION: bound_memory.never
        if link.kept_bytes() <= kept_memory::LITTLE_BYTES {
            return;
        }
        let own = self.links.iter().filter(|(_, link)| link.account() == account);
        let ended =
            kept_memory::first_beyond(own.map(|(number, link)| (*number, link.kept_bytes())));
        if let Some(ended) = ended {
            self.end_link(ended);
        }
    }

    fn end_link(&mut self, number: u32) {
        if let Some(link) = self.links.remove(&number) {
            let _ = link.socket().map(|socket| self.poller.remove(socket));
            let _ = link.eventfd().map(|eventfd| self.poller.remove(eventfd));
            self.accounts.went(link.account());
            self.front_end.disconnected(number, now_ns());
        }
    }

    /// Another program has changed the mixer of a card, or that has gone.
    fn mixers_ready(&mut self) {
        self.front_end.devices_mut().mixers().take_changes();
        self.front_end.devices_changed(now_ns());
    }

    /// There is news of what passes frames on.
    fn links_ready(&mut self) {
        let now_ns = now_ns();
        for (number, news) in self.front_end.devices_mut().link_news(now_ns) {
            match news {
                LinkNews::Begun(begun) => self.front_end.link_has_begun(number, begun, now_ns),
                LinkNews::Ended(reason) => {
                    self.front_end.link_has_ended(number, reason.as_deref(), now_ns);
                }
            }
        }
    }
}

fn token(number: u32) -> u64 {
    FIRST_LINK + u64::from(number)
}
