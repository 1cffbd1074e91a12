//! Sessions that are announced are played.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, anyhow};
use client::{OpenOptions, Session};
use convert::{ChannelMap, SampleFormat, Standard};
use pulse::{RemoteCookie, RemoteFormat, RemoteOptions, play_remotely};
use sys::clock::now_ns;
use sys::poll::Waker;
use sys::socket::receive_datagrams;

use super::ANNOUNCEMENTS_PORT;
use super::description::Description;
use super::sessions::{Change, Sessions};
use super::source::PacketSource;
use crate::links::{Link, LinkShape, LinkState, Links, Parts, Program, spawn};
use crate::tunnels::FarSink;

/// The longest announcement that is read, bytes; what is longer is cut off.
const MOST_BYTES: usize = 8 << 10;

/// What is played, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReceiveOptions {
    /// Where the front end listens, in PulseAudio's words.
    pub(crate) front_end: String,
    pub(crate) sink: Option<String>,
    /// Where sessions are announced.
    pub(crate) group: IpAddr,
    /// From when a frame arrives, if it comes as fast as it can, until it is heard, ms.
    pub(crate) latency_ms: u32,
}

/// Listens for announcements, and plays sessions, each on a thread of its own.
///
/// # Errors
/// The group cannot be joined.
pub(crate) fn start(
    session: Session,
    options: ReceiveOptions,
    open: &OpenOptions,
) -> anyhow::Result<Links> {
    let at = SocketAddr::new(options.group, ANNOUNCEMENTS_PORT);
    let socket = receive_datagrams(at).with_context(|| format!("cannot listen at {at}"))?;
    let title = format!("sessions announced at {at}");
    let parts = Parts::new(session, title, Some(options.latency_ms));
    Links::begin(parts, open, |program| {
        let Program { connection: _, state } = program()?;
        let sessions = Sessions::default();
        let receiver = Receiver { socket, options, sessions, playing: BTreeMap::new(), state };
        spawn(Arc::clone(&receiver.state), move || receiver.run())
    })
}

/// Plays sessions. On its own thread.
struct Receiver {
    socket: UdpSocket,
    options: ReceiveOptions,
    sessions: Sessions,
    playing: BTreeMap<u64, Playing>,
    state: Arc<LinkState>,
}

/// A session that is played.
struct Playing {
    /// Ends it.
    end: Arc<Waker>,
    thread: JoinHandle<()>,
}

impl Receiver {
    /// Plays until the socket fails.
    ///
    /// # Errors
    /// It has.
    fn run(mut self) -> anyhow::Result<()> {
        let mut bytes = vec![0; MOST_BYTES];
        loop {
            let due_ns = self.sessions.due_ns();
            let left = due_ns.map(|due_ns| due_ns.saturating_sub(now_ns()).max(1_000_000));
            self.socket.set_read_timeout(left.map(Duration::from_nanos))?;
            let heard = self.socket.recv_from(&mut bytes);
            let now_ns = now_ns();
            self.collect(now_ns);
            let mut changes = self.sessions.expire(now_ns);
            match heard {
                Ok((count, from)) => {
                    changes.extend(self.sessions.heard(now_ns, from.ip(), &bytes[..count]));
                }
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => {}
                    _ => return Err(error).context("cannot hear announcements"),
                },
            }
            for change in changes {
                self.change(change, now_ns);
            }
        }
    }

    /// Notes which have ended by themselves: the sink has gone, or somebody has ended the stream.
    fn collect(&mut self, now_ns: u64) {
        let before = self.playing.len();
        let sessions = &mut self.sessions;
        self.playing.retain(|number, playing| {
            let has_ended = playing.thread.is_finished();
            if has_ended {
                sessions.ended(*number, now_ns);
            }
            !has_ended
        });
        self.note(before);
    }

    fn change(&mut self, change: Change, now_ns: u64) {
        let before = self.playing.len();
        match change {
            Change::Begin(number, description) => match self.begin(description) {
                Ok(playing) => drop(self.playing.insert(number, playing)),
                Err(_) => self.sessions.ended(number, now_ns),
            },
            Change::End(number) => {
                if let Some(playing) = self.playing.remove(&number) {
                    playing.end.wake();
                }
            }
        }
        self.note(before);
    }

    fn note(&self, before: usize) {
        let plays = !self.playing.is_empty();
        if plays == (before == 0) {
            self.state.set_plays(plays);
        }
    }

    fn begin(&self, description: Description) -> anyhow::Result<Playing> {
        let end = Arc::new(Waker::new()?);
        let (options, state) = (self.options.clone(), Arc::new(self.state.beside()));
        let of_thread = Arc::clone(&end);
        let run = move || {
            // It is tried again when it is announced again.
            let _ = play(&description, &options, of_thread, state);
        };
        let thread = thread::Builder::new().name("consort-rtp".into()).spawn(run)?;
        Ok(Playing { end, thread })
    }
}

/// Plays a session until it is over.
fn play(
    description: &Description,
    options: &ReceiveOptions,
    end: Arc<Waker>,
    state: Arc<LinkState>,
) -> anyhow::Result<()> {
    let Description { name, to, samples, .. } = description;
    let channels = usize::try_from(samples.channels)?;
    let map = ChannelMap::extended(Standard::Aiff, channels);
    let map = map.ok_or_else(|| anyhow!("{channels} channels are too many"))?;
    let rate_hz = samples.rate_hz;
    let format = SampleFormat::Linear(dsp::Format::FloatLe);
    let format = RemoteFormat { format, rate_hz, map };
    let latency_ns = u64::from(options.latency_ms) * 1_000_000;
    let socket = receive_datagrams(*to)?;
    let source = PacketSource::new(socket, end, *samples, latency_ns)?;
    let remote = RemoteOptions {
        server: options.front_end.clone(),
        cookie: RemoteCookie::OfUser,
        device: options.sink.clone(),
        program: "RTP receiver".into(),
        name: format!("RTP Stream ({name})"),
        format,
        // What is left of the latency is for packets that are late.
        buffer: Some(Duration::from_nanos(latency_ns / 2)),
        corked: true,
    };
    let sink = FarSink::new(play_remotely(&remote)?, format, latency_ns)?;
    let (source_hz, sink_hz, plays) = (rate_hz, rate_hz, channels);
    let shape = LinkShape { channels, source_hz, sink_hz, plays, matrix: None, latency_ns };
    Link::new(source, sink, shape, state)?.run(|_| Ok(()))?;
    Ok(())
}
