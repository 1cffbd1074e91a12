//! The processes at the other ends of the control sockets: who they are, what they may do, and the
//! answers that they wait for.

use std::collections::{BTreeMap, HashMap};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

use proto::encode;
use proto::hello::{Welcome, encode_first};
use proto::request::{Numbered, Reply, RequestError};
use sys::clock::now_ns;
use sys::poll::{Interest, Poller};
use sys::process::PidFd;
use sys::socket::{Connection, SocketError};
use sys::thread::PeerThreads;

use super::FIRST_PEER;
use super::listeners::Listeners;
use super::permissions::permissions_of;
use super::ticket::{PendingReplies, Ticket};
use super::unsent::{MemoryPacket, UnsentPackets};
use crate::outbox::{FlushOutcome, Outbox};
use crate::policy::{Permissions, Policy};
use crate::programs::{ProgramId, Programs};
use sys::disposal::{Disposal, Foreign};

/// What a peer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PeerState {
    /// It has said nothing, and is closed at this time.
    Silent { deadline_ns: u64 },
    /// It reads the registry and sends requests.
    Observer,
    /// It is admitted as a client after those that return from another server.
    Waiting,
    /// It is a client.
    Client(u32),
}

/// A process that has connected.
#[derive(Debug)]
struct Peer {
    socket: Foreign<Connection>,
    /// The socket for events and answers to them, if it is a client.
    events: Option<Foreign<Connection>>,
    /// Its process, if it is a client and can be seen from here.
    process: Option<PidFd>,
    state: PeerState,
    program: ProgramId,
    permissions: Permissions,
}

/// What was received of a peer.
#[derive(Debug)]
pub(super) struct ReceivedPacket {
    /// The packet's length in the buffer, or why there is none.
    pub(super) length: Result<usize, SocketError>,
    /// The descriptors that came with it, also if it was refused.
    pub(super) descriptors: Vec<Foreign<OwnedFd>>,
}

/// A peer that is to become a new client.
#[derive(Debug)]
pub(super) struct NewClient {
    pub(super) peer: u64,
    pub(super) name: String,
    pub(super) exact: bool,
    /// The uuid that its session gave it.
    pub(super) session: Option<u64>,
}

/// Descriptors that every program receives.
#[derive(Debug)]
pub struct SharedMemory {
    /// The engine segment.
    pub engine: Arc<OwnedFd>,
    /// The registry.
    pub registry: Arc<OwnedFd>,
    /// The recording; for observers.
    pub recording: Arc<OwnedFd>,
}

/// The peers, by serial number, and the sockets that they connect to.
#[derive(Debug)]
pub(super) struct Peers {
    listeners: Listeners,
    /// Closes the peers' sockets, and the descriptors that they sent.
    pub(super) disposal: Disposal,
    /// What every program receives.
    pub(super) memory: SharedMemory,
    peers: HashMap<u64, Peer>,
    /// The programs that the peers belong to.
    pub(super) programs: Programs<PidFd>,
    next: u64,
    /// Nothing is accepted before this time.
    paused_until_ns: Option<u64>,
    /// New clients that wait for a name or an id, in the order of arrival.
    pub(super) waiting: Vec<NewClient>,
    /// Requests that are answered later.
    pub(super) pending: PendingReplies,
    /// Packets with memory that the kernel has refused to carry.
    unsent: UnsentPackets,
}

/// A peer that says nothing is closed after this.
const GREETING_NS: u64 = 2_000_000_000;
/// How long nothing is accepted after there was no descriptor for it.
const PAUSE_NS: u64 = 50_000_000;
/// Peers that have said nothing, at once.
const SILENT_AT_ONCE: usize = 64;
/// Connections taken from a listening socket, and packets from a socket, before the others have
/// their turn.
pub(super) const IN_A_ROW: usize = 16;

/// What a token of the poller belongs to: one of a peer's sockets, or its process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PeerSocket {
    Requests(u64),
    Events(u64),
    Process(u64),
}

/// Tokens of each peer.
const TOKENS: u64 = 3;

impl PeerSocket {
    pub(super) fn of_token(token: u64) -> Self {
        let serial = (token - FIRST_PEER) / TOKENS;
        let all = [Self::Events(serial), Self::Process(serial)];
        all.into_iter().find(|of| of.token() == token).unwrap_or(Self::Requests(serial))
    }

    fn token(self) -> u64 {
        match self {
            Self::Requests(serial) => FIRST_PEER + serial * TOKENS,
            Self::Events(serial) => FIRST_PEER + serial * TOKENS + 1,
            Self::Process(serial) => FIRST_PEER + serial * TOKENS + 2,
        }
    }
}

impl Peers {
    /// Starts without peers.
    pub(super) fn new(listeners: Listeners, disposal: Disposal, memory: SharedMemory) -> Self {
        Self {
            listeners,
            disposal,
            memory,
            peers: HashMap::new(),
            programs: Programs::new(sys::process::real_user_id()),
            next: 0,
            paused_until_ns: None,
            waiting: Vec::new(),
            pending: PendingReplies::default(),
            unsent: UnsentPackets::default(),
        }
    }

    /// What a peer is. `None`: it has gone.
    pub(super) fn state(&self, serial: u64) -> Option<PeerState> {
        self.peers.get(&serial).map(|peer| peer.state)
    }

    pub(super) fn set_state(&mut self, serial: u64, role: PeerState) {
        if let Some(peer) = self.peers.get_mut(&serial) {
            peer.state = role;
        }
    }

    /// What the program of a peer may do.
    pub(super) fn permissions(&self, serial: u64) -> Permissions {
        self.peers.get(&serial).map_or(Permissions::NONE, |peer| peer.permissions)
    }

    /// The program that a peer belongs to.
    pub(super) fn program(&self, serial: u64) -> Option<ProgramId> {
        self.peers.get(&serial).map(|peer| peer.program)
    }

    /// The user of a peer's process.
    pub(super) fn user(&self, serial: u64) -> Option<u32> {
        self.programs.user(self.program(serial)?)
    }

    /// The process of a peer as the kernel gave it; `None`: of another pid namespace.
    pub(super) fn process(&self, serial: u64) -> Option<u32> {
        self.peers.get(&serial)?.socket.get()?.peer().ok()?.process_id
    }

    /// The threads of a peer's process; `None`: it has ended, or is of another pid namespace.
    pub(super) fn threads(&self, serial: u64) -> Option<PeerThreads> {
        PeerThreads::of(&self.socket(serial)?.peer_pidfd().ok()?).ok()
    }

    /// Makes a peer a client, with its end of the event socket, and watches its process: a child
    /// that it has forked may keep its sockets open after its end.
    pub(super) fn make_client(
        &mut self,
        serial: u64,
        client: u32,
        events: Connection,
        poller: &Poller,
    ) {
        if let Some(peer) = self.peers.get_mut(&serial) {
            peer.state = PeerState::Client(client);
            peer.events = Some(self.disposal.queue().foreign(events));
        }
        self.watch(serial, poller);
    }

    /// Watches the process of a peer, and returns its id; `None`: of another pid namespace.
    pub(super) fn watch(&mut self, serial: u64, poller: &Poller) -> Option<u32> {
        let peer = self.peers.get_mut(&serial)?;
        if peer.process.is_none() {
            let process = peer.socket.get().and_then(|socket| socket.peer_pidfd().ok());
            let token = PeerSocket::Process(serial).token();
            // MUTATION: make_client.process_not_watched
            peer.process =
                process.filter(|process| poller.add(process, token, Interest::Readable).is_ok());
        }
        self.process(serial)
    }

    /// Accepts programs that connect to the listening socket `token`.
    pub(super) fn accept(&mut self, token: u64, poller: &Poller, policy: &Policy, now_ns: u64) {
        for _ in 0..IN_A_ROW {
            let mut listeners = self.listeners.iter();
            let Some((_, listener)) = listeners.find(|(known, _)| *known == token) else { return };
            let accepted = listener.try_accept();
            drop(listeners);
            match accepted {
                Ok(socket) => {
                    self.admit(self.disposal.queue().foreign(socket), poller, policy, now_ns)
                }
                Err(SocketError::NotReady) => return,
                // No descriptor is left: programs that wait are accepted when one is.
                // MUTATION: accept.retries_without_descriptor
                Err(_) => return self.pause_listening(poller, now_ns),
            }
        }
    }

    /// Ignores the listening sockets for a while, instead of failing to accept again and again.
    fn pause_listening(&mut self, poller: &Poller, now_ns: u64) {
        for (_, listener) in self.listeners.iter() {
            if poller.remove(listener).is_ok() {
                self.paused_until_ns = Some(now_ns + PAUSE_NS);
            }
        }
    }

    /// Accepts programs again after a pause.
    pub(super) fn resume_listening(&mut self, poller: &Poller, now_ns: u64) {
        if self.paused_until_ns.is_none_or(|until_ns| until_ns > now_ns) {
            return;
        }
        // A socket that is polled already is left as it is.
        let is_polled = |error: std::io::Error| error.kind() == std::io::ErrorKind::AlreadyExists;
        let add = |(token, listener)| poller.add(listener, token, Interest::Readable);
        let mut added = self.listeners.iter().map(add);
        if added.all(|added| added.is_ok() || added.is_err_and(is_polled)) {
            self.paused_until_ns = None;
        }
    }

    fn admit(
        &mut self,
        foreign: Foreign<Connection>,
        poller: &Poller,
        policy: &Policy,
        now_ns: u64,
    ) {
        let Some(socket) = foreign.get() else { return };
        // MUTATION: admit.any_user
        if !self.listeners.admit(socket) {
            let reason = "this server serves another user".into();
            let refused = Welcome::Refused(RequestError::NotAllowed(reason));
            let _ = socket.try_send(&encode_first(&refused), &[]);
            socket.shut_down();
            return;
        }
        let program = self.note_program(socket);
        self.make_room(poller);
        let serial = self.next;
        self.next += 1;
        let token = PeerSocket::Requests(serial).token();
        if poller.add(socket, token, Interest::Readable).is_err() {
            return self.programs.went(program);
        }
        let state = PeerState::Silent { deadline_ns: now_ns + GREETING_NS };
        let permissions = permissions_of(socket, policy);
        let (events, process) = (None, None);
        let peer = Peer { socket: foreign, events, process, state, program, permissions };
        self.peers.insert(serial, peer);
    }

    fn note_program(&mut self, socket: &Connection) -> ProgramId {
        let credentials = socket.peer().ok();
        let process = credentials.and_then(|peer| peer.process_id).zip(socket.peer_pidfd().ok());
        // The kernel knows every peer's user. No user has this id.
        let user = credentials.map_or(u32::MAX, |peer| peer.user_id);
        self.programs.came(user, process)
    }

    /// Closes a peer that has said nothing, if there are too many: the oldest of the program that
    /// has most of them.
    fn make_room(&mut self, poller: &Poller) {
        let silent = self.silent(|_| true);
        // MUTATION: make_room.any_number_of_silent_peers
        if silent.len() < SILENT_AT_ONCE {
            return;
        }
        let mut by_program: BTreeMap<ProgramId, Vec<u64>> = BTreeMap::new();
        // What has arrived meanwhile is read in this round or the next.
        let says_nothing =
            |serial: &u64| self.socket(*serial).is_none_or(|socket| !socket.has_unread());
        for serial in silent.into_iter().filter(says_nothing) {
            if let Some(program) = self.program(serial) {
                by_program.entry(program).or_default().push(serial);
            }
        }
        let most = by_program.into_values().max_by_key(Vec::len);
        if let Some(oldest) = most.into_iter().flatten().min() {
            self.remove(oldest, poller);
        }
    }

    fn silent(&self, is_wanted: impl Fn(u64) -> bool) -> Vec<u64> {
        let is_wanted = |peer: &Peer| matches!(peer.state, PeerState::Silent { deadline_ns } if is_wanted(deadline_ns));
        self.peers.iter().filter(|(_, peer)| is_wanted(peer)).map(|(serial, _)| *serial).collect()
    }

    /// The peers that should have said something by now.
    pub(super) fn overdue(&self, now_ns: u64) -> Vec<u64> {
        // MUTATION: overdue.silent_peers_stay
        self.silent(|deadline_ns| deadline_ns < now_ns)
    }

    /// Begins to poll a new client's event socket.
    ///
    /// # Errors
    /// If the kernel has no memory.
    pub(super) fn poll_events(
        serial: u64,
        events: &Connection,
        poller: &Poller,
    ) -> std::io::Result<()> {
        poller.add(events, PeerSocket::Events(serial).token(), Interest::Readable)
    }

    /// Receives a packet on one of a peer's sockets, and all descriptors that came with it. `None`:
    /// the peer has gone.
    pub(super) fn receive(&self, socket: PeerSocket, buffer: &mut [u8]) -> Option<ReceivedPacket> {
        let socket = match socket {
            PeerSocket::Requests(serial) => &self.peers.get(&serial)?.socket,
            PeerSocket::Events(serial) => self.peers.get(&serial)?.events.as_ref()?,
            PeerSocket::Process(_) => return None,
        };
        let (mut descriptors, queue) = (Vec::new(), self.disposal.queue());
        let received = socket.get()?.try_receive_with(buffer, &mut descriptors);
        let foreign = descriptors.into_iter().map(|descriptor| queue.foreign(descriptor));
        Some(ReceivedPacket { length: received, descriptors: foreign.collect() })
    }

    /// Sends the first packet, as soon as the kernel carries it. Returns false if the peer does not
    /// take it.
    pub(super) fn welcome(
        &mut self,
        serial: u64,
        welcome: &Welcome,
        memory: Vec<Arc<OwnedFd>>,
    ) -> bool {
        let refusal = encode_first(&Welcome::Refused(no_descriptors()));
        self.send_memory(MemoryPacket {
            peer: serial,
            packet: encode_first(welcome),
            memory,
            refusal,
        })
    }

    /// Sends a peer its first packet, which is a refusal.
    pub(super) fn refuse_welcome(&self, serial: u64, error: RequestError) {
        if let Some(socket) = self.socket(serial) {
            // The end of the connection follows.
            let _ = socket.try_send(&encode_first(&Welcome::Refused(error)), &[]);
        }
    }

    fn send_memory(&mut self, packet: MemoryPacket) -> bool {
        let peers = &self.peers;
        self.unsent
            .send(packet, now_ns(), |peer, packet, memory| send_to(peers, peer, packet, memory))
    }

    /// Tries again what the kernel has refused to carry. Returns the peers that are to be closed.
    pub(super) fn retry_unsent(&mut self) -> Vec<u64> {
        let peers = &self.peers;
        self.unsent.retry(now_ns(), |peer, packet, memory| send_to(peers, peer, packet, memory))
    }

    /// When that is due.
    pub(super) fn unsent_due_ns(&self) -> Option<u64> {
        self.unsent.due_ns()
    }

    /// Answers a request. Returns false if the peer does not take its answers.
    pub(super) fn reply(&self, ticket: Ticket, reply: Reply) -> bool {
        let Ticket { peer, number } = ticket;
        let Some(socket) = self.socket(peer) else { return true };
        socket.try_send(&encode(&Numbered { number, message: reply }), &[]).is_ok()
    }

    /// Answers a request, with descriptors, as soon as the kernel carries them. Returns false if
    /// the peer does not take its answers.
    pub(super) fn reply_with(
        &mut self,
        ticket: Ticket,
        reply: Reply,
        memory: Vec<Arc<OwnedFd>>,
    ) -> bool {
        let Ticket { peer, number } = ticket;
        let refusal = encode(&Numbered { number, message: Reply::Error(no_descriptors()) });
        let packet = encode(&Numbered { number, message: reply });
        self.send_memory(MemoryPacket { peer, packet, memory, refusal })
    }

    fn socket(&self, serial: u64) -> Option<&Connection> {
        self.peers.get(&serial)?.socket.get()
    }

    /// Sends a client as many events as its socket takes. `was_full`: the poller watches for room.
    /// Returns false if the client has gone.
    pub(super) fn send_events(
        &self,
        serial: u64,
        outbox: &mut Outbox,
        was_full: bool,
        poller: &Poller,
    ) -> bool {
        let events = self.peers.get(&serial).and_then(|peer| peer.events.as_ref());
        let Some(events) = events.and_then(Foreign::get) else { return false };
        let send = |packet: &[u8], memory: &[BorrowedFd<'_>]| events.try_send(packet, memory);
        let interest = match outbox.flush(send) {
            FlushOutcome::All | FlushOutcome::Later if was_full => Interest::Readable,
            FlushOutcome::Waiting if !was_full => Interest::ReadableOrWritable,
            FlushOutcome::All | FlushOutcome::Later | FlushOutcome::Waiting => return true,
            FlushOutcome::Closed => return false,
        };
        // Fails only if the kernel has no memory: the events wait for the next ones then.
        let _ = poller.modify(events, PeerSocket::Events(serial).token(), interest);
        true
    }

    /// Closes a peer's sockets, and drops the answers that it waits for. Returns what it was.
    pub(super) fn remove(&mut self, serial: u64, poller: &Poller) -> Option<PeerState> {
        let peer = self.peers.remove(&serial)?;
        for socket in [Some(&peer.socket), peer.events.as_ref()].into_iter().flatten() {
            if let Some(socket) = socket.get() {
                let _ = poller.remove(socket);
                // It may be closed later than now.
                socket.shut_down();
            }
        }
        peer.process.iter().for_each(|process| drop(poller.remove(process)));
        self.pending.forget(serial);
        self.unsent.forget(serial);
        self.programs.went(peer.program);
        Some(peer.state)
    }
}

fn send_to(
    peers: &HashMap<u64, Peer>,
    serial: u64,
    packet: &[u8],
    memory: &[BorrowedFd<'_>],
) -> Result<(), SocketError> {
    let socket = peers.get(&serial).and_then(|peer| peer.socket.get());
    socket.map_or(Ok(()), |socket| socket.try_send(packet, memory))
}

fn no_descriptors() -> RequestError {
    let reason = "the kernel carries no more descriptors of the server's user: some program sends \
                  many and receives none";
    RequestError::Failed(reason.into())
}
