//! Real-time priorities for threads that cannot take them: RealtimeKit is asked for them.

use sys::thread::Scheduling;

use crate::priority_broker::BrokeredPriorities;

/// RealtimeKit answers at most 25 requests of one user in 20 seconds.
const PAUSE_NS: u64 = 1_000_000_000;
const MOST_AT_ONCE: usize = 4;

/// A thread that should be real-time.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct RealtimeThread {
    pub(in super::super) process: u32,
    /// 0: it does not run yet.
    pub(in super::super) thread: u32,
    pub(in super::super) priority: u32,
}

/// Requests priorities for those `threads` that have none: they have just started, lost theirs when
/// they were late, or come back from freewheeling.
pub(in super::super) fn ask(
    kit: &mut BrokeredPriorities,
    threads: impl Iterator<Item = RealtimeThread>,
    now_ns: u64,
) {
    if kit.next_ns > now_ns {
        return;
    }
    kit.next_ns = now_ns + PAUSE_NS;
    let is_waiting = |thread: &RealtimeThread| {
        let scheduling = || sys::thread::scheduling(thread.thread);
        thread.thread != 0 && matches!(scheduling(), Ok(Scheduling::Other))
    };
    let waiting: Vec<RealtimeThread> = threads.filter(is_waiting).collect();
    // In turn, so that threads that are always refused do not keep the others waiting.
    let turn = kit.turn.checked_rem(waiting.len()).unwrap_or(0);
    kit.turn = turn + MOST_AT_ONCE;
    let asked = waiting.iter().cycle().skip(turn).take(MOST_AT_ONCE.min(waiting.len()));
    for RealtimeThread { process, thread, priority } in asked {
        kit.request(*process, *thread, *priority);
    }
}
