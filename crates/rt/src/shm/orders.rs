//! Orders: what one client does in a plan. The server writes, the client copies and then obeys.

use core::iter;

use super::header::{Layout, SegmentHeader};
use super::signal::Edges;
use crate::sync::{AtomicU32, AtomicU64, Ordering, fence};

/// Words of one set of orders; about as many connections can end at one client.
pub const ORDERS_WORDS: usize = if cfg!(loom) { 8 } else { 8 * 1024 };

/// In place of a CPU: run wherever the kernel likes.
pub const NO_CPU: u32 = u32::MAX;

/// Two sets of orders: the one in force and the one that a newer plan brings.
#[repr(C)]
#[cfg_attr(not(loom), repr(align(4096)))]
#[derive(Debug)]
pub struct Orders {
    header: SegmentHeader,
    reserved: [AtomicU64; 6],
    slots: [OrdersSlot; 2],
}

/// One set, in force from a plan's generation on.
#[repr(C, align(64))]
#[derive(Debug)]
struct OrdersSlot {
    /// First plan for which these orders hold; 0 while they are written.
    valid_from: AtomicU64,
    used: AtomicU32,
    reserved: AtomicU32,
    words: [AtomicU32; ORDERS_WORDS],
}

// SAFETY: repr(C), the header first, atomics only.
unsafe impl Layout for Orders {
    const KIND: u32 = 3;

    fn header(&self) -> &SegmentHeader {
        &self.header
    }
}

impl Default for OrdersSlot {
    fn default() -> Self {
        Self {
            valid_from: AtomicU64::new(0),
            used: AtomicU32::new(0),
            reserved: AtomicU32::new(0),
            words: core::array::from_fn(|_| AtomicU32::new(0)),
        }
    }
}

impl Default for Orders {
    fn default() -> Self {
        Self {
            header: SegmentHeader::default(),
            reserved: core::array::from_fn(|_| AtomicU64::new(0)),
            slots: core::array::from_fn(|_| OrdersSlot::default()),
        }
    }
}

impl Orders {
    /// Writes `words` to hold from plan `valid_from` on, over the older of the two sets. Control thread.
    ///
    /// The caller makes sure that the driver runs no plan that needs the older set.
    /// False, with nothing changed, if the words do not fit.
    pub fn publish(&self, valid_from: u64, words: &[u32]) -> bool {
        self.write(1 - self.newest(), valid_from, words)
    }

    /// Replaces the newer set, which no driver has run yet. Control thread.
    ///
    /// False, with nothing changed, if the words do not fit.
    pub fn replace_newest(&self, valid_from: u64, words: &[u32]) -> bool {
        self.write(self.newest(), valid_from, words)
    }

    /// Index of the newer set: the second of two that were never written.
    fn newest(&self) -> usize {
        // Relaxed: the caller is the only writer.
        let [first, second] = self.slots.each_ref().map(|slot| slot.valid_from.load(Ordering::Relaxed));
        if first > second { 0 } else { 1 }
    }

    fn write(&self, index: usize, valid_from: u64, words: &[u32]) -> bool {
        let slot = &self.slots[index];
        let Some(used) = u32::try_from(words.len()).ok().filter(|_| words.len() <= slot.words.len()) else {
            return false;
        };
        slot.valid_from.store(0, Ordering::Relaxed);
        // Release: a reader that sees a word of these orders also sees that the old ones are gone.
        fence(Ordering::Release);
        slot.used.store(used, Ordering::Relaxed);
        for (place, word) in slot.words.iter().zip(words) {
            place.store(*word, Ordering::Relaxed);
        }
        // Release: who sees the generation sees all the words.
        slot.valid_from.store(valid_from, Ordering::Release);
        true
    }

    /// Copies the orders for `plan` into `copy`, unless it holds them already. Process thread. Thread: cycle.
    ///
    /// False if there are none: the client is in no such plan, or so late that they were replaced.
    #[inline]
    pub fn copy_for(&self, plan: u64, copy: &mut OrdersCopy<'_>) -> bool {
        // Acquire: pairs with the end of the write, so the words of this generation are there.
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
        // Acquire: pairs with the writer's fence; words of newer orders show that these are gone.
        fence(Ordering::Acquire);
        let whole = slot.valid_from.load(Ordering::Relaxed) == valid[index];
        *copy.valid_from = if whole { valid[index] } else { 0 };
        *copy.used = used;
        whole
    }
}

/// Where a client keeps its copy: memory that it allocated before the cycle.
#[derive(Debug)]
pub struct OrdersCopy<'a> {
    /// First plan for which the copy holds; 0: nothing copied yet.
    pub valid_from: &'a mut u64,
    /// Words in use.
    pub used: &'a mut usize,
    /// At least [`ORDERS_WORDS`] words.
    pub words: &'a mut [u32],
}

/// One buffer that an input port reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InputSource {
    /// Index among the slabs that the client has mapped; among its own slabs if `own`.
    pub slab: u32,
    /// Slot in the slab.
    pub slot: u32,
    /// The reader runs before the writer and hears the cycle before.
    pub feedback: bool,
    /// The client's own output port: to be copied before it writes again.
    pub own: bool,
}

impl InputSource {
    /// Packed: slot in bits 0..4, flags in 4 and 5, slab above.
    pub const fn to_word(self) -> u32 {
        self.slab << 6 | (self.own as u32) << 5 | (self.feedback as u32) << 4 | self.slot & 15
    }

    /// The inverse of [`to_word`](Self::to_word).
    pub const fn from_word(word: u32) -> Self {
        Self { slab: word >> 6, own: word >> 5 & 1 != 0, feedback: word >> 4 & 1 != 0, slot: word & 15 }
    }
}

/// A follower to signal: its page among those that the client has mapped, and this client's edge there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FollowerOrder {
    /// Index among the signal pages that the client has mapped.
    pub page: u32,
    /// This client's edge on that page.
    pub edge: u32,
    /// Edges of the follower in all.
    pub edges: u32,
}

/// Inputs with the same sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupOrder<'a> {
    /// Packed [`InputSource`]s.
    pub sources: &'a [u32],
    /// The client's own numbers of its ports.
    pub inputs: &'a [u32],
}

/// Places of the words that all orders begin with.
const CPU: usize = 0;
const EDGES: usize = 1;
const FLAGS: usize = 2;
const FOLLOWERS: usize = 3;
const GROUPS: usize = 4;
/// How many those are.
pub const FIXED_WORDS: usize = 5;
/// Words of one follower.
pub const FOLLOWER_WORDS: usize = 3;

/// Words of a group of so many sources and inputs.
pub const fn group_words(sources: usize, inputs: usize) -> usize {
    2 + sources + inputs
}

const RUNS: u32 = 1;
const DRIVER_WAITS: u32 = 2;
const SECOND_PAGE: u32 = 4;

/// Reads one set of orders from its words. Every index is checked: a word that points outside reads as nothing.
///
/// Words: cpu, in-edges, flags, followers F, groups G; F × (page, edge, edges); G × (n sources, m inputs; the sources; the
/// inputs).
#[derive(Debug, Clone, Copy)]
pub struct OrdersReader<'a> {
    words: &'a [u32],
}

impl<'a> OrdersReader<'a> {
    /// Reads `words` as orders.
    pub const fn new(words: &'a [u32]) -> Self {
        Self { words }
    }

    #[inline]
    fn word(self, index: usize) -> u32 {
        self.words.get(index).copied().unwrap_or(0)
    }

    /// CPU to run on, unless the kernel is to choose.
    pub fn cpu(self) -> Option<u32> {
        Some(self.word(CPU)).filter(|cpu| *cpu != NO_CPU)
    }

    /// The client's predecessors.
    #[inline]
    pub fn edges(self) -> Edges {
        Edges::new(self.word(EDGES)).unwrap_or(Edges::NONE)
    }

    /// Whether the client runs in the plan at all.
    #[inline]
    pub fn runs(self) -> bool {
        self.word(FLAGS) & RUNS != 0
    }

    /// Whether the driver may be waiting for this client's end.
    #[inline]
    pub fn driver_waits(self) -> bool {
        self.word(FLAGS) & DRIVER_WAITS != 0
    }

    /// Which of the client's two places for signal pages, 0 or 1, has the one that its predecessors signal on.
    #[inline]
    pub fn page(self) -> u32 {
        u32::from(self.word(FLAGS) & SECOND_PAGE != 0)
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

    /// The followers to signal when the client has finished.
    #[inline]
    pub fn followers(self) -> impl Iterator<Item = FollowerOrder> + 'a {
        let words = self.section(FIXED_WORDS, self.followers_words());
        let (followers, _) = words.as_chunks::<FOLLOWER_WORDS>();
        followers.iter().map(|[page, edge, edges]| FollowerOrder { page: *page, edge: *edge, edges: *edges })
    }

    /// The connected inputs, in groups of those that have the same sources.
    #[inline]
    pub fn groups(self) -> impl Iterator<Item = GroupOrder<'a>> {
        let mut left = self.word(GROUPS);
        let mut words = self.words.get(self.followers_end()..).unwrap_or(&[]);
        iter::from_fn(move || {
            left = left.checked_sub(1)?;
            let ([sources, inputs], rest) = words.split_first_chunk()?;
            let (sources, rest) = rest.split_at_checked(*sources as usize)?;
            let (inputs, rest) = rest.split_at_checked(*inputs as usize)?;
            words = rest;
            Some(GroupOrder { sources, inputs })
        })
    }
}

/// Builds one set of orders.
#[derive(Debug)]
pub struct OrdersWriter<'a> {
    words: &'a mut [u32],
    used: usize,
    fits: bool,
}

/// Orders of a client that is in no plan: it sleeps on its signal page in place `page` until it is woken for a newer
/// one.
pub const fn absent(page: u32) -> [u32; FIXED_WORDS] {
    [NO_CPU, 0, if page == 0 { 0 } else { SECOND_PAGE }, 0, 0]
}

impl<'a> OrdersWriter<'a> {
    /// Begins in `words`, best of [`ORDERS_WORDS`] words.
    pub fn new(words: &'a mut [u32], cpu: Option<u32>, edges: Edges, driver_waits: bool) -> Self {
        let mut writer = Self { words, used: 0, fits: true };
        let flags = RUNS | if driver_waits { DRIVER_WAITS } else { 0 };
        writer.push(&[cpu.unwrap_or(NO_CPU), edges.count(), flags, 0, 0]);
        writer
    }

    /// The client's signal page is the one in place `page`; without this it is the first.
    pub fn page(&mut self, page: u32) {
        if let Some(flags) = self.words.get_mut(FLAGS).filter(|_| page != 0) {
            *flags |= SECOND_PAGE;
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

    /// Adds a follower. All followers come before the first group.
    pub fn follower(&mut self, order: FollowerOrder) {
        self.push(&[order.page, order.edge, order.edges]);
        self.count(FOLLOWERS);
    }

    /// Adds connected inputs, by the client's own numbers, that all hear `sources`.
    pub fn group(&mut self, sources: &[InputSource], inputs: &[u32]) {
        self.push(&[sources.len(), inputs.len()].map(|length| u32::try_from(length).unwrap_or(u32::MAX)));
        for source in sources {
            self.push(&[source.to_word()]);
        }
        self.push(inputs);
        self.count(GROUPS);
    }

    /// The words; `None` if they did not fit.
    pub fn finish(self) -> Option<&'a [u32]> {
        self.fits.then_some(&self.words[..self.used])
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// As large as it is, the segment must not pass over a test thread's stack.
    fn zeroed() -> std::boxed::Box<Orders> {
        // SAFETY: allocated with the layout of `Orders`, for which zeroed bytes are a value: atomics only.
        unsafe {
            std::boxed::Box::from_raw(std::alloc::alloc_zeroed(core::alloc::Layout::new::<Orders>()).cast())
        }
    }

    fn copy<'a>(state: &'a mut (u64, usize), words: &'a mut [u32]) -> OrdersCopy<'a> {
        OrdersCopy { valid_from: &mut state.0, used: &mut state.1, words }
    }

    #[test]
    fn what_the_server_writes_is_what_the_client_reads() {
        let mut words = [0; 64];
        let edges = Edges::new(3).expect("three");
        let mut writer = OrdersWriter::new(&mut words, Some(1), edges, true);
        writer.page(1);
        let follower = FollowerOrder { page: 4, edge: 5, edges: 6 };
        writer.follower(follower);
        let source = InputSource { slab: 70_000, slot: 15, feedback: true, own: false };
        let own = InputSource { slab: 0, slot: 3, feedback: false, own: true };
        writer.group(&[source, own], &[2, 7]);
        writer.group(&[own], &[9]);
        let reader = OrdersReader::new(writer.finish().expect("fits"));
        assert_eq!(
            (reader.cpu(), reader.edges(), reader.runs(), reader.driver_waits(), reader.page()),
            (Some(1), edges, true, true, 1)
        );
        assert_eq!([0, 1].map(|page| OrdersReader::new(&absent(page)).page()), [0, 1]);
        assert!(!OrdersReader::new(&absent(1)).runs());
        assert!(reader.followers().eq([follower]));
        let [source, own] = [source, own].map(InputSource::to_word);
        assert!(reader.groups().eq([
            GroupOrder { sources: &[source, own], inputs: &[2, 7] },
            GroupOrder { sources: &[own], inputs: &[9] },
        ]));
        assert_eq!(InputSource::from_word(own), InputSource { slab: 0, slot: 3, feedback: false, own: true });
    }

    #[test]
    fn orders_that_do_not_fit_are_refused_whole() {
        let mut words = [0; FIXED_WORDS + 2];
        let mut writer = OrdersWriter::new(&mut words, None, Edges::NONE, false);
        writer.follower(FollowerOrder { page: 0, edge: 0, edges: 1 });
        assert!(writer.finish().is_none());
    }

    #[test]
    fn a_client_obeys_the_newest_orders_that_its_plan_knows() {
        let orders = zeroed();
        let (mut state, mut words) = ((0, 0), std::vec![0; ORDERS_WORDS]);
        assert!(!orders.copy_for(5, &mut copy(&mut state, &mut words)), "none yet");
        assert!(orders.publish(3, &[30]));
        assert!(orders.publish(5, &[50, 51]));
        assert!(orders.copy_for(4, &mut copy(&mut state, &mut words)));
        assert_eq!((state, words[0]), ((3, 1), 30));
        assert!(orders.copy_for(9, &mut copy(&mut state, &mut words)));
        assert_eq!((state, &words[..2]), ((5, 2), &[50, 51][..]));
        assert!(orders.replace_newest(6, &[60]));
        assert!(orders.copy_for(5, &mut copy(&mut state, &mut words)), "the older set is untouched");
        assert_eq!((state, words[0]), ((3, 1), 30));
    }

    #[test]
    fn any_words_can_be_read_as_orders() {
        let mut seed = 1_u32;
        for length in 0..200 {
            let words: std::vec::Vec<u32> = (0..length)
                .map(|_| {
                    seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    if seed >> 28 == 0 { seed } else { seed >> 28 }
                })
                .collect();
            let reader = OrdersReader::new(&words);
            assert!(reader.followers().count() <= words.len());
            assert!(reader.groups().count() <= words.len());
        }
    }
}
