//! The thread of a device beside the one that drives the graph: it renders the device's streams,
//! and sleeps in between. While what the device captures is recorded, it runs cycles of its own.

use std::io;
use std::sync::Arc;

use device::{Driver, Wake};
use mix::Card;
use proto::stream::DeviceState;
use rt::park::Park;
use sys::futex::Futex;

use crate::closing::Closing;
use crate::cycle_thread::CycleShared;
use crate::device_cycles::Captured;
use crate::device_shared::DeviceShared;
use crate::stream_part::{StreamHost, StreamPart};

const STACK_BYTES: usize = 256 * 1024;
const PREFAULTED_STACK_BYTES: usize = 64 * 1024;

/// The state of a further device's thread.
pub struct DeviceThread {
    /// What is played on: a driver with a card, which is paused.
    pub driver: Box<dyn Driver>,
    /// Room for what it captures in a cycle.
    pub captured: Captured,
    /// After how long without anything that plays it is closed, ns; `None`: never.
    pub suspend_ns: Option<u64>,
    /// The streams, and the loop that renders them.
    pub streams: StreamPart,
    /// Shared with the control thread.
    pub shared: Arc<DeviceShared>,
    /// The way to wake the control thread.
    pub control: Arc<CycleShared>,
}

/// The thread, without its streams.
pub struct Host {
    pub(crate) driver: Box<dyn Driver>,
    control: Arc<CycleShared>,
}

impl StreamHost for Host {
    fn card(&mut self) -> Option<&mut dyn Card> {
        self.driver.card()
    }

    fn plays(&mut self, _channels: usize) -> bool {
        // No other device takes its place.
        true
    }

    fn play_streams(&mut self, on: bool) {
        if on {
            // Its cycles are those of programs that record it.
            self.driver.begin_streams(true);
        } else {
            self.driver.end_streams();
        }
    }

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
        let Self { driver, captured, suspend_ns, streams, shared, control } = self;
        let host = Host { driver, control };
        let mut thread = Running { host, streams, captured, shared };
        let mut closing = Closing::after(suspend_ns);
        loop {
            let calls = thread.shared.call.count();
            if thread.shared.is_to_leave() {
                break;
            }
            sys::cycle_guard::enter();
            let wake_ns = thread.serve();
            if thread.streams.need_cycles() {
                closing.step(&mut *thread.host.driver, true, Futex.now_ns());
                thread.run_cycles();
                sys::cycle_guard::leave();
                continue;
            }
            let plays = wake_ns.is_some();
            thread.note_state(if plays { DeviceState::Deep } else { DeviceState::Parked });
            thread.streams.answer_calls(calls, &thread.shared, &thread.host);
            let close_ns = closing.step(&mut *thread.host.driver, plays, Futex.now_ns());
            sys::cycle_guard::leave();
            thread.shared.call.sleep(calls, wake_ns.or(close_ns), &Futex);
            thread.shared.note_wake_up();
        }
        let Running { mut host, mut streams, .. } = thread;
        streams.take_orders(&mut host);
        streams.end(&mut host, true);
        // Its hardware is free once the device has left.
        let Host { mut driver, control } = host;
        driver.stop();
        drop(driver);
        streams.leave();
        control.waker.wake();
    }
}

/// A thread that runs.
struct Running {
    host: Host,
    streams: StreamPart,
    captured: Captured,
    shared: Arc<DeviceShared>,
}

impl Running {
    /// Renders what is due; returns when to do so again. Thread: cycle.
    fn serve(&mut self) -> Option<u64> {
        let Self { host, streams, shared, .. } = self;
        host.driver.rest();
        let is_unplugged = host.driver.is_unplugged();
        let wake_ns = if is_unplugged {
            streams.take_orders(host);
            streams.end(host, true);
            host.driver.close();
            None
        } else {
            let wake_ns = streams.serve(host, shared.gains.all());
            streams.count_lost_frames(shared);
            wake_ns
        };
        if shared.note_unplugged(is_unplugged) {
            host.call_control();
        }
        self.follow_capture();
        wake_ns
    }

    /// Runs cycles as long as what is captured is recorded. Thread: cycle.
    fn run_cycles(&mut self) {
        self.host.driver.resume();
        self.note_state(DeviceState::Cycling);
        while !self.shared.is_to_leave()
            && !self.host.driver.is_unplugged()
            && self.streams.need_cycles()
        {
            let calls = self.shared.call.count();
            if self.host.wait_for_cycle(&mut self.captured) == Wake::End {
                break;
            }
            self.shared.note_wake_up();
            self.streams.take_orders(&mut self.host);
            self.follow_capture();
            let gains = self.shared.gains.all();
            self.streams.run_cycle(&mut self.host, &self.captured, gains);
            self.streams.count_lost_frames(&self.shared);
            self.streams.answer_calls(calls, &self.shared, &self.host);
        }
        self.streams.end_cycles();
        self.host.driver.pause();
    }

    fn follow_capture(&mut self) {
        if !self.captured.is_empty() {
            self.streams.follow_capture();
        }
    }

    fn note_state(&self, state: DeviceState) {
        if self.shared.note_state(state) {
            self.host.call_control();
        }
    }
}
