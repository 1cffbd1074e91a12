//! Helper processes: a program that this one starts for one task, exchanges lines with, and ends.
//!
//! A [`Helper`] does not outlive its value. What the started program does for its part, so that it
//! does not outlive this process either, is [`end_with_parent`] or [`take_socket`], or reading its
//! standard input to the end. One that is to outlive this process is no [`Helper`], and takes its
//! socket by [`take_kept_socket`].

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus};

use rustix::event::PollFlags;
use rustix::fs::{Mode, OFlags};
use rustix::process::set_parent_process_death_signal;

use crate::clock::now_ns;
use crate::poll;
use crate::process::PidFd;
use crate::signals::{Signal, TerminationSignals};

/// How a helper is asked to end. One that has not ended within its time limit is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The pipe to its standard input is closed.
    CloseInput {
        /// Time limit, ns.
        timeout_ns: u64,
    },
    /// It is sent `SIGTERM`.
    Terminate {
        /// Time limit, ns.
        timeout_ns: u64,
    },
    /// It is killed at once: it holds nothing that must be put in order.
    Kill,
}

/// A process that this one started. It is ended, and waited for, on drop.
#[derive(Debug)]
pub struct Helper {
    child: Child,
    ending: Ending,
}

impl Helper {
    /// Starts `command`, to be ended as `ending` says.
    ///
    /// # Errors
    /// See [`Command::spawn`].
    pub fn spawn(command: &mut Command, ending: Ending) -> io::Result<Self> {
        Ok(Self { child: command.spawn()?, ending })
    }

    /// Returns the process id. No other process gets it while the helper has not been waited for.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the pipe to the helper's standard input, if there is one.
    pub fn input(&mut self) -> Option<&mut ChildStdin> {
        self.child.stdin.as_mut()
    }

    /// Returns the lines of the helper's standard output, if that is a pipe. The pipe is closed
    /// when they are dropped.
    pub fn lines(&mut self) -> Option<Lines> {
        self.child.stdout.take().map(Lines::new)
    }

    /// Returns how the helper ended, or `None` while it runs. Does not wait.
    ///
    /// # Errors
    /// The errors of `waitpid`.
    pub fn status(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Returns whether the helper has not ended.
    pub fn is_running(&mut self) -> bool {
        matches!(self.status(), Ok(None))
    }

    /// Closes the pipe to its standard input, which asks one that is ended like that to end, and
    /// does not wait.
    pub fn close_input(&mut self) {
        drop(self.child.stdin.take());
    }

    /// Kills the helper without waiting for its end.
    pub fn kill(&mut self) {
        // The only failure is that it has ended.
        let _ = self.child.kill();
    }

    /// Asks the helper to end, waits until it has, and kills it at its time limit.
    ///
    /// # Errors
    /// The errors of `waitpid`.
    pub fn end(&mut self) -> io::Result<ExitStatus> {
        if let Some(status) = self.status()? {
            return Ok(status);
        }
        let deadline_ns = self.ask_to_end();
        self.wait_until(deadline_ns)
    }

    /// Asks the helper to end; returns when it is to be killed otherwise.
    fn ask_to_end(&mut self) -> u64 {
        let timeout_ns = match self.ending {
            Ending::CloseInput { timeout_ns } => {
                drop(self.child.stdin.take());
                timeout_ns
            }
            Ending::Terminate { timeout_ns } => {
                // The only failure is that it has ended.
                let _ = PidFd::open(self.id()).and_then(|process| process.kill(Signal::Terminate));
                timeout_ns
            }
            Ending::Kill => 0,
        };
        now_ns().saturating_add(timeout_ns)
    }

    /// Waits until the helper has ended, and kills it at `deadline_ns`.
    fn wait_until(&mut self, deadline_ns: u64) -> io::Result<ExitStatus> {
        let ended = deadline_ns > now_ns()
            && PidFd::open(self.id())
                .and_then(|process| process.wait_until(Some(deadline_ns)))
                .unwrap_or(false);
        if !ended {
            self.kill();
        }
        self.child.wait()
    }
}

/// Ends helpers together: all are asked before any is waited for, so that no more time passes than
/// the longest of their time limits.
pub fn end_all(helpers: impl IntoIterator<Item = Helper>) {
    let mut helpers: Vec<Helper> = helpers.into_iter().collect();
    helpers.retain_mut(Helper::is_running);
    // MUTATION: end_all.one_after_the_other
    let deadlines_ns: Vec<u64> = helpers.iter_mut().map(Helper::ask_to_end).collect();
    for (helper, deadline_ns) in helpers.iter_mut().zip(deadlines_ns) {
        // It fails only if another part of this process has waited for the child.
        let _ = helper.wait_until(deadline_ns);
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        // It fails only if another part of this process has waited for the child.
        let _ = self.end();
    }
}

/// Longest line, bytes: a longer one is no line, and nothing is read behind it.
const MAX_LINE_BYTES: usize = 64 << 10;

/// The lines that a process writes to its standard output.
#[derive(Debug)]
pub struct Lines {
    output: ChildStdout,
    /// Read and not returned yet.
    buffer: Vec<u8>,
    has_ended: bool,
}

impl Lines {
    /// Reads from `output`.
    #[must_use]
    pub fn new(output: ChildStdout) -> Self {
        Self { output, buffer: Vec::new(), has_ended: false }
    }

    /// Returns whether the output has ended, as far as it was read: no line follows once
    /// [`next_until`](Self::next_until) has returned `None`.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Waits for the next line and returns it without its line break; `None` once `deadline_ns` has
    /// passed or the output has ended. Bytes that are not UTF-8 are replaced.
    pub fn next_until(&mut self, deadline_ns: Option<u64>) -> Option<String> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line = self.buffer.drain(..=end).take(end).collect::<Vec<u8>>();
                return Some(String::from_utf8_lossy(&line).into_owned());
            }
            if self.has_ended {
                let rest = std::mem::take(&mut self.buffer);
                return (!rest.is_empty()).then(|| String::from_utf8_lossy(&rest).into_owned());
            }
            if !poll::wait_for(self.output.as_fd(), PollFlags::IN, deadline_ns).unwrap_or(false) {
                return None;
            }
            let mut bytes = [0; 1024];
            match self.output.read(&mut bytes) {
                Ok(0) | Err(_) => self.has_ended = true,
                Ok(count) => self.buffer.extend_from_slice(&bytes[..count]),
            }
            // MUTATION: lines.of_any_length
            let is_too_long = self.buffer.len() > MAX_LINE_BYTES;
            if is_too_long && !self.buffer.contains(&b'\n') {
                self.buffer.clear();
                self.has_ended = true;
            }
        }
    }
}

impl AsFd for Lines {
    /// Returns the output. It is readable when there is more to read; lines that have been read
    /// from it but not returned do not show.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.output.as_fd()
    }
}

/// Makes the kernel kill this process when the thread that started it ends, in the process
/// `parent`.
///
/// # Errors
/// `NotFound` if that process is not the parent: it has ended already.
pub fn end_with_parent(parent: u32) -> io::Result<()> {
    set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    // The parent may have ended before the call above.
    if std::os::unix::process::parent_id() == parent {
        Ok(())
    } else {
        Err(io::ErrorKind::NotFound.into())
    }
}

/// Takes the standard output of this process: what code that it loads prints there goes nowhere. To
/// be called once.
///
/// # Errors
/// If standard output is closed, or no descriptor is left.
pub fn take_stdout() -> io::Result<File> {
    let output = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
    let nothing = rustix::fs::open(c"/dev/null", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::stdio::dup2_stdout(&nothing)?;
    Ok(output.into())
}

/// Separates this process from the server that started it, and returns the socket that was its
/// standard input. The process is killed when the server ends, receives signals again and has the
/// ordinary scheduling of a program; standard input is empty afterwards. To be called once, by the
/// main thread, before there are others.
///
/// # Errors
/// If standard input is closed, or no descriptor is left.
pub fn take_socket() -> io::Result<OwnedFd> {
    set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    take_kept_socket()
}

/// The same for a process that goes on when the server ends.
///
/// # Errors
/// See [`take_socket`].
pub fn take_kept_socket() -> io::Result<OwnedFd> {
    TerminationSignals::unblock()?;
    // A lower priority is always permitted.
    let _ = rustix::process::setpriority_process(None, 0);
    let socket = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    let nothing = rustix::fs::open(c"/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::stdio::dup2_stdin(&nothing)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::Stdio;

    use super::*;

    const LONG_NS: u64 = 60_000_000_000;

    fn shell(script: &str, ending: Ending) -> Helper {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        Helper::spawn(&mut command, ending).unwrap()
    }

    fn soon() -> Option<u64> {
        Some(now_ns() + LONG_NS)
    }

    #[test]
    fn lines_are_exchanged_until_the_input_is_closed() {
        let mut helper = shell("cat; printf last", Ending::CloseInput { timeout_ns: LONG_NS });
        let mut lines = helper.lines().unwrap();
        assert_eq!(lines.next_until(Some(now_ns() + 1_000_000)), None);
        helper.input().unwrap().write_all(b"one\ntwo\nth").unwrap();
        assert_eq!(lines.next_until(soon()).as_deref(), Some("one"));
        assert_eq!(lines.next_until(soon()).as_deref(), Some("two"));
        helper.input().unwrap().write_all(b"ree\n").unwrap();
        assert_eq!(lines.next_until(soon()).as_deref(), Some("three"));
        assert!(helper.is_running());
        assert!(helper.end().unwrap().success());
        assert!(!lines.has_ended(), "it was not read to its end");
        assert_eq!(lines.next_until(None).as_deref(), Some("last"), "a line without its break");
        assert_eq!(lines.next_until(None), None);
        assert!(lines.has_ended());
    }

    #[test]
    fn a_line_that_does_not_end_is_not_kept_and_ends_the_output() {
        let script = "echo first; head -c 200000 /dev/zero; exec sleep 1000";
        let mut helper = shell(script, Ending::Kill);
        let mut lines = helper.lines().unwrap();
        assert_eq!(lines.next_until(soon()).as_deref(), Some("first"));
        assert_eq!(lines.next_until(soon()), None);
        assert!(lines.has_ended());
    }

    #[test]
    fn a_helper_that_is_asked_to_terminate_may_put_things_in_order() {
        let script = "trap 'exit 7' TERM; echo ready; while :; do sleep 0.01; done";
        let mut helper = shell(script, Ending::Terminate { timeout_ns: LONG_NS });
        assert_eq!(helper.lines().unwrap().next_until(soon()).as_deref(), Some("ready"));
        assert_eq!(helper.end().unwrap().code(), Some(7));
        assert_eq!(helper.end().unwrap().code(), Some(7), "it has ended once");
    }

    #[test]
    fn a_helper_that_does_not_end_in_time_is_killed() {
        for ending in [Ending::CloseInput { timeout_ns: 1_000_000 }, Ending::Kill] {
            let mut helper = shell("exec sleep 1000", ending);
            assert_eq!(helper.end().unwrap().code(), None, "{ending:?}");
        }
    }

    #[test]
    fn helpers_that_end_together_are_waited_for_together() {
        const LIMIT_NS: u64 = 500_000_000;
        const HELPERS: u64 = 8;
        let ending = Ending::CloseInput { timeout_ns: LIMIT_NS };
        let helpers: Vec<_> = (0..HELPERS).map(|_| shell("exec sleep 1000", ending)).collect();
        let processes: Vec<_> =
            helpers.iter().map(|helper| PidFd::open(helper.id()).unwrap()).collect();
        let began_ns = now_ns();
        end_all(helpers);
        // Half of the time that they would take one after the other.
        assert!(now_ns() - began_ns < HELPERS / 2 * LIMIT_NS);
        assert!(processes.iter().all(|process| process.has_ended().unwrap()));
    }

    #[test]
    fn each_of_many_helpers_has_its_time_to_end() {
        let long = Ending::CloseInput { timeout_ns: LONG_NS };
        let mut helpers = [
            shell("cat >/dev/null; echo ended", long),
            shell("exec sleep 1000", Ending::Kill),
            shell("cat >/dev/null; echo ended", long),
        ];
        let lines = helpers.each_mut().map(|helper| helper.lines().unwrap());
        end_all(helpers);
        let last = lines.map(|mut lines| lines.next_until(soon()));
        let ended = Some("ended".to_owned());
        assert_eq!(last, [ended.clone(), None, ended]);
    }

    #[test]
    fn a_helper_ends_with_its_value() {
        let mut helper = shell("echo $$; exec cat", Ending::Kill);
        let process = PidFd::open(helper.id()).unwrap();
        assert!(helper.lines().unwrap().next_until(soon()).is_some());
        assert!(!process.has_ended().unwrap());
        drop(helper);
        assert!(process.has_ended().unwrap());
    }
}
