//! The thread that opens and closes devices while cycles run: it reopens a card that was unplugged,
//! and configures a new quantum, so that the cycle thread waits for neither. It also sets hardware
//! monitoring, so that the control thread does not wait for the card.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rtrb::{Consumer, Producer, RingBuffer};
use sys::poll::{Interest, Poller, Waker};

use super::device::Device;
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
    pub(super) fn start(
        recipe: Recipe,
        quantum: u32,
        monitoring: Option<HardwareMonitoring>,
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
            poller.add(monitoring.requested().waker(), 1, Interest::Readable)?;
        }
        // There is one device, so each ring needs one slot.
        let (away, returned) = RingBuffer::new(1);
        let (opened, ready) = RingBuffer::new(1);
        let of_thread = Arc::clone(&shared);
        let body =
            move || keep(&recipe, &of_thread, &poller, returned, opened, monitoring, &why_away);
        let thread = Some(sys::thread::spawn_named("consort-device", STACK_BYTES, body)?);
        Ok(Self { shared, away, ready, thread })
    }

    /// Takes a device to close it, and to open it again for `quantum` as soon as possible. Thread:
    /// cycle.
    pub(super) fn take(&mut self, device: Box<Device>, quantum: u32) {
        self.expect_quantum(quantum);
        // There is one device, so the slot is free.
        let _ = self.away.push(device);
        self.shared.waker.wake();
    }

    /// Sets the quantum for which the device is opened. Thread: cycle.
    pub(super) fn expect_quantum(&mut self, quantum: u32) {
        // Relaxed: a device that was configured for another is sent back.
        self.shared.quantum.store(quantum, Ordering::Relaxed);
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
    recipe: &Recipe,
    shared: &Shared,
    poller: &Poller,
    mut returned: Consumer<Box<Device>>,
    mut opened: Producer<Box<Device>>,
    mut monitoring: Option<HardwareMonitoring>,
    why_away: &WhyAway,
) {
    let (mut away, mut events) = (false, Vec::new());
    loop {
        let retry_ns = away.then(|| sys::clock::now_ns() + RETRY_NS);
        let waited = poller.wait(&mut events, retry_ns);
        // Before the checks: a wake-up from here on ends the next wait.
        shared.waker.reset();
        if waited.is_err() || shared.stop.load(Ordering::Relaxed) {
            return;
        }
        if let Ok(mut device) = returned.pop() {
            device.stop();
            away = true;
        }
        if away {
            monitoring.iter_mut().for_each(HardwareMonitoring::let_go_if_gone);
        }
        if away
            && let Some(device) =
                try_again(recipe, shared.quantum.load(Ordering::Relaxed), why_away)
        {
            monitoring.iter_mut().for_each(HardwareMonitoring::device_is_open);
            away = opened.push(Box::new(device)).is_err();
        }
        monitoring.iter_mut().for_each(HardwareMonitoring::carry);
    }
}

/// Opens the device if it is plugged in, and notes why that failed.
fn try_again(recipe: &Recipe, quantum: u32, why_away: &WhyAway) -> Option<Device> {
    let opened = recipe.is_there().then(|| recipe.open_again(quantum)).transpose();
    why_away.note(opened.as_ref().err().cloned());
    opened.ok().flatten()
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
