//! The front end for PulseAudio's programs beside a server: its options, its socket, its process,
//! which is started again when it dies, and outlives its server while programs are connected.

mod restarts;

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::thread::JoinHandle;

use anyhow::Context;
use clap::Args;
use cli::error_chain;
use pulse::{Listener, arguments_of_front_end, front_end_at};
use sys::clock::now_ns;
use sys::poll::{Event, Interest, Poller, Waker};
use sys::process::PidFd;

use restarts::Restarts;

/// How often the socket is tried, and the pause between: what has it may be about to end.
const TRIES: u32 = 5;
const TRY_AGAIN_NS: u64 = 200_000_000;
/// How long after the end of a front end that was not a failure the next one starts, ns. It was
/// asked to end, or has seen the server end, and this thread is about to be.
const ORDERLY_NS: u64 = 1_000_000_000;

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

/// The thread that starts the front end's process. It ends with this value. The process ends when
/// there is no server, once nobody waits for the next one.
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

/// Who serves programs.
enum Place {
    /// This server's own front end, on this socket. It is open until the server ends: without a
    /// process, programs wait in its queue.
    Own(Listener),
    /// The front end of an earlier server of this name, whose programs wait for this one.
    Earlier(PidFd),
}

impl Supervisor {
    /// `server_ends` must stay open until the thread has ended.
    fn new(server: &str, server_ends: &Waker) -> anyhow::Result<Self> {
        let poller = Poller::new()?;
        poller.add(server_ends, SERVER_ENDS, Interest::Readable)?;
        Ok(Self { server: server.to_owned(), poller })
    }

    fn run(self, socket: Option<&Path>) {
        loop {
            match self.take_place(socket) {
                Ok(Ok(Place::Own(listener))) => return self.keep_running(&listener),
                // When it ends, it is this server's turn.
                Ok(Ok(Place::Earlier(process))) => match self.await_process(&process) {
                    Ok(Ok(())) => {}
                    Ok(Err(ServerEnds)) => return,
                    Err(error) => return report_failure(&error.into()),
                },
                Ok(Err(error)) => return report_failure(&error),
                Err(ServerEnds) => return,
            }
        }
    }

    /// Listens for programs, unless an earlier front end does. Tries several times.
    fn take_place(&self, socket: Option<&Path>) -> Result<anyhow::Result<Place>, ServerEnds> {
        let mut tries = 1;
        loop {
            let error = match Listener::bind(socket) {
                Ok(listener) => return Ok(Ok(Place::Own(listener))),
                Err(error) => error,
            };
            if let Some(process) = front_end_at(socket, &self.server) {
                return Ok(Ok(Place::Earlier(process)));
            }
            if tries == TRIES {
                return Ok(Err(error));
            }
            tries += 1;
            self.pause(TRY_AGAIN_NS)?;
        }
    }

    fn keep_running(&self, listener: &Listener) {
        let mut restarts = Restarts::default();
        loop {
            let begun_ns = now_ns();
            let ended = self.start(listener).and_then(|process| self.await_end(process));
            let ran_ns = now_ns() - begun_ns;
            let pause_ns = match ended {
                Ok(Err(ServerEnds)) => return,
                Ok(Ok(status)) if status.success() => restarts.pause_ns(ran_ns).max(ORDERLY_NS),
                Ok(Ok(status)) => report_end(&status.to_string(), restarts.pause_ns(ran_ns)),
                Err(error) => report_end(&error_chain(&error), restarts.pause_ns(ran_ns)),
            };
            // MUTATION: front_end.not_started_again
            if self.pause(pause_ns).is_err() {
                return;
            }
        }
    }

    fn start(&self, listener: &Listener) -> anyhow::Result<Child> {
        let mut command = cli::own_program()?;
        command.args(arguments_of_front_end(&self.server));
        let socket: OwnedFd = listener.duplicate().context("no descriptor for its socket")?;
        command.stdin(Stdio::from(socket)).stdout(Stdio::null());
        command.spawn().context("it cannot be started")
    }

    /// Waits for the end of the process. When the server ends first, the process is left alone.
    fn await_end(&self, mut process: Child) -> anyhow::Result<Result<ExitStatus, ServerEnds>> {
        let handle = PidFd::open(process.id())?;
        Ok(match self.await_process(&handle)? {
            Ok(()) => Ok(process.wait()?),
            Err(ServerEnds) => Err(ServerEnds),
        })
    }

    fn await_process(&self, process: &PidFd) -> std::io::Result<Result<(), ServerEnds>> {
        self.poller.add(process, PROCESS, Interest::Readable)?;
        let waited = self.wait(None);
        self.poller.remove(process)?;
        let server_ends = waited?.iter().any(|event| event.token == SERVER_ENDS);
        Ok(if server_ends { Err(ServerEnds) } else { Ok(()) })
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

fn report_failure(error: &anyhow::Error) {
    let reason = error_chain(error);
    sys::report!("consort: no programs of PulseAudio are served: {reason}");
}

/// Says how the front end has ended, and returns the pause until the next one starts.
fn report_end(how: &str, pause_ns: u64) -> u64 {
    sys::report!(
        "consort: the front end for PulseAudio's programs has ended ({how}); it is started again \
         in {} s",
        pause_ns as f64 / 1e9
    );
    pause_ns
}
