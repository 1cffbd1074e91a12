//! The client's own ports, and queries about any port.

use std::ffi::{c_char, c_int, c_ulong, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};

use client::{Error, PortKind, PortType, Request, Requester};

use crate::clients::ClientHandle;
use crate::convert::{
    FAILED, MIDI_BUFFER_BYTES, NO_SUCH_PORT, answer, complain, port_type, refuse, request, text,
    type_name,
};
use crate::messages;
use crate::ports::{PinnedPort, PortHandle, note_owner};
use crate::uuid::{self, Uuid};

/// Size of the longest full port name in bytes, including the terminating 0. The program's buffers
/// for aliases have this size.
pub const NAME_BYTES: usize = 321;

/// Registers a port. Returns null, with a message, on failure. `buffer_size` is ignored: both types
/// have fixed sizes.
///
/// # Safety
/// `name` and `type_name` are null or C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_port_register(
    client: ClientHandle,
    name: *const c_char,
    type_name: *const c_char,
    flags: c_ulong,
    _buffer_size: c_ulong,
) -> PortHandle {
    // SAFETY: the caller's promise.
    let (name, port_type) = unsafe { (text(name), port_type(type_name)) };
    let (Some(name), Some(port_type), Ok(flags)) = (name, port_type, u32::try_from(flags)) else {
        messages::error(format_args!(
            "jack_port_register: no name, no such type, or no such flags"
        ));
        return PortHandle::NONE;
    };
    let Some(open) = client.pin() else {
        complain(&Error::Closed);
        return PortHandle::NONE;
    };
    match open.session.register_port(name, port_type, flags) {
        Ok(id) => {
            note_owner(&open, client, id);
            PortHandle::new(&open, id)
        }
        Err(error) => {
            complain(&error);
            PortHandle::NONE
        }
    }
}

/// Unregisters one of the client's ports. Returns 0, or -1.
#[unsafe(no_mangle)]
pub extern "C" fn jack_port_unregister(client: ClientHandle, port: PortHandle) -> c_int {
    // No port has id 0.
    request(client, |client| client.session.unregister_port(port.id_for(client).unwrap_or(0)))
}

const SCRATCH_FRAMES: usize = MIDI_BUFFER_BYTES / size_of::<f32>();

/// Memory of ports that were just unregistered: the process thread may still read and write it.
#[repr(align(64))]
struct Scratch([AtomicU32; SCRATCH_FRAMES]);

static SCRATCH: Scratch = Scratch([const { AtomicU32::new(0) }; SCRATCH_FRAMES]);

/// Touches the scratch buffer's pages, so that no cycle faults on them.
pub(crate) fn prepare_scratch() {
    for sample in &SCRATCH.0 {
        // Relaxed: only the page fault matters, the values are never used.
        sample.store(0, Ordering::Relaxed);
    }
}

// With the other functions that every cycle calls, on one page.
/// Returns the port's memory in this cycle. A port that is gone, or is another client's, gets
/// scratch memory, since programs do not check for null; null is returned for an invalid handle.
/// Thread: cycle.
#[unsafe(no_mangle)]
#[unsafe(link_section = ".text.hot.cycle")]
pub extern "C" fn jack_port_get_buffer(port: PortHandle, frames: u32) -> *mut c_void {
    let samples =
        port.pin_own().and_then(|PinnedPort { client, id }| client.session.port_buffer(id, frames));
    match samples {
        Some(samples) => samples.as_ptr().cast(),
        None if port.is_known() => SCRATCH.0.as_ptr().cast_mut().cast(),
        None => null_mut(),
    }
}

/// Returns the port's uuid; 0 for an invalid handle. Thread: any.
#[unsafe(no_mangle)]
pub extern "C" fn jack_port_uuid(port: PortHandle) -> Uuid {
    port.pin().map_or(0, |port| uuid::of_port(port.id))
}

/// Returns the full name, also of a port that was just unregistered; null if there never was one.
/// Valid as long as the process has a client on that server. Thread: any.
#[unsafe(no_mangle)]
pub extern "C" fn jack_port_name(port: PortHandle) -> *const c_char {
    let name = port.pin().and_then(|port| port.client.session.registry().port_name_ptr(port.id));
    name.map_or(null(), <*const u8>::cast)
}

/// Returns the part of the full name after the first colon. Thread: any.
#[unsafe(no_mangle)]
pub extern "C" fn jack_port_short_name(port: PortHandle) -> *const c_char {
    let Some(port) = port.pin() else { return null() };
    let Some(name) = port.client.session.registry().port_name_ptr(port.id) else { return null() };
    // SAFETY: a text of the registry, which always ends with a 0 and stays mapped while the client
    // is pinned.
    let colon = unsafe { libc::strchr(name.cast(), c_int::from(b':')) };
    // A full name has a colon.
    if colon.is_null() { name.cast() } else { colon.wrapping_add(1) }
}

fn kind(port: PortHandle) -> Option<PortKind> {
    port.pin().and_then(|port| port.client.session.port_kind(port.id))
}

/// Returns the `JackPortFlags`, also of a port that was just unregistered; -1 if there never was
/// one. Thread: any.
#[unsafe(no_mangle)]
pub extern "C" fn jack_port_flags(port: PortHandle) -> c_int {
    kind(port).map_or(FAILED, |kind| kind.flags as c_int)
}

/// Returns the type's name, also of a port that was just unregistered; null if there never was one.
/// Thread: any.
#[unsafe(no_mangle)]
pub extern "C" fn jack_port_type(port: PortHandle) -> *const c_char {
    kind(port).map_or(null(), |kind| type_name(kind.port_type).as_ptr())
}

/// Returns 0 for audio, 1 for MIDI, also for a port that was just unregistered; 0 if there never
/// was one. Thread: any.
#[unsafe(no_mangle)]
pub extern "C" fn jack_port_type_id(port: PortHandle) -> u32 {
    kind(port).map_or(0, |kind| u32::from(kind.port_type == PortType::Midi))
}

/// Returns 1 if the port belongs to this client. Thread: any.
#[unsafe(no_mangle)]
pub extern "C" fn jack_port_is_mine(client: ClientHandle, port: PortHandle) -> c_int {
    let Some(client) = client.pin() else { return 0 };
    let owner = port.id_for(&client).and_then(|id| client.session.registry().port_owner(id));
    c_int::from(owner == Some(client.session.id()))
}

/// Copies the aliases into the program's two buffers of 321 bytes and returns their number; -1 if
/// there is no such port.
///
/// # Safety
/// `aliases` is null or points to two pointers, each null or to 321 writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_port_get_aliases(
    port: PortHandle,
    aliases: *const *mut c_char,
) -> c_int {
    let found = port.pin().and_then(|port| port.client.session.registry().port_aliases(port.id));
    let Some(found) = found.filter(|_| !aliases.is_null()) else { return FAILED };
    let mut count = 0;
    for (index, alias) in found.iter().flatten().enumerate() {
        // SAFETY: not null, so there are two pointers, and no port has more aliases.
        let buffer = unsafe { aliases.add(index).read_unaligned() };
        let length = alias.len().min(NAME_BYTES - 1);
        if !buffer.is_null() {
            // SAFETY: the caller has promised 321 bytes.
            unsafe {
                buffer.cast::<u8>().copy_from_nonoverlapping(alias.as_ptr(), length);
                buffer.add(length).write(0);
            }
        }
        count += 1;
    }
    count
}

/// Replaces the part of the full name after the first colon. Returns 0, or -1.
///
/// # Safety
/// `name` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_port_rename(
    client: ClientHandle,
    port: PortHandle,
    name: *const c_char,
) -> c_int {
    // SAFETY: the caller's promise.
    let name = unsafe { text(name) };
    match client.pin().filter(|client| port.id_for(client).is_some()) {
        Some(_) => ask_with_text(port, name, |port, name| Request::RenamePort { port, name }),
        None => refuse(NO_SUCH_PORT),
    }
}

/// Like [`jack_port_rename`], without a client.
///
/// # Safety
/// `name` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_port_set_name(port: PortHandle, name: *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    ask_with_text(port, unsafe { text(name) }, |port, name| Request::RenamePort { port, name })
}

/// Adds an alias; a port can have two. Returns 0, or -1.
///
/// # Safety
/// `alias` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_port_set_alias(port: PortHandle, alias: *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    ask_with_text(port, unsafe { text(alias) }, |port, alias| Request::SetAlias { port, alias })
}

/// Removes an alias. Returns 0, or -1.
///
/// # Safety
/// `alias` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_port_unset_alias(port: PortHandle, alias: *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    ask_with_text(port, unsafe { text(alias) }, |port, alias| Request::UnsetAlias { port, alias })
}

fn ask_with_text(
    port: PortHandle,
    text: Option<&str>,
    request: impl FnOnce(u32, String) -> Request,
) -> c_int {
    let Some((port, text)) = port.pin().zip(text) else { return refuse(NO_SUCH_PORT) };
    answer(port.client.session.request(request(port.id, text.to_owned())))
}

/// Returns the size of the longest full port name in bytes, including the terminating 0. Thread:
/// any.
#[unsafe(no_mangle)]
pub extern "C" fn jack_port_name_size() -> c_int {
    NAME_BYTES as c_int
}

/// Returns the size of the longest type name in bytes, including the terminating 0. Thread: any.
#[unsafe(no_mangle)]
pub extern "C" fn jack_port_type_size() -> c_int {
    32
}

/// Returns the size of a buffer of this type at the current quantum, in bytes; 0 for an unknown
/// type. Thread: any.
///
/// # Safety
/// `type_name` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_port_type_get_buffer_size(
    client: ClientHandle,
    type_name: *const c_char,
) -> usize {
    let Some(client) = client.pin() else { return 0 };
    // SAFETY: the caller's promise.
    match unsafe { port_type(type_name) } {
        Some(PortType::Audio) => {
            client.session.info().map_or(0, |info| info.quantum as usize * size_of::<f32>())
        }
        Some(PortType::Midi) => MIDI_BUFFER_BYTES,
        None => 0,
    }
}
