//! What other programs print, if they do so in time.

use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

/// A tool answers within this time, or not at all.
const PATIENCE: Duration = Duration::from_secs(2);

/// Runs a tool, and returns what it prints.
pub(crate) fn of(program: &str, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new(program);
    command.args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut tool = command.spawn().ok()?;
    let mut output = tool.stdout.take()?;
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut text = String::new();
        sender.send(output.read_to_string(&mut text).ok().map(|_| text))
    });
    let text = receiver.recv_timeout(PATIENCE).ok().flatten();
    // It has ended, or asks something that hangs.
    let _ = tool.kill();
    let _ = tool.wait();
    text
}
