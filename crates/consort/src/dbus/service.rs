//! What the interfaces of the service share: the server, how it is started, and its graph.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use client::Observer;

use super::failure::{Answer, Failure};
use super::graph::{Graph, Picture, Told};
use super::parameters::Parameters;
use super::server_process::ServerProcess;
use super::settings::Settings;

/// What is to be said on the bus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum News {
    Started,
    Stopped,
    Graph(Told),
    /// A session is saved, or is no more: see [`State::saving`].
    Session(u32, String),
    /// The service is to end.
    Exit,
}

/// The service.
#[derive(Debug)]
pub(super) struct Service {
    state: Mutex<State>,
    news: Mutex<Sender<News>>,
}

/// Everything that changes.
#[derive(Debug)]
pub(super) struct State {
    pub(super) parameters: Parameters,
    settings: Settings,
    pub(super) graph: Graph,
    /// Xruns of the server that are not counted any more.
    pub(super) forgotten_xruns: u32,
    /// Kind and target of the session that is being saved; 0 and nothing: none is.
    pub(super) saving: (u32, String),
    server: Option<Observer>,
    /// The registry's count of changes when it was read last.
    seen: Option<u64>,
    /// A server that was started here, as long as it runs.
    process: Option<ServerProcess>,
    /// Slave drivers whose devices were added to the server: the driver's name and the client's, the oldest first.
    pub(super) slaves: Vec<(String, String)>,
}

/// How long a server may take to start, and to stop.
const PATIENCE: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(10);

impl Service {
    /// A service with the user's settings, that has looked at nothing, and where its news comes.
    pub(super) fn new(server: &str) -> (Self, Receiver<News>) {
        let (news, told) = channel();
        let mut parameters = Parameters::new(server);
        let settings = Settings::read(&mut parameters);
        let state = State {
            parameters,
            settings,
            graph: Graph::default(),
            forgotten_xruns: 0,
            saving: (0, String::new()),
            server: None,
            seen: None,
            process: None,
            slaves: Vec::new(),
        };
        (Self { state: Mutex::new(state), news: Mutex::new(news) }, told)
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn tell(&self, news: News) {
        // Fails only if the service has ended.
        let _ = self.news.lock().unwrap_or_else(PoisonError::into_inner).send(news);
    }

    /// See [`State::saving`].
    pub(super) fn note_session(&self, kind: u32, target: &str) {
        self.state().saving = (kind, target.to_owned());
        self.tell(News::Session(kind, target.to_owned()));
    }

    /// Looks at the server: whether there is one, and whether its graph has changed. `thoroughly`: also whether it still
    /// answers, if it has not said that it stops.
    pub(super) fn look(&self, thoroughly: bool) {
        let news = self.state().look(thoroughly);
        news.into_iter().for_each(|news| self.tell(news));
    }

    /// Asks the server, and fails if there is none.
    pub(super) fn with_server<T>(&self, ask: impl FnOnce(&Observer, &mut State) -> Answer<T>) -> Answer<T> {
        self.look(false);
        let mut state = self.state();
        let server = state.server.take().ok_or_else(Failure::not_running)?;
        let answer = ask(&server, &mut state);
        state.server = Some(server);
        answer
    }

    /// Whether there is a server.
    pub(super) fn is_started(&self) -> bool {
        self.look(true);
        self.state().server.is_some()
    }

    /// Starts a server, if there is none, and waits until programs can connect.
    pub(super) fn start(&self) -> Answer<()> {
        if self.is_started() {
            return Ok(());
        }
        let (words, slaves) = {
            let parameters = &self.state().parameters;
            // Those that cannot be have nothing start.
            let devices: Answer<Vec<_>> =
                parameters.slaves().into_iter().map(|name| Ok((parameters.slave(&name)?, name))).collect();
            (parameters.words(), devices?)
        };
        let process = ServerProcess::start(&words)
            .map_err(|error| Failure::Generic(format!("the server cannot be started: {error}")))?;
        self.state().process = Some(process);
        self.wait("start", |service| {
            if service.is_started() {
                return Some(Ok(()));
            }
            let mut state = service.state();
            let process = state.process.as_mut()?;
            let ended = process.has_ended();
            ended
                .then(|| Err(Failure::Generic(format!("the server did not start: {}", process.last_words()))))
        })?;
        for (device, name) in slaves {
            if let Err(failure) = self.join(&name, &device) {
                self.stop_own();
                return Err(failure);
            }
        }
        Ok(())
    }

    /// Stops the server, if there is one, and waits until it has ended.
    pub(super) fn stop(&self) -> Answer<()> {
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

    /// Stops the server if it was started here.
    pub(super) fn stop_own(&self) {
        let runs = self.state().process.as_mut().is_some_and(|process| !process.has_ended());
        if runs && let Err(error) = self.stop() {
            eprintln!("consort: {error}");
        }
    }

    fn wait(&self, what: &str, mut done: impl FnMut(&Self) -> Option<Answer<()>>) -> Answer<()> {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(answer) = done(self) {
                return answer;
            }
            if Instant::now() > end {
                let seconds = PATIENCE.as_secs();
                return Err(Failure::Generic(format!("the server did not {what} within {seconds} s")));
            }
            std::thread::sleep(LOOK);
        }
    }
}

impl State {
    /// Changes parameters, and has what was changed outlive the service.
    pub(super) fn configure<T>(&mut self, change: impl FnOnce(&mut Parameters) -> T) -> T {
        let answer = change(&mut self.parameters);
        self.settings.write(&self.parameters);
        answer
    }

    fn look(&mut self, thoroughly: bool) -> Vec<News> {
        let mut news = Vec::new();
        let name = self.parameters.server();
        let is_lost = self.server.as_ref().is_some_and(|server| {
            let silent = || matches!(server.status(), Err(client::Error::ServerGone));
            server.engine().has_stopped() || server.server_name() != name || (thoroughly && silent())
        });
        if is_lost {
            (self.server, self.seen) = (None, None);
            // Devices end with their server.
            self.slaves.clear();
            news.extend(self.graph.become_like(Picture::default()).into_iter().map(News::Graph));
            news.push(News::Stopped);
        }
        if self.server.is_none()
            && let Ok(server) = Observer::open(Some(&name))
            && !server.engine().has_stopped()
        {
            self.forgotten_xruns = 0;
            self.server = Some(server);
            news.push(News::Started);
        }
        if let Some(server) = &self.server {
            // Before the registry is read: what changes meanwhile is seen the next time.
            let changes = server.registry().changes();
            if self.seen != Some(changes) {
                self.seen = Some(changes);
                let told = self.graph.become_like(Picture::of(server));
                news.extend(told.into_iter().map(News::Graph));
            }
        }
        news
    }
}
