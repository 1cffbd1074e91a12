//! The notification thread: runs the program's callbacks one at a time, off the real-time path.

use std::sync::Arc;
use std::time::Duration;

use proto::event::{Answer, Event};

use crate::Error;
use crate::joinable_thread::JoinableThread;
use crate::locked::locked;
use crate::notice_queue::{Notice, NoticeReceiver};
use crate::session::Core;

const STACK_BYTES: usize = 512 * 1024;

/// Starts the notification thread of `core`.
pub(crate) fn start(core: &Arc<Core>, notices: NoticeReceiver) -> Result<(), Error> {
    let of_thread = Arc::clone(core);
    let name = format!("{}:notify", core.name);
    // The thread keeps the signal mask of the thread that opens the client: child processes that
    // callbacks start inherit it.
    let thread = JoinableThread::spawn(&name, STACK_BYTES, move || run(&of_thread, &notices))?;
    *locked(&core.notification_thread) = Some(thread);
    Ok(())
}

fn run(core: &Core, notices: &NoticeReceiver) {
    while let Some(notice) = notices.next() {
        match notice {
            Notice::Activated => core.initialize_thread(),
            Notice::Event(event) => deliver(core, event),
            Notice::ProcessEnded { activation } => core.process_ended(activation),
            Notice::Shutdown(shutdown) => {
                core.call(|callbacks| &callbacks.shutdown, |callback| callback(&shutdown));
                rewake_process_thread(core);
            }
            // The queue makes an event of it.
            Notice::Lost => {}
            Notice::Quit => return,
        }
    }
}

/// Wakes the process thread a few more times. It may have checked its state just before the server
/// ended and gone to sleep just after the first wake-up, on its assignments. These count no
/// wake-ups, and without a server nothing else wakes it.
fn rewake_process_thread(core: &Core) {
    for pause in [1, 10, 100].map(Duration::from_millis) {
        std::thread::sleep(pause);
        core.wake_process_thread();
    }
}

/// Calls the program's callback for `event` if the client is active, and acknowledges the events
/// that the server waits for.
fn deliver(core: &Core, event: Event) {
    let answer = match event {
        Event::Quantum { token, .. }
        | Event::Freewheel { token, .. }
        | Event::Latency { token, .. } => Some(Answer::Called { token }),
        _ => None,
    };
    if core.is_active() {
        call(core, event);
    } else if let Event::Session { token, .. } = event {
        core.refuse_session(token);
    }
    if let Some(answer) = answer {
        core.answer(answer);
    }
}

fn call(core: &Core, event: Event) {
    match event {
        Event::ClientRegistration { name, registered } => core.call(
            |callbacks| &callbacks.client_registration,
            |callback| callback(&name, registered),
        ),
        Event::PortRegistration { port, registered } => core.call(
            |callbacks| &callbacks.port_registration,
            |callback| callback((port, registered)),
        ),
        Event::PortRename { port, old, new } => {
            core.call(|callbacks| &callbacks.port_rename, |callback| callback(port, &old, &new))
        }
        Event::Connection { source, destination, connected } => core.call(
            |callbacks| &callbacks.connection,
            |callback| callback((source, destination, connected)),
        ),
        Event::GraphOrder => core.call(|callbacks| &callbacks.graph_order, |callback| callback()),
        Event::Xrun { delay_us } => {
            core.call(|callbacks| &callbacks.xrun, |callback| callback(delay_us))
        }
        Event::Quantum { frames, .. } => {
            core.call(|callbacks| &callbacks.quantum, |callback| callback(frames))
        }
        Event::Freewheel { on, .. } => {
            core.call(|callbacks| &callbacks.freewheel, |callback| callback(on))
        }
        Event::Latency { capture, .. } => {
            core.call(|callbacks| &callbacks.latency, |callback| callback(capture))
        }
        Event::Session { kind, path, token } => {
            core.take_session(kind, &path, token);
            true
        }
        Event::Property { subject, key, change } => {
            core.call(|callbacks| &callbacks.property, |callback| callback(subject, &key, change))
        }
        Event::Lost { events } => {
            core.call(|callbacks| &callbacks.lost, |callback| callback(events))
        }
        // The service thread handles these.
        Event::MapSignals { .. }
        | Event::MapOwnSignals { .. }
        | Event::MapSlab { .. }
        | Event::UnmapSignals { .. }
        | Event::UnmapSlab { .. }
        | Event::Shutdown { .. } => false,
    };
}
