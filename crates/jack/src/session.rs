//! The session interface: a session manager asks other programs to save and learns how to start
//! them again.

use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;

use client::{Error, NotificationCallback, Requester, SessionAnswer, SessionEvent, SessionKind};

use crate::callbacks::Context;
use crate::clients::ClientHandle;
use crate::convert::{FAILED, allocated, answer, array, complain, refuse, request, text};
use crate::uuid;

/// `jack_session_event_t`.
#[derive(Debug)]
#[repr(C)]
pub struct Event {
    /// The kind of save.
    pub event_type: u32,
    /// From `malloc`.
    pub session_dir: *mut c_char,
    /// From `malloc`.
    pub client_uuid: *mut c_char,
    /// From `malloc`, by the program.
    pub command_line: *mut c_char,
    /// The program's answer.
    pub flags: u32,
    /// Always 0.
    pub future: u32,
}

/// `jack_session_command_t`.
#[derive(Debug)]
#[repr(C)]
pub struct Command {
    /// From `malloc`; null terminates a list.
    pub uuid: *mut c_char,
    /// From `malloc`.
    pub client_name: *mut c_char,
    /// From `malloc`.
    pub command: *mut c_char,
    /// The client's answer.
    pub flags: u32,
}

/// `JackSessionCallback`.
pub type SessionCallback = unsafe extern "C" fn(*mut Event, *mut c_void);

/// Sets the callback for a session being saved, on the notification thread. The program owns the
/// event, answers it with [`jack_session_reply`] and frees it with [`jack_session_event_free`].
#[unsafe(no_mangle)]
pub extern "C" fn jack_set_session_callback(
    client: ClientHandle,
    callback: Option<SessionCallback>,
    argument: *mut c_void,
) -> c_int {
    let context = Context(argument);
    request(client, |client| {
        let uuid = client.session.uuid();
        client.session.configure(|callbacks| {
            callbacks.session = callback.map(|callback| {
                client::callback(move |asked: SessionEvent| {
                    // SAFETY: the program's callback; the event and its texts are from malloc, and
                    // the program owns them from here on.
                    unsafe { callback(event(&asked, uuid), context.pointer()) };
                }) as NotificationCallback<SessionEvent>
            });
        })
    })
}

fn event(asked: &SessionEvent, uuid: uuid::Uuid) -> *mut Event {
    let event = Event {
        event_type: match asked.kind {
            SessionKind::Save => 1,
            SessionKind::SaveAndQuit => 2,
            SessionKind::SaveTemplate => 3,
        },
        session_dir: allocated(&asked.directory.to_string_lossy()),
        client_uuid: allocated(&uuid.to_string()),
        command_line: null_mut(),
        flags: 0,
        future: 0,
    };
    // SAFETY: any size may be asked for.
    let place = unsafe { libc::malloc(size_of::<Event>()) }.cast::<Event>();
    if !place.is_null() {
        // SAFETY: fresh memory of this size, aligned for every type of C.
        unsafe { place.write(event) };
    }
    place
}

/// Sends the answer in the event, once. Returns 0, or -1 (no question is pending, or the command is
/// longer than 2 KiB).
///
/// # Safety
/// `event` is null or an event of a session callback.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_session_reply(client: ClientHandle, event: *mut Event) -> c_int {
    // SAFETY: the caller's promise.
    let Some((client, event)) = client.pin().zip(unsafe { event.as_ref() }) else {
        return refuse("a session reply needs an open client and an event");
    };
    // SAFETY: the caller's promise: the command is null or a C string.
    let command = unsafe { text(event.command_line) };
    let unreadable = command.is_none() && !event.command_line.is_null();
    let answer =
        SessionAnswer { flags: event.flags, command: command.unwrap_or_default().to_owned() };
    if !unreadable && client.session.answer_session(answer) {
        0
    } else {
        refuse(
            "the session reply was not sent: nothing was asked, or the command is not UTF-8 or longer than 2 KiB",
        )
    }
}

/// Frees an event with its texts.
///
/// # Safety
/// `event` is null or an event from `malloc` whose texts are from `malloc` or null; no other code
/// uses them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_session_event_free(event: *mut Event) {
    // SAFETY: the caller's promise.
    unsafe {
        let Some(content) = event.as_ref() else { return };
        for text in [content.session_dir, content.client_uuid, content.command_line] {
            libc::free(text.cast());
        }
        libc::free(event.cast());
    }
}

/// Asks the client `target`, or every client with a session callback if it is null, to save in a
/// separate directory below `path` (null: the working directory), and waits at most 30 s. Returns
/// the answers, freed with [`jack_session_commands_free`]; the last has a null uuid. Returns null,
/// with a message, on failure.
///
/// # Safety
/// `target` and `path` are null or C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_session_notify(
    client: ClientHandle,
    target: *const c_char,
    event_type: u32,
    path: *const c_char,
) -> *mut Command {
    let kind = match event_type {
        1 => Some(SessionKind::Save),
        2 => Some(SessionKind::SaveAndQuit),
        3 => Some(SessionKind::SaveTemplate),
        _ => None,
    };
    // SAFETY: the caller's promise.
    let (name, given_path) = unsafe { (text(target), text(path)) };
    // Debian's jack_session_notify passes null when it asks programs to quit.
    let path = if path.is_null() { Some(".") } else { given_path };
    let (Some(kind), Some(path), true) = (kind, path, name.is_some() || target.is_null()) else {
        refuse("jack_session_notify: no such type, or a text is missing or not UTF-8");
        return null_mut();
    };
    // The other clients may have other working directories.
    let absolute =
        std::path::absolute(path).ok().and_then(|path| path.into_os_string().into_string().ok());
    let path = absolute.unwrap_or_default();
    let answers = client.pin().ok_or(Error::Closed);
    match answers.and_then(|client| client.session.notify_session(name, kind, &path)) {
        Ok(answers) => commands(&answers),
        Err(error) => {
            complain(&error);
            null_mut()
        }
    }
}

fn commands(answers: &[client::SessionCommand]) -> *mut Command {
    let copy = |answer: &client::SessionCommand| Command {
        uuid: allocated(&answer.uuid.to_string()),
        client_name: allocated(&answer.client),
        command: allocated(&answer.answer.command),
        flags: answer.answer.flags,
    };
    let end = Command { uuid: null_mut(), client_name: null_mut(), command: null_mut(), flags: 0 };
    array(answers.iter().map(copy).chain([end]).collect())
}

/// Frees a list of answers.
///
/// # Safety
/// `commands` is null or an array from `malloc` that ends with a null uuid; its texts are from
/// `malloc` or null. No other code uses them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_session_commands_free(commands: *mut Command) {
    if commands.is_null() {
        return;
    }
    // SAFETY: the caller's promise: each element up to the last may be read, and its texts
    // released.
    unsafe {
        let mut command = commands;
        while !(*command).uuid.is_null() {
            for text in [(*command).uuid, (*command).client_name, (*command).command] {
                libc::free(text.cast());
            }
            command = command.add(1);
        }
        libc::free(commands.cast());
    }
}

/// Reserves a name for the client that opens with this session uuid. Returns 0, or -1 if it is
/// taken.
///
/// # Safety
/// The texts are null or C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_reserve_client_name(
    client: ClientHandle,
    name: *const c_char,
    uuid: *const c_char,
) -> c_int {
    // SAFETY: the caller's promise.
    let (name, uuid) = unsafe { (text(name), text(uuid)) };
    let Some((name, uuid)) = name.zip(uuid.and_then(|uuid| uuid::parse(uuid.as_bytes()))) else {
        return refuse("jack_reserve_client_name: no name, or no uuid");
    };
    request(client, |client| client.session.reserve_name(name, uuid))
}

/// Returns 1 if the client with this name is active and has a session callback, 0 if not, -1 if
/// there is no such client.
///
/// # Safety
/// `name` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_client_has_session_callback(
    client: ClientHandle,
    name: *const c_char,
) -> c_int {
    // SAFETY: the caller's promise.
    let Some((client, name)) = client.pin().zip(unsafe { text(name) }) else { return FAILED };
    match client.session.has_session_callback(name) {
        Ok(has_callback) => c_int::from(has_callback),
        Err(error) => answer(Err(error)),
    }
}
