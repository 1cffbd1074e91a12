//! The thread between the hardware and the rings: gives what arrives its frame, and lets go what is due.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::sync::{Mutex, PoisonError};

use alsa::Rawmidi;
use client::Session;
use rt::shm::CycleInfo;
use rtrb::{Consumer, Producer};
use sys::poll::{Event, Poller};

use super::messages::{CHUNK_BYTES, Pace};
use super::{Place, Shared, records};

/// What the poller says when the thread is woken; cables take smaller tokens.
pub(super) const WAKER: u64 = u64::MAX - 1;

/// What is on the far side of the rings: ALSA's sequencer, or raw devices. They are told by their poller's events when
/// something has arrived. Thread: carrier.
pub(super) trait Cables {
    /// Carries between this place and its line from here on; an error is a sentence.
    fn join(&mut self, wish: Wish) -> Result<(), String>;

    /// Leaves each place that has no line any more.
    fn keep(&mut self, lines: &Lines);

    /// Takes in all that has arrived.
    fn receive(&mut self, ready: &[Event], inbox: &mut Inbox<'_>);

    /// Says these bytes, whole messages or a part of a long one; false if they are lost. Does not wait.
    fn send(&mut self, place: Place, bytes: &[u8]) -> bool;

    /// Goes on with what could not be said at once; when that is to be tried again, if it is.
    fn go_on(&mut self) -> Option<u64> {
        None
    }
}

/// Makes them, on the carrier's thread: not all that they are made of may change threads.
pub(super) type Opener = Box<dyn FnOnce() -> alsa::Result<Box<dyn Cables>> + Send>;

/// What the hardware tells of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum News {
    /// Something came.
    Came,
    /// This went.
    Went(Place),
    /// All places of this owner went.
    Left(u32),
}

/// The thread's ends of the ports' rings.
#[derive(Debug, Default)]
pub(super) struct Lines {
    pub(super) sources: HashMap<Place, SourceLine>,
    pub(super) sinks: HashMap<Place, SinkLine>,
    /// Lines that the carrier is still to join with their places.
    pub(super) wishes: Vec<Wish>,
}

/// What the carrier is to join, with the device if it is a raw one.
#[derive(Debug)]
pub(super) enum Wish {
    /// What is said here is to be heard.
    Hear(Place, Option<Rawmidi>),
    /// What the graph says is to be heard here.
    Say(Place, Option<Rawmidi>),
}

#[derive(Debug)]
pub(super) struct SourceLine {
    pub(super) ring: Producer<u8>,
    /// That of the newest message.
    pub(super) last_frame: u64,
}

#[derive(Debug)]
pub(super) struct SinkLine {
    pub(super) ring: Consumer<u8>,
    pub(super) pace: Pace,
}

impl Wish {
    pub(super) fn place(&self) -> Place {
        match self {
            Self::Hear(place, _) | Self::Say(place, _) => *place,
        }
    }
}

/// Where what has arrived goes.
pub(super) struct Inbox<'a> {
    lines: &'a mut Lines,
    info: Option<CycleInfo>,
    shared: &'a Shared,
    news: &'a Sender<News>,
}

impl Inbox<'_> {
    /// The date of what was just read: the kernel's, if it has one, which is none of the future.
    pub(super) fn date_ns(&self, kernels_ns: Option<u64>) -> u64 {
        let now_ns = sys::clock::now_ns();
        let Some(kernels_ns) = kernels_ns else { return now_ns };
        self.shared.worst_read_ns.fetch_max(now_ns.saturating_sub(kernels_ns), Ordering::Relaxed);
        self.shared.is_dated.store(true, Ordering::Relaxed);
        kernels_ns.min(now_ns)
    }

    /// A message, or a piece of a long one, has arrived.
    pub(super) fn message(&mut self, place: Place, date_ns: u64, message: &[u8]) {
        let Some(line) = self.lines.sources.get_mut(&place) else { return };
        let frame = self.info.map_or(0, |info| info.frame_at(date_ns));
        // Clocks are compared to some microseconds only; the order stays.
        line.last_frame = frame.max(line.last_frame);
        if !records::push(&mut line.ring, line.last_frame, message) {
            self.shared.lose(1);
        }
    }

    /// The kernel had no room for what arrived.
    pub(super) fn lost(&self) {
        self.shared.lose(1);
    }

    pub(super) fn tell(&self, news: News) {
        // Nobody listens any more when all of this ends.
        let _ = self.news.send(news);
    }
}

/// Bytes on their way out: when, in which order among equals, where to, when they were due (if that is to be measured).
type Outgoing = Reverse<(u64, u64, Place, Option<u64>, Vec<u8>)>;

pub(super) struct Carrier {
    cables: Box<dyn Cables>,
    outgoing: BinaryHeap<Outgoing>,
    count: u64,
}

impl Carrier {
    pub(super) fn new(cables: Box<dyn Cables>) -> Self {
        Self { cables, outgoing: BinaryHeap::new(), count: 0 }
    }

    /// Carries until it is told to stop.
    pub(super) fn run(
        mut self,
        poller: &Poller,
        lines: &Mutex<Lines>,
        shared: &Shared,
        session: &Session,
        news: &Sender<News>,
    ) {
        if let Some(priority) = session.engine().and_then(rt::shm::EngineSegment::client_priority) {
            // Without the right to it, events are as late as the machine is busy, which is reported.
            let _ = sys::thread::set_fifo(0, priority);
        }
        let mut ready = Vec::new();
        while !shared.stop.load(Ordering::Relaxed) {
            let due_ns = self.outgoing.peek().map(|Reverse((date_ns, ..))| *date_ns);
            let again_ns = self.cables.go_on();
            let wake_ns = due_ns.into_iter().chain(again_ns).min();
            if poller.wait(&mut ready, wake_ns).is_err() {
                return;
            }
            shared.waker.reset();
            let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
            for wish in std::mem::take(&mut lines.wishes) {
                let place = wish.place();
                if let Err(refusal) = self.cables.join(wish) {
                    shared.refusals().insert(place, refusal);
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

    /// Takes what the graph has said, and dates it.
    fn collect(&mut self, lines: &mut Lines) {
        let mut room = [0; super::ROOM_BYTES];
        for (place, line) in &mut lines.sinks {
            while let Some((due_ns, length)) = records::next(&mut line.ring) {
                for chunk in records::take(&mut line.ring, length, &mut room).chunks(CHUNK_BYTES) {
                    let date_ns = line.pace.date_of(due_ns, chunk);
                    // What waits for the cable is not late.
                    let measured = Some(due_ns).filter(|due_ns| *due_ns == date_ns);
                    self.count += 1;
                    self.outgoing.push(Reverse((date_ns, self.count, *place, measured, chunk.to_vec())));
                }
            }
        }
    }

    /// Lets go what is due.
    fn send(&mut self, shared: &Shared) {
        while let Some(Reverse((date_ns, ..))) = self.outgoing.peek() {
            let now_ns = sys::clock::now_ns();
            if *date_ns > now_ns {
                return;
            }
            let Some(Reverse((_, _, place, due_ns, bytes))) = self.outgoing.pop() else { return };
            if let Some(due_ns) = due_ns {
                shared.worst_late_ns.fetch_max(now_ns.saturating_sub(due_ns), Ordering::Relaxed);
            }
            if !self.cables.send(place, &bytes) {
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

    const PLACE: Place = Place { owner: 3, end: 1 };

    /// 48 kHz: frame 48 000 passes at two seconds.
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
    fn a_message_has_the_frame_of_its_date_and_none_overtakes_another_of_its_place() {
        let (producer, mut ring) = RingBuffer::new(1024);
        let mut lines = Lines::default();
        lines.sources.insert(PLACE, SourceLine { ring: producer, last_frame: 0 });
        let (shared, (news, _heard)) = (Shared::new().unwrap(), channel());
        let mut inbox = Inbox { lines: &mut lines, info: Some(info()), shared: &shared, news: &news };
        for (date_ns, message) in
            [(1_999_000_000, 1), (2_001_000_000, 2), (2_000_990_000, 3), (2_002_000_000, 4)]
        {
            inbox.message(PLACE, date_ns, &[message]);
            inbox.message(Place { owner: 4, ..PLACE }, date_ns, &[0]);
        }
        for expected in [(47_952, 1), (48_048, 2), (48_048, 3), (48_096, 4)] {
            let (frame, length) = records::next(&mut ring).unwrap();
            let mut room = [0; 4];
            assert_eq!((frame, records::take(&mut ring, length, &mut room)), (expected.0, &[expected.1][..]));
        }
        assert_eq!(records::next(&mut ring), None);
        assert_eq!(shared.lost.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn the_kernels_date_is_taken_and_how_long_ago_it_was_is_kept() {
        let (shared, (news, _heard), mut lines) = (Shared::new().unwrap(), channel(), Lines::default());
        let inbox = Inbox { lines: &mut lines, info: None, shared: &shared, news: &news };
        let now_ns = sys::clock::now_ns();
        assert!(inbox.date_ns(None) >= now_ns);
        assert!(!shared.is_dated.load(Ordering::Relaxed), "nothing was dated by the kernel");
        assert_eq!(inbox.date_ns(Some(now_ns - 1_000_000)), now_ns - 1_000_000);
        assert!(inbox.date_ns(Some(now_ns + 60_000_000_000)) < now_ns + 60_000_000_000, "none of the future");
        assert!(shared.is_dated.load(Ordering::Relaxed));
        assert!(shared.worst_read_ns.load(Ordering::Relaxed) >= 1_000_000);
    }

    type Said = Vec<(Place, Vec<u8>)>;

    /// Takes everything, and keeps it.
    #[derive(Default)]
    struct Everything(Rc<RefCell<Said>>);

    impl Cables for Everything {
        fn join(&mut self, _: Wish) -> Result<(), String> {
            Ok(())
        }

        fn keep(&mut self, _: &Lines) {}

        fn receive(&mut self, _: &[Event], _: &mut Inbox<'_>) {}

        fn send(&mut self, place: Place, bytes: &[u8]) -> bool {
            self.0.borrow_mut().push((place, bytes.to_vec()));
            true
        }
    }

    #[test]
    fn what_the_graph_says_leaves_in_the_order_of_its_dates_and_not_before_them() {
        let cables = Everything::default();
        let said = Rc::clone(&cables.0);
        let mut carrier = Carrier::new(Box::new(cables));
        let (mut producer, ring) = RingBuffer::new(4096);
        let mut lines = Lines::default();
        lines.sinks.insert(PLACE, SinkLine { ring, pace: Pace::default() });
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
        assert!(said.iter().all(|(place, _)| *place == PLACE));
        let bytes: Vec<u8> = said.iter().flat_map(|(_, bytes)| bytes.iter().copied()).collect();
        assert_eq!(bytes, [&[0x90, 1, 2][..], &long[..]].concat());
        assert!(said.iter().all(|(_, bytes)| bytes.len() <= CHUNK_BYTES));
        assert_eq!(carrier.outgoing.len(), 1, "what is due in an hour waits");
        assert!(shared.worst_late_ns.load(Ordering::Relaxed) >= 2_000_000);
    }
}
