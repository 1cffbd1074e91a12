//! State that the service's interfaces share: the server, the parameters it is started with, and
//! its graph.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use client::Observer;
use observe::{Graph, GraphFollower};

use crate::Jackd;
use crate::failure::{Answer, Failure};
use crate::graph::{GraphSignal, VersionedGraph};
use crate::parameters::Parameters;
use crate::server_process::ServerProcess;
use crate::settings::Settings;

/// An event that the main loop signals on the bus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ServiceEvent {
    Started,
    Stopped,
    Graph(GraphSignal),
    /// Saving a session has begun or ended: see [`State::saving`].
    Session(u32, String),
    /// The server is of another release, for this reason: the next call has the bus start a
    /// service that may be of that one.
    OtherRelease(String),
    /// The service is to end.
    Exit,
}

/// The service.
#[derive(Debug)]
pub(crate) struct Service {
    state: Mutex<State>,
    events: Mutex<Sender<ServiceEvent>>,
    jackd: Arc<dyn Jackd>,
}

/// The state that calls and polls change.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) parameters: Parameters,
    settings: Settings,
    pub(crate) graph: VersionedGraph,
    /// Xruns of the server before `ResetXruns`, which are not counted.
    pub(crate) forgotten_xruns: u32,
    /// Kind and target of the session that is being saved; 0 and an empty text if none is.
    pub(crate) saving: (u32, String),
    server: Option<Observer>,
    follower: GraphFollower,
    /// The process of a server that the service has started, as long as it runs.
    process: Option<ServerProcess>,
    /// Slave drivers whose devices were added to the running server: the driver's name and the
    /// client's, oldest first.
    pub(crate) slaves: Vec<(String, String)>,
}

/// Time limit for a server to start, and to stop.
const TIMEOUT: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(10);

impl Service {
    /// Creates a service with the user's settings, which has not polled yet, and the receiver of
    /// its events.
    pub(crate) fn new(server: &str, jackd: Arc<dyn Jackd>) -> (Self, Receiver<ServiceEvent>) {
        let (sender, receiver) = channel();
        let mut parameters = Parameters::new(server, Arc::clone(&jackd));
        let settings = Settings::read(&mut parameters);
        let state = State {
            parameters,
            settings,
            graph: VersionedGraph::default(),
            forgotten_xruns: 0,
            saving: (0, String::new()),
            server: None,
            follower: GraphFollower::default(),
            process: None,
            slaves: Vec::new(),
        };
        (Self { state: Mutex::new(state), events: Mutex::new(sender), jackd }, receiver)
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn jackd(&self) -> &dyn Jackd {
        &*self.jackd
    }

    /// Passes an event to the main loop.
    pub(crate) fn report(&self, event: ServiceEvent) {
        // Fails only if the service has ended.
        let _ = self.events.lock().unwrap_or_else(PoisonError::into_inner).send(event);
    }

    /// Sets [`State::saving`].
    pub(crate) fn note_session(&self, kind: u32, target: &str) {
        self.state().saving = (kind, target.to_owned());
        self.report(ServiceEvent::Session(kind, target.to_owned()));
    }

    /// Polls whether there is a server, and whether its graph has changed; `thoroughly`, also
    /// whether it still answers.
    pub(crate) fn poll(&self, thoroughly: bool) {
        let events = self.state().poll(thoroughly);
        events.into_iter().for_each(|event| self.report(event));
    }

    /// Calls `ask` with the server; fails if there is none.
    pub(crate) fn with_server<T>(
        &self,
        ask: impl FnOnce(&Observer, &mut State) -> Answer<T>,
    ) -> Answer<T> {
        self.poll(false);
        let mut state = self.state();
        let server = state.server.take().ok_or_else(Failure::not_running)?;
        let answer = ask(&server, &mut state);
        state.server = Some(server);
        answer
    }

    /// Returns whether there is a server.
    pub(crate) fn is_started(&self) -> bool {
        self.poll(true);
        self.state().server.is_some()
    }

    /// Starts a server if there is none, and waits until programs can connect.
    pub(crate) fn start(&self) -> Answer<()> {
        if self.is_started() {
            return Ok(());
        }
        let (arguments, slaves) = {
            let parameters = &self.state().parameters;
            (parameters.arguments(), parameters.slaves())
        };
        // Checked before anything is started: if one of them cannot be added, no server starts.
        let slaves: Vec<_> = slaves
            .into_iter()
            .map(|name| Ok((self.slave_options(&name)?, name)))
            .collect::<Answer<_>>()?;
        let command = self.jackd.command(&arguments);
        let process = command
            .and_then(ServerProcess::start)
            .map_err(|error| Failure::Generic(format!("the server cannot be started: {error}")))?;
        self.state().process = Some(process);
        self.wait("start", |service| {
            if service.is_started() {
                return Some(Ok(()));
            }
            let mut state = service.state();
            let process = state.process.as_mut()?;
            let ended = process.has_ended();
            ended.then(|| {
                Err(Failure::Generic(format!("the server did not start: {}", process.last_line())))
            })
        })?;
        for (options, name) in slaves {
            if let Err(failure) = self.add_device(&name, &options) {
                self.stop_own();
                return Err(failure);
            }
        }
        Ok(())
    }

    /// Stops the server if there is one, and waits until it has ended.
    pub(crate) fn stop(&self) -> Answer<()> {
        match self.with_server(|server, _| Ok(server.stop()?)) {
            Ok(()) | Err(Failure::ServerNotRunning(_)) => {}
            Err(other) => return Err(other),
        }
        self.wait("stop", |service| {
            let gone = !service.is_started();
            let mut state = service.state();
            let ended = state.process.as_mut().is_none_or(ServerProcess::has_ended);
            (gone && ended).then(|| {
                state.process = None;
                Ok(())
            })
        })
    }

    /// Stops the server if the service has started it.
    pub(crate) fn stop_own(&self) {
        let runs = self.state().process.as_mut().is_some_and(|process| !process.has_ended());
        if runs && let Err(error) = self.stop() {
            eprintln!("consort: {error}");
        }
    }

    fn wait(&self, what: &str, mut done: impl FnMut(&Self) -> Option<Answer<()>>) -> Answer<()> {
        let end = Instant::now() + TIMEOUT;
        loop {
            if let Some(answer) = done(self) {
                return answer;
            }
            if Instant::now() > end {
                let seconds = TIMEOUT.as_secs();
                return Err(Failure::Generic(format!(
                    "the server did not {what} within {seconds} s"
                )));
            }
            std::thread::sleep(POLL);
        }
    }
}

impl State {
    /// Changes parameters, and writes them to the user's settings.
    pub(crate) fn configure<T>(&mut self, change: impl FnOnce(&mut Parameters) -> T) -> T {
        let answer = change(&mut self.parameters);
        self.settings.write(&self.parameters);
        answer
    }

    fn poll(&mut self, thoroughly: bool) -> Vec<ServiceEvent> {
        let mut events = Vec::new();
        let name = self.parameters.server();
        let is_lost = self.server.as_ref().is_some_and(|server| {
            let silent = || matches!(server.status(), Err(client::Error::ServerGone));
            server.engine().has_stopped()
                || server.server_name() != name
                || (thoroughly && silent())
        });
        if is_lost {
            (self.server, self.follower) = (None, GraphFollower::default());
            // Devices end with their server.
            self.slaves.clear();
            events.extend(self.graph.update(Graph::default()).into_iter().map(ServiceEvent::Graph));
            events.push(ServiceEvent::Stopped);
        }
        if self.server.is_none() {
            match Observer::open(Some(&name)) {
                Ok(server) if !server.engine().has_stopped() => {
                    self.forgotten_xruns = 0;
                    self.server = Some(server);
                    events.push(ServiceEvent::Started);
                }
                Err(error) if error.is_of_other_release() => {
                    events.push(ServiceEvent::OtherRelease(error.to_string()));
                }
                _ => {}
            }
        }
        if let Some(server) = &self.server
            && let Some(graph) = self.follower.poll(server.registry())
        {
            events.extend(self.graph.update(graph).into_iter().map(ServiceEvent::Graph));
        }
        events
    }
}
