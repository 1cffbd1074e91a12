//! Real-time priorities that RealtimeKit gives where the kernel's limits give none: through a process that asks for them
//! on the system bus, so that nothing of a bus is in the server.

use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// For that process to start and find the bus, and for one answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// What it says before the highest priority that there is, in its first line.
pub const HIGHEST: &str = "highest ";
/// What it says of each thread that was given its priority; anything else says why another one was not.
pub const GIVEN: &str = "given";
/// Questions without an answer that are as many as ever: their bytes fit into a pipe.
const MOST_ASKED: u32 = 256;

/// Who is asked. Thread: control.
#[derive(Debug)]
pub struct RealtimeKit {
    child: Child,
    questions: ChildStdin,
    answers: Receiver<String>,
    asked: u32,
    highest: u32,
    /// Not asked again before, `CLOCK_MONOTONIC` ns.
    pub next_ns: u64,
    /// Among the threads that wait, the first that is asked for then.
    pub turn: usize,
}

impl RealtimeKit {
    /// Finds out whether threads of this program can have a priority of up to `priority`. `program` takes the arguments
    /// of `consort`.
    ///
    /// # Errors
    /// A sentence that says why not.
    pub fn find(program: &Path, priority: u32) -> Result<Self, String> {
        let mut command = Command::new(program);
        command.arg("realtime-kit").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        let (Some(questions), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("the process that asks it has no pipes".into());
        };
        let (line, answers) = channel();
        std::thread::spawn(move || {
            for answer in BufReader::new(output).lines().map_while(Result::ok) {
                // Nobody waits for it after the server's end.
                let _ = line.send(answer);
            }
        });
        let mut kit = Self { child, questions, answers, asked: 0, highest: 0, next_ns: 0, turn: 0 };
        let first = kit.answer()?;
        let highest = first.strip_prefix(HIGHEST).and_then(|highest| highest.parse().ok());
        kit.highest = highest.ok_or(first)?;
        kit.try_with_a_thread(kit.priority(priority))?;
        Ok(kit)
    }

    /// The highest priority that it gives, up to `wanted`.
    #[must_use]
    pub fn priority(&self, wanted: u32) -> u32 {
        wanted.min(self.highest)
    }

    /// Asks for a priority of a thread; the answer is not waited for.
    pub fn ask(&mut self, process: u32, thread: u32, priority: u32) {
        while self.answers.try_recv().is_ok() {
            self.asked = self.asked.saturating_sub(1);
        }
        // One that does not answer is not asked any more: its pipe would fill up.
        if self.asked < MOST_ASKED && self.question(process, thread, self.priority(priority)).is_ok() {
            self.asked += 1;
        }
    }

    fn question(&mut self, process: u32, thread: u32, priority: u32) -> io::Result<()> {
        self.questions.write_all(format!("{process} {thread} {priority}\n").as_bytes())
    }

    fn answer(&self) -> Result<String, String> {
        self.answers.recv_timeout(PATIENCE).map_err(|_| "it does not answer".into())
    }

    fn try_with_a_thread(&mut self, priority: u32) -> Result<(), String> {
        let (name, named) = channel();
        let (end, ends) = channel::<()>();
        let tried = std::thread::spawn(move || {
            let _ = name.send(sys::thread::thread_id());
            // Until the other end is dropped.
            let _ = ends.recv();
        });
        let thread = named.recv().map_err(|error| error.to_string())?;
        let asked = self.question(sys::process::process_id(), thread, priority);
        let answer = asked.map_err(|error| error.to_string()).and_then(|()| self.answer());
        drop(end);
        let _ = tried.join();
        match answer? {
            answer if answer == GIVEN => Ok(()),
            refused => Err(refused),
        }
    }
}

impl Drop for RealtimeKit {
    fn drop(&mut self) {
        // It would end with its standard input, but may wait for the bus.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
