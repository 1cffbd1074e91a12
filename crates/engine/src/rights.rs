//! What the kernel allows this server to be.

use std::path::Path;

use crate::config::Config;
use crate::realtime_kit::RealtimeKit;

/// The configuration as far as it is allowed, and who gives real-time priorities where the kernel itself refuses them.
/// If nobody does, that is said: then nothing of the server or its clients is real-time, and no thread is bound to a CPU
/// where it could only wait behind others. `program` takes the arguments of `consort`.
pub fn granted(mut config: Config, program: &Path) -> (Config, Option<RealtimeKit>) {
    let Some(priority) = config.realtime_priority else { return (config, None) };
    // On a thread of its own: the calling one is to stay as it is.
    let tried = std::thread::spawn(move || sys::thread::set_fifo(0, priority)).join();
    let Ok(Err(error)) = tried else { return (config, None) };
    match RealtimeKit::find(program, priority) {
        Ok(kit) => {
            config.realtime_priority = Some(kit.priority(priority));
            eprintln!("consort: RealtimeKit gives real-time priorities, up to {}", kit.priority(priority));
            (config, Some(kit))
        }
        Err(refused) => {
            eprintln!("consort: runs without real-time priorities, expect xruns under load: {error}");
            eprintln!("consort: RealtimeKit gives none either: {refused}");
            config.realtime_priority = None;
            (config, None)
        }
    }
}

/// Gives up what root can that the server does not need once its sockets and its driver's files are open: it goes on with
/// what programs send it. Called before the threads that deal with them are made.
pub fn drop_unneeded(config: &Config) {
    if let Err(error) = sys::process::drop_rights(config.policy.looks_at_process()) {
        eprintln!("consort: runs with all the rights that it was started with: {error}");
    }
}
