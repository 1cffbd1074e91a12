//! Opening, activating and closing clients, and properties of their server.

use std::ffi::{CString, c_char, c_int};
use std::sync::Arc;

use client::{Error, OpenOptions, Request, RequestError, Requester, Session};

use crate::callbacks::Hooks;
use crate::clients::{self, ClientHandle, OpenClient};
use crate::convert::{answer, complain, request, store, text};
use crate::options::{self, Argument, option};
use crate::{messages, port, ports, uuid};

/// `enum JackStatus`.
pub mod status {
    /// Set whenever the call failed.
    pub const FAILURE: u32 = 0x01;
    /// An option that the call does not accept.
    pub const INVALID_OPTION: u32 = 0x02;
    /// The name was taken.
    pub const NAME_NOT_UNIQUE: u32 = 0x04;
    /// The call has started the server.
    pub const SERVER_STARTED: u32 = 0x08;
    /// No server responds.
    pub const SERVER_FAILED: u32 = 0x10;
    /// The communication with the server failed.
    pub const SERVER_ERROR: u32 = 0x20;
    /// There is no internal client with this name or handle.
    pub const NO_SUCH_CLIENT: u32 = 0x40;
    /// An internal client cannot be loaded.
    pub const LOAD_FAILURE: u32 = 0x80;
    /// An internal client refused to start.
    pub const INIT_FAILURE: u32 = 0x100;
    /// Shared memory cannot be mapped.
    pub const SHM_FAILURE: u32 = 0x200;
    /// Library and server are of different releases.
    pub const VERSION_ERROR: u32 = 0x400;
}

/// Opens a client. `server_name` and `session_id` are read only if `options` announce them; see
/// [`options`]. With a session id, the client gets the name that was reserved for it, if any.
///
/// # Safety
/// `name` is null or a C string, `status` null or writable, the announced arguments null or C
/// strings.
#[cfg_attr(not(target_arch = "x86"), unsafe(no_mangle))]
pub unsafe extern "C" fn jack_client_open(
    name: *const c_char,
    options: u32,
    status: *mut u32,
    server_name: Argument,
    session_id: Argument,
) -> ClientHandle {
    // SAFETY: the caller's promise.
    let (name, options) =
        unsafe { (text(name), options::OpenOptions::read(options, [server_name, session_id])) };
    let opened = match (name, options) {
        (_, Err(options::InvalidOption)) => {
            messages::error(format_args!("jack_client_open: unsupported option"));
            Err(status::FAILURE | status::INVALID_OPTION)
        }
        (None, _) => {
            messages::error(format_args!("a client's name must be given, in UTF-8"));
            Err(status::FAILURE)
        }
        (Some(name), Ok(options)) => open(name, &options),
    };
    let (handle, bits) = opened.unwrap_or_else(|bits| (ClientHandle::NONE, bits));
    // SAFETY: the caller's promise.
    unsafe { store(status, bits) };
    handle
}

/// Opens a client under exactly this name. A server is started only if `JACK_START_SERVER` is set.
///
/// # Safety
/// `name` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_client_new(name: *const c_char) -> ClientHandle {
    let start = std::env::var_os("JACK_START_SERVER").is_some();
    let options = option::USE_EXACT_NAME | if start { 0 } else { option::NO_START_SERVER };
    let nothing = std::ptr::null();
    // SAFETY: the caller's promise; no argument is announced.
    unsafe { jack_client_open(name, options, std::ptr::null_mut(), nothing, nothing) }
}

/// Returns a handle and status bits, or only status bits on failure.
fn open(name: &str, options: &options::OpenOptions<'_>) -> Result<(ClientHandle, u32), u32> {
    client::log::set_hook(|message| messages::info(format_args!("{message}")));
    let server = options.server_name.map(|name| name.to_string_lossy().into_owned());
    let wanted = OpenOptions {
        server: server.filter(|name| !name.is_empty()),
        exact_name: !options.may_change_name,
        session: options.session_id.and_then(|uuid| uuid::parse(uuid.to_bytes())),
        start_server: options.may_start_server,
    };
    let session = Session::open(name, &wanted).map_err(|error| {
        complain(&error);
        failure(&error)
    })?;
    let renamed = if session.name() == name { 0 } else { status::NAME_NOT_UNIQUE };
    let started = if session.started_server() { status::SERVER_STARTED } else { 0 };
    let handle = keep(session).ok_or(status::FAILURE)?;
    Ok((handle, renamed | started))
}

fn keep(session: Session) -> Option<ClientHandle> {
    let hooks = Arc::new(Hooks::default());
    session.configure(|callbacks| hooks.install(callbacks)).ok()?;
    port::prepare_scratch();
    let name = CString::new(session.name()).ok()?;
    let server = ports::server_number(&session)?;
    clients::insert(OpenClient { session, name, server, hooks })
}

/// Returns the status bits of a client that could not be opened.
fn failure(error: &Error) -> u32 {
    let reason = match error {
        Error::NoServer { .. } | Error::NotStarted { .. } => status::SERVER_FAILED,
        Error::Refused(RequestError::NameTaken(_)) => {
            status::NAME_NOT_UNIQUE | status::SERVER_ERROR
        }
        Error::Refused(RequestError::Version(_)) | Error::Hello(_) | Error::Protocol(_) => {
            status::VERSION_ERROR
        }
        Error::Memory(_) => status::SHM_FAILURE,
        Error::Name(_) => 0,
        _ => status::SERVER_ERROR,
    };
    status::FAILURE | reason
}

/// Closes a client. Returns 0, or -1 if it is not open.
#[unsafe(no_mangle)]
pub extern "C" fn jack_client_close(client: ClientHandle) -> c_int {
    if clients::close(client) { 0 } else { answer(Err(Error::Closed)) }
}

/// Joins the cycles. Returns 0 (also if it was active), or -1.
#[unsafe(no_mangle)]
pub extern "C" fn jack_activate(client: ClientHandle) -> c_int {
    request(client, |client| {
        if !client.session.is_active() {
            client.hooks.expect_process_thread();
        }
        client.session.activate()
    })
}

/// Leaves the cycles and removes all connections. Returns 0 (also if it was inactive), or -1.
#[unsafe(no_mangle)]
pub extern "C" fn jack_deactivate(client: ClientHandle) -> c_int {
    request(client, |client| client.session.deactivate())
}

/// Returns 1 while process threads are real-time, which they are not while freewheeling. Thread:
/// any.
#[unsafe(no_mangle)]
pub extern "C" fn jack_is_realtime(client: ClientHandle) -> c_int {
    c_int::from(client.pin().is_some_and(|client| client.session.is_realtime()))
}

/// Returns the sample rate in Hz; 0 if the client is not open. Thread: any.
#[unsafe(no_mangle)]
pub extern "C" fn jack_get_sample_rate(client: ClientHandle) -> u32 {
    client.pin().and_then(|client| client.session.info()).map_or(0, |info| info.sample_rate_hz)
}

/// Returns the quantum in frames; 0 if the client is not open. Thread: any.
#[unsafe(no_mangle)]
pub extern "C" fn jack_get_buffer_size(client: ClientHandle) -> u32 {
    client.pin().and_then(|client| client.session.info()).map_or(0, |info| info.quantum)
}

/// Changes the quantum for all clients. Returns 0, or -1.
#[unsafe(no_mangle)]
pub extern "C" fn jack_set_buffer_size(client: ClientHandle, frames: u32) -> c_int {
    request(client, |client| client.session.request(Request::SetQuantum { frames }))
}

/// Starts (not 0) or stops freewheeling, in which cycles follow each other as fast as the graph can
/// run. Returns 0, or -1, also if there is nothing to change.
#[unsafe(no_mangle)]
pub extern "C" fn jack_set_freewheel(client: ClientHandle, on: c_int) -> c_int {
    request(client, |client| client.session.set_freewheel(on != 0))
}
