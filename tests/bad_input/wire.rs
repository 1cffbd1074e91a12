//! The control socket without the client library, which would never send what these tests send.

use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use harness::{Judge, Server, eventually, judged, modes, not_run};
use proto::hello::{Hello, Role, Welcome, decode_first, encode_first};
pub use proto::port_flags::{INPUT, OUTPUT};
use proto::request::{
    Activation, Interests, NewPort, Numbered, PortType, Reply, Request, SlabSlot,
};
use proto::{MAX_PACKET_BYTES, decode, encode};
use rt::shm::LAYOUT_VERSION;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use sys::memory::OwnSlab;
use sys::socket::{Connection, Received, SocketError};

const PATIENCE_NS: u64 = 30_000_000_000;

fn soon() -> Option<u64> {
    Some(sys::clock::now_ns() + PATIENCE_NS)
}

/// Short enough that a stall of the driver shows.
pub const QUANTUM_FRAMES: u32 = 256;
/// Enough cycles to hear something.
const SOME_CYCLES: u64 = 5;

/// A server that the test abuses.
pub fn server() -> Server {
    Server::timer(QUANTUM_FRAMES)
}

/// Where the server listens.
pub fn socket_path(server: &Server) -> PathBuf {
    server.directory().join("consort/under-test/control")
}

/// A connection to the server.
pub struct Wire {
    socket: Connection,
    number: u32,
    buffer: Vec<u8>,
}

impl Wire {
    /// Connects and sends nothing.
    pub fn connect(server: &Server) -> Self {
        Self::over(Connection::connect(&socket_path(server), soon()).expect("the server listens"))
    }

    /// A connection that another process has made.
    pub fn over(socket: Connection) -> Self {
        // Longer than any packet that the server may send.
        Self { socket, number: 0, buffer: vec![0; 4 * MAX_PACKET_BYTES] }
    }

    /// Connects as an observer.
    pub fn observer(server: &Server) -> Self {
        let mut wire = Self::connect(server);
        assert_eq!(wire.greet(Role::Observer).0, Welcome::Observer);
        wire
    }

    /// Sends the first packet, and returns the answer.
    pub fn greet(&mut self, role: Role) -> (Welcome, Vec<OwnedFd>) {
        self.send(&encode_first(&Hello { layout: LAYOUT_VERSION, role }), &[]);
        self.welcome()
    }

    /// The answer to a first packet that was sent.
    pub fn welcome(&mut self) -> (Welcome, Vec<OwnedFd>) {
        let Received { bytes, descriptors } = self.receive().expect("an answer");
        (decode_first(&self.buffer[..bytes]).expect("a welcome"), descriptors)
    }

    /// Sends the first packet.
    ///
    /// # Errors
    /// The text with which it is refused.
    pub fn try_greet(&mut self, role: Role) -> Result<(), String> {
        match self.greet(role).0 {
            Welcome::Refused(error) => Err(error.to_string()),
            _ => Ok(()),
        }
    }

    /// Sends any bytes with any number of descriptors.
    pub fn send(&self, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) {
        self.try_send(bytes, descriptors).expect("the server is there");
    }

    /// Sends a packet without waiting for room.
    pub fn try_send(&self, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> rustix::io::Result<()> {
        send_on(&self.socket, bytes, descriptors)
    }

    fn receive(&mut self) -> Result<Received, SocketError> {
        self.socket.receive_until(&mut self.buffer, soon())
    }

    /// Sends a request and returns its number, without waiting for the answer.
    pub fn request(&mut self, request: Request, descriptors: &[BorrowedFd<'_>]) -> u32 {
        self.number += 1;
        self.send(&encode(&Numbered { number: self.number, message: request }), descriptors);
        self.number
    }

    /// The next answer with its number.
    pub fn answer(&mut self) -> Numbered<Reply> {
        let bytes = self.receive().expect("an answer").bytes;
        decode(&self.buffer[..bytes]).expect("a reply")
    }

    /// Sends a request and returns its answer.
    pub fn ask(&mut self, request: Request) -> Reply {
        self.ask_with(request, &[])
    }

    /// Sends a request with descriptors, and returns the reply.
    pub fn ask_with(&mut self, request: Request, descriptors: &[BorrowedFd<'_>]) -> Reply {
        let number = self.request(request, descriptors);
        let answer = self.answer();
        assert_eq!(answer.number, number, "answers come in order");
        answer.message
    }

    /// The text of the refusal of the first packet, which ends the connection.
    #[track_caller]
    pub fn sent_away(&mut self) -> String {
        let bytes = self.receive().expect("an answer").bytes;
        match decode_first(&self.buffer[..bytes]) {
            Ok(Welcome::Refused(error)) => {
                self.assert_closed();
                error.to_string()
            }
            other => panic!("not refused: {other:?}"),
        }
    }

    /// Waits until the server has closed the connection.
    #[track_caller]
    pub fn assert_closed(&mut self) {
        // A socket with unread data is reset rather than ended.
        let closed = |error: &SocketError| match error {
            SocketError::Closed => true,
            SocketError::Io(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
            _ => false,
        };
        match self.receive() {
            Err(error) if closed(&error) => {}
            other => panic!("the connection is not closed: {other:?}"),
        }
    }

    /// The socket.
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn send_on(
    socket: &Connection,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> rustix::io::Result<()> {
    let mut space = vec![MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(descriptors.len()))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        assert!(control.push(SendAncillaryMessage::ScmRights(descriptors)));
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    sendmsg(socket, &[IoSlice::new(bytes)], &mut control, flags).map(drop)
}

/// A client of the server, without the client library.
pub struct ByHand {
    /// Requests and answers.
    pub wire: Wire,
    /// Its name.
    pub name: String,
    /// Engine, registry, assignments, own page, signal page.
    #[expect(dead_code, reason = "a client holds its memory as long as it lives")]
    pub memory: Vec<OwnedFd>,
    /// Events and answers.
    pub events: Connection,
    slabs: Vec<OwnSlab>,
}

impl ByHand {
    /// Opens a client.
    pub fn open(server: &Server, name: &str) -> Self {
        Self::open_as(server, Role::Client { name: name.into(), exact: false, session: None })
    }

    /// Opens a client with this first packet.
    pub fn open_as(server: &Server, role: Role) -> Self {
        let mut wire = Wire::connect(server);
        let (welcome, mut memory) = wire.greet(role);
        let Welcome::Client { name, .. } = welcome else { panic!("not welcome: {welcome:?}") };
        assert_eq!(memory.len(), 6);
        let events = Connection::from(memory.pop().expect("six"));
        Self { wire, name, memory, events, slabs: Vec::new() }
    }

    /// Opens a client that is active, without a part in cycles.
    pub fn active(server: &Server, name: &str) -> Self {
        let mut client = Self::open(server, name);
        client.activate();
        client
    }

    /// Sends any bytes with any number of descriptors on the socket for answers to events.
    pub fn send_event_answer(&self, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) {
        send_on(&self.events, bytes, descriptors).expect("the server is there");
    }

    /// Becomes active, without a part in cycles.
    pub fn activate(&mut self) {
        self.activate_with(false);
    }

    /// Becomes active, without a part in cycles; with a latency callback or without one.
    pub fn activate_with(&mut self, latency_callback: bool) {
        self.activate_as(None, latency_callback);
    }

    /// Becomes active, and names the thread that runs its cycles.
    pub fn activate_as(&mut self, process_thread: Option<u32>, latency_callback: bool) {
        let activation = Activation {
            process_thread,
            latency_callback,
            quantum_callback: false,
            freewheel_callback: false,
            session_callback: false,
            interests: Interests::ALL,
        };
        assert_eq!(self.wire.ask(Request::Activate(activation)), Reply::Done);
    }

    /// Adds a valid slab, which must be accepted.
    pub fn add_slab(&mut self) {
        assert_eq!(self.try_add_slab(), Ok(()));
    }

    /// Adds a valid slab.
    ///
    /// # Errors
    /// The text with which it is refused.
    pub fn try_add_slab(&mut self) -> Result<(), String> {
        let slab = OwnSlab::create().expect("memory");
        match self.wire.ask_with(Request::AddSlab, &[slab.segment().fd()]) {
            Reply::Done => self.slabs.push(slab),
            other => return Err(refused(other)),
        }
        Ok(())
    }

    /// Registers an audio port, which must be accepted.
    pub fn register(&mut self, name: &str, flags: u32) -> u32 {
        let slot = (flags & OUTPUT != 0).then_some(SlabSlot { slab: 0, slot: 0 });
        match self.wire.ask(Request::RegisterPort(port(name, flags, slot))) {
            Reply::Port(id) => id,
            other => panic!("not registered: {other:?}"),
        }
    }

    /// The text of the refusal of a request.
    #[track_caller]
    pub fn refusal(&mut self, request: Request) -> String {
        self.refusal_with(request, &[])
    }

    /// Sends a request with descriptors, and returns its refusal.
    #[track_caller]
    pub fn refusal_with(&mut self, request: Request, descriptors: &[BorrowedFd<'_>]) -> String {
        refused(self.wire.ask_with(request, descriptors))
    }
}

/// An audio port to be registered.
pub fn port(name: &str, flags: u32, slot: Option<SlabSlot>) -> NewPort {
    NewPort { name: name.into(), port_type: PortType::Audio, flags, number: 0, slot }
}

/// The text of a refusal.
#[track_caller]
pub fn refused(reply: Reply) -> String {
    match reply {
        Reply::Error(error) => error.to_string(),
        other => panic!("not refused: {other:?}"),
    }
}

/// Asserts that `text` contains all of `words`.
#[track_caller]
pub fn assert_says(case: &str, text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "{case}: '{word}' is not said in: {text}");
    }
}

/// How many descriptors the server has open.
pub fn descriptors_of(server: &mut Server) -> usize {
    let path = format!("/proc/{}/fd", server.program().id());
    std::fs::read_dir(path).expect("the server runs").count()
}

/// The same, once it has opened what it reads of programs, and of its own threads, at each poll.
fn settled_descriptors(server: &mut Server) -> usize {
    let mut counted = 0;
    eventually("the server opens nothing more", || {
        let before = std::mem::replace(&mut counted, descriptors_of(server));
        std::thread::sleep(A_POLL);
        (before == counted).then_some(counted)
    })
}

/// Longer than the server's control thread takes from one poll to the next.
const A_POLL: Duration = Duration::from_millis(150);

/// Cycles that a bystander may lose without a stall of the machine to explain it: chance may strike
/// once.
const MOST_LOST: u64 = 1;

/// Runs `bad`, on a server that `start` has started, next to two programs that are independent of
/// it: they lose nothing that neither the machine took nor a server without `bad` loses, the server
/// answers, and it keeps no descriptor.
pub fn with_bystanders(start: impl Fn() -> Server, mut bad: impl FnMut(&mut Server)) {
    judged(
        "next to a bad program",
        || beside_bystanders(&mut start(), &mut bad),
        |length| beside_bystanders(&mut start(), |_| std::thread::sleep(length)),
    );
}

/// Runs `bad` as [`with_bystanders`]; with `CONSORT_ALL_MODES`, in all modes in which faults are
/// tried.
pub fn in_modes(bad: impl Fn(&mut Server)) {
    if std::env::var_os("CONSORT_ALL_MODES").is_none() {
        return with_bystanders(server, bad);
    }
    for mode in modes() {
        with_bystanders(|| Server::start(mode), &bad);
    }
}

fn beside_bystanders(server: &mut Server, bad: impl FnOnce(&mut Server)) -> Result<(), String> {
    let judge = Judge::of_cycles(quantum_of(server));
    let source = server.probe(&["source", "src"]);
    let monitor = server.probe(&["monitor", "chk", "--from", "src:out"]);
    await_cycles(server, SOME_CYCLES);
    let before = settled_descriptors(server);
    bad(server);
    eventually("the server keeps no descriptor of a bad program", || {
        (descriptors_of(server) <= before).then_some(())
    });
    server.consort(&["status"]).expect_success();
    await_cycles(server, SOME_CYCLES);
    let heard = match judge {
        Some(judge) => judge.judge(monitor).expect("bystanders", MOST_LOST),
        None => {
            monitor.terminate().expect_success();
            not_run("no real-time priority here: what the bystanders lost is not judged");
            Ok(())
        }
    };
    source.terminate().expect_success();
    heard
}

/// The length of the server's cycles, frames.
pub fn quantum_of(server: &Server) -> u32 {
    match Wire::observer(server).ask(Request::Status) {
        Reply::Status(status) => status.quantum,
        other => panic!("no status: {other:?}"),
    }
}

/// Waits until the server has run this many more cycles.
fn await_cycles(server: &Server, cycles: u64) {
    let mut wire = Wire::observer(server);
    let mut count = || match wire.ask(Request::Status) {
        Reply::Status(status) => status.cycles,
        other => panic!("no status: {other:?}"),
    };
    let begin = count();
    eventually("the server runs cycles", || (count() >= begin + cycles).then_some(()));
}
