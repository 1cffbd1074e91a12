//! The engine segment: the cycle itself, as every client reads it.

use super::header::{Layout, SegmentHeader};
use super::snapshot::Snapshot;
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::transport::{TRANSPORT_WORDS, Transport};

/// The properties of a cycle, the same for every client that runs in it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CycleInfo {
    /// Number of the cycle ([`crate::cycle_number`]); 0: there was none.
    pub cycle: u32,
    /// Generation of the plan that it runs.
    pub plan: u64,
    /// Length in frames.
    pub quantum: u32,
    /// Sample rate in Hz.
    pub sample_rate_hz: u32,
    /// Frames since the server started, at the cycle's first frame.
    pub frames: u64,
    /// When the driver woke for it, `CLOCK_MONOTONIC` ns.
    pub woken_ns: u64,
    /// The clock's estimate of when the cycle began, ns.
    pub wakeup_ns: u64,
    /// The clock's estimate of when the next one begins, ns.
    pub next_wakeup_ns: u64,
    /// The clock's estimate of a cycle's duration, ns.
    pub period_ns: f64,
}

const INFO_WORDS: usize = 8;

/// Number of the shared words; models share only those that a client's decisions depend on.
const SHARED_WORDS: usize = if cfg!(loom) { 2 } else { INFO_WORDS };

/// Number of the transport's shared words.
const SHARED_TRANSPORT_WORDS: usize = if cfg!(loom) { 1 } else { TRANSPORT_WORDS };

/// How the server was started; constant while it lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ServerFlags {
    /// Process threads run under `SCHED_FIFO`.
    pub realtime: bool,
    /// The driver waits for the graph's end in each cycle (`-S`).
    pub sync: bool,
    /// The server requests priorities for process threads, which cannot take them.
    pub gives_priorities: bool,
    /// The operator trusts all programs: none takes sleepers away from a page that it shares with
    /// others.
    pub trusts_programs: bool,
    /// A policy says what each program may do.
    pub has_policy: bool,
}

/// Real-time priorities under `SCHED_FIFO`; 0 where nothing is real-time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Priorities {
    /// The driver thread's.
    pub driver: u32,
    /// The process threads'.
    pub clients: u32,
}

/// Written by the server only; every client maps it read-only.
#[repr(C)]
#[cfg_attr(not(loom), repr(align(4096)))]
#[derive(Debug, Default)]
pub struct EngineSegment {
    header: SegmentHeader,
    flags: AtomicU32,
    /// See [`Priorities::clients`].
    client_priority: AtomicU32,
    server_process: AtomicU32,
    xruns: AtomicU32,
    last_delay_us: AtomicU32,
    max_delay_us: AtomicU32,
    /// DSP load in millionths of a quantum.
    load_ppm: AtomicU32,
    /// 1: cycles follow each other without a pause.
    freewheels: AtomicU32,
    /// See [`Priorities::driver`].
    driver_priority: AtomicU32,
    grace_ms: AtomicU32,
    /// 1: the server has stopped cleanly.
    stopped: AtomicU32,
    /// 1: no cycles are run, because no client needs one.
    parked: AtomicU32,
    /// Number of this server, different from that of any other.
    instance: AtomicU64,
    info: Snapshot<SHARED_WORDS>,
    /// The transport, by parity of the cycle, so that a client can read that of its own cycle after
    /// the next one has begun.
    transport: [Snapshot<SHARED_TRANSPORT_WORDS>; 2],
    cycle: CycleWord,
}

same_for_all_widths!(
    EngineSegment: 4096 bytes;
    flags at 16, parked at 60, instance at 64, info at 128, transport at 256, cycle at 512
);

/// The number of the cycle, on a cache line of its own. No thread sleeps on it, because every
/// program that may read the word could take the sleepers away.
#[repr(C, align(64))]
#[derive(Debug, Default)]
struct CycleWord(AtomicU32);

// SAFETY: repr(C), the header first, atomics only.
unsafe impl Layout for EngineSegment {
    const KIND: u32 = 1;

    fn header(&self) -> &SegmentHeader {
        &self.header
    }
}

impl CycleInfo {
    fn to_words(self) -> [u64; SHARED_WORDS] {
        let words: [u64; INFO_WORDS] = [
            u64::from(self.cycle),
            self.plan,
            u64::from(self.sample_rate_hz) << 32 | u64::from(self.quantum),
            self.frames,
            self.woken_ns,
            self.wakeup_ns,
            self.next_wakeup_ns,
            self.period_ns.to_bits(),
        ];
        core::array::from_fn(|index| words[index])
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "each half of the packed words is 32 bits wide"
    )]
    #[inline]
    fn from_words(words: &[u64; SHARED_WORDS]) -> Self {
        let words: [u64; INFO_WORDS] =
            core::array::from_fn(|index| words.get(index).copied().unwrap_or_default());
        let [cycle, plan, rate_quantum, frames, woken_ns, wakeup_ns, next_wakeup_ns, period] =
            words;
        Self {
            cycle: cycle as u32,
            plan,
            quantum: rate_quantum as u32,
            sample_rate_hz: (rate_quantum >> 32) as u32,
            frames,
            woken_ns,
            wakeup_ns,
            next_wakeup_ns,
            period_ns: f64::from_bits(period),
        }
    }
}

impl EngineSegment {
    /// States how the server runs, before any client can map the segment.
    pub fn describe(&self, flags: ServerFlags, priorities: Priorities, server_process: u32) {
        let ServerFlags { realtime, sync, gives_priorities, trusts_programs, has_policy } = flags;
        let bits = u32::from(realtime)
            | u32::from(sync) << 1
            | u32::from(gives_priorities) << 2
            | u32::from(trusts_programs) << 3
            | u32::from(has_policy) << 4;
        self.flags.store(bits, Ordering::Relaxed);
        self.client_priority.store(priorities.clients, Ordering::Relaxed);
        self.driver_priority.store(priorities.driver, Ordering::Relaxed);
        self.server_process.store(server_process, Ordering::Relaxed);
    }

    /// Sets the server's number, unique since the machine started, and how long its clients wait
    /// for another server after a crash. Called before any client can map the segment.
    pub fn identify(&self, instance: u64, grace_ms: u32) {
        self.instance.store(instance, Ordering::Relaxed);
        self.grace_ms.store(grace_ms, Ordering::Relaxed);
    }

    /// Number of this server, different from that of any other.
    pub fn instance(&self) -> u64 {
        self.instance.load(Ordering::Relaxed)
    }

    /// How long clients wait for another server after this one has crashed, ms.
    pub fn grace_ms(&self) -> u32 {
        self.grace_ms.load(Ordering::Relaxed)
    }

    /// Notes that the server stops cleanly: no client needs to wait for another one.
    pub fn note_stopped(&self) {
        // Release, with Acquire below: the sockets close later, but through the kernel.
        self.stopped.store(1, Ordering::Release);
    }

    /// Notes whether cycles are run. Driver thread.
    pub fn note_parked(&self, parked: bool) {
        self.parked.store(u32::from(parked), Ordering::Relaxed);
    }

    /// Whether no cycles are run, because no client needs one: the newest cycle is an old one.
    /// Thread: any.
    pub fn is_parked(&self) -> bool {
        self.parked.load(Ordering::Relaxed) != 0
    }

    /// Whether the server has stopped cleanly.
    pub fn has_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire) != 0
    }

    /// How the server was started.
    pub fn flags(&self) -> ServerFlags {
        let flags = self.flags.load(Ordering::Relaxed);
        ServerFlags {
            realtime: flags & 1 != 0,
            sync: flags & 2 != 0,
            gives_priorities: flags & 4 != 0,
            trusts_programs: flags & 8 != 0,
            has_policy: flags & 16 != 0,
        }
    }

    /// Priority of process threads under `SCHED_FIFO`, if they are real-time.
    #[inline]
    pub fn client_priority(&self) -> Option<u32> {
        Some(self.client_priority.load(Ordering::Relaxed)).filter(|priority| *priority > 0)
    }

    /// The highest priority that a program should give to threads of its own, if process threads
    /// are real-time: one below the driver's, and never below that of process threads.
    #[inline]
    pub fn highest_program_priority(&self) -> Option<u32> {
        let clients = self.client_priority()?;
        Some(self.driver_priority.load(Ordering::Relaxed).saturating_sub(1).max(clients))
    }

    /// The server's process id, in its own pid namespace.
    pub fn server_process(&self) -> u32 {
        self.server_process.load(Ordering::Relaxed)
    }

    /// The newest cycle. `None` only while the server is stopped in the middle of writing it.
    /// Thread: any.
    #[inline]
    pub fn info(&self) -> Option<CycleInfo> {
        self.info.read().map(|words| CycleInfo::from_words(&words))
    }

    /// Makes `info` the newest cycle without starting it. Driver thread; before
    /// [`release`](Self::release).
    pub fn publish(&self, info: CycleInfo) {
        self.info.write(&info.to_words());
    }

    /// States the transport of the cycle that is about to begin. Driver thread; before
    /// [`release`](Self::release).
    pub fn publish_transport(&self, transport: &Transport) {
        let words = transport.to_words();
        self.transport[(transport.cycle % 2) as usize]
            .write(&core::array::from_fn(|index| words[index]));
    }

    /// The transport in `cycle`; if that is long over, in a later one. `None` only while the server
    /// is stopped in the middle of writing it. Thread: any.
    pub fn transport_in(&self, cycle: u32) -> Option<Transport> {
        let words = self.transport[(cycle % 2) as usize].read()?;
        Some(Transport::from_words(&core::array::from_fn(|index| {
            words.get(index).copied().unwrap_or(0)
        })))
    }

    /// Whether cycles follow each other without a pause. Thread: any.
    #[inline]
    pub fn freewheels(&self) -> bool {
        self.freewheels.load(Ordering::Relaxed) != 0
    }

    /// Notes whether freewheel is on. Driver thread; before [`release`](Self::release), which
    /// publishes it.
    pub fn note_freewheel(&self, on: bool) {
        self.freewheels.store(u32::from(on), Ordering::Relaxed);
    }

    /// Starts the published cycle: clients that wait for nothing but the driver may run. Driver
    /// thread. Thread: cycle.
    pub fn release(&self, cycle: u32) {
        // Release: a client that sees the cycle sees its info, the armed signal pages and the
        // capture buffers.
        // MUTATION: release.relaxed
        self.cycle.0.store(cycle, Ordering::Release);
    }

    /// The cycle that was released last. Thread: any.
    #[inline]
    pub fn cycle(&self) -> u32 {
        // Acquire: pairs with `release`.
        // MUTATION: cycle.relaxed
        self.cycle.0.load(Ordering::Acquire)
    }

    /// Counts an xrun that was found `delay_us` late. Driver thread.
    pub fn count_xrun(&self, delay_us: u32) {
        self.last_delay_us.store(delay_us, Ordering::Relaxed);
        self.max_delay_us.fetch_max(delay_us, Ordering::Relaxed);
        self.xruns.fetch_add(1, Ordering::Relaxed);
    }

    /// Xruns since the server started.
    pub fn xruns(&self) -> u32 {
        self.xruns.load(Ordering::Relaxed)
    }

    /// Delay of the last xrun and of the worst one, in µs.
    pub fn delays_us(&self) -> (u32, u32) {
        (self.last_delay_us.load(Ordering::Relaxed), self.max_delay_us.load(Ordering::Relaxed))
    }

    /// Forgets the worst delay.
    pub fn reset_max_delay(&self) {
        self.max_delay_us.store(0, Ordering::Relaxed);
    }

    /// Notes the DSP load, in millionths of a quantum.
    pub fn note_load(&self, ppm: u32) {
        self.load_ppm.store(ppm, Ordering::Relaxed);
    }

    /// DSP load in millionths of a quantum.
    pub fn load_ppm(&self) -> u32 {
        if self.is_parked() { 0 } else { self.load_ppm.load(Ordering::Relaxed) }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_programs_own_threads_stay_below_the_driver() {
        for (case, driver, clients, highest) in [
            ("as distant as usual", 10, 5, Some(9)),
            ("process threads were raised to the lowest priority", 3, 1, Some(2)),
            ("nothing is below the driver", 1, 1, Some(1)),
            ("not real-time", 0, 0, None),
        ] {
            let segment = EngineSegment::default();
            segment.describe(ServerFlags::default(), Priorities { driver, clients }, 1);
            assert_eq!(segment.highest_program_priority(), highest, "{case}");
        }
    }
}
