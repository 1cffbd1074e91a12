//! A server that the service has started.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long what an ended server has said may be on its way.
const LAST_WORDS: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(5);

/// A process of this program, as `jackd`.
#[derive(Debug)]
pub(super) struct ServerProcess {
    child: Child,
    /// The last line that it has said.
    said: Arc<Mutex<String>>,
    /// Reads what it says, until it has ended.
    reader: Option<JoinHandle<()>>,
}

impl ServerProcess {
    /// Starts `jackd` with these words. What it says goes on to standard error.
    pub(super) fn start(words: &[String]) -> std::io::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg0("jackd").args(words);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let said = Arc::new(Mutex::new(String::new()));
        let reader = child.stderr.take().map(|stderr| {
            let said = Arc::clone(&said);
            std::thread::spawn(move || {
                for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                    eprintln!("{line}");
                    *said.lock().unwrap_or_else(PoisonError::into_inner) = line;
                }
            })
        });
        Ok(Self { child, said, reader })
    }

    /// Whether it has ended.
    pub(super) fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// The last line that it has said, once it has ended.
    pub(super) fn last_words(&self) -> String {
        let end = Instant::now() + LAST_WORDS;
        while self.reader.as_ref().is_some_and(|reader| !reader.is_finished()) && Instant::now() < end {
            std::thread::sleep(LOOK);
        }
        self.said.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
