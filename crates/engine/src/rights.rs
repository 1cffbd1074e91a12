//! What the kernel allows this server to be.

use crate::config::Config;

/// The configuration as far as it is allowed: without real-time priorities where the kernel refuses them, which is
/// said. Then nothing of the server or its clients is real-time, and no thread is bound to a CPU where it could only
/// wait behind others.
pub fn granted(mut config: Config) -> Config {
    let Some(priority) = config.realtime_priority else { return config };
    // On a thread of its own: the calling one is to stay as it is.
    let tried = std::thread::spawn(move || sys::thread::set_fifo(0, priority)).join();
    if let Ok(Err(error)) = tried {
        eprintln!("consort: runs without real-time priorities, expect xruns under load: {error}");
        config.realtime_priority = None;
    }
    config
}

/// Gives up what root can that the server does not need once its sockets and its driver's files are open: it goes on with
/// what programs send it. Called before the threads that deal with them are made.
pub fn drop_unneeded(config: &Config) {
    if let Err(error) = sys::process::drop_rights(config.policy.looks_at_process()) {
        eprintln!("consort: runs with all the rights that it was started with: {error}");
    }
}
