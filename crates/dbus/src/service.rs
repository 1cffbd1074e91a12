//! State that the service's interfaces share: the server, the parameters it is started with, and
//! its graph.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use client::Observer;
use observe::{Graph, GraphFollower};
use sys::poll::{Interest, Poller, Waker};

use crate::Jackd;
use crate::failure::{Answer, Failure};
use crate::graph::{GraphSignal, VersionedGraph};
use crate::parameters::Parameters;
use crate::server_link::{News, ServerLink};
use crate::server_process::ServerProcess;
use crate::settings::Settings;
use crate::watch::WAKER;

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
    /// What the main loop sleeps on.
    pub(crate) poller: Arc<Poller>,
    /// Wakes it.
    pub(crate) waker: Arc<Waker>,
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
    pub(crate) link: ServerLink,
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
    /// Creates a service with the user's settings, which has not looked for a server yet, and the
    /// receiver of its events.
    ///
    /// # Errors
    /// There is no descriptor left.
    pub(crate) fn new(
        server: &str,
        jackd: Arc<dyn Jackd>,
    ) -> io::Result<(Self, Receiver<ServiceEvent>)> {
        let (sender, receiver) = channel();
        let (poller, waker) = (Arc::new(Poller::new()?), Arc::new(Waker::new()?));
        poller.add(&*waker, WAKER, Interest::Readable)?;
        let mut parameters = Parameters::new(server, Arc::clone(&jackd));
        let settings = Settings::read(&mut parameters);
        let state = State {
            parameters,
            settings,
            graph: VersionedGraph::default(),
            forgotten_xruns: 0,
            saving: (0, String::new()),
            link: ServerLink::new(Arc::clone(&poller)),
            follower: GraphFollower::default(),
            process: None,
            slaves: Vec::new(),
        };
        let (state, events) = (Mutex::new(state), Mutex::new(sender));
        Ok((Self { state, events, poller, waker, jackd }, receiver))
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn jackd(&self) -> &dyn Jackd {
        &*self.jackd
    }

    /// Changes parameters, and writes them to the user's settings.
    pub(crate) fn configure<T>(&self, change: impl FnOnce(&mut Parameters) -> T) -> T {
        let answer = self.state().configure(change);
        // The server may have another name from now on.
        self.waker.wake();
        answer
    }

    /// Passes an event to the main loop.
    pub(crate) fn report(&self, event: ServiceEvent) {
        // Fails only if the service has ended.
        let _ = self.events.lock().unwrap_or_else(PoisonError::into_inner).send(event);
        self.waker.wake();
    }

    /// Sets [`State::saving`].
    pub(crate) fn note_session(&self, kind: u32, target: &str) {
        self.state().saving = (kind, target.to_owned());
        self.report(ServiceEvent::Session(kind, target.to_owned()));
    }

    /// Looks whether there is a server, and whether its graph has changed.
    pub(crate) fn look(&self) {
        let events = self.state().look();
        events.into_iter().for_each(|event| self.report(event));
    }

    /// Calls `ask` with the server; fails if there is none.
    pub(crate) fn with_server<T>(
        &self,
        ask: impl FnOnce(&Observer, &mut State) -> Answer<T>,
    ) -> Answer<T> {
        self.look();
        let mut state = self.state();
        let server = state.link.server().ok_or_else(Failure::not_running)?;
        ask(&server, &mut state)
    }

    /// Returns whether there is a server.
    pub(crate) fn is_started(&self) -> bool {
        self.look();
        self.state().link.server().is_some()
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

    fn look(&mut self) -> Vec<ServiceEvent> {
        let mut events = Vec::new();
        let News { is_lost, is_new, other_release } = self.link.look(&self.parameters.server());
        if is_lost {
            self.follower = GraphFollower::default();
            // Devices end with their server.
            self.slaves.clear();
            events.extend(self.graph.update(Graph::default()).into_iter().map(ServiceEvent::Graph));
            events.push(ServiceEvent::Stopped);
        }
        if is_new {
            self.forgotten_xruns = 0;
            events.push(ServiceEvent::Started);
        }
        events.extend(other_release.map(ServiceEvent::OtherRelease));
        if let Some(server) = self.link.server()
            && let Some(graph) = self.follower.poll(server.registry())
        {
            events.extend(self.graph.update(graph).into_iter().map(ServiceEvent::Graph));
        }
        events
    }
}
