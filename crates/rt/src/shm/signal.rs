//! The signal page: where a client's predecessors signal that they have finished, and where the
//! client sleeps.

use core::fmt;

use super::header::{Layout, SegmentHeader};
use crate::park::Park;
use crate::sync::{AtomicU32, AtomicU64, Ordering, fence};

const WORDS: usize = if cfg!(loom) { 3 } else { 504 };

/// Edges that one word counts.
const BITS: u32 = if cfg!(loom) { 2 } else { 32 };

/// In-edges that one page can count: the bits of its words, except the inner words of the tree.
pub const MAX_EDGES: u32 = 15_000;

/// The number of a client's direct predecessors in a plan, which determines the bits that make it
/// ready.
///
/// The bits are stored in words of 32. A word that becomes full sets its bit in the word above, up
/// to one root word. The predecessor whose bit fills the root wakes the client.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Edges(u32);

/// A client's in-edges in one cycle. Its predecessors, the client itself and the server can write
/// it.
///
/// Signals are idempotent: an edge is one bit of a word tagged with the cycle (`cycle << 32
///
/// bits`). A signal given twice changes nothing, and one from an older cycle fails on the tag.
#[repr(C)]
#[cfg_attr(not(loom), repr(align(4096)))]
#[derive(Debug)]
pub struct SignalPage {
    header: SegmentHeader,
    /// Counts wake-ups; the futex word that the client sleeps on.
    wake: AtomicU32,
    /// 1 while the client sleeps or is about to. Otherwise the thread that wakes it may omit the
    /// system call.
    sleeping: AtomicU32,
    /// When the last predecessor signaled, `CLOCK_MONOTONIC` ns. Two values, by parity of the
    /// cycle, so that the driver can read one while the next is written.
    signaled_ns: [AtomicU64; 2],
    reserved: [AtomicU64; 3],
    words: [AtomicU64; WORDS],
}

same_for_all_widths!(
    SignalPage: 4096 bytes;
    wake at 16, sleeping at 20, signaled_ns at 24, words at 64
);

// SAFETY: repr(C), the header first, atomics only.
unsafe impl Layout for SignalPage {
    const KIND: u32 = 5;

    fn header(&self) -> &SegmentHeader {
        &self.header
    }
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<SignalPage>() == 4096);

impl Edges {
    /// Returns `count` predecessors; `None` if a page cannot count that many.
    pub const fn new(count: u32) -> Option<Self> {
        if count <= MAX_EDGES { Some(Self(count)) } else { None }
    }

    /// No predecessors: the client waits for the driver only.
    pub const NONE: Self = Self(0);

    /// Returns the number of predecessors.
    pub const fn count(self) -> u32 {
        self.0
    }

    /// Returns the levels of words above `self.0` bits, lowest first: (bits, first word).
    #[inline]
    fn levels(self) -> impl Iterator<Item = (u32, u32)> {
        let mut next = (self.0 > 0).then_some((self.0, 0));
        core::iter::from_fn(move || {
            let (bits, first) = next?;
            let words = bits.div_ceil(BITS);
            next = (words > 1).then_some((words, first + words));
            Some((bits, first))
        })
    }

    fn words(self) -> usize {
        self.levels().map(|(bits, _)| bits.div_ceil(BITS) as usize).sum()
    }
}

impl fmt::Debug for Edges {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Edges({})", self.0)
    }
}

/// Returns the bits of word `word` in a level of `bits` bits.
#[inline]
fn full(bits: u32, word: u32) -> u32 {
    match bits - word * BITS {
        rest @ 0..BITS => (1 << rest) - 1,
        _ => u32::MAX >> (32 - BITS),
    }
}

fn tag(cycle: u32) -> u64 {
    u64::from(cycle) << 32
}

impl Default for SignalPage {
    fn default() -> Self {
        let page = Self {
            header: SegmentHeader::default(),
            wake: AtomicU32::new(0),
            sleeping: AtomicU32::new(0),
            signaled_ns: core::array::from_fn(|_| AtomicU64::new(0)),
            reserved: core::array::from_fn(|_| AtomicU64::new(0)),
            words: core::array::from_fn(|_| AtomicU64::new(0)),
        };
        page.header.initialize(Self::KIND);
        page
    }
}

impl SignalPage {
    /// Clears all edges for `cycle`, before any predecessor can run in it. Driver thread. Thread:
    /// cycle.
    pub fn arm(&self, cycle: u32, edges: Edges) {
        // Relaxed: `EngineSegment::release` publishes it to all clients with the cycle.
        for word in self.words.iter().take(edges.words()) {
            if cfg!(loom) {
                // loom lets a straggler's compare-and-exchange take effect after a plain store of
                // another value, as if it were not atomic; it orders an exchange as the language
                // does.
                word.swap(tag(cycle), Ordering::Relaxed);
            } else {
                word.store(tag(cycle), Ordering::Relaxed);
            }
        }
    }

    /// Signals that predecessor `edge` has finished in `cycle`. Returns true for the call that
    /// makes the client ready. Thread: cycle.
    ///
    /// Does nothing if the page is armed for another cycle, or if the edge was already signaled or
    /// does not exist.
    #[inline]
    pub fn signal(&self, cycle: u32, edges: Edges, edge: u32) -> bool {
        if edge >= edges.count() {
            return false;
        }
        let (mut bit, mut filled) = (edge, false);
        for (bits, first) in edges.levels() {
            let word = bit / BITS;
            let Some(shared) = self.words.get((first + word) as usize) else { return false };
            // A word that was already full is carried on too: the thread that filled it may have
            // been stopped before it did so.
            match set_bit(shared, cycle, bit % BITS, full(bits, word)) {
                SetBit::Incomplete => return false,
                SetBit::Completed => filled = true,
                // MUTATION: signal.stops_at_full_word
                SetBit::AlreadyComplete => filled = false,
            }
            bit = word;
        }
        filled
    }

    /// Returns whether all predecessors have signaled in `cycle`. Thread: cycle.
    #[inline]
    pub fn ready(&self, cycle: u32, edges: Edges) -> bool {
        let Some((bits, first)) = edges.levels().last() else { return true };
        let Some(root) = self.words.get(first as usize) else { return false };
        // Acquire: pairs with the Release of every signal, so that the buffers of all predecessors
        // are visible.
        // MUTATION: ready.relaxed
        root.load(Ordering::Acquire) == tag(cycle) | u64::from(full(bits, 0))
    }

    /// Returns when the client became ready in `cycle` or, if it did not, in an older cycle: a
    /// hint, in `CLOCK_MONOTONIC` ns. Thread: cycle.
    pub fn signaled_ns(&self, cycle: u32) -> u64 {
        self.signaled_ns[(cycle % 2) as usize].load(Ordering::Relaxed)
    }

    /// Notes the time of the signal that made the client ready in `cycle`. Thread: cycle.
    #[inline]
    pub fn note_signaled(&self, cycle: u32, now_ns: u64) {
        self.signaled_ns[(cycle % 2) as usize].store(now_ns, Ordering::Relaxed);
    }

    /// Returns the word on which the client sleeps, for a model of a program that takes it away.
    #[cfg(loom)]
    pub fn wake_word(&self) -> &AtomicU32 {
        &self.wake
    }

    /// Wakes the client, to check its edges, its assignment, or a request to stop. Thread: cycle.
    pub fn wake_up(&self, park: &impl Park) {
        self.count_wake_up();
        // SeqCst: either this sees `sleeping`, or the client sees the new count after its own
        // fence.
        // MUTATION: wake_up.without_fence
        fence(Ordering::SeqCst);
        // MUTATION: wake_up.condition_inverted
        if self.sleeping.load(Ordering::Relaxed) != 0 {
            park.wake(&self.wake, 1);
        }
    }

    /// Wakes the client like [`wake_up`](Self::wake_up), even if the page says that it does not
    /// sleep: another process may have written that.
    pub fn wake_unconditionally(&self, park: &impl Park) {
        // No fence, since nothing is read.
        self.count_wake_up();
        park.wake(&self.wake, 1);
    }

    /// Wakes every sleeper like [`wake_unconditionally`](Self::wake_unconditionally): a program
    /// that may write the page can sleep on it too, and take the wake-up instead of the client. Not
    /// within a cycle.
    pub fn wake_all(&self, park: &impl Park) {
        // No fence, since nothing is read.
        self.count_wake_up();
        park.wake(&self.wake, u32::MAX);
    }

    #[inline]
    fn count_wake_up(&self) {
        // Release: a client that sees the new count also sees why it was woken.
        // MUTATION: wake_up.count_relaxed, wake_up.count_unchanged
        self.wake.fetch_add(1, Ordering::Release);
    }

    /// Returns the count of wake-ups. The client reads it before it decides to sleep.
    #[inline]
    pub fn wake_count(&self) -> u32 {
        // Acquire: pairs with `wake_up`.
        // MUTATION: wake_count.relaxed
        self.wake.load(Ordering::Acquire)
    }

    /// Sleeps until a wake-up is counted after `wake_count` returned `seen`, or until the deadline.
    pub fn sleep(&self, seen: u32, deadline_ns: Option<u64>, park: &impl Park) {
        self.sleeping.store(1, Ordering::Relaxed);
        // SeqCst: see `wake_up`.
        // MUTATION: sleep.without_fence
        fence(Ordering::SeqCst);
        if self.wake.load(Ordering::Relaxed) == seen {
            park.wait(&self.wake, seen, deadline_ns);
        }
        self.sleeping.store(0, Ordering::Relaxed);
    }
}

/// What [`set_bit`] found.
#[derive(Clone, Copy)]
enum SetBit {
    /// The word lacks other bits, or is armed for another cycle.
    Incomplete,
    /// This bit completed the word.
    Completed,
    /// The word was complete, with this bit.
    AlreadyComplete,
}

/// Sets a bit of a word armed for `cycle`.
#[inline]
fn set_bit(word: &AtomicU64, cycle: u32, bit: u32, full: u32) -> SetBit {
    let whole = tag(cycle) | u64::from(full);
    // Acquire, here and on failure: the buffers of the predecessors whose bits this finds. A thread
    // that fills a word, or finds it full, carries all of them on to the word above.
    // MUTATION: set_bit.load_relaxed
    let mut before = word.load(Ordering::Acquire);
    loop {
        if before == whole {
            return SetBit::AlreadyComplete;
        }
        let after = before | 1 << bit;
        // MUTATION: set_bit.tag_ignored
        if before & !u64::from(u32::MAX) != tag(cycle) || after == before {
            return SetBit::Incomplete;
        }
        // Release: this predecessor's buffers, and those that it carries on.
        // MUTATION: set_bit.success_relaxed, set_bit.failure_relaxed
        match word.compare_exchange_weak(before, after, Ordering::Release, Ordering::Acquire) {
            Ok(_) if after == whole => return SetBit::Completed,
            Ok(_) => return SetBit::Incomplete,
            Err(now) => before = now,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_any_number_of_predecessors_makes_the_client_ready() {
        for count in [1, 2, 31, 32, 33, 64, 65, 1023, 1024, 1025, 15_000] {
            let page = SignalPage::default();
            let edges = Edges::new(count).expect("within the page");
            page.arm(7, edges);
            for edge in 0..count {
                assert!(!page.ready(7, edges), "{edge} of {count}");
                assert_eq!(page.signal(7, edges, edge), edge + 1 == count, "{edge} of {count}");
                assert!(!page.signal(7, edges, edge), "a signal given twice changes nothing");
            }
            assert!(page.ready(7, edges));
        }
    }

    #[test]
    fn invalid_signals_change_nothing() {
        let page = SignalPage::default();
        let edges = Edges::new(1).expect("one");
        page.arm(7, edges);
        assert!(!page.signal(6, edges, 0), "straggler");
        assert!(!page.signal(8, edges, 0), "from the future");
        assert!(!page.signal(7, edges, 1), "no such edge");
        assert!(!page.ready(7, edges));
    }

    #[test]
    fn a_client_without_predecessors_is_always_ready() {
        assert!(SignalPage::default().ready(3, Edges::NONE));
        assert!(Edges::new(MAX_EDGES + 1).is_none());
        assert!(Edges::new(MAX_EDGES).expect("fits").words() <= WORDS);
    }
}
