//! The connection between a plug-in's host process and the server that started it.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use proto::internal::{HostReport, HostRequest, InternalFailure};
use proto::{decode, encode};
use sys::clock::now_ns;
use sys::socket::Connection;

use crate::Error;

/// Time limit for sending a report: the server reads it at once, unless it is stopped.
const PATIENCE_NS: u64 = 2_000_000_000;
const STACK_BYTES: usize = 128 * 1024;
const ORDER_BYTES: usize = 64;

/// The host process's socket to the server. When the server closes its end or dies, this process
/// exits immediately.
#[derive(Debug)]
pub struct HostSocket {
    socket: Arc<Connection>,
    finish: Receiver<()>,
}

impl HostSocket {
    /// Starts a thread that listens to the server at the other end of `socket`.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn listen(socket: Connection) -> std::io::Result<Self> {
        let socket = Arc::new(socket);
        let (sender, finish) = channel();
        let shared = Arc::clone(&socket);
        sys::thread::spawn_without_signals("consort-host", STACK_BYTES, move || {
            receive_requests(&shared, &sender)
        })?;
        Ok(Self { socket, finish })
    }

    /// Reports that the plug-in runs, as the client `name`.
    pub fn running(&self, name: &str) {
        self.report(&HostReport::Running { name: name.to_owned() });
    }

    /// Reports that the plug-in does not run, and why.
    pub fn failed(&self, failure: InternalFailure, reason: &str) {
        // A packet's size is limited, and the beginning of a reason says most.
        let reason = reason.chars().take(1000).collect();
        self.report(&HostReport::Failed { failure, reason });
    }

    fn report(&self, report: &HostReport) {
        // If this fails, the server is gone and this process is about to exit.
        let _ = self.socket.send_until(&encode(report), &[], Some(now_ns() + PATIENCE_NS));
    }

    /// Blocks until the server asks the plug-in to finish.
    pub fn wait(&self) {
        // Cannot fail: the other end of the channel is dropped only with the process.
        let _ = self.finish.recv();
    }

    /// Returns whether the server has asked the plug-in to finish. Does not block.
    pub fn is_to_finish(&self) -> bool {
        self.finish.try_recv().is_ok()
    }

    /// Classifies an error from opening the plug-in's client.
    pub fn failure_of(error: &Error) -> InternalFailure {
        match error {
            Error::Refused(proto::request::RequestError::NameTaken(_)) => {
                InternalFailure::NameTaken
            }
            _ => InternalFailure::Start,
        }
    }
}

fn receive_requests(socket: &Connection, finish: &Sender<()>) {
    let mut buffer = [0; ORDER_BYTES];
    while let Ok(received) = socket.receive_until(&mut buffer, None) {
        match decode::<HostRequest>(&buffer[..received.bytes]) {
            Ok(HostRequest::Finish) => drop(finish.send(())),
            Err(_) => break,
        }
    }
    sys::process::exit_immediately(1);
}
