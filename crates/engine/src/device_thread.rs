//! The thread of a device beside the one that drives the graph: it renders the device's streams,
//! and sleeps in between.

use std::io;
use std::sync::Arc;

use mix::Card;
use proto::stream::DeviceState;
use sys::futex::Futex;

use crate::cycle_thread::CycleShared;
use crate::device_shared::DeviceShared;
use crate::stream_part::{StreamHost, StreamPart};

const STACK_BYTES: usize = 256 * 1024;
const PREFAULTED_STACK_BYTES: usize = 64 * 1024;

/// The state of a further device's thread.
pub struct DeviceThread {
    /// What is played on.
    pub card: Box<dyn Card + Send>,
    /// The streams, and the loop that renders them.
    pub streams: StreamPart,
    /// Shared with the control thread.
    pub shared: Arc<DeviceShared>,
    /// The way to wake the control thread.
    pub control: Arc<CycleShared>,
}

/// The thread, without its streams.
struct Host {
    card: Box<dyn Card + Send>,
    control: Arc<CycleShared>,
}

impl StreamHost for Host {
    fn card(&mut self) -> Option<&mut dyn Card> {
        Some(&mut *self.card)
    }

    fn play_streams(&mut self, _on: bool) {}

    fn call_control(&self) {
        self.control.waker.wake();
    }
}

impl DeviceThread {
    /// Starts the thread with this priority under `SCHED_FIFO`; `None`: it is not real-time.
    ///
    /// # Errors
    /// The kernel has no thread left.
    pub fn spawn(self, priority: Option<u32>) -> io::Result<()> {
        let body = move || {
            if let Some(priority) = priority {
                // Refused only if the right was taken away since the server started.
                let _ = sys::thread::set_fifo(0, priority);
            }
            device::discard_library_messages();
            sys::thread::flush_denormals_to_zero();
            sys::thread::prefault_stack(PREFAULTED_STACK_BYTES);
            self.run();
        };
        // It ends when it is asked to, and says so through its ring: no one waits for it.
        sys::thread::spawn_named("consort-device", STACK_BYTES, body).map(drop)
    }

    /// Renders until the device is removed. From here on, nothing allocates, locks, logs or waits
    /// without a bound, until everything has been given back.
    fn run(self) {
        let Self { card, mut streams, shared, control } = self;
        let mut host = Host { card, control };
        loop {
            let calls = shared.call.count();
            if shared.is_to_leave() {
                break;
            }
            sys::cycle_guard::enter();
            let wake_ns = streams.serve(&mut host, shared.gains.all());
            let plays = wake_ns.is_some();
            if shared.note_state(if plays { DeviceState::Deep } else { DeviceState::Parked }) {
                host.call_control();
            }
            streams.answer_calls(calls, &host);
            sys::cycle_guard::leave();
            shared.call.sleep(calls, wake_ns, &Futex);
            shared.note_wake_up();
        }
        streams.leave(&mut host);
    }
}
