//! What the kernel allows this server: real-time priorities, locked memory, privileges.

use std::io;

use crate::config::Config;
use crate::priority_broker::{BrokeredPriorities, PriorityBroker};

/// Returns the configuration as far as it is allowed, and the service that gives real-time
/// priorities where the kernel refuses them. If there is none, that is logged: then the server and
/// its clients are not real-time, and no thread is pinned to a CPU where it could only wait behind
/// others.
pub fn granted(
    mut config: Config,
    broker: &dyn PriorityBroker,
) -> (Config, Option<BrokeredPriorities>) {
    let Some(priority) = config.realtime_priority else { return (config, None) };
    // Tried on a separate thread: the calling one must stay as it is.
    let tried = std::thread::spawn(move || sys::thread::set_fifo(0, priority)).join();
    let Ok(Err(error)) = tried else {
        warnings(priority, &RealtimeRules::of_kernel())
            .for_each(|warning| sys::report!("consort: {warning}"));
        return (config, None);
    };
    match BrokeredPriorities::connect(broker, priority) {
        Ok(kit) => {
            config.realtime_priority = Some(kit.priority(priority));
            sys::report!(
                "consort: RealtimeKit gives real-time priorities, up to {}",
                kit.priority(priority)
            );
            (config, Some(kit))
        }
        Err(refused) => {
            sys::report!(
                "consort: runs without real-time priorities, expect xruns under load: {error}"
            );
            sys::report!("consort: RealtimeKit gives none either: {refused}");
            config.realtime_priority = None;
            (config, None)
        }
    }
}

/// Which of the server's memory stays in memory where memory runs short.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Locking {
    /// All of it, present and future.
    Everything,
    /// The shared memory that the driver thread touches, segment by segment, as far as the limit
    /// allows.
    Segments,
    /// Nothing: no thread is real-time.
    Nothing,
}

impl Locking {
    /// Locks a segment, unless everything is locked anyway. One that the limit refuses is left
    /// unlocked: the limit was reported when the server started.
    pub fn lock(self, lock: impl FnOnce() -> io::Result<()>) {
        if self == Self::Segments {
            let _ = lock();
        }
    }
}

/// Locks the server's memory, including what it shares with clients: a page that was swapped out is
/// missing in the cycle that needs it. Where that is not allowed, it is logged, and only the
/// segments that the driver thread touches are to be locked.
pub fn lock_memory() -> Locking {
    if sys::process::lock_all_memory_on_fault().is_ok() {
        return Locking::Everything;
    }
    let limit_kib = sys::process::memlock_limit().unwrap_or(0) / 1024;
    sys::report!(
        "consort: its memory may be paged out where memory runs short, except what its cycles share with clients, as far as that fits: this process may lock {limit_kib} KiB (ulimit -l); allow more with a line '@audio - memlock unlimited' in /etc/security/limits.d/audio.conf, and log in again as a member of the group audio"
    );
    Locking::Segments
}

/// The kernel's rules for real-time threads.
#[derive(Debug, Clone, Copy, PartialEq)]
struct RealtimeRules {
    /// The largest part of each CPU that they can use.
    most: f64,
    /// Interrupts are handled by threads, as under `PREEMPT_RT`.
    threads_interrupts: bool,
}

/// Priority of the threads that handle interrupts.
const INTERRUPT_PRIORITY: u32 = 50;
/// The kernel's default for that part.
const DEFAULT_MOST: f64 = 0.95;

impl RealtimeRules {
    fn of_kernel() -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let number =
            |name: &str| read(&format!("/proc/sys/kernel/{name}")).trim().parse::<f64>().ok();
        let most = match (number("sched_rt_runtime_us"), number("sched_rt_period_us")) {
            (Some(runtime_us), Some(period_us)) if runtime_us >= 0.0 && period_us > 0.0 => {
                runtime_us / period_us
            }
            // -1: no limit.
            _ => 1.0,
        };
        let is_asked =
            read("/proc/cmdline").split_ascii_whitespace().any(|word| word == "threadirqs");
        Self { most, threads_interrupts: sys::interrupts::kernel_is_preempt_rt() || is_asked }
    }
}

/// Warnings about the kernel's rules for a server that drives its cycles with this priority.
fn warnings(priority: u32, rules: &RealtimeRules) -> impl Iterator<Item = String> {
    let throttled = (rules.most < DEFAULT_MOST).then(|| {
        format!(
            "the kernel stops real-time threads when they have had {:.0} % of a CPU (sched_rt_runtime_us), which is little: \
             expect xruns where programs take longer",
            rules.most * 100.0
        )
    });
    let above = (rules.threads_interrupts && priority >= INTERRUPT_PRIORITY).then(|| {
        format!(
            "this kernel handles interrupts in threads of priority {INTERRUPT_PRIORITY}: a server of priority {priority} keeps \
             the sound card's own waiting, unless that was given a higher one"
        )
    });
    throttled.into_iter().chain(above)
}

/// Gives up root's rights that the server does not need once its sockets and its driver's files are
/// open: from then on it handles what programs send. Called before the threads that handle it
/// exist.
pub fn drop_unneeded(config: &Config) {
    if let Err(error) = sys::process::drop_rights(config.policy.looks_at_process()) {
        sys::report!("consort: runs with all the rights that it was started with: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unusual_kernel_rules_are_reported() {
        let warned = |priority, most, threads_interrupts| {
            warnings(priority, &RealtimeRules { most, threads_interrupts }).collect::<Vec<_>>()
        };
        assert_eq!(warned(10, 0.95, true), [""; 0]);
        assert_eq!(warned(70, 1.0, false), [""; 0]);
        assert!(warned(10, 0.3, false)[0].contains("30 %"));
        assert!(warned(70, 0.95, true)[0].contains("priority 70"));
    }
}
