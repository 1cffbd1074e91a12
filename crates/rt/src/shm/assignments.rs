//! What a plan assigns to one client: its CPU, predecessors, followers and inputs. The server
//! writes, and the client copies before it obeys.

use core::iter;

use super::header::{Layout, SegmentHeader};
use super::signal::Edges;
use crate::park::Park;
use crate::sync::{AtomicU32, AtomicU64, Ordering, fence};

/// Words of one set, and about as many connections as can end at one client.
pub const ASSIGNMENT_WORDS: usize = if cfg!(loom) { 8 } else { 8 * 1024 };

/// CPU number that leaves the choice to the kernel.
pub const NO_CPU: u32 = u32::MAX;

/// Two sets of assignments: the one in force and the one for a newer plan.
#[repr(C)]
#[cfg_attr(not(loom), repr(align(4096)))]
#[derive(Debug)]
pub struct Assignments {
    header: SegmentHeader,
    /// The last cycle for which the server woke the client here: the futex word on which it sleeps
    /// while it waits for the driver alone. The client maps it read-only, and no other program maps
    /// it.
    turn: AtomicU32,
    reserved: [AtomicU32; 11],
    slots: [AssignmentSlot; 2],
}

same_for_all_widths!(Assignments: 69632 bytes; turn at 16, slots at 64);

/// One set, valid from a plan's generation on.
#[repr(C, align(64))]
#[derive(Debug)]
struct AssignmentSlot {
    /// First plan for which the set is valid; 0 while it is written.
    valid_from: AtomicU64,
    used: AtomicU32,
    reserved: AtomicU32,
    words: [AtomicU32; ASSIGNMENT_WORDS],
}

same_for_all_widths!(AssignmentSlot: 32832 bytes; valid_from at 0, used at 8, words at 16);

// SAFETY: repr(C), the header first, atomics only.
unsafe impl Layout for Assignments {
    const KIND: u32 = 3;

    fn header(&self) -> &SegmentHeader {
        &self.header
    }
}

impl Default for AssignmentSlot {
    fn default() -> Self {
        Self {
            valid_from: AtomicU64::new(0),
            used: AtomicU32::new(0),
            reserved: AtomicU32::new(0),
            words: core::array::from_fn(|_| AtomicU32::new(0)),
        }
    }
}

impl Default for Assignments {
    fn default() -> Self {
        Self {
            header: SegmentHeader::default(),
            turn: AtomicU32::new(0),
            reserved: core::array::from_fn(|_| AtomicU32::new(0)),
            slots: core::array::from_fn(|_| AssignmentSlot::default()),
        }
    }
}

impl Assignments {
    /// Writes `words` over the older set, valid from plan `valid_from` on. Control thread.
    ///
    /// The caller guarantees that the driver runs no plan that needs the older set. Returns false,
    /// and changes nothing, if the words do not fit.
    pub fn publish(&self, valid_from: u64, words: &[u32]) -> bool {
        self.write(1 - self.newest(), valid_from, words)
    }

    /// Replaces the newer set, which no driver has run yet. Control thread.
    ///
    /// Returns false, and changes nothing, if the words do not fit.
    pub fn replace_newest(&self, valid_from: u64, words: &[u32]) -> bool {
        self.write(self.newest(), valid_from, words)
    }

    /// Returns the index of the newer set: the second if neither was ever written.
    fn newest(&self) -> usize {
        // Relaxed: the caller is the only writer.
        let [first, second] =
            self.slots.each_ref().map(|slot| slot.valid_from.load(Ordering::Relaxed));
        // MUTATION: assignments.set_in_force_replaced
        if first > second { 0 } else { 1 }
    }

    /// Wakes the client for `cycle` if it sleeps here. The cycle has been released before. Driver
    /// thread. Thread: cycle.
    pub fn give_turn(&self, cycle: u32, park: &impl Park) {
        // Release: a client that sees the turn sees the cycle released.
        // MUTATION: give_turn.relaxed
        self.turn.store(cycle, Ordering::Release);
        self.wake(park);
    }

    /// Wakes the client if it sleeps here, to check something other than the turn. It may have
    /// checked that just before it fell asleep, so the wake-up is repeated until it responds.
    pub fn wake(&self, park: &impl Park) {
        park.wake(&self.turn, 1);
    }

    /// Returns the last turn that was given. The client reads it before it decides to sleep.
    /// Process thread. Thread: cycle.
    #[inline]
    pub fn turn(&self) -> u32 {
        // Acquire: pairs with `give_turn`.
        // MUTATION: turn.relaxed
        self.turn.load(Ordering::Acquire)
    }

    /// Sleeps until another turn than `seen` is given. Process thread.
    #[inline]
    pub fn sleep(&self, seen: u32, park: &impl Park) {
        park.wait(&self.turn, seen, None);
    }

    /// Sleeps like [`sleep`](Self::sleep), until `until_ns` at most. Process thread.
    pub fn sleep_briefly(&self, seen: u32, until_ns: u64, park: &impl Park) {
        park.wait_briefly(&self.turn, seen, until_ns);
    }

    fn write(&self, index: usize, valid_from: u64, words: &[u32]) -> bool {
        let slot = &self.slots[index];
        let Some(used) =
            u32::try_from(words.len()).ok().filter(|_| words.len() <= slot.words.len())
        else {
            return false;
        };
        // MUTATION: assignments.old_set_not_withdrawn
        slot.valid_from.store(0, Ordering::Relaxed);
        // Release: a reader that sees a word of the new set also sees that the old one is
        // withdrawn.
        // MUTATION: assignments.writer_without_fence
        fence(Ordering::Release);
        slot.used.store(used, Ordering::Relaxed);
        for (place, word) in slot.words.iter().zip(words) {
            place.store(*word, Ordering::Relaxed);
        }
        // Release: a reader that sees the generation sees all the words.
        // MUTATION: assignments.write_end_relaxed
        slot.valid_from.store(valid_from, Ordering::Release);
        true
    }

    /// Copies the set for `plan` into `copy`, unless it is there already. Process thread. Thread:
    /// cycle.
    ///
    /// Returns false if there is none: the client is in no such plan, or is so late that its set
    /// was replaced.
    #[inline]
    pub fn copy_for(&self, plan: u64, copy: &mut AssignmentCopy<'_>) -> bool {
        // Acquire: pairs with the end of the write, so that the words of this generation are
        // visible.
        // MUTATION: assignments.read_start_relaxed
        let valid = self.slots.each_ref().map(|slot| slot.valid_from.load(Ordering::Acquire));
        let newest = (0..2)
            .filter(|index| valid[*index] != 0 && valid[*index] <= plan)
            .max_by_key(|index| valid[*index]);
        let Some(index) = newest else { return false };
        if *copy.valid_from == valid[index] {
            return true;
        }
        let slot = &self.slots[index];
        let used = slot.used.load(Ordering::Relaxed) as usize;
        let Some(into) = copy.words.get_mut(..used) else { return false };
        for (word, place) in into.iter_mut().zip(&slot.words) {
            *word = place.load(Ordering::Relaxed);
        }
        // Acquire: pairs with the writer's fence; words of a newer set show that this one is
        // withdrawn.
        // MUTATION: assignments.reader_without_fence
        fence(Ordering::Acquire);
        // MUTATION: assignments.copy_not_checked
        let whole = slot.valid_from.load(Ordering::Relaxed) == valid[index];
        *copy.valid_from = if whole { valid[index] } else { 0 };
        *copy.used = used;
        whole
    }
}

/// A client's copy of a set, in memory that it allocated before the cycle.
#[derive(Debug)]
pub struct AssignmentCopy<'a> {
    /// First plan for which the copy is valid; 0 if nothing was copied yet.
    pub valid_from: &'a mut u64,
    /// Words in use.
    pub used: &'a mut usize,
    /// At least [`ASSIGNMENT_WORDS`] words.
    pub words: &'a mut [u32],
}

/// One buffer that an input port reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InputSource {
    /// Index among the slabs that the client has mapped, or among its own slabs if `own`.
    pub slab: u32,
    /// Slot in the slab.
    pub slot: u32,
    /// Whether the reader runs before the writer, and so reads the previous cycle.
    pub feedback: bool,
    /// Whether this is an output port of the client itself, to be copied before the client writes
    /// again.
    pub own: bool,
}

impl InputSource {
    /// Packs the source: slot in bits 0 to 3, flags in 4 and 5, slab above.
    pub const fn to_word(self) -> u32 {
        self.slab << 6 | (self.own as u32) << 5 | (self.feedback as u32) << 4 | self.slot & 15
    }

    /// Unpacks what [`to_word`](Self::to_word) has packed.
    pub const fn from_word(word: u32) -> Self {
        Self {
            slab: word >> 6,
            own: word >> 5 & 1 != 0,
            feedback: word >> 4 & 1 != 0,
            slot: word & 15,
        }
    }
}

/// A follower to signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FollowerEdge {
    /// Index among the signal pages that the client has mapped.
    pub page: u32,
    /// This client's edge on that page.
    pub edge: u32,
    /// Number of the follower's edges.
    pub edges: u32,
}

/// Inputs that have the same sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InputGroup<'a> {
    /// Packed [`InputSource`]s.
    pub sources: &'a [u32],
    /// The client's own numbers of its input ports.
    pub inputs: &'a [u32],
}

/// Indices of the words at the start of every set.
const CPU: usize = 0;
const EDGES: usize = 1;
const FLAGS: usize = 2;
const FOLLOWERS: usize = 3;
const GROUPS: usize = 4;
/// Number of the words at the start of every set.
pub const FIXED_WORDS: usize = 5;
/// Words of one follower.
pub const FOLLOWER_WORDS: usize = 3;

/// Returns the number of words of a group of this many sources and inputs.
pub const fn group_words(sources: usize, inputs: usize) -> usize {
    2 + sources + inputs
}

const RUNS: u32 = 1;
const DRIVER_WAITS: u32 = 2;
const SECOND_PAGE: u32 = 4;
const WAKES_EARLY: u32 = 8;

/// Reads one set from its words. Every index is checked: a word that points outside reads as
/// nothing.
///
/// The words are cpu, in-edges, flags, number of followers F, number of groups G; then F × (page,
/// edge, edges); then G × (number of sources, number of inputs, the sources, the inputs).
#[derive(Debug, Clone, Copy)]
pub struct AssignmentReader<'a> {
    words: &'a [u32],
}

impl<'a> AssignmentReader<'a> {
    /// Reads `words` as one set.
    pub const fn new(words: &'a [u32]) -> Self {
        Self { words }
    }

    #[inline]
    fn word(self, index: usize) -> u32 {
        self.words.get(index).copied().unwrap_or(0)
    }

    /// Returns the CPU to run on; `None` leaves the choice to the kernel.
    pub fn cpu(self) -> Option<u32> {
        Some(self.word(CPU)).filter(|cpu| *cpu != NO_CPU)
    }

    /// Returns the number of the client's predecessors.
    #[inline]
    pub fn edges(self) -> Edges {
        Edges::new(self.word(EDGES)).unwrap_or(Edges::NONE)
    }

    /// Returns whether the client runs in the plan at all.
    #[inline]
    pub fn runs(self) -> bool {
        self.word(FLAGS) & RUNS != 0
    }

    /// Returns whether the driver may be waiting for this client to finish.
    #[inline]
    pub fn driver_waits(self) -> bool {
        self.word(FLAGS) & DRIVER_WAITS != 0
    }

    /// Returns which of the client's two signal pages, 0 or 1, its predecessors signal on.
    #[inline]
    pub fn page(self) -> u32 {
        u32::from(self.word(FLAGS) & SECOND_PAGE != 0)
    }

    /// Returns whether the client wakes before the cycle is due, so that its CPU does not sleep
    /// when the driver wakes the clients there.
    #[inline]
    pub fn wakes_early(self) -> bool {
        self.word(FLAGS) & WAKES_EARLY != 0
    }

    #[inline]
    fn section(self, start: usize, length: usize) -> &'a [u32] {
        start.checked_add(length).and_then(|end| self.words.get(start..end)).unwrap_or(&[])
    }

    fn followers_end(self) -> usize {
        FIXED_WORDS.saturating_add(self.followers_words())
    }

    fn followers_words(self) -> usize {
        (self.word(FOLLOWERS) as usize).saturating_mul(FOLLOWER_WORDS)
    }

    /// Returns the followers to signal when the client has finished.
    #[inline]
    pub fn followers(self) -> impl Iterator<Item = FollowerEdge> + 'a {
        let words = self.section(FIXED_WORDS, self.followers_words());
        let (followers, _) = words.as_chunks::<FOLLOWER_WORDS>();
        followers.iter().map(|[page, edge, edges]| FollowerEdge {
            page: *page,
            edge: *edge,
            edges: *edges,
        })
    }

    /// Returns the connected inputs, grouped by their sources.
    #[inline]
    pub fn groups(self) -> impl Iterator<Item = InputGroup<'a>> {
        let mut left = self.word(GROUPS);
        let mut words = self.words.get(self.followers_end()..).unwrap_or(&[]);
        iter::from_fn(move || {
            left = left.checked_sub(1)?;
            let ([sources, inputs], rest) = words.split_first_chunk()?;
            let (sources, rest) = rest.split_at_checked(*sources as usize)?;
            let (inputs, rest) = rest.split_at_checked(*inputs as usize)?;
            words = rest;
            Some(InputGroup { sources, inputs })
        })
    }
}

/// Builds one set of assignments.
#[derive(Debug)]
pub struct AssignmentWriter<'a> {
    words: &'a mut [u32],
    used: usize,
    fits: bool,
}

/// Returns the set of a client that is in no plan: it sleeps on its signal page `page` until a
/// newer plan wakes it.
pub const fn absent(page: u32) -> [u32; FIXED_WORDS] {
    [NO_CPU, 0, if page == 0 { 0 } else { SECOND_PAGE }, 0, 0]
}

impl<'a> AssignmentWriter<'a> {
    /// Starts a set in `words`, ideally [`ASSIGNMENT_WORDS`] of them.
    pub fn new(words: &'a mut [u32], cpu: Option<u32>, edges: Edges, driver_waits: bool) -> Self {
        let mut writer = Self { words, used: 0, fits: true };
        let flags = RUNS | if driver_waits { DRIVER_WAITS } else { 0 };
        writer.push(&[cpu.unwrap_or(NO_CPU), edges.count(), flags, 0, 0]);
        writer
    }

    /// Chooses the client's signal page; the default is page 0.
    pub fn page(&mut self, page: u32) {
        self.flag(if page == 0 { 0 } else { SECOND_PAGE });
    }

    /// Makes the client wake before the cycle is due.
    pub fn wake_early(&mut self) {
        self.flag(WAKES_EARLY);
    }

    fn flag(&mut self, flag: u32) {
        if let Some(flags) = self.words.get_mut(FLAGS) {
            *flags |= flag;
        }
    }

    fn push(&mut self, words: &[u32]) {
        match self.words.get_mut(self.used..self.used + words.len()) {
            Some(place) => {
                place.copy_from_slice(words);
                self.used += words.len();
            }
            None => self.fits = false,
        }
    }

    fn count(&mut self, index: usize) {
        if let Some(word) = self.words.get_mut(index) {
            *word += 1;
        }
    }

    /// Adds a follower. All followers are added before the first group.
    pub fn follower(&mut self, edge: FollowerEdge) {
        self.push(&[edge.page, edge.edge, edge.edges]);
        self.count(FOLLOWERS);
    }

    /// Adds connected inputs, by the client's own numbers, that all read `sources`.
    pub fn group(&mut self, sources: &[InputSource], inputs: &[u32]) {
        self.push(
            &[sources.len(), inputs.len()].map(|length| u32::try_from(length).unwrap_or(u32::MAX)),
        );
        for source in sources {
            self.push(&[source.to_word()]);
        }
        self.push(inputs);
        self.count(GROUPS);
    }

    /// Returns the words; `None` if they did not fit.
    pub fn finish(self) -> Option<&'a [u32]> {
        self.fits.then_some(&self.words[..self.used])
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
