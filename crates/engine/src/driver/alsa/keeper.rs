//! The thread that opens and closes devices while cycles go on: a card that was pulled out comes back, and a new
//! quantum is configured, without the cycle thread waiting for either. It also has the card monitor, without the control
//! thread waiting for that.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rtrb::{Consumer, Producer, RingBuffer};
use sys::poll::{Interest, Poller, Waker};

use super::device::Device;
use super::monitoring::Monitoring;
use super::recipe::Recipe;

/// A device that is not there is looked for after this.
const LOOK_NS: u64 = 250_000_000;
const STACK_BYTES: usize = 256 * 1024;

#[derive(Debug)]
struct Shared {
    waker: Waker,
    stop: AtomicBool,
    /// Frames that a device is to be configured for.
    quantum: AtomicU32,
}

/// Why a device that is plugged in cannot be had, from the keeper to the control thread.
#[derive(Debug, Default)]
pub struct WhyAway(Mutex<Option<String>>);

impl WhyAway {
    /// The sentence; `None`: the device is not plugged in, or nothing is wrong with it. Thread: not the cycle's.
    pub fn now(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note(&self, why: Option<String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = why;
    }
}

/// The cycle thread's end of the keeper.
#[derive(Debug)]
pub(super) struct Keeper {
    shared: Arc<Shared>,
    away: Producer<Box<Device>>,
    ready: Consumer<Box<Device>>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    /// Starts the thread. Thread: not the cycle's.
    pub(super) fn start(
        recipe: Recipe,
        quantum: u32,
        monitoring: Option<Monitoring>,
        why_away: Arc<WhyAway>,
    ) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            waker: Waker::new()?,
            stop: AtomicBool::new(false),
            quantum: AtomicU32::new(quantum),
        });
        let poller = Poller::new()?;
        poller.add(&shared.waker, 0, Interest::Readable)?;
        if let Some(monitoring) = &monitoring {
            poller.add(monitoring.wanted().waker(), 1, Interest::Readable)?;
        }
        // There is one device, so one place each is enough.
        let (away, returned) = RingBuffer::new(1);
        let (opened, ready) = RingBuffer::new(1);
        let of_thread = Arc::clone(&shared);
        let body = move || keep(&recipe, &of_thread, &poller, returned, opened, monitoring, &why_away);
        let thread = Some(sys::thread::spawn_named("consort-device", STACK_BYTES, body)?);
        Ok(Self { shared, away, ready, thread })
    }

    /// Takes a device that is to be closed, and opened again for `quantum` as soon as it can be. Thread: cycle.
    pub(super) fn take(&mut self, device: Box<Device>, quantum: u32) {
        self.expect_quantum(quantum);
        // The only device there is always finds a place.
        let _ = self.away.push(device);
        self.shared.waker.wake();
    }

    /// The device that comes back is to be configured for `quantum`. Thread: cycle.
    pub(super) fn expect_quantum(&mut self, quantum: u32) {
        // Relaxed: a device that was configured for another is sent back.
        self.shared.quantum.store(quantum, Ordering::Relaxed);
    }

    /// The device, if it has come back. Thread: cycle.
    pub(super) fn give(&mut self) -> Option<Box<Device>> {
        self.ready.pop().ok()
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // Relaxed: the waker's system call orders it.
        self.shared.stop.store(true, Ordering::Relaxed);
        self.shared.waker.wake();
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed, and there is nothing more to do for it.
            let _ = thread.join();
        }
    }
}

fn keep(
    recipe: &Recipe,
    shared: &Shared,
    poller: &Poller,
    mut returned: Consumer<Box<Device>>,
    mut opened: Producer<Box<Device>>,
    mut monitoring: Option<Monitoring>,
    why_away: &WhyAway,
) {
    let (mut away, mut events) = (false, Vec::new());
    loop {
        let look_ns = away.then(|| sys::clock::now_ns() + LOOK_NS);
        let waited = poller.wait(&mut events, look_ns);
        // Before anything is looked at: whoever calls from here on is heard the next time.
        shared.waker.reset();
        if waited.is_err() || shared.stop.load(Ordering::Relaxed) {
            return;
        }
        if let Ok(mut device) = returned.pop() {
            device.stop();
            away = true;
        }
        if away {
            monitoring.iter_mut().for_each(Monitoring::let_go_if_gone);
        }
        if away && let Some(device) = try_again(recipe, shared.quantum.load(Ordering::Relaxed), why_away) {
            monitoring.iter_mut().for_each(Monitoring::device_is_open);
            away = opened.push(Box::new(device)).is_err();
        }
        monitoring.iter_mut().for_each(Monitoring::carry);
    }
}

/// The device, if it can be had; notes why not, if it is plugged in.
fn try_again(recipe: &Recipe, quantum: u32, why_away: &WhyAway) -> Option<Device> {
    let opened = recipe.is_there().then(|| recipe.open_again(quantum)).transpose();
    why_away.note(opened.as_ref().err().cloned());
    opened.ok().flatten()
}

#[cfg(test)]
mod tests {
    use proto::driver::{AlsaOptions, AlsaSide};

    use super::*;

    /// What plays on this device of the library's, with so many quanta waiting.
    fn recipe(device: &str, periods: u32) -> Recipe {
        let playback = AlsaSide { device: Some(device.into()), ..AlsaSide::default() };
        let options =
            AlsaOptions { capture: None, playback: Some(playback), periods, ..AlsaOptions::default() };
        Recipe::new(&options).unwrap()
    }

    #[test]
    fn a_device_that_refuses_a_quantum_says_why_until_it_can_be_had() {
        let (recipe, why_away) = (recipe("null", u32::MAX), WhyAway::default());
        assert!(try_again(&recipe, 64, &why_away).is_none());
        let why = why_away.now().unwrap();
        assert!(
            why.starts_with("'null' cannot playback: ") && why.contains("do not fit its memory"),
            "{why}"
        );
        assert!(try_again(&self::recipe("null", 2), 64, &why_away).is_some());
        assert_eq!(why_away.now(), None);
    }

    #[test]
    fn a_card_that_is_not_plugged_in_is_not_asked_why() {
        let why_away = WhyAway::default();
        assert!(try_again(&recipe("hw:CARD=NoSuch", 2), 64, &why_away).is_none());
        assert_eq!(why_away.now(), None);
    }
}
