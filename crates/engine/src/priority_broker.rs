//! Real-time priorities from a service, where the kernel's limits give none.

use std::fmt::Debug;
use std::sync::mpsc::channel;

/// Finds the service that gives real-time priorities, such as RealtimeKit. The program that runs
/// the server implements it: the server knows no bus.
pub trait PriorityBroker: Send {
    /// Connects to the service, and waits for it for a bounded time.
    ///
    /// # Errors
    /// A sentence that says why there is none.
    fn connect(&self) -> Result<Box<dyn BrokerConnection>, String>;

    /// Has the service, if there is one, raise a thread of this process above ordinary ones,
    /// without waiting for that.
    fn favour(&self, thread: u32);
}

/// A connection to the service. Thread: control.
pub trait BrokerConnection: Debug + Send {
    /// Returns the highest priority that the service gives.
    fn highest(&self) -> u32;

    /// Requests a priority for a thread, and waits for the answer for a bounded time.
    ///
    /// # Errors
    /// A sentence that says why the service refuses.
    fn grant(&mut self, process: u32, thread: u32, priority: u32) -> Result<(), String>;

    /// Requests a priority for a thread without waiting for the answer.
    fn request(&mut self, process: u32, thread: u32, priority: u32);
}

/// The service and the accounting of what is requested from it. Thread: control.
#[derive(Debug)]
pub struct BrokeredPriorities {
    broker: Box<dyn BrokerConnection>,
    /// Time of the next request at the earliest, `CLOCK_MONOTONIC` ns.
    pub next_ns: u64,
    /// Index, among the threads that wait for a priority, of the first that is requested for next.
    pub turn: usize,
}

impl BrokeredPriorities {
    /// Connects, and checks with a thread made for that that priorities of up to `priority` are
    /// given to threads of this process.
    ///
    /// # Errors
    /// A sentence that says why they are not.
    pub fn connect(broker: &dyn PriorityBroker, priority: u32) -> Result<Self, String> {
        let mut connected = Self { broker: broker.connect()?, next_ns: 0, turn: 0 };
        connected.try_with_a_thread(connected.priority(priority))?;
        Ok(connected)
    }

    /// Returns the highest priority that is given, up to `wanted`.
    #[must_use]
    pub fn priority(&self, wanted: u32) -> u32 {
        wanted.min(self.broker.highest())
    }

    /// Requests a priority for a thread without waiting for the answer.
    pub fn request(&mut self, process: u32, thread: u32, priority: u32) {
        let priority = self.priority(priority);
        self.broker.request(process, thread, priority);
    }

    fn try_with_a_thread(&mut self, priority: u32) -> Result<(), String> {
        let (name, named) = channel();
        let (end, ends) = channel::<()>();
        let tried = std::thread::spawn(move || {
            let _ = name.send(sys::thread::thread_id());
            // Until the other end is dropped.
            let _ = ends.recv();
        });
        let thread = named.recv().map_err(|error| error.to_string())?;
        let granted = self.broker.grant(sys::process::process_id(), thread, priority);
        drop(end);
        let _ = tried.join();
        granted
    }
}
