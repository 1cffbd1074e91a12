//! Threads that should be real-time and are not, where priorities are given on request.

use std::sync::atomic::Ordering;

use sys::thread::Scheduling;

use super::Control;

/// RealtimeKit answers 25 requests in 20 seconds, and no more of the same user's.
const PAUSE_NS: u64 = 1_000_000_000;
const MOST_AT_ONCE: usize = 4;

impl Control {
    /// Asks for the priorities of threads that have none: of those that began to run, had it taken away when they were
    /// late, or come back from freewheeling.
    pub(super) fn ask_for_priorities(&mut self, now_ns: u64) {
        let Some(priority) = self.parts.config.realtime_priority else { return };
        let hurries = self.parts.driver.when_done || self.freewheels;
        let Some(kit) = self.parts.kit.as_mut().filter(|kit| !hurries && kit.next_ns <= now_ns) else {
            return;
        };
        kit.next_ns = now_ns + PAUSE_NS;
        // Relaxed: a number, which says nothing about other memory.
        let driver = self.parts.shared.driver_thread.load(Ordering::Relaxed);
        let clients = self.clients.values().filter(|slot| slot.bypass.is_none()).filter_map(|slot| {
            // The one that was checked to be the program's own, and that can be demoted.
            let thread = slot.activation.map(|_| slot.pulse.thread.load(Ordering::Relaxed))?;
            Some((slot.process?, thread, self.parts.shared.engine.client_priority()?))
        });
        let threads = [(sys::process::process_id(), driver, priority)].into_iter().chain(clients);
        let waiting: Vec<_> = threads
            .filter(|(_, thread, _)| {
                // 0: the driver thread has not begun, or a client has none.
                *thread != 0 && matches!(sys::thread::scheduling(*thread), Ok(Scheduling::Other))
            })
            .collect();
        // In turn: those that are refused each time keep nobody out.
        let turn = kit.turn.checked_rem(waiting.len()).unwrap_or(0);
        kit.turn = turn + MOST_AT_ONCE;
        for (process, thread, priority) in
            waiting.iter().cycle().skip(turn).take(MOST_AT_ONCE.min(waiting.len()))
        {
            kit.ask(*process, *thread, *priority);
        }
    }
}
