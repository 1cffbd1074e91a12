//! Answers to HTTP requests.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::time::Duration;

use http_body_util::channel::{Channel, Sender};
use http_body_util::{BodyExt, Either, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION,
    REFERRER_POLICY, SET_COOKIE, X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Request, Response, StatusCode};
use serde_json::json;
use tokio::sync::{oneshot, watch};

use crate::access::{self, COOKIE_NAME, Refusal, Token};
use crate::assets::asset;
use crate::commands::{Command, Failure};
use crate::gather::{GathererMessage, Snapshot};
use crate::metrics;
use crate::states::{STATE_BYTES, States, Turn};

/// Limit of a command's body: two port names, with every character escaped.
const COMMAND_BYTES: usize = 16 * 1024;
/// Time limit to receive a command and to answer it: longer than any wait for the server.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(15);
/// Nothing from other origins, no frames, no scripts but ours.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";

/// A complete body, or a stream that continues.
pub(crate) type Body = Either<Full<Bytes>, Channel<Bytes>>;

/// State shared by all connections.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    pub(crate) token: Arc<Option<Token>>,
    pub(crate) seen: watch::Sender<Snapshot>,
    pub(crate) asking: SyncSender<GathererMessage>,
    pub(crate) states: States,
}

impl Context {
    /// Answers a request.
    pub(crate) async fn answer(
        self,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, Infallible> {
        let token = self.token.as_ref().as_ref();
        let (method, uri) = (request.method(), request.uri());
        let mut response = match access::check(method, uri, request.headers(), token) {
            Err(Refusal { status, reason }) => whole(status, TEXT, format!("{reason}\n")),
            Ok(()) => match (method.as_str(), uri.path()) {
                ("GET", "/") if access::offered_in(uri).is_some() => with_cookie(token),
                ("GET", "/events") => self.events(),
                ("GET", "/metrics") => self.metrics().await,
                ("POST", "/order") => self.command(request).await,
                ("GET", "/state") => self.save().await,
                ("POST", "/state") => self.restore(request).await,
                ("GET" | "HEAD", path) if asset(path).is_some() => page(path),
                (_, path) => nothing_at(path),
            },
        };
        let headers = response.headers_mut();
        for (name, value) in [
            (CONTENT_SECURITY_POLICY, POLICY),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (REFERRER_POLICY, "no-referrer"),
            (CACHE_CONTROL, "no-store"),
            (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        Ok(response)
    }

    /// Streams the server's state. A slow browser gets the newest state, not every one.
    fn events(&self) -> Response<Body> {
        let (sender, channel) = Channel::new(1);
        tokio::spawn(send_events(self.seen.subscribe(), sender));
        let mut response = Response::new(Either::Right(channel));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        response
    }

    async fn metrics(&self) -> Response<Body> {
        let (to, answer) = oneshot::channel();
        match self.ask(GathererMessage::Metrics(to), answer).await {
            Some(text) => whole(StatusCode::OK, metrics::CONTENT_TYPE, text),
            None => {
                whole(StatusCode::SERVICE_UNAVAILABLE, TEXT, "the server does not answer\n".into())
            }
        }
    }

    async fn command(&self, request: Request<Incoming>) -> Response<Body> {
        let body = match collect(request.into_body(), COMMAND_BYTES).await {
            Ok(body) => body,
            Err(BodyError { status, reason }) => {
                return error_answer(status, &format!("the command {reason}"));
            }
        };
        let command: Command = match serde_json::from_slice(&body) {
            Ok(command) => command,
            Err(error) => {
                return error_answer(
                    StatusCode::BAD_REQUEST,
                    &format!("that is not a command: {error}"),
                );
            }
        };
        let (to, answer) = oneshot::channel();
        match self.ask(GathererMessage::Command(command, to), answer).await {
            Some(Ok(())) => whole(StatusCode::OK, JSON, "{}".into()),
            Some(Err(failure)) => failed(&failure),
            None => error_answer(
                StatusCode::SERVICE_UNAVAILABLE,
                "too many commands at once, or the server does not respond",
            ),
        }
    }

    /// Returns the server's state as `consort save` writes it.
    async fn save(&self) -> Response<Body> {
        let Some(turn) = self.turn().await else { return other_state() };
        match turn.save().await {
            Ok(text) => whole(StatusCode::OK, JSON, text),
            Err(failure) => failed(&failure),
        }
    }

    /// Restores a state. Returns what could not be restored, as `consort restore` prints it.
    async fn restore(&self, request: Request<Incoming>) -> Response<Body> {
        // Awaited before the body is read: only one body of this size is held at a time.
        let Some(turn) = self.turn().await else { return other_state() };
        let text = match collect(request.into_body(), STATE_BYTES).await {
            Ok(text) => text,
            Err(BodyError { status, reason }) => {
                return error_answer(status, &format!("the state {reason}"));
            }
        };
        match turn.restore(text).await {
            Ok(failures) => {
                whole(StatusCode::OK, JSON, json!({ "not_restored": failures }).to_string())
            }
            Err(failure) => failed(&failure),
        }
    }

    async fn turn(&self) -> Option<Turn> {
        tokio::time::timeout(COMMAND_TIMEOUT, self.states.turn()).await.ok()?
    }

    async fn ask<T>(&self, asked: GathererMessage, answer: oneshot::Receiver<T>) -> Option<T> {
        match self.asking.try_send(asked) {
            Ok(()) => tokio::time::timeout(COMMAND_TIMEOUT, answer).await.ok()?.ok(),
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => None,
        }
    }
}

/// Why a request's body was not read.
struct BodyError {
    status: StatusCode,
    reason: String,
}

/// Reads a request's body. If it is too long, the rest is read and dropped, because closing a
/// connection with unread data would discard the answer.
async fn collect(mut body: Incoming, most: usize) -> Result<Vec<u8>, BodyError> {
    let error = |status, reason: &str| BodyError { status, reason: reason.to_owned() };
    let reading = async {
        let (mut content, mut length) = (Vec::new(), 0_usize);
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| error(StatusCode::BAD_REQUEST, "was cut off"))?;
            let Ok(data) = frame.into_data() else { continue };
            length = length.saturating_add(data.len());
            if length <= most { content.extend_from_slice(&data) } else { content = Vec::new() }
        }
        // MUTATION: collect.any_length
        if length > most {
            return Err(error(
                StatusCode::PAYLOAD_TOO_LARGE,
                &format!("has more than {most} bytes"),
            ));
        }
        Ok(content)
    };
    let read = tokio::time::timeout(COMMAND_TIMEOUT, reading).await;
    read.unwrap_or_else(|_| Err(error(StatusCode::REQUEST_TIMEOUT, "did not arrive in time")))
}

async fn send_events(mut seen: watch::Receiver<Snapshot>, mut to: Sender<Bytes>) {
    let (mut graph, mut streams, mut xruns) = (0, 0, 0);
    while seen.changed().await.is_ok() {
        let now = seen.borrow_and_update().clone();
        let mut parts = Vec::new();
        if now.graph.0 != graph {
            graph = now.graph.0;
            parts.push(now.graph.1);
        }
        if now.streams.0 != streams {
            streams = now.streams.0;
            parts.push(now.streams.1);
        }
        if now.xruns.0 != xruns {
            xruns = now.xruns.0;
            parts.push(now.xruns.1);
        }
        parts.push(now.live);
        for part in parts {
            // The browser has gone.
            let Ok(()) = to.send_data(part).await else { return };
        }
    }
}

fn whole(status: StatusCode, kind: &'static str, content: String) -> Response<Body> {
    let mut response = Response::new(Either::Left(Full::new(Bytes::from(content))));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

fn error_answer(status: StatusCode, error: &str) -> Response<Body> {
    whole(status, JSON, json!({ "error": error }).to_string())
}

fn failed(failure: &Failure) -> Response<Body> {
    match failure {
        Failure::Wrong(reason) => error_answer(StatusCode::BAD_REQUEST, reason),
        Failure::Refused(reason) => error_answer(StatusCode::CONFLICT, reason),
        Failure::NoServer(reason) => error_answer(StatusCode::SERVICE_UNAVAILABLE, reason),
    }
}

fn other_state() -> Response<Body> {
    error_answer(
        StatusCode::SERVICE_UNAVAILABLE,
        "another browser saves or restores a state: try again",
    )
}

fn page(path: &str) -> Response<Body> {
    let (kind, content) = asset(path).unwrap_or((TEXT, ""));
    let mut response =
        Response::new(Either::Left(Full::new(Bytes::from_static(content.as_bytes()))));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

fn nothing_at(path: &str) -> Response<Body> {
    let allowed = match path {
        "/events" | "/metrics" => Some("GET"),
        "/order" => Some("POST"),
        "/state" => Some("GET, POST"),
        path => asset(path).map(|_| "GET, HEAD"),
    };
    let Some(allowed) = allowed else {
        return whole(StatusCode::NOT_FOUND, TEXT, "there is no such page\n".into());
    };
    let mut response =
        whole(StatusCode::METHOD_NOT_ALLOWED, TEXT, format!("only {allowed} here\n"));
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    response
}

/// Moves the token from the URL, where it would be visible and stored in the history, into a
/// cookie.
fn with_cookie(token: Option<&Token>) -> Response<Body> {
    let mut response = whole(StatusCode::SEE_OTHER, TEXT, String::new());
    let headers = response.headers_mut();
    headers.insert(LOCATION, HeaderValue::from_static("/"));
    let cookie = token.map(|token| {
        format!("{COOKIE_NAME}={}; HttpOnly; SameSite=Strict; Path=/", token.as_str())
    });
    if let Some(Ok(cookie)) = cookie.map(HeaderValue::try_from) {
        headers.insert(SET_COOKIE, cookie);
    }
    response
}
