//! A thread of the server's on another CPU than the driver's, which wakes the clients there in its place.

use crate::park::{Park, Sleepers};
use crate::shm::EngineSegment;
use crate::sync::{AtomicU32, Ordering};

/// What the driver and one such thread share.
///
/// To wake a sleeper on another CPU takes the driver an interrupt there, and the queue of a CPU that wakes up meanwhile. So it
/// wakes this thread only, and goes on with those on its own CPU.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct Rouser {
    /// Counts calls, but for [`ENDS`]; the futex word that the thread sleeps on.
    calls: AtomicU32,
}

/// In place of the count: the thread is to end.
const ENDS: u32 = u32::MAX;

impl Rouser {
    /// Has the thread wake its clients into the cycle that was released. Driver thread. Thread: cycle.
    pub fn call(&self, park: &impl Park) {
        let next = (self.calls.load(Ordering::Relaxed) + 1) % ENDS;
        // Release: the thread that sees the call wakes nobody who could miss the cycle.
        self.calls.store(next, Ordering::Release);
        park.wake(&self.calls, 1);
    }

    /// Has the thread end. When the driver calls it no more.
    pub fn end(&self, park: &impl Park) {
        self.calls.store(ENDS, Ordering::Release);
        park.wake(&self.calls, 1);
    }

    /// Sleeps if there was no call since `served`, else wakes those of `sleepers` who wait for the cycle; false when the thread
    /// is to end. Its own thread. Thread: cycle.
    pub fn serve(
        &self,
        served: &mut u32,
        engine: &EngineSegment,
        sleepers: Sleepers,
        park: &impl Park,
    ) -> bool {
        // Acquire: pairs with `call`. Before the wake: a call that comes during it is for the next cycle.
        let calls = self.calls.load(Ordering::Acquire);
        if calls == *served {
            park.wait(&self.calls, calls, None);
        } else if calls != ENDS {
            *served = calls;
            engine.wake_group(sleepers, park);
        }
        calls != ENDS
    }
}
