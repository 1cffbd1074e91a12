//! A server process that the service has started.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long the last output of an ended server may take to arrive.
const LAST_OUTPUT: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(5);

/// A process of `jackd`.
#[derive(Debug)]
pub(crate) struct ServerProcess {
    child: Child,
    /// The last line of its standard error.
    last_line: Arc<Mutex<String>>,
    /// Reads its standard error until it has ended.
    reader: Option<JoinHandle<()>>,
}

impl ServerProcess {
    /// Runs the command. What it writes to standard error is passed on.
    pub(crate) fn start(mut command: Command) -> std::io::Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let last_line = Arc::new(Mutex::new(String::new()));
        let reader = child.stderr.take().map(|stderr| {
            let last_line = Arc::clone(&last_line);
            std::thread::spawn(move || {
                for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                    eprintln!("{line}");
                    *last_line.lock().unwrap_or_else(PoisonError::into_inner) = line;
                }
            })
        });
        Ok(Self { child, last_line, reader })
    }

    /// Returns whether it has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Returns the last line of its standard error, once it has ended.
    pub(crate) fn last_line(&self) -> String {
        let end = Instant::now() + LAST_OUTPUT;
        while self.reader.as_ref().is_some_and(|reader| !reader.is_finished())
            && Instant::now() < end
        {
            std::thread::sleep(POLL);
        }
        self.last_line.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
