//! Closing a client.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use proto::request::Request;

use super::core::Core;
use crate::locked::locked;
use crate::notice_queue::Notice;
use crate::{process, service};

/// Time limit for the notification thread, which may be in the program's code.
const PATIENCE: Duration = Duration::from_secs(5);
/// Stack of the thread that closes a client from within a cycle.
const STACK_BYTES: usize = 256 * 1024;

impl Core {
    /// Implements `Session::close`.
    pub(crate) fn close(self: &Arc<Self>) {
        if self.is_forked() || self.closing.swap(true, Ordering::AcqRel) {
            return;
        }
        if !process::in_cycle() && !process::is_initializing(self) {
            return self.leave_server();
        }
        // The cycle must finish before the server can release the client, and an activation must
        // end before a deactivation. Neither may be waited for here.
        self.muted.store(true, Ordering::Relaxed);
        let core = Arc::clone(self);
        let left = sys::thread::spawn_without_signals("consort-close", STACK_BYTES, move || {
            core.leave_server()
        });
        if left.is_err() {
            // There was no memory for a thread: the client stays, silent, until the process ends.
            self.closing.store(false, Ordering::Release);
        }
    }

    fn leave_server(self: &Arc<Self>) {
        // Errors do not matter: closing the socket has the same effect.
        let _ = self.deactivate();
        self.attachment.with_state_locked(|| self.closed.store(true, Ordering::Release));
        if let Some(sockets) = self.attachment.sockets() {
            let _ = sockets.requests.request(Request::Close);
        }
        service::remove(self);
        self.attachment.end("the client is closed");
        self.notify(Notice::Quit);
        let thread = locked(&self.notification_thread).take();
        if let Some(thread) = thread {
            thread.join(PATIENCE, || {});
        }
    }
}
