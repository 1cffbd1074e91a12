//! The thread that opens and closes devices while cycles run: it reopens a card that was unplugged,
//! and configures a new quantum, so that the cycle thread waits for neither. It gives a card up to
//! a program that asks for it with a higher priority, and takes it back. It also sets hardware
//! monitoring, so that the control thread does not wait for the card.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;

use rtrb::{Consumer, Producer, RingBuffer};
use sys::directory::DirectoryWatch;
use sys::poll::{Interest, Poller, Waker};

use super::claims::Claims;
use super::device::{Device, Need};
use super::hardware_monitoring::HardwareMonitoring;
use super::recipe::Recipe;

/// Interval of the attempts to reopen a missing device.
const RETRY_NS: u64 = 250_000_000;
const STACK_BYTES: usize = 256 * 1024;

#[derive(Debug)]
struct Shared {
    waker: Waker,
    stop: AtomicBool,
    /// Quantum, in frames, for which the device is configured when it is opened.
    quantum: AtomicU32,
    /// It is opened for streams.
    for_streams: AtomicBool,
    /// It stays closed until it is needed.
    is_closed: AtomicBool,
    /// Another program is to have the card.
    card_is_wanted: AtomicBool,
    /// The device is not plugged in.
    is_unplugged: AtomicBool,
}

/// Tokens of what the thread waits for.
const CALLED: u64 = 0;
const MONITORING: u64 = 1;
const CLAIMS: u64 = 2;
const NODES: u64 = 3;

/// Returns what says when a card may have come or gone; `None` where the kernel's devices have no
/// directory, or no watch is left.
#[must_use]
pub fn watch_cards() -> Option<DirectoryWatch> {
    DirectoryWatch::new(Path::new("/dev/snd")).ok()
}

/// What the recovery thread keeps for a device.
#[derive(Debug)]
pub(super) struct Kept {
    /// How it is opened.
    pub(super) recipe: Recipe,
    /// The card's controls.
    pub(super) monitoring: Option<HardwareMonitoring>,
    /// What other programs ask for.
    pub(super) claims: Claims,
    /// For the control thread.
    pub(super) why_away: Arc<WhyAway>,
    /// For the cycle thread.
    pub(super) rest_call: Arc<RestCall>,
}

/// Calls the thread that has a driver which [rests](crate::Driver::rest), and which may run no
/// cycles meanwhile.
#[derive(Default)]
pub struct RestCall(OnceLock<Box<dyn Fn() + Send + Sync>>);

impl RestCall {
    /// Sets what calls the thread, once: it must make the thread call [`rest`](crate::Driver::rest)
    /// if the driver is paused. Thread: not the cycle's.
    pub fn set(&self, call: impl Fn() + Send + Sync + 'static) {
        // A driver has one thread.
        let _ = self.0.set(Box::new(call));
    }

    fn call(&self) {
        if let Some(call) = self.0.get() {
            call();
        }
    }
}

impl std::fmt::Debug for RestCall {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("RestCall").finish_non_exhaustive()
    }
}

/// Why a device that is plugged in cannot be opened, from the recovery thread to the control
/// thread.
#[derive(Debug, Default)]
pub struct WhyAway(Mutex<Option<String>>);

impl WhyAway {
    /// Returns the reason as a sentence; `None` if the device is not plugged in or works. Thread:
    /// not the cycle's.
    pub fn now(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note(&self, why: Option<String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = why;
    }
}

/// The cycle thread's end of the recovery thread.
#[derive(Debug)]
pub(super) struct DeviceRecovery {
    shared: Arc<Shared>,
    away: Producer<Box<Device>>,
    ready: Consumer<Box<Device>>,
    thread: Option<JoinHandle<()>>,
}

impl DeviceRecovery {
    /// Starts the thread. Thread: not the cycle's.
    pub(super) fn start(kept: Kept, quantum: u32) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            waker: Waker::new()?,
            stop: AtomicBool::new(false),
            quantum: AtomicU32::new(quantum),
            for_streams: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            card_is_wanted: AtomicBool::new(false),
            is_unplugged: AtomicBool::new(false),
        });
        let poller = Poller::new()?;
        poller.add(&shared.waker, CALLED, Interest::Readable)?;
        if let Some(monitoring) = &kept.monitoring {
            poller.add(monitoring.requested().waker(), MONITORING, Interest::Readable)?;
        }
        kept.claims.watch(&poller, CLAIMS)?;
        // Without it, a card that was pulled out is noticed when it is used.
        let nodes = watch_cards();
        if let Some(nodes) = &nodes {
            poller.add(nodes, NODES, Interest::Readable)?;
        }
        // There is one device, so each ring needs one slot.
        let (away, returned) = RingBuffer::new(1);
        let (opened, ready) = RingBuffer::new(1);
        let of_thread = Arc::clone(&shared);
        let body = move || {
            // The server still has root's rights where it opens its first driver.
            let _ = sys::process::drop_rights(false);
            keep(kept, &of_thread, (&poller, nodes), returned, opened);
        };
        let thread = Some(sys::thread::spawn_named("consort-device", STACK_BYTES, body)?);
        Ok(Self { shared, away, ready, thread })
    }

    /// Returns whether the device must be [passed here](Self::take), because another program is to
    /// have its card. Thread: cycle.
    pub(super) fn card_is_wanted(&self) -> bool {
        // Relaxed: the device itself crosses in a ring.
        self.shared.card_is_wanted.load(Ordering::Relaxed)
    }

    /// Takes a device to close it, and to open it again for this as soon as possible. Thread:
    /// cycle.
    pub(super) fn take(&mut self, device: Box<Device>, quantum: u32, need: Need) {
        self.expect(quantum, need);
        // There is one device, so the slot is free.
        let _ = self.away.push(device);
        self.shared.waker.wake();
    }

    /// Takes a device to close it, until it is [to be opened](Self::open). Thread: cycle.
    pub(super) fn close(&mut self, device: Box<Device>, quantum: u32, need: Need) {
        // Relaxed, here and below: the waker's system call orders it, or the next one does.
        self.shared.is_closed.store(true, Ordering::Relaxed);
        self.take(device, quantum, need);
    }

    /// Leaves a device closed that was taken, until it is [to be opened](Self::open). Thread:
    /// cycle.
    pub(super) fn keep_closed(&mut self) {
        self.shared.is_closed.store(true, Ordering::Relaxed);
    }

    /// Returns whether the device is not plugged in. Thread: cycle.
    pub(super) fn is_unplugged(&self) -> bool {
        // Relaxed: says nothing about other memory.
        self.shared.is_unplugged.load(Ordering::Relaxed)
    }

    /// Opens a device that was closed. Thread: cycle.
    pub(super) fn open(&mut self, quantum: u32, need: Need) {
        self.expect(quantum, need);
        self.shared.is_closed.store(false, Ordering::Relaxed);
        self.shared.waker.wake();
    }

    /// Sets the quantum for which the device is opened, and what else it is needed for. Thread:
    /// cycle.
    pub(super) fn expect(&mut self, quantum: u32, need: Need) {
        // Relaxed: a device that was configured for something else is sent back.
        self.shared.quantum.store(quantum, Ordering::Relaxed);
        self.shared.for_streams.store(need == Need::Streams, Ordering::Relaxed);
    }

    /// Returns the device once it is open again. Thread: cycle.
    pub(super) fn give(&mut self) -> Option<Box<Device>> {
        self.ready.pop().ok()
    }
}

impl Drop for DeviceRecovery {
    fn drop(&mut self) {
        // Relaxed: the waker's system call orders it.
        self.shared.stop.store(true, Ordering::Relaxed);
        self.shared.waker.wake();
        if let Some(thread) = self.thread.take() {
            // A panic of that thread has been printed, and nothing else can be done about it.
            let _ = thread.join();
        }
    }
}

fn keep(
    kept: Kept,
    shared: &Shared,
    (poller, nodes): (&Poller, Option<DirectoryWatch>),
    mut returned: Consumer<Box<Device>>,
    mut opened: Producer<Box<Device>>,
) {
    let Kept { recipe, mut monitoring, claims, why_away, rest_call } = kept;
    let (mut away, mut events) = (false, Vec::new());
    let mut look_again_ns = None;
    let mut opener = Opener { recipe, why_away, step_frames: None };
    loop {
        // Relaxed: a thread that is to look again is woken.
        let rests = |shared: &Shared| shared.is_closed.load(Ordering::Relaxed);
        let retries = away && !claims.forbid() && !rests(shared);
        let retry_ns = retries.then(|| sys::clock::now_ns() + RETRY_NS);
        let waited = poller.wait(&mut events, retry_ns.into_iter().chain(look_again_ns).min());
        // Before the checks: a wake-up from here on ends the next wait.
        shared.waker.reset();
        if waited.is_err() || shared.stop.load(Ordering::Relaxed) {
            return;
        }
        let nodes = nodes.as_ref().filter(|_| events.iter().any(|event| event.token == NODES));
        if let Some(nodes) = nodes {
            nodes.reset();
            // The last node goes a moment before the card does.
            look_again_ns = Some(sys::clock::now_ns() + RETRY_NS);
        } else if look_again_ns.is_some_and(|due_ns| due_ns <= sys::clock::now_ns()) {
            look_again_ns = None;
        }
        let is_unplugged = !opener.recipe.is_there();
        if shared.is_unplugged.swap(is_unplugged, Ordering::Relaxed) != is_unplugged {
            rest_call.call();
        }
        claims.take_news(poller);
        let wanted = claims.forbid();
        // Relaxed: the device crosses in a ring, and a driver that rests is called.
        if wanted && !shared.card_is_wanted.swap(true, Ordering::Relaxed) {
            rest_call.call();
        } else if !wanted {
            shared.card_is_wanted.store(false, Ordering::Relaxed);
        }
        if let Ok(mut device) = returned.pop() {
            device.stop();
            away = true;
        }
        if away {
            monitoring.iter_mut().for_each(HardwareMonitoring::let_go_if_gone);
            claims.device_is_closed();
        }
        if away && wanted {
            opener.why_away.note(claims.who_has_it());
        } else if away
            && !rests(shared)
            && let Some(device) = opener.try_again(shared)
        {
            monitoring.iter_mut().for_each(HardwareMonitoring::device_is_open);
            away = opened.push(Box::new(device)).is_err();
            // A driver that runs no cycles may wait for it.
            rest_call.call();
        }
        monitoring.iter_mut().for_each(HardwareMonitoring::carry);
    }
}

/// Opens the device.
struct Opener {
    recipe: Recipe,
    why_away: Arc<WhyAway>,
    /// By how many frames its position moves at once; `None`: not measured yet.
    step_frames: Option<u32>,
}

impl Opener {
    /// Opens the device if it is plugged in, and notes why that failed.
    fn try_again(&mut self, shared: &Shared) -> Option<Device> {
        // Relaxed: see `DeviceRecovery::expect`.
        let quantum = shared.quantum.load(Ordering::Relaxed);
        let for_streams = shared.for_streams.load(Ordering::Relaxed);
        let need = if for_streams { Need::Streams } else { Need::Cycles };
        self.open(quantum, need)
    }

    fn open(&mut self, quantum: u32, need: Need) -> Option<Device> {
        let recipe = &self.recipe;
        let opened = recipe.is_there().then(|| recipe.open_again(quantum, need)).transpose();
        self.why_away.note(opened.as_ref().err().cloned());
        let mut device = opened.ok().flatten()?;
        if need == Need::Streams {
            // A device that cannot be measured fails again when it is started.
            let step_frames = self.step_frames.or_else(|| device.measure_step().ok());
            self.step_frames = step_frames;
            device.safety_frames = device.safety_for(step_frames.unwrap_or(0));
        }
        Some(device)
    }
}

#[cfg(test)]
mod tests {
    use proto::driver::{AlsaOptions, AlsaSide};

    use super::*;

    /// A recipe that plays on this device of the library, with `periods` quanta queued.
    fn recipe(device: &str, periods: u32) -> Recipe {
        let playback = AlsaSide { device: Some(device.into()), ..AlsaSide::default() };
        let options = AlsaOptions {
            capture: None,
            playback: Some(playback),
            periods,
            ..AlsaOptions::default()
        };
        Recipe::new(&options).unwrap()
    }

    fn opener(device: &str, periods: u32) -> Opener {
        Opener { recipe: recipe(device, periods), why_away: Arc::default(), step_frames: None }
    }

    #[test]
    fn a_device_that_refuses_a_quantum_says_why_until_it_can_be_had() {
        let mut opener = opener("null", u32::MAX);
        assert!(opener.open(64, Need::Cycles).is_none());
        let why = opener.why_away.now().unwrap();
        assert!(
            why.starts_with("'null' cannot playback: ") && why.contains("do not fit its memory"),
            "{why}"
        );
        opener.recipe = recipe("null", 2);
        assert!(opener.open(64, Need::Cycles).is_some());
        assert_eq!(opener.why_away.now(), None);
    }

    #[test]
    fn a_card_that_is_not_plugged_in_is_not_asked_why() {
        let mut opener = opener("hw:CARD=NoSuch", 2);
        assert!(opener.open(64, Need::Cycles).is_none());
        assert_eq!(opener.why_away.now(), None);
    }
}
