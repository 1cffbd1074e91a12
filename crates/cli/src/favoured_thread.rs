//! A thread that is raised above ordinary ones, where its user may not do that.

use std::io::{self, Write};
use std::process::Stdio;

use crate::own_program;

const STACK_BYTES: usize = 128 << 10;

/// In place of a priority, in the lines that `consort realtime-kit` reads.
pub const FAVOURED: &str = "favoured";

/// Has RealtimeKit raise a thread of this process above ordinary ones, if there is one. That may
/// take seconds, for which nothing waits.
pub fn ask_to_favour(thread: u32) {
    let process = sys::process::process_id();
    // Without another thread or another process, it stays an ordinary thread.
    let _ = sys::thread::spawn_named("consort-favour", STACK_BYTES, move || ask(process, thread));
}

fn ask(process: u32, thread: u32) -> io::Result<()> {
    let mut command = own_program()?;
    command.arg("realtime-kit");
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    // It ends with its input; a line that it does not read is of no use.
    if let Some(mut input) = child.stdin.take() {
        let _ = writeln!(input, "{process} {thread} {FAVOURED}");
    }
    child.wait().map(drop)
}
