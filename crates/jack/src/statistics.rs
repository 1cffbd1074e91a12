//! Load and delays. The getters may be called from any thread.

use client::{Request, Requester};

use crate::clients::ClientHandle;
use crate::convert::request;

/// Returns the delays of the last and of the worst xrun, in µs.
fn delays_us(client: ClientHandle) -> (u32, u32) {
    let client = client.pin();
    client
        .as_ref()
        .and_then(|client| client.session.engine())
        .map_or((0, 0), |engine| engine.delays_us())
}

/// Returns the delay of the last xrun, in µs. Thread: any.
#[unsafe(no_mangle)]
pub extern "C" fn jack_get_xrun_delayed_usecs(client: ClientHandle) -> f32 {
    delays_us(client).0 as f32
}

/// Returns the longest delay since the server's start or the last reset, in µs. Thread: any.
#[unsafe(no_mangle)]
pub extern "C" fn jack_get_max_delayed_usecs(client: ClientHandle) -> f32 {
    delays_us(client).1 as f32
}

/// Resets the longest delay, for all clients.
#[unsafe(no_mangle)]
pub extern "C" fn jack_reset_max_delayed_usecs(client: ClientHandle) {
    // The C function has no result; the message reports a failure.
    let _ = request(client, |client| client.session.request(Request::ResetMaxDelay));
}

/// Returns the part of the quantum's time that the graph takes, in percent; 0 if the client is not
/// open. Thread: any.
#[unsafe(no_mangle)]
pub extern "C" fn jack_cpu_load(client: ClientHandle) -> f32 {
    let client = client.pin();
    let engine = client.as_ref().and_then(|client| client.session.engine());
    engine.map_or(0.0, |engine| (engine.load_ppm() as f32 / 10_000.0).clamp(0.0, 100.0))
}
