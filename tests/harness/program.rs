//! A program that a test starts and that must not outlive it.

use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::PATIENCE;

/// A running program with its output.
#[derive(Debug)]
pub struct Program {
    name: String,
    child: Child,
    output: Receiver<(bool, Vec<u8>)>,
    printed: String,
    complained: String,
}

/// A program that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// Exit code; `None`: a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// What it printed.
    pub stdout: String,
    /// What it printed on standard error.
    pub stderr: String,
}

impl Program {
    /// Starts `command` with no input, in a process group of its own.
    ///
    /// # Panics
    /// If the program does not exist: a test that needs it fails.
    pub fn start(mut command: Command) -> Self {
        let name = command.get_program().to_string_lossy().into_owned();
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut child = command.spawn().unwrap_or_else(|error| {
            panic!("cannot start {name}: {error}; run 'cargo xtask setup' for what tests need")
        });
        let (sender, output) = channel();
        let pipes: [(bool, Box<dyn Read + Send>); 2] = [
            (true, Box::new(child.stdout.take().expect("piped"))),
            (false, Box::new(child.stderr.take().expect("piped"))),
        ];
        for (is_stdout, mut pipe) in pipes {
            let sender = sender.clone();
            std::thread::spawn(move || {
                let mut buffer = [0; 4096];
                while let Ok(bytes @ 1..) = pipe.read(&mut buffer) {
                    let _ = sender.send((is_stdout, buffer[..bytes].to_vec()));
                }
            });
        }
        Self { name, child, output, printed: String::new(), complained: String::new() }
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it has printed so far.
    pub fn stdout(&mut self) -> &str {
        self.take_output();
        &self.printed
    }

    /// What it has printed on standard error so far.
    pub fn stderr(&mut self) -> &str {
        self.take_output();
        &self.complained
    }

    fn take_output(&mut self) {
        while let Ok((is_stdout, bytes)) = self.output.try_recv() {
            let text = String::from_utf8_lossy(&bytes);
            if is_stdout { self.printed.push_str(&text) } else { self.complained.push_str(&text) }
        }
    }

    /// Whether it is still running.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        let _ = kill_process(self.pid(), signal);
    }

    /// Stops it, and returns once no thread of it runs.
    pub fn stop(&self) {
        self.signal(Signal::STOP);
        let threads = format!("/proc/{}/task", self.id());
        crate::eventually("all threads are stopped", || {
            let mut threads = std::fs::read_dir(&threads).ok()?;
            let is_stopped = |thread: std::fs::DirEntry| {
                let state = std::fs::read_to_string(thread.path().join("stat")).ok()?;
                Some(state.rsplit_once(") ")?.1.starts_with('T'))
            };
            threads.all(|thread| thread.ok().and_then(is_stopped) == Some(true)).then_some(())
        });
    }

    /// A line for each of its threads: its name, its state, and the system call that it is in
    /// (`proc_pid_syscall(5)`).
    fn threads(&self) -> String {
        let directory = format!("/proc/{}/task", self.id());
        let threads = std::fs::read_dir(directory).into_iter().flatten().flatten();
        let described = threads.map(|thread| {
            let read = |name| std::fs::read_to_string(thread.path().join(name)).unwrap_or_default();
            let (stat, call) = (read("stat"), read("syscall"));
            // "number (name) state parent …"
            let (name, rest) = stat.rsplit_once(") ").unwrap_or_default();
            format!("\n{name}) {} in {}", rest.split(' ').next().unwrap_or_default(), call.trim())
        });
        described.collect()
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Asks it to end, and waits for it.
    pub fn terminate(self) -> Finished {
        self.signal(Signal::TERM);
        self.finish()
    }

    /// Waits until it ends by itself.
    ///
    /// # Panics
    /// If it does not end within [`PATIENCE`] and a minute.
    pub fn finish(self) -> Finished {
        self.finish_within(PATIENCE + Duration::from_secs(60))
    }

    /// The same, for what may take longer or has to be faster.
    ///
    /// # Panics
    /// If it does not end within `patience`.
    pub fn finish_within(mut self, patience: Duration) -> Finished {
        let end = Instant::now() + patience;
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("a child of this process") {
                break status;
            }
            if Instant::now() > end {
                self.take_output();
                let threads = self.threads();
                panic!("{} does not end: {}{}{threads}", self.name, self.printed, self.complained);
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        // The pipes end with the program, unless it left children behind.
        while let Ok((is_stdout, bytes)) = self.output.recv_timeout(Duration::from_millis(500)) {
            let text = String::from_utf8_lossy(&bytes);
            if is_stdout { self.printed.push_str(&text) } else { self.complained.push_str(&text) }
        }
        Finished {
            code: status.code(),
            signal: status.signal(),
            stdout: std::mem::take(&mut self.printed),
            stderr: std::mem::take(&mut self.complained),
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if self.is_running() {
            let _ = kill_process_group(self.pid(), Signal::KILL);
            let _ = self.child.wait();
        }
    }
}

impl Finished {
    /// Asserts that it ended successfully.
    ///
    /// # Panics
    /// If it did not; the message has what it printed.
    #[track_caller]
    pub fn expect_success(self) -> Self {
        assert_eq!(
            (self.code, self.signal),
            (Some(0), None),
            "stdout: {}\nstderr: {}",
            self.stdout,
            self.stderr
        );
        self
    }
}

/// How often threads of this process have gone to sleep, and so how often they woke. A busy machine
/// takes their CPU besides, which says nothing about them.
pub fn wake_ups(process: u32) -> u64 {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).expect("a process");
    let status = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("status")).ok();
    let counts = tasks.flatten().filter_map(status).flat_map(|status| {
        let counts = status.lines().filter(|line| line.starts_with("voluntary_ctxt_switches:"));
        let number = |line: &str| line.split_whitespace().nth(1)?.parse::<u64>().ok();
        counts.filter_map(number).collect::<Vec<_>>()
    });
    counts.sum()
}
