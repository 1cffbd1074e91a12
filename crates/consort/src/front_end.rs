//! The front end for PulseAudio's programs beside a server: its options, its socket, its process,
//! which is started again when it dies.

mod restarts;

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::thread::JoinHandle;

use anyhow::Context;
use clap::Args;
use cli::error_chain;
use pulse::Listener;
use sys::clock::now_ns;
use sys::helper::{Ending, Helper};
use sys::poll::{Event, Interest, Poller, Waker};
use sys::process::PidFd;

use restarts::Restarts;

/// How often the socket is tried, and the pause between: a front end of a server that was killed
/// ends shortly after it.
const TRIES: u32 = 5;
const TRY_AGAIN_NS: u64 = 200_000_000;

/// Options of `consort run`.
#[derive(Debug, Default, Args)]
pub(crate) struct FrontEndArguments {
    /// Let programs of PulseAudio play and record, through a separate process (consort pulse). If
    /// another sound server has their socket, that is printed and the server runs without them
    #[arg(long = "pulse")]
    is_wanted: bool,
    /// The socket for them; implies --pulse [default: $XDG_RUNTIME_DIR/pulse/native]
    #[arg(long = "pulse-socket", value_name = "PATH")]
    socket: Option<PathBuf>,
}

/// The thread that starts the front end's process. It and the process end with this value.
#[derive(Debug)]
pub(crate) struct FrontEnd {
    /// `None` once it has been waited for.
    thread: Option<JoinHandle<()>>,
    server_ends: Waker,
}

impl FrontEndArguments {
    /// Starts the front end of a server that is about to run in this process, if it was asked for.
    /// Must be called by the main thread when the termination signals are blocked.
    pub(crate) fn start(self, server: &str) -> anyhow::Result<Option<FrontEnd>> {
        if !self.is_wanted && self.socket.is_none() {
            return Ok(None);
        }
        let server_ends = Waker::new().context("cannot start the front end")?;
        let supervisor = Supervisor::new(server, &server_ends)?;
        // The process ends when the thread that started it does.
        let thread = std::thread::Builder::new().name("pulse".into());
        let thread = thread.spawn(move || supervisor.run(self.socket.as_deref()))?;
        Ok(Some(FrontEnd { thread: Some(thread), server_ends }))
    }
}

impl Drop for FrontEnd {
    fn drop(&mut self) {
        self.server_ends.wake();
        if let Some(thread) = self.thread.take() {
            // It has reported what there was to report.
            let _ = thread.join();
        }
    }
}

/// What the thread has.
struct Supervisor {
    server: String,
    poller: Poller,
}

/// Tokens of what is waited for.
const SERVER_ENDS: u64 = 0;
const PROCESS: u64 = 1;

/// The server ends.
struct ServerEnds;

impl Supervisor {
    /// `server_ends` must stay open until the thread has ended.
    fn new(server: &str, server_ends: &Waker) -> anyhow::Result<Self> {
        let poller = Poller::new()?;
        poller.add(server_ends, SERVER_ENDS, Interest::Readable)?;
        Ok(Self { server: server.to_owned(), poller })
    }

    fn run(self, socket: Option<&Path>) {
        // It is open until the server ends: without a process, programs wait in its queue.
        let listener = match self.listen(socket) {
            Ok(Ok(listener)) => listener,
            Ok(Err(error)) => {
                let reason = error_chain(&error);
                return sys::report!("consort: no programs of PulseAudio are served: {reason}");
            }
            Err(ServerEnds) => return,
        };
        let mut restarts = Restarts::default();
        loop {
            let begun_ns = now_ns();
            let how = match self.start(&listener).and_then(|process| self.await_end(process)) {
                Ok(Some(status)) => status.to_string(),
                Ok(None) => return,
                Err(error) => error_chain(&error),
            };
            let pause_ns = restarts.pause_ns(now_ns() - begun_ns);
            sys::report!(
                "consort: the front end for PulseAudio's programs has ended ({how}); it is started \
                 again in {} s",
                pause_ns as f64 / 1e9
            );
            if self.pause(pause_ns).is_err() {
                return;
            }
        }
    }

    /// Listens for programs, and tries several times.
    fn listen(&self, socket: Option<&Path>) -> Result<anyhow::Result<Listener>, ServerEnds> {
        for _ in 1..TRIES {
            if let Ok(listener) = Listener::bind(socket) {
                return Ok(Ok(listener));
            }
            self.pause(TRY_AGAIN_NS)?;
        }
        Ok(Listener::bind(socket))
    }

    fn start(&self, listener: &Listener) -> anyhow::Result<Helper> {
        let mut command = cli::own_program()?;
        command.args(["pulse", "--server", &self.server]);
        command.args(["--parent", &std::process::id().to_string()]);
        let socket: OwnedFd = listener.duplicate().context("no descriptor for its socket")?;
        command.stdin(Stdio::from(socket)).stdout(Stdio::null());
        Helper::spawn(&mut command, Ending::Kill).context("it cannot be started")
    }

    /// Waits for the end of the process, or ends it with the server: then there is no status.
    fn await_end(&self, mut process: Helper) -> anyhow::Result<Option<ExitStatus>> {
        let handle = PidFd::open(process.id())?;
        self.poller.add(&handle, PROCESS, Interest::Readable)?;
        let waited = self.wait(None);
        self.poller.remove(&handle)?;
        if waited?.iter().any(|event| event.token == SERVER_ENDS) {
            return Ok(None);
        }
        Ok(Some(process.end()?))
    }

    fn pause(&self, pause_ns: u64) -> Result<(), ServerEnds> {
        match self.wait(Some(now_ns() + pause_ns)) {
            Ok(events) if events.is_empty() => Ok(()),
            _ => Err(ServerEnds),
        }
    }

    fn wait(&self, deadline_ns: Option<u64>) -> std::io::Result<Vec<Event>> {
        let mut events = Vec::new();
        self.poller.wait(&mut events, deadline_ns).map(|()| events)
    }
}
