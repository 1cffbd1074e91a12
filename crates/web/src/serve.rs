//! Connections: limits on their number and duration.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::access::Token;
use crate::answer::Context;
use crate::gather::{self, Snapshot};
use crate::peer;
use crate::served::Served;
use crate::states::States;

/// Maximum number of connections.
const CONNECTIONS: usize = 256;
/// Maximum number of refusals answered at the same time; more connections are closed without an
/// answer.
const REFUSALS: usize = 64;
/// Time limit for the head of a request.
const HEAD: Duration = Duration::from_secs(10);
/// Time limit for a browser to acknowledge sent data.
const SILENCE: Duration = Duration::from_secs(20);
/// Limit of data that waits to be sent to one browser, in bytes, in addition to the kernel's
/// buffers.
const BUFFER: usize = 64 * 1024;
/// Pause after a connection that could not be accepted for lack of descriptors, and time limit for
/// one that is refused.
const PAUSE: Duration = Duration::from_millis(100);
/// A refusal: HTTP status and message.
type Refusal = (&'static str, &'static str);
const FULL: Refusal = ("503 Service Unavailable", "too many browsers watch this server.\n");
const STRANGER: Refusal = (
    "403 Forbidden",
    "without a token this page is only for the user who runs it, and the kernel does not list this connection as that \
     user's: start it with --token-file, or a server with --web-token-file\n",
);

/// Serves the page of the server with this name until the process ends. Without a server, or
/// without the token that it needs for one, the page says so and waits for another.
///
/// # Errors
/// A thread cannot be started, or the listener cannot be registered for polling.
pub fn serve(listener: TcpListener, server: String, token: Option<Token>) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let seen = watch::Sender::new(Snapshot::default());
    let served = Served::of(&server, token.as_ref());
    let asking = gather::start(served.clone(), seen.clone())?;
    let context = Context { token: Arc::new(token), seen, asking, states: States::of(served) };
    runtime.block_on(async {
        listener.set_nonblocking(true)?;
        accept(tokio::net::TcpListener::from_std(listener)?, context).await
    })
}

async fn accept(listener: tokio::net::TcpListener, context: Context) -> io::Result<()> {
    // MUTATION: accept.connections_without_limit
    let (room, door) = (Arc::new(Semaphore::new(CONNECTIONS)), Arc::new(Semaphore::new(REFUSALS)));
    loop {
        let Ok((stream, peer)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let admitted = if context.token.is_some() || is_own(&stream, peer) {
            Arc::clone(&room).try_acquire_owned().map_err(|_| FULL)
        } else {
            Err(STRANGER)
        };
        match admitted {
            Ok(place) => {
                let context = context.clone();
                tokio::spawn(async move {
                    serve_connection(stream, context).await;
                    drop(place);
                });
            }
            Err(refusal) => {
                if let Ok(place) = Arc::clone(&door).try_acquire_owned() {
                    tokio::spawn(refuse(stream, refusal, place));
                }
            }
        }
    }
}

/// Returns whether the connection comes from a program of this user or of root.
fn is_own(stream: &TcpStream, peer: SocketAddr) -> bool {
    let Ok(local) = stream.local_addr() else { return false };
    // A connection that was reset has no peer any more, and another may have its addresses.
    peer::is_own(local, peer) && stream.peer_addr().is_ok()
}

/// Sends the reason for a refusal. Received data is read first, because closing a connection with
/// unread data would discard the answer.
async fn refuse(mut stream: TcpStream, (status, reason): Refusal, _place: OwnedSemaphorePermit) {
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{reason}",
        reason.len()
    );
    let refusing = async {
        stream.write_all(answer.as_bytes()).await?;
        stream.shutdown().await?;
        while stream.read(&mut [0; 1024]).await? > 0 {}
        io::Result::Ok(())
    };
    let _ = tokio::time::timeout(PAUSE, refusing).await;
}

async fn serve_connection(stream: TcpStream, context: Context) {
    // Without these options, a browser that disappears is noticed later.
    let _ = SockRef::from(&stream).set_tcp_user_timeout(Some(SILENCE));
    let _ = stream.set_nodelay(true);
    let service = service_fn(|request| context.clone().answer(request));
    let mut connection = http1::Builder::new();
    // A browser may close its sending side and still be answered.
    connection
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(BUFFER)
        .half_close(true);
    // hyper answers malformed requests; a browser that has gone needs no answer.
    let _ = connection.serve_connection(TokioIo::new(stream), service).await;
}
