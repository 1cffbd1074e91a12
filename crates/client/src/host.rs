//! A plug-in's process, as it speaks with the server that has started it.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use proto::internal::{HostOrder, HostReport, InternalFailure};
use proto::{decode, encode};
use sys::clock::now_ns;
use sys::socket::Connection;

use crate::Error;

/// The server reads it at once, unless it is stopped.
const PATIENCE_NS: u64 = 2_000_000_000;
const STACK_BYTES: usize = 128 * 1024;
const ORDER_BYTES: usize = 64;

/// The socket to the server. The process ends at once, whatever it is at, when the server closes its end or dies.
#[derive(Debug)]
pub struct HostLine {
    socket: Arc<Connection>,
    finish: Receiver<()>,
}

impl HostLine {
    /// Listens to the server at the other end of `socket`, on a thread of its own.
    ///
    /// # Errors
    /// If there is no thread for it.
    pub fn listen(socket: Connection) -> std::io::Result<Self> {
        let socket = Arc::new(socket);
        let (sender, finish) = channel();
        let heard = Arc::clone(&socket);
        sys::thread::spawn_without_signals("consort-host", STACK_BYTES, move || hear(&heard, &sender))?;
        Ok(Self { socket, finish })
    }

    /// Says that the plug-in runs, as the client `name`.
    pub fn running(&self, name: &str) {
        self.say(&HostReport::Running { name: name.to_owned() });
    }

    /// Says that the plug-in does not run, and why.
    pub fn failed(&self, failure: InternalFailure, reason: &str) {
        // A packet's size is limited; a reason's begin says most.
        let reason = reason.chars().take(1000).collect();
        self.say(&HostReport::Failed { failure, reason });
    }

    fn say(&self, report: &HostReport) {
        // If the server does not hear it, it is gone, and so is this process in a moment.
        let _ = self.socket.send_until(&encode(report), &[], Some(now_ns() + PATIENCE_NS));
    }

    /// Waits until the plug-in is to finish.
    pub fn wait(&self) {
        // The other end is only dropped with the process.
        let _ = self.finish.recv();
    }

    /// Whether the plug-in is to finish. Does not wait.
    pub fn is_to_finish(&self) -> bool {
        self.finish.try_recv().is_ok()
    }

    /// What kind of failure it is if the client cannot be opened.
    pub fn failure_of(error: &Error) -> InternalFailure {
        match error {
            Error::Refused(proto::request::RequestError::NameTaken(_)) => InternalFailure::NameTaken,
            _ => InternalFailure::Start,
        }
    }
}

fn hear(socket: &Connection, finish: &Sender<()>) {
    let mut buffer = [0; ORDER_BYTES];
    while let Ok(received) = socket.receive_until(&mut buffer, None) {
        match decode::<HostOrder>(&buffer[..received.bytes]) {
            Ok(HostOrder::Finish) => drop(finish.send(())),
            Err(_) => break,
        }
    }
    sys::hosting::end(1);
}
