//! What is answered to a request.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::time::Duration;

use http_body_util::channel::{Channel, Sender};
use http_body_util::{BodyExt, Either, Full, Limited};
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
use crate::gather::{Asked, Failure, Order, Seen};
use crate::metrics;

/// Bytes of an order: two names of ports, every letter of them written as an escape.
const ORDER_BYTES: usize = 16 * 1024;
/// How long an order may take to arrive, and to be answered: longer than any wait for the server.
const PATIENCE: Duration = Duration::from_secs(15);
/// Nothing from elsewhere, nothing in a frame, no script but ours.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";

/// A whole answer, or a stream that goes on.
pub(crate) type Body = Either<Full<Bytes>, Channel<Bytes>>;

/// What all connections share.
#[derive(Debug, Clone)]
pub(crate) struct Desk {
    pub(crate) token: Arc<Option<Token>>,
    pub(crate) seen: watch::Sender<Seen>,
    pub(crate) asking: SyncSender<Asked>,
}

impl Desk {
    /// The answer.
    pub(crate) async fn answer(self, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
        let token = self.token.as_ref().as_ref();
        let (method, uri) = (request.method(), request.uri());
        let mut response = match access::check(method, uri, request.headers(), token) {
            Err(Refusal { status, reason }) => whole(status, TEXT, format!("{reason}\n")),
            Ok(()) => match (method.as_str(), uri.path()) {
                ("GET", "/") if access::offered_in(uri).is_some() => with_cookie(token),
                ("GET", "/events") => self.events(),
                ("GET", "/metrics") => self.metrics().await,
                ("POST", "/order") => self.order(request).await,
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

    /// The stream of what is to be seen. A browser that reads slowly gets the newest, not all.
    fn events(&self) -> Response<Body> {
        let (sender, channel) = Channel::new(1);
        tokio::spawn(send_events(self.seen.subscribe(), sender));
        let mut response = Response::new(Either::Right(channel));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        response
    }

    async fn metrics(&self) -> Response<Body> {
        let (to, answer) = oneshot::channel();
        match self.ask(Asked::Metrics(to), answer).await {
            Some(text) => whole(StatusCode::OK, metrics::CONTENT_TYPE, text),
            None => whole(StatusCode::SERVICE_UNAVAILABLE, TEXT, "the server does not answer\n".into()),
        }
    }

    async fn order(&self, request: Request<Incoming>) -> Response<Body> {
        let body = Limited::new(request.into_body(), ORDER_BYTES).collect();
        let Ok(body) = tokio::time::timeout(PATIENCE, body).await else {
            return said(StatusCode::REQUEST_TIMEOUT, "the order did not arrive");
        };
        let Ok(body) = body else {
            return said(StatusCode::PAYLOAD_TOO_LARGE, "the order is too long, or was cut off");
        };
        let order: Order = match serde_json::from_slice(&body.to_bytes()) {
            Ok(order) => order,
            Err(error) => return said(StatusCode::BAD_REQUEST, &format!("that is no order: {error}")),
        };
        let (to, answer) = oneshot::channel();
        match self.ask(Asked::Order(order, to), answer).await {
            Some(Ok(())) => whole(StatusCode::OK, JSON, "{}".into()),
            Some(Err(Failure::Refused(reason))) => said(StatusCode::CONFLICT, &reason),
            Some(Err(Failure::NoServer(reason))) => said(StatusCode::SERVICE_UNAVAILABLE, &reason),
            None => said(
                StatusCode::SERVICE_UNAVAILABLE,
                "too many orders at once, or the server does not answer",
            ),
        }
    }

    async fn ask<T>(&self, asked: Asked, answer: oneshot::Receiver<T>) -> Option<T> {
        match self.asking.try_send(asked) {
            Ok(()) => tokio::time::timeout(PATIENCE, answer).await.ok()?.ok(),
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => None,
        }
    }
}

async fn send_events(mut seen: watch::Receiver<Seen>, mut to: Sender<Bytes>) {
    let (mut graph, mut xruns) = (0, 0);
    while seen.changed().await.is_ok() {
        let now = seen.borrow_and_update().clone();
        let mut parts = Vec::new();
        if now.graph.0 != graph {
            graph = now.graph.0;
            parts.push(now.graph.1);
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

fn said(status: StatusCode, error: &str) -> Response<Body> {
    whole(status, JSON, json!({ "error": error }).to_string())
}

fn page(path: &str) -> Response<Body> {
    let (kind, content) = asset(path).unwrap_or((TEXT, ""));
    let mut response = Response::new(Either::Left(Full::new(Bytes::from_static(content.as_bytes()))));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

fn nothing_at(path: &str) -> Response<Body> {
    let allowed = match path {
        "/events" | "/metrics" => Some("GET"),
        "/order" => Some("POST"),
        path => asset(path).map(|_| "GET, HEAD"),
    };
    let Some(allowed) = allowed else {
        return whole(StatusCode::NOT_FOUND, TEXT, "there is no such page\n".into());
    };
    let mut response = whole(StatusCode::METHOD_NOT_ALLOWED, TEXT, format!("only {allowed} here\n"));
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    response
}

/// The token goes from the address, where it would be seen and remembered, into a cookie.
fn with_cookie(token: Option<&Token>) -> Response<Body> {
    let mut response = whole(StatusCode::SEE_OTHER, TEXT, String::new());
    let headers = response.headers_mut();
    headers.insert(LOCATION, HeaderValue::from_static("/"));
    let cookie =
        token.map(|token| format!("{COOKIE_NAME}={}; HttpOnly; SameSite=Strict; Path=/", token.as_str()));
    if let Some(Ok(cookie)) = cookie.map(HeaderValue::try_from) {
        headers.insert(SET_COOKIE, cookie);
    }
    response
}
