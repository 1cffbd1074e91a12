//! The notification thread: the program's callbacks, one at a time, off the real-time path.

use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use proto::event::{Answer, Event};

use crate::Error;
use crate::callbacks::Shutdown;
use crate::joinable::Joinable;
use crate::locked::locked;
use crate::session::Core;

const STACK_BYTES: usize = 512 * 1024;

/// What the notification thread is told.
#[derive(Debug)]
pub(crate) enum Notice {
    /// The client is about to be active.
    Activated,
    /// The server said something that the program may want to know.
    Event(Event),
    /// The process thread has left by itself.
    ProcessEnded {
        /// In which activation.
        activation: u32,
    },
    /// The program has written into its inputs.
    InputsWritten,
    /// There is no server any more.
    Shutdown(Shutdown),
    /// The client is closed.
    Quit,
}

/// Starts the thread of `core`.
pub(crate) fn start(core: &Arc<Core>, notices: Receiver<Notice>) -> Result<(), Error> {
    let of_thread = Arc::clone(core);
    let name = format!("{}:notify", core.name);
    // With the signals of the thread that opens the client: children that the program's callbacks make inherit them.
    let thread = Joinable::spawn(&name, STACK_BYTES, move || run(&of_thread, &notices))?;
    *locked(&core.notification_thread) = Some(thread);
    Ok(())
}

fn run(core: &Core, notices: &Receiver<Notice>) {
    while let Ok(notice) = notices.recv() {
        match notice {
            Notice::Activated => core.initialize_thread(),
            Notice::Event(event) => deliver(core, event),
            Notice::ProcessEnded { activation } => core.process_ended(activation),
            Notice::InputsWritten => crate::log::warn(&format!(
                "client '{}' writes into its input buffers, which belong to others and were left as they are. It gets \
                 copies of them from now on, which take time; CONSORT_COPY_INPUTS=1 gives them from the start",
                core.name
            )),
            Notice::Shutdown(shutdown) => {
                core.call(|callbacks| &callbacks.shutdown, |callback| callback(&shutdown));
                see_process_thread_off(core);
            }
            Notice::Quit => return,
        }
    }
}

/// The process thread may have looked just before the server's end, and have gone to sleep just after it was woken for that: on
/// the word of the cycles, which counts no wake-ups, and which nobody else will wake.
fn see_process_thread_off(core: &Core) {
    for pause in [1, 10, 100].map(Duration::from_millis) {
        std::thread::sleep(pause);
        core.wake_process_thread();
    }
}

/// Calls the program for `event` if it is active, and tells the server where it waits for it.
fn deliver(core: &Core, event: Event) {
    let answer = match event {
        Event::Quantum { token, .. } | Event::Freewheel { token, .. } | Event::Latency { token, .. } => {
            Some(Answer::Called { token })
        }
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
        Event::ClientRegistration { name, registered } => {
            core.call(|callbacks| &callbacks.client_registration, |callback| callback(&name, registered))
        }
        Event::PortRegistration { port, registered } => {
            core.call(|callbacks| &callbacks.port_registration, |callback| callback((port, registered)))
        }
        Event::PortRename { port, old, new } => {
            core.call(|callbacks| &callbacks.port_rename, |callback| callback(port, &old, &new))
        }
        Event::Connection { source, destination, connected } => core
            .call(|callbacks| &callbacks.connection, |callback| callback((source, destination, connected))),
        Event::GraphOrder => core.call(|callbacks| &callbacks.graph_order, |callback| callback()),
        Event::Xrun { delay_us } => core.call(|callbacks| &callbacks.xrun, |callback| callback(delay_us)),
        Event::Quantum { frames, .. } => {
            core.call(|callbacks| &callbacks.quantum, |callback| callback(frames))
        }
        Event::Freewheel { on, .. } => core.call(|callbacks| &callbacks.freewheel, |callback| callback(on)),
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
        Event::Lost { events } => core.call(|callbacks| &callbacks.lost, |callback| callback(events)),
        // The service thread has taken these.
        Event::MapSignals { .. }
        | Event::MapOwnSignals { .. }
        | Event::MapSlab { .. }
        | Event::UnmapSignals { .. }
        | Event::UnmapSlab { .. }
        | Event::Shutdown { .. } => false,
    };
}
