//! The thread that opens and closes devices while cycles go on: a card that was pulled out comes back, and a new
//! quantum is configured, without the cycle thread waiting for either. It also has the card monitor, without the control
//! thread waiting for that.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
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
        let body = move || keep(&recipe, &of_thread, &poller, returned, opened, monitoring);
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
        if away && let Ok(device) = recipe.open_again(shared.quantum.load(Ordering::Relaxed)) {
            monitoring.iter_mut().for_each(Monitoring::device_is_open);
            away = opened.push(Box::new(device)).is_err();
        }
        monitoring.iter_mut().for_each(Monitoring::carry);
    }
}
