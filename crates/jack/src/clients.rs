//! Handles of clients: numbers that are looked up, never addresses that are dereferenced.
//!
//! A `jack_client_t *` is the index of a slot and the slot's generation, so that null, foreign and
//! closed handles can be distinguished from open ones. A lookup pins the slot: an atomic addition
//! and later a subtraction, allowed within a cycle. The client behind a closed handle is dropped
//! when its last pin is gone, so that a call may race with `jack_client_close`. If that takes long,
//! the next open or close drops it.

use std::ffi::CString;
use std::ops::Deref;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use client::{ChunkedList, Session};

use crate::callbacks::Hooks;

/// A `jack_client_t *`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct ClientHandle(usize);

/// An open client.
#[derive(Debug)]
pub struct OpenClient {
    /// Its session.
    pub session: Session,
    /// The result of `jack_get_client_name`.
    pub name: CString,
    /// Number of its server in this process.
    pub server: u32,
    /// State of the callbacks that the library handles itself.
    pub hooks: Arc<Hooks>,
}

/// A slot for a client. `state` holds the generation (32 bits), `OPEN`, `CLOSING`, `CLOSED`, and
/// the number of pins.
#[derive(Debug)]
struct Slot {
    state: AtomicU64,
    /// Not null from the opening until the client is dropped.
    client: AtomicPtr<OpenClient>,
    server: AtomicU32,
}

impl Slot {
    const fn new() -> Self {
        Self {
            state: AtomicU64::new(0),
            client: AtomicPtr::new(null_mut()),
            server: AtomicU32::new(0),
        }
    }
}

impl Default for Slot {
    fn default() -> Self {
        Self::new()
    }
}

const GENERATION: u64 = 1 << 32;
/// Lookups succeed.
const OPEN: u64 = 1 << 31;
/// The client is being closed. Lookups still succeed, because the process thread may be in the
/// program's code until the session is closed.
const CLOSING: u64 = 1 << 30;
/// The session is closed: without pins, the client may be dropped.
const CLOSED: u64 = 1 << 29;
const PINS: u64 = CLOSED - 1;

/// How a handle's bits are divided: the slot's index plus one, so that no handle is null, and above
/// it as much of the slot's generation as there is room for.
#[derive(Debug, Clone, Copy)]
struct HandleBits {
    index: u32,
    generation: u32,
}

/// Of this program's addresses. A 32-bit program may have 4095 clients, and a handle is another
/// client's again after a million openings in its slot.
const BITS: HandleBits = HandleBits::of(usize::BITS);

static SLOTS: ChunkedList<Slot, 4> = ChunkedList::new([const { Slot::new() }; 4]);
/// Held while slots are filled or emptied.
static CHANGES: Mutex<()> = Mutex::new(());

/// A reference to a client that keeps it from being dropped.
#[derive(Debug)]
pub struct Pinned {
    slot: &'static Slot,
    client: *const OpenClient,
}

impl ClientHandle {
    /// The null handle.
    pub const NONE: Self = Self(0);

    /// Returns the handle as a number.
    pub fn number(self) -> u64 {
        self.0 as u64
    }

    /// Returns the handle with this number.
    pub fn from_number(number: u64) -> Self {
        Self(usize::try_from(number).unwrap_or(0))
    }

    fn of(index: usize, state: u64) -> Self {
        Self::from_number(BITS.handle(index, state / GENERATION))
    }

    #[inline]
    fn slot(self) -> Option<(&'static Slot, u64)> {
        let (index, generation) = BITS.parts(self.0 as u64)?;
        Some((SLOTS.get(index)?, generation))
    }

    /// Returns the client if this is the handle of an open one. Thread: any.
    #[inline]
    pub fn pin(self) -> Option<Pinned> {
        let (slot, generation) = self.slot()?;
        // Acquire, twice: pairs with the opening, so that the client is seen whole.
        let before = slot.state.fetch_add(1, Ordering::Acquire);
        let pinned = Pinned { slot, client: slot.client.load(Ordering::Acquire) };
        let is_current = BITS.shown(before / GENERATION) == generation;
        (is_current && before & OPEN != 0).then_some(pinned)
    }
}

impl HandleBits {
    const fn of(address_bits: u32) -> Self {
        let index = if address_bits < 64 { 12 } else { 24 };
        let room = address_bits - index;
        Self { index, generation: if room < 32 { room } else { 32 } }
    }

    const fn slots(self) -> usize {
        (1 << self.index) - 1
    }

    /// What handles show of a slot's generation.
    #[inline]
    const fn shown(self, generation: u64) -> u64 {
        generation & ((1 << self.generation) - 1)
    }

    fn handle(self, index: usize, generation: u64) -> u64 {
        self.shown(generation) << self.index | (index as u64 + 1)
    }

    /// The index, and what the handle shows of the generation; `None` for no slot's handle.
    #[inline]
    fn parts(self, handle: u64) -> Option<(usize, u64)> {
        let index = (handle & ((1 << self.index) - 1)).checked_sub(1)?;
        Some((index as usize, handle >> self.index))
    }
}

impl Deref for Pinned {
    type Target = OpenClient;

    fn deref(&self) -> &OpenClient {
        // SAFETY: `pin` returns only a client that it found open in the same atomic step that
        // counted the pin. `reap` drops a client only after it was marked as not open and when no
        // pin is counted, so this one still exists.
        unsafe { &*self.client }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // Release: the thread that drops the client sees everything done with it before.
        self.slot.state.fetch_sub(1, Ordering::Release);
    }
}

/// Assigns a handle to `client`. Returns `None` if there are too many.
pub fn insert(client: OpenClient) -> Option<ClientHandle> {
    let reaped = reap();
    let _changing = CHANGES.lock().unwrap_or_else(PoisonError::into_inner);
    // Relaxed: under the lock, like every change of slots.
    let index =
        (0..BITS.slots()).take_while(|index| SLOTS.make(*index).is_some()).find(|index| {
            SLOTS.get(*index).is_some_and(|slot| slot.client.load(Ordering::Relaxed).is_null())
        })?;
    let slot = SLOTS.get(index)?;
    // Relaxed: the addition below publishes it together with the client.
    slot.server.store(client.server, Ordering::Relaxed);
    slot.client.store(Box::into_raw(Box::new(client)), Ordering::Release);
    // OPEN is not set yet, so the addition sets it. Release: pairs with `pin`.
    let before = slot.state.fetch_add(GENERATION | OPEN, Ordering::Release);
    drop(reaped);
    Some(ClientHandle::of(index, before.wrapping_add(GENERATION)))
}

/// Returns any open client on server number `server`. Thread: any.
pub fn any_on(server: u32) -> Option<(ClientHandle, Pinned)> {
    // Relaxed: only a hint until the slot is pinned, and from then on the value stored before the
    // opening.
    any_where(|slot| slot.server.load(Ordering::Relaxed) == server)
}

/// Returns the number of `session`'s server if another open client of this process is on it too.
pub fn server_like(session: &Session) -> Option<u32> {
    let instance = |session: &Session| session.engine().map(|engine| engine.instance());
    let same = |other: &OpenClient| {
        other.session.server_name() == session.server_name()
            && instance(&other.session) == instance(session)
    };
    // Relaxed: a hint of the generation, which pinning verifies.
    let open = SLOTS.iter().enumerate().filter_map(|(index, slot)| {
        ClientHandle::of(index, slot.state.load(Ordering::Relaxed)).pin()
    });
    open.filter(|client| same(client)).map(|client| client.server).next()
}

/// Returns any open client of this process. Thread: any.
pub fn any() -> Option<Pinned> {
    any_where(|_| true).map(|(_, pinned)| pinned)
}

fn any_where(wanted: impl Fn(&Slot) -> bool) -> Option<(ClientHandle, Pinned)> {
    SLOTS.iter().enumerate().filter(|(_, slot)| wanted(slot)).find_map(|(index, slot)| {
        // Relaxed: the slot may have changed meanwhile, which pinning detects.
        let handle = ClientHandle::of(index, slot.state.load(Ordering::Relaxed));
        Some((handle, handle.pin()?)).filter(|_| wanted(slot))
    })
}

/// How long a close waits for calls that race with it, before it leaves the rest to the next open
/// or close.
const PATIENCE: Duration = Duration::from_millis(1);
const TRIES: u32 = 100;

/// Closes the client. Returns false if the handle is not that of an open client.
pub fn close(handle: ClientHandle) -> bool {
    let Some(pinned) = handle.pin() else { return false };
    let slot = pinned.slot;
    // AcqRel for uniformity: nothing else depends on which close comes first.
    if slot.state.fetch_or(CLOSING, Ordering::AcqRel) & CLOSING != 0 {
        return false;
    }
    pinned.session.close();
    // Release of both: pairs with the load in `reap`, so that the session's end precedes the
    // client's.
    slot.state.fetch_and(!OPEN, Ordering::AcqRel);
    slot.state.fetch_or(CLOSED, Ordering::AcqRel);
    drop(pinned);
    for _ in 0..TRIES {
        drop(reap());
        // Acquire: pairs with the end of `reap`, which may run on another thread.
        if slot.state.load(Ordering::Acquire) & CLOSED == 0 {
            break;
        }
        std::thread::sleep(PATIENCE);
    }
    true
}

/// Takes out the closed clients without pins, for the caller to drop.
fn reap() -> Vec<OpenClient> {
    let _changing = CHANGES.lock().unwrap_or_else(PoisonError::into_inner);
    let mut reaped = Vec::new();
    for slot in SLOTS.iter() {
        // Acquire: pairs with the end of the last pin, and with `close`.
        let state = slot.state.load(Ordering::Acquire);
        if state & CLOSED == 0 || state & PINS != 0 {
            continue;
        }
        // Acquire: pairs with the opening. Filling the slot again comes later, by the lock.
        let client = slot.client.swap(null_mut(), Ordering::AcqRel);
        if !client.is_null() {
            // SAFETY: made by `insert` from a box and taken out once, under the lock. It is not
            // open and has no pin, and a later lookup finds it not open.
            reaped.push(*unsafe { Box::from_raw(client) });
        }
        // Release: pairs with the last load in `close`.
        slot.state.fetch_and(!(CLOSING | CLOSED), Ordering::Release);
    }
    reaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_of_many_openings_fit_into_an_address() {
        for address_bits in [32, 64] {
            let bits = HandleBits::of(address_bits);
            for index in [0, 1, bits.slots() - 1] {
                for generation in [1, 255, 256, 257, 65_536, (1 << bits.generation) - 1] {
                    let handle = bits.handle(index, generation);
                    assert!(handle != 0 && handle.checked_shr(address_bits).unwrap_or(0) == 0);
                    assert_eq!(bits.parts(handle), Some((index, generation)), "{address_bits}");
                }
            }
            assert_eq!(
                bits.shown(1 << bits.generation),
                0,
                "a generation that handles cannot show"
            );
            assert_eq!(bits.parts(0), None);
        }
    }
}
