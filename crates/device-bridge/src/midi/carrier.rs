//! The thread between the hardware and the rings: assigns a frame to each message that arrives, and
//! sends messages when they are due.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::sync::{Mutex, PoisonError};

use alsa_rs::Rawmidi;
use client::Session;
use rt::shm::CycleInfo;
use rtrb::{Consumer, Producer};
use sys::poll::{Event, Poller};

use super::messages::{CHUNK_BYTES, CableRate};
use super::{Endpoint, Shared, records};

/// The poller's token of the waker; cables use smaller tokens.
pub(super) const WAKER: u64 = u64::MAX - 1;

/// The hardware side of the rings: ALSA's sequencer, or raw devices. Events of their poller report
/// arrived messages. Thread: carrier.
pub(super) trait Cables {
    /// Connects an endpoint with its line; an error is a sentence.
    fn join(&mut self, join: PendingJoin) -> Result<(), String>;

    /// Disconnects each endpoint that has no line.
    fn keep(&mut self, lines: &Lines);

    /// Receives everything that has arrived.
    fn receive(&mut self, ready: &[Event], inbox: &mut Inbox<'_>);

    /// Sends bytes, whole messages or a part of a long one; returns false if they are lost. Does
    /// not wait.
    fn send(&mut self, endpoint: Endpoint, bytes: &[u8]) -> bool;

    /// Continues with what could not be sent at once; returns when to try again, if necessary.
    fn go_on(&mut self) -> Option<u64> {
        None
    }
}

/// Opens the cables, on the carrier's thread: not all of their parts can change threads.
pub(super) type Opener = Box<dyn FnOnce() -> alsa_rs::Result<Box<dyn Cables>> + Send>;

/// A change of the hardware.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HardwareEvent {
    /// An endpoint appeared.
    Appeared,
    /// This endpoint disappeared.
    Disappeared(Endpoint),
    /// All endpoints of this owner disappeared.
    OwnerDisappeared(u32),
}

/// The thread's ends of the ports' rings.
#[derive(Debug, Default)]
pub(super) struct Lines {
    pub(super) sources: HashMap<Endpoint, SourceLine>,
    pub(super) sinks: HashMap<Endpoint, SinkLine>,
    /// Endpoints that the carrier has not connected yet.
    pub(super) pending_joins: Vec<PendingJoin>,
}

/// An endpoint to connect, with the device if it is a raw one.
#[derive(Debug)]
pub(super) enum PendingJoin {
    /// Messages of the endpoint go to the graph.
    Source(Endpoint, Option<Rawmidi>),
    /// Messages of the graph go to the endpoint.
    Sink(Endpoint, Option<Rawmidi>),
}

#[derive(Debug)]
pub(super) struct SourceLine {
    pub(super) ring: Producer<u8>,
    /// Frame of the newest message.
    pub(super) last_frame: u64,
}

#[derive(Debug)]
pub(super) struct SinkLine {
    pub(super) ring: Consumer<u8>,
    pub(super) rate: CableRate,
}

impl PendingJoin {
    pub(super) fn endpoint(&self) -> Endpoint {
        match self {
            Self::Source(endpoint, _) | Self::Sink(endpoint, _) => *endpoint,
        }
    }
}

/// The destination of arrived messages.
pub(super) struct Inbox<'a> {
    lines: &'a mut Lines,
    info: Option<CycleInfo>,
    shared: &'a Shared,
    news: &'a Sender<HardwareEvent>,
}

impl Inbox<'_> {
    /// Returns the timestamp of what was just read: the kernel's if there is one, and never in the
    /// future.
    pub(super) fn timestamp_ns(&self, kernel_ns: Option<u64>) -> u64 {
        let now_ns = sys::clock::now_ns();
        let Some(kernel_ns) = kernel_ns else { return now_ns };
        self.shared.worst_read_ns.fetch_max(now_ns.saturating_sub(kernel_ns), Ordering::Relaxed);
        self.shared.has_kernel_timestamps.store(true, Ordering::Relaxed);
        kernel_ns.min(now_ns)
    }

    /// Passes on a message that has arrived, or a part of a long one.
    pub(super) fn message(&mut self, endpoint: Endpoint, timestamp_ns: u64, message: &[u8]) {
        let Some(line) = self.lines.sources.get_mut(&endpoint) else { return };
        let frame = self.info.map_or(0, |info| info.frame_at(timestamp_ns));
        // The clocks agree to some microseconds only; messages keep their order.
        line.last_frame = frame.max(line.last_frame);
        if !records::push(&mut line.ring, line.last_frame, message) {
            self.shared.lose(1);
        }
    }

    /// Counts what the kernel had no room for.
    pub(super) fn lost(&self) {
        self.shared.lose(1);
    }

    pub(super) fn tell(&self, news: HardwareEvent) {
        // At the end, the receiver may be gone.
        let _ = self.news.send(news);
    }
}

/// Bytes to be sent: when, their order among equal times, where to, and when they were due if that
/// is measured.
type Outgoing = Reverse<(u64, u64, Endpoint, Option<u64>, Vec<u8>)>;

pub(super) struct Carrier {
    cables: Box<dyn Cables>,
    outgoing: BinaryHeap<Outgoing>,
    count: u64,
}

impl Carrier {
    pub(super) fn new(cables: Box<dyn Cables>) -> Self {
        Self { cables, outgoing: BinaryHeap::new(), count: 0 }
    }

    /// Carries messages until it is stopped.
    pub(super) fn run(
        mut self,
        poller: &Poller,
        lines: &Mutex<Lines>,
        shared: &Shared,
        session: &Session,
        news: &Sender<HardwareEvent>,
    ) {
        if let Some(priority) = session.engine().and_then(rt::shm::EngineSegment::client_priority) {
            // Without a real-time priority, messages are as late as the machine is busy, which is
            // reported.
            let _ = sys::thread::set_fifo(0, priority);
        }
        let mut ready = Vec::new();
        while !shared.stop.load(Ordering::Relaxed) {
            let due_ns = self.outgoing.peek().map(|Reverse((timestamp_ns, ..))| *timestamp_ns);
            let again_ns = self.cables.go_on();
            let wake_ns = due_ns.into_iter().chain(again_ns).min();
            if poller.wait(&mut ready, wake_ns).is_err() {
                return;
            }
            shared.waker.reset();
            let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
            for join in std::mem::take(&mut lines.pending_joins) {
                let endpoint = join.endpoint();
                if let Err(refusal) = self.cables.join(join) {
                    shared.refusals().insert(endpoint, refusal);
                }
            }
            self.cables.keep(&lines);
            let mut inbox = Inbox { lines: &mut lines, info: session.info(), shared, news };
            self.cables.receive(&ready, &mut inbox);
            self.collect(&mut lines);
            drop(lines);
            self.send(shared);
        }
    }

    /// Takes the graph's messages and assigns a send time to each.
    fn collect(&mut self, lines: &mut Lines) {
        let mut room = [0; super::ROOM_BYTES];
        for (endpoint, line) in &mut lines.sinks {
            while let Some((due_ns, length)) = records::next(&mut line.ring) {
                for chunk in records::take(&mut line.ring, length, &mut room).chunks(CHUNK_BYTES) {
                    let timestamp_ns = line.rate.send_time_ns(due_ns, chunk);
                    // A message that waits for the cable is not late.
                    let measured = Some(due_ns).filter(|due_ns| *due_ns == timestamp_ns);
                    self.count += 1;
                    self.outgoing.push(Reverse((
                        timestamp_ns,
                        self.count,
                        *endpoint,
                        measured,
                        chunk.to_vec(),
                    )));
                }
            }
        }
    }

    /// Sends what is due.
    fn send(&mut self, shared: &Shared) {
        while let Some(Reverse((timestamp_ns, ..))) = self.outgoing.peek() {
            let now_ns = sys::clock::now_ns();
            if *timestamp_ns > now_ns {
                return;
            }
            let Some(Reverse((_, _, endpoint, due_ns, bytes))) = self.outgoing.pop() else {
                return;
            };
            if let Some(due_ns) = due_ns {
                shared.worst_late_ns.fetch_max(now_ns.saturating_sub(due_ns), Ordering::Relaxed);
            }
            if !self.cables.send(endpoint, &bytes) {
                shared.lose(1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;
    use std::sync::mpsc::channel;

    use rtrb::RingBuffer;

    use super::*;

    const ENDPOINT: Endpoint = Endpoint { owner: 3, end: 1 };

    /// A cycle at 48 kHz; frame 48 000 passes at two seconds.
    fn info() -> CycleInfo {
        CycleInfo {
            quantum: 480,
            sample_rate_hz: 48_000,
            frames: 48_000,
            wakeup_ns: 2_000_000_000,
            next_wakeup_ns: 2_010_000_000,
            ..CycleInfo::default()
        }
    }

    #[test]
    fn a_messages_frame_follows_from_its_timestamp() {
        let (producer, mut ring) = RingBuffer::new(1024);
        let mut lines = Lines::default();
        lines.sources.insert(ENDPOINT, SourceLine { ring: producer, last_frame: 0 });
        let (shared, (news, _heard)) = (Shared::new().unwrap(), channel());
        let mut inbox =
            Inbox { lines: &mut lines, info: Some(info()), shared: &shared, news: &news };
        for (timestamp_ns, message) in
            [(1_999_000_000, 1), (2_001_000_000, 2), (2_000_990_000, 3), (2_002_000_000, 4)]
        {
            inbox.message(ENDPOINT, timestamp_ns, &[message]);
            inbox.message(Endpoint { owner: 4, ..ENDPOINT }, timestamp_ns, &[0]);
        }
        for expected in [(47_952, 1), (48_048, 2), (48_048, 3), (48_096, 4)] {
            let (frame, length) = records::next(&mut ring).unwrap();
            let mut room = [0; 4];
            assert_eq!(
                (frame, records::take(&mut ring, length, &mut room)),
                (expected.0, &[expected.1][..])
            );
        }
        assert_eq!(records::next(&mut ring), None);
        assert_eq!(shared.lost.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn the_kernels_timestamp_is_preferred() {
        let (shared, (news, _heard), mut lines) =
            (Shared::new().unwrap(), channel(), Lines::default());
        let inbox = Inbox { lines: &mut lines, info: None, shared: &shared, news: &news };
        let now_ns = sys::clock::now_ns();
        assert!(inbox.timestamp_ns(None) >= now_ns);
        assert!(
            !shared.has_kernel_timestamps.load(Ordering::Relaxed),
            "the kernel has timestamped nothing"
        );
        assert_eq!(inbox.timestamp_ns(Some(now_ns - 1_000_000)), now_ns - 1_000_000);
        assert!(
            inbox.timestamp_ns(Some(now_ns + 60_000_000_000)) < now_ns + 60_000_000_000,
            "no timestamp is in the future"
        );
        assert!(shared.has_kernel_timestamps.load(Ordering::Relaxed));
        assert!(shared.worst_read_ns.load(Ordering::Relaxed) >= 1_000_000);
    }

    type SentMessages = Vec<(Endpoint, Vec<u8>)>;

    /// Accepts and records all messages.
    #[derive(Default)]
    struct Everything(Rc<RefCell<SentMessages>>);

    impl Cables for Everything {
        fn join(&mut self, _: PendingJoin) -> Result<(), String> {
            Ok(())
        }

        fn keep(&mut self, _: &Lines) {}

        fn receive(&mut self, _: &[Event], _: &mut Inbox<'_>) {}

        fn send(&mut self, endpoint: Endpoint, bytes: &[u8]) -> bool {
            self.0.borrow_mut().push((endpoint, bytes.to_vec()));
            true
        }
    }

    #[test]
    fn messages_are_sent_in_order_at_their_times() {
        let cables = Everything::default();
        let said = Rc::clone(&cables.0);
        let mut carrier = Carrier::new(Box::new(cables));
        let (mut producer, ring) = RingBuffer::new(4096);
        let mut lines = Lines::default();
        lines.sinks.insert(ENDPOINT, SinkLine { ring, rate: CableRate::default() });
        let (now_ns, shared) = (sys::clock::now_ns(), Shared::new().unwrap());
        let long = [[0xf0].to_vec(), vec![1; CHUNK_BYTES], [0xf7].to_vec()].concat();
        for (due_ns, message) in [
            (now_ns - 2_000_000, &[0x90, 1, 2][..]),
            (now_ns - 1_000_000, &long[..]),
            (now_ns + 3_600_000_000_000, &[0xfa][..]),
        ] {
            assert!(records::push(&mut producer, due_ns, message));
        }
        carrier.collect(&mut lines);
        carrier.send(&shared);
        let said = said.borrow();
        assert!(said.iter().all(|(endpoint, _)| *endpoint == ENDPOINT));
        let bytes: Vec<u8> = said.iter().flat_map(|(_, bytes)| bytes.iter().copied()).collect();
        assert_eq!(bytes, [&[0x90, 1, 2][..], &long[..]].concat());
        assert!(said.iter().all(|(_, bytes)| bytes.len() <= CHUNK_BYTES));
        assert_eq!(carrier.outgoing.len(), 1, "what is due in an hour waits");
        assert!(shared.worst_late_ns.load(Ordering::Relaxed) >= 2_000_000);
    }
}
