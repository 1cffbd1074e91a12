//! What a source records is sent in packets, and announced.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, bail};
use client::{OpenOptions, Session};
use pulse::{
    RemoteCookie, RemoteEvent, RemoteFormat, RemoteOptions, RemoteWriter, record_remotely,
};
use sys::socket::send_datagrams;

use super::ANNOUNCEMENTS_PORT;
use super::announcement::Announcement;
use super::description::{Description, Samples};
use super::packet::Packets;
use crate::links::{LinkState, Links, Parts, Program, spawn};
use crate::tunnels::far::listen;

/// The first port that is taken where none is given, and how many even ones are: PulseAudio's.
const FIRST_PORT: u16 = 46_000;
const PORTS: u64 = 512;
/// How much is recorded at once.
const RECORDED: Duration = Duration::from_millis(10);
/// Things that the front end says and nobody has looked at, at most.
const MOST_WAITING: usize = 256;
/// A source that has recorded nothing within this time is silent: what is left of a packet is sent.
const SILENT_AFTER: Duration = Duration::from_millis(100);
/// How often a session is announced, as by PulseAudio.
const ANNOUNCED_EVERY: Duration = Duration::from_secs(5);
/// From 1900, where the times of descriptions begin, to 1970, s.
const EPOCH_S: u64 = 2_208_988_800;

/// What is sent, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SendOptions {
    /// Where the front end listens, in PulseAudio's words.
    pub(crate) front_end: String,
    pub(crate) source: Option<String>,
    /// Source address on this machine; `None`: that of the route.
    pub(crate) from: Option<IpAddr>,
    pub(crate) to: IpAddr,
    /// `None`: one that is likely to be free.
    pub(crate) port: Option<u16>,
    /// Bytes of samples in a packet, at most.
    pub(crate) payload: usize,
    /// One more than the routers that a packet may pass.
    pub(crate) hops: u8,
    /// It is heard on this machine, too.
    pub(crate) loops: bool,
    /// Name of the session; `None`: the host's.
    pub(crate) name: Option<String>,
    pub(crate) format: RemoteFormat,
}

/// A session, announced until this value is dropped, when its end is.
#[derive(Debug)]
struct Announced {
    /// `None`: it has ended.
    socket: Mutex<Option<UdpSocket>>,
    version: u16,
    from: IpAddr,
    description: String,
}

impl Announced {
    fn datagram(&self, ends: bool) -> Vec<u8> {
        let Self { version, from, description, .. } = self;
        Announcement { ends, version: *version, from: *from, description }.write()
    }

    /// Announces it once more. One datagram that is lost is none too many.
    fn again(&self) {
        let socket = self.socket.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = socket.as_ref().map(|socket| socket.send(&self.datagram(false)));
    }

    fn end(&self) {
        let socket = self.socket.lock().unwrap_or_else(PoisonError::into_inner).take();
        let _ = socket.map(|socket| socket.send(&self.datagram(true)));
    }
}

/// The end of a session is announced when this value is dropped.
#[derive(Debug)]
struct EndsAnnounced(Arc<Announced>);

impl Drop for EndsAnnounced {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Returns a number that is another one each time, and hard to guess.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Records at the front end and sends, on a thread of its own.
///
/// # Errors
/// There is no route to the group; the front end refuses the recording.
pub(crate) fn start(
    session: Session,
    options: SendOptions,
    open: &OpenOptions,
) -> anyhow::Result<Links> {
    let SendOptions { front_end, source, from, to, port, payload, hops, loops, name, format } =
        options;
    let likely = FIRST_PORT + u16::try_from(random() % PORTS * 2)?;
    let to_packets = SocketAddr::new(to, port.unwrap_or(likely));
    let socket = send_datagrams(from, to_packets, hops, loops);
    let socket = socket.with_context(|| format!("cannot send to {to_packets}"))?;
    let to_announcements = SocketAddr::new(to, ANNOUNCEMENTS_PORT);
    let announcing = send_datagrams(from, to_announcements, hops, loops);
    let announcing = announcing.with_context(|| format!("cannot send to {to_announcements}"))?;
    let (writer, reader) = {
        let remote = RemoteOptions {
            server: front_end,
            cookie: RemoteCookie::OfUser,
            device: source,
            program: "RTP sender".into(),
            name: format!("RTP to {to_packets}"),
            format,
            buffer: Some(RECORDED),
            corked: false,
        };
        record_remotely(&remote)?
    };
    let samples = Samples::new(format.rate_hz, u32::try_from(format.map.channels())?);
    let home = socket.local_addr()?.ip();
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let since = since.as_secs() + EPOCH_S;
    let kind = if home.is_ipv4() { "IP4" } else { "IP6" };
    let hosts_name = || {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        format!("consort on {}", host.trim())
    };
    let description = Description {
        // The process, so that two sessions that begin in the same second are two.
        origin: format!("- {since}{} 0 IN {kind} {home}", std::process::id()),
        name: name.unwrap_or_else(hosts_name),
        to: to_packets,
        samples,
    };
    let announced = Arc::new(Announced {
        socket: Mutex::new(Some(announcing)),
        version: (random() >> 48) as u16,
        from: home,
        description: description.write(hops, since),
    });
    let numbers = [random(), random(), random()].map(|number| (number >> 32) as u32);
    let packets = Packets::new(numbers, samples.payload_type, format.frame_bytes(), payload);
    let title = format!("{} to {to_packets}", description.name);
    let parts = Parts {
        _ending: Some(Box::new(EndsAnnounced(Arc::clone(&announced)))),
        ..Parts::new(session, title, None)
    };
    Links::begin(parts, open, |program| {
        let Program { connection: _, state } = program()?;
        let said = listen(reader, MOST_WAITING)?;
        let sender = Sender { said, _writer: writer, packets, socket, announced };
        spawn(Arc::clone(&state), move || sender.run(&state))
    })
}

/// Sends what is recorded. On its own thread.
struct Sender {
    said: Receiver<RemoteEvent>,
    /// The recording ends with it.
    _writer: RemoteWriter,
    packets: Packets,
    socket: UdpSocket,
    announced: Arc<Announced>,
}

impl Sender {
    /// Sends until the recording ends.
    ///
    /// # Errors
    /// Why it has ended.
    fn run(mut self, state: &LinkState) -> anyhow::Result<()> {
        let mut announce_at = Instant::now();
        let mut recorded_at = None;
        loop {
            if Instant::now() >= announce_at {
                self.announced.again();
                announce_at = Instant::now() + ANNOUNCED_EVERY;
            }
            let silent_at = recorded_at.map(|at| at + SILENT_AFTER);
            let wake_at = silent_at.map_or(announce_at, |at| announce_at.min(at));
            let said = self.said.recv_timeout(wake_at.saturating_duration_since(Instant::now()));
            // A packet for which the network has no room is lost, like any other.
            let send = |packet: &[u8]| drop(self.socket.send(packet));
            match said {
                Ok(RemoteEvent::Samples(samples)) => {
                    if recorded_at.is_none() {
                        state.set_plays(true);
                    }
                    self.packets.push(&samples, send);
                    recorded_at = Some(Instant::now());
                }
                Ok(RemoteEvent::Ended(reason)) => bail!("{reason}"),
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => {
                    if silent_at.is_some_and(|at| at <= Instant::now()) {
                        self.packets.flush(send);
                        recorded_at = None;
                        state.set_plays(false);
                    }
                }
                Err(RecvTimeoutError::Disconnected) => bail!("the recording has ended"),
            }
        }
    }
}
