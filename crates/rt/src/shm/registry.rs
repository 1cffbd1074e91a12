//! The registry: clients, ports and connections, readable by every program at any time.
//!
//! Only the server's control thread writes it; every client maps it read-only. Each entry is a
//! sequence lock, so the getters of `jack.h` are lock-free, and see the effect of a request as soon
//! as it is answered.

use core::ptr::NonNull;

use super::header::{Layout, SegmentHeader};
use crate::sync::{AtomicU32, AtomicU64, Ordering, fence};

/// Bytes for `client:port` and its terminating zero: the name has 320 bytes at most.
pub const FULL_NAME_BYTES: usize = 328;
/// Bytes for a client's name and its terminating zero: the name has 64 bytes at most.
pub const CLIENT_NAME_BYTES: usize = 72;
/// Number of aliases that a port can have.
pub const ALIASES_PER_PORT: usize = 2;

/// The number of entries of each kind; constant while the server lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegistryShape {
    /// Port ids are `1..=ports`.
    pub ports: u32,
    /// Client ids are `1..=clients`.
    pub clients: u32,
    /// Connections at the same time.
    pub connections: u32,
}

/// The first page of the registry.
#[repr(C, align(4096))]
#[derive(Debug, Default)]
pub struct RegistryHeader {
    header: SegmentHeader,
    ports: AtomicU32,
    clients: AtomicU32,
    connections: AtomicU32,
    reserved: AtomicU32,
    /// Counts changes of all entries.
    changes: AtomicU64,
}

same_for_all_widths!(RegistryHeader: 4096 bytes; ports at 16, changes at 32);

/// A zero-terminated text of `W` words in shared memory.
#[repr(C)]
#[derive(Debug)]
pub struct Text<const W: usize>([AtomicU64; W]);

/// Smallest and largest latency of the paths through a port, in frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LatencyRange {
    /// In frames.
    pub min: u32,
    /// In frames.
    pub max: u32,
}

/// The states of an entry.
pub mod state {
    /// The entry is unused.
    pub const FREE: u32 = 0;
    /// The client is open, or the port exists.
    pub const REGISTERED: u32 = 1;
    /// The client takes part in cycles, or the port belongs to such a client.
    pub const ACTIVE: u32 = 2;
}

/// One client.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct ClientEntry {
    sequence: AtomicU32,
    /// One of [`state`].
    pub state: AtomicU32,
    /// Process id as the server sees it.
    pub process: AtomicU32,
    /// Cycles in which the client was late.
    pub late_cycles: AtomicU32,
    /// 1 while the client is left out of plans because it did not answer.
    pub bypassed: AtomicU32,
    /// Lower half of the client's uuid, which is never 0.
    pub uuid_number: AtomicU32,
    /// The client's name.
    pub name: Text<{ CLIENT_NAME_BYTES / 8 }>,
}

same_for_all_widths!(ClientEntry: 128 bytes; sequence at 0, uuid_number at 20, name at 24);

/// One port.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct PortEntry {
    sequence: AtomicU32,
    /// One of [`state`]. A port is active while its client is.
    pub state: AtomicU32,
    /// `JackPortFlags`.
    pub flags: AtomicU32,
    /// 0: audio, 1: MIDI.
    pub port_type: AtomicU32,
    /// Id of the client that owns the port.
    pub owner: AtomicU32,
    /// Number of connections.
    pub connections: AtomicU32,
    /// The port's first connection: index + 1 of a cell, or 0 for none.
    pub first_connection: AtomicU32,
    /// The port's last connection: index + 1 of a cell, or 0 for none.
    pub last_connection: AtomicU32,
    /// Number of monitor requests.
    pub monitors: AtomicU32,
    /// Index of the current one of the two names. A rename leaves the old one readable for programs
    /// that hold its address.
    pub which_name: AtomicU32,
    capture_latency: AtomicU64,
    playback_latency: AtomicU64,
    names: [Text<{ FULL_NAME_BYTES / 8 }>; 2],
    /// The aliases; an empty text is none.
    pub aliases: [Text<{ FULL_NAME_BYTES / 8 }>; ALIASES_PER_PORT],
}

same_for_all_widths!(
    PortEntry: 1408 bytes;
    sequence at 0, which_name at 36, capture_latency at 40, playback_latency at 48, names at 56,
    aliases at 712
);

/// One connection, linked into the lists of its source and its destination.
#[repr(C)]
#[derive(Debug)]
pub struct ConnectionCell {
    /// Id of the output port.
    pub source: AtomicU32,
    /// Id of the input port.
    pub destination: AtomicU32,
    /// Index + 1 of the source's next connection; 0 after the last.
    pub next_of_source: AtomicU32,
    /// Index + 1 of the destination's next connection; 0 after the last.
    pub next_of_destination: AtomicU32,
    /// Counts connections. Of two connections, the younger one closes a loop.
    pub age: AtomicU64,
}

same_for_all_widths!(ConnectionCell: 24 bytes; source at 0, next_of_destination at 12, age at 16);

// SAFETY: repr(C), the header first, atomics only.
unsafe impl Layout for RegistryHeader {
    const KIND: u32 = 2;

    fn header(&self) -> &SegmentHeader {
        &self.header
    }
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<PortEntry>() == 1408 && size_of::<ClientEntry>() == 128);

impl RegistryShape {
    /// Returns the size of a registry of this shape, bytes.
    pub const fn bytes(self) -> usize {
        size_of::<RegistryHeader>()
            + self.ports as usize * size_of::<PortEntry>()
            + self.clients as usize * size_of::<ClientEntry>()
            + self.connections as usize * size_of::<ConnectionCell>()
    }
}

/// A registry in memory that stays mapped as long as the value lives.
///
/// The memory's owner (a mapping in `sys`) stores this value together with the mapping.
#[derive(Debug, Clone, Copy)]
pub struct Registry {
    base: NonNull<u8>,
    shape: RegistryShape,
}

// SAFETY: the memory behind `base` holds atomics only.
unsafe impl Send for Registry {}
// SAFETY: as above.
unsafe impl Sync for Registry {}

impl Registry {
    /// Creates a registry in zeroed memory.
    ///
    /// # Safety
    /// `base` is the start of a writable, page-aligned mapping of at least `shape.bytes()` zeroed
    /// bytes that lives as long as every copy of the value.
    pub unsafe fn create(base: NonNull<u8>, shape: RegistryShape) -> Self {
        let registry = Self { base, shape };
        let header = registry.header();
        header.ports.store(shape.ports, Ordering::Relaxed);
        header.clients.store(shape.clients, Ordering::Relaxed);
        header.connections.store(shape.connections, Ordering::Relaxed);
        header.header.initialize(RegistryHeader::KIND);
        registry
    }

    /// Opens a received registry; `None` if the memory is too small for what its header says.
    ///
    /// # Safety
    /// `base` is the start of a page-aligned mapping of `bytes` bytes that lives as long as every
    /// copy of the value.
    pub unsafe fn open(base: NonNull<u8>, bytes: usize) -> Option<Self> {
        if bytes < size_of::<RegistryHeader>() {
            return None;
        }
        // SAFETY: aligned and large enough; atomics only, valid for any bytes.
        let header = unsafe { base.cast::<RegistryHeader>().as_ref() };
        header.header.check(RegistryHeader::KIND).ok()?;
        let shape = RegistryShape {
            ports: header.ports.load(Ordering::Relaxed),
            clients: header.clients.load(Ordering::Relaxed),
            connections: header.connections.load(Ordering::Relaxed),
        };
        (shape.bytes() <= bytes).then_some(Self { base, shape })
    }

    /// Returns the number of entries of each kind.
    pub fn shape(&self) -> RegistryShape {
        self.shape
    }

    fn header(&self) -> &RegistryHeader {
        // SAFETY: `base` is aligned and mapped (constructors' contracts); atomics only.
        unsafe { self.base.cast().as_ref() }
    }

    fn entry<T>(&self, section: usize, count: u32, index: u32) -> Option<&T> {
        if index >= count {
            return None;
        }
        // SAFETY: sections follow each other as `RegistryShape::bytes` adds them up, the size of
        // each but the last is a multiple of 64, and `index` is within its section; entries are
        // atomics only.
        Some(unsafe { self.base.byte_add(section).cast::<T>().add(index as usize).as_ref() })
    }

    /// Returns the entry of port `id`.
    pub fn port(&self, id: u32) -> Option<&PortEntry> {
        self.entry(size_of::<RegistryHeader>(), self.shape.ports, id.wrapping_sub(1))
    }

    /// Returns the entry of client `id`.
    pub fn client(&self, id: u32) -> Option<&ClientEntry> {
        let section = RegistryShape { clients: 0, connections: 0, ..self.shape }.bytes();
        self.entry(section, self.shape.clients, id.wrapping_sub(1))
    }

    /// Returns connection cell `index`.
    pub fn connection(&self, index: u32) -> Option<&ConnectionCell> {
        let section = RegistryShape { connections: 0, ..self.shape }.bytes();
        self.entry(section, self.shape.connections, index)
    }

    /// Counts a change of an entry. Control thread.
    pub fn note_change(&self) {
        self.header().changes.fetch_add(1, Ordering::Release);
    }

    /// Returns the number of changes since the server started. While it is the same, nothing has to
    /// be read again.
    pub fn changes(&self) -> u64 {
        self.header().changes.load(Ordering::Acquire)
    }
}

/// Tries of one read while an entry is being written.
const TRIES: u32 = 1000;

fn write_locked<R>(sequence: &AtomicU32, change: impl FnOnce() -> R) -> R {
    let before = sequence.load(Ordering::Relaxed);
    sequence.store(before.wrapping_add(1), Ordering::Relaxed);
    // Release: a reader that sees a part of the change also sees the odd sequence.
    fence(Ordering::Release);
    let result = change();
    // Release: a reader that sees the even sequence sees the whole change.
    sequence.store(before.wrapping_add(2), Ordering::Release);
    result
}

fn read_locked<R>(sequence: &AtomicU32, mut read: impl FnMut() -> R) -> Option<R> {
    for _ in 0..TRIES {
        // Acquire: pairs with the end of `write_locked`.
        let before = sequence.load(Ordering::Acquire);
        if before.is_multiple_of(2) {
            let value = read();
            // Acquire: pairs with the fence in `write_locked`.
            fence(Ordering::Acquire);
            if sequence.load(Ordering::Relaxed) == before {
                return Some(value);
            }
        }
        core::hint::spin_loop();
    }
    None
}

impl ClientEntry {
    /// Changes the entry so that readers see all of the change or nothing. Control thread.
    pub fn write<R>(&self, change: impl FnOnce(&Self) -> R) -> R {
        write_locked(&self.sequence, || change(self))
    }

    /// Reads the entry as one value; `None` if the writer was stopped during a change. Thread: any.
    pub fn read<R>(&self, mut read: impl FnMut(&Self) -> R) -> Option<R> {
        read_locked(&self.sequence, || read(self))
    }
}

impl PortEntry {
    /// Changes the entry so that readers see all of the change or nothing. Control thread.
    pub fn write<R>(&self, change: impl FnOnce(&Self) -> R) -> R {
        write_locked(&self.sequence, || change(self))
    }

    /// Reads the entry as one value; `None` if the writer was stopped during a change. Thread: any.
    pub fn read<R>(&self, mut read: impl FnMut(&Self) -> R) -> Option<R> {
        read_locked(&self.sequence, || read(self))
    }

    /// Returns the full name, `client:port`. Its address stays valid, and its text until the second
    /// rename. Thread: any.
    pub fn name(&self) -> &Text<{ FULL_NAME_BYTES / 8 }> {
        &self.names[(self.which_name.load(Ordering::Acquire) % 2) as usize]
    }

    /// Sets a new name and keeps the old one readable. Called within [`write`](Self::write).
    pub fn set_name(&self, name: &str) {
        let other = self.which_name.load(Ordering::Relaxed).wrapping_add(1);
        self.names[(other % 2) as usize].set(name);
        self.which_name.store(other % 2, Ordering::Release);
    }

    /// Returns the latency of the paths that end here: from the capture side, or to the playback
    /// side.
    pub fn latency(&self, capture: bool) -> LatencyRange {
        let packed = self.latency_cell(capture).load(Ordering::Acquire);
        #[expect(clippy::cast_possible_truncation, reason = "two halves of 32 bits")]
        LatencyRange { min: (packed >> 32) as u32, max: packed as u32 }
    }

    /// Sets the latency.
    pub fn set_latency(&self, capture: bool, range: LatencyRange) {
        self.latency_cell(capture)
            .store(u64::from(range.min) << 32 | u64::from(range.max), Ordering::Release);
    }

    fn latency_cell(&self, capture: bool) -> &AtomicU64 {
        if capture { &self.capture_latency } else { &self.playback_latency }
    }
}

impl<const W: usize> Text<W> {
    /// Replaces the text, and truncates it if it does not fit.
    pub fn set(&self, text: &str) {
        let mut bytes =
            text.as_bytes().iter().copied().take(W * 8 - 1).chain(core::iter::repeat(0));
        for word in &self.0 {
            let chunk: [u8; 8] = core::array::from_fn(|_| bytes.next().unwrap_or(0));
            word.store(u64::from_ne_bytes(chunk), Ordering::Relaxed);
        }
    }

    /// Copies the text into `buffer` and returns its length.
    pub fn copy_to(&self, buffer: &mut [u8]) -> usize {
        let mut length = 0;
        for (word, chunk) in self.0.iter().zip(buffer.chunks_mut(8)) {
            let bytes = word.load(Ordering::Relaxed).to_ne_bytes();
            chunk.copy_from_slice(&bytes[..chunk.len()]);
            match bytes[..chunk.len()].iter().position(|byte| *byte == 0) {
                Some(end) => return length + end,
                None => length += chunk.len(),
            }
        }
        length
    }

    /// Returns the text's address for C: zero-terminated, and valid as long as the registry is
    /// mapped.
    pub fn as_ptr(&self) -> *const u8 {
        self.0.as_ptr().cast()
    }

    /// Returns whether the text is empty.
    pub fn is_empty(&self) -> bool {
        self.0[0].load(Ordering::Relaxed).to_ne_bytes()[0] == 0
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::alloc::{Layout as Memory, alloc_zeroed};

    const SHAPE: RegistryShape = RegistryShape { ports: 3, clients: 2, connections: 5 };

    fn memory(bytes: usize) -> NonNull<u8> {
        let layout = Memory::from_size_align(bytes, 4096).expect("valid");
        // SAFETY: the layout is not empty. The test leaks the memory.
        NonNull::new(unsafe { alloc_zeroed(layout) }).expect("memory")
    }

    #[test]
    fn a_received_registry_has_the_entries_that_it_was_made_with() {
        let base = memory(SHAPE.bytes());
        // SAFETY: zeroed, aligned, large enough, leaked.
        let made = unsafe { Registry::create(base, SHAPE) };
        let entry = made.port(3).expect("last port");
        entry.write(|port| port.set_name("client:port"));
        // SAFETY: as above.
        let opened = unsafe { Registry::open(base, SHAPE.bytes()) }.expect("whole");
        assert_eq!(opened.shape(), SHAPE);
        let mut name = [0; FULL_NAME_BYTES];
        let length = opened
            .port(3)
            .and_then(|port| port.read(|port| port.name().copy_to(&mut name)))
            .expect("readable");
        assert_eq!(&name[..length], b"client:port");
        assert!(opened.port(0).is_none() && opened.port(4).is_none());
        assert!(
            opened.client(2).is_some() && opened.client(3).is_none() && opened.client(0).is_none()
        );
        assert!(opened.connection(4).is_some() && opened.connection(5).is_none());
    }

    #[test]
    fn a_registry_that_claims_more_than_its_memory_is_refused() {
        let base = memory(SHAPE.bytes());
        // SAFETY: zeroed, aligned, large enough, leaked.
        let registry = unsafe { Registry::create(base, SHAPE) };
        registry.header().ports.store(u32::MAX, Ordering::Relaxed);
        // SAFETY: as above.
        assert!(unsafe { Registry::open(base, SHAPE.bytes()) }.is_none());
    }

    #[test]
    fn names_longer_than_their_room_are_truncated() {
        let text = Text::<2>([AtomicU64::new(0), AtomicU64::new(0)]);
        text.set("0123456789abcdefgh");
        let mut copy = [0; 16];
        assert_eq!((text.copy_to(&mut copy), &copy[..15]), (15, &b"0123456789abcde"[..]));
        text.set("");
        assert!(text.is_empty());
    }

    #[test]
    fn the_old_name_of_a_renamed_port_stays_readable() {
        // SAFETY: zeroed, aligned, large enough, leaked.
        let registry = unsafe { Registry::create(memory(SHAPE.bytes()), SHAPE) };
        let port = registry.port(1).expect("first");
        port.set_name("a:old");
        let held = port.name();
        port.set_name("a:new");
        let mut name = [0; 16];
        assert_eq!(held.copy_to(&mut name), 5);
        assert_eq!(&name[..5], b"a:old");
    }
}
