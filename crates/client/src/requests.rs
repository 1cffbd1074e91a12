//! The control socket: handshake, requests and replies.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use proto::hello::{Hello, Role, Welcome, decode_first, encode_first};
use proto::request::{Numbered, Reply, Request};
use proto::{MAX_PACKET_BYTES, decode, encode};
use sys::clock::now_ns;
use sys::runtime_directory::ControlSockets;
use sys::socket::{Connection, Received, SocketError};

use crate::Error;
use crate::locked::locked;

const SECOND_NS: u64 = 1_000_000_000;
const PATIENCE_SECONDS: u64 = 5;
/// Time limit for requests that wait for cycles or for other programs.
const LONG_PATIENCE_SECONDS: u64 = 10;
/// Time limit for requests that wait for a plug-in. The server allows 10 s to start and 5 s to
/// finish.
const HOSTING_PATIENCE_SECONDS: u64 = 20;
/// Time limit for requests that wait for a device or a disk. The server allows each of two drivers
/// 30 s.
const OPENING_PATIENCE_SECONDS: u64 = 65;
/// Time limit for requests that wait until other programs have saved. The server allows them 30 s.
const SAVING_PATIENCE_SECONDS: u64 = 35;

/// Sends requests to the server and waits for the replies: one request at a time, but for those
/// that are [started](Requests::start).
#[derive(Debug)]
pub(crate) struct Requests {
    socket: Connection,
    exchange: Mutex<Exchange>,
    gone: AtomicBool,
}

#[derive(Debug)]
struct Exchange {
    number: u32,
    buffer: Vec<u8>,
    /// Requests that were started, in their order.
    started: Vec<Started>,
}

/// A request whose answer is taken later.
#[derive(Debug)]
struct Started {
    number: u32,
    brings_memory: bool,
    deadline_ns: u64,
    /// As far as it has come.
    answer: Option<Answer>,
}

/// A reply, and the descriptors that came with it.
pub(crate) type Answer = (Reply, Vec<OwnedFd>);

/// The result of the handshake.
#[derive(Debug)]
pub(crate) struct Introduction {
    pub(crate) requests: Requests,
    pub(crate) welcome: Welcome,
    pub(crate) descriptors: Vec<OwnedFd>,
}

/// Returns the name of the server to use: `asked`, else `JACK_DEFAULT_SERVER`, else `default`.
pub(crate) fn server_name(asked: Option<&str>) -> Result<String, Error> {
    let named = |name: String| Some(name).filter(|name| !name.is_empty());
    let name = asked
        .map(str::to_owned)
        .and_then(named)
        .or_else(|| std::env::var("JACK_DEFAULT_SERVER").ok().and_then(named))
        .unwrap_or_else(|| "default".to_owned());
    proto::names::check_server(&name)?;
    Ok(name)
}

/// Connects to the control socket of `server` in the role `role`.
pub(crate) fn introduce(
    sockets: &ControlSockets,
    server: &str,
    role: Role,
) -> Result<Introduction, Error> {
    introduce_at(&sockets.of(server)?, server, role)
}

/// Connects to the control socket at `path` as `role`.
pub(crate) fn introduce_at(path: &Path, server: &str, role: Role) -> Result<Introduction, Error> {
    let deadline_ns = Some(now_ns() + PATIENCE_SECONDS * SECOND_NS);
    let socket = Connection::connect(path, deadline_ns).map_err(|error| match error {
        SocketError::Io(error)
            if matches!(
                error.kind(),
                std::io::ErrorKind::NotFound | std::io::ErrorKind::ConnectionRefused
            ) =>
        {
            Error::NoServer { server: server.to_owned(), path: path.to_owned() }
        }
        error => socket_error(error, PATIENCE_SECONDS),
    })?;
    let hello = Hello { layout: rt::shm::LAYOUT_VERSION, role };
    let failed = |error| socket_error(error, PATIENCE_SECONDS);
    socket.send_until(&encode_first(&hello), &[], deadline_ns).map_err(failed)?;
    let mut buffer = vec![0; MAX_PACKET_BYTES];
    let received = socket.receive_until(&mut buffer, deadline_ns).map_err(failed)?;
    let welcome = match decode_first(&buffer[..received.bytes])? {
        Welcome::Refused(error) => return Err(Error::Refused(error)),
        welcome => welcome,
    };
    Ok(Introduction { requests: Requests::new(socket), welcome, descriptors: received.descriptors })
}

fn socket_error(error: SocketError, seconds: u64) -> Error {
    match error {
        SocketError::Closed => Error::ServerGone,
        SocketError::NotReady => Error::Timeout { seconds },
        error => Error::Socket(error),
    }
}

impl Requests {
    /// Creates the request side of `socket`, counting from the first request.
    pub(crate) fn new(socket: Connection) -> Self {
        let exchange =
            Exchange { number: 0, buffer: vec![0; MAX_PACKET_BYTES], started: Vec::new() };
        Self { socket, exchange: Mutex::new(exchange), gone: AtomicBool::new(false) }
    }

    /// Returns the socket.
    pub(crate) fn socket(&self) -> &Connection {
        &self.socket
    }

    /// Sends `request` and waits, in bounded time, for the reply. A refusal is an error.
    pub(crate) fn ask(
        &self,
        request: Request,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<Reply, Error> {
        self.ask_for_memory(request, descriptors).map(|(reply, _)| reply)
    }

    /// The same, for a reply that brings descriptors.
    pub(crate) fn ask_for_memory(
        &self,
        request: Request,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<Answer, Error> {
        if self.is_gone() {
            return Err(Error::ServerGone);
        }
        let seconds = match request {
            Request::Activate(_)
            | Request::Deactivate
            | Request::ReturnClock
            | Request::SetQuantum { .. }
            | Request::SetFreewheel { .. } => LONG_PATIENCE_SECONDS,
            Request::SwitchDriver(_) => OPENING_PATIENCE_SECONDS,
            Request::Internal(_) => HOSTING_PATIENCE_SECONDS,
            Request::Session(_) => SAVING_PATIENCE_SECONDS,
            _ => PATIENCE_SECONDS,
        };
        let mut exchange = locked(&self.exchange);
        let deadline_ns = Some(now_ns() + seconds * SECOND_NS);
        let answer = self
            .send(&mut exchange, request, descriptors, deadline_ns)
            .and_then(|number| self.await_reply(&mut exchange, number, deadline_ns));
        accepted(self.answered(answer, seconds)?)
    }

    /// Sends a request, and returns its number: its answer is taken [later](Self::finish), or the
    /// request [abandoned](Self::abandon). Others may be asked before.
    pub(crate) fn start(
        &self,
        request: Request,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<u32, Error> {
        if self.is_gone() {
            return Err(Error::ServerGone);
        }
        let mut exchange = locked(&self.exchange);
        let deadline_ns = now_ns() + PATIENCE_SECONDS * SECOND_NS;
        let number = self.send(&mut exchange, request, descriptors, Some(deadline_ns));
        let number = self.answered(number, PATIENCE_SECONDS)?;
        let brings_memory = !descriptors.is_empty();
        exchange.started.push(Started { number, brings_memory, deadline_ns, answer: None });
        Ok(number)
    }

    /// Waits, in bounded time, for the answer to a request that was started. A refusal is an error.
    pub(crate) fn finish(&self, number: u32) -> Result<Answer, Error> {
        let mut exchange = locked(&self.exchange);
        let answer = match exchange.take_started(number) {
            Some(answer) => Ok(answer),
            None => {
                let deadline_ns = Some(now_ns() + PATIENCE_SECONDS * SECOND_NS);
                self.await_reply(&mut exchange, number, deadline_ns)
            }
        };
        accepted(self.answered(answer, PATIENCE_SECONDS)?)
    }

    /// Returns the answer to a request that was started, if it was [read](Self::take_answers).
    /// `patiently`: however long that takes.
    ///
    /// # Errors
    /// A refusal; [`Error::Timeout`] if it should have come by now.
    pub(crate) fn try_finish(&self, number: u32, patiently: bool) -> Result<Option<Answer>, Error> {
        let mut exchange = locked(&self.exchange);
        let started = exchange.started.iter().find(|started| started.number == number);
        let Some(started) = started.filter(|started| started.answer.is_none()) else {
            return exchange.take_started(number).map(accepted).transpose();
        };
        if patiently || now_ns() < started.deadline_ns {
            return Ok(None);
        }
        exchange.take_started(number);
        Err(Error::Timeout { seconds: PATIENCE_SECONDS })
    }

    /// The answer to a request that was started is not wanted.
    pub(crate) fn abandon(&self, number: u32) {
        locked(&self.exchange).take_started(number);
    }

    /// Reads what has come, which is for requests that were started.
    ///
    /// # Errors
    /// [`Error::ServerGone`] once the connection has ended.
    pub(crate) fn take_answers(&self) -> Result<(), Error> {
        let mut exchange = locked(&self.exchange);
        loop {
            let taken = match self.socket.try_receive(&mut exchange.buffer) {
                Err(SocketError::NotReady) => return Ok(()),
                received => exchange.note(received, None),
            };
            self.answered(taken, PATIENCE_SECONDS)?;
        }
    }

    fn answered<T>(&self, answer: Result<T, Failure>, seconds: u64) -> Result<T, Error> {
        match answer {
            Ok(answer) => Ok(answer),
            Err(Failure::Socket(error)) => {
                let error = socket_error(error, seconds);
                if matches!(error, Error::ServerGone) {
                    self.note_gone();
                }
                Err(error)
            }
            Err(Failure::Malformed) => Err(Error::Protocol("its answer is not a reply")),
        }
    }

    /// Sends a request whose reply is [`Reply::Done`].
    pub(crate) fn request(&self, request: Request) -> Result<(), Error> {
        match self.ask(request, &[])? {
            Reply::Done => Ok(()),
            _ => Err(Error::OTHER_REPLY),
        }
    }

    /// Sends a request; returns its number.
    fn send(
        &self,
        exchange: &mut Exchange,
        request: Request,
        descriptors: &[BorrowedFd<'_>],
        deadline_ns: Option<u64>,
    ) -> Result<u32, Failure> {
        exchange.number = exchange.number.wrapping_add(1);
        let packet = encode(&Numbered { number: exchange.number, message: request });
        self.socket.send_until(&packet, descriptors, deadline_ns)?;
        Ok(exchange.number)
    }

    /// Receives until the reply to this request has come.
    fn await_reply(
        &self,
        exchange: &mut Exchange,
        number: u32,
        deadline_ns: Option<u64>,
    ) -> Result<Answer, Failure> {
        loop {
            let received = self.socket.receive_until(&mut exchange.buffer, deadline_ns);
            if let Some(answer) = exchange.note(received, Some(number))? {
                return Ok(answer);
            }
        }
    }

    /// Records that the connection has ended, so that every later request fails at once.
    pub(crate) fn note_gone(&self) {
        self.gone.store(true, Ordering::Release);
    }

    /// Returns whether the connection has ended.
    pub(crate) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }
}

/// A refusal is an error.
fn accepted(answer: Answer) -> Result<Answer, Error> {
    match answer {
        (Reply::Error(error), _) => Err(Error::Refused(error)),
        answer => Ok(answer),
    }
}

impl Exchange {
    /// Takes a packet of the server: returns the answer to the request that is `awaited`, and keeps
    /// that to one that was started. Any other belongs to a request that was abandoned.
    fn note(
        &mut self,
        received: Result<Received, SocketError>,
        awaited: Option<u32>,
    ) -> Result<Option<Answer>, Failure> {
        let Received { bytes, descriptors } = match received {
            // What was answered counts all the same.
            Err(SocketError::NoDescriptor { bytes }) => Received { bytes, descriptors: Vec::new() },
            received => received?,
        };
        let packet = self.buffer.get(..bytes).unwrap_or_default();
        let reply: Numbered<Reply> = decode(packet).map_err(|_| Failure::Malformed)?;
        let answer = (reply.message, descriptors);
        // Number 0 answers a packet that the server could not read: too long, or with more
        // descriptors than it had room for. It reads them in their order.
        let is_unread = reply.number == 0;
        let started = self.started.iter_mut().find(|started| match is_unread {
            true => started.brings_memory && started.answer.is_none(),
            false => started.number == reply.number,
        });
        if let Some(started) = started {
            started.answer = Some(answer);
            return Ok(None);
        }
        let is_awaited = awaited.is_some_and(|awaited| is_unread || reply.number == awaited);
        Ok(is_awaited.then_some(answer))
    }

    /// Forgets a request that was started; returns the answer to it, if that has come.
    fn take_started(&mut self, number: u32) -> Option<Answer> {
        let place = self.started.iter().position(|started| started.number == number)?;
        self.started.remove(place).answer
    }
}

enum Failure {
    Socket(SocketError),
    Malformed,
}

impl From<SocketError> for Failure {
    fn from(error: SocketError) -> Self {
        Self::Socket(error)
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use proto::request::RequestError;

    use super::*;

    fn pair() -> (Requests, Connection) {
        let (socket, server) = Connection::pair().unwrap();
        (Requests::new(socket), server)
    }

    fn reply(server: &Connection, number: u32, message: Reply) {
        server.try_send(&encode(&Numbered { number, message }), &[]).unwrap();
    }

    #[test]
    fn the_late_answer_to_a_request_that_was_given_up_is_skipped() {
        let (requests, server) = pair();
        reply(&server, u32::MAX, Reply::Port(1));
        reply(&server, 1, Reply::Port(2));
        assert_eq!(requests.ask(Request::Stop, &[]).unwrap(), Reply::Port(2));
    }

    #[test]
    fn the_reply_to_what_was_started_is_taken_once_it_has_come() {
        let (requests, server) = pair();
        let started = requests.start(Request::Status, &[]).unwrap();
        let taken = || requests.try_finish(started, false).unwrap().map(|(reply, _)| reply);
        requests.take_answers().unwrap();
        assert_eq!(taken(), None, "it does not wait");
        // What is unread when a socket is closed would be an error at the other end.
        server.try_receive(&mut [0; MAX_PACKET_BYTES]).unwrap();
        reply(&server, started, Reply::Port(2));
        drop(server);
        assert!(matches!(requests.take_answers(), Err(Error::ServerGone)));
        assert_eq!(taken(), Some(Reply::Port(2)), "it had come before");
        assert_eq!(taken(), None, "once");
    }

    #[test]
    fn what_the_server_could_not_read_is_the_first_request_that_brought_memory() {
        let (requests, server) = pair();
        let memory = std::fs::File::open("/dev/null").unwrap();
        let plain = requests.start(Request::Status, &[]).unwrap();
        let brings = requests.start(Request::Status, &[memory.as_fd()]).unwrap();
        reply(&server, 0, Reply::Error(RequestError::Quantum(0)));
        reply(&server, brings + 1, Reply::Port(7));
        assert_eq!(requests.ask(Request::Stop, &[]).unwrap(), Reply::Port(7));
        assert!(matches!(requests.try_finish(brings, false), Err(Error::Refused(_))));
        assert!(requests.try_finish(plain, false).unwrap().is_none());
    }

    #[test]
    fn an_answer_that_does_not_come_in_time_is_not_awaited_for_ever() {
        let (requests, _server) = pair();
        let started = requests.start(Request::Status, &[]).unwrap();
        locked(&requests.exchange).started[0].deadline_ns = now_ns();
        assert!(requests.try_finish(started, true).unwrap().is_none());
        assert!(matches!(requests.try_finish(started, false), Err(Error::Timeout { .. })));
        assert!(requests.try_finish(started, false).unwrap().is_none());
    }

    #[test]
    fn the_reply_to_what_was_abandoned_is_skipped() {
        let (requests, server) = pair();
        let started = requests.start(Request::Status, &[]).unwrap();
        requests.abandon(started);
        reply(&server, started, Reply::Port(2));
        requests.take_answers().unwrap();
        assert!(locked(&requests.exchange).started.is_empty());
        reply(&server, started + 1, Reply::Port(3));
        assert_eq!(requests.ask(Request::Stop, &[]).unwrap(), Reply::Port(3));
    }

    #[test]
    fn the_reply_to_what_was_started_is_kept_while_others_are_asked() {
        let (requests, server) = pair();
        let started = [0, 1].map(|_| requests.start(Request::Status, &[]).unwrap());
        let finished = |number| requests.finish(number).map(|(reply, _)| reply);
        reply(&server, started[1], Reply::Port(6));
        reply(&server, started[0], Reply::Port(5));
        reply(&server, started[1] + 1, Reply::Port(7));
        assert_eq!(requests.ask(Request::Stop, &[]).unwrap(), Reply::Port(7));
        assert_eq!(finished(started[0]).unwrap(), Reply::Port(5));
        assert_eq!(finished(started[1]).unwrap(), Reply::Port(6));
        let last = requests.start(Request::Status, &[]).unwrap();
        reply(&server, last, Reply::Error(RequestError::Quantum(0)));
        assert!(matches!(finished(last), Err(Error::Refused(_))));
        let unanswered = requests.start(Request::Status, &[]).unwrap();
        drop(server);
        assert!(matches!(finished(unanswered), Err(Error::ServerGone)));
        assert!(matches!(requests.start(Request::Status, &[]), Err(Error::ServerGone)));
    }

    #[test]
    fn a_request_that_the_server_could_not_read_is_refused_in_its_words() {
        let (requests, server) = pair();
        reply(&server, 0, Reply::Error(RequestError::Malformed("too long".into())));
        assert!(requests.request(Request::Stop).unwrap_err().to_string().contains("too long"));
    }

    #[test]
    fn a_refusal_is_the_servers_own_words() {
        let (requests, server) = pair();
        reply(&server, 1, Reply::Error(RequestError::Quantum(0)));
        let error = requests.request(Request::SetQuantum { frames: 0 }).unwrap_err();
        assert_eq!(error.to_string(), RequestError::Quantum(0).to_string());
    }

    #[test]
    fn after_the_servers_end_every_request_fails_at_once() {
        let (requests, server) = pair();
        drop(server);
        for _ in 0..2 {
            assert!(matches!(requests.request(Request::Stop), Err(Error::ServerGone)));
        }
        assert!(requests.is_gone());
    }

    #[test]
    fn a_socket_without_a_listener_is_a_missing_server() {
        let path = std::env::temp_dir().join(format!("consort-missing-{}", std::process::id()));
        let error = introduce_at(&path, "studio", Role::Observer).unwrap_err();
        assert!(matches!(error, Error::NoServer { server, .. } if server == "studio"));
    }

    #[test]
    fn a_server_is_named_by_a_name_that_is_no_path() {
        assert_eq!(server_name(Some("studio")).unwrap(), "studio");
        assert!(matches!(server_name(Some("../studio")), Err(Error::Name(_))));
    }
}
