//! Finding ports.

use std::ffi::{CStr, c_char, c_ulong};
use std::ptr::null;

use client::{PortInfo, Session};

use crate::clients::ClientHandle;
use crate::convert::{text, type_name};
use crate::messages;
use crate::pattern::Pattern;
use crate::ports::PortHandle;

/// Returns the port with this full name or alias; null if there is none.
///
/// # Safety
/// `name` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_port_by_name(
    client: ClientHandle,
    name: *const c_char,
) -> PortHandle {
    // SAFETY: the caller's promise.
    let Some((client, name)) = client.pin().zip(unsafe { text(name) }) else {
        return PortHandle::NONE;
    };
    find(&client.session, name).map_or(PortHandle::NONE, |id| PortHandle::new(&client, id))
}

/// Returns the id of the port with this full name or alias. As in JACK2, `ALSA:capture…` and
/// `ALSA:playback…` mean `alsa_pcm:…`.
pub(crate) fn find(session: &Session, name: &str) -> Option<u32> {
    let registry = session.registry();
    match name
        .strip_prefix("ALSA:")
        .filter(|rest| rest.starts_with("capture") || rest.starts_with("playback"))
    {
        Some(rest) => registry.port_by_name(&format!("alsa_pcm:{rest}")),
        None => registry.port_by_name(name),
    }
}

/// Returns the port with an id that a callback was given, even if it is gone; null if there never
/// was one. Thread: any.
#[unsafe(no_mangle)]
pub extern "C" fn jack_port_by_id(client: ClientHandle, id: u32) -> PortHandle {
    let Some(client) = client.pin() else { return PortHandle::NONE };
    let known = client.session.registry().port_name_ptr(id).is_some();
    if known { PortHandle::new(&client, id) } else { PortHandle::NONE }
}

/// Returns the names of the ports whose name and type match and that have all of `flags`, sorted by
/// id and terminated by null. Null if there are none, or if a pattern is not an extended regular
/// expression. Freed with `jack_free`.
///
/// # Safety
/// Both patterns are null or C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_get_ports(
    client: ClientHandle,
    name_pattern: *const c_char,
    type_pattern: *const c_char,
    flags: c_ulong,
) -> *const *const c_char {
    let Some(client) = client.pin() else { return null() };
    // SAFETY: the caller's promise.
    let patterns = unsafe { [pattern(name_pattern), pattern(type_pattern)] };
    let [Some(name), Some(port_type)] = patterns else {
        messages::error(format_args!(
            "jack_get_ports: a pattern is not an extended regular expression (regex(7))"
        ));
        return null();
    };
    let matches = |port: &PortInfo| {
        c_ulong::from(port.flags) & flags == flags
            && name.matches_text(&port.name)
            && port_type.matches(type_name(port.port_type))
    };
    let found = client.session.registry().ports().filter(matches).map(|port| port.id);
    names(&client.session, found)
}

/// Returns a pattern from the program; null matches everything.
///
/// # Safety
/// `pattern` is null or a C string.
unsafe fn pattern(pattern: *const c_char) -> Option<Pattern> {
    // SAFETY: not null, so the caller has promised a C string.
    Pattern::new(if pattern.is_null() { c"" } else { unsafe { CStr::from_ptr(pattern) } })
}

/// Returns an array from `malloc` of the ports' names, which belong to the registry, terminated by
/// null; null if there are none.
pub(crate) fn names(
    session: &Session,
    ports: impl IntoIterator<Item = u32>,
) -> *const *const c_char {
    let registry = session.registry();
    let mut names: Vec<*const c_char> =
        ports.into_iter().filter_map(|id| Some(registry.port_name_ptr(id)?.cast())).collect();
    if names.is_empty() {
        return null();
    }
    names.push(null());
    // SAFETY: any size may be asked for.
    let array = unsafe { libc::malloc(size_of_val(names.as_slice())) }.cast::<*const c_char>();
    if !array.is_null() {
        // SAFETY: fresh, aligned for pointers, and of the size of what is copied.
        unsafe { array.copy_from_nonoverlapping(names.as_ptr(), names.len()) };
    }
    array
}
