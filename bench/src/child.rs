//! A child process that is controlled by lines of text, with every wait bounded.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// How long any child may take for an answer: far above what a server needs, so that only a hang
/// exceeds it.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);
/// How long a child may take to end once its input is closed; a hung one is then killed.
const END_LIMIT: Duration = Duration::from_secs(10);

/// The process is killed with this value, unless it has ended before.
pub struct LineChild {
    name: String,
    process: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl LineChild {
    /// Starts `command`; `name` is for messages. To be called on the main thread: a child may ask
    /// the kernel to be killed when the *thread* that started it ends.
    pub fn spawn(name: impl Into<String>, command: &mut Command) -> Result<Self> {
        let name = name.into();
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {name}"))?;
        let input = process.stdin.take();
        let output = process.stdout.take().context("the child has no output")?;
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Self { name, process, input, lines })
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Writes one line to it.
    pub fn tell(&mut self, line: &str) -> Result<()> {
        let input =
            self.input.as_mut().with_context(|| format!("{} was asked to end", self.name))?;
        writeln!(input, "{line}").with_context(|| format!("{} has ended", self.name))
    }

    /// The next line that begins with `word`, without it, split at blanks. Other lines are the
    /// library's chatter.
    pub fn answer(&self, word: &str) -> Result<Vec<String>> {
        self.answer_by(word, Instant::now() + ANSWER_LIMIT)
    }

    /// Like [`answer`](Self::answer), for children that share a deadline.
    pub fn answer_by(&self, word: &str, deadline: Instant) -> Result<Vec<String>> {
        loop {
            let line =
                match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                    Ok(line) => line,
                    Err(RecvTimeoutError::Timeout) => {
                        bail!("{} does not answer (waiting for '{word}')", self.name)
                    }
                    Err(RecvTimeoutError::Disconnected) => {
                        bail!("{} has ended without saying '{word}'", self.name)
                    }
                };
            let mut words = line.split_ascii_whitespace();
            if words.next() == Some(word) {
                return Ok(words.map(String::from).collect());
            }
        }
    }

    /// Like [`answer`](Self::answer), with every word as a number.
    pub fn numbers(&self, word: &str) -> Result<Vec<u64>> {
        self.numbers_by(word, Instant::now() + ANSWER_LIMIT)
    }

    /// Like [`answer_by`](Self::answer_by), with every word as a number.
    pub fn numbers_by(&self, word: &str, deadline: Instant) -> Result<Vec<u64>> {
        let words = self.answer_by(word, deadline)?;
        words
            .iter()
            .map(|text| {
                text.parse()
                    .with_context(|| format!("{} said '{word} {}'", self.name, words.join(" ")))
            })
            .collect()
    }

    /// Lets it end by closing its input.
    pub fn close_input(&mut self) {
        self.input = None;
    }

    /// Closes its input and waits until it has ended; kills it if it does not end. Returns whether
    /// it ended by itself and without an error.
    pub fn end(&mut self) -> bool {
        self.close_input();
        let deadline = Instant::now() + END_LIMIT;
        while Instant::now() < deadline {
            match self.process.try_wait() {
                Ok(Some(status)) => return status.success(),
                Ok(None) => std::thread::sleep(Duration::from_millis(2)),
                Err(_) => break,
            }
        }
        self.kill();
        false
    }

    fn kill(&mut self) {
        // These fail only for a process that has already been waited for.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for LineChild {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_lines_before_an_answer_are_skipped() {
        let mut child = LineChild::spawn("cat", &mut Command::new("cat")).unwrap();
        child.tell("chatter 7").unwrap();
        child.tell("done 1 2").unwrap();
        assert_eq!(child.numbers("done").unwrap(), [1, 2]);
        assert!(child.end());
    }

    #[test]
    fn a_child_that_has_ended_is_an_error_not_a_wait() {
        let child = LineChild::spawn("true", &mut Command::new("true")).unwrap();
        assert!(child.answer("ready").unwrap_err().to_string().contains("true has ended"));
    }
}
