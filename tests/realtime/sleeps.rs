//! How a client waits for its predecessors, as the kernel shows it.

use harness::{Server, eventually};

/// The number of futex(2).
const FUTEX: &str = if cfg!(target_arch = "x86_64") { "202" } else { "98" };

/// The timeout of the futex on which a thread sleeps, as an address in its process, 0: none
/// (proc_pid_syscall(5)); nothing while it runs, or sleeps elsewhere.
fn timeout_of_sleep(process: u32, thread: &str) -> Option<u64> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).ok()?;
    let named = |task: &std::path::PathBuf| {
        std::fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim_end() == thread)
    };
    let task = tasks.flatten().map(|task| task.path()).find(named)?;
    let call = std::fs::read_to_string(task.join("syscall")).ok()?;
    let mut words = call.split_whitespace();
    let is_futex = words.next()? == FUTEX;
    let address = u64::from_str_radix(words.nth(3)?.strip_prefix("0x")?, 16).ok()?;
    is_futex.then_some(address)
}

#[test]
fn a_follower_sleeps_with_a_timer_unless_all_programs_are_trusted() {
    // Where clients are placed, one may wake early, by a timer in any case.
    for (options, has_timer) in [
        (&["--quantum", "1024", "--placement", "off"][..], true),
        (&["--quantum", "1024", "--placement", "off", "--trust-programs"], false),
    ] {
        let server = Server::start(options);
        let _source = server.probe(&["source", "source"]);
        let follower = server.probe(&["thru", "follower", "--from", "source:out"]);
        server.await_cycles(10);
        for _ in 0..50 {
            let timeout = eventually("it sleeps", || timeout_of_sleep(follower.id(), "follower"));
            assert_eq!(timeout != 0, has_timer, "{options:?}");
            server.await_cycles(1);
        }
    }
}
