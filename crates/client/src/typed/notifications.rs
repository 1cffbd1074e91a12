//! Notifications of a typed client, off the real-time path.

use std::sync::{Arc, Mutex};

use proto::property::PropertyChange;

use crate::Callbacks;
use crate::callbacks::{Shutdown, callback};
use crate::locked::locked;

/// Receives notifications of changes on the client's notification thread, one at a time. Every
/// method may block and may call the client. By default each does nothing.
#[expect(unused_variables, reason = "the names document what the default methods ignore")]
pub trait Notifications: Send + 'static {
    /// The next cycle has this many frames. The cycle waits until this returns, in bounded time.
    /// Also called at activation.
    fn quantum(&mut self, frames: u32) {}
    /// Freewheeling is about to begin (true) or to end.
    fn freewheel(&mut self, on: bool) {}
    /// Another client was registered (true) or removed.
    fn client(&mut self, name: &str, registered: bool) {}
    /// A port was registered (true) or removed.
    fn port(&mut self, port: u32, registered: bool) {}
    /// A port was renamed; with the previous and the new full name.
    fn port_renamed(&mut self, port: u32, old: &str, new: &str) {}
    /// A connection from output `source` to input `destination` was made (true) or removed.
    fn connection(&mut self, source: u32, destination: u32, connected: bool) {}
    /// The topological order of the clients changed.
    fn graph_order(&mut self) {}
    /// A cycle was not finished in time.
    fn xrun(&mut self, delay_us: u32) {}
    /// A property of the client or port with the uuid `subject` was set or removed. Uuid 0 means
    /// every subject, an empty key all properties of the subject.
    fn property(&mut self, subject: u64, key: &str, change: PropertyChange) {}
    /// This many events were lost because the program did not process them in time; it should read
    /// the registry again.
    fn lost(&mut self, events: u32) {}
    /// The server is gone. The client can only be closed.
    fn shutdown(&mut self, shutdown: &Shutdown) {}
}

/// Installs callbacks that forward to `listener`. Its lock is contended only at activation, since
/// notifications come one at a time.
pub(super) fn install(listener: impl Notifications, callbacks: &mut Callbacks) {
    let listener = Arc::new(Mutex::new(listener));
    let share = || Arc::clone(&listener);
    let quantum = share();
    callbacks.quantum = Some(callback(move |frames| locked(&quantum).quantum(frames)));
    let freewheel = share();
    callbacks.freewheel = Some(callback(move |on| locked(&freewheel).freewheel(on)));
    let client = share();
    callbacks.client_registration =
        Some(callback(move |name, registered| locked(&client).client(name, registered)));
    let port = share();
    callbacks.port_registration =
        Some(callback(move |(id, registered)| locked(&port).port(id, registered)));
    let renamed = share();
    callbacks.port_rename =
        Some(callback(move |id, old, new| locked(&renamed).port_renamed(id, old, new)));
    let connection = share();
    callbacks.connection = Some(callback(move |(source, destination, connected)| {
        locked(&connection).connection(source, destination, connected);
    }));
    let graph_order = share();
    callbacks.graph_order = Some(callback(move || locked(&graph_order).graph_order()));
    let xrun = share();
    callbacks.xrun = Some(callback(move |delay_us| locked(&xrun).xrun(delay_us)));
    let property = share();
    callbacks.property = Some(callback(move |subject, key, change| {
        locked(&property).property(subject, key, change)
    }));
    let lost = share();
    callbacks.lost = Some(callback(move |events| locked(&lost).lost(events)));
    callbacks.shutdown = Some(callback(move |shutdown| locked(&listener).shutdown(shutdown)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Log(Arc<Mutex<Vec<String>>>);

    impl Notifications for Log {
        fn connection(&mut self, source: u32, destination: u32, connected: bool) {
            locked(&self.0).push(format!("{source}-{destination} {connected}"));
        }
        fn xrun(&mut self, delay_us: u32) {
            locked(&self.0).push(format!("xrun {delay_us}"));
        }
    }

    #[test]
    fn a_listener_receives_what_it_implements() {
        let (log, mut callbacks) = (Log::default(), Callbacks::default());
        let told = Arc::clone(&log.0);
        install(log, &mut callbacks);
        locked(&callbacks.connection.unwrap())((1, 2, true));
        locked(&callbacks.graph_order.unwrap())();
        locked(&callbacks.xrun.unwrap())(33);
        assert_eq!(*locked(&told), ["1-2 true", "xrun 33"]);
        assert!(callbacks.latency.is_none(), "the server computes latencies then");
    }
}
