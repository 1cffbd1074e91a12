//! Raw samples over TCP: what a socket sends is played, and what is recorded is sent to it, as by
//! PulseAudio's `module-simple-protocol-tcp`. There is nothing but samples, so no peer is asked who
//! it is.
//!
//! Each connection is a program of the front end, with streams that users see and move.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use client::{OpenOptions, Session};
use pulse::{
    RemoteCookie, RemoteEvent, RemoteFormat, RemoteOptions, RemoteReader, play_remotely,
    record_remotely,
};
use sys::socket::prepare_accepted;

use crate::links::{LinkState, Links, Parts, Program, spawn};

/// Connections at once, as with PulseAudio.
const MAX_CONNECTIONS: usize = 10;
/// How much of what is played waits at the front end, and how much is recorded at once.
const PLAYED: Duration = Duration::from_millis(200);
const RECORDED: Duration = Duration::from_millis(25);
/// Bytes that are read at once, at most.
const READ_BYTES: usize = 16 << 10;
/// How long a socket may take for what it is sent: one that reads nothing is disconnected.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the last frames may take to be heard.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);
/// Things that the front end says and nobody has looked at, at most.
const MOST_WAITING: usize = 256;

/// What sockets are connected with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SimpleOptions {
    /// Where it listens.
    pub(crate) at: SocketAddr,
    /// Where the front end listens, in PulseAudio's words.
    pub(crate) front_end: String,
    pub(crate) sink: Option<String>,
    pub(crate) source: Option<String>,
    pub(crate) plays: bool,
    pub(crate) records: bool,
    pub(crate) format: RemoteFormat,
}

impl SimpleOptions {
    fn remote(&self, device: Option<&String>, buffer: Duration, from: SocketAddr) -> RemoteOptions {
        RemoteOptions {
            server: self.front_end.clone(),
            cookie: RemoteCookie::OfUser,
            device: device.cloned(),
            program: format!("Simple client ({from})"),
            name: "raw samples".into(),
            format: self.format,
            buffer: Some(buffer),
            corked: false,
        }
    }
}

/// Listens, and serves sockets on threads of their own.
///
/// # Errors
/// Another program listens there.
pub(crate) fn start(
    session: Session,
    options: SimpleOptions,
    open: &OpenOptions,
) -> anyhow::Result<Links> {
    let listener = listen(options.at)?;
    let description = format!("raw samples at {}", listener.local_addr()?);
    let parts = Parts::new(session, description, None);
    Links::begin(parts, open, |program| {
        let Program { connection: _, state } = program()?;
        spawn(Arc::clone(&state), move || accept(&listener, &Arc::new(options), &state))
    })
}

/// Listens at an address; at all of IPv4 if the machine has no IPv6.
fn listen(at: SocketAddr) -> anyhow::Result<TcpListener> {
    let of_ipv4 = || {
        let all = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), at.port());
        if at.ip().is_unspecified() { TcpListener::bind(all).ok() } else { None }
    };
    match TcpListener::bind(at) {
        Ok(listener) => Ok(listener),
        Err(error) if error.kind() == ErrorKind::AddrInUse => {
            Err(error).with_context(|| format!("cannot listen at {at}"))
        }
        Err(error) => of_ipv4().ok_or(error).with_context(|| format!("cannot listen at {at}")),
    }
}

fn accept(
    listener: &TcpListener,
    options: &Arc<SimpleOptions>,
    state: &Arc<LinkState>,
) -> anyhow::Result<()> {
    let connected = Arc::new(AtomicUsize::new(0));
    loop {
        let (socket, from) = match listener.accept() {
            Ok(accepted) => accepted,
            Err(error) => match error.kind() {
                ErrorKind::Interrupted | ErrorKind::ConnectionAborted => continue,
                _ => return Err(error).context("cannot accept connections"),
            },
        };
        // MUTATION: simple.any_number_of_connections
        let is_full = connected.load(Ordering::Relaxed) >= MAX_CONNECTIONS;
        if is_full || prepare(&socket).is_err() {
            continue;
        }
        connected.fetch_add(1, Ordering::Relaxed);
        state.set_plays(true);
        let (options, connected) = (Arc::clone(options), Arc::clone(&connected));
        let state = Arc::clone(state);
        let serve = move || {
            // Who has sent the samples sees the end of the connection.
            let _ = serve(&socket, &options, from);
            let _ = socket.shutdown(Shutdown::Both);
            if connected.fetch_sub(1, Ordering::Relaxed) == 1 {
                state.set_plays(false);
            }
        };
        thread::Builder::new().name("consort-simple".into()).spawn(serve)?;
    }
}

fn prepare(socket: &TcpStream) -> std::io::Result<()> {
    prepare_accepted(socket)?;
    socket.set_nonblocking(false)?;
    socket.set_write_timeout(Some(WRITE_TIMEOUT))
}

/// Serves one socket until it, or one of its streams, ends.
fn serve(socket: &TcpStream, options: &SimpleOptions, from: SocketAddr) -> anyhow::Result<()> {
    let recording = match options.records {
        true => {
            let remote = options.remote(options.source.as_ref(), RECORDED, from);
            Some(record_remotely(&remote)?)
        }
        false => None,
    };
    thread::scope(|scope| {
        let writer = recording.map(|(writer, reader)| {
            scope.spawn(|| {
                let _ = send(socket, reader);
                let _ = socket.shutdown(Shutdown::Both);
            });
            writer
        });
        let played = match options.plays {
            true => play(socket, options, from),
            false => read_nothing(socket),
        };
        // Ends the other thread as well.
        drop(writer);
        played
    })
}

/// Reads as fast as samples are played, to the end, and has them heard.
fn play(mut socket: &TcpStream, options: &SimpleOptions, from: SocketAddr) -> anyhow::Result<()> {
    let remote = options.remote(options.sink.as_ref(), PLAYED, from);
    let (mut writer, mut reader) = play_remotely(&remote)?;
    let (say, said) = sync_channel(MOST_WAITING);
    thread::scope(|scope| {
        scope.spawn(move || {
            loop {
                let event = reader.listen();
                let is_last = matches!(event, RemoteEvent::Ended(_));
                if say.send(event).is_err() || is_last {
                    // A socket that sends nothing is not waited for any more.
                    let _ = socket.shutdown(Shutdown::Read);
                    break;
                }
            }
        });
        let mut wanted = 0_u64;
        let mut whole = WholeFrames::new(options.format.frame_bytes());
        let mut bytes = vec![0; READ_BYTES];
        let played = loop {
            while wanted == 0 {
                match said.recv() {
                    Ok(RemoteEvent::Wanted(more)) => wanted += more,
                    Ok(RemoteEvent::Ended(reason)) => bail!("{reason}"),
                    Ok(_) => {}
                    Err(_) => bail!("the connection has ended"),
                }
            }
            let room = bytes.len().min(usize::try_from(wanted).unwrap_or(usize::MAX));
            match socket.read(&mut bytes[..room]) {
                Ok(0) => break Ok(()),
                Ok(count) => {
                    let frames = whole.take(&bytes[..count]);
                    wanted -= count as u64;
                    writer.push(&frames);
                    writer.send()?;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => break Err(error.into()),
            }
        };
        let number = writer.drain();
        writer.send()?;
        let deadline = Instant::now() + DRAIN_TIMEOUT;
        loop {
            match said.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(RemoteEvent::Drained(of)) if of == number => break,
                Ok(RemoteEvent::Ended(_)) | Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => break,
                Ok(_) => {}
            }
        }
        // Ends the other thread as well.
        drop(writer);
        played
    })
}

/// Sends what is recorded, until the socket has no room for long, or either has ended.
fn send(mut socket: &TcpStream, mut reader: RemoteReader) -> anyhow::Result<()> {
    loop {
        match reader.listen() {
            RemoteEvent::Samples(bytes) => socket.write_all(&bytes)?,
            RemoteEvent::Ended(reason) => bail!("{reason}"),
            _ => {}
        }
    }
}

/// Waits for the end of a socket that plays nothing: what it sends is left out.
fn read_nothing(mut socket: &TcpStream) -> anyhow::Result<()> {
    let mut bytes = [0; 1 << 10];
    loop {
        match socket.read(&mut bytes) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Puts bytes together to whole frames, however they come: pure.
#[derive(Debug)]
struct WholeFrames {
    frame_bytes: usize,
    rest: Vec<u8>,
}

impl WholeFrames {
    fn new(frame_bytes: usize) -> Self {
        Self { frame_bytes: frame_bytes.max(1), rest: Vec::new() }
    }

    /// Takes bytes, and returns the frames that are whole.
    fn take(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.rest.extend_from_slice(bytes);
        let whole = self.rest.len() - self.rest.len() % self.frame_bytes;
        self.rest.drain(..whole).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_whole_however_their_bytes_come() {
        let mut frames = WholeFrames::new(4);
        assert_eq!(frames.take(b"abc"), b"");
        assert_eq!(frames.take(b"defgh"), b"abcdefgh");
        assert_eq!(frames.take(b"i"), b"");
        assert_eq!(frames.take(b"jklmnop"), b"ijklmnop");
    }
}
