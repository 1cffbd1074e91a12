//! Lines for the user on standard error, written by a thread of their own.
//!
//! A write to standard error can fail (a closed terminal, a full disk) and can block (a pipe whose
//! reader has stopped). Neither may reach the thread that has something to report: it leaves the
//! line in a bounded queue. What finds no room there is counted and lost.

use std::fmt;
use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// Lines that wait to be written.
const ROOM: usize = 256;
const STACK_BYTES: usize = 128 * 1024;

static QUEUE: OnceLock<Option<SyncSender<Message>>> = OnceLock::new();
static LOST: AtomicU64 = AtomicU64::new(0);

enum Message {
    Line(String),
    /// Answered when all lines before it are written.
    Flush(SyncSender<()>),
}

/// Reports one line, as `eprintln!` does, without blocking or failing. Not within a cycle.
#[macro_export]
macro_rules! report {
    ($($argument:tt)*) => {
        $crate::log::line(::std::format_args!($($argument)*))
    };
}

/// Queues one line; see [`report!`].
pub fn line(text: fmt::Arguments<'_>) {
    let Some(queue) = QUEUE.get_or_init(start) else { return };
    leave(queue, format!("{text}\n"), &LOST);
}

/// Leaves a line in the queue, or counts it as lost.
fn leave(queue: &SyncSender<Message>, line: String, lost: &AtomicU64) {
    // MUTATION: report.waits_for_room
    if queue.try_send(Message::Line(line)).is_err() {
        // Relaxed: a count, which says nothing about other memory.
        lost.fetch_add(1, Ordering::Relaxed);
    }
}

/// Waits until everything that was reported is written, at most this long.
pub fn flush(limit: Duration) {
    let Some(Some(queue)) = QUEUE.get() else { return };
    let end = Instant::now() + limit;
    let (done, written) = sync_channel(1);
    while queue.try_send(Message::Flush(done.clone())).is_err() {
        if Instant::now() >= end {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let _ = written.recv_timeout(end.saturating_duration_since(Instant::now()));
}

fn start() -> Option<SyncSender<Message>> {
    let (queue, messages) = sync_channel(ROOM);
    let body = move || {
        // It may be started before the server gives up root's rights, and needs none.
        let _ = crate::process::drop_rights(false);
        write_all(&messages, &mut std::io::stderr(), &LOST);
    };
    // What is sent to the process is for the threads that were there before.
    crate::thread::spawn_without_signals("consort-log", STACK_BYTES, body).ok().map(|_| queue)
}

fn write_all(messages: &Receiver<Message>, output: &mut impl Write, lost: &AtomicU64) {
    while let Ok(message) = messages.recv() {
        // An output that refuses a line may take the next one.
        if let Message::Line(line) = &message {
            let _ = output.write_all(line.as_bytes());
        }
        let lost = lost.swap(0, Ordering::Relaxed);
        if lost > 0 {
            let _ =
                writeln!(output, "consort: {lost} messages were lost: nothing read this output");
        }
        if let Message::Flush(done) = message {
            let _ = done.send(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(output: &mut impl Write, lines: &[&str], lost: u64) {
        let (queue, messages) = sync_channel(ROOM);
        for line in lines {
            queue.send(Message::Line((*line).to_owned())).expect("room");
        }
        drop(queue);
        write_all(&messages, output, &AtomicU64::new(lost));
    }

    #[test]
    fn lines_are_written_in_order_and_losses_are_counted() {
        let mut output = Vec::new();
        written(&mut output, &["one\n", "two\n"], 3);
        let text = String::from_utf8(output).expect("text");
        assert!(text.starts_with("one\nconsort: 3 messages were lost"), "{text}");
        assert!(text.ends_with("two\n"), "{text}");
    }

    #[test]
    fn lines_that_nothing_reads_are_lost_and_delay_nothing() {
        let (queue, messages) = sync_channel(ROOM);
        let (done, counted) = sync_channel(1);
        std::thread::spawn(move || {
            let lost = AtomicU64::new(0);
            (0..ROOM + 3).for_each(|number| leave(&queue, number.to_string(), &lost));
            done.send(lost.into_inner())
        });
        assert_eq!(counted.recv_timeout(Duration::from_secs(20)), Ok(3));
        drop(messages);
    }

    #[test]
    fn an_output_that_fails_ends_nothing() {
        struct Full(usize);
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
                self.0 += 1;
                Err(std::io::ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let mut output = Full(0);
        written(&mut output, &["one\n", "two\n"], 0);
        assert_eq!(output.0, 2, "the second line was tried too");
    }
}
